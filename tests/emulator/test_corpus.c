/* Runs kernels under all checks; kernels.py writes their files. Broken kernels must give reports at the lines marked "// <--",
   and no others, with the code and words of the line "// expect CODE WORDS", and the words of the kind, which the file's name
   begins with; every kind has at least five. Correct kernels must give no report, and the values of their lines
   "// expect ARRAY[FROM:TO] = VALUES", which are numbers or A * (i ^ X) + B. Kernels take four addresses: out, 4096 bytes that
   were never written; in, the numbers from 0 on; zeros; and freed memory. After "after" in the line "// launch" come earlier
   operations: kernels of the text, or "copy"; each later kernel is launched with programmatic stream serialization.
   A third argument "print" prints the reports of every kernel. */
#include "emu_test.h"

#include <dirent.h>

enum { WORDS = 1024 };

typedef struct outcome {
    CUresult result;
    uint32_t out[WORDS], zeros[WORDS];
} outcome;

static char *read_text(const char *folder, const char *name)
{
    static char text[65536];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

static CUresult launch_after(CUmodule module, const char *name, unsigned grid, unsigned block,
                             void **parameters, bool is_dependent)
{
    CUfunction f;
    CUlaunchAttribute dependent = {.id = CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value.programmatic = 1};
    CUlaunchConfig c = {grid, 1, 1, block, 1, 1, 0, NULL, &dependent, is_dependent};
    CUresult r = cuModuleGetFunction(&f, module, name);
    return r != CUDA_SUCCESS ? r : cuLaunchKernelEx(&c, f, parameters, NULL);
}

/* `before`: the text after "after" in the kernel's first line, and all lines below. */
static CUresult launch_all(CUmodule module, const char *before, unsigned grid, unsigned block,
                           CUdeviceptr p[4])
{
    void *parameters[] = {&p[0], &p[1], &p[2], &p[3]};
    char name[32];
    int size;
    bool is_dependent = false;
    for (; *before != '\n' && sscanf(before, "%31s%n", name, &size) == 1;
         before += size, is_dependent = true) {
        CUresult r = strcmp(name, "copy") == 0
                         ? cuMemcpyDtoDAsync_v2(p[0], p[1], 4, NULL)
                         : launch_after(module, name, 1, WORDS, parameters, is_dependent);
        if (r != CUDA_SUCCESS)
            return r;
    }
    return launch_after(module, "k", grid, block, parameters, is_dependent);
}

static bool run(const char *text, outcome *o)
{
    CUcontext context;
    CUmodule module;
    unsigned grid, block;
    int first = 0;
    CUdeviceptr p[4];
    if (sscanf(text, "// launch %u %u%n", &grid, &block, &first) != 2 ||
        cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS)
        return false;
    if (load_text(text, &module) != CUDA_SUCCESS) {
        fprintf(stderr, "%s\n", test_log);
        return false;
    }
    uint32_t numbers[WORDS];
    for (unsigned i = 0; i < WORDS; i++)
        numbers[i] = i;
    for (int i = 0; i < 4; i++)
        cuMemAlloc_v2(&p[i], sizeof numbers);
    cuMemcpyHtoD_v2(p[1], numbers, sizeof numbers);
    cuMemsetD32_v2(p[2], 0, WORDS);
    cuMemFree_v2(p[3]);
    first += strncmp(text + first, " after", 6) == 0 ? 6 : 0;
    capture_stderr();
    o->result = launch_all(module, text + first, grid, block, p);
    if (o->result == CUDA_SUCCESS)
        o->result = cuCtxSynchronize();
    captured_stderr();
    if (o->result == CUDA_SUCCESS) {
        cuMemcpyDtoH_v2(o->out, p[0], sizeof o->out);
        cuMemcpyDtoH_v2(o->zeros, p[2], sizeof o->zeros);
    }
    return cuCtxDestroy_v2(context) == CUDA_SUCCESS;
}

/* Words that the first report of a broken kernel must have, by kind. */
static struct {
    const char *kind, *words;
    unsigned count;
} kinds[] = {
    {"misaligned", "which is not a multiple of", 0},
    {"freed", "inside the freed allocation", 0},
    {"null", "a null pointer plus", 0},
    {"global_behind", "the end of the allocation", 0},
    {"global_before", "bytes before the allocation", 0},
    {"nowhere", "this is no device address", 0},
    {"shared_bounds", "of .shared memory, ", 0},
    {"local_bounds", "of .local memory, ", 0},
    {"const_bounds", "of .const memory, ", 0},
    {"param_bounds", "of .param memory, ", 0},
    {"wrong_space", "this is an address of .", 0},
    {"const_store", "inside the .const bank", 0},
    {"uninit_global", "that were never written, at 0x", 0},
    {"uninit_shared", "of .shared memory", 0},
    {"uninit_local", "uses an uninitialised register as", 0},
    {"uninit_stored", "uses an uninitialised register as the value that it stores", 0},
    {"uninit_guard", "uses an uninitialised register as the guard", 0},
    {"uninit_address", "uses an uninitialised register as an address", 0},
    {"uninit_operand", "uses an uninitialised register as an operand of this", 0},
    {"race_shared", "with nothing to order the two", 0},
    {"race_global", "with nothing to order the two", 0},
    {"race_blocks", "of block (0,0,0) ", 0},
    {"race_copy", "nothing has waited for it", 0},
    {"race_arrival", "with nothing to order the two", 0},
    {"proxy", "with no fence.proxy.async between the two", 0},
    {"read_only", "as read-only data", 0},
    {"early_read", "before griddepcontrol.wait, which a launch that may still run writes", 0},
    {"early_write", "before griddepcontrol.wait, while the preceding launch may still run", 0},
    {"no_wait", "ends its thread block, which has not executed griddepcontrol.wait", 0},
    {"divergent_barrier", "waits at an aligned barrier while", 0},
    {"skipped_barrier", "is at an aligned barrier that", 0},
    {"incomplete_barrier", "threads have arrived", 0},
    {"exited_barrier", "threads of the block have exited", 0},
    {"bad_barrier", "barrier", 0},
    {"member_mask", "without being in its own member mask", 0},
    {"missing_lanes", "waits for other lanes of its warp", 0},
    {"partial_warp", "executes this for its whole warp", 0},
    {"shuffle_inactive", "takes a value from a lane that does not take part", 0},
    {"uniform_branch", "takes a .uni branch that other active lanes", 0},
    {"branch_index", "branches by index", 0},
    {"copy_size", "copies more bytes from the source than cp-size", 0},
    {"mbarrier_unborn", "uses an mbarrier object that is not initialised", 0},
    {"mbarrier_count", "an mbarrier object", 0},
    {"mbarrier_space", "names an mbarrier object that is not in shared memory", 0},
    {"endless", "the launch makes no progress", 0},
    {"assertion", "fails an assertion", 0},
    {"call_target", "which is no function with these arguments", 0},
};

enum { KINDS = sizeof kinds / sizeof *kinds, LINES = 512 };

static size_t kind_of(const char *name)
{
    size_t k = 0;
    while (k < KINDS &&
           (strncmp(name, kinds[k].kind, strlen(kinds[k].kind)) != 0 || name[strlen(kinds[k].kind)] != '_'))
        k++;
    return k;
}

/* True if the marked lines are exactly the reported ones. */
static bool are_lines_right(const char *text)
{
    static int lines[LINES];
    memset(lines, 0, sizeof lines);
    unsigned line = 1;
    for (const char *at = text; *at && line < LINES; at++) {
        line += *at == '\n';
        if (strncmp(at, "// <--", 6) == 0)
            lines[line] |= 1;
    }
    for (const char *at = printed; (at = strstr(at, ", line ")) != NULL; at++)
        if (sscanf(at, ", line %u:", &line) == 1 && line < LINES)
            lines[line] |= 2;
    for (line = 0; line < LINES; line++)
        if (lines[line] == 1 || lines[line] == 2)
            return false;
    return true;
}

static bool check_broken(const char *name, const char *text)
{
    outcome o;
    int code, from;
    const char *expect = strstr(text, "// expect ");
    char words[128] = "";
    size_t k = kind_of(name);
    if (!expect || sscanf(expect, "// expect %d %n%127[^\n]", &code, &from, words) != 2 || !run(text, &o))
        return false;
    if (k == KINDS || !strstr(printed, kinds[k].words) || !strstr(printed, words))
        return false;
    kinds[k].count++;
    return (int)o.result == code && are_lines_right(text);
}

/* Counts kinds with too few kernels. Endless waits take long to detect, so they have their own folder. */
static unsigned too_rare_kinds(const char *folder_kind)
{
    unsigned rare = 0;
    bool endless = strcmp(folder_kind, "endless") == 0;
    for (size_t k = 0; k < KINDS; k++)
        if ((strcmp(kinds[k].kind, "endless") == 0) == endless && kinds[k].count < 5) {
            printf("%s: %u kernels, 5 are wanted\n", kinds[k].kind, kinds[k].count);
            rare++;
        }
    return rare;
}

/* `line`: the text after "// expect ". */
static bool are_values_right(const char *line, const outcome *o)
{
    char array[8];
    unsigned from, to, a, x, b;
    int at = 0, more;
    if (sscanf(line, "%7[a-z][%u:%u] = %n", array, &from, &to, &at) != 3 || !at || to > WORDS || from >= to)
        return false;
    const uint32_t *values = strcmp(array, "out") == 0     ? o->out
                             : strcmp(array, "zeros") == 0 ? o->zeros
                                                           : NULL;
    bool by_rule = sscanf(line + at, "%u * (i ^ %u) + %u", &a, &x, &b) == 3;
    for (unsigned i = from; values && i < to; i++) {
        unsigned want = by_rule ? a * (i ^ x) + b : 0;
        if (!by_rule && sscanf(line + at, "%u%n", &want, &more) != 1)
            return false;
        at += by_rule ? 0 : more;
        if (values[i] != want) {
            printf("%s[%u] is %u, expected %u\n", array, i, values[i], want);
            return false;
        }
    }
    return values != NULL;
}

static bool check_correct(const char *text)
{
    static const char word[] = "// expect ";
    outcome o;
    const char *expect = strstr(text, word);
    if (!expect || !run(text, &o) || o.result != CUDA_SUCCESS || printed[0] != '\0')
        return false;
    for (; expect; expect = strstr(expect + 1, word))
        if (!are_values_right(expect + sizeof word - 1, &o))
            return false;
    return true;
}

static bool check_file(const char *folder, const char *name, bool broken, bool prints)
{
    const char *text = read_text(folder, name);
    printed[0] = '\0';
    bool right = text && (broken ? check_broken(name, text) : check_correct(text));
    if (prints)
        printf("%s:\n%s\n", name, printed);
    else if (!right)
        printf("%s: not as expected; reported was:\n%s\n", name, printed);
    return right;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int count = argc >= 3 ? scandir(argv[2], &entries, NULL, alphasort) : -1, failed = 0, ran = 0;
    bool broken = argc >= 3 && strcmp(argv[1], "correct") != 0;
    setenv("KILN_EMU_VERBOSE", "2", 0);
    setenv("KILN_EMU_CHECK", "all", 0);
    if (count < 0 || cuInit(0) != CUDA_SUCCESS)
        return 2;
    for (int i = 0; i < count; i++) {
        size_t size = strlen(entries[i]->d_name);
        if (size > 4 && strcmp(entries[i]->d_name + size - 4, ".ptx") == 0) {
            ran++;
            failed += !check_file(argv[2], entries[i]->d_name, broken, argc > 3);
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d kernels, %d not as expected\n", ran, failed);
    return failed || !ran || (broken && too_rare_kinds(argv[1]));
}
