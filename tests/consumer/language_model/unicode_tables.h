/* Letters (general category L) and numbers (N), in ascending order. unicode_tables.c names Unicode's version. */
#ifndef UNICODE_TABLES_H
#define UNICODE_TABLES_H

#include <stddef.h>
#include <stdint.h>

typedef struct unicode_range {
    uint32_t first, last; /* both within */
} unicode_range;

extern const unicode_range unicode_letters[], unicode_numbers[];
extern const size_t unicode_count_of_letters, unicode_count_of_numbers;

#endif
