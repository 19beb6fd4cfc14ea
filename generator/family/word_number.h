/* The numbers of parameter words in argument structs. */
#ifndef FAMILY_WORD_NUMBER_H
#define FAMILY_WORD_NUMBER_H

#include <kiln/author/family.h>

#include "support/arena.h"

/* A word of digits has its own value: "64" is 64. Other words are numbered from 1. If the parameter also has words of
 * digits, BESIDE_NUMBERS is added, which keeps them above any number that a caller passes. */
enum { BESIDE_NUMBERS = 0x7fff0000 };

/* Returns 0 if neither the table of common words nor param->numbers has one for it. */
uint32_t word_number(arena *a, const kiln_param *param, const char *word);

/* The number of a parameter's words that take theirs from param->numbers. */
size_t words_of_own_number(arena *a, const kiln_param *param);

#endif
