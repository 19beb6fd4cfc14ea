/* The rules for waiting for bulk copies (ISA 9.7.9.25, 9.7.13.15). A copy must land in the phase in which it was issued. Before
   a block ends, one of its threads must have seen the end of each load's phase; before a thread ends, it must have waited until
   the sources of its stores were read. Each instruction is reported once per mistake. */
#include "check.h"

#include "../core/async.h"
#include "../core/bulk.h"

#include <stdlib.h>
#include <string.h>

typedef struct load {
    const emu_op *op;
    emu_block *from;
    uint32_t thread, mbarrier;
    bool is_done, has_ended; /* the load has landed; its phase has ended */
} load;

typedef struct emu_bulk_state {
    load *loads; /* into this block's shared memory, until a thread has seen that they are complete */
    size_t load_count, load_room;
} emu_bulk_state;

static void block_free(emu_block *b)
{
    if (b->bulk)
        free(b->bulk->loads);
    free(b->bulk);
    b->bulk = NULL;
}

static void block_begin(emu_block *b)
{
    block_free(b);
    b->bulk = emu_alloc(sizeof *b->bulk);
}

/* ---- loads --------------------------------------------------------------------------------------------------------- */

static void bulk_issue(emu_warp *w, const emu_op *op, const emu_bulk *bulk)
{
    emu_bulk_state *s = bulk->holder->bulk;
    (void)w;
    if (bulk->kind != EMU_BULK_LOAD)
        return;
    s->loads = emu_with_room(s->loads, s->load_count, &s->load_room, sizeof *s->loads);
    s->loads[s->load_count++] =
        (load){.op = op, .from = bulk->from, .thread = bulk->thread, .mbarrier = bulk->mbarrier};
}

static uint32_t offset_of(const emu_block *b, uint64_t at)
{
    return (uint32_t)(at - (uint64_t)(uintptr_t)b->shared);
}

static emu_mbarrier mbarrier_at(const emu_block *b, uint32_t mbarrier)
{
    uint64_t bits;
    memcpy(&bits, b->shared + mbarrier, sizeof bits);
    return emu_mbarrier_unpack(bits);
}

static bool is_load_of(const load *l, const emu_bulk *bulk)
{
    return l->op == bulk->op && l->from == bulk->from && l->thread == bulk->thread &&
           l->mbarrier == bulk->mbarrier && !l->is_done;
}

static void bulk_done(emu_block *b, const emu_bulk *bulk)
{
    emu_bulk_state *s = b->bulk;
    if (bulk->kind != EMU_BULK_LOAD)
        return;
    size_t n = 0;
    while (n < s->load_count && !is_load_of(&s->loads[n], bulk))
        n++;
    if (n < s->load_count)
        s->loads[n].is_done = true;
    emu_mbarrier m = mbarrier_at(b, bulk->mbarrier);
    if (!m.is_valid || m.phase == bulk->phase)
        return;
    if (n < s->load_count)
        s->loads[n] = s->loads[--s->load_count];
    emu_note(
        &bulk->from->warps[bulk->thread / EMU_LANES], bulk->op, 1u << bulk->thread % EMU_LANES, EMU_NOBODY,
        "issues a copy that lands after its mbarrier's phase has ended: the phase expects fewer bytes than are copied");
}

static void phase_ended(emu_block *b, uint32_t mbarrier)
{
    emu_bulk_state *s = b->bulk;
    for (size_t n = 0; n < s->load_count; n++)
        s->loads[n].has_ended |= s->loads[n].is_done && s->loads[n].mbarrier == mbarrier;
}

static void phase_passed(emu_warp *w, const emu_op *op, uint64_t at)
{
    emu_bulk_state *s = w->block->bulk;
    uint32_t mbarrier = offset_of(w->block, at);
    size_t kept = 0;
    (void)op;
    for (size_t n = 0; n < s->load_count; n++)
        if (s->loads[n].mbarrier != mbarrier || !s->loads[n].has_ended)
            s->loads[kept++] = s->loads[n];
    s->load_count = kept;
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static void exit_(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    (void)op;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        const emu_bulk *bulk = emu_bulk_unread(w->block, w->id * EMU_LANES + lane);
        if (bulk)
            emu_note(w, bulk->op, 1u << lane, EMU_NOBODY,
                     "ends while this copy may still read its source: no cp.async.bulk.wait_group covers it");
    }
}

static void block_end(emu_block *b)
{
    const emu_bulk_state *s = b->bulk;
    for (size_t n = 0; n < s->load_count; n++)
        emu_note(
            &s->loads[n].from->warps[s->loads[n].thread / EMU_LANES], s->loads[n].op,
            1u << s->loads[n].thread % EMU_LANES, EMU_NOBODY,
            "issues this copy, but %s block ends before any thread has seen the end of the mbarrier's phase",
            s->loads[n].from == b ? "its" : "the destination's");
}

const emu_observer emu_bulk_check = {
    .block_begin = block_begin,
    .block_end = block_end,
    .block_free = block_free,
    .exit = exit_,
    .bulk_issue = bulk_issue,
    .bulk_done = bulk_done,
    .phase_ended = phase_ended,
    .phase_passed = phase_passed,
};
