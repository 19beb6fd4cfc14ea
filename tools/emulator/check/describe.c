/* See describe.h. */
#include "describe.h"

#include <stdio.h>

const char *emu_describe_place(const emu_warp *w, uint64_t at, char *text, size_t room)
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

const char *emu_describe_thread(const emu_warp *w, uint64_t block, uint32_t thread, char *text, size_t room)
{
    const uint32_t *n = w->block->launch->block, *g = w->block->launch->grid;
    snprintf(text, room, "thread (%u,%u,%u) of block (%llu,%llu,%llu)", thread % n[0], thread / n[0] % n[1],
             thread / n[0] / n[1], (unsigned long long)(block % g[0]),
             (unsigned long long)(block / g[0] % g[1]), (unsigned long long)(block / g[0] / g[1]));
    return text;
}
