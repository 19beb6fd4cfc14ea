/* See wgmma.h. */
#include "wgmma.h"

#include <stdlib.h>
#include <string.h>

typedef struct emu_products {
    emu_product *all; /* in flight, in order of issue */
    size_t count, room;
    uint32_t groups, issued; /* committed groups, issued products */
    uint32_t fences;         /* executed */
    uint32_t read;           /* number of the newest product that a warp of the warpgroup has waited for */
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
    p->all = emu_with_room(p->all, p->count, &p->room, sizeof *p->all);
    product->group = p->groups;
    product->number = ++p->issued;
    p->all[p->count++] = *product;
}

const emu_product *emu_product_oldest(const emu_warp *w)
{
    const emu_products *p = w->block->products ? &w->block->products[w->id] : NULL;
    return p && p->count ? &p->all[0] : NULL;
}

bool emu_product_is_committed(const emu_warp *w, const emu_product *product)
{
    return product->group < w->block->products[w->id].groups;
}

/* The first warp of the warpgroup. */
static emu_warp *group_of(emu_warp *w)
{
    return w - w->id % EMU_WARPGROUP_WARPS;
}

/* Returns how many groups a wait covers that leaves the last `pending`. */
static uint32_t covered(emu_warp *w, uint32_t pending)
{
    uint32_t groups = products_of(w)->groups;
    return groups > pending ? groups - pending : 0;
}

static bool is_ready(emu_warp *w, uint32_t groups)
{
    emu_warp *all = group_of(w);
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++)
        if (all[n].alive && products_of(&all[n])->groups < groups)
            return false;
    return true;
}

/* Marks the operands of the warp's products in these groups as read. */
static void finish_reads(emu_warp *w, uint32_t groups)
{
    emu_products *p = products_of(w);
    for (size_t n = 0; n < p->count && p->all[n].group < groups; n++)
        if (p->all[n].number > p->read) {
            p->read = p->all[n].number;
            EMU_TELL(w->audience, product_read, w, &p->all[n]);
        }
}

static void finish_wait(emu_warp *w, uint32_t groups)
{
    emu_products *p = products_of(w);
    size_t done = 0;
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++)
        finish_reads(&group_of(w)[n], groups);
    for (; done < p->count && p->all[done].group < groups; done++)
        EMU_TELL(w->audience, product_done, w, &p->all[done]);
    if (!done)
        return;
    p->count -= done;
    memmove(p->all, p->all + done, p->count * sizeof *p->all);
    w->block->stores += done;
}

void emu_product_wait(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    uint32_t groups = covered(w, (uint32_t)op->imm);
    if (is_ready(w, groups))
        finish_wait(w, groups);
    else
        emu_wait_at(w, op, (emu_fragment){.mask = lanes, .wait = EMU_WAIT_WARPGROUP});
}

static bool is_waiting(const emu_warp *w, emu_wait wait)
{
    return w->parked == 1 && w->fragments[0].wait == wait;
}

/* Resumes waiting warps of the warpgroup if all four warps have committed the groups. */
static void serve(emu_warp *any)
{
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++) {
        emu_warp *w = &group_of(any)[n];
        if (!is_waiting(w, EMU_WAIT_WARPGROUP))
            continue;
        uint32_t groups = covered(w, (uint32_t)w->fragments[0].pc->imm);
        if (is_ready(w, groups)) {
            finish_wait(w, groups);
            emu_release(w, EMU_WAIT_WARPGROUP);
        }
    }
}

void emu_product_commit(emu_warp *w)
{
    products_of(w)->groups++;
    serve(w);
}

/* Resumes the warps that wait at a wgmma.fence once all warps of the warpgroup have reached it. */
static void meet(emu_warp *any)
{
    emu_warp *all = group_of(any);
    uint32_t fences = 0;
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++)
        if (is_waiting(&all[n], EMU_WAIT_FENCE))
            fences = products_of(&all[n])->fences;
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++)
        if (fences == 0 || (all[n].alive && products_of(&all[n])->fences < fences))
            return;
    EMU_TELL(any->audience, warpgroup_met, all);
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++)
        if (is_waiting(&all[n], EMU_WAIT_FENCE))
            emu_release(&all[n], EMU_WAIT_FENCE);
}

void emu_product_fence(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    products_of(w)->fences++;
    emu_wait_at(w, op, (emu_fragment){.mask = lanes, .wait = EMU_WAIT_FENCE});
    meet(w);
}

void emu_product_warp_exited(emu_warp *w)
{
    const unsigned end = (w->id / EMU_WARPGROUP_WARPS + 1) * EMU_WARPGROUP_WARPS;
    if (!w->block->products || end > w->block->warp_count) /* an incomplete warpgroup has no products */
        return;
    serve(w);
    meet(w);
}
