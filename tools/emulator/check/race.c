/* Races within a launch: two accesses of one word by different threads, at least one of them a write, that nothing orders, and
   that are not both strong with a sufficient scope (ISA 8.6 to 8.10). All blocks of the launch run on one host thread, so
   accesses come in one order, and each is checked only against earlier ones.

   The check uses vector clocks. Each block has a time, which every release advances. A warp knows the accesses of each warp of
   its block up to a time, and a lane those of each lane of its warp. After a barrier all waiting warps know what all arrived
   warps knew; bar.warp.sync does the same for lanes. Lockstep, shuffles and votes order nothing. A release (a strong write
   with .release, or one after a fence) stores what its warp knows at the address; an acquire (a strong read with .acquire, or
   one with a fence or a barrier after it) takes it over. Simplifications that may miss a race, but never report a false one:
   an acquire by one lane counts for its warp, and one from another block for its whole block; a word keeps one write and the
   readers of two warps; if several threads wrote parts of a word, only the last one is known. A write of the value that is
   already there counts only with `same`. Loads of read-only data have their own rules: read_only.c.

   Asynchronous copies and mbarriers (ISA 8.9.1.1, 9.7.9.25, 9.7.13.15). A copy comes after what its thread did before it, and
   before nothing, not even its own thread's next access: its records are pending. When the thread waits for it, they become
   accesses of the thread at that moment. When it arrives at an mbarrier, they become accesses of the warp's second clock, which
   is passed on only by the end of that phase: cp.async.mbarrier.arrive releases nothing else. Arrivals collect what they
   release; the end of the phase takes it over, and a test that sees the end acquires it. May miss a race: an arrival
   between the ends of two phases counts as seen with the earlier one.

   Products of wgmma (ISA 9.7.15.4) read shared memory as copies do: their reads are pending until a wait for their group, which
   makes them reads of their warp, not of a lane. They read in the async proxy. Two simplifications may miss a race: if two
   products in flight read the same bytes, the first wait counts for both; and any fence of the writer's or the product's warp
   after the write counts. */
#include "check.h"
#include "plan.h"

#include "../core/async.h"
#include "../core/wgmma.h"
#include "../exec/wgmma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    RACE_STRONG = 1,
    RACE_WIDE = 2 /* strong beyond the block */,
    RACE_OF_WARP = 4 /* a product's read, not of one lane */
};
enum { ALL_BYTES = 15 /* of a word, one bit per byte */ };

#define RACE_WARPS 32
/* If copies arrive at mbarriers, a warp has two clocks: its own, and one for those copies. */
#define RACE_CLOCKS (2 * RACE_WARPS)

typedef struct race_record {
    uint32_t block;
    uint32_t time, step; /* 0: no access; number of the access in its block */
    uint32_t lanes;
    uint32_t pending; /* lanes whose copy or product is in flight: ordered before nothing */
    uint32_t at;
    uint8_t clock, bytes, flags;
    bool is_mixed; /* reads: some lanes read other bytes than others */
} race_record;

/* The last accesses of one word. The fields that most accesses need fill the first cache line. */
typedef struct emu_race_cell {
    uint64_t run; /* the block run, or the launch for global memory */
    race_record write, reads[2];
    uint32_t readers[2][4]; /* for each read that is mixed: the lanes that read each byte */
} emu_race_cell;

/* What a release left at an address. */
typedef struct sync_object {
    struct sync_object *next;
    uint64_t address, run;
    uint64_t block; /* the block that `narrow` belongs to */
    uint32_t narrow[RACE_CLOCKS];
    uint32_t *wide; /* by block and clock, for the whole grid */
} sync_object;

typedef struct emu_race_grid {
    emu_arena arena;
    sync_object *sync_objects[4096];
    uint64_t run;
    emu_race_cell *spare; /* of a block that has ended, to be reused by the next one; NULL: none */
} emu_race_grid;

#define RACE_READS   16
#define RACE_PROXIED 8

typedef struct emu_race {
    uint64_t run;
    uint32_t time, step;
    unsigned clocks;                         /* per block */
    uint32_t known[RACE_WARPS][RACE_CLOCKS]; /* by warp */
    struct {
        uint32_t lanes[EMU_LANES][EMU_LANES]; /* [i][k]: up to which time lane i knows lane k */
        uint32_t all[EMU_LANES];              /* the least of each row of `lanes` */
        uint32_t fenced[EMU_LANES];           /* time of the last fence; 0: none */
        uint8_t fence_scope[EMU_LANES];
        sync_object *read[RACE_READS]; /* objects that strong reads found since the last fence */
        unsigned read_count;
    } of[RACE_WARPS];
    uint32_t arrived[EMU_BARRIERS][RACE_CLOCKS]; /* by barrier: what the warps that have arrived know */
    struct {
        uint32_t step, time;
    } proxied[RACE_WARPS][RACE_PROXIED]; /* each warp's last fences with .proxy.async, newest first */
    uint32_t *grid;                      /* what the block knows of all blocks' clocks; NULL: nothing */
    emu_race_cell *shared;
} emu_race;

static void raise_to(uint32_t *to, uint32_t time)
{
    if (*to < time)
        *to = time;
}

/* ---- launches and blocks ------------------------------------------------------------------------------------------- */

static uint64_t new_run(void)
{
    static uint64_t runs;
    return __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
}

static void launch_begin(emu_launch *l)
{
    l->is_ordered = true; /* so that the same pair of threads is always reported */
    l->race = emu_alloc(sizeof *l->race);
    l->race->run = new_run();
}

static void launch_end(emu_launch *l)
{
    free(l->race->spare);
    emu_arena_free(&l->race->arena);
    free(l->race);
    l->race = NULL;
}

/* The cells of its shared memory are reused by the next block. */
static void block_free(emu_block *b)
{
    emu_race *r = b->race;
    if (!r)
        return;
    free(b->launch->race->spare);
    b->launch->race->spare = r->shared;
    free(r->grid);
    free(r);
    b->race = NULL;
}

static void block_begin(emu_block *b)
{
    emu_launch *l = b->launch;
    block_free(b);
    emu_race *r = b->race = emu_alloc(sizeof *r);
    r->run = new_run();
    r->time = 1;
    r->clocks = b->warp_count * (l->program->plans->copies_arrive ? 2 : 1);
    r->shared = l->race->spare;
    l->race->spare = NULL;
    if (!r->shared)
        r->shared = emu_alloc((b->shared_bytes / 4 + 8) * sizeof(emu_race_cell));
}

/* ---- clocks -------------------------------------------------------------------------------------------------------- */

/* All lanes of the warp know each other's accesses up to `time`. */
static void know_own_warp(emu_race *r, unsigned warp, uint32_t time)
{
    for (unsigned i = 0; i < EMU_LANES; i++) {
        for (unsigned k = 0; k < EMU_LANES; k++)
            raise_to(&r->of[warp].lanes[i][k], time);
        raise_to(&r->of[warp].all[i], time);
    }
}

static size_t grid_index(const emu_block *b, uint64_t block, unsigned clock)
{
    return (size_t)block * b->race->clocks + clock;
}

static void acquire(emu_warp *w, const sync_object *p, bool wide)
{
    emu_block *b = w->block;
    emu_race *r = b->race;
    size_t count = (size_t)b->launch->block_count * r->clocks;
    uint32_t *own = r->known[w->id], before = own[w->id];
    for (unsigned v = 0; v < r->clocks; v++) {
        if (p->block == b->index)
            raise_to(&own[v], p->narrow[v]);
        if (p->wide)
            raise_to(&own[v], p->wide[grid_index(b, b->index, v)]);
    }
    if (own[w->id] != before)
        know_own_warp(r, w->id, own[w->id]);
    if (!wide || !p->wide)
        return;
    if (!r->grid)
        r->grid = emu_alloc(count * sizeof *r->grid);
    for (size_t k = 0; k < count; k++)
        raise_to(&r->grid[k], p->wide[k]);
}

static void acquire_reads(emu_warp *w, bool wide)
{
    emu_race *r = w->block->race;
    for (unsigned n = 0; n < RACE_READS && n < r->of[w->id].read_count; n++)
        acquire(w, r->of[w->id].read[n], wide);
    r->of[w->id].read_count = 0;
}

static void release(emu_warp *w, sync_object *p, uint32_t time, bool wide)
{
    emu_block *b = w->block;
    emu_race *r = b->race;
    size_t count = (size_t)b->launch->block_count * r->clocks;
    if (p->block != b->index)
        memset(p->narrow, 0, sizeof p->narrow);
    p->block = b->index;
    if (wide && !p->wide)
        p->wide = emu_arena_alloc(&b->launch->race->arena, count * sizeof *p->wide);
    for (unsigned v = 0; v < r->clocks; v++) {
        uint32_t known = v == w->id ? time : r->known[w->id][v];
        raise_to(&p->narrow[v], known);
        if (wide)
            raise_to(&p->wide[grid_index(b, b->index, v)], known);
    }
    for (size_t k = 0; wide && r->grid && k < count; k++)
        raise_to(&p->wide[k], r->grid[k]);
}

static void remember_read(emu_warp *w, sync_object *p)
{
    emu_race *r = w->block->race;
    r->of[w->id].read[r->of[w->id].read_count++ % RACE_READS] = p;
}

static void release_fenced(emu_warp *w, sync_object *p, uint32_t lane, bool wide)
{
    emu_race *r = w->block->race;
    if (r->of[w->id].fenced[lane])
        release(w, p, r->of[w->id].fenced[lane], wide && r->of[w->id].fence_scope[lane] == 2);
}

static void barrier_arrive(emu_warp *w, const emu_fragment *arriving)
{
    emu_race *r = w->block->race;
    uint32_t *clock = r->arrived[arriving->barrier];
    for (unsigned v = 0; v < r->clocks; v++)
        raise_to(&clock[v], v == w->id ? r->time : r->known[w->id][v]);
    r->time++;
}

static void barrier_complete(emu_block *b, unsigned number)
{
    emu_race *r = b->race;
    uint32_t *clock = r->arrived[number];
    for (unsigned n = 0; n < b->warp_count; n++) {
        if (!(b->barriers[number].waiting >> n & 1))
            continue;
        for (unsigned v = 0; v < r->clocks; v++)
            raise_to(&r->known[n][v], clock[v]);
        know_own_warp(r, n, r->time);
        acquire_reads(&b->warps[n], true);
        r->time++;
    }
    memset(clock, 0, sizeof r->arrived[number]);
}

static void warp_sync(emu_warp *w, uint32_t lanes)
{
    emu_race *r = w->block->race;
    uint32_t known[EMU_LANES] = {0}, least = UINT32_MAX;
    for (unsigned k = 0; k < EMU_LANES; k++) {
        for (unsigned i = 0; i < EMU_LANES; i++)
            if (lanes >> i & 1)
                raise_to(&known[k], lanes >> k & 1 ? r->time : r->of[w->id].lanes[i][k]);
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

static void note_proxy_fence(emu_race *r, unsigned warp)
{
    memmove(&r->proxied[warp][1], &r->proxied[warp][0], (RACE_PROXIED - 1) * sizeof r->proxied[0][0]);
    r->proxied[warp][0].step = r->step;
    r->proxied[warp][0].time = r->time;
}

static void fence(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_race *r = w->block->race;
    const emu_plan *plan = emu_plan_of(w, op);
    unsigned scope = plan->scope;
    if (plan->joins_proxies)
        note_proxy_fence(r, w->id);
    if (plan->flow != EMU_FLOW_FENCE) /* a proxy fence */
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

static emu_race_cell *find_cell(emu_warp *w, const emu_op *op, uint64_t at, uint64_t *run)
{
    emu_block *b = w->block;
    emu_race *r = b->race;
    uint64_t shared = at - (uint64_t)(uintptr_t)b->shared;
    if (shared < b->shared_bytes) {
        *run = r->run;
        return &r->shared[shared / 4];
    }
    emu_allocation *a = emu_allocation_at(b, op, at);
    if (!a || a->kind == EMU_ALLOCATION_CONST)
        return NULL;
    if (!a->race_cells) {
        a->race_bytes = (a->mapped_bytes / 4 + 8) * sizeof(emu_race_cell);
        void *p = mmap(NULL, a->race_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return NULL;
        a->race_cells = p;
    }
    *run = b->launch->race->run;
    return a->race_cells + (at - a->base) / 4;
}

static sync_object *sync_object_at(emu_launch *l, uint64_t at, uint64_t run)
{
    emu_race_grid *g = l->race;
    sync_object **bucket = &g->sync_objects[(at >> 2 ^ at >> 14 ^ run) % 4096];
    for (sync_object *p = *bucket; p; p = p->next)
        if (p->address == at && p->run == run)
            return p;
    sync_object *p = emu_arena_alloc(&g->arena, sizeof *p);
    *p = (sync_object){.next = *bucket, .address = at, .run = run, .block = UINT64_MAX};
    *bucket = p;
    return p;
}

/* ---- copies and mbarriers ------------------------------------------------------------------------------------------ */

static uint64_t host_of(const emu_block *b, uint32_t shared)
{
    return (uint64_t)(uintptr_t)b->shared + shared;
}

/* An mbarrier has two sync objects. Their addresses are its own, a multiple of 8, plus 1 and plus 2. */
static sync_object *arrivals_at(emu_block *b, uint64_t at)
{
    return sync_object_at(b->launch, at + 1, b->race->run);
}

static sync_object *ended_phase_at(emu_block *b, uint64_t at)
{
    return sync_object_at(b->launch, at + 2, b->race->run);
}

static void use_mbarrier(emu_warp *w, const emu_plan *plan, uint32_t lane, uint64_t at)
{
    emu_race *r = w->block->race;
    if (plan->order & EMU_RELEASE)
        release(w, arrivals_at(w->block, at), r->time++, false);
    else if (plan->order & EMU_RELAXED)
        release_fenced(w, arrivals_at(w->block, at), lane, false);
}

static void phase_ended(emu_block *b, uint32_t mbarrier)
{
    const emu_race *r = b->race;
    const sync_object *from = arrivals_at(b, host_of(b, mbarrier));
    sync_object *to = ended_phase_at(b, host_of(b, mbarrier));
    to->block = b->index;
    for (unsigned v = 0; v < r->clocks && from->block == b->index; v++)
        raise_to(&to->narrow[v], from->narrow[v]);
}

static void phase_passed(emu_warp *w, const emu_op *op, uint64_t at)
{
    emu_block *b = w->block;
    if (emu_plan_of(w, op)->order & EMU_ACQUIRE)
        acquire(w, ended_phase_at(b, at), false);
    else
        remember_read(w, ended_phase_at(b, at));
}

/* A thread that waits for its groups knows all its copies, also those that arrive at mbarriers. */
static void copies_awaited(emu_block *b, uint32_t warp, uint32_t lanes)
{
    emu_race *r = b->race;
    if (lanes && r->clocks > b->warp_count)
        raise_to(&r->known[warp][b->warp_count + warp], r->time);
}

static void complete_access(emu_block *b, race_record *o, uint32_t thread, bool by_mbarrier)
{
    uint32_t warp = thread / EMU_LANES, bit = 1u << thread % EMU_LANES;
    if (o->block != b->index || o->clock != warp || !(o->pending & bit))
        return;
    o->pending &= ~bit;
    if (o->pending)
        return;
    o->time = b->race->time;
    o->clock = (uint8_t)(by_mbarrier ? b->warp_count + warp : warp);
}

static void complete_source(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    const emu_allocation *a = c->read ? emu_memory_holding(c->from, c->read) : NULL;
    if (!a || !a->race_cells)
        return;
    for (uint64_t word = c->from & ~UINT64_C(3); word < c->from + c->read; word += 4) {
        emu_race_cell *cell = a->race_cells + (word - a->base) / 4;
        for (int k = 0; k < 2 && cell->run == b->launch->race->run; k++)
            complete_access(b, &cell->reads[k], c->thread, by_mbarrier);
    }
}

static void copied(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    emu_race *r = b->race;
    if (!c->bytes) { /* an arrival: all earlier copies of its thread are complete */
        unsigned clock = b->warp_count + c->thread / EMU_LANES;
        sync_object *p = arrivals_at(b, host_of(b, c->to));
        if (p->block != b->index)
            *p = (sync_object){.next = p->next, .address = p->address, .run = p->run, .block = b->index};
        raise_to(&p->narrow[clock], r->time++);
        return;
    }
    for (unsigned k = 0; k < c->bytes; k += 4)
        complete_access(b, &r->shared[(c->to + k) / 4].write, c->thread, by_mbarrier);
    complete_source(b, c, by_mbarrier);
}

/* Turns a product's reads into reads of its warp at this moment. Lane n made the reads n, n + 32, and so on. */
static void product_done(emu_warp *w, const emu_product *p, unsigned count, const uint64_t *at)
{
    emu_block *b = w->block;
    emu_wgmma f = emu_wgmma_of(p->op);
    unsigned of_b = 2u * f.n, of_a = count - of_b;
    for (unsigned n = 0; n < count; n++) {
        uint32_t lane = (n < of_a ? n : n - of_a) % EMU_LANES;
        emu_race_cell *cell = &b->race->shared[(at[n] - host_of(b, 0)) / 4];
        for (unsigned k = 0; k < 4; k++, cell++)
            for (int r = 0; r < 2 && cell->run == b->race->run; r++)
                complete_access(b, &cell->reads[r], w->id * EMU_LANES + lane, false);
    }
}

/* ---- accesses ------------------------------------------------------------------------------------------------------ */

static inline bool is_ordered(const emu_warp *w, const race_record *o, uint32_t lane)
{
    const emu_block *b = w->block;
    const emu_race *r = b->race;
    if (o->pending)
        return false;
    if (o->block != b->index)
        return r->grid && r->grid[grid_index(b, o->block, o->clock)] >= o->time;
    if (o->clock != w->id)
        return r->known[w->id][o->clock] >= o->time;
    if (r->of[w->id].all[lane] >= o->time || o->flags & RACE_OF_WARP)
        return true;
    for (uint32_t others = o->lanes & ~(1u << lane); others; others &= others - 1)
        if (r->of[w->id].lanes[lane][__builtin_ctz(others)] < o->time)
            return false;
    return true;
}

static bool are_strong(const emu_warp *w, const race_record *a, const race_record *b)
{
    uint8_t both = a->flags & b->flags;
    return (both & RACE_STRONG) && (a->block == w->block->index || (both & RACE_WIDE));
}

/* One access of one warp, while the words of its lanes are checked. */
typedef struct race_access {
    emu_warp *warp;
    const emu_op *op;
    const emu_plan *plan;
    unsigned bytes;
    bool reads, writes;
    race_record now; /* of lane `lane` */
    uint32_t lane;
    uint64_t at;
    /* lanes that race with the same instruction, and the first such pair */
    uint32_t racing;
    race_record other;
    bool other_wrote;
    bool is_same; /* both write the same value */
    uint64_t racing_at;
    /* lanes of a product that read a generic-proxy write without a proxy fence */
    uint32_t unproxied;
    race_record unproxied_write;
    uint64_t unproxied_at;
} race_access;

/* True if the store writes the value that the other write has left there. */
static bool is_same_value(const race_access *a, const race_record *o)
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

static void report(race_access *a)
{
    char place[160], thread[96], source[EMU_SOURCE_BYTES];
    emu_warp *w = a->warp;
    const race_record *o = &a->other;
    const emu_launch *l = w->block->launch;
    if (!a->racing)
        return;
    bool same_warp = o->block == w->block->index && o->clock == w->id;
    uint32_t first = (uint32_t)__builtin_ctz(a->racing), lanes = o->pending ? o->pending : o->lanes;
    uint32_t others = same_warp && !o->pending ? lanes & ~(1u << first) : lanes;
    uint32_t t =
        o->clock % w->block->warp_count * EMU_LANES + (uint32_t)__builtin_ctz(others ? others : lanes);
    emu_describe_thread(w, o->block, t, thread, sizeof thread);
    const char *verb = a->writes ? "writes" : "reads", *other_verb = a->other_wrote ? "writes" : "reads";
    unsigned line = l->program->instructions[o->at]->line;
    emu_describe_place(w, a->racing_at, place, sizeof place);
    emu_source_of(l->program, o->at, source);
    if (o->pending)
        emu_note(
            w, a->op, a->racing, o->at,
            "races: %s %u bytes at %s, which a %s of %s, in line %u%s, still %s: nothing has waited for it",
            verb, a->bytes, place, l->program->instructions[o->at]->opcode.at[0] == 'w' ? "product" : "copy",
            thread, line, source, other_verb);
    else
        emu_note(w, a->op, a->racing, o->at,
                 "races: %s %u bytes at %s, which %s %s in line %u%s with nothing to order the two%s", verb,
                 a->bytes, place, thread, other_verb, line, source, a->is_same ? ", the same value" : "");
    a->racing = 0;
}

static void race_with(race_access *a, const race_record *o, bool other_wrote, bool is_same)
{
    if (a->racing && (o->at != a->other.at || other_wrote != a->other_wrote || is_same != a->is_same))
        report(a);
    if (!a->racing) {
        a->other = *o;
        a->other_wrote = other_wrote;
        a->is_same = is_same;
        a->racing_at = a->at;
    }
    a->racing |= 1u << a->lane;
}

static bool is_race(const race_access *a, const race_record *o)
{
    return o->time && (o->bytes & a->now.bytes) && !is_ordered(a->warp, o, a->lane) &&
           !are_strong(a->warp, o, &a->now);
}

static void note_readers(uint32_t readers[4], const race_record *now)
{
    for (unsigned k = 0; k < 4; k++)
        readers[k] |= now->bytes >> k & 1 ? now->lanes : 0;
}

static void join_read(emu_race_cell *c, int k, const race_record *now)
{
    race_record *o = &c->reads[k];
    if (!o->is_mixed && o->bytes != now->bytes) {
        memset(c->readers[k], 0, sizeof c->readers[k]);
        note_readers(c->readers[k], o);
        o->is_mixed = true;
    }
    if (o->is_mixed)
        note_readers(c->readers[k], now);
    o->lanes |= now->lanes;
    o->pending |= now->pending;
    o->bytes |= now->bytes;
    o->at = now->at;
}

static void note_read(emu_race_cell *c, const race_record *now)
{
    for (int k = 0; k < 2; k++) { /* the lanes of a warp share a record */
        race_record *o = &c->reads[k];
        bool same_warp = o->time && o->block == now->block && o->clock == now->clock;
        if (same_warp && o->pending && !now->pending)
            continue;
        if (same_warp && o->time == now->time && o->flags == now->flags) {
            join_read(c, k, now);
            return;
        }
        if (!o->time || same_warp) {
            *o = *now;
            return;
        }
    }
    c->reads[1] = *now;
}

/* The k-th reads, reduced to the lanes that read one of these bytes. */
static race_record readers_of(const emu_race_cell *c, int k, uint8_t bytes)
{
    race_record o = c->reads[k];
    uint32_t lanes = !o.is_mixed && (o.bytes & bytes) ? o.lanes : 0;
    for (unsigned n = 0; n < 4 && o.is_mixed; n++)
        lanes |= bytes >> n & 1 ? c->readers[k][n] : 0;
    o.lanes &= lanes;
    o.pending &= lanes;
    if (!o.lanes)
        o.time = 0;
    return o;
}

/* True if a proxy fence came after the write: in the writer's warp, in this one, or in a warp that this one has
   synchronised with since. */
static bool is_proxied(const emu_warp *w, const race_record *o)
{
    const emu_race *r = w->block->race;
    unsigned count = w->block->warp_count;
    if (r->proxied[o->clock % count][0].step >= o->step || r->proxied[w->id][0].step >= o->step)
        return true;
    for (unsigned n = 0; n < count; n++)
        for (unsigned k = 0; k < RACE_PROXIED && r->proxied[n][k].step >= o->step; k++)
            if (r->known[w->id][n] >= r->proxied[n][k].time)
                return true;
    return false;
}

/* True if a product reads a write of the generic proxy. Data copied by cp.async is not checked. */
static bool is_in_other_proxy(const race_access *a, const race_record *o)
{
    const emu_program *p = a->warp->block->launch->program;
    return a->plan->flow == EMU_FLOW_PRODUCT && o->time && !o->pending && (o->bytes & a->now.bytes) &&
           !is_proxied(a->warp, o) && !emu_text_is(p->instructions[o->at]->opcode, "cp");
}

static void report_proxy(const race_access *a)
{
    char place[160], thread[96], source[EMU_SOURCE_BYTES];
    const race_record *o = &a->unproxied_write;
    const emu_program *p = a->warp->block->launch->program;
    if (!a->unproxied)
        return;
    uint32_t writer = o->clock % a->warp->block->warp_count * EMU_LANES + (uint32_t)__builtin_ctz(o->lanes);
    emu_note(a->warp, a->op, a->unproxied, o->at,
             "reads %u bytes at %s, which %s writes in line %u%s, with no fence.proxy.async between the two",
             a->bytes, emu_describe_place(a->warp, a->unproxied_at, place, sizeof place),
             emu_describe_thread(a->warp, o->block, writer, thread, sizeof thread),
             p->instructions[o->at]->line, emu_source_of(p, o->at, source));
}

static void check_word(race_access *a, emu_race_cell *c)
{
    if (is_race(a, &c->write)) {
        const bool is_same = a->writes && !a->reads && is_same_value(a, &c->write);
        if (!is_same || a->warp->block->launch->races_of_same)
            race_with(a, &c->write, true, is_same);
    } else if (is_in_other_proxy(a, &c->write)) {
        if (!a->unproxied) {
            a->unproxied_write = c->write;
            a->unproxied_at = a->at;
        }
        a->unproxied |= 1u << a->lane;
    }
    for (int k = 0; a->writes && k < 2; k++) {
        if (!c->reads[k].time)
            continue;
        race_record seen = readers_of(c, k, a->now.bytes);
        if (is_race(a, &seen))
            race_with(a, &seen, false, false);
    }
    if (!a->writes) {
        note_read(c, &a->now);
        return;
    }
    c->write = a->now;
    /* Drops reads that this write is ordered after. Skips a read without a time: it may be of an earlier launch, and of a
       block that this launch does not have. */
    for (int k = 0; k < 2; k++)
        if (c->reads[k].time && is_ordered(a->warp, &c->reads[k], a->lane))
            c->reads[k].time = 0;
}

static void synchronise(race_access *a, uint64_t run, bool wide)
{
    emu_race *r = a->warp->block->race;
    sync_object *p = sync_object_at(a->warp->block->launch, a->at, run);
    if (a->reads && (a->plan->order & EMU_ACQUIRE))
        acquire(a->warp, p, wide);
    else if (a->reads)
        remember_read(a->warp, p);
    if (a->writes && (a->plan->order & EMU_RELEASE))
        release(a->warp, p, r->time++, wide);
    else if (a->writes)
        release_fenced(a->warp, p, a->lane, wide);
}

/* Drops the accesses of an earlier run. */
static void reset_cell(emu_race_cell *c, uint64_t run)
{
    c->run = run;
    c->write.time = c->reads[0].time = c->reads[1].time = 0;
    c->write.pending = c->reads[0].pending = c->reads[1].pending = 0;
}

static bool is_asynchronous(const emu_plan *p)
{
    return p->flow == EMU_FLOW_COPY || p->flow == EMU_FLOW_PRODUCT;
}

static void check_lane(race_access *a, bool strong, bool wide)
{
    emu_warp *w = a->warp;
    emu_race *r = w->block->race;
    uint64_t run = 0;
    uint32_t bit = 1u << a->lane;
    if (a->plan->flow == EMU_FLOW_MBARRIER)
        use_mbarrier(w, a->plan, a->lane, a->at);
    else if (strong && find_cell(w, a->op, a->at, &run))
        synchronise(a, run, wide);
    a->now = (race_record){.block = (uint32_t)w->block->index,
                           .time = r->time,
                           .step = r->step,
                           .lanes = bit,
                           .pending = is_asynchronous(a->plan) ? bit : 0,
                           .at = a->op->at,
                           .clock = (uint8_t)w->id,
                           .flags = (uint8_t)((strong ? RACE_STRONG : 0) | (wide ? RACE_WIDE : 0) |
                                              (a->plan->flow == EMU_FLOW_PRODUCT ? RACE_OF_WARP : 0))};
    emu_race_cell *c = find_cell(w, a->op, a->at, &run);
    const uint64_t end = a->at + a->bytes;
    for (uint64_t word = a->at & ~UINT64_C(3); c && word < end; word += 4, c++) {
        if (c->run != run)
            reset_cell(c, run);
        a->now.bytes = (uint8_t)((word < a->at ? ALL_BYTES << (a->at - word) : ALL_BYTES) &
                                 (end < word + 4 ? ALL_BYTES >> (word + 4 - end) : ALL_BYTES));
        check_word(a, c);
    }
}

static void access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                   const uint64_t at[EMU_LANES])
{
    const emu_plan *plan = emu_plan_of(w, op);
    bool is_atomic = plan->flow == EMU_FLOW_ATOMIC || plan->flow == EMU_FLOW_MBARRIER;
    unsigned scope = op->mods.flags & EMU_SCOPE;
    bool wide = scope == 0 || scope >= EMU_SCOPE_GPU, strong = is_atomic || (op->mods.flags & EMU_STRONG);
    race_access a = {
        .warp = w, .op = op, .plan = plan, .bytes = bytes, .reads = is_atomic || !writes, .writes = writes};
    w->block->race->step++;
    if (plan->reads_only || op->mods.space == EMU_CONST || op->mods.space == EMU_PARAM ||
        op->mods.space == EMU_LOCAL)
        return;
    for (a.lane = 0; a.lane < EMU_LANES; a.lane++)
        if (mask >> a.lane & 1) {
            a.at = at[a.lane];
            check_lane(&a, strong, wide);
        }
    report(&a);
    report_proxy(&a);
}

const emu_observer emu_race_check = {
    .launch_begin = launch_begin,
    .launch_end = launch_end,
    .block_begin = block_begin,
    .block_free = block_free,
    .access = access,
    .fence = fence,
    .warp_sync = warp_sync,
    .barrier_arrive = barrier_arrive,
    .barrier_complete = barrier_complete,
    .copied = copied,
    .copies_awaited = copies_awaited,
    .phase_ended = phase_ended,
    .phase_passed = phase_passed,
    .product_done = product_done,
};

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* Reuses the cells of freed allocations, since fresh pages are slow. Stale cells do no harm: their run has another number.
   The callers hold the lock of all memory. */
enum { KEPT_ARRAYS = 8, MOST_KEPT_BYTES = 1 << 25 };

static struct kept {
    uint64_t bytes; /* bytes of the allocation that the cells were made for; 0: free */
    emu_race_cell *cells;
    uint64_t cell_bytes;
} kept[KEPT_ARRAYS];

/* Keeps the largest arrays: replaces the smallest one if this is larger. */
static void freed(emu_allocation *a)
{
    if (!a->race_cells)
        return;
    struct kept new = {a->bytes, a->race_cells, a->race_bytes}, *least = &kept[0];
    for (size_t i = 1; i < KEPT_ARRAYS; i++)
        least = kept[i].bytes < least->bytes ? &kept[i] : least;
    if (new.bytes > least->bytes &&new.cell_bytes <= MOST_KEPT_BYTES) {
        struct kept old = *least;
        *least = new;
        new = old;
    }
    if (new.bytes)
        munmap(new.cells, new.cell_bytes);
    a->race_cells = NULL;
}

/* Takes the smallest array that is large enough. */
static void allocated(emu_allocation *a)
{
    struct kept *best = NULL;
    for (size_t i = 0; i < KEPT_ARRAYS; i++)
        if (kept[i].bytes >= a->bytes && (!best || kept[i].bytes < best->bytes))
            best = &kept[i];
    if (!best)
        return;
    a->race_cells = best->cells;
    a->race_bytes = best->cell_bytes;
    *best = (struct kept){0};
}

const emu_memory_observer emu_race_memory = {.allocated = allocated, .freed = freed};
