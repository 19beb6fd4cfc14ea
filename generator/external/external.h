/* Turns an .entry of external PTX, and what a configuration adds to it, into a family and its only variant. */
#ifndef EXTERNAL_EXTERNAL_H
#define EXTERNAL_EXTERNAL_H

#include "family/family.h"
#include "ptx_file.h"

/* What a ptx: item embeds: one file, or several that have the same kernels for different targets. */
typedef struct external_module {
    ptx_file **files; /* by their targets, ascending; no two for one */
    size_t file_count;
    const char *license; /* SPDX expression; null: nothing is said */
} external_module;

/* A kernel of such a module. Its family is made for it alone, without parameters and with the kernel's own as the first
 * arguments; those behind them are launch geometry that the caller gives. */
struct external_kernel {
    const external_module *module;
    size_t param_count;
    const char
        *block[3]; /* over arguments, when the caller gives the block, and the shape has 0; else null */
    kiln_shape shape;
    const char *why_not_launched; /* by a tool that knows no more than the manifest; null: it can be */
};

/* A text of the configuration; null: none. */
typedef struct external_text {
    const char *text;
    place at;
} external_text;

typedef struct external_arg {
    external_text name;
    external_text about; /* "in f32[n]", "u32" */
} external_arg;

/* What the configuration says about one entry. */
typedef struct external_request {
    const ptx_file_entry *entry;
    const external_module *module;
    place at;
    external_text name;
    external_arg *args;
    size_t arg_count, arg_capacity;
    bool has_args;
    bool has_descriptions; /* a mapping, in which an argument with nothing said is as the PTX has it */
    place args_at;
    external_text grid[3]; /* over arguments; none: the caller gives it */
    uint32_t block[3];     /* threads; 0: what the PTX or the caller says */
    place block_at;
    external_text shared_bytes; /* over arguments; none: the caller gives it, where the kernel takes any */
    uint32_t max_shared_bytes;  /* 0: none was said */
    place max_shared_at;
    external_text *rules; /* conditions over arguments that hold at every launch */
    size_t rule_count, rule_capacity;
} external_request;

/* Every file of a module has its entries, with the same parameters and directives; and each target is served. */
bool external_check_module(arena *a, const external_module *m, const target *targets, size_t target_count,
                           place at, diagnostics *d);

/* Makes the family, of another name than `families` have, and its variant for so many targets. Null after a diagnostic. */
variant *external_make(arena *a, const external_request *q, family_list families, size_t target_count,
                       diagnostics *d);

/* The SPDX expression of its files: NOASSERTION where nothing is said. */
const char *external_license(const external_module *m);

/* The file whose text a target takes; null: none. */
const ptx_file *external_file_for(const external_module *m, target t);

#endif
