/* Verifies one variant: all sizes, all inputs, and calls that must be refused. */
#ifndef VERIFY_RUN_H
#define VERIFY_RUN_H

#include "device.h"
#include "families/families.h"
#include "manifest.h"
#include "sizes.h"

typedef enum run_verdict {
    RUN_OK,       /* compared with the reference, all correct; `detail` may name sizes that were not tried */
    RUN_EXECUTED, /* no reference: executed with all checks, not compared */
    RUN_SKIPPED,  /* this device cannot run it, or it has none of the requested sizes: `detail` says why */
    RUN_WRONG     /* `detail` says why */
} run_verdict;

/* The values of an integer argument that were tried; as int64_t if the type is signed. */
typedef struct value_range {
    uint64_t least, most;
} value_range;

typedef struct run_result {
    bool has_run;
    run_verdict verdict;
    uint64_t cases, launches, refusals; /* sizes times inputs; launches for them; calls that were refused */
    uint64_t elements;                  /* compared with the reference */
    double worst_ratio;        /* largest error / bound, to six digits; infinite for an error with bound 0 */
    bool has_bounds;           /* some element was compared with a bound that is not 0 */
    uint64_t largest_elements; /* of all buffers at the largest size that ran; 0: none ran */
    char largest[SIZES_BYTES]; /* that size, "m=65 k=4096" */
    uint64_t sizes;            /* sizes that launched and were correct */
    value_range ranges[MAX_ARGS]; /* over those sizes, by argument; only of integers */
    uint64_t limits[MAX_ARGS];    /* the largest number that the rules compare the argument with; 0: none */
    uint64_t excluded_pairs;      /* see size_plan */
    char excluded[EXCLUDED_BYTES];
    double seconds;
    char detail[4096];
} run_result;

enum { MOST_INPUTS = 64 };

typedef struct run_options {
    uint64_t seed;
    size_limits limits;
    uint64_t inputs;   /* per size, in turn; at most MOST_INPUTS, which is all of them */
    bool may_add;      /* take more if there are fewer sizes than inputs, so that each input is tried */
    const char *input; /* only the input with this name; null: any */
    const manifest
        *shipped; /* the cubins that ship instead of the PTX that runs; null: the same images run and ship */
} run_options;

/* False: the context is lost. `progress` is called before each case; may be null. */
bool run_variant(device *d, const manifest *m, const manifest_variant *v, const kiln_kernel *kernel,
                 const run_options *options, void (*progress)(const char *variant, uint64_t cases),
                 run_result *result);

/* Makes another context. False: the device is lost, and the result says so. */
bool run_recover(device *d, run_result *result);

/* Returns the cost of everything that run_variant runs, by the manifest's expressions at its sizes; 0: nothing
 * runs. It is the same on every machine, for equal devices. */
uint64_t run_weigh(device *d, const manifest *m, const manifest_variant *v, const kiln_kernel *kernel,
                   const run_options *options);

/* refuse.c: tries null and misaligned pointers, broken rules, and too large a grid: each must give the right
 * status and no launch. Returns the number of calls that were refused correctly; sets `detail` if a call was not.
 * The problem must be one that launches. */
uint64_t run_refusals(device *d, problem *p, const kiln_kernel *kernel, char *detail, size_t detail_bytes);

#endif
