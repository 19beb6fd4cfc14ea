/* Turns kernels of external PTX, and what a configuration adds to them, into a family and its variants. */
#ifndef EXTERNAL_EXTERNAL_H
#define EXTERNAL_EXTERNAL_H

#include "family/family.h"
#include "ptx_file.h"

/* One file of PTX, or several that have the same kernels for different targets. */
struct external_module {
    ptx_file **files; /* by target, ascending; one per target */
    size_t file_count;
    const char *license; /* SPDX expression; null: none is given */
};

/* The module of emitted kernels, without files. */
extern const external_module external_none;

/* A text of the configuration; null: none. */
typedef struct external_text {
    const char *text;
    place at;
} external_text;

typedef struct external_arg {
    external_text name;
    external_text about; /* "in f32[n]", "u32" */
} external_arg;

/* Expressions over arguments and the variant's values; block and maximum over the values only. */
typedef struct external_launch {
    external_text grid[3];  /* none: the caller gives it */
    external_text block[3]; /* none: the PTX or the caller gives it */
    place block_at;
    external_text shared_bytes; /* none: the caller gives it, if the kernel takes any */
    external_text max_shared_bytes;
} external_launch;

typedef struct external_variant {
    const external_module *module;
    const ptx_file_entry *entry;
    place at;
    external_text *values; /* in the order of the request's params */
    external_text when;    /* condition that a call must meet; none: every call does */
    external_launch launch;
} external_variant;

enum { EXTERNAL_VARIANTS_MOST = 64, EXTERNAL_POINTERS_MOST = 32 /* bits of kiln_check_pointers */ };

/* The configuration of a kernel and its variants, which differ in their values. */
typedef struct external_request {
    place at;
    external_text name;
    external_arg *args;
    size_t arg_count, arg_capacity;
    bool has_args;
    bool has_descriptions; /* a mapping; arguments without a description are as the PTX declares them */
    place args_at;
    external_text *rules; /* conditions that hold at every launch, over arguments and values */
    size_t rule_count, rule_capacity;
    external_text params[KILN_MAX_PARAMS]; /* the names of the values */
    size_t param_count;
    external_variant *variants; /* in the order in which dispatch tries them */
    size_t variant_count, variant_capacity;
} external_request;

/* Checks that every file of a module has the same entries, with equal parameters and directives. */
bool external_check_module(arena *a, const external_module *m, place at, diagnostics *d);

bool external_check_targets(arena *a, const external_module *const *modules, size_t module_count,
                            const target *targets, size_t target_count, place at, diagnostics *d);

/* A difference between the parameters of two entries; null: none that callers see. */
const char *external_param_difference(arena *a, const ptx_file_entry *x, const ptx_file_entry *y);

/* Makes the family, of another name than `families` have, and its variants, beside those of the request. Its first arguments
 * are the kernel's parameters, the others launch geometry that the caller gives. Null after a diagnostic. */
variant *external_make(arena *a, const external_request *q, family_list families, const target *targets,
                       size_t target_count, diagnostics *d);

/* The SPDX expression of its files: NOASSERTION if not given. */
const char *external_license(const external_module *m);

/* The file that a target runs; null: none. */
const ptx_file *external_file_for(const external_module *m, target t);

#endif
