/* Divides a run into parts. */
#include "part.h"

#include <stdlib.h>

#include "../support/pool.h"

typedef struct weighed {
    uint64_t weight;
    size_t place;
} weighed;

static int compare_weights(const void *left, const void *right)
{
    const weighed *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    return a->place < b->place ? -1 : 1;
}

static size_t find_least(const uint64_t *loads, size_t count)
{
    size_t least = 0;
    for (size_t i = 1; i < count; i++)
        if (loads[i] < loads[least])
            least = i;
    return least;
}

void part_choose(part_share share, const uint64_t *weights, size_t count, bool *in_part)
{
    pool memory = {NULL};
    const size_t parts = share.of < count ? (size_t)share.of : count; /* further parts stay empty */
    uint64_t *loads = pool_allocate(&memory, (parts + 1) * sizeof *loads);
    weighed *list = pool_allocate(&memory, (count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (weighed){weights[i] ? weights[i] : 1, i};
    qsort(list, count, sizeof *list, compare_weights);
    for (size_t i = 0; i < count; i++) {
        const size_t part = find_least(loads, parts);
        loads[part] += list[i].weight;
        in_part[list[i].place] = part + 1 == share.number;
    }
    pool_free(&memory);
}
