/* Kernels from files under all checks: broken ones, each reported at the line marked "// <--" with the words that its second
   line expects; and correct ones, with no report and the values that theirs names. Kernels take four addresses: 4096 bytes
   never written, the numbers from 0 on, zeros, and freed memory. */
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

static unsigned marked_line(const char *text)
{
    const char *mark = strstr(text, "// <--");
    unsigned line = 1;
    for (const char *at = text; mark && at < mark; at++)
        line += *at == '\n';
    return mark ? line : 0;
}

static bool run(const char *text, outcome *o)
{
    CUcontext context;
    CUmodule module;
    CUfunction f;
    unsigned grid, block;
    CUdeviceptr p[4];
    if (sscanf(text, "// launch %u %u", &grid, &block) != 2 || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS)
        return false;
    if (load_text(text, &module) != CUDA_SUCCESS || cuModuleGetFunction(&f, module, "k") != CUDA_SUCCESS) {
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
    void *parameters[] = {&p[0], &p[1], &p[2], &p[3]};
    capture_stderr();
    o->result = cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, NULL, parameters, NULL);
    if (o->result == CUDA_SUCCESS)
        o->result = cuCtxSynchronize();
    captured_stderr();
    if (o->result == CUDA_SUCCESS) {
        cuMemcpyDtoH_v2(o->out, p[0], sizeof o->out);
        cuMemcpyDtoH_v2(o->zeros, p[2], sizeof o->zeros);
    }
    return cuCtxDestroy_v2(context) == CUDA_SUCCESS;
}

static bool check_broken(const char *text)
{
    outcome o;
    int code, from;
    const char *expect = strstr(text, "// expect ");
    char words[128] = "", line[32];
    if (!expect || sscanf(expect, "// expect %d %n%127[^\n]", &code, &from, words) != 2 || !run(text, &o))
        return false;
    snprintf(line, sizeof line, "line %u:", marked_line(text));
    return (int)o.result == code && strstr(printed, words) && strstr(printed, line);
}

static bool are_values_right(const char *kind, unsigned n, unsigned threads, const outcome *o)
{
    if (strcmp(kind, "at0") == 0)
        return o->out[0] == n;
    if (strncmp(kind, "zero", 4) == 0)
        return o->zeros[atoi(kind + 4)] == n;
    for (unsigned i = 0; i < threads; i++) {
        uint32_t want = strcmp(kind, "rev") == 0               ? n - 1 - i
                        : strcmp(kind, "xor") == 0             ? i ^ n
                        : strcmp(kind, "add") == 0             ? i + n
                        : strcmp(kind, "shift") == 0 && i < 32 ? i + n
                                                               : i;
        if (strcmp(kind, "shift") == 0 && i >= 32)
            break;
        if (o->out[i] != want)
            return false;
    }
    return true;
}

static bool check_correct(const char *text)
{
    outcome o;
    char kind[16];
    unsigned n, grid, threads;
    const char *expect = strstr(text, "// expect ");
    if (!expect || sscanf(expect, "// expect %15s %u", kind, &n) != 2 ||
        sscanf(text, "// launch %u %u", &grid, &threads) != 2 || !run(text, &o))
        return false;
    return o.result == CUDA_SUCCESS && printed[0] == '\0' && are_values_right(kind, n, threads, &o);
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int count = argc == 3 ? scandir(argv[2], &entries, NULL, alphasort) : -1, failed = 0, ran = 0;
    bool broken = argc == 3 && strcmp(argv[1], "broken") == 0;
    setenv("KILN_EMU_VERBOSE", "2", 1);
    setenv("KILN_EMU_CHECK", "all", 0);
    if (count < 0 || cuInit(0) != CUDA_SUCCESS)
        return 2;
    for (int i = 0; i < count; i++) {
        size_t size = strlen(entries[i]->d_name);
        if (size > 4 && strcmp(entries[i]->d_name + size - 4, ".ptx") == 0) {
            const char *text = read_text(argv[2], entries[i]->d_name);
            ran++;
            printed[0] = '\0';
            if (!text || !(broken ? check_broken(text) : check_correct(text))) {
                failed++;
                printf("%s: not as expected; reported was:\n%s\n", entries[i]->d_name, printed);
            }
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d kernels, %d not as expected\n", ran, failed);
    return failed || !ran;
}
