/* The expressions of family descriptors (kiln/family.h has the language): parse, evaluate, print. */
#ifndef GENERATOR_EXPRESSION_H
#define GENERATOR_EXPRESSION_H

#include <kiln/family.h>

#include "support/arena.h"

typedef struct expression expression;

typedef enum name_kind { NAME_PARAM, NAME_ARG, NAME_DEVICE, NAME_WORD } name_kind;

/* Parses text in the scope of a family. Never null: a mistake is an internal error that names family and text. */
const expression *expression_parse(arena *a, const kiln_family *family, const char *text);

/* Which kinds of names it uses. */
bool expression_uses(const expression *e, name_kind kind);

/* Its value for a variant; it must use parameters only. */
uint64_t expression_value(const expression *e, const kiln_variant *v);

/* With the variant's parameters put in and constants folded. v null: nothing is put in. */
const expression *expression_bind(arena *a, const expression *e, const kiln_variant *v);
bool expression_is_constant(const expression *e, uint64_t *value);

/* As C: an argument is printed as prefix and its name ("a->n"), a device fact as device and its name
 * ("loader->device.sm"). All names must be arguments or device facts: bind first. */
void expression_print_c(text *out, const expression *e, const char *prefix, const char *device);

/* As text in the language itself, with the least parentheses. */
void expression_print(text *out, const expression *e);

#endif
