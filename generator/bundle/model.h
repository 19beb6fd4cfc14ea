/* The bundle for its writers: every name, number and text is decided. */
#ifndef BUNDLE_MODEL_H
#define BUNDLE_MODEL_H

#include "expression/expression.h"
#include "images.h"

typedef struct bundle_family bundle_family;

/* A pointer with requirements at launch: the row of a table in C. */
typedef struct pointer_check {
    const struct bundle_field *field;
    uint32_t alignment;            /* bytes; 1: any */
    const expression *is_required; /* condition under which it must not be null; null: never */
} pointer_check;

typedef struct pointer_table {
    const char *name; /* of the kiln_pointers */
    pointer_check *rows;
    size_t count;
} pointer_table;

/* A check for arrays of 2^63 bytes or more: extents.h. */
typedef struct extent_check {
    const char *large; /* arguments joined by |: below 2^bits all arrays are small enough */
    unsigned bits;
    const char *exact; /* statements that check each array */
} extent_check;

typedef struct bundle_variant {
    const variant *variant;
    const bundle_family *family;
    const char *function; /* NAME_entry, the public typed function */
    image *images;        /* in the bundle */
    size_t image_count;
    const image *ptx; /* the images, or the PTX that they are compiled from */
    size_t ptx_count;
    const struct bundle_variant
        *owner; /* the first variant of its module, which has the images; mostly the variant itself */
    uint32_t min_driver; /* this driver loads every PTX image; without PTX, every cubin */
    uint32_t block[3];
    uint32_t max_shared_bytes, min_shared_bytes; /* dynamic */
    uint32_t static_shared_bytes;
    bool is_dependent; /* there are images for sm_90 or newer and all of them wait: KILN_KERNEL_DEPENDENT */
    ptx_costs costs;   /* of the newest PTX image */
    uint32_t slot;
    pointer_table
        pointers; /* its requirements beyond the family's; `name` may be shared with another variant */
    uint32_t extent_check; /* number of the family's check, from 1; 0: no array can be too large */
    uint32_t sizes;        /* number of the family's text, from 1; 0: the kernel takes no integers */
} bundle_variant;

/* One field of a family's argument struct, in the struct's order: the kernel's arguments, then the contract parameters.
 * */
typedef struct bundle_field {
    const char *name;
    const char *member;  /* its name in C: "n", or in a group "window.left" */
    size_t group_length; /* length of the group's name; 0: no group */
    const char *c_type;
    uint32_t elements;              /* of an array; 0: not an array */
    uint32_t alignment;             /* bytes */
    uint32_t offset;                /* bytes, from C's layout rules on a 64-bit machine */
    const kiln_arg *arg;            /* null: a parameter */
    bool is_read;                   /* by some variant of the bundle; always for parameters */
    bool is_ignored;                /* not read, but may be set: part of a workspace */
    const expression *has_elements; /* condition under which a pointer must not be null; unbound */
    const kiln_param *param;        /* null: an argument */
    size_t param_index;
    const char *when_zero; /* the value that 0 means; null for none, an argument or a bool */
} bundle_field;

struct bundle_family {
    const kiln_family *family;
    const char *function;    /* NAME_family; the only variant's function if there are no parameters */
    const char *args_struct; /* NAME_family_args */
    const char *enum_prefix; /* NAME_FAMILY_ */
    bundle_field *fields;
    size_t field_count;
    uint32_t args_bytes;
    bundle_variant **variants;
    size_t variant_count;
    const variant *common;   /* the values on which all of them agree, for expression_bind */
    pointer_table *pointers; /* requirements of every variant; then those of variants, without duplicates */
    size_t pointer_table_count;
    extent_check *extent_checks;
    size_t extent_check_count;
    const char **sizes; /* sizes.h */
    size_t size_count;
    const kiln_workspace *workspace; /* null: there is no NAME_family_workspace */
    bool has_strides;                /* NAME_family_set_contiguous sets strides that variants read */
    uint32_t shard;                  /* index of its file among plan->shards, from 0 */
    bundle_family *
        calls; /* calls that some variant can serve, as families with the call's arguments: each with `call` and no calls */
    size_t call_count;
    const kiln_call *call; /* null: not a call */
};

typedef struct bundle_model {
    const char *name, *upper_name;
    const char *command; /* makes the bundle; names the configuration file without its folder */
    const plan *plan;
    const char *ptxas;     /* version that made the cubins; null: no cubins */
    uint32_t cubin_driver; /* the oldest that loads the cubins */
    spool *spool;
    bundle_variant *variants; /* configuration order; one slot each */
    size_t variant_count, module_count;
    bundle_family *families; /* in the order in which the configuration first names them */
    size_t family_count;
    uint32_t *table; /* kiln_index.table */
    uint32_t table_mask;
    uint32_t slot_count;
    uint64_t scratch_bytes; /* that a loader needs to expand the largest image; 0: uncompressed */
    uint32_t min_driver; /* the oldest that loads the runtime and each image; cubins count only without PTX */
} bundle_model;

/* Bakes the plan's variants, into the spool. Null after a diagnostic: a cubin could not be made, or a name is taken. */
const bundle_model *model_build(arena *a, const plan *p, spool *s, diagnostics *d);

/* A family's expression with a variant's parameters substituted; v null: unchanged. */
const expression *bind_text(arena *a, const kiln_family *family, const char *expression_text,
                            const variant *v);

/* The distinct values of a parameter among a family's variants, in order of appearance. */
size_t family_values(arena *a, const bundle_family *f, size_t param_index, const char ***values);

bool family_has_value(const bundle_family *f, size_t param_index, const char *value);

/* Whether a call can break the rule: a bundle that ignores an argument does not check its rules. */
bool family_asks_rule(arena *a, const bundle_family *f, const kiln_rule *rule);

/* Whether every variant takes a workspace. */
bool needs_workspace(const bundle_family *f);

/* Whether the call gives a variant every array that it requires. */
bool call_can_serve(const variant *v, const kiln_call *call);

#endif
