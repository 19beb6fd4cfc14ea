/* A variant: a family's parameters with their values, and its derived properties. */
#ifndef FAMILY_VARIANT_H
#define FAMILY_VARIANT_H

#include <kiln/author/family.h>

#include "support/arena.h"
#include "support/diagnostics.h"
#include "target/target.h"

/* A parameter's value: a word (also "true" and "false") or, for KILN_PARAM_INT, a number; text is its canonical form. */
typedef struct param_value {
    const char *text;
    uint32_t number;
} param_value;

typedef struct external_module external_module; /* external/external.h */

/* Who makes the kernel. */
typedef enum variant_kind {
    VARIANT_EMITTED, /* its family's emit */
    VARIANT_EXTERNAL /* a PTX file that the user gives */
} variant_kind;

/* blocks per multiprocessor of images for targets from this one on. */
typedef struct blocks_step {
    uint32_t from_sm, blocks;
} blocks_step;

/* One family with a value for each parameter. */
typedef struct variant {
    variant_kind kind;
    const kiln_family *family;
    const struct variant *const
        *alike; /* not null: stands for these variants, null-terminated, and has no values */
    param_value values[KILN_MAX_PARAMS]; /* in the order of family->params */
    const char *id;            /* "family/param=value,...", without later parameters at their default */
    uint64_t key;              /* XXH3, 64 bit, of id */
    const char *entry;         /* a PTX and C identifier: family_value_value... */
    const char *symbol;        /* name of the .entry in its images; same as `entry` except for external PTX */
    place at;                  /* of the kernels: item that requested it */
    kiln_shape shape;          /* for all listed targets together */
    const blocks_step *blocks; /* blocks per multiprocessor, by the lowest target of each step; ascending */
    size_t blocks_count;
    uint32_t runs_on;              /* bit i: the variant is emitted for the plan's targets[i] */
    const external_module *module; /* for emitted kernels the module without files */
    size_t launch_args; /* how many of the family's last arguments are launch geometry, not parameters */
    const char *given_block[3];   /* expressions, if the caller gives the block; the shape then has 0 */
    const char *why_not_launched; /* why a tool that has only the manifest cannot launch it; null: it can */
} variant;

/* The variant and the target for which a family's shape or emit is called. */
struct kiln_variant {
    const variant *variant;
    target target;
    target_range *alike; /* narrowed by its queries of the target; may be null */
};

/* Gives a variant with values its id, key and entry.
 *
 * The entry is the family and its values joined by '_'; a boolean is its parameter's name, with "no" before it if
 * false: attention_f16_128_nocausal. */
void variant_name(arena *a, variant *v);

#endif
