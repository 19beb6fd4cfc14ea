/* What a configuration asks for: the seam between reading it (config.c, variants.c) and baking it (bundle/). */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <kiln/family.h>

#include "support/arena.h"
#include "support/diagnostics.h"

/* A PTX target: sm_90 is {90, BASE}, sm_90a {90, ARCH}, sm_100f {100, FAMILY}. targets.c knows the legal ones. */
typedef enum target_kind { TARGET_BASE, TARGET_ARCH, TARGET_FAMILY } target_kind;
typedef struct target {
    uint16_t sm;
    target_kind kind;
} target;

/* A parameter's value: a word (also "true" and "false") or, for KILN_PARAM_INT, a number; text is its canonical form. */
typedef struct param_value {
    const char *text;
    uint32_t number;
} param_value;

typedef struct ptx_file ptx_file; /* ptx_file.h */

/* What a ptx: item embeds: one file, or several that have the same kernels for different targets. */
typedef struct external_module {
    const ptx_file **files; /* by their targets, ascending; no two for one */
    size_t file_count;
} external_module;

/* A kernel of such a module. Its family is made for it alone, without parameters and with the kernel's own as the first
 * arguments; those behind them are launch geometry that the caller gives. */
typedef struct external_kernel {
    const external_module *module;
    const char *symbol; /* the .entry */
    size_t param_count;
    const char
        *block[3]; /* over arguments, when the caller gives the block, and the shape has 0; else null */
    kiln_shape shape;
    const char *why_not_launched; /* by a tool that knows no more than the manifest; null: it can be */
} external_kernel;

/* Targets of which kiln_has_sm said the same: those from `from` to below `below`. */
typedef struct target_range {
    uint32_t from, below;
} target_range;

/* Of the images for targets from this one on. */
typedef struct blocks_step {
    uint32_t from_sm, blocks;
} blocks_step;

/* kiln_variant of family.h: one family with a value for each parameter. */
struct kiln_variant {
    const kiln_family *family;
    param_value values[KILN_MAX_PARAMS]; /* in the order of family->params */
    const char *id;                      /* "family/param=value,..." */
    uint64_t key;                        /* XXH3, 64 bit, of id */
    const char *entry;                   /* a PTX and C identifier: family_value_value... */
    place at;                            /* of the kernels: item that asked for it */
    kiln_shape shape;                    /* for all targets of the plan together */
    const struct blocks_step *blocks; /* blocks per multiprocessor of images, from a target on: ascending */
    size_t blocks_count;
    uint32_t runs_on;                /* bit i: the variant is emitted for targets[i] of the plan */
    target emitting_for;             /* while shape and emit run */
    struct target_range *alike;      /* then narrowed by what they ask of it; may be null */
    const external_kernel *external; /* null: the family's emit makes it */
};

enum { SHARDS_MOST = 99 };

/* The most bytes that the images of a family, or of the whole bundle, may have together. */
typedef struct budget {
    const kiln_family *family; /* null: the bundle */
    uint64_t max_bytes;
    place at;
} budget;

typedef struct plan {
    const char *bundle; /* prefix of everything generated */
    const char *config_path;
    const char **inputs; /* the files that were read, the configuration first */
    size_t input_count, input_capacity;
    const char *target_option; /* what --targets said in place of the configuration; null: nothing */
    uint32_t jobs;             /* threads that bake; 0: one per processor */
    uint32_t shards;           /* files that the kernels are spread over; 0: all are in NAME.c */
    target *targets;           /* ascending, no duplicates */
    size_t target_count;
    kiln_variant **variants; /* configuration order */
    size_t variant_count;
    budget *budgets;
    size_t budget_count;
    bool has_cubins; /* beside PTX */
    place images_at;
} plan;

#endif
