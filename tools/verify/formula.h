/* The expressions of a manifest (kiln/author/family.h has the language): parse and evaluate.
 *
 * Written from the language's description. It shares nothing with the generator, so a mistake in translating an
 * expression to C shows up as a disagreement here.
 */
#ifndef VERIFY_FORMULA_H
#define VERIFY_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../support/pool.h"

typedef struct formula formula;

/* A name's value: a number, a word to compare with words, or a float, which negative() and finite() test. */
typedef struct formula_value {
    uint64_t number;
    const char *word; /* null: a number */
    size_t word_length;
    bool is_float;
    double real;
    bool is_null; /* a pointer that is left out; given() tests this */
} formula_value;

/* Finds the value of name[0..length). False: the name is a word. */
typedef bool formula_lookup(const void *context, const char *name, size_t length, formula_value *value);

/* Parses a copy of the text. Null, with a message, if the text is not in the language. */
formula *formula_parse(pool *p, const char *text, char *error, size_t error_bytes);

/* Evaluates the formula. False, with a message, for a word where a number is needed, division by zero, and a
 * result below 0 or beyond 64 bits. */
bool formula_evaluate(const formula *f, formula_lookup *lookup, const void *context, uint64_t *result,
                      char *error, size_t error_bytes);

bool formula_mentions(const formula *f, const char *name);

/* Returns whether the formula tests the alignment of a pointer. */
bool formula_aligns(const formula *f, const char *name);

/* Calls `note` with each number that the name is compared with, and with each divisor of its remainders: 64 and 4
 * for n in "n <= 64 && n % 4 == 0". The other names have their current values. */
void formula_note_bounds(const formula *f, const char *name, formula_lookup *lookup, const void *context,
                         void (*note)(void *to, uint64_t bound), void *to);

const char *formula_text(const formula *f);

#endif
