/* Asynchronous copies and mbarriers in the race check (ISA 8.9.1.1, 9.7.9.25, 9.7.13.15). A copy follows what its thread did
   before, and from then on nothing is ordered after it, not even its own thread: its records are pending. A wait of the
   thread makes them the thread's own accesses of that moment. When they arrive at an mbarrier instead they are accesses of
   the warp's second clock, which only the end of that phase hands on: cp.async.mbarrier.arrive is no release of anything
   else. What arrivals release is collected, becomes that of the phase when it ends, and is acquired by a test that sees
   the end. In favour of the program: what arrives between the end of a phase and the next one's counts as seen with it. */
#include "../core/async.h"
#include "race.h"

static uint64_t host_of(const emu_block *b, uint32_t shared)
{
    return (uint64_t)(uintptr_t)b->shared + shared;
}

/* Two places beside that of the object's address, which is a multiple of 8. */
static emu_race_place *arriving(emu_block *b, uint64_t at)
{
    return emu_race_place_of(b->launch, at + 1, b->watch->race->run);
}

static emu_race_place *ended(emu_block *b, uint64_t at)
{
    return emu_race_place_of(b->launch, at + 2, b->watch->race->run);
}

void emu_race_mbarrier(emu_warp *w, const emu_plan *plan, uint32_t lane, uint64_t at)
{
    struct emu_race *r = w->block->watch->race;
    if (plan->order & EMU_RELEASE)
        emu_race_release(w, arriving(w->block, at), r->time++, false);
    else if (plan->order & EMU_RELAXED)
        emu_race_release_fenced(w, arriving(w->block, at), lane, false);
}

void emu_race_phase_ended(emu_block *b, uint32_t mbarrier)
{
    struct emu_race *r = b->watch->race;
    if (!r)
        return;
    const emu_race_place *from = arriving(b, host_of(b, mbarrier));
    emu_race_place *to = ended(b, host_of(b, mbarrier));
    to->block = b->index;
    for (unsigned v = 0; v < r->clocks && from->block == b->index; v++)
        emu_race_raise(&to->narrow[v], from->narrow[v]);
}

void emu_race_phase_passed(emu_warp *w, const emu_op *op, uint64_t at)
{
    emu_block *b = w->block;
    const emu_plan *plan = &b->watch->plans->plans[op - b->launch->program->ops];
    if (!b->watch->race)
        return;
    if (plan->order & EMU_ACQUIRE)
        emu_race_acquire(w, ended(b, at), false);
    else
        emu_race_remember(w, ended(b, at));
}

/* A thread that waits for its groups knows of all its copies, those that have arrived somewhere included. */
void emu_race_waited(emu_block *b, uint32_t thread)
{
    struct emu_race *r = b->watch->race;
    unsigned warp = thread / EMU_LANES;
    if (r && r->clocks > b->warp_count)
        emu_race_raise(&r->known[warp][b->warp_count + warp], r->time);
}

static void settle(emu_block *b, emu_race_record *o, uint32_t thread, bool by_mbarrier)
{
    uint32_t warp = thread / EMU_LANES, bit = 1u << thread % EMU_LANES;
    if (o->block != b->index || o->clock != warp || !(o->pending & bit))
        return;
    o->pending &= ~bit;
    if (o->pending)
        return;
    o->time = b->watch->race->time;
    o->clock = (uint8_t)(by_mbarrier ? b->warp_count + warp : warp);
}

static void settle_source(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    const emu_allocation *a = c->read ? emu_memory_holding(c->from, c->read) : NULL;
    if (!a || !a->race)
        return;
    for (uint64_t word = c->from & ~UINT64_C(3); word < c->from + c->read; word += 4) {
        emu_race_cell *cell = (emu_race_cell *)a->race + (word - a->base) / 4;
        for (int k = 0; k < 2 && cell->run == b->launch->race_grid->run; k++)
            settle(b, &cell->reads[k], c->thread, by_mbarrier);
    }
}

void emu_race_copied(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    struct emu_race *r = b->watch->race;
    if (!c->bytes) { /* the arrival: all copies of the thread before it have settled */
        unsigned clock = b->warp_count + c->thread / EMU_LANES;
        emu_race_place *p = arriving(b, host_of(b, c->to));
        if (p->block != b->index)
            *p = (emu_race_place){.next = p->next, .address = p->address, .run = p->run, .block = b->index};
        emu_race_raise(&p->narrow[clock], r->time++);
        return;
    }
    for (unsigned k = 0; k < c->bytes; k += 4)
        settle(b, &r->shared[(c->to + k) / 4].write, c->thread, by_mbarrier);
    settle_source(b, c, by_mbarrier);
}
