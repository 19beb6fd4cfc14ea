/* Prints the cost of choosing a variant in nanoseconds: a family's call minus the variant's own call, neither of which launches.
 * The minimum of many rounds. Any time passes, because machines and their load differ. The aims are for a release build on an
 * idle machine.
 *
 *     dispatch_timings DRIVER [CALLS]
 */
#include <time.h>

#include "../calls.h"

#include "dispatch.h"
#include "kiln_default.h"

enum { ROUNDS = 30, SHAPES = 64, MOST = 64 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* excludes other processes' time */
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Returns the least time of a call, over `calls` calls of run(i). */
static double least(void (*run)(unsigned), unsigned calls)
{
    double ns = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now();
        for (unsigned i = 0; i < calls; i++)
            run(i % SHAPES);
        const double each = (now() - begin) / calls;
        ns = each < ns ? each : ns;
    }
    return ns;
}

/* Times a bundle's nf4_gemm in f16, at shapes of all sizes, half of them with a workspace. */
#define SUBJECT(bundle, BUNDLE)                                                                              \
    static bundle##_nf4_gemm_args bundle##_shapes[SHAPES];                                                   \
    static const kiln_kernel *bundle##_picked[SHAPES];                                                       \
    static void bundle##_call(unsigned i)                                                                    \
    {                                                                                                        \
        need(bundle##_nf4_gemm(&loader, KILN_NO_LAUNCH, &bundle##_shapes[i]) == KILN_OK, "a family's call"); \
    }                                                                                                        \
    static void bundle##_launch(unsigned i)                                                                  \
    {                                                                                                        \
        need(bundle##_picked[i]->launch(&loader, KILN_NO_LAUNCH, &bundle##_shapes[i]) == KILN_OK,            \
             "a variant's");                                                                                 \
    }                                                                                                        \
    static void bundle##_time(const char *driver_path, unsigned calls, unsigned aim)                         \
    {                                                                                                        \
        kiln_candidate list[MOST];                                                                           \
        size_t count = 0;                                                                                    \
        open_device(driver_path, &bundle##_bundle);                                                          \
        for (unsigned i = 0; i < SHAPES; i++) {                                                              \
            bundle##_shapes[i] = (bundle##_nf4_gemm_args){.in = 256,                                         \
                                                          .packed = 256,                                     \
                                                          .scale = 256,                                      \
                                                          .out = 256,                                        \
                                                          .workspace = 256,                                  \
                                                          .tile_counters = 256,                              \
                                                          .m = 1u << i % 8,                                  \
                                                          .n = 512 * (1 + i % 13),                           \
                                                          .k = 1024 * (1 + i % 7),                           \
                                                          .workspace_size = i % 2 ? UINT64_MAX >> 8 : 0,     \
                                                          .a = BUNDLE##_NF4_GEMM_A_F16};                     \
            need(bundle##_nf4_gemm_pick(&loader, &bundle##_shapes[i], &bundle##_picked[i]) == KILN_OK,       \
                 "pick");                                                                                    \
        }                                                                                                    \
        need(bundle##_nf4_gemm_candidates(&loader, bundle##_shapes, list, MOST, &count) == KILN_OK,          \
             "candidates");                                                                                  \
        const double family = least(bundle##_call, calls), variant = least(bundle##_launch, calls);          \
        printf("a choice among %2u: %6.1f ns   (aim: %u)\n", (unsigned)count, family - variant, aim);        \
        need(kiln_close(&loader) == KILN_OK, "kiln_close");                                                  \
    }
SUBJECT(kiln_default, KILN_DEFAULT)
SUBJECT(dispatch, DISPATCH)

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    is_dry = true;
    const unsigned calls = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100000;
    kiln_default_time(argv[1], calls, 60);
    dispatch_time(argv[1], calls, 400);
    return 0;
}
