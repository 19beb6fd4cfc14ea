/* A CUDA driver that wraps another one and makes one call fail. At exit it prints leaks to stderr.
 *
 *     LM_DRIVER     the wrapped driver
 *     LM_FAIL_CALL  which call fails, from 1 on
 *     LM_FAIL_CODE  with which CUresult [999, an unknown error]
 *     LM_LIST       lists the calls
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum {
    MOST_ARGUMENTS = 11
}; /* as many as cuLaunchKernel has; all are integers or pointers, so passing too many is harmless */

static long number(const char *name, long without)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : without;
}

/* Pairs of calls that acquire and release. */
static struct held {
    const char *taken, *given;
    int count;
} holds[] = {
    {"cuMemAlloc_v2", "cuMemFree_v2", 0},
    {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", 0},
    {"cuModuleLoadDataEx", "cuModuleUnload", 0},
    {"cuStreamCreate", "cuStreamDestroy_v2", 0},
    {"cuStreamEndCapture", "cuGraphDestroy", 0},
    {"cuGraphInstantiateWithFlags", "cuGraphExecDestroy", 0},
};
enum { HOLDS = sizeof holds / sizeof holds[0] };

static long calls;

typedef int entry_point(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, uint64_t);

static entry_point *real(const char *symbol)
{
    static void *library;
    entry_point *found = NULL;
    if (!library)
        library = dlopen(getenv("LM_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&found = dlsym(library, symbol);
    if (!found)
        abort();
    return found;
}

static int forward(const char *symbol, const uint64_t a[MOST_ARGUMENTS])
{
    const int fails = ++calls == number("LM_FAIL_CALL", 0);
    if (getenv("LM_LIST"))
        fprintf(stderr, "call %ld %s\n", calls, symbol);
    const int result = fails
                           ? (int)number("LM_FAIL_CODE", 999)
                           : real(symbol)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    for (int i = 0; i < HOLDS; i++) {
        if (result == 0 && strcmp(symbol, holds[i].taken) == 0)
            holds[i].count++;
        if (strcmp(symbol, holds[i].given) == 0) /* released, even if the call fails */
            holds[i].count--;
    }
    return result;
}

#define SHIM(member, symbol, parameters)                                                                     \
    int shim_##member(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,        \
                      uint64_t, uint64_t, uint64_t) __asm__(symbol);                                         \
    int shim_##member(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,    \
                      uint64_t h, uint64_t i, uint64_t j, uint64_t k)                                        \
    {                                                                                                        \
        return forward(symbol, (const uint64_t[]){a, b, c, d, e, f, g, h, i, j, k});                         \
    }
KILN_DRIVER_FUNCTIONS(SHIM)
GRAPH_FUNCTIONS(SHIM)

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "driver: %ld calls", calls);
    for (int i = 0; i < HOLDS; i++)
        if (holds[i].count)
            fprintf(stderr, ", left: %d of %s", holds[i].count, holds[i].taken);
    fputc('\n', stderr);
}
