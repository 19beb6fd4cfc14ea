/* Broken rules on participation in barriers and warp-level operations (ISA 9.7.13). All threads of the block must execute
   an aligned barrier; with a thread count, all threads of each warp that arrives. Threads that exit without it are reported
   once. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* By warp: exited lanes that skipped a barrier and are already reported. NULL while there are none. */
typedef struct emu_sync {
    uint32_t blamed[EMU_LANES];
} emu_sync;

static void block_begin(emu_block *b)
{
    if (b->sync)
        memset(b->sync, 0, sizeof *b->sync);
}

static void block_free(emu_block *b)
{
    free(b->sync);
    b->sync = NULL;
}

static void misuse(emu_warp *w, const emu_op *op, uint32_t lanes, emu_misuse what)
{
    const CUresult failed = CUDA_ERROR_LAUNCH_FAILED;
    switch (what) {
    case EMU_NOT_A_MEMBER:
        emu_fault(w, op, lanes, failed, "executes this without being in its own member mask");
        break;
    case EMU_INACTIVE_SOURCE:
        emu_fault(w, op, lanes, failed, "takes a value from a lane that does not take part");
        break;
    case EMU_PART_OF_WARP:
        emu_fault(w, op, lanes, failed,
                  "executes this for its whole warp, of which the lanes 0x%08x do not exist or have exited",
                  ~lanes);
        break;
    case EMU_INIT_OF_VALID:
        emu_note(w, op, lanes, EMU_NOBODY,
                 "initialises a valid mbarrier object again: mbarrier.inval must come first");
        break;
    case EMU_STALE_PHASE:
        emu_note(w, op, lanes, EMU_NOBODY,
                 "tests an mbarrier object for a phase that is neither the current nor the preceding one");
        break;
    case EMU_INC_LOWERS:
    case EMU_DEC_RAISES:
        emu_fault(w, op, lanes, failed,
                  "asks for %u registers per thread but has %u: setmaxnreg.%s can only %s them",
                  (unsigned)op->imm, w->registers, what == EMU_INC_LOWERS ? "inc" : "dec",
                  what == EMU_INC_LOWERS ? "raise" : "lower");
        break;
    case EMU_PARTED_UNIFORM:
        emu_fault(w, op, lanes, failed, "takes a .uni branch that other active lanes (0x%08x) do not take",
                  w->active & ~lanes);
        break;
    }
}

static void report_divergence(emu_warp *w)
{
    const emu_program *p = w->block->launch->program;
    const emu_fragment *f = &w->fragments[0], *g = &w->fragments[1];
    char source[EMU_SOURCE_BYTES];
    emu_fault(w, f->pc, f->mask, CUDA_ERROR_LAUNCH_FAILED,
              "waits at an aligned barrier while lanes 0x%08x of its warp wait at another one, in line %u%s",
              g->mask, p->instructions[g->pc->at]->line, emu_source_of(p, g->pc->at, source));
}

/* Returns the warp's exited lanes that are not yet reported, and marks them as reported. */
static uint32_t blame_exited(const emu_warp *w)
{
    emu_block *b = w->block;
    uint32_t left = b->launch->threads - w->id * EMU_LANES;
    uint32_t lanes = (left >= EMU_LANES ? EMU_ALL : (1u << left) - 1) & ~w->alive;
    if (b->sync)
        lanes &= ~b->sync->blamed[w->id];
    if (lanes && !b->sync)
        b->sync = emu_alloc(sizeof *b->sync);
    if (lanes)
        b->sync->blamed[w->id] |= lanes;
    return lanes;
}

/* Reports exited threads of the warp, or of the whole block. */
static void report_exited(emu_warp *w, const emu_fragment *f, bool of_block)
{
    emu_block *b = w->block;
    unsigned count = 0, first = 0;
    char thread[96];
    for (unsigned n = of_block ? 0 : w->id; n < (of_block ? b->warp_count : w->id + 1); n++) {
        uint32_t lanes = blame_exited(&b->warps[n]);
        if (lanes && !count)
            first = n * EMU_LANES + (unsigned)__builtin_ctz(lanes);
        count += (unsigned)__builtin_popcount(lanes);
    }
    if (!count)
        return;
    emu_describe_thread(w, b->index, first, thread, sizeof thread);
    emu_note(w, f->pc, f->mask, EMU_NOBODY,
             "is at an aligned barrier that %u thread%s of its %s skip%s by ending, first %s", count,
             count == 1 ? "" : "s", of_block ? "block" : "warp", count == 1 ? "s" : "", thread);
}

static void barrier_arrive(emu_warp *w, const emu_fragment *arriving)
{
    if (!arriving->is_aligned)
        return;
    if (w->parked > 1)
        report_divergence(w);
    else if (arriving->barrier_threads)
        report_exited(w, &w->fragments[0], false);
}

/* With .aligned all threads of a warp execute the same barrier.cluster instruction. */
static void at_cluster(emu_warp *w)
{
    if (w->fragments[0].is_aligned && w->parked > 1)
        report_divergence(w);
    else if (w->fragments[0].is_aligned)
        report_exited(w, &w->fragments[0], false);
}

/* With a thread count, barrier_arrive has already checked each warp. */
static void barrier_complete(emu_block *b, unsigned number)
{
    const emu_barrier *barrier = &b->barriers[number];
    if (barrier->expected)
        return;
    for (unsigned n = 0; n < b->warp_count; n++)
        for (unsigned i = 0; (barrier->waiting >> n & 1) && i < b->warps[n].parked; i++) {
            const emu_fragment *f = &b->warps[n].fragments[i];
            if (f->wait == EMU_WAIT_BARRIER && f->is_aligned) {
                report_exited(&b->warps[n], f, true);
                return;
            }
        }
}

const emu_observer emu_sync_check = {
    .block_begin = block_begin,
    .block_free = block_free,
    .misuse = misuse,
    .barrier_arrive = barrier_arrive,
    .barrier_complete = barrier_complete,
    .cluster_arrive = at_cluster,
    .cluster_wait = at_cluster,
};
