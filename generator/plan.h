/* What a configuration asks for: the seam between reading it (config.c, variants.c) and baking it (bundle/). */
#ifndef GENERATOR_PLAN_H
#define GENERATOR_PLAN_H

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

/* kiln_variant of family.h: one family with a value for each parameter. */
struct kiln_variant {
    const kiln_family *family;
    param_value values[KILN_MAX_PARAMS]; /* in the order of family->params */
    const char *id;                      /* "family/param=value,..." */
    uint64_t key;                        /* XXH3, 64 bit, of id */
    const char *entry;                   /* the .entry name, a PTX and C identifier: family_value_value... */
    place at;                            /* of the kernels: item that asked for it */
    uint32_t runs_on;                    /* bit i: the variant is emitted for targets[i] of the plan */
    target emitting_for;                 /* while emit runs */
};

/* The most bytes that the images of a family, or of the whole bundle, may have together. */
typedef struct budget {
    const kiln_family *family; /* null: the bundle */
    uint64_t max_bytes;
    place at;
} budget;

typedef struct plan {
    const char *bundle; /* prefix of everything generated */
    const char *config_path;
    target *targets; /* ascending, no duplicates */
    size_t target_count;
    kiln_variant **variants; /* configuration order */
    size_t variant_count;
    budget *budgets;
    size_t budget_count;
    bool has_cubins; /* beside PTX */
    place images_at;
} plan;

#endif
