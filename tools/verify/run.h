/* Verifies one variant: all sizes, all inputs, and what must be refused. */
#ifndef VERIFY_RUN_H
#define VERIFY_RUN_H

#include "device.h"
#include "families/families.h"
#include "manifest.h"
#include "sizes.h"

typedef enum run_verdict {
    RUN_OK,       /* compared with the reference, all right; `detail` may name sizes that were not tried */
    RUN_EXECUTED, /* no reference: executed under all checks, not compared */
    RUN_SKIPPED,  /* this device cannot run it, or it has no size that was asked for: `detail` says why */
    RUN_WRONG     /* `detail` says what */
} run_verdict;

/* The values of an integer argument that were tried; below 0 as int64_t, where its type has a sign. */
typedef struct value_range {
    uint64_t least, most;
} value_range;

typedef struct run_result {
    bool has_run;
    run_verdict verdict;
    uint64_t cases, launches, refusals; /* sizes times inputs, all launches for them, refused calls */
    uint64_t elements;                  /* compared with the reference */
    double worst_ratio; /* largest error as a share of its bound, to six digits; infinite where that is 0 */
    bool has_bounds;    /* some element was compared with a bound that is not 0 */
    uint64_t largest_elements;    /* of all buffers of the largest size that ran; 0: none */
    char largest[SIZES_BYTES];    /* that size, "m=65 k=4096" */
    uint64_t sizes;               /* that launched and were right */
    value_range ranges[MAX_ARGS]; /* over those sizes, by argument; of integers only */
    uint64_t limits[MAX_ARGS];    /* the largest number with which the rules compare the argument; 0: none */
    uint64_t excluded_pairs;      /* see size_plan */
    char excluded[EXCLUDED_BYTES];
    double seconds;
    char detail[4096];
} run_result;

enum { MOST_INPUTS = 64 };

typedef struct run_options {
    uint64_t seed;
    size_limits limits;
    uint64_t inputs;   /* at each size, in turn; at most MOST_INPUTS, which is all of them */
    bool may_add;      /* more, where there are fewer sizes than inputs, so that each is tried */
    const char *input; /* only the one of this name; null: any */
    const manifest
        *shipped; /* the cubins that ship in place of the PTX that runs; null: what runs is what ships */
} run_options;

/* False: the context is lost. `progress` is called before each case; may be null. */
bool run_variant(device *d, const manifest *m, const manifest_variant *v, const kiln_kernel *kernel,
                 const run_options *options, void (*progress)(const char *variant, uint64_t cases),
                 run_result *result);

/* Makes another context. False: the device is lost, and the result says so. */
bool run_recover(device *d, run_result *result);

/* The cost of all that run_variant runs, by the manifest's expressions at its sizes; 0: nothing runs. It is the same on every
 * machine, for devices that are alike. */
uint64_t run_weigh(device *d, const manifest *m, const manifest_variant *v, const kiln_kernel *kernel,
                   const run_options *options);

/* refuse.c: null and misaligned pointers, broken rules, too large a grid: each the right status, and no launch. Returns
 * the number of calls that were refused as they should be; `detail` is left alone, or says what was wrong. The problem
 * must be one that launches. */
uint64_t run_refusals(device *d, problem *p, const kiln_kernel *kernel, char *detail, size_t detail_bytes);

#endif
