/* The numbers that stand for words of parameters in argument structs. */
#ifndef FAMILY_WORD_NUMBER_H
#define FAMILY_WORD_NUMBER_H

#include <kiln/author/family.h>

#include "support/arena.h"

/* A word of digits stands for itself, "64" for 64. Others are numbered from 1; beside words of digits from behind
 * BESIDE_NUMBERS, where no caller's number is. */
enum { BESIDE_NUMBERS = 0x7fff0000 };

/* 0: neither the table of common words nor param->numbers has one for it. */
uint32_t word_number(arena *a, const kiln_param *param, const char *word);

/* How many of a parameter's words take theirs from param->numbers. */
size_t words_of_own_number(arena *a, const kiln_param *param);

#endif
