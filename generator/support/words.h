/* Lists of words in one string, separated by single spaces. */
#ifndef SUPPORT_WORDS_H
#define SUPPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Keywords of C and C++, which generated names must avoid. */
extern const char c_keywords[];

/* Whether a name is taken by other headers of the generated C or C++: the macros and types of <stdint.h> and
 * <stddef.h>, kiln's headers and cuda.h, and macros that gcc and clang define in their GNU modes. */
bool c_headers_take(const char *name);

/* The C library's headers, without ".h". */
extern const char c_headers[];

bool words_contain(const char *words, const char *word);
int words_find(const char *words, const char *word); /* the word's index; -1: not there */
bool words_are_single_spaced(const char *words);

/* The next word's start, with its length; null at the end. Begin with *cursor = words. */
const char *words_next(const char **cursor, size_t *length);

/* Decimal digits without a leading zero, at most UINT32_MAX. */
bool word_is_number(const char *word);
bool words_have_number(const char *words);

#endif
