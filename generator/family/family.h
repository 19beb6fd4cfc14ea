/* Families and their parameters: by name, legal values, canonical forms. */
#ifndef FAMILY_FAMILY_H
#define FAMILY_FAMILY_H

#include "variant.h"

/* What a generator has, in the order in which `kiln families` prints it; null at its end. */
typedef const kiln_family *const *family_list;

/* Null when there is none. */
const kiln_family *family_find(family_list families, const char *name);

/* All names, separated by single spaces. */
const char *family_names(arena *a, family_list families);

size_t family_param_count(const kiln_family *family);
bool family_find_param(const kiln_family *family, const char *name, size_t *index);

/* The same in the list of numbers that its shape gives. */
bool family_find_number(const kiln_family *family, const char *name, size_t *index);
const char *family_param_names(arena *a, const kiln_family *family);

bool param_has_value(const kiln_param *param, const char *value);

/* The canonical form of a legal value. */
param_value param_value_of(arena *a, const kiln_param *param, const char *value);

/* The position of a legal value in the family's order: its word's, or the number. */
size_t param_value_place(const kiln_param *param, const param_value *value);

/* Its legal values for people: "f32 f64", "16..256 in steps of 8", "true false". */
const char *param_values_text(arena *a, const kiln_param *param);

/* The line of a summary that headers print; and all of it, in one line. */
const char *summary_line(arena *a, const char *summary);
const char *summary_text(arena *a, const char *summary);

/* An argument's type "$name" or "$name:word:other" in its parts. */
typedef struct arg_type_choice {
    size_t name_length; /* of the parameter, whose name begins at type + 1 */
    const char *word;   /* not ended by a NUL; null: the type is the parameter's value, whatever that is */
    size_t word_length;
    const char *other;
} arg_type_choice;

arg_type_choice family_arg_type_choice(const kiln_arg *arg);
/* The type where the parameter has a value. */
const char *arg_type_for(arg_type_choice choice, const char *value);

/* What the values of a call are written over: its arguments, and the integer contract parameters as u32. */
const kiln_family *family_call_scope(arena *a, const kiln_family *family, const kiln_call *call);

/* The value that a call gives to an argument of the family; null where it gives none. */
const char *call_value(const kiln_call *call, const char *arg);

/* Of a pointer: the bytes that the family asks for in every variant, whatever its elements are. */
uint32_t arg_alignment(const kiln_arg *arg);

/* The same per variant, an expression over parameters; null: it does not depend on them. */
const char *arg_variant_alignment(const kiln_family *family, const kiln_arg *arg);

/* What an alignment has to be: a power of two up to what every allocation is a multiple of. */
enum { MOST_ALIGNMENT = 256 };
bool is_alignment(uint64_t bytes);

/* "value", "in", "out", "inout", "optional_in", "optional_out" or "scratch". */
const char *arg_direction(kiln_arg_kind kind);

bool arg_may_be_null(const kiln_arg *arg);

/* The largest number of an integer's type; 32 bits of either sign count as they lie in memory. */
uint64_t arg_largest(const kiln_arg *arg);

/* The bytes of the word of the family's groups that the argument's name begins with; 0: it is in none. */
size_t arg_group_length(const kiln_family *family, const kiln_arg *arg);

/* Dynamic shared memory of a launch, an expression: the family's for a call, or the shape's. */
const char *family_shared_bytes(const kiln_family *family);

/* Null when there is none. */
const kiln_arg *arg_find(const kiln_arg *args, const char *name);

/* Whether a name means something else in expressions, in configurations or in C's headers and kiln's. */
bool family_reserves(const char *name);

/* Checks a family: legal names, defaults and types; every expression parses and uses only what its place allows. A
 * mistake is a family_error that names family and text. */
void family_validate(const kiln_family *family);

/* Checks all, and that their names differ. */
void families_validate(family_list families);

#endif
