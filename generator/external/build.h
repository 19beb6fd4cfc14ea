/* State while a family of external PTX is built: external.c has names and arguments, values.c the variants' values,
 * launch.c the launch. */
#ifndef EXTERNAL_BUILD_H
#define EXTERNAL_BUILD_H

#include "external.h"

enum {
    EXTERNAL_LAUNCH_ARGS = 7 /* grid, block, shared_bytes */,
    EXTERNAL_LAUNCH_RULES = 6 /* 3 of the grid, 3 of the block */
};

typedef struct external_build {
    arena *arena;
    const external_request *q;
    const ptx_file_entry *entry; /* the first variant's entry, for properties that all share */
    diagnostics *d;
    const char *name;
    kiln_family *family;
    kiln_arg *args;
    size_t arg_count, param_count; /* number of arguments, and of those that are the kernel's parameters */
    kiln_rule *rules;
    size_t rule_count;
    kiln_alignment *alignments;
    size_t alignment_count;
    variant *variants; /* parallel to the request's variants */
    text why_not_launched;
} external_build;

/* ---- build.c */

/* Whether C and expressions allow a name for an argument, a parameter or a function. */
bool external_is_free_name(const char *name);

/* Whether an expression contains the name as a whole word: grid_x is not in "my_grid_x". */
bool external_has_name(const char *source, const char *name);

kiln_arg *external_add_arg(external_build *m, const char *name, const char *type, const char *summary);
void external_add_rule(external_build *m, const char *condition, const char *words);

/* Records why a tool cannot launch it; the first reason stays. */
void external_cannot_launch(external_build *m, const char *why);

/* ---- values.c */

/* Sets the family's parameters, and each variant's value of each. */
void external_take_values(external_build *m);

/* One expression over the parameters that gives each variant its text; the text itself if all are equal. */
const char *external_by_variant(external_build *m, const char *const *texts);

/* "block != 64 || stages != 3 || ": the prefix of a rule for this variant only. */
const char *external_unless(external_build *m, size_t i);

/* ", with block=64": the variant's values that an expression uses, for diagnostics; empty: it uses none. */
const char *external_with(external_build *m, size_t i, const char *source);

/* Whether a configuration's text is a constant for a variant; also false if it is missing or wrong. */
bool external_is_number(const external_build *m, size_t i, const char *source, uint64_t *number);

/* ---- launch.c: each adds the arguments that the caller gives, behind the kernel's own. */

void external_take_grid(external_build *m);
void external_take_block(external_build *m);
void external_take_shared(external_build *m);

#endif
