/* Lists of words in one string, separated by single spaces. */
#ifndef SUPPORT_WORDS_H
#define SUPPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Words that C or C++ keeps for itself, so that nothing generated can be called so. */
extern const char c_keywords[];

/* The C library's headers, without ".h". */
extern const char c_headers[];

bool words_contain(const char *words, const char *word);

/* The next word's start, with its length; null at the end. Begin with *cursor = words. */
const char *words_next(const char **cursor, size_t *length);

/* Decimal digits without a leading zero, at most UINT32_MAX. */
bool word_is_number(const char *word);
bool words_have_number(const char *words);

#endif
