/* The sixteen barriers of a block (ISA 9.7.13.1). A warp arrives as a whole: when all its live lanes wait at the same barrier.
   A barrier does not wait for exited threads. */
#include "launch.h"

enum { NO_REDUCTION, POPC, AND, OR }; /* mods.mode of the operations in exec/barrier.c */

static void write_reduction(emu_warp *w, const emu_fragment *f, const emu_barrier *b)
{
    const emu_op *op = f->pc;
    uint32_t *d = emu_lanes(w, op->arg[0]);
    bool all = b->true_count == b->thread_count, any = b->true_count != 0;
    if (op->mods.mode == POPC)
        for (uint32_t i = 0; i < EMU_LANES; i++)
            d[i] = f->mask >> i & 1 ? b->true_count : d[i];
    else if (op->mods.mode != NO_REDUCTION)
        emu_set_predicate(w, op->arg[0], f->mask, (op->mods.mode == AND ? all : any) ? EMU_ALL : 0);
}

static void complete(emu_block *block, emu_barrier *b)
{
    EMU_TELL(&block->launch->audience, barrier_complete, block, (unsigned)(b - block->barriers));
    for (unsigned n = 0; n < block->warp_count; n++) {
        emu_warp *w = &block->warps[n];
        if (!(b->waiting >> n & 1))
            continue;
        for (unsigned i = 0; i < w->parked; i++)
            if (w->fragments[i].wait == EMU_WAIT_BARRIER)
                write_reduction(w, &w->fragments[i], b);
        emu_release(w, EMU_WAIT_BARRIER);
    }
    *b = (emu_barrier){0};
    block->stores++;
}

static bool is_complete(const emu_block *block, const emu_barrier *b)
{
    uint32_t expected = b->expected ? b->expected : EMU_LANES * block->live_warps;
    return b->is_used && b->arrived >= expected;
}

/* Sums up the lanes that wait at barriers. Returns true if all lanes that have not exited wait at the same one. */
static bool gather(const emu_warp *w, emu_fragment *sum)
{
    *sum = (emu_fragment){0};
    for (unsigned i = 0; i < w->parked; i++) {
        const emu_fragment *f = &w->fragments[i];
        if (f->wait != EMU_WAIT_BARRIER && f->wait != EMU_WAIT_ARRIVE)
            return false;
        if (sum->mask && (f->barrier != sum->barrier || f->barrier_threads != sum->barrier_threads))
            return false;
        sum->barrier = f->barrier;
        sum->barrier_threads = f->barrier_threads;
        sum->mask |= f->mask;
        sum->predicate |= f->predicate & f->mask;
        sum->is_aligned |= f->is_aligned;
        if (f->wait == EMU_WAIT_BARRIER)
            sum->wait = EMU_WAIT_BARRIER;
    }
    return sum->mask != 0 && sum->mask == w->alive;
}

bool emu_barrier_try(emu_warp *w)
{
    emu_block *block = w->block;
    emu_fragment sum;
    if (!gather(w, &sum))
        return false;
    emu_barrier *b = &block->barriers[sum.barrier];
    if (b->is_used && b->expected != sum.barrier_threads) {
        emu_fault(w, w->fragments[0].pc, sum.mask, CUDA_ERROR_LAUNCH_FAILED,
                  "waits at a barrier with another thread count than the threads already there");
        return false;
    }
    EMU_TELL(w->audience, barrier_arrive, w, &sum);
    if (w->state == EMU_WARP_FAULTED)
        return false;
    b->is_used = true;
    b->expected = sum.barrier_threads;
    b->arrived += EMU_LANES;
    b->true_count += (uint32_t)__builtin_popcount(sum.predicate);
    b->thread_count += (uint32_t)__builtin_popcount(sum.mask);
    if (sum.wait == EMU_WAIT_BARRIER) {
        b->waiting |= UINT64_C(1) << w->id;
        w->state = EMU_WARP_AT_BARRIER;
    }
    if (is_complete(block, b))
        complete(block, b);
    emu_release(w, EMU_WAIT_ARRIVE);
    if (b->waiting >> w->id & 1)
        w->state = EMU_WARP_AT_BARRIER;
    return w->state == EMU_WARP_READY;
}

void emu_barrier_warp_exited(emu_block *block)
{
    for (int n = 0; n < EMU_BARRIERS; n++)
        if (is_complete(block, &block->barriers[n]))
            complete(block, &block->barriers[n]);
}
