/* See wgmma.h. */
#include "wgmma.h"

#include <stdlib.h>
#include <string.h>

/* The products of one warp. */
typedef struct emu_products {
    emu_product *all; /* in flight, in order of issue */
    size_t count, room;
    uint32_t groups, issued;
} emu_products;

static emu_products *products_of(emu_warp *w)
{
    emu_block *b = w->block;
    if (!b->products)
        b->products = emu_alloc(b->warp_count * sizeof *b->products);
    return &b->products[w->id];
}

void emu_products_free(emu_block *b)
{
    for (unsigned n = 0; b->products && n < b->warp_count; n++)
        free(b->products[n].all);
    free(b->products);
    b->products = NULL;
}

void emu_product_issue(emu_warp *w, emu_product *product)
{
    emu_products *p = products_of(w);
    if (p->count == p->room) {
        p->room = 2 * p->room + 16;
        p->all = realloc(p->all, p->room * sizeof *p->all);
        if (!p->all)
            abort();
    }
    product->group = p->groups;
    product->number = ++p->issued;
    p->all[p->count++] = *product;
}

void emu_product_commit(emu_warp *w)
{
    products_of(w)->groups++;
}

const emu_product *emu_product_oldest(const emu_warp *w)
{
    const emu_products *p = w->block->products ? &w->block->products[w->id] : NULL;
    return p && p->count ? &p->all[0] : NULL;
}

bool emu_product_is_due(const emu_warp *w, const emu_product *product, uint32_t pending)
{
    uint32_t groups = w->block->products[w->id].groups;
    return groups > pending && product->group < groups - pending;
}

void emu_product_retire(emu_warp *w)
{
    emu_products *p = products_of(w);
    memmove(p->all, p->all + 1, --p->count * sizeof *p->all);
}
