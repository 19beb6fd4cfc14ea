/* Launches every text that loads, with all checks and a limit of jumps. The process must survive, and a second launch must
   have the same results. The first line of the input describes the launch of the first kernel:
       // launch GRID BLOCK SHARED PARAMETERS
   PARAMETERS has a letter per parameter. A buffer: of any bytes (a), of small numbers (b), of floats (c), or of bytes of which
   every second 64 were never written (d). A tensor map of a buffer of any bytes: t. A small number: n; one: m. Values are
   clamped; missing ones have defaults. */
#include "fuzz.h"

#include <ctype.h>
#include <inttypes.h>

enum { BUFFERS = 4, BUFFER_BYTES = 2048, MOST_PARAMETERS = 32768, LETTERS = 64 };
enum { MOST_BLOCKS = 3, MOST_THREADS = 160, MOST_SHARED = 16384 };

typedef struct session { /* lasts until a launch fails, which invalidates the context */
    CUcontext context;
    CUdeviceptr buffers[BUFFERS];
    CUdeviceptr partly; /* partly written: copying it makes bytes uninitialised again */
} session;

typedef struct plan {
    unsigned grid, block, shared;
    char letters[LETTERS + 1];
} plan;

static session sessions[8]; /* by device */
static const unsigned devices[] = {120, 75, 80, 90, 100};
enum { SMALL = BUFFERS, ONE, MAP, VALUES };
/* By letter: a value, then zeros, since parameters may be this large. */
static _Alignas(64) char wide[VALUES][32768];
static void *parameters[MOST_PARAMETERS];
static struct {
    unsigned long inputs, loaded, launched, ended, twice;
} count;

static void print_counts(void)
{
    fprintf(stderr,
            "%lu inputs, %lu loaded, %lu launched, %lu ended without an error, %lu twice and compared\n",
            count.inputs, count.loaded, count.launched, count.ended, count.twice);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_begin();
    atexit(print_counts);
    for (size_t i = 0; i < MOST_PARAMETERS; i++)
        parameters[i] = wide[SMALL];
    return 0;
}

static uint32_t words[BUFFERS][BUFFER_BYTES / 4];

static void fill_words(void)
{
    uint32_t x = 12345;
    for (unsigned i = 0; i < BUFFER_BYTES / 4; i++) {
        float f = (float)(int)(i % 64) - 31.5f;
        x = x * 1664525 + 1013904223;
        words[0][i] = x ^ x >> 16;
        words[1][i] = words[3][i] = i % 48;
        memcpy(&words[2][i], &f, sizeof f);
    }
}

static void open_session(session *s, CUdevice device)
{
    fill_words();
    fuzz_must(cuCtxCreate_v2(&s->context, 0, device), "cuCtxCreate");
    for (int i = 0; i < BUFFERS; i++)
        fuzz_must(cuMemAlloc_v2(&s->buffers[i], BUFFER_BYTES), "cuMemAlloc");
    fuzz_must(cuMemAlloc_v2(&s->partly, BUFFER_BYTES), "cuMemAlloc");
    for (unsigned at = 0; at < BUFFER_BYTES; at += 128)
        fuzz_must(cuMemcpyHtoD_v2(s->partly + at, words[3] + at / 4, 64), "cuMemcpyHtoD");
}

static session *session_for(const char *text)
{
    const char *target = strstr(text, ".target sm_");
    unsigned number = target ? (unsigned)strtoul(target + 11, NULL, 10) : 0;
    CUdevice device = 0;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i] == number)
            device = (CUdevice)i;
    session *s = &sessions[device];
    if (s->context)
        fuzz_must(cuCtxSetCurrent(s->context), "cuCtxSetCurrent");
    else
        open_session(s, device);
    return s;
}

static plan read_plan(const char *text)
{
    plan p = {2, 64, 0, ""};
    sscanf(text, "// launch %u %u %u %64[a-z]", &p.grid, &p.block, &p.shared, p.letters);
    p.grid = p.grid < 1 ? 1 : p.grid > MOST_BLOCKS ? MOST_BLOCKS : p.grid;
    p.block = p.block < 1 ? 1 : p.block > MOST_THREADS ? MOST_THREADS : p.block;
    p.shared = p.shared > MOST_SHARED ? MOST_SHARED : p.shared;
    if (!p.letters[0])
        strcpy(p.letters, "abcn");
    return p;
}

/* Boxes of 4 by 8 of a matrix of 32 by 16 floats in a buffer; zeros on devices without tensor maps. */
static void encode_map(CUdeviceptr address, CUtensorMap *map)
{
    enum { F32 = 7 };
    static const uint64_t size[] = {16, 32}, stride[] = {64};
    static const uint32_t box[] = {8, 4}, step[] = {1, 1};
    memset(map, 0, sizeof *map);
    CUresult r =
        cuTensorMapEncodeTiled(map, F32, 2, (void *)(uintptr_t)address, size, stride, box, step, 0, 0, 0, 0);
    if (r != CUDA_ERROR_NOT_SUPPORTED)
        fuzz_must(r, "cuTensorMapEncodeTiled");
}

static void set_parameters(const session *s, const plan *p)
{
    static const uint64_t numbers[] = {48, 1};
    for (int i = 0; i < BUFFERS; i++)
        memcpy(wide[i], &s->buffers[i], sizeof s->buffers[i]);
    for (int i = 0; i < 2; i++)
        memcpy(wide[SMALL + i], &numbers[i], sizeof numbers[i]);
    encode_map(s->buffers[0], (CUtensorMap *)(void *)wide[MAP]);
    size_t letters = strlen(p->letters);
    for (size_t i = 0; i < LETTERS; i++) {
        char letter = i < letters ? p->letters[i] : 'n';
        parameters[i] = wide[letter >= 'a' && letter <= 'd' ? letter - 'a'
                             : letter == 'm'                ? ONE
                             : letter == 't'                ? MAP
                                                            : SMALL];
    }
}

static bool first_entry(const char *text, CUmodule module, CUfunction *f)
{
    for (const char *at = text; (at = strstr(at, ".entry")) != NULL;) {
        char name[256];
        size_t size = 0;
        for (at += 6; isspace((unsigned char)*at); at++)
            ;
        while (size < sizeof name - 1 && (isalnum((unsigned char)*at) || (*at && strchr("_$%", *at))))
            name[size++] = *at++;
        name[size] = '\0';
        if (cuModuleGetFunction(f, module, name) == CUDA_SUCCESS)
            return true;
    }
    return false;
}

static CUresult launch(const session *s, CUfunction f, const plan *p, char out[BUFFERS][BUFFER_BYTES])
{
    for (int i = 0; i < BUFFERS - 1; i++)
        fuzz_must(cuMemcpyHtoD_v2(s->buffers[i], words[i], BUFFER_BYTES), "cuMemcpyHtoD");
    fuzz_must(cuMemcpyDtoD_v2(s->buffers[3], s->partly, BUFFER_BYTES), "cuMemcpyDtoD");
    CUresult r = cuLaunchKernel(f, p->grid, 1, 1, p->block, 1, 1, p->shared, NULL, parameters, NULL);
    if (r != CUDA_SUCCESS)
        return r;
    count.launched++;
    r = cuCtxSynchronize();
    for (int i = 0; i < BUFFERS && r == CUDA_SUCCESS; i++)
        fuzz_must(cuMemcpyDtoH_v2(out[i], s->buffers[i], BUFFER_BYTES), "cuMemcpyDtoH");
    return r;
}

/* True if a second launch may differ: clocks advance, and module variables keep their values. */
static bool may_differ(const char *text)
{
    return strstr(text, "clock") || strstr(text, "timer") || strstr(text, ".global ");
}

/* The second launch is counted, which must not change its results. */
static CUresult run(const session *s, CUfunction f, const plan *p, const char *text)
{
    static char one[BUFFERS][BUFFER_BYTES], two[BUFFERS][BUFFER_BYTES];
    CUresult r = launch(s, f, p, one);
    if (r != CUDA_SUCCESS)
        return r;
    count.ended++;
    setenv("KILN_EMU_REPORT", "/dev/null", 1);
    r = launch(s, f, p, two);
    unsetenv("KILN_EMU_REPORT");
    if (may_differ(text))
        return r;
    count.twice++;
    if (r != CUDA_SUCCESS || memcmp(one, two, sizeof one) != 0) {
        fprintf(stderr, "the second launch gave %d or other values\n", (int)r);
        abort();
    }
    return r;
}

/* Ends the session if a kernel failed, which invalidates the context. A refused launch does not. */
static void end_session(session *s, CUresult r)
{
    CUresult after = cuCtxSynchronize();
    if (after == CUDA_SUCCESS)
        return;
    if (after != r)
        abort();
    fuzz_must(cuCtxDestroy_v2(s->context), "cuCtxDestroy");
    s->context = NULL;
}

bool fuzz_is_loadable(const uint8_t *data, size_t bytes);
bool fuzz_is_loadable(const uint8_t *data, size_t bytes)
{
    char *text = fuzz_text(data, bytes);
    session_for(text);
    CUmodule module = fuzz_load(text);
    if (module)
        fuzz_must(cuModuleUnload(module), "cuModuleUnload");
    free(text);
    return module != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    CUfunction f;
    char *text = fuzz_text(data, bytes);
    session *s = session_for(text);
    CUmodule module = fuzz_load(text);
    count.inputs++;
    count.loaded += module != NULL;
    if (module && first_entry(text, module, &f)) {
        plan p = read_plan(text);
        set_parameters(s, &p);
        end_session(s, run(s, f, &p, text));
    }
    if (module && s->context)
        fuzz_must(cuModuleUnload(module), "cuModuleUnload");
    free(text);
    return 0;
}
