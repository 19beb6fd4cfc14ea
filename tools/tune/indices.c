/* Fills arrays of indices at full size. Indices repeated from a smaller problem would point to a small part of the
 * memory, which stays in the L2 cache, or out of bounds. */
#include "indices.h"

#include <string.h>

/* Element i is i * step modulo bound. Both are expressions over sizes. */
static const struct index_row {
    const char *family, *argument, *step, *bound;
} rows[] = {
    {"attention", "pages_table", "1", "pages_count"},
    {"gguf_rows", "index", "2654435761",
     "tensor_rows"}, /* Knuth's multiplier, 2^32 divided by the golden ratio, so that rows are far apart */
    {"rope", "slots", "1", "pages * page_size"},
};

static uint64_t evaluate(pool *p, const problem *whole, const char *text)
{
    uint64_t value;
    const formula *f = formula_parse(p, text, NULL, 0);
    return f && problem_evaluate(whole, f, &value, NULL, 0) ? value : 0;
}

static void *fill(pool *p, const argument *a, uint64_t step, uint64_t bound)
{
    unsigned char *elements = pool_allocate(p, a->bytes);
    for (uint64_t i = 0; i < a->count; i++)
        element_set_bits(a->about->type, elements, i, i * (step % bound) % bound);
    return elements;
}

void *indices_make(pool *p, const problem *whole, const argument *a)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct index_row *row = &rows[i];
        if (strcmp(row->family, whole->variant->family) != 0 || strcmp(row->argument, a->about->name) != 0)
            continue;
        const uint64_t bound = evaluate(p, whole, row->bound);
        return bound ? fill(p, a, evaluate(p, whole, row->step), bound) : NULL;
    }
    return NULL;
}
