/* Tests of rules: kernels that break one, each with its only report, and kernels that keep it and have none. ptxas, where it
   is, takes them all. */
#ifndef RULES_H
#define RULES_H

#include "rules_test.h"

typedef struct rule {
    const char *name, *body;
    const char *words; /* of the only report; NULL: there is none */
    unsigned threads;  /* of a block; 0: 32 */
    unsigned blocks;   /* of the only cluster; 0: 2 */
} rule;

enum { RULE_BYTES = 16384 };

/* A kernel with the parameters p0, p1 and n; directives: of the kernel. */
static inline const char *rule_entry(const char *name, const char *directives, const char *prologue,
                                     const rule *r)
{
    static char text[RULE_BYTES];
    snprintf(text, sizeof text,
             ".visible .entry %s(.param .u64 p0, .param .u64 p1, .param .u32 n) %s\n{\n%s%sret;\n}\n", name,
             directives, prologue, r->body);
    return text;
}

static inline CUfunction rule_kernel(const char *header, const char *directives, const char *prologue,
                                     const rule *r)
{
    static char text[RULE_BYTES + 256];
    CUmodule module;
    CUfunction f;
    snprintf(text, sizeof text, "%s\n.address_size 64\n%s", header, rule_entry("k", directives, prologue, r));
    if (load_text(text, &module) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, test_log);
    assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_SUCCESS);
    return f;
}

/* One cluster in the x direction of as many blocks as are given, or several. */
static inline CUresult launch_clusters(CUfunction f, unsigned grid, unsigned cluster, unsigned threads,
                                       CUdeviceptr p0, CUdeviceptr p1, unsigned n)
{
    void *parameters[] = {&p0, &p1, &n};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {cluster, 1, 1}};
    CUlaunchConfig config = {grid, 1, 1, threads, 1, 1, 0, NULL, &attribute, 1};
    CUresult r = cuLaunchKernelEx(&config, f, parameters, NULL);
    return r != CUDA_SUCCESS ? r : cuCtxSynchronize();
}

/* p0: 64 KiB of zeros. */
static inline void check_rule(const char *header, const char *directives, const char *prologue, const rule *r,
                              const char *name)
{
    CUcontext context;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    CUfunction f = rule_kernel(header, directives, prologue, r);
    CUdeviceptr p0 = device_bytes(65536, NULL);
    cuMemsetD32_v2(p0, 0, 16384);
    unsigned blocks = r->blocks ? r->blocks : 2;
    capture_stderr();
    CUresult result = launch_clusters(f, blocks, blocks, r->threads ? r->threads : 32, p0, p0, 0);
    captured_stderr();
    if (!r->words && (result != CUDA_SUCCESS || printed[0]))
        fail_msg("kept: %s: %d\n%s", name, (int)result, printed);
    if (r->words && (result == CUDA_SUCCESS || !strstr(printed, r->words) || reports_in(printed) != 1))
        fail_msg("%s: %d, expected once\n  %s\nin\n%s", name, (int)result, r->words, printed);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

/* A rule without a name keeps what the one before it breaks. */
static inline void check_rules(const char *header, const char *directives, const char *prologue,
                               const rule *rules, size_t count)
{
    const char *name = "";
    for (size_t n = 0; n < count; n++) {
        name = rules[n].name[0] ? rules[n].name : name;
        check_rule(header, directives, prologue, &rules[n], name);
    }
}

/* Skips the test where there is no ptxas. */
static inline void check_ptxas(const char *header, const char *directives, const char *prologue,
                               const rule *rules, size_t count)
{
    char path[] = "/tmp/rulesXXXXXX", log[] = "/tmp/rulesXXXXXX", name[32];
    if (run_ptxas("--version", "/dev/null") != 0)
        skip();
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    close(mkstemp(log));
    fprintf(file, "%s\n.address_size 64\n", header);
    for (size_t n = 0; n < count; n++) {
        snprintf(name, sizeof name, "rule%zu", n);
        fputs(rule_entry(name, directives, prologue, &rules[n]), file);
    }
    fclose(file);
    if (run_ptxas(path, log) != 0)
        fail_msg("%s refused: see %s", path, log);
    unlink(path);
    unlink(log);
}

#endif
