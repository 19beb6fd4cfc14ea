/* Blocks that wait without end. A block all of whose warps wait at barriers, or test mbarriers in vain, with nothing in flight, does the same
   again and again once it comes back to a state in which it was: what its registers hold, where its lanes are. That is certain as long as
   no other block can change what it looks at, so a turn in which it polled something else does not count. */
#include "bulk.h"
#include "launch.h"

#include <string.h>

/* Rounds without a change before states are compared. */
#define PATIENCE 64u

static bool only_tests(const emu_block *b)
{
    bool any = false;
    for (unsigned n = 0; n < b->warp_count; n++) {
        const emu_warp *w = &b->warps[n];
        if (w->state != EMU_WARP_READY)
            continue;
        if (!w->tests || w->tests != w->polls)
            return false;
        any = true;
    }
    return any && !emu_bulk_is_any(b);
}

static uint64_t mix(uint64_t state, uint64_t x)
{
    state = (state ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return state ^ state >> 32;
}

static uint64_t state_of(const emu_block *b)
{
    uint64_t state = 0;
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

bool emu_block_is_stuck(emu_block *b)
{
    if (b->stores != b->waiting_stores || !only_tests(b)) {
        b->waiting_stores = b->stores;
        b->waiting_rounds = 0;
        return false;
    }
    if (++b->waiting_rounds < PATIENCE)
        return false;
    uint64_t state = state_of(b);
    if (b->waiting_rounds > PATIENCE && state == b->waiting_state) {
        b->waiting_rounds = UINT64_MAX;
        return true;
    }
    if ((b->waiting_rounds & (b->waiting_rounds - 1)) == 0)
        b->waiting_state = state;
    return false;
}
