/* Functions that real compilers made. source/ has their C, which CUDA and the host share (source/device.h). Every kernel of a
   folder of PTX is run under all checks, on values that hurt, and compared with the same source run by the host
   (source/native.h): bit by bit, or within the bound in its row of functions.def.

   clang compiles all functions when kiln is built (CMakeLists.txt). ptx/ has what nvcc made, so that nvcc is not needed: the
   functions that clang cannot compile, and those whose copy by nvcc has an instruction form that no copy by clang has, or
   reaches code of the emulated driver that none reaches (refresh.py). After a change to source/ or refresh.py,
   `ninja refresh_compiled` compiles ptx/ anew; the test emulator.compiled.current fails until then.

   usage: test_compiled FOLDER [PART OF A FILE'S NAME] */
#include "cuda_api.h"

#include "source/device.h"
#include "values.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct function {
    const char *subject, *name;
    native_kernel *native;
    value_type out_type, a_type, b_type;
    uint32_t n, out, spare, out_each, in_each;
    native_dim grid, block;
    unsigned shared;
    unsigned char fill;
    const void *with;
    double ulps, relative, absolute;
} function;

#define F(subject, name, ...) native_kernel name;
#include "functions.def"
#undef F

static const struct mixture mixture = {40503, {1, 2, 250, 4, 5}, -300, 0xfedcba9876543210, 3.25f};

static const function functions[] = {
#define F(s, f, ...) {.subject = #s, .name = #f, .native = f, .out_type = __VA_ARGS__},
#include "functions.def"
#undef F
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static struct {
    unsigned functions, modules, runs, failures;
    unsigned long long comparisons;
} total;

static char *read_text(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    text[fread(text, 1, size, file)] = '\0';
    fclose(file);
    return text;
}

static bool load(const char *text, const char *name, CUmodule *module)
{
    enum { ERROR_LOG_BUFFER = 5, ERROR_LOG_BYTES = 6 };
    static char log[8192];
    int options[] = {ERROR_LOG_BUFFER, ERROR_LOG_BYTES};
    void *values[] = {log, (void *)sizeof log};
    log[0] = '\0';
    if (cuModuleLoadDataEx(module, text, 2, options, values) == CUDA_SUCCESS)
        return true;
    printf("%s does not load:\n%s", name, log);
    return false;
}

static bool fail(const char *module, const function *f, uint32_t n, const char *what)
{
    printf("%s: %s, n = %u: %s\n", module, f->name, n, what);
    return false;
}

static void print_element(const char *what, value_type type, const void *elements, size_t i)
{
    size_t bytes = value_bytes(type);
    uint64_t bits = 0;
    memcpy(&bits, (const char *)elements + i * bytes, bytes);
    printf("    %s 0x%0*llx", what, (int)bytes * 2, (unsigned long long)bits);
    if (type >= F16 && type <= WHOLE)
        printf(" (%.9g)", value_number(type, elements, i));
    printf("\n");
}

static bool compare(const char *module, const function *f, uint32_t n, uint32_t outs, const void *got,
                    const void *want, const void *a, const void *b)
{
    value_bound bound = {f->ulps, f->relative, f->absolute};
    uint32_t out_each = f->out_each ? f->out_each : 1;
    total.comparisons += outs;
    for (size_t i = 0; i < outs; i++) {
        if (value_agrees(f->out_type, got, want, i, &bound))
            continue;
        printf("%s: %s, n = %u: element %zu differs\n", module, f->name, n, i);
        if (i / out_each < n) {
            print_element("a   ", f->a_type, a, i / out_each);
            print_element("b   ", f->b_type, b, i / out_each);
        }
        print_element("got ", f->out_type, got, i);
        print_element("want", f->out_type, want, i);
        return false;
    }
    return true;
}

/* The buffers of one run, on both sides. */
typedef struct buffers {
    size_t bytes[3];
    void *host[3], *got; /* out, a, b */
    CUdeviceptr device[3];
} buffers;

static bool make_buffers(const function *f, uint32_t n, uint32_t outs, buffers *s)
{
    const value_type types[] = {f->out_type, f->a_type, f->b_type};
    for (int i = 0; i < 3; i++) {
        uint32_t count = i == 0 ? outs + f->spare : n * (f->in_each ? f->in_each : 1);
        s->bytes[i] = value_bytes(types[i]) * count;
        s->host[i] = malloc(s->bytes[i]);
        if (!s->host[i] || cuMemAlloc_v2(&s->device[i], s->bytes[i]) != CUDA_SUCCESS)
            return false;
        if (i == 0)
            memset(s->host[i], f->fill, s->bytes[i]);
        else
            value_fill(types[i], s->host[i], count, i == 2);
        if (cuMemcpyHtoD_v2(s->device[i], s->host[i], s->bytes[i]) != CUDA_SUCCESS)
            return false;
    }
    s->got = malloc(s->bytes[0]);
    return s->got != NULL;
}

static void free_buffers(buffers *s)
{
    for (int i = 0; i < 3; i++) {
        free(s->host[i]);
        cuMemFree_v2(s->device[i]);
    }
    free(s->got);
}

static bool run_both(CUfunction kernel, const function *f, uint32_t n, buffers *s)
{
    native_dim block = {f->block.x ? f->block.x : 128, f->block.y ? f->block.y : 1,
                        f->block.z ? f->block.z : 1};
    native_dim grid = {f->grid.x ? f->grid.x : (n + block.x - 1) / block.x, f->grid.y ? f->grid.y : 1,
                       f->grid.z ? f->grid.z : 1};
    void *parameters[] = {&s->device[0], &s->device[1], &s->device[2], &n, (void *)(uintptr_t)f->with};
    CUresult r = cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, f->shared, NULL,
                                parameters, NULL);
    if (r == CUDA_SUCCESS)
        r = cuCtxSynchronize();
    if (r != CUDA_SUCCESS || cuMemcpyDtoH_v2(s->got, s->device[0], s->bytes[0]) != CUDA_SUCCESS)
        return false;
    native_arguments arguments = {s->host[0], s->host[1], s->host[2], f->with, n};
    native_run(f->native, &arguments, grid, block);
    return true;
}

static bool run_size(const char *module, CUfunction kernel, const function *f, uint32_t n)
{
    uint32_t outs = f->out ? f->out : n * (f->out_each ? f->out_each : 1);
    buffers s = {0};
    total.runs++;
    bool good = make_buffers(f, n, outs, &s) && run_both(kernel, f, n, &s);
    good = good ? compare(module, f, n, outs, s.got, s.host[0], s.host[1], s.host[2])
                : fail(module, f, n, "does not run to its end");
    free_buffers(&s);
    return good;
}

static bool run_function(const char *name, CUfunction kernel, const function *f)
{
    static const uint32_t sizes[] = {1, 31, 32, 33, 127, 128, 129, 1200};
    if (f->n)
        return run_size(name, kernel, f, f->n);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!run_size(name, kernel, f, sizes[i]))
            return false;
    return true;
}

static bool is_in(const function *f, const char *name)
{
    size_t subject = strcspn(name, ".");
    return strlen(f->subject) == subject && strncmp(f->subject, name, subject) == 0;
}

static void run_module(const char *name, const char *text)
{
    CUcontext context;
    CUmodule module = NULL;
    CUfunction kernel;
    total.modules++;
    for (int i = 0; i < FUNCTIONS; i++) {
        if (!is_in(&functions[i], name))
            continue;
        if (!module && (cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS || !load(text, name, &module))) {
            total.failures++;
            return;
        }
        CUresult found = cuModuleGetFunction(&kernel, module, functions[i].name);
        if (found == CUDA_ERROR_NOT_FOUND && strstr(name, ".nvcc"))
            continue; /* clang's copy is enough */
        total.functions++;
        if (found != CUDA_SUCCESS)
            printf("%s lacks %s\n", name, functions[i].name);
        else if (run_function(name, kernel, &functions[i]))
            continue;
        total.failures++;
        module = NULL; /* a failed launch spoils its context */
        cuCtxDestroy_v2(context);
    }
    if (module)
        cuCtxDestroy_v2(context);
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int count = argc > 1 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
    setenv("KILN_EMU_CHECK", "all", 0);
    if (count < 0 || cuInit(0) != CUDA_SUCCESS)
        return 2;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *text = strstr(name, argc > 2 ? argv[2] : ".ptx") ? read_text(argv[1], name) : NULL;
        if (text)
            run_module(name, text);
        free(text);
        free(entries[i]);
    }
    free(entries);
    if (!total.modules) {
        printf("SKIPPED: %s is empty: kiln was built without clang-14\n", argv[1]);
        return 77;
    }
    printf("%u functions, %u modules, %u runs, %llu comparisons, %u failures\n", total.functions,
           total.modules, total.runs, total.comparisons, total.failures);
    return total.failures || !total.functions;
}
