/* Runs the one-instruction programs of ../shared/conformance on the emulated driver: 427 programs, 16 cases each. Without
   the data the exit status is 77, which CTest reports as skipped. */
#include "cuda_api.h"

#include <libfyaml.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED    77
#define MOST_BYTES 4096

/* Programs in which the data contradicts the PTX ISA's text, which is right. */
static const struct {
    const char *test, *reason;
} settled[] = {
    {NULL, NULL},
};

static void must(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    const char *name = "?";
    cuGetErrorName(r, &name);
    fprintf(stderr, "%s: %s\n", what, name);
    exit(1);
}

static const char *text_at(struct fy_node *n, const char *key)
{
    struct fy_node *v = fy_node_mapping_lookup_by_string(n, key, FY_NT);
    return v ? fy_node_get_scalar0(v) : NULL;
}

static size_t from_hex(const char *hex, unsigned char *bytes)
{
    size_t n = 0;
    for (; hex[2 * n] && hex[2 * n + 1]; n++) {
        unsigned byte;
        sscanf(hex + 2 * n, "%2x", &byte);
        bytes[n] = (unsigned char)byte;
    }
    return n;
}

static size_t size_of(const char *type)
{
    size_t bits = (size_t)strtoul(type + 1, NULL, 10);
    return bits / 8;
}

static bool close_enough(double a, double b, int eps_log2)
{
    double eps = ldexp(1, -23 + eps_log2);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= eps || fabs(a - b) <= eps * fabs(b);
}

static bool same(const char *type, const unsigned char *got, const unsigned char *want, int eps_log2)
{
    if (type[0] != 'f')
        return memcmp(got, want, size_of(type)) == 0;
    float f[2];
    double d[2];
    if (size_of(type) == 4) {
        memcpy(&f[0], got, 4);
        memcpy(&f[1], want, 4);
        d[0] = (double)f[0];
        d[1] = (double)f[1];
    } else {
        memcpy(&d[0], got, 8);
        memcpy(&d[1], want, 8);
    }
    return close_enough(d[0], d[1], eps_log2);
}

static void print_bytes(const char *what, const unsigned char *bytes, size_t size)
{
    printf("    %s ", what);
    for (size_t i = 0; i < size; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

static bool compare(struct fy_node *test, const unsigned char *in, size_t in_bytes, const unsigned char *got,
                    const unsigned char *want)
{
    struct fy_node *types = fy_node_mapping_lookup_by_string(test, "output_types", FY_NT), *t;
    int eps_log2 = atoi(text_at(test, "eps_log2"));
    size_t at = 0;
    void *i = NULL;
    while ((t = fy_node_sequence_iterate(types, &i)) != NULL) {
        const char *type = fy_node_get_scalar0(t);
        size_t bytes = size_of(type);
        at = (at + bytes - 1) / bytes * bytes;
        if (!same(type, got + at, want + at, eps_log2)) {
            printf("%s: output %zu differs\n", text_at(test, "name"), at);
            print_bytes("in  ", in, in_bytes);
            print_bytes("got ", got + at, bytes);
            print_bytes("want", want + at, bytes);
            return false;
        }
        at += bytes;
    }
    return true;
}

static bool run_case(struct fy_node *test, struct fy_node *one, CUfunction f, CUdeviceptr in, CUdeviceptr out)
{
    unsigned char given[MOST_BYTES], want[MOST_BYTES], got[MOST_BYTES];
    size_t in_bytes = from_hex(text_at(one, "in"), given), out_bytes = from_hex(text_at(one, "out"), want);
    must(cuMemcpyHtoD_v2(in, given, in_bytes), "copy in");
    void *parameters[] = {&out, &in};
    must(cuLaunchKernel(f, (unsigned)atoi(text_at(test, "blocks")), 1, 1,
                        (unsigned)atoi(text_at(test, "threads")), 1, 1, 0, NULL, parameters, NULL),
         "launch");
    must(cuMemcpyDtoH_v2(got, out, out_bytes), "copy out");
    return compare(test, given, in_bytes, got, want);
}

static bool run_test(struct fy_node *test, CUdeviceptr in, CUdeviceptr out)
{
    char log[4096] = "";
    int options[] = {5, 6};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module;
    CUfunction f;
    if (cuModuleLoadDataEx(&module, text_at(test, "ptx"), 2, options, values) != CUDA_SUCCESS) {
        printf("%s does not load\n%s", text_at(test, "name"), log);
        return false;
    }
    must(cuModuleGetFunction(&f, module, text_at(test, "entry")), "get function");
    struct fy_node *cases = fy_node_mapping_lookup_by_string(test, "cases", FY_NT), *one;
    bool good = true;
    void *i = NULL;
    while (good && (one = fy_node_sequence_iterate(cases, &i)) != NULL)
        good = run_case(test, one, f, in, out);
    cuModuleUnload(module);
    return good;
}

static const char *reason_for(const char *test)
{
    for (size_t i = 0; settled[i].test; i++)
        if (strcmp(settled[i].test, test) == 0)
            return settled[i].reason;
    return NULL;
}

static int run_all(struct fy_node *tests, CUdeviceptr in, CUdeviceptr out)
{
    struct fy_node *test;
    void *i = NULL;
    int passed = 0, failed = 0, by_text = 0;
    while ((test = fy_node_sequence_iterate(tests, &i)) != NULL) {
        if (strcmp(text_at(test, "ptxas_sm90_accepts"), "true") != 0)
            continue;
        const char *reason = reason_for(text_at(test, "name"));
        if (reason)
            by_text++;
        else if (run_test(test, in, out))
            passed++;
        else
            failed++;
    }
    printf("%d programs pass, %d fail, %d are settled by the text of the ISA\n", passed, failed, by_text);
    return failed || !passed;
}

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        printf("SKIPPED: there is no %s\n", argc > 1 ? argv[1] : "file given");
        return SKIPPED;
    }
    fclose(file);
    struct fy_parse_cfg cfg = {.flags = FYPCF_JSON_FORCE | FYPCF_DEFAULT_PARSE};
    struct fy_document *doc = fy_document_build_from_file(&cfg, argv[1]);
    if (!doc) {
        fprintf(stderr, "%s cannot be read\n", argv[1]);
        return 1;
    }
    CUcontext context;
    CUdeviceptr in, out;
    must(cuInit(0), "cuInit");
    must(cuCtxCreate_v2(&context, 0, 0), "create context");
    must(cuMemAlloc_v2(&in, MOST_BYTES), "allocate");
    must(cuMemAlloc_v2(&out, MOST_BYTES), "allocate");
    struct fy_node *tests = fy_node_mapping_lookup_by_string(fy_document_root(doc), "tests", FY_NT);
    int failed = run_all(tests, in, out);
    fy_document_destroy(doc);
    cuCtxDestroy_v2(context);
    return failed;
}
