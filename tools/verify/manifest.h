/* What a bundle's manifest (NAME.json) says, as plain structs: everything that verification knows about a kernel. */
#ifndef VERIFY_MANIFEST_H
#define VERIFY_MANIFEST_H

#include <kiln/kiln.h>

#include "../support/files.h"
#include "formula.h"
#include "number.h"

enum { MAX_DIMENSIONS = 8 };

typedef enum manifest_direction {
    DIRECTION_VALUE, /* a scalar */
    DIRECTION_IN,    /* device pointers */
    DIRECTION_OUT,
    DIRECTION_INOUT,
    DIRECTION_OPTIONAL_IN, /* these two may be null */
    DIRECTION_OPTIONAL_OUT,
    DIRECTION_SCRATCH /* neither read before it is written nor looked at afterwards */
} manifest_direction;

typedef struct manifest_arg {
    const char *name;
    manifest_direction direction;
    bool is_constant; /* preceding launches do not write it */
    element_type
        type; /* of the scalar, or of what the pointer points at; ELEMENT_NONE: unknown to this program */
    const char *type_name;
    formula *shape[MAX_DIMENSIONS]; /* elements per dimension, outermost first */
    size_t dimension_count;         /* 0: no shape is stated */
    uint64_t alignment;             /* bytes that an address must be a multiple of; at least 1 */
    uint64_t offset;                /* where it lies in the family's argument struct */
    element_type struct_type;       /* how a scalar is kept there */
} manifest_arg;

/* A parameter of a variant. */
typedef struct manifest_param {
    const char *name;
    const char *value; /* "f16", "64", "true" */
    const char *words; /* all that it can have: "16 32 64"; null: a bool, or a range of numbers */
    bool is_contract;  /* the caller of the family's function names it ... */
    uint64_t offset;   /* ... in a 32-bit field here ... */
    uint32_t selector; /* ... with this value */
} manifest_param;

typedef struct manifest_rule {
    formula *condition;
    const char *text;
} manifest_rule;

typedef struct manifest_image {
    const char *target;
    uint64_t bytes;
    uint64_t hash_high, hash_low; /* XXH3, 128 bit */
    bool is_compressed;           /* in the bundle; bytes and hash are of the text */
} manifest_image;

/* Its own bytes are of no interest here. */
typedef struct manifest_cubin {
    const char *target; /* "sm_90a" */
    const char *ptx;    /* the hash of the PTX that it was made of: HASH_DIGITS */
} manifest_cubin;

/* A stride of arrays without gaps. */
typedef struct manifest_stride {
    const char *arg;
    formula *value; /* over sizes and parameters */
    formula *when;  /* over parameters; null: always */
} manifest_stride;

typedef struct manifest_variant {
    const char *id;
    uint64_t key;
    const char *family, *entry;
    const char *module;           /* of external PTX, under whose name its images stand; else null */
    const char *why_not_launched; /* nothing says how: no arguments, geometry or rules are known; else null */
    const char *family_function;  /* the C function that dispatches */
    manifest_param *params;
    size_t param_count;
    manifest_arg *args; /* in the kernel's order */
    size_t arg_count;
    manifest_stride *strides; /* the first of an argument whose condition holds counts */
    size_t stride_count;
    uint64_t struct_bytes; /* of the family's argument struct */
    uint32_t block[3];
    formula *grid[3];
    formula *shared_bytes;
    uint64_t max_shared_bytes; /* the most that it can be */
    uint64_t static_shared_bytes;
    manifest_rule *rules;
    size_t rule_count;
    formula *empty;                                 /* null: never empty */
    formula *bytes_read, *bytes_written, *elements; /* null: not stated */
    manifest_image *images;
    size_t image_count;
    manifest_cubin *cubins;
    kiln_image *cubin_images; /* the same, for kiln_select */
    size_t cubin_count;
} manifest_variant;

/* The values of a contract parameter that a shape is for. */
typedef struct manifest_contract {
    const char *param;
    const char **values;
    size_t value_count;
} manifest_contract;

typedef struct manifest_size {
    const char *name;
    uint64_t number;
    formula *formula; /* over sizes and parameters; null: the number */
    bool is_usual;    /* the shape does not name it: the family's usual value */
} manifest_size;

/* Calls that the configuration chose variants for. */
typedef struct manifest_shape {
    const char *family;
    manifest_contract *contract;
    size_t contract_count;
    manifest_size *sizes;
    size_t size_count;
} manifest_shape;

typedef struct manifest {
    const char *bundle, *generator;
    const char *ptxas;          /* the version that made cubins; null: there are none */
    char hash[HASH_DIGITS + 1]; /* of the text */
    manifest_variant *variants;
    size_t variant_count;
    manifest_shape *shapes;
    size_t shape_count;
} manifest;

/* Null, and a message that says where, when the text is no manifest. Everything lives in the pool. */
const manifest *manifest_read(pool *p, const char *text, size_t length, char *error, size_t error_bytes);

/* Null when there is none of this name. */
const manifest_variant *manifest_find_variant(const manifest *m, const char *id);
const manifest_arg *manifest_find_arg(const manifest_variant *v, const char *name);
const char *manifest_param_value(const manifest_variant *v, const char *name);

/* Whether the shape is for calls of the variant. */
bool manifest_is_for(const manifest_shape *shape, const manifest_variant *v);

/* For qsort and bsearch of pointers to variants: by id. */
int manifest_compare_ids(const void *left, const void *right);

bool manifest_is_pointer(const manifest_arg *a);
bool manifest_is_integer(const manifest_arg *a); /* a scalar */
bool manifest_is_input(const manifest_arg *a);
bool manifest_is_output(const manifest_arg *a);

#endif
