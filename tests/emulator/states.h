/* Shared by the tests of the driver's states: checks that print the state and the results, a process per state, and a context
   with a kernel and memory. */
#ifndef STATES_H
#define STATES_H

#include "emu_test.h"

#include <pthread.h>
#include <sys/wait.h>

enum { HANG_SECONDS = 120 }; /* far more than any state takes */

static const char *state_name = "";
static int wrong;

static inline const char *name_of(CUresult result)
{
    const char *name = "no result";
    cuGetErrorName(result, &name);
    return name;
}

static inline void check(const char *file, int line, const char *call, CUresult result, CUresult expected)
{
    if (result == expected)
        return;
    fprintf(stderr, "%s:%d: %s: %s: expected %s (%d), found %s (%d)\n", file, line, state_name, call,
            name_of(expected), (int)expected, name_of(result), (int)result);
    wrong = 1;
}

#define GIVES(expected, call) check(__FILE__, __LINE__, #call, call, expected)
#define OK(call)              GIVES(CUDA_SUCCESS, call)
#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s: expected %s\n", __FILE__, __LINE__, state_name, #condition);         \
            wrong = 1;                                                                                       \
        }                                                                                                    \
    } while (0)

/* ---- contexts, kernels and memory --------------------------------------------------------------------------------- */

#define ADDRESS ".reg .u64 %p; .reg .u32 %r<3>; ld.param.u64 %p, [p0]; ld.param.u32 %r0, [n];\n"
static const char *const store = ADDRESS "st.global.u32 [%p], %r0; ret;";

static CUcontext context;
static CUfunction kernel;
static CUmodule module;
static CUdeviceptr memory;
static void *pinned;

static inline CUfunction function_of(const char *body)
{
    CUfunction f = NULL;
    OK(load_body(NULL, body, &module));
    OK(cuModuleGetFunction(&f, module, "k"));
    return f;
}

static inline void use_context(CUcontext c)
{
    context = c;
    OK(cuCtxSetCurrent(c));
    kernel = function_of(store);
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuMemHostAlloc(&pinned, 64, 0));
}

static inline void begin(void)
{
    CUcontext c = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    use_context(c);
}

static inline CUresult launch_on(CUstream stream, CUfunction f)
{
    unsigned n = 7;
    void *parameters[] = {&memory, &memory, &n};
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static inline bool works(void)
{
    uint32_t value = 0;
    return launch_on(NULL, kernel) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS &&
           cuMemcpyDtoH_v2(&value, memory, 4) == CUDA_SUCCESS && value == 7;
}

static inline CUresult allocate(void)
{
    CUdeviceptr p;
    return cuMemAlloc_v2(&p, 4);
}

static inline CUresult load_module(void)
{
    CUmodule other;
    return load_body(NULL, "ret;", &other);
}

/* Waits for a child, which has already reported its failures. */
static inline void await(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s: %s\n", state_name,
                WTERMSIG(status) == SIGALRM ? "the process hangs" : strsignal(WTERMSIG(status)));
    wrong |= status != 0;
}

static inline pid_t fork_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        alarm(HANG_SECONDS);
    return child;
}

static inline void in_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    HOLDS(pthread_create(&thread, NULL, function, argument) == 0 && pthread_join(thread, NULL) == 0);
}

typedef struct test_state {
    const char *name;
    void (*run)(void);
} test_state;

/* Runs each state, or only the named one, in its own process. */
static inline int run_states(const test_state *states, size_t count, int argc, char **argv)
{
    int failed = 0;
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], states[i].name) != 0)
            continue;
        state_name = states[i].name;
        wrong = 0;
        pid_t child = fork_child();
        if (child == 0) {
            states[i].run();
            exit(wrong);
        }
        await(child);
        failed += wrong;
    }
    printf("%d states are wrong\n", failed);
    return failed != 0;
}

#endif
