/* The expressions of a manifest (kiln/author/family.h has the language): parse and evaluate.
 *
 * Written from the language's description and sharing nothing with the generator, so that a mistake in how an expression
 * became C shows up as a disagreement here.
 */
#ifndef VERIFY_FORMULA_H
#define VERIFY_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../support/pool.h"

typedef struct formula formula;

/* A name's value: a number, a word to be compared with words, or a float, of which negative() and finite() tell. */
typedef struct formula_value {
    uint64_t number;
    const char *word; /* null: a number */
    size_t word_length;
    bool is_float;
    double real;
    bool is_null; /* a pointer that is left out, of which given() tells */
} formula_value;

/* Finds the value of name[0..length). False: the name stands for itself, as a word. */
typedef bool formula_lookup(const void *context, const char *name, size_t length, formula_value *value);

/* Null, and a message, when the text is not of the language. The text is copied. */
formula *formula_parse(pool *p, const char *text, char *error, size_t error_bytes);

/* False, and a message: a word where a number is needed, division by zero, a result below 0 or beyond 64 bits. */
bool formula_evaluate(const formula *f, formula_lookup *lookup, const void *context, uint64_t *result,
                      char *error, size_t error_bytes);

/* Whether it mentions a name. */
bool formula_mentions(const formula *f, const char *name);

/* Whether it asks for the alignment of a pointer. */
bool formula_aligns(const formula *f, const char *name);

/* Calls `note` with each number that the name is compared with or divided by for a remainder: 64 and 4 for n in
 * "n <= 64 && n % 4 == 0". The other names have their present values. */
void formula_note_bounds(const formula *f, const char *name, formula_lookup *lookup, const void *context,
                         void (*note)(void *to, uint64_t bound), void *to);

const char *formula_text(const formula *f);

#endif
