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
   do not count. */
#include "watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LAUNCH_FAILED = 719 };
enum { STRONG = 1, WIDE = 2 /* beyond the block */ };

#define WARPS 32

typedef struct record {
    uint64_t block;
    uint32_t time, step; /* 0: none; which access of the block */
    uint32_t lanes, at;
    uint8_t warp, bytes, flags;
} record;

typedef struct cell {
    uint64_t run; /* block run or launch that it belongs to */
    record write, reads[2];
    uint32_t readers[2][4]; /* the lanes of each of the reads, by byte */
} cell;

/* What a release left at an address. */
typedef struct place {
    struct place *next;
    uint64_t address, run;
    uint64_t block; /* `narrow` is about this one */
    uint32_t narrow[WARPS];
    uint32_t *wide; /* by block and warp of the grid */
} place;

struct emu_race_grid {
    emu_arena arena;
    place *places[4096];
    uint64_t run;
};

#define RECENT_READS 16

struct emu_race {
    uint64_t run;
    uint32_t time, step;
    uint32_t warps[WARPS][WARPS]; /* [w][v]: what w knows of v */
    struct {
        uint32_t lanes[EMU_LANES][EMU_LANES];
        uint32_t fenced[EMU_LANES]; /* time of the last fence; 0: none */
        uint8_t fence_scope[EMU_LANES];
        place *read[RECENT_READS]; /* by strong reads since the last fence */
        unsigned read_count;
    } of[WARPS];
    uint32_t *grid; /* what the block knows of other blocks' warps; NULL: nothing */
    cell *shared;
};

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
    r->shared = emu_alloc((b->shared_bytes / 4 + 8) * sizeof(cell));
}

void emu_race_free(emu_block *b)
{
    struct emu_race *r = b->watch->race;
    if (!r)
        return;
    free(r->grid);
    free(r->shared);
    free(r);
}

void emu_race_launch_end(emu_launch *l)
{
    if (l->race_grid)
        emu_arena_free(&l->race_grid->arena);
    free(l->race_grid);
    l->race_grid = NULL;
}

static void raise(uint32_t *to, uint32_t time)
{
    if (*to < time)
        *to = time;
}

static void know_own_warp(struct emu_race *r, unsigned warp)
{
    for (unsigned i = 0; i < EMU_LANES; i++)
        for (unsigned k = 0; k < EMU_LANES; k++)
            r->of[warp].lanes[i][k] = r->time;
}

static size_t grid_index(const emu_block *b, unsigned warp)
{
    return (size_t)b->index * b->warp_count + warp;
}

static void acquire(emu_warp *w, const place *p, bool wide)
{
    emu_block *b = w->block;
    struct emu_race *r = b->watch->race;
    size_t count = (size_t)b->launch->block_count * b->warp_count;
    uint32_t *own = r->warps[w->id];
    for (unsigned v = 0; v < b->warp_count; v++) {
        if (p->block == b->index)
            raise(&own[v], p->narrow[v]);
        if (p->wide)
            raise(&own[v], p->wide[grid_index(b, v)]);
    }
    for (unsigned i = 0; i < EMU_LANES; i++)
        for (unsigned k = 0; k < EMU_LANES; k++)
            raise(&r->of[w->id].lanes[i][k], own[w->id]);
    if (!wide || !p->wide)
        return;
    if (!r->grid)
        r->grid = emu_alloc(count * sizeof *r->grid);
    for (size_t k = 0; k < count; k++)
        raise(&r->grid[k], p->wide[k]);
}

static void acquire_reads(emu_warp *w, bool wide)
{
    struct emu_race *r = w->block->watch->race;
    for (unsigned n = 0; n < RECENT_READS && n < r->of[w->id].read_count; n++)
        acquire(w, r->of[w->id].read[n], wide);
    r->of[w->id].read_count = 0;
}

static void release(emu_warp *w, place *p, uint32_t time, bool wide)
{
    emu_block *b = w->block;
    struct emu_race *r = b->watch->race;
    size_t count = (size_t)b->launch->block_count * b->warp_count;
    if (p->block != b->index)
        memset(p->narrow, 0, sizeof p->narrow);
    p->block = b->index;
    if (wide && !p->wide)
        p->wide = emu_arena_alloc(&b->launch->race_grid->arena, count * sizeof *p->wide);
    for (unsigned v = 0; v < b->warp_count; v++) {
        uint32_t known = v == w->id ? time : r->warps[w->id][v];
        raise(&p->narrow[v], known);
        if (wide)
            raise(&p->wide[grid_index(b, v)], known);
    }
    for (size_t k = 0; wide && r->grid && k < count; k++)
        raise(&p->wide[k], r->grid[k]);
}

void emu_race_arrive(emu_warp *w, uint32_t *clock)
{
    struct emu_race *r = w->block->watch->race;
    if (!r)
        return;
    for (unsigned v = 0; v < w->block->warp_count; v++)
        raise(&clock[v], v == w->id ? r->time : r->warps[w->id][v]);
    r->time++;
}

void emu_race_leave(emu_warp *w, const uint32_t *clock)
{
    struct emu_race *r = w->block->watch->race;
    if (!r)
        return;
    for (unsigned v = 0; v < w->block->warp_count; v++)
        raise(&r->warps[w->id][v], clock[v]);
    know_own_warp(r, w->id);
    acquire_reads(w, true);
    r->time++;
}

void emu_race_warp_sync(emu_warp *w, uint32_t lanes)
{
    struct emu_race *r = w->block->watch->race;
    uint32_t all[EMU_LANES] = {0};
    if (!r)
        return;
    for (unsigned i = 0; i < EMU_LANES; i++)
        for (unsigned k = 0; (lanes >> i & 1) && k < EMU_LANES; k++)
            raise(&all[k], lanes >> k & 1 ? r->time : r->of[w->id].lanes[i][k]);
    for (unsigned i = 0; i < EMU_LANES; i++)
        if (lanes >> i & 1)
            memcpy(r->of[w->id].lanes[i], all, sizeof all);
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

static cell *find_cell(emu_warp *w, const emu_op *op, uint64_t at, uint64_t *run)
{
    emu_block *b = w->block;
    struct emu_race *r = b->watch->race;
    uint64_t shared = at - (uint64_t)(uintptr_t)b->shared;
    if (shared < b->shared_bytes) {
        *run = r->run;
        return &r->shared[shared / 4];
    }
    if (!emu_memory_contains(at))
        return NULL;
    const emu_recent *recent = &b->recent[op->at % EMU_RECENT];
    emu_allocation *a =
        at >= recent->base && at < recent->end ? recent->allocation : emu_memory_holding(at, 1);
    if (!a || a->kind == EMU_ALLOCATION_CONST)
        return NULL;
    if (!a->race) {
        a->race_bytes = (a->bytes / 4 + 8) * sizeof(cell);
        void *p = mmap(NULL, a->race_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return NULL;
        a->race = p;
    }
    *run = b->launch->race_grid->run;
    return (cell *)a->race + (at - a->base) / 4;
}

static place *find_place(emu_warp *w, uint64_t at, uint64_t run)
{
    struct emu_race_grid *g = w->block->launch->race_grid;
    place **bucket = &g->places[(at >> 2 ^ at >> 14 ^ run) % 4096];
    for (place *p = *bucket; p; p = p->next)
        if (p->address == at && p->run == run)
            return p;
    place *p = emu_arena_alloc(&g->arena, sizeof *p);
    *p = (place){.next = *bucket, .address = at, .run = run, .block = UINT64_MAX};
    *bucket = p;
    return p;
}

static bool is_ordered(const emu_warp *w, const record *o, uint32_t lane)
{
    const emu_block *b = w->block;
    const struct emu_race *r = b->watch->race;
    if (o->block != b->index)
        return r->grid && r->grid[(size_t)o->block * b->warp_count + o->warp] >= o->time;
    if (o->warp != w->id)
        return r->warps[w->id][o->warp] >= o->time;
    for (unsigned k = 0; k < EMU_LANES; k++)
        if ((o->lanes >> k & 1) && k != lane && r->of[w->id].lanes[lane][k] < o->time)
            return false;
    return true;
}

static bool are_strong(const emu_warp *w, const record *a, const record *b)
{
    return (a->flags & b->flags & STRONG) && (a->block == w->block->index || (a->flags & b->flags & WIDE));
}

/* Does the store leave what the other write has put there? */
static bool is_same_value(const emu_warp *w, const emu_op *op, const record *o, const record *now,
                          uint32_t lane, uint64_t at, unsigned bytes)
{
    const emu_plan *p = &w->block->watch->plans->plans[op - w->block->launch->program->ops];
    unsigned count = op->mods.count > 1 ? op->mods.count : 1, each = bytes / count;
    if (p->flow != EMU_FLOW_STORE)
        return false;
    bool same_step = o->step == now->step && o->block == now->block;
    for (unsigned n = 0; n < count; n++) {
        const char *v = emu_lanes(w, count > 1 ? op->list[n] : op->arg[1]);
        const char *other = same_step ? v + (size_t)__builtin_ctz(o->lanes) * each
                                      : (const char *)(uintptr_t)at + (size_t)n * each;
        if (memcmp(v + (size_t)lane * each, other, each) != 0)
            return false;
    }
    return true;
}

static bool report(emu_warp *w, const emu_op *op, uint32_t lane, const record *o, bool other_wrote,
                   bool writes, unsigned bytes, uint64_t at)
{
    char place_text[160];
    const emu_launch *l = w->block->launch;
    const uint32_t *n = l->block, *g = l->grid;
    uint32_t of_lanes = o->lanes & ~(o->block == w->block->index && o->warp == w->id ? 1u << lane : 0);
    uint32_t t = o->warp * EMU_LANES + (uint32_t)__builtin_ctz(of_lanes ? of_lanes : o->lanes);
    emu_fault(w, op, 1u << lane, LAUNCH_FAILED,
              "races: %s %u bytes at %s, which thread (%u,%u,%u) of block (%llu,%llu,%llu) %s in line %u "
              "with nothing "
              "to order the two",
              writes ? "writes" : "reads", bytes, emu_watch_place(w, at, place_text, sizeof place_text),
              t % n[0], t / n[0] % n[1], t / n[0] / n[1], (unsigned long long)(o->block % g[0]),
              (unsigned long long)(o->block / g[0] % g[1]), (unsigned long long)(o->block / g[0] / g[1]),
              other_wrote ? "writes" : "reads", l->program->instructions[o->at]->line);
    return false;
}

/* Lanes of one warp share a record. */
static void note_read(cell *c, const record *now)
{
    const record *first = &c->reads[0];
    bool is_free = !first->time || (first->block == now->block && first->warp == now->warp);
    record *o = &c->reads[is_free ? 0 : 1];
    uint32_t *readers = c->readers[is_free ? 0 : 1];
    if (!(o->time == now->time && o->block == now->block && o->warp == now->warp && o->flags == now->flags))
        memset(readers, 0, sizeof c->readers[0]);
    for (unsigned k = 0; k < 4; k++)
        readers[k] |= now->bytes >> k & 1 ? now->lanes : 0;
    *o = *now;
}

/* Who of the k-th reads has read one of these bytes. */
static record readers_of(const cell *c, int k, uint8_t bytes)
{
    record o = c->reads[k];
    o.lanes = 0;
    for (unsigned n = 0; n < 4; n++)
        o.lanes |= bytes >> n & 1 ? c->readers[k][n] : 0;
    return o;
}

static bool check_word(emu_warp *w, const emu_op *op, cell *c, const record *now, uint32_t lane, bool reads,
                       bool writes, uint64_t at, unsigned bytes)
{
    const record *o = &c->write;
    if (o->time && (o->bytes & now->bytes) && !is_ordered(w, o, lane) && !are_strong(w, o, now) &&
        !(writes && !reads && is_same_value(w, op, o, now, lane, at, bytes)))
        return report(w, op, lane, o, true, writes, bytes, at);
    for (int k = 0; writes && k < 2; k++) {
        record seen = readers_of(c, k, now->bytes);
        if (seen.time && seen.lanes && !is_ordered(w, &seen, lane) && !are_strong(w, &seen, now))
            return report(w, op, lane, &seen, false, writes, bytes, at);
    }
    if (writes) {
        c->write = *now;
        for (int k = 0; k < 2; k++) {
            record seen = readers_of(c, k, 15);
            if (is_ordered(w, &seen, lane))
                c->reads[k].time = 0;
        }
    } else {
        note_read(c, now);
    }
    return true;
}

static void synchronise(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t at, uint64_t run, bool reads,
                        bool writes, bool wide)
{
    struct emu_race *r = w->block->watch->race;
    place *p = find_place(w, at, run);
    bool acquires = op->mods.flags & EMU_ACQUIRE, releases = op->mods.flags & EMU_RELEASE;
    if (reads && acquires)
        acquire(w, p, wide);
    else if (reads)
        r->of[w->id].read[r->of[w->id].read_count++ % RECENT_READS] = p;
    if (!writes)
        return;
    if (releases) {
        release(w, p, r->time, wide);
        r->time++;
    } else if (r->of[w->id].fenced[lane]) {
        release(w, p, r->of[w->id].fenced[lane], wide && r->of[w->id].fence_scope[lane] == 2);
    }
}

bool emu_race_access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                     const uint64_t at[EMU_LANES])
{
    emu_block *b = w->block;
    struct emu_race *r = b->watch->race;
    const emu_plan *plan = &b->watch->plans->plans[op - b->launch->program->ops];
    bool is_atomic = plan->flow == EMU_FLOW_ATOMIC, reads = is_atomic || !writes;
    unsigned scope = op->mods.flags & EMU_SCOPE;
    bool wide = scope == 0 || scope >= EMU_SCOPE_GPU, strong = is_atomic || (op->mods.flags & EMU_STRONG);
    r->step++;
    if (op->mods.space == EMU_CONST || op->mods.space == EMU_PARAM || op->mods.space == EMU_LOCAL ||
        (op->mods.flags & EMU_NON_COHERENT))
        return true;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        uint64_t run = 0;
        record now = {.block = b->index,
                      .time = r->time,
                      .step = r->step,
                      .lanes = 1u << i,
                      .at = op->at,
                      .warp = (uint8_t)w->id,
                      .flags = (uint8_t)((strong ? STRONG : 0) | (wide ? WIDE : 0))};
        if (strong && find_cell(w, op, at[i], &run)) {
            synchronise(w, op, i, at[i], run, reads, writes, wide);
            now.time = r->time;
        }
        for (uint64_t word = at[i] & ~UINT64_C(3); word < at[i] + bytes; word += 4) {
            cell *c = find_cell(w, op, word < at[i] ? at[i] : word, &run);
            if (!c)
                break;
            if (c->run != run)
                *c = (cell){.run = run};
            now.bytes = 0;
            for (unsigned k = 0; k < 4; k++)
                now.bytes |= (uint8_t)((word + k >= at[i] && word + k < at[i] + bytes) << k);
            if (!check_word(w, op, c, &now, i, reads, writes, at[i], bytes))
                return false;
        }
    }
    return true;
}
