/* Launches with programmatic stream serialization (griddepcontrol, ISA 9.7.13.13) may begin while the preceding launch on their
   stream still runs. The emulator runs them one after the other; this check reports what could go wrong on a device.
   For a thread that has not yet executed griddepcontrol.wait:

   - a store or an atomic to any global memory: the preceding launch may still read or write it;
   - a load of a byte that this launch, or another launch that may still run, has written.

   And a thread block in which no thread waits: the launch may then end before the preceding one, and the next launch, which
   waits only for this one, would overlap with both. A wait orders only the thread that executes it, even if other threads
   of its block pass a barrier after it. Which launches may still run: see driver/work.c. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct emu_dependent {
    uint32_t waited[EMU_LANES]; /* by warp: lanes that have executed griddepcontrol.wait */
    bool any;
} emu_dependent;

static void block_begin(emu_block *b)
{
    if (!b->launch->is_dependent)
        return;
    if (!b->dependent)
        b->dependent = emu_alloc(sizeof *b->dependent);
    memset(b->dependent, 0, sizeof *b->dependent);
}

static void block_free(emu_block *b)
{
    free(b->dependent);
    b->dependent = NULL;
}

static void grid_wait(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    emu_dependent *d = w->block->dependent;
    (void)op;
    if (!d)
        return;
    d->waited[w->id] |= lanes;
    d->any = true;
}

static void grid_next(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    const emu_dependent *d = w->block->dependent;
    (void)op;
    w->block->launch->lets_next_early |= d && (lanes & ~d->waited[w->id]);
}

static void exit_(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    const emu_block *b = w->block;
    bool is_last = b->live_warps == 1 && (w->alive & ~lanes) == 0;
    if (is_last && b->dependent && !b->dependent->any)
        emu_note(
            w, op, lanes, EMU_NOBODY,
            "ends its thread block, which has not executed griddepcontrol.wait: the next launch may begin "
            "before the preceding one has ended");
}

/* ---- what launches have written ---------------------------------------------------------------------------------- */

/* Reserves address space; only pages that are touched take memory. */
static uint32_t *writers_of(emu_allocation *a)
{
    if (a->writers)
        return a->writers;
    void *p = mmap(NULL, a->mapped_bytes * sizeof *a->writers, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    a->writers = p == MAP_FAILED ? NULL : p;
    return a->writers;
}

static void freed(emu_allocation *a)
{
    if (a->writers)
        munmap(a->writers, a->mapped_bytes * sizeof *a->writers);
    a->writers = NULL;
}

const emu_memory_observer emu_dependent_memory = {.freed = freed};

static void note_written(const emu_launch *l, emu_allocation *a, uint64_t offset, unsigned bytes)
{
    uint32_t *writers = writers_of(a);
    for (unsigned k = 0; writers && k < bytes; k++)
        writers[offset + k] = (uint32_t)l->serial;
}

static bool may_still_be_written(const emu_launch *l, const emu_allocation *a, uint64_t offset,
                                 unsigned bytes)
{
    for (unsigned k = 0; a->writers && k < bytes; k++)
        if (a->writers[offset + k] >= l->overlap_from)
            return true;
    return false;
}

static void access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                   const uint64_t at[EMU_LANES])
{
    emu_block *b = w->block;
    const emu_launch *l = b->launch;
    emu_space space = (emu_space)op->mods.space;
    uint32_t early = b->dependent ? mask & ~b->dependent->waited[w->id] : 0, wrong = 0;
    if ((!writes && !early) || (space != EMU_GLOBAL && space != EMU_GENERIC))
        return;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        emu_allocation *a = mask >> i & 1 ? emu_allocation_at(b, op, at[i]) : NULL;
        if (!a || a->kind == EMU_ALLOCATION_CONST)
            continue;
        if (writes)
            note_written(l, a, at[i] - a->base, bytes);
        bool is_wrong = writes || may_still_be_written(l, a, at[i] - a->base, bytes);
        wrong |= (uint32_t)is_wrong << i & early;
    }
    if (!wrong)
        return;
    char place[160];
    emu_describe_place(w, at[__builtin_ctz(wrong)], place, sizeof place);
    if (writes)
        emu_note(w, op, wrong, EMU_NOBODY,
                 "writes %u bytes at %s before griddepcontrol.wait, while the preceding launch may still run",
                 bytes, place);
    else
        emu_note(w, op, wrong, EMU_NOBODY,
                 "reads %u bytes at %s before griddepcontrol.wait, which a launch that may still run writes",
                 bytes, place);
}

const emu_observer emu_dependent_check = {
    .block_begin = block_begin,
    .block_free = block_free,
    .access = access,
    .grid_wait = grid_wait,
    .grid_next = grid_next,
    .exit = exit_,
};
