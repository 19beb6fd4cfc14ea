/* Detects clusters that wait forever. If all warps of a cluster wait at barriers or fail tests of mbarriers, and nothing is in
   flight, the cluster repeats itself once its state recurs: the values of its registers and the places of its lanes. This needs
   that no other cluster can change what it polls, so a turn in which it polled anything but mbarriers does not count. */
#include "bulk.h"
#include "launch.h"

#include <string.h>

/* Turns without a change before states are compared. */
#define PATIENCE 64u

/* Returns true if the ready warps of the block only test mbarriers, and nothing is in flight. Sets *any if one is ready. */
static bool only_tests(const emu_block *b, bool *any)
{
    for (unsigned n = 0; n < b->warp_count; n++) {
        const emu_warp *w = &b->warps[n];
        if (w->state != EMU_WARP_READY)
            continue;
        if (!w->tests || w->tests != w->polls)
            return false;
        *any = true;
    }
    return !emu_bulk_is_any(b);
}

static uint64_t mix(uint64_t state, uint64_t x)
{
    state = (state ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return state ^ state >> 32;
}

static uint64_t mix_block(uint64_t state, const emu_block *b)
{
    for (unsigned n = 0; n < b->warp_count; n++) {
        const emu_warp *w = &b->warps[n];
        if (w->state != EMU_WARP_READY)
            continue;
        state = mix(mix(state, (uint64_t)(uintptr_t)w->pc), (uint64_t)w->active << 32 | w->carry);
        for (unsigned i = 0; i < w->parked; i++)
            state = mix(mix(state, (uint64_t)(uintptr_t)w->fragments[i].pc), w->fragments[i].mask);
        for (uint32_t k = 0; k < b->launch->program->register_bytes; k += sizeof(uint64_t)) {
            uint64_t x;
            memcpy(&x, w->base[0] + k, sizeof x);
            state = mix(state, x);
        }
    }
    return state;
}

bool emu_cluster_is_stuck(emu_cluster *c)
{
    uint64_t stores = 0, state = 0;
    bool any = false, waits = true;
    for (unsigned rank = 0; rank < c->count && waits; rank++) {
        stores += c->blocks[rank].stores;
        waits = only_tests(&c->blocks[rank], &any);
    }
    if (!waits || !any || stores != c->waiting_stores) {
        c->waiting_stores = stores;
        c->waiting_turns = 0;
        return false;
    }
    if (++c->waiting_turns < PATIENCE)
        return false;
    for (unsigned rank = 0; rank < c->count; rank++)
        state = mix_block(state, &c->blocks[rank]);
    if (c->waiting_turns > PATIENCE && state == c->waiting_state) {
        c->waiting_turns = UINT64_MAX;
        return true;
    }
    if ((c->waiting_turns & (c->waiting_turns - 1)) == 0)
        c->waiting_state = state;
    return false;
}
