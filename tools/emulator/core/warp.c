/* The scheduler of a warp's lanes: see warp.h. */
#include "warp.h"

#include "launch.h"

/* After this many backward jumps a fragment lets parked ones go first; after JUMPS_PER_TURN the warp lets other warps run. */
#define JUMPS_PER_FRAGMENT 4096u
#define JUMPS_PER_TURN     65536u
/* After this many polls, the next backward jump counts as waiting for another warp. */
#define POLLS_PER_TURN 32u

void emu_warp_start(emu_warp *w, emu_block *block, uint32_t id, uint32_t lanes)
{
    const emu_program *p = block->launch->program;
    char *registers = block->registers + (size_t)id * p->register_bytes;
    *w = (emu_warp){.block = block,
                    .id = id,
                    .audience = &block->launch->audience,
                    .registers = block->launch->registers,
                    .active = lanes,
                    .alive = lanes,
                    .pc = p->entry};
    w->base[0] = registers;
    w->base[1] = p->constants ? p->constants - 1 : NULL;
    w->state = EMU_WARP_READY;
}

/* Stops the running fragment at the nearest parked fragment ahead, to see if their lanes meet. */
static void set_stop(emu_warp *w)
{
    const emu_op *stop = (const emu_op *)UINTPTR_MAX;
    for (unsigned i = 0; i < w->parked; i++)
        if (w->fragments[i].pc > w->pc && w->fragments[i].pc < stop)
            stop = w->fragments[i].pc;
    w->stop = stop;
}

static void park(emu_warp *w, uint32_t lanes, const emu_op *pc)
{
    w->fragments[w->parked++] = (emu_fragment){.pc = pc, .mask = lanes, .rank = w->rank};
    w->active &= ~lanes;
    w->stop = NULL;
}

static bool comes_first(const emu_fragment *a, const emu_fragment *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->pc < b->pc;
}

/* Joins the parked fragments at the same operation to the running one; lanes that waited there try again. */
static void absorb(emu_warp *w)
{
    for (unsigned i = 0; i < w->parked;) {
        emu_fragment *f = &w->fragments[i];
        if (f->pc != w->pc) {
            i++;
            continue;
        }
        w->active |= f->mask;
        w->rank = w->rank < f->rank ? w->rank : f->rank;
        *f = w->fragments[--w->parked];
    }
}

static bool resume_best(emu_warp *w)
{
    const emu_fragment *best = NULL;
    for (unsigned i = 0; i < w->parked; i++)
        if (w->fragments[i].wait == EMU_WAIT_NONE && (!best || comes_first(&w->fragments[i], best)))
            best = &w->fragments[i];
    if (!best)
        return false;
    w->pc = best->pc;
    w->rank = best->rank;
    absorb(w);
    if (!w->parked)
        w->rank = 0;
    set_stop(w);
    return true;
}

/* Called when no fragment can run. The missing lanes of a wait may have exited, which completes the wait. */
static bool complete_lane_waits(emu_warp *w)
{
    bool any = false;
    for (unsigned i = 0; i < w->parked; i++) {
        emu_fragment *f = &w->fragments[i];
        uint32_t here = f->mask;
        if (f->wait != EMU_WAIT_LANES && f->wait != EMU_WAIT_WARP)
            continue;
        for (unsigned k = 0; f->wait == EMU_WAIT_WARP && k < w->parked; k++)
            if (w->fragments[k].wait == EMU_WAIT_WARP && w->fragments[k].members == f->members)
                here |= w->fragments[k].mask;
        if (f->members & w->alive & ~here)
            continue;
        any = true;
        if (f->wait == EMU_WAIT_LANES) {
            f->wait = EMU_WAIT_NONE; /* it executes the operation again, without the missing lanes */
            continue;
        }
        uint32_t members = f->members;
        EMU_TELL(w->audience, warp_sync, w, here);
        for (unsigned k = 0; k < w->parked; k++)
            if (w->fragments[k].wait == EMU_WAIT_WARP && w->fragments[k].members == members) {
                EMU_TELL(w->audience, release, w, w->fragments[k].pc, w->fragments[k].mask);
                w->fragments[k].wait = EMU_WAIT_NONE;
                w->fragments[k].pc++;
            }
    }
    return any;
}

static void schedule(emu_warp *w)
{
    if (w->active)
        park(w, w->active, w->pc);
    while (!resume_best(w)) {
        if (!w->alive) {
            w->state = EMU_WARP_DONE;
            return;
        }
        if (!complete_lane_waits(w)) {
            w->state = EMU_WARP_BLOCKED;
            return;
        }
    }
}

static void run_operations(emu_warp *w)
{
    for (;;) {
        const emu_op *op = w->pc;
        if (op >= w->stop)
            return;
        uint32_t mask = w->active;
        w->pc = op + 1;
        if (op->guard) {
            uint32_t holds = *(const uint32_t *)(w->base[0] + (op->guard & ~1u));
            mask &= op->guard & 1 ? ~holds : holds;
            if (!mask)
                continue;
        }
        op->run(w, op, mask);
    }
}

/* Like run_operations, with an `issue` event for each operation. */
static void run_observed(emu_warp *w)
{
    for (;;) {
        const emu_op *op = w->pc;
        if (op >= w->stop)
            return;
        uint32_t mask = w->active;
        w->pc = op + 1;
        if (op->guard) {
            uint32_t holds = *(const uint32_t *)(w->base[0] + (op->guard & ~1u));
            mask &= op->guard & 1 ? ~holds : holds;
        }
        EMU_TELL(w->audience, issue, w, op, mask);
        if (mask && w->state == EMU_WARP_READY)
            op->run(w, op, mask);
    }
}

void emu_warp_begin_turn(emu_warp *w)
{
    w->yields = false;
    w->jumps_back = w->polls = w->tests = 0;
}

void emu_warp_run(emu_warp *w)
{
    void (*run)(emu_warp *) = EMU_IS_TOLD(w->audience, issue) ? run_observed : run_operations;
    schedule(w);
    while (w->state == EMU_WARP_READY && !w->yields) {
        run(w);
        if (w->state == EMU_WARP_READY)
            schedule(w);
    }
}

void emu_yield(emu_warp *w)
{
    w->yields = true;
    w->stop = NULL;
}

void emu_stop(emu_warp *w)
{
    w->state = EMU_WARP_FAULTED;
    w->stop = NULL;
}

static void count_jump_back(emu_warp *w)
{
    bool polls = w->polls >= POLLS_PER_TURN;
    w->jumps_back++;
    if (w->parked) {
        set_stop(w);
        if (polls || w->jumps_back % JUMPS_PER_FRAGMENT == 0) {
            w->rank++;
            w->stop = NULL;
        }
    }
    if (polls || w->jumps_back >= JUMPS_PER_TURN || w->jumps_back > w->block->launch->most_jumps)
        emu_yield(w);
}

void emu_jump(emu_warp *w, const emu_op *op, uint32_t lanes, const emu_op *target)
{
    if (lanes != w->active) {
        emu_send(w, op, lanes, target);
        return;
    }
    w->pc = target;
    if (target <= op)
        count_jump_back(w);
}

void emu_send(emu_warp *w, const emu_op *op, uint32_t lanes, const emu_op *target)
{
    park(w, lanes, target);
    if (target <= op)
        count_jump_back(w);
    w->stop = NULL;
}

/* Joins lanes that come to the same barrier instruction one after another. They come so if a compiler places the barrier
 * before the branches that lead to it: the lowest PC then goes first and arrives alone. */
static bool join_at_barrier(emu_warp *w, const emu_fragment *waiting)
{
    for (unsigned i = 0; i < w->parked; i++) {
        emu_fragment *f = &w->fragments[i];
        if (f->pc != waiting->pc || f->wait != waiting->wait || f->wait < EMU_WAIT_BARRIER ||
            f->barrier != waiting->barrier || f->barrier_threads != waiting->barrier_threads)
            continue;
        f->predicate = (f->predicate & f->mask) | (waiting->predicate & waiting->mask);
        f->mask |= waiting->mask;
        return true;
    }
    return false;
}

void emu_wait_at(emu_warp *w, const emu_op *op, emu_fragment waiting)
{
    EMU_TELL(w->audience, wait, w, op, waiting.mask);
    waiting.pc = op;
    waiting.rank = w->rank;
    if (!join_at_barrier(w, &waiting))
        w->fragments[w->parked++] = waiting;
    w->active &= ~waiting.mask;
    w->stop = NULL;
}

void emu_exit_lanes(emu_warp *w, uint32_t lanes)
{
    w->alive &= ~lanes;
    w->active &= ~lanes;
    if (!w->active)
        w->stop = NULL;
}

void emu_release(emu_warp *w, emu_wait wait)
{
    for (unsigned i = 0; i < w->parked; i++)
        if (w->fragments[i].wait == wait) {
            EMU_TELL(w->audience, release, w, w->fragments[i].pc, w->fragments[i].mask);
            w->fragments[i].wait = EMU_WAIT_NONE;
            w->fragments[i].pc++;
        }
    w->state = EMU_WARP_READY;
}
