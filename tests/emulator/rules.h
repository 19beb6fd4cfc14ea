/* Tests of rules: kernels that break one, each with its only report, and kernels that keep it and have none. ptxas, where it
   is, takes them all. */
#ifndef RULES_H
#define RULES_H

#include "emu_test.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static inline unsigned reports_in(const char *text)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, "kiln emulator: ")) != NULL; at++)
        count++;
    return count;
}

/* Returns ptxas' exit status; its output goes to the log. */
static inline int run_ptxas(const char *argument, const char *log)
{
    char *const arguments[] = {"ptxas", "-O0", "-arch=sm_90a", "-o", "/dev/null", (char *)(uintptr_t)argument,
                               NULL};
    posix_spawn_file_actions_t to;
    pid_t process;
    int status = -1;
    posix_spawn_file_actions_init(&to);
    posix_spawn_file_actions_addopen(&to, 1, log, O_WRONLY | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&to, 1, 2);
    if (posix_spawnp(&process, arguments[0], &to, NULL, arguments, environ) == 0)
        waitpid(process, &status, 0);
    posix_spawn_file_actions_destroy(&to);
    return status;
}

typedef struct rule {
    const char *name, *body;
    const char *words; /* of the only report; NULL: there is none */
    unsigned threads;  /* of a block; 0: RULE_THREADS */
    unsigned blocks;   /* of the only cluster; 0: RULE_BLOCKS */
} rule;

enum { RULE_BYTES = 16384 };
#ifndef RULE_THREADS
#define RULE_THREADS 32
#define RULE_BLOCKS  2
#endif

/* Fails unless a launch that printed `printed` gave the only report, with these words, or none if they are NULL. */
static inline void expect_report(const char *name, const char *words, CUresult result)
{
    if (!words && (result != CUDA_SUCCESS || printed[0]))
        fail_msg("kept: %s: %d\n%s", name, (int)result, printed);
    if (words && (result == CUDA_SUCCESS || !strstr(printed, words) || reports_in(printed) != 1))
        fail_msg("%s: %d, expected once\n  %s\nin\n%s", name, (int)result, words, printed);
}

/* A text for ptxas. */
typedef struct ptxas_text {
    FILE *file;
    char path[20], log[20];
} ptxas_text;

/* Skips the test where there is no ptxas. */
static inline ptxas_text begin_ptxas(const char *header)
{
    ptxas_text t = {.path = "/tmp/rulesXXXXXX", .log = "/tmp/rulesXXXXXX"};
    if (run_ptxas("--version", "/dev/null") != 0)
        skip();
    t.file = fdopen(mkstemp(t.path), "w");
    assert_non_null(t.file);
    close(mkstemp(t.log));
    fputs(header, t.file);
    return t;
}

/* Fails unless ptxas accepts the text. */
static inline void end_ptxas(const ptxas_text *t)
{
    fclose(t->file);
    if (run_ptxas(t->path, t->log) != 0)
        fail_msg("%s refused: see %s", t->path, t->log);
    unlink(t->path);
    unlink(t->log);
}

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
    unsigned blocks = r->blocks ? r->blocks : RULE_BLOCKS;
    capture_stderr();
    CUresult result = launch_clusters(f, blocks, blocks, r->threads ? r->threads : RULE_THREADS, p0, p0, 0);
    captured_stderr();
    expect_report(name, r->words, result);
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
    char name[32];
    ptxas_text t = begin_ptxas(header);
    fputs("\n.address_size 64\n", t.file);
    for (size_t n = 0; n < count; n++) {
        snprintf(name, sizeof name, "rule%zu", n);
        fputs(rule_entry(name, directives, prologue, &rules[n]), t.file);
    }
    end_ptxas(&t);
}

#endif
