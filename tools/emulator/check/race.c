/* Races within a launch: two accesses of one word by different threads, one of them a write, that nothing orders and that are
   not both strong with a sufficient scope (ISA 8.6 to 8.10). The blocks of a watched launch run on one host thread, so
   every access has its place in one order and only the later one of a pair has to ask.

   Time is a counter per block, moved on by everything that releases. Warps know of warps of their block up to a time, and
   lanes of lanes of their warp: barriers make all that wait know what all that arrived knew, bar.warp.sync does so for its
   lanes. That lanes run in lockstep, shuffle or vote orders nothing. A release (a strong write with .release, or one after
   a fence) leaves what its warp knows at the address; an acquire (a strong read with .acquire, or one with a fence or a
   barrier after it) takes it. What the check does not see, always in favour of the program: what one lane acquires counts
   for its warp, and from another block for its whole block; a cell keeps one write and the readers of two warps;
   bytes of a word that several threads wrote are known by the last one only. Writes of the value that is there already
   do not count. Asynchronous copies and mbarriers: race_async.c; loads of read-only data:
   read_only.c. */
#include "race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t new_run(void)
{
    static uint64_t runs;
    return __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
}

void emu_race_start(emu_block *b)
{
    emu_launch *l = b->launch;
    if (!l->race_grid) {
        l->race_grid = emu_alloc(sizeof *l->race_grid);
        l->race_grid->run = new_run();
    }
    struct emu_race *r = b->watch->race = emu_alloc(sizeof *r);
    r->run = new_run();
    r->time = 1;
    r->clocks = b->warp_count * (b->watch->plans->copies_arrive ? 2 : 1);
    r->shared = l->race_grid->spare;
    l->race_grid->spare = NULL;
    if (!r->shared)
        r->shared = emu_alloc((b->shared_bytes / 4 + 8) * sizeof(emu_race_cell));
}

void emu_race_free(emu_block *b)
{
    struct emu_race *r = b->watch->race;
    if (!r)
        return;
    free(b->launch->race_grid->spare);
    b->launch->race_grid->spare = r->shared;
    free(r->grid);
    free(r);
}

void emu_race_launch_end(emu_launch *l)
{
    if (l->race_grid) {
        free(l->race_grid->spare);
        emu_read_only_free(l->race_grid);
        emu_arena_free(&l->race_grid->arena);
    }
    free(l->race_grid);
    l->race_grid = NULL;
}

/* Every lane knows of every other up to a time. */
static void know_own_warp(struct emu_race *r, unsigned warp, uint32_t time)
{
    for (unsigned i = 0; i < EMU_LANES; i++) {
        for (unsigned k = 0; k < EMU_LANES; k++)
            emu_race_raise(&r->of[warp].lanes[i][k], time);
        emu_race_raise(&r->of[warp].all[i], time);
    }
}

static size_t grid_index(const emu_block *b, uint64_t block, unsigned clock)
{
    return (size_t)block * b->watch->race->clocks + clock;
}

void emu_race_acquire(emu_warp *w, const emu_race_place *p, bool wide)
{
    emu_block *b = w->block;
    struct emu_race *r = b->watch->race;
    size_t count = (size_t)b->launch->block_count * r->clocks;
    uint32_t *own = r->known[w->id], before = own[w->id];
    for (unsigned v = 0; v < r->clocks; v++) {
        if (p->block == b->index)
            emu_race_raise(&own[v], p->narrow[v]);
        if (p->wide)
            emu_race_raise(&own[v], p->wide[grid_index(b, b->index, v)]);
    }
    if (own[w->id] != before)
        know_own_warp(r, w->id, own[w->id]);
    if (!wide || !p->wide)
        return;
    if (!r->grid)
        r->grid = emu_alloc(count * sizeof *r->grid);
    for (size_t k = 0; k < count; k++)
        emu_race_raise(&r->grid[k], p->wide[k]);
}

static void acquire_reads(emu_warp *w, bool wide)
{
    struct emu_race *r = w->block->watch->race;
    for (unsigned n = 0; n < EMU_RACE_READS && n < r->of[w->id].read_count; n++)
        emu_race_acquire(w, r->of[w->id].read[n], wide);
    r->of[w->id].read_count = 0;
}

void emu_race_release(emu_warp *w, emu_race_place *p, uint32_t time, bool wide)
{
    emu_block *b = w->block;
    struct emu_race *r = b->watch->race;
    size_t count = (size_t)b->launch->block_count * r->clocks;
    if (p->block != b->index)
        memset(p->narrow, 0, sizeof p->narrow);
    p->block = b->index;
    if (wide && !p->wide)
        p->wide = emu_arena_alloc(&b->launch->race_grid->arena, count * sizeof *p->wide);
    for (unsigned v = 0; v < r->clocks; v++) {
        uint32_t known = v == w->id ? time : r->known[w->id][v];
        emu_race_raise(&p->narrow[v], known);
        if (wide)
            emu_race_raise(&p->wide[grid_index(b, b->index, v)], known);
    }
    for (size_t k = 0; wide && r->grid && k < count; k++)
        emu_race_raise(&p->wide[k], r->grid[k]);
}

void emu_race_remember(emu_warp *w, emu_race_place *p)
{
    struct emu_race *r = w->block->watch->race;
    r->of[w->id].read[r->of[w->id].read_count++ % EMU_RACE_READS] = p;
}

void emu_race_release_fenced(emu_warp *w, emu_race_place *p, uint32_t lane, bool wide)
{
    struct emu_race *r = w->block->watch->race;
    if (r->of[w->id].fenced[lane])
        emu_race_release(w, p, r->of[w->id].fenced[lane], wide && r->of[w->id].fence_scope[lane] == 2);
}

void emu_race_arrive(emu_warp *w, uint32_t *clock)
{
    struct emu_race *r = w->block->watch->race;
    if (!r)
        return;
    for (unsigned v = 0; v < r->clocks; v++)
        emu_race_raise(&clock[v], v == w->id ? r->time : r->known[w->id][v]);
    r->time++;
}

void emu_race_leave(emu_warp *w, const uint32_t *clock)
{
    struct emu_race *r = w->block->watch->race;
    if (!r)
        return;
    for (unsigned v = 0; v < r->clocks; v++)
        emu_race_raise(&r->known[w->id][v], clock[v]);
    know_own_warp(r, w->id, r->time);
    acquire_reads(w, true);
    r->time++;
}

void emu_race_warp_sync(emu_warp *w, uint32_t lanes)
{
    struct emu_race *r = w->block->watch->race;
    uint32_t known[EMU_LANES] = {0}, least = UINT32_MAX;
    if (!r)
        return;
    for (unsigned k = 0; k < EMU_LANES; k++) {
        for (unsigned i = 0; i < EMU_LANES; i++)
            if (lanes >> i & 1)
                emu_race_raise(&known[k], lanes >> k & 1 ? r->time : r->of[w->id].lanes[i][k]);
        least = known[k] < least ? known[k] : least;
    }
    for (unsigned i = 0; i < EMU_LANES; i++) {
        if (!(lanes >> i & 1))
            continue;
        memcpy(r->of[w->id].lanes[i], known, sizeof known);
        r->of[w->id].all[i] = least;
    }
    r->time++;
}

void emu_race_fence(emu_warp *w, uint32_t mask, unsigned scope)
{
    struct emu_race *r = w->block->watch->race;
    if (!r)
        return;
    acquire_reads(w, scope == 2);
    for (unsigned i = 0; i < EMU_LANES; i++)
        if (mask >> i & 1) {
            r->of[w->id].fenced[i] = r->time;
            if (r->of[w->id].fence_scope[i] < scope)
                r->of[w->id].fence_scope[i] = (uint8_t)scope;
        }
    r->time++;
}

emu_allocation *emu_race_allocation(const emu_block *b, const emu_op *op, uint64_t at)
{
    const emu_recent *recent = &b->recent[op->at % EMU_RECENT];
    if (!emu_memory_contains(at))
        return NULL;
    emu_allocation *a =
        at >= recent->base && at < recent->end ? recent->allocation : emu_memory_holding(at, 1);
    return a && a->kind != EMU_ALLOCATION_CONST ? a : NULL;
}

static emu_race_cell *find_cell(emu_warp *w, const emu_op *op, uint64_t at, uint64_t *run)
{
    emu_block *b = w->block;
    struct emu_race *r = b->watch->race;
    uint64_t shared = at - (uint64_t)(uintptr_t)b->shared;
    if (shared < b->shared_bytes) {
        *run = r->run;
        return &r->shared[shared / 4];
    }
    emu_allocation *a = emu_race_allocation(b, op, at);
    if (!a)
        return NULL;
    if (!a->race) {
        a->race_bytes = (a->bytes / 4 + 8) * sizeof(emu_race_cell);
        void *p = mmap(NULL, a->race_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return NULL;
        a->race = p;
    }
    *run = b->launch->race_grid->run;
    return (emu_race_cell *)a->race + (at - a->base) / 4;
}

emu_race_place *emu_race_place_of(emu_launch *l, uint64_t at, uint64_t run)
{
    struct emu_race_grid *g = l->race_grid;
    emu_race_place **bucket = &g->places[(at >> 2 ^ at >> 14 ^ run) % 4096];
    for (emu_race_place *p = *bucket; p; p = p->next)
        if (p->address == at && p->run == run)
            return p;
    emu_race_place *p = emu_arena_alloc(&g->arena, sizeof *p);
    *p = (emu_race_place){.next = *bucket, .address = at, .run = run, .block = UINT64_MAX};
    *bucket = p;
    return p;
}

static bool is_ordered(const emu_warp *w, const emu_race_record *o, uint32_t lane)
{
    const emu_block *b = w->block;
    const struct emu_race *r = b->watch->race;
    if (o->pending)
        return false;
    if (o->block != b->index)
        return r->grid && r->grid[grid_index(b, o->block, o->clock)] >= o->time;
    if (o->clock != w->id)
        return r->known[w->id][o->clock] >= o->time;
    if (r->of[w->id].all[lane] >= o->time)
        return true;
    for (uint32_t others = o->lanes & ~(1u << lane); others; others &= others - 1)
        if (r->of[w->id].lanes[lane][__builtin_ctz(others)] < o->time)
            return false;
    return true;
}

static bool are_strong(const emu_warp *w, const emu_race_record *a, const emu_race_record *b)
{
    uint8_t both = a->flags & b->flags;
    return (both & EMU_RACE_STRONG) && (a->block == w->block->index || (both & EMU_RACE_WIDE));
}

/* One access of one warp, as the words of its lanes are looked at. */
typedef struct access {
    emu_warp *warp;
    const emu_op *op;
    const emu_plan *plan;
    unsigned bytes;
    bool reads, writes;
    emu_race_record now; /* of the lane in hand */
    uint32_t lane;
    uint64_t at;
    /* lanes that race with one instruction, and the first such pair */
    uint32_t racing;
    emu_race_record other;
    bool other_wrote;
    uint64_t racing_at;
} access;

/* Does the store leave what the other write has put there? */
static bool is_same_value(const access *a, const emu_race_record *o)
{
    const emu_op *op = a->op;
    unsigned count = op->mods.count > 1 ? op->mods.count : 1, each = a->bytes / count;
    if (a->plan->flow != EMU_FLOW_STORE || o->pending)
        return false;
    bool same_step = o->step == a->now.step && o->block == a->now.block;
    for (unsigned n = 0; n < count; n++) {
        const char *v = emu_lanes(a->warp, count > 1 ? op->list[n] : op->arg[1]);
        const char *other = same_step ? v + (size_t)__builtin_ctz(o->lanes) * each
                                      : (const char *)(uintptr_t)a->at + (size_t)n * each;
        if (memcmp(v + (size_t)a->lane * each, other, each) != 0)
            return false;
    }
    return true;
}

static void report(access *a)
{
    char place[160], thread[96], source[EMU_SOURCE_BYTES];
    emu_warp *w = a->warp;
    const emu_race_record *o = &a->other;
    const emu_launch *l = w->block->launch;
    if (!a->racing)
        return;
    bool same_warp = o->block == w->block->index && o->clock == w->id;
    uint32_t first = (uint32_t)__builtin_ctz(a->racing), lanes = o->pending ? o->pending : o->lanes;
    uint32_t others = same_warp && !o->pending ? lanes & ~(1u << first) : lanes;
    uint32_t t =
        o->clock % w->block->warp_count * EMU_LANES + (uint32_t)__builtin_ctz(others ? others : lanes);
    emu_watch_thread(w, o->block, t, thread, sizeof thread);
    const char *verb = a->writes ? "writes" : "reads", *other_verb = a->other_wrote ? "writes" : "reads";
    unsigned line = l->program->instructions[o->at]->line;
    emu_watch_place(w, a->racing_at, place, sizeof place);
    emu_source_of(l->program, o->at, source);
    if (o->pending)
        emu_note(
            w, a->op, a->racing, o->at,
            "races: %s %u bytes at %s, which a copy of %s, in line %u%s, still %s: nothing has waited for it",
            verb, a->bytes, place, thread, line, source, other_verb);
    else
        emu_note(w, a->op, a->racing, o->at,
                 "races: %s %u bytes at %s, which %s %s in line %u%s with nothing to order the two", verb,
                 a->bytes, place, thread, other_verb, line, source);
    a->racing = 0;
}

static void race_with(access *a, const emu_race_record *o, bool other_wrote)
{
    if (a->racing && (o->at != a->other.at || other_wrote != a->other_wrote))
        report(a);
    if (!a->racing) {
        a->other = *o;
        a->other_wrote = other_wrote;
        a->racing_at = a->at;
    }
    a->racing |= 1u << a->lane;
}

static bool is_race(const access *a, const emu_race_record *o)
{
    return o->time && (o->bytes & a->now.bytes) && !is_ordered(a->warp, o, a->lane) &&
           !are_strong(a->warp, o, &a->now);
}

static void note_readers(uint32_t readers[4], const emu_race_record *now)
{
    for (unsigned k = 0; k < 4; k++)
        readers[k] |= now->bytes >> k & 1 ? now->lanes : 0;
}

static void first_read(emu_race_cell *c, int k, const emu_race_record *now)
{
    c->reads[k] = *now;
    memset(c->readers[k], 0, sizeof c->readers[k]);
    note_readers(c->readers[k], now);
}

static void note_read(emu_race_cell *c, const emu_race_record *now)
{
    for (int k = 0; k < 2; k++) { /* lanes of one warp share a record */
        emu_race_record *o = &c->reads[k];
        bool same_warp = o->time && o->block == now->block && o->clock == now->clock;
        if (same_warp && o->pending && !now->pending)
            continue;
        if (same_warp && o->time == now->time && o->flags == now->flags) {
            o->lanes |= now->lanes;
            o->pending |= now->pending;
            o->bytes |= now->bytes;
            o->at = now->at;
            note_readers(c->readers[k], now);
            return;
        }
        if (!o->time || same_warp) {
            first_read(c, k, now);
            return;
        }
    }
    first_read(c, 1, now);
}

/* The k-th reads, by the lanes that read one of these bytes. */
static emu_race_record readers_of(const emu_race_cell *c, int k, uint8_t bytes)
{
    uint32_t lanes = 0;
    for (unsigned n = 0; n < 4; n++)
        lanes |= bytes >> n & 1 ? c->readers[k][n] : 0;
    emu_race_record o = c->reads[k];
    o.lanes &= lanes;
    o.pending &= lanes;
    if (!o.lanes)
        o.time = 0;
    return o;
}

static void check_word(access *a, emu_race_cell *c)
{
    if (is_race(a, &c->write) && !(a->writes && !a->reads && is_same_value(a, &c->write)))
        race_with(a, &c->write, true);
    for (int k = 0; a->writes && k < 2; k++) {
        emu_race_record seen = readers_of(c, k, a->now.bytes);
        if (is_race(a, &seen))
            race_with(a, &seen, false);
    }
    if (!a->writes) {
        note_read(c, &a->now);
        return;
    }
    c->write = a->now;
    /* A read without a time may be of another launch, and of a block that this one does not have. */
    for (int k = 0; k < 2; k++)
        if (c->reads[k].time && is_ordered(a->warp, &c->reads[k], a->lane))
            c->reads[k].time = 0;
}

static void synchronise(access *a, uint64_t run, bool wide)
{
    struct emu_race *r = a->warp->block->watch->race;
    emu_race_place *p = emu_race_place_of(a->warp->block->launch, a->at, run);
    if (a->reads && (a->plan->order & EMU_ACQUIRE))
        emu_race_acquire(a->warp, p, wide);
    else if (a->reads)
        emu_race_remember(a->warp, p);
    if (a->writes && (a->plan->order & EMU_RELEASE))
        emu_race_release(a->warp, p, r->time++, wide);
    else if (a->writes)
        emu_race_release_fenced(a->warp, p, a->lane, wide);
}

/* What is left of another run. */
static void forget(emu_race_cell *c, uint64_t run)
{
    c->run = run;
    c->write.time = c->reads[0].time = c->reads[1].time = 0;
    c->write.pending = c->reads[0].pending = c->reads[1].pending = 0;
}

static void check_lane(access *a, bool strong, bool wide)
{
    emu_warp *w = a->warp;
    struct emu_race *r = w->block->watch->race;
    uint64_t run = 0;
    uint32_t bit = 1u << a->lane;
    if (a->plan->flow == EMU_FLOW_MBARRIER)
        emu_race_mbarrier(w, a->plan, a->lane, a->at);
    else if (strong && find_cell(w, a->op, a->at, &run))
        synchronise(a, run, wide);
    a->now =
        (emu_race_record){.block = w->block->index,
                          .time = r->time,
                          .step = r->step,
                          .lanes = bit,
                          .pending = a->plan->flow == EMU_FLOW_COPY ? bit : 0,
                          .at = a->op->at,
                          .clock = (uint8_t)w->id,
                          .flags = (uint8_t)((strong ? EMU_RACE_STRONG : 0) | (wide ? EMU_RACE_WIDE : 0))};
    for (uint64_t word = a->at & ~UINT64_C(3); word < a->at + a->bytes; word += 4) {
        emu_race_cell *c = find_cell(w, a->op, word < a->at ? a->at : word, &run);
        if (!c)
            return;
        if (c->run != run)
            forget(c, run);
        a->now.bytes = 0;
        for (unsigned k = 0; k < 4; k++)
            a->now.bytes |= (uint8_t)((word + k >= a->at && word + k < a->at + a->bytes) << k);
        check_word(a, c);
    }
}

void emu_race_access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                     const uint64_t at[EMU_LANES])
{
    emu_block *b = w->block;
    const emu_plan *plan = &b->watch->plans->plans[op - b->launch->program->ops];
    bool is_atomic = plan->flow == EMU_FLOW_ATOMIC || plan->flow == EMU_FLOW_MBARRIER;
    unsigned scope = op->mods.flags & EMU_SCOPE;
    bool wide = scope == 0 || scope >= EMU_SCOPE_GPU, strong = is_atomic || (op->mods.flags & EMU_STRONG);
    access a = {
        .warp = w, .op = op, .plan = plan, .bytes = bytes, .reads = is_atomic || !writes, .writes = writes};
    b->watch->race->step++;
    if (op->mods.space == EMU_CONST || op->mods.space == EMU_PARAM || op->mods.space == EMU_LOCAL)
        return;
    if (plan->reads_only || (writes && b->watch->plans->has_read_only && op->mods.space != EMU_SHARED))
        emu_read_only_access(w, op, mask, bytes, writes, at);
    if (plan->reads_only)
        return;
    for (a.lane = 0; a.lane < EMU_LANES; a.lane++)
        if (mask >> a.lane & 1) {
            a.at = at[a.lane];
            check_lane(&a, strong, wide);
        }
    report(&a);
}
