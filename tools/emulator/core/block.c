/* A thread block: its memory, and its warps, which take turns. One host thread runs the whole block, so its events have one
   order. */
#include "async.h"
#include "bulk.h"
#include "launch.h"
#include "wgmma.h"

#include <stdlib.h>
#include <string.h>

/* A backward jump of a warp that polls counts as this many, unless the warp may be waiting for a block of another host
   thread. */
#define POLLING UINT64_C(16)

pthread_mutex_t emu_wide_lock = PTHREAD_MUTEX_INITIALIZER;

static void *with_room(void *old, size_t *room, size_t bytes)
{
    if (*room >= bytes)
        return old;
    free(old);
    *room = emu_align_up(bytes, 64);
    void *p = aligned_alloc(64, *room);
    if (!p)
        abort();
    return p;
}

void emu_block_start(emu_block *b, emu_cluster *c, uint64_t index)
{
    emu_launch *l = c->launch;
    const emu_program *p = l->program;
    emu_async_free(b);
    emu_bulk_free(b);
    emu_products_free(b);
    b->launch = l;
    b->index = index;
    b->cluster = c;
    b->shared_base = b->rank << EMU_RANK_SHIFT;
    b->warp_count = b->live_warps = (l->threads + EMU_LANES - 1) / EMU_LANES;
    b->shared_bytes = l->dynamic_shared_bytes ? p->dynamic_shared_start + l->dynamic_shared_bytes
                                              : p->reserved_shared_bytes + p->static_shared_bytes;
    b->shared_low = b->shared_base + p->reserved_shared_bytes;
    b->shared_high = b->shared_base + b->shared_bytes;
    size_t register_bytes = (size_t)b->warp_count * p->register_bytes;
    size_t local_bytes = (size_t)b->warp_count * EMU_LANES * p->local_bytes;
    b->warps = with_room(b->warps, &b->warp_room, b->warp_count * sizeof *b->warps);
    b->registers = with_room(b->registers, &b->register_room, register_bytes);
    b->shared = with_room(b->shared, &b->shared_room, b->shared_bytes + 16u);
    b->local = with_room(b->local, &b->local_room, local_bytes);
    memset(b->registers, l->garbage, register_bytes);
    memset(b->shared, 0, b->shared_bytes);
    memset(b->local, l->garbage, local_bytes);
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->recent, 0, sizeof b->recent);
    b->free_registers = 0;
    b->stores = b->seen_stores = b->seen_progress = b->idle_jumps = b->jumps = 0;
    for (unsigned n = 0; n < b->warp_count; n++) {
        uint32_t left = l->threads - n * EMU_LANES;
        emu_warp_start(&b->warps[n], b, n, left >= EMU_LANES ? EMU_ALL : (1u << left) - 1);
    }
    EMU_TELL(&l->audience, block_begin, b);
}

void emu_block_free(emu_block *b)
{
    EMU_TELL(&b->launch->audience, block_free, b);
    free(b->warps);
    free(b->registers);
    free(b->shared);
    free(b->local);
    emu_async_free(b);
    emu_bulk_free(b);
    emu_products_free(b);
    *b = (emu_block){0};
}

static void finish_warp(emu_warp *w)
{
    emu_block *b = w->block;
    b->live_warps--;
    b->stores++;
    if (b->live_warps)
        emu_barrier_warp_exited(b);
    emu_product_warp_exited(w);
    emu_cluster_warp_exited(w);
}

static bool try_barriers(emu_warp *w)
{
    return emu_barrier_try(w) || (w->state == EMU_WARP_BLOCKED && emu_cluster_try(w));
}

/* A warp that completes a barrier goes on in the same turn. */
static void run_turn(emu_warp *w)
{
    emu_warp_begin_turn(w);
    do
        emu_warp_run(w);
    while (w->state == EMU_WARP_BLOCKED && try_barriers(w));
}

static void end_block(emu_block *b)
{
    EMU_TELL(&b->launch->audience, block_end, b);
    emu_bulk_end(b);
}

unsigned emu_block_turn(emu_block *b)
{
    unsigned ran = 0;
    if (b->live_warps == 0)
        return 0;
    for (unsigned n = 0; n < b->warp_count; n++) {
        emu_warp *w = &b->warps[n];
        if (w->state != EMU_WARP_READY)
            continue;
        ran++;
        run_turn(w);
        if (w->state == EMU_WARP_DONE)
            finish_warp(w);
        if (w->state == EMU_WARP_FAULTED)
            return ran;
    }
    if (b->bulks)
        emu_bulk_tick(b);
    if (b->live_warps == 0 &&
        __atomic_load_n(&b->launch->fault_cluster, __ATOMIC_RELAXED) > b->cluster->index)
        end_block(b);
    return ran;
}

bool emu_block_is_idle(emu_block *b)
{
    emu_launch *l = b->launch;
    uint64_t jumps = 0, idle = 0, waiting = 0;
    for (unsigned n = 0; n < b->warp_count; n++) {
        const emu_warp *w = &b->warps[n];
        if (w->state != EMU_WARP_READY)
            continue;
        jumps += w->jumps_back;
        idle += w->jumps_back * (!l->is_shared && w->polls >= w->jumps_back ? POLLING : 1);
        waiting++;
    }
    if (b->stores != b->seen_stores)
        __atomic_add_fetch(&l->progress, 1, __ATOMIC_RELAXED);
    b->seen_stores = b->stores;
    uint64_t progress = __atomic_load_n(&l->progress, __ATOMIC_RELAXED);
    b->idle_jumps = progress == b->seen_progress ? b->idle_jumps + idle : 0;
    b->seen_progress = progress;
    b->jumps += jumps;
    return (waiting && b->idle_jumps / waiting > l->most_idle_jumps) || b->jumps > l->most_jumps;
}
