/* The numbers of parameter words in argument structs. A bundle's callers compile them in, so each is written down: a
 * new word, or another order, changes no existing number. */
#include "word_number.h"

#include <stdlib.h>
#include <string.h>

#include "support/words.h"

/* Words with one meaning in all families. Rows are added, never changed. */
static const struct {
    const char *word;
    uint32_t number;
} common[] = {
    {"f16", 1}, {"bf16", 2}, {"f32", 3}, {"f64", 4}, /* types */
    {"low", 1}, {"high", 2},                         /* nibbles */
    {"any", 1},                                      /* among numbers */
};

static bool is_itself(const char *word)
{
    return word_is_number(word) && strtoul(word, NULL, 10) - 1 < BESIDE_NUMBERS - 1;
}

static uint32_t common_number(const char *word)
{
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(common[i].word, word) == 0)
            return common[i].number;
    return 0;
}

/* The n-th number of a list, from 0; 0 if the list is shorter. */
static uint32_t nth_number(const char *numbers, size_t n)
{
    const char *number = "";
    size_t length;
    for (size_t i = 0; number && i <= n; i++)
        number = words_next(&numbers, &length);
    return number ? (uint32_t)strtoul(number, NULL, 10) : 0;
}

/* Counts words with their own number before `end`, or all if it is null. */
static size_t count_own(arena *a, const kiln_param *param, const char *end)
{
    const char *words = param->words;
    size_t count = 0, length;
    for (const char *w; (w = words_next(&words, &length));) {
        const char *word = arena_string(a, w, length);
        if (end && strcmp(word, end) == 0)
            break;
        count += !is_itself(word) && common_number(word) == 0;
    }
    return count;
}

size_t words_of_own_number(arena *a, const kiln_param *param)
{
    return count_own(a, param, NULL);
}

uint32_t word_number(arena *a, const kiln_param *param, const char *word)
{
    if (is_itself(word))
        return (uint32_t)strtoul(word, NULL, 10);
    uint32_t number = common_number(word);
    if (number == 0 && param->numbers)
        number = nth_number(param->numbers, count_own(a, param, word));
    return number == 0 ? 0 : (words_have_number(param->words) ? BESIDE_NUMBERS : 0) + number;
}
