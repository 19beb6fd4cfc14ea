/* The expressions of family descriptors (kiln/author/family.h has the language): parse, evaluate, print. */
#ifndef EXPRESSION_EXPRESSION_H
#define EXPRESSION_EXPRESSION_H

#include <kiln/author/family.h>

#include "family/variant.h"
#include "support/arena.h"

typedef struct expression expression;

/* Numbers, which the family's shape gives, depend on parameters alone: what uses one uses parameters. */
typedef enum name_kind { NAME_PARAM, NAME_ARG, NAME_DEVICE, NAME_WORD, NAME_SHAPE, NAME_NUMBER } name_kind;

/* Parses text in the scope of a family. Never null: a mistake is a family_error that names family and text. */
const expression *expression_parse(arena *a, const kiln_family *family, const char *text);

/* The same for a list, "m, ceil_div(k, 2)": gives the count of expressions and the array of them. */
size_t expression_parse_list(arena *a, const kiln_family *family, const char *text,
                             const expression *const **list);

/* Of an expression or a list of them that a user wrote, over arguments, the variant's parameters and facts of the device: what
 * is wrong with it, or null. A divisor that is no number, once the parameters are put in, is wrong too. */
const char *expression_try(arena *a, const variant *v, const char *text, bool is_list);

/* Which kinds of names it uses. */
bool expression_uses(const expression *e, name_kind kind);

/* Whether it uses the family's parameter of this index. */
bool expression_uses_param(const expression *e, size_t index);

/* Whether it is made so that it never falls where an argument grows. */
bool expression_only_grows(const expression *e);

/* Whether a bound condition holds for every call for which another of the family does, as far as their form shows it: the same
 * condition, a weaker limit on the same number, a multiple of a divisor, or conditions joined by && of such. */
bool expression_follows(const expression *e, const expression *from);

/* Whether it counts with the argument of this index: within negative(), aligned() and given() nothing is counted with. */
bool expression_counts_with(const expression *e, size_t index);

/* The same of all arguments at once: sets those of the family's arguments that it counts with. */
void expression_note_counted(const expression *e, bool *args);

/* Its value for a variant; it must use parameters and facts of its shape only. */
uint64_t expression_value(const expression *e, const variant *v);

/* The value of a bound expression for one call: `number` gives those of arguments and device facts. Floats and signed integers
 * are taken for at least 0 and finite. */
typedef uint64_t number_of_name(void *context, name_kind kind, const char *name, size_t index);
uint64_t expression_value_of_call(const expression *e, number_of_name *number, void *context);

/* What a call lacks for a bound condition that does not hold for it, with a verb between spaces or one space for it: "k a multiple
 * of 32", "m must be at most 8 or k must be at least 64". Null where its form does not show that. */
const char *expression_demand(arena *a, const expression *e, const char *verb, number_of_name *number,
                              void *context);

/* With the variant's parameters and shape put in and constants folded. v null: nothing is put in. If v stands for several variants
 * (alike), the parameters and comparisons with words on which all agree are put in, and no shape. */
const expression *expression_bind(arena *a, const expression *e, const variant *v);
bool expression_is_constant(const expression *e, uint64_t *value);

/* An upper bound of a bound expression, given one for each argument by index in `most_of_args`; and those
 * bounds, from each argument's type and the rules that limit it by a number. */
double expression_most(const expression *e, const double *most_of_args);
void expression_most_of_args(arena *a, const variant *v, double *most);

/* Sets the entries of the arguments that the expression names, by index. */
void expression_mark_args(const expression *e, bool *is_used);

/* "n != 0": when a pointer's array has elements in a call, by its shape, so that the pointer must not be null. What the
 * family's `empty` says is taken to be tested before. Bind it: a shape may ask for parameters. */
const expression *expression_has_elements(arena *a, const kiln_family *family, const kiln_arg *arg);

/* As C: an argument is printed as prefix and its name ("a->n"), a device fact as device and its name
 * ("loader->device." gives "loader->device.sm"). All names must be arguments or device facts: bind first. The value is
 * a uint64_t whatever integers the arguments are, or for a condition an int 0 or 1 (cast it where a number is wanted).
 * There are no outer parentheses. May call expression_functions, which the including file defines. */
void expression_print_c(text *out, const expression *e, const char *prefix, const char *device);

/* The same in double, which does not wrap around: rounded, and no less than the expression. It subtracts as
 * the expression does, so the subtrahend must be a number. */
void expression_print_c_double(text *out, const expression *e, const char *prefix, const char *device);

/* TYPE NAME(TYPE a, TYPE b), and its return value; a null name ends the list. */
typedef struct expression_function {
    const char *type, *name, *value;
} expression_function;

extern const expression_function expression_functions[];

/* As text in the language itself, with the least parentheses. */
void expression_print(text *out, const expression *e);

#endif
