/* The expressions of family descriptors (kiln/author/family.h has the language): parse, evaluate, print. */
#ifndef EXPRESSION_EXPRESSION_H
#define EXPRESSION_EXPRESSION_H

#include <kiln/author/family.h>

#include "family/variant.h"
#include "support/arena.h"

typedef struct expression expression;

/* Numbers, set by the family's shape, depend only on parameters: an expression that uses a number uses parameters. */
typedef enum name_kind { NAME_PARAM, NAME_ARG, NAME_DEVICE, NAME_WORD, NAME_SHAPE, NAME_NUMBER } name_kind;

/* Parses text in the scope of a family. Never null: a mistake is a family_error that names family and text. */
const expression *expression_parse(arena *a, const kiln_family *family, const char *text);

/* Parses a list, "m, ceil_div(k, 2)": returns the count and sets the array. */
size_t expression_parse_list(arena *a, const kiln_family *family, const char *text,
                             const expression *const **list);

/* Checks an expression or list that a user wrote, over arguments, the variant's parameters and device properties.
 * Returns the error, or null. A divisor that is not a literal, after parameters are substituted, is an error too. */
const char *expression_try(arena *a, const variant *v, const char *text, bool is_list);

/* Whether it uses names of a kind. */
bool expression_uses(const expression *e, name_kind kind);

/* Whether it uses the family's parameter of this index. */
bool expression_uses_param(const expression *e, size_t index);

/* Whether its form shows that it is monotonic in the arguments. */
bool expression_only_grows(const expression *e);

/* Whether the form shows that a bound condition follows from another of the family: the same condition, a weaker limit
 * on the same number, a multiple of a divisor, or conditions joined by && of such. */
bool expression_follows(const expression *e, const expression *from);

/* Whether it calculates with the argument of this index: negative(), aligned() and given() do not calculate with
 * theirs. */
bool expression_counts_with(const expression *e, size_t index);

/* Sets the entries of all arguments that it calculates with. */
void expression_note_counted(const expression *e, bool *args);

/* Its value for a variant; it must use only parameters and properties of the variant's shape. */
uint64_t expression_value(const expression *e, const variant *v);

/* The value of a bound expression for one call: `number` gives arguments and device properties. Floats are assumed to be
 * finite. A float counts only by its sign: -1, 0 or 1, as a signed 64-bit integer. */
typedef uint64_t number_of_name(void *context, name_kind kind, const char *name, size_t index);
uint64_t expression_value_of_call(const expression *e, number_of_name *number, void *context);
/* The same, but a product or a sum above 2^64 - 1 is a mistake. The other wraps, as generated code does. */
uint64_t expression_exact_value_of_call(const expression *e, number_of_name *number, void *context);

/* Describes what a call lacks to meet a bound condition that it breaks, with a verb between spaces or one space in its
 * place: "k a multiple of 32", "m must be at most 8 or k must be at least 64". Null if the form does not show it. */
const char *expression_demand(arena *a, const expression *e, const char *verb, number_of_name *number,
                              void *context);

/* Substitutes the variant's parameters and shape and folds constants. v null: substitutes nothing. If v stands for
 * several variants (alike), substitutes the parameters and comparisons with words on which all agree, and no shape. */
const expression *expression_bind(arena *a, const expression *e, const variant *v);
bool expression_is_constant(const expression *e, uint64_t *value);

/* expression_most: the largest value of a bound expression, from the largest value of each argument, by index. The
 * other sets these values, from each argument's type and the rules that limit it by a number. */
double expression_most(const expression *e, const double *most_of_args);
void expression_most_of_args(arena *a, const variant *v, double *most);

/* Sets is_used[i] for each argument i in the expression. */
void expression_mark_args(const expression *e, bool *is_used);

/* "n != 0": the condition that a pointer's array has elements, from its shape, so that the pointer must not be null.
 * Assumes that the family's `empty` was tested before. Bind the result: a shape may use parameters. */
const expression *expression_has_elements(arena *a, const kiln_family *family, const kiln_arg *arg);

/* Prints C: an argument as prefix and its name ("a->n"), a device property as device and its name ("loader->device."
 * gives "loader->device.sm"). All names must be arguments or device properties: bind first. The value is a uint64_t
 * whatever integers the arguments are, or for a condition an int 0 or 1 (cast it to get a number). No outer
 * parentheses. May call expression_functions, which the including file defines. */
void expression_print_c(text *out, const expression *e, const char *prefix, const char *device);

/* Prints C in double, which does not wrap around: rounded, and at least the exact value. The subtrahend must be a
 * literal. */
void expression_print_c_double(text *out, const expression *e, const char *prefix, const char *device);

/* TYPE NAME(TYPE a, TYPE b), and its return value; a null name ends the list. */
typedef struct expression_function {
    const char *type, *name, *value;
} expression_function;

extern const expression_function expression_functions[];

/* Prints the expression language itself, with minimal parentheses. */
void expression_print(text *out, const expression *e);

#endif
