/* Start and end of what the init and race checks keep, and what handlers tell them: see watch.h. */
#include "watch.h"
#include "../core/async.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void emu_watch_start(emu_block *b)
{
    emu_launch *l = b->launch;
    emu_watch_free(b);
    if (!(l->checks & (EMU_CHECK_INIT | EMU_CHECK_RACE)))
        return;
    emu_watch *k = b->watch = emu_alloc(sizeof *k);
    k->plans = l->plans;
    if (l->checks & EMU_CHECK_INIT) {
        k->defined = emu_alloc((size_t)b->warp_count * k->plans->slots * 4);
        for (unsigned n = 0; n < b->warp_count; n++)
            k->defined[(size_t)n * k->plans->slots] = EMU_ALL;
        k->shared = emu_alloc(b->shared_bytes + 64);
        memset(k->shared, 1, emu_reserved_shared(l->device_number));
        k->local = emu_alloc((size_t)b->warp_count * EMU_LANES * l->program->local_bytes);
    }
    if (l->checks & EMU_CHECK_RACE)
        emu_race_start(b);
}

void emu_watch_free(emu_block *b)
{
    emu_watch *k = b->watch;
    if (!k)
        return;
    emu_race_free(b);
    free(k->defined);
    free(k->shared);
    free(k->local);
    free(k);
    b->watch = NULL;
}

void emu_watch_access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                      const uint64_t at[EMU_LANES])
{
    unsigned checks = w->block->launch->checks;
    if (checks & EMU_CHECK_INIT)
        emu_init_access(w, op, mask, bytes, writes, at);
    if (checks & EMU_CHECK_RACE)
        emu_race_access(w, op, mask, bytes, writes, at);
}

void emu_watch_copied(emu_block *b, const emu_copy *copy, bool by_mbarrier)
{
    unsigned checks = b->launch->checks;
    if ((checks & EMU_CHECK_INIT) && copy->bytes)
        emu_init_copied(b, copy);
    if (checks & EMU_CHECK_RACE)
        emu_race_copied(b, copy, by_mbarrier);
}

const char *emu_watch_place(const emu_warp *w, uint64_t at, char *text, size_t room)
{
    const emu_block *b = w->block;
    uint64_t shared = at - (uint64_t)(uintptr_t)b->shared, local = at - (uint64_t)(uintptr_t)b->local;
    const emu_allocation *a = emu_memory_contains(at) ? emu_memory_find(at) : NULL;
    if (shared < b->shared_bytes)
        snprintf(text, room, "0x%llx of .shared memory", (unsigned long long)shared);
    else if (local < (uint64_t)b->warp_count * EMU_LANES * b->launch->program->local_bytes)
        snprintf(text, room, "0x%llx of .local memory",
                 (unsigned long long)(local % b->launch->program->local_bytes));
    else if (a)
        snprintf(text, room, "0x%llx, byte %llu of %s %llu (%llu bytes at 0x%llx)", (unsigned long long)at,
                 (unsigned long long)(at - a->base),
                 a->name ? "the variable that is allocation" : "allocation", (unsigned long long)a->serial,
                 (unsigned long long)a->bytes, (unsigned long long)a->base);
    else
        snprintf(text, room, "0x%llx", (unsigned long long)at);
    return text;
}

const char *emu_watch_thread(const emu_warp *w, uint64_t block, uint32_t thread, char *text, size_t room)
{
    const uint32_t *n = w->block->launch->block, *g = w->block->launch->grid;
    snprintf(text, room, "thread (%u,%u,%u) of block (%llu,%llu,%llu)", thread % n[0], thread / n[0] % n[1],
             thread / n[0] / n[1], (unsigned long long)(block % g[0]),
             (unsigned long long)(block / g[0] % g[1]), (unsigned long long)(block / g[0] / g[1]));
    return text;
}
