/* Execution of whatever loads, with all checks and a limit of jumps: the process survives, and the results are those of
   the first run again. Blocks that race may differ between one and two host threads; one thread has one order only. */
#include "fuzz.h"

enum { BUFFER_BYTES = 8192, MOST_PARAMETERS = 32768, SIZE_GIVEN = 48 };

static char wide_parameters[4][32768]; /* one for each buffer, one for all others */
static CUdeviceptr buffers[3];
static void *parameters[MOST_PARAMETERS];

typedef struct outcome {
    CUresult result;
    char bytes[sizeof buffers / sizeof *buffers][BUFFER_BYTES];
} outcome;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_begin();
    return 0;
}

static void fill_buffers(void)
{
    static char bytes[BUFFER_BYTES];
    uint32_t x = 12345;
    for (size_t i = 0; i < sizeof bytes; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (char)(x >> 24);
    }
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        fuzz_must(cuMemcpyHtoD_v2(buffers[i], bytes, sizeof bytes), "cuMemcpyHtoD");
}

/* The first three parameters are buffers, the others small numbers, followed by zeros if they are wide. */
static void set_parameters(void)
{
    uint64_t size = SIZE_GIVEN;
    memcpy(wide_parameters[3], &size, sizeof size);
    for (size_t i = 0; i < MOST_PARAMETERS; i++)
        parameters[i] = wide_parameters[i < 3 ? i : 3];
    for (size_t i = 0; i < 3; i++) {
        fuzz_must(cuMemAlloc_v2(&buffers[i], BUFFER_BYTES), "cuMemAlloc");
        memcpy(wide_parameters[i], &buffers[i], sizeof buffers[i]);
    }
}

/* In a context of its own, because a fault spoils the context. Module variables start afresh, too. */
static bool run_once(const uint8_t *data, size_t bytes, const char *threads, outcome *out)
{
    CUcontext context;
    CUfunction f;
    setenv("KILN_EMU_THREADS", threads, 1);
    fuzz_must(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    CUmodule module = fuzz_load(data, bytes);
    bool runs = module && cuModuleGetFunction(&f, module, "k") == CUDA_SUCCESS;
    if (runs) {
        set_parameters();
        fill_buffers();
        memset(out, 0, sizeof *out);
        out->result = cuLaunchKernel(f, 2, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL);
        if (out->result == CUDA_SUCCESS)
            out->result = cuCtxSynchronize();
        if (out->result == CUDA_SUCCESS)
            for (int i = 0; i < 3; i++)
                fuzz_must(cuMemcpyDtoH_v2(out->bytes[i], buffers[i], BUFFER_BYTES), "cuMemcpyDtoH");
    }
    fuzz_must(cuCtxDestroy_v2(context), "cuCtxDestroy");
    return runs;
}

static bool contains(const uint8_t *data, size_t bytes, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= bytes; i++)
        if (memcmp(data + i, word, n) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static outcome one, two;
    if (!run_once(data, bytes, "1", &one))
        return 0;
    run_once(data, bytes, "2", &two);
    if (memcmp(&one, &two, sizeof one) == 0 || contains(data, bytes, "timer"))
        return 0;
    run_once(data, bytes, "1", &two);
    if (memcmp(&one, &two, sizeof one) != 0) {
        fprintf(stderr, "the same launch gave %d, then %d\n", (int)one.result, (int)two.result);
        abort();
    }
    return 0;
}
