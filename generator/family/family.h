/* Families and their parameters: by name, legal values, canonical forms. */
#ifndef FAMILY_FAMILY_H
#define FAMILY_FAMILY_H

#include "variant.h"

/* A generator's families, in the order that `kiln families` prints; null at the end. */
typedef const kiln_family *const *family_list;

/* Null if there is none. */
const kiln_family *family_find(family_list families, const char *name);

/* All names, separated by single spaces. */
const char *family_names(arena *a, family_list families);

size_t family_param_count(const kiln_family *family);
bool family_find_param(const kiln_family *family, const char *name, size_t *index);

/* Finds a number in the list that the family's shape sets. */
bool family_find_number(const kiln_family *family, const char *name, size_t *index);
const char *family_param_names(arena *a, const kiln_family *family);

bool param_has_value(const kiln_param *param, const char *value);

/* The canonical form of a legal value. */
param_value param_value_of(arena *a, const kiln_param *param, const char *value);

/* The position of a legal value in the family's order: the word's index, or the number. */
size_t param_value_place(const kiln_param *param, const param_value *value);

/* Its legal values as text: "f32 f64", "16..256 in steps of 8", "true false". */
const char *param_values_text(arena *a, const kiln_param *param);

/* summary_line: the line of a summary that headers print. The other: the whole summary in one line. */
const char *summary_line(arena *a, const char *summary);
const char *summary_text(arena *a, const char *summary);

/* An argument's type "$name" or "$name:word:other", split into its parts. */
typedef struct arg_type_choice {
    size_t name_length; /* of the parameter, whose name begins at type + 1 */
    const char *word;   /* not NUL-terminated; null: the type is the parameter's value */
    size_t word_length;
    const char *other;
} arg_type_choice;

arg_type_choice family_arg_type_choice(const kiln_arg *arg);
/* The type if the parameter has this value. */
const char *arg_type_for(arg_type_choice choice, const char *value);

/* The scope of a call's values: its arguments, and the integer contract parameters as u32. */
const kiln_family *family_call_scope(arena *a, const kiln_family *family, const kiln_call *call);

/* The value that a call or an example gives to an argument of the family; null if none. */
const char *given_value(const kiln_value *values, const char *arg);

/* The alignment in bytes that the family requires of a pointer in every variant, whatever its elements are. */
uint32_t arg_alignment(const kiln_arg *arg);

/* The alignment per variant, an expression over parameters; null if it does not depend on them. */
const char *arg_variant_alignment(const kiln_family *family, const kiln_arg *arg);

/* Largest legal alignment: cuMemAlloc guarantees it. All alignments are powers of two. */
enum { MOST_ALIGNMENT = 256 };
bool is_alignment(uint64_t bytes);

/* "value", "in", "out", "inout", "optional_in", "optional_out" or "scratch". */
const char *arg_direction(kiln_arg_kind kind);

bool arg_may_be_null(const kiln_arg *arg);

/* The largest number of an integer's type; signed 32-bit integers count as unsigned. */
uint64_t arg_largest(const kiln_arg *arg);

/* The length of the argument's group prefix; 0: it is in no group. */
size_t arg_group_length(const kiln_family *family, const kiln_arg *arg);

/* Dynamic shared memory of a launch, an expression: the family's for a call, or the shape's. */
const char *family_shared_bytes(const kiln_family *family);

/* The number of thread blocks of a launch, as an expression. */
const char *family_blocks(arena *a, const kiln_family *family);

/* The bytes that the work reads and writes, an expression; null: not declared. */
const char *family_bytes(arena *a, const kiln_family *family);

/* Returns whether the argument is the workspace or its counters; false for a null workspace. */
bool workspace_has(const kiln_workspace *w, const kiln_arg *arg);

/* Null if there is none. */
const kiln_arg *arg_find(const kiln_arg *args, const char *name);

/* Whether a name has another meaning in expressions, in configurations or in C's headers and kiln's. */
bool family_reserves(const char *name);

/* Checks a family: legal names, defaults and types; every expression parses and uses only what its context allows. A
 * mistake is a family_error that names family and text. */
void family_validate(const kiln_family *family);

/* Checks all families, and that their names differ. */
void families_validate(family_list families);

#endif
