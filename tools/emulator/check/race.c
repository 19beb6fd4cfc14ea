/* Reports races within a launch: two accesses to one word by different threads, at least one of them a write, that are not ordered
   and not both strong with a sufficient scope (ISA 8.6 to 8.10). All blocks of the launch run on one host thread, so accesses have
   one order, and only the later access of a pair needs a check.

   Time is a counter per block, which every release advances. Each warp has a vector clock: the times up to which it knows the
   accesses of the other warps of its block. Each lane has one for the lanes of its warp. A barrier merges the clocks of the warps
   that arrived into those that wait; bar.warp.sync does so for its lanes. Lockstep execution, shuffles and votes order nothing. A
   release (a strong write with .release, or one after a fence) merges its warp's clock into the address; an acquire (a strong read
   with .acquire, or one with a fence or a barrier after it) merges it into the reader. Simplifications that may miss a race: what
   one lane acquires counts for its warp, and from another block for its whole block; a cell keeps one write and the readers of two
   warps; if several threads wrote bytes of a word, only the last one is known. Writes of the value that is already there do not
   count, unless `same` is on. Loads of read-only data have their own rules: read_only.c.

   Warps know the warps of other blocks of their cluster (ISA 2.2.2) in the same way: barrier.cluster passes on what its warps
   knew when they arrived, with .relaxed what they knew at their last fence. An operation on an mbarrier that states no scope
   counts as one of cluster scope, which may miss a race. A thread must have synchronised with another block before it accesses
   that block's shared memory, and the block must have synchronised with the access before it ends.

   Asynchronous copies and mbarriers (ISA 8.9.1.1, 9.7.9.25, 9.7.13.15). A copy is ordered after what its thread did before it.
   While its records are pending, nothing is ordered after it, not even its own thread. A wait of the thread turns them into the
   thread's own accesses at that time. If they arrive at an mbarrier instead, they become accesses of the warp's second clock,
   which only the end of that phase passes on: cp.async.mbarrier.arrive releases nothing else. What arrivals release is
   collected, and becomes the phase's when it ends; a test that sees the end acquires it. An arrival between the ends of two phases
   may count for the first, which may miss a race.

   Products of wgmma (ISA 9.7.15.4) read shared memory like copies, in the async proxy: as accesses of their warpgroup's clock,
   pending until a warp has waited for their group. Each warp knows the products that it has waited for. Unless `warpgroup`
   is on, a product is ordered after all that its warpgroup knew when the four warps met at their last wgmma.fence (core/wgmma.h).
   Two simplifications may miss a race: if two products in flight read the same bytes, the first wait counts for both; and any
   proxy fence of the writer's or the product's warp after the write counts.

   Bulk copies (ISA 9.7.9.25.4, 9.7.9.27) also access memory in the async proxy, and are pending like the others. A load that
   lands becomes an access of its mbarrier's clock, which the end of the phase passes on; this orders nothing else that the
   issuing thread did. A wait for a group turns the group's accesses into accesses of the thread. Tensor maps are read in a proxy
   of their own. If a thread has two copies of the same bytes in flight, the first to complete counts for both. */
#include "check.h"
#include "lanes.h"
#include "plan.h"

#include "../core/async.h"
#include "../core/bulk.h"
#include "../core/tensor_map.h"
#include "../core/wgmma.h"
#include "../exec/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    RACE_STRONG = 1,
    RACE_CLUSTER = 2, /* scope: cluster or wider */
    RACE_WIDE = 4,    /* scope: grid */
    RACE_MIXED = 8,   /* reads: the lanes read different bytes */
    RACE_ASYNC = 16   /* in the async proxy */
};
enum { ALL_BYTES = 15 /* of a word, one bit per byte */ };

#define RACE_WARPS 32
/* If copies arrive at mbarriers, a warp has two clocks: its own, and one for these copies. Each mbarrier has a clock for the
   bulk copies that complete there; beyond 32, mbarriers share clocks. Each warpgroup has one for its products. */
#define RACE_MBARRIERS 32u

typedef struct race_record {
    uint32_t block;
    uint32_t time, step; /* time 0: no access; step: number of the access in its block */
    uint32_t lanes;
    uint32_t pending; /* lanes whose copy or product is in flight: ordered before nothing */
    uint32_t at;
    uint8_t clock, bytes, flags;
    uint8_t warp; /* the warp in its block that executed the instruction */
} race_record;

/* The last accesses of one word. The fields that most accesses need fill the first cache line. */
typedef struct emu_race_cell {
    uint64_t run; /* number of the block run, or of the launch for global memory */
    race_record write, reads[2];
    uint32_t readers[2][4]; /* with RACE_MIXED: for each read, the lanes that read each byte */
} emu_race_cell;

/* The clocks that releases merged into an address, by the scope of the release. */
typedef struct sync_object {
    struct sync_object *next;
    uint64_t address, run;
    const emu_block *holder; /* block that owns the shared memory; NULL: global memory */
    uint64_t block, cluster; /* origin of `narrow` and `near` */
    uint32_t *narrow, *near; /* by block and clock of the cluster; near is NULL in a cluster of one block */
    uint32_t *wide;          /* by block and clock, for the whole grid */
} sync_object;

/* The last access to a block's shared memory by a warp of another block of the cluster; time 0: none. */
typedef struct remote_access {
    uint32_t time, at;
    uint32_t thread;
} remote_access;

typedef struct emu_race_grid {
    emu_arena arena;
    sync_object *sync_objects[4096];
    uint64_t run;
    emu_race_cell *spare; /* cells of an ended block, for the next one to reuse, or NULL */
    uint32_t *proxied; /* by block and warp: time of the last fence.proxy.async; NULL without bulk copies */
} emu_race_grid;

#define RACE_READS   16
#define RACE_PROXIED 8
#define RACE_MAPS    16

typedef struct emu_race {
    uint64_t run;
    uint32_t time, step; /* step: kept by the first block for the whole cluster */
    unsigned clocks;     /* per block */
    unsigned span, own;  /* number of clocks of the cluster; the first one of this block */
    uint32_t *known;     /* by warp and clock of the cluster */
    struct {
        uint32_t lanes[EMU_LANES][EMU_LANES]; /* [i][k]: time up to which lane i knows lane k */
        uint32_t all[EMU_LANES];              /* minimum of each row of `lanes` */
        uint32_t fenced[EMU_LANES];           /* time of the last fence; 0: none */
        uint8_t fence_scope[EMU_LANES];
        sync_object *read[RACE_READS]; /* objects that strong reads found since the last fence */
        unsigned read_count;
    } of[RACE_WARPS];
    uint32_t *arrived; /* by barrier: merged clocks of the warps that have arrived */
    uint32_t *arriving,
        *ended; /* merged clocks of barrier.cluster's current phase, and of the last one; kept by the first block */
    uint32_t *met;         /* by warpgroup: merged clocks of its warps at their last wgmma.fence */
    remote_access *remote; /* by clock of the cluster */
    struct {
        uint32_t step, time;
    } proxied[RACE_WARPS][RACE_PROXIED]; /* each warp's last fences with .proxy.async, newest first */
    struct {
        uint64_t map;
        uint32_t warp, step, time;
    } map_fences[RACE_MAPS]; /* a ring: the last executions of fence.proxy.tensormap for a map */
    unsigned map_fence_count;
    uint32_t mbarriers[RACE_MBARRIERS],
        mbarrier_count; /* mbarriers of bulk copies: rank and offset in shared memory */
    uint32_t *grid;     /* what the block knows of other clusters' clocks, or NULL */
    emu_race_cell *shared;
    emu_race_lanes *lanes; /* by warp; NULL unless the check `lanes` is on */
} emu_race;

static uint32_t *known_of(const emu_race *r, unsigned warp)
{
    return r->known + (size_t)warp * r->span;
}

static emu_race *first_of(const emu_block *b)
{
    return b->cluster->blocks[0].race;
}

/* Branch-free, so that compilers vectorise loops over it. */
static inline void raise_to(uint32_t *to, uint32_t time)
{
    *to = *to < time ? time : *to;
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
    if (l->program->has_bulk)
        l->race->proxied =
            emu_alloc(l->block_count * ((l->threads + EMU_LANES - 1) / EMU_LANES) * sizeof *l->race->proxied);
}

static void launch_end(emu_launch *l)
{
    free(l->race->spare);
    free(l->race->proxied);
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
    free(r->known);
    free(r->remote);
    free(r->grid);
    free(r->lanes);
    free(r);
    b->race = NULL;
}

/* The first clock of an mbarrier. */
static unsigned mbarrier_clocks(const emu_block *b)
{
    return b->warp_count * (b->launch->program->plans->copies_arrive ? 2 : 1);
}

/* The first clock of a warpgroup. */
static unsigned product_clocks(const emu_block *b)
{
    return mbarrier_clocks(b) + (b->launch->program->has_bulk ? RACE_MBARRIERS : 0);
}

static void block_begin(emu_block *b)
{
    emu_launch *l = b->launch;
    block_free(b);
    emu_race *r = b->race = emu_alloc(sizeof *r);
    r->run = new_run();
    r->time = 1;
    unsigned warpgroups = l->program->plans->has_products ? b->warp_count / EMU_WARPGROUP_WARPS : 0;
    r->clocks = product_clocks(b) + warpgroups;
    r->span = r->clocks * b->cluster->count;
    r->own = r->clocks * b->rank;
    r->known = emu_alloc((b->warp_count + EMU_BARRIERS + 2 + warpgroups) * r->span * sizeof *r->known);
    r->arrived = known_of(r, b->warp_count);
    r->arriving = r->arrived + EMU_BARRIERS * r->span;
    r->ended = r->arriving + r->span;
    r->met = r->ended + r->span;
    if (b->cluster->count > 1)
        r->remote = emu_alloc(r->span * sizeof *r->remote);
    if (l->parts_lanes)
        r->lanes = emu_alloc(b->warp_count * sizeof *r->lanes);
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
    if (r->lanes)
        emu_lanes_meet(&r->lanes[warp], EMU_ALL, time);
}

static void note_release(const emu_warp *w, uint32_t lanes, uint32_t time)
{
    const emu_race *r = w->block->race;
    if (r->lanes)
        emu_lanes_release(&r->lanes[w->id], lanes, time, first_of(w->block)->step);
}

static void raise_all(uint32_t *to, const uint32_t *from, size_t count)
{
    for (size_t k = 0; k < count; k++)
        raise_to(&to[k], from[k]);
}

static size_t grid_index(const emu_block *b, uint64_t block, unsigned clock)
{
    return (size_t)block * b->race->clocks + clock;
}

static size_t grid_size(const emu_block *b)
{
    return (size_t)b->launch->block_count * b->race->clocks;
}

static void learn_grid(emu_block *b, const uint32_t *grid)
{
    emu_race *r = b->race;
    if (!r->grid)
        r->grid = emu_alloc(grid_size(b) * sizeof *r->grid);
    raise_all(r->grid, grid, grid_size(b));
}

/* Merges what the other blocks know now, not at the time of a release: this may miss a race. */
static void learn_from_cluster(emu_block *b)
{
    for (unsigned rank = 0; rank < b->cluster->count; rank++) {
        const emu_block *other = &b->cluster->blocks[rank];
        if (other != b && other->race->grid)
            learn_grid(b, other->race->grid);
    }
}

static void acquire(emu_warp *w, const sync_object *p, emu_sync_scope scope)
{
    emu_block *b = w->block;
    emu_race *r = b->race;
    uint32_t *known = known_of(r, w->id), before = known[r->own + w->id];
    if (p->block == b->index)
        raise_all(known, p->narrow, r->span);
    if (scope >= EMU_SYNC_CLUSTER && p->near && p->cluster == b->cluster->index) {
        raise_all(known, p->near, r->span);
        learn_from_cluster(b);
    }
    for (unsigned rank = 0; p->wide && rank < b->cluster->count; rank++)
        if (scope == EMU_SYNC_GRID || rank == b->rank)
            raise_all(known + rank * r->clocks, p->wide + grid_index(b, b->cluster->blocks[rank].index, 0),
                      r->clocks);
    if (known[r->own + w->id] != before)
        know_own_warp(r, w->id, known[r->own + w->id]);
    if (scope == EMU_SYNC_GRID && p->wide)
        learn_grid(b, p->wide);
}

static void acquire_reads(emu_warp *w, emu_sync_scope scope)
{
    emu_race *r = w->block->race;
    for (unsigned n = 0; n < RACE_READS && n < r->of[w->id].read_count; n++)
        acquire(w, r->of[w->id].read[n], scope);
    r->of[w->id].read_count = 0;
}

/* Merges the warp's clock into `to`, with this time as the warp's own. */
static void raise_known(const emu_warp *w, uint32_t *to, uint32_t time)
{
    const emu_race *r = w->block->race;
    uint32_t *known = known_of(r, w->id), own = known[r->own + w->id];
    known[r->own + w->id] = time;
    raise_all(to, known, r->span);
    known[r->own + w->id] = own;
}

static void release(emu_warp *w, sync_object *p, uint32_t lane, uint32_t time, emu_sync_scope scope)
{
    emu_block *b = w->block;
    emu_race *r = b->race;
    note_release(w, 1u << lane, time);
    if (!p->holder || p->holder == b) {
        if (p->block != b->index)
            memset(p->narrow, 0, r->span * sizeof *p->narrow);
        p->block = b->index;
        raise_known(w, p->narrow, time);
    }
    if (scope >= EMU_SYNC_CLUSTER && p->near) {
        if (p->cluster != b->cluster->index)
            memset(p->near, 0, r->span * sizeof *p->near);
        p->cluster = b->cluster->index;
        raise_known(w, p->near, time);
    }
    if (scope < EMU_SYNC_GRID)
        return;
    if (!p->wide)
        p->wide = emu_arena_alloc(&b->launch->race->arena, grid_size(b) * sizeof *p->wide);
    if (r->grid)
        raise_all(p->wide, r->grid, grid_size(b));
    uint32_t *known = known_of(r, w->id), own = known[r->own + w->id];
    known[r->own + w->id] = time;
    for (unsigned rank = 0; rank < b->cluster->count; rank++)
        raise_all(p->wide + grid_index(b, b->cluster->blocks[rank].index, 0), known + rank * r->clocks,
                  r->clocks);
    known[r->own + w->id] = own;
}

static void remember_read(emu_warp *w, sync_object *p)
{
    emu_race *r = w->block->race;
    r->of[w->id].read[r->of[w->id].read_count++ % RACE_READS] = p;
}

static void release_fenced(emu_warp *w, sync_object *p, uint32_t lane, emu_sync_scope scope)
{
    emu_race *r = w->block->race;
    emu_sync_scope fenced = (emu_sync_scope)r->of[w->id].fence_scope[lane];
    if (r->of[w->id].fenced[lane])
        release(w, p, lane, r->of[w->id].fenced[lane], fenced < scope ? fenced : scope);
}

static void barrier_arrive(emu_warp *w, const emu_fragment *arriving)
{
    emu_race *r = w->block->race;
    note_release(w, EMU_ALL, r->time);
    raise_known(w, r->arrived + arriving->barrier * r->span, r->time);
    r->time++;
}

static void barrier_complete(emu_block *b, unsigned number)
{
    emu_race *r = b->race;
    uint32_t *arrived = r->arrived + number * r->span;
    for (unsigned n = 0; n < b->warp_count; n++) {
        if (!(b->barriers[number].waiting >> n & 1))
            continue;
        raise_all(known_of(r, n), arrived, r->span);
        know_own_warp(r, n, r->time);
        acquire_reads(&b->warps[n], EMU_SYNC_GRID);
        r->time++;
    }
    memset(arrived, 0, r->span * sizeof *arrived);
}

/* For .relaxed: returns the time of the warp's last fence of cluster scope or wider, or 0. */
static uint32_t fenced_time(const emu_warp *w)
{
    const emu_race *r = w->block->race;
    uint32_t time = 0;
    for (unsigned i = 0; i < EMU_LANES; i++)
        if ((w->alive >> i & 1) && r->of[w->id].fence_scope[i] >= EMU_SYNC_CLUSTER)
            raise_to(&time, r->of[w->id].fenced[i]);
    return time;
}

static void cluster_arrive(emu_warp *w)
{
    emu_race *r = w->block->race;
    bool is_relaxed = w->fragments[0].pc->mods.flags & EMU_RELAXED;
    uint32_t time = is_relaxed ? fenced_time(w) : r->time;
    if (time) {
        note_release(w, EMU_ALL, time);
        raise_known(w, first_of(w->block)->arriving, time);
    }
    r->time++;
}

static void cluster_complete(emu_cluster *c)
{
    emu_race *r = c->blocks[0].race;
    memcpy(r->ended, r->arriving, r->span * sizeof *r->ended);
    memset(r->arriving, 0, r->span * sizeof *r->arriving);
}

static void cluster_wait(emu_warp *w)
{
    emu_race *r = w->block->race;
    const uint32_t *ended = first_of(w->block)->ended;
    raise_all(known_of(r, w->id), ended, r->span);
    know_own_warp(r, w->id, ended[r->own + w->id]);
    learn_from_cluster(w->block);
    acquire_reads(w, EMU_SYNC_GRID);
    r->time++;
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
    if (r->lanes)
        emu_lanes_meet(&r->lanes[w->id], lanes, r->time);
    r->time++;
}

static void note_proxy_fence(emu_block *b, unsigned warp)
{
    emu_race *r = b->race;
    if (b->launch->race->proxied)
        b->launch->race->proxied[b->index * b->warp_count + warp] = r->time;
    memmove(&r->proxied[warp][1], &r->proxied[warp][0], (RACE_PROXIED - 1) * sizeof r->proxied[0][0]);
    r->proxied[warp][0].step = first_of(b)->step++;
    r->proxied[warp][0].time = r->time;
}

static void fence(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_race *r = w->block->race;
    const emu_plan *plan = emu_plan_of(w, op);
    emu_sync_scope scope = (emu_sync_scope)plan->scope;
    if (plan->joins_proxies)
        note_proxy_fence(w->block, w->id);
    if (plan->flow != EMU_FLOW_FENCE) /* a proxy fence */
        return;
    acquire_reads(w, scope);
    for (unsigned i = 0; i < EMU_LANES; i++)
        if (mask >> i & 1) {
            r->of[w->id].fenced[i] = r->time;
            if (r->of[w->id].fence_scope[i] < (unsigned)scope)
                r->of[w->id].fence_scope[i] = (uint8_t)scope;
        }
    r->time++;
}

/* *holder: the block that owns the shared memory; NULL: global memory. */
static emu_race_cell *find_cell(emu_warp *w, const emu_op *op, uint64_t at, uint64_t *run, emu_block **holder)
{
    emu_block *b = w->block;
    *holder = emu_block_holding(b, at);
    if (*holder) {
        *run = (*holder)->race->run;
        return &(*holder)->race->shared[(at - (uint64_t)(uintptr_t)(*holder)->shared) / 4];
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

static sync_object *sync_object_at(const emu_block *b, uint64_t at, uint64_t run, const emu_block *holder)
{
    emu_race_grid *g = b->launch->race;
    size_t bytes = b->race->span * sizeof(uint32_t);
    sync_object **bucket = &g->sync_objects[(at >> 2 ^ at >> 14 ^ run) % 4096];
    for (sync_object *p = *bucket; p; p = p->next)
        if (p->address == at && p->run == run)
            return p;
    sync_object *p = emu_arena_alloc(&g->arena, sizeof *p);
    *p = (sync_object){.next = *bucket,
                       .address = at,
                       .run = run,
                       .holder = holder,
                       .block = holder ? holder->index : UINT64_MAX,
                       .cluster = UINT64_MAX,
                       .narrow = emu_arena_alloc(&g->arena, bytes),
                       .near = b->cluster->count > 1 ? emu_arena_alloc(&g->arena, bytes) : NULL};
    *bucket = p;
    return p;
}

/* ---- copies and mbarriers ------------------------------------------------------------------------------------------ */

static uint64_t host_of(const emu_block *b, uint32_t shared)
{
    return (uint64_t)(uintptr_t)b->shared + shared;
}

/* An mbarrier has two sync objects, at its own address, a multiple of 8, plus 1 and plus 2. */
static sync_object *arrivals_at(const emu_block *holder, uint64_t at)
{
    return sync_object_at(holder, at + 1, holder->race->run, holder);
}

static sync_object *ended_phase_at(const emu_block *holder, uint64_t at)
{
    return sync_object_at(holder, at + 2, holder->race->run, holder);
}

static emu_sync_scope scope_at_mbarrier(const emu_op *op)
{
    return (op->mods.flags & EMU_SCOPE) == EMU_SCOPE_CTA ? EMU_SYNC_BLOCK : EMU_SYNC_CLUSTER;
}

static void use_mbarrier(emu_warp *w, const emu_op *op, const emu_plan *plan, uint32_t lane, uint64_t at,
                         const emu_block *holder)
{
    emu_race *r = w->block->race;
    if (plan->order & EMU_RELEASE)
        release(w, arrivals_at(holder, at), lane, r->time++, scope_at_mbarrier(op));
    else if (plan->order & EMU_RELAXED)
        release_fenced(w, arrivals_at(holder, at), lane, scope_at_mbarrier(op));
}

static void phase_ended(emu_block *b, uint32_t mbarrier)
{
    const emu_race *r = b->race;
    const sync_object *from = arrivals_at(b, host_of(b, mbarrier));
    sync_object *to = ended_phase_at(b, host_of(b, mbarrier));
    raise_all(to->narrow, from->narrow, r->span);
    if (from->near) {
        to->cluster = b->cluster->index;
        raise_all(to->near, from->near, r->span);
    }
}

static void phase_passed(emu_warp *w, const emu_op *op, uint64_t at)
{
    emu_block *b = w->block;
    if (emu_plan_of(w, op)->order & EMU_ACQUIRE)
        acquire(w, ended_phase_at(b, at), scope_at_mbarrier(op));
    else
        remember_read(w, ended_phase_at(b, at));
}

/* A thread that waits for its groups knows all its copies, also those that arrive at mbarriers. */
static void copies_awaited(emu_block *b, uint32_t warp, uint32_t lanes)
{
    emu_race *r = b->race;
    if (lanes && b->launch->program->plans->copies_arrive)
        raise_to(&known_of(r, warp)[r->own + b->warp_count + warp], r->time);
}

static uint8_t clock_of(const emu_block *b, uint32_t thread, bool by_mbarrier)
{
    return (uint8_t)((by_mbarrier ? b->warp_count : 0) + thread / EMU_LANES);
}

/* Ends the lane's pending access, which then belongs to the clock `to`. */
static void end_access(emu_block *b, race_record *o, uint8_t from, uint32_t lane, uint8_t to)
{
    if (o->block != b->index || o->clock != from || !(o->pending >> lane & 1))
        return;
    o->pending &= ~(1u << lane);
    if (o->pending)
        return;
    o->time = b->race->time;
    o->step = first_of(b)->step;
    o->clock = to;
}

static void complete_access(emu_block *b, race_record *o, uint32_t thread, uint8_t clock)
{
    end_access(b, o, (uint8_t)(thread / EMU_LANES), thread % EMU_LANES, clock);
}

static void complete_source(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    const emu_allocation *a = c->read ? emu_memory_holding(c->from, c->read) : NULL;
    if (!a || !a->race_cells)
        return;
    for (uint64_t word = c->from & ~UINT64_C(3); word < c->from + c->read; word += 4) {
        emu_race_cell *cell = a->race_cells + (word - a->base) / 4;
        for (int k = 0; k < 2 && cell->run == b->launch->race->run; k++)
            complete_access(b, &cell->reads[k], c->thread, clock_of(b, c->thread, by_mbarrier));
    }
}

static void copied(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    emu_race *r = b->race;
    if (!c->bytes) { /* an arrival: all earlier copies of its thread are complete */
        unsigned clock = r->own + b->warp_count + c->thread / EMU_LANES;
        raise_to(&arrivals_at(b, host_of(b, c->to))->narrow[clock], r->time++);
        return;
    }
    for (unsigned k = 0; k < c->bytes; k += 4)
        complete_access(b, &r->shared[(c->to + k) / 4].write, c->thread, clock_of(b, c->thread, by_mbarrier));
    complete_source(b, c, by_mbarrier);
}

static uint8_t product_clock(const emu_block *b, uint32_t warp)
{
    return (uint8_t)(product_clocks(b) + warp / EMU_WARPGROUP_WARPS);
}

static uint32_t *met_of(const emu_race *r, unsigned warp)
{
    return r->met + (size_t)(warp / EMU_WARPGROUP_WARPS) * r->span;
}

/* The four warps have waited since they reached the fence, so their clocks are still those that they had there. */
static void warpgroup_met(emu_warp *first)
{
    const emu_launch *l = first->block->launch;
    emu_race *r = first->block->race;
    if (!l->program->plans->has_products)
        return;
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++) {
        note_release(&first[n], EMU_ALL, r->time);
        raise_known(&first[n], met_of(r, first->id), r->time);
    }
    r->time++;
}

static void product_read(emu_warp *w, const emu_product *p)
{
    emu_block *b = w->block;
    const uint8_t clock = product_clock(b, w->id);
    uint32_t places[MOST_CHUNKS];
    unsigned of_a, count = chunks_of(w, p, &of_a, places);
    for (unsigned n = 0; n < count; n++) {
        uint32_t lane = (n < of_a ? n : n - of_a) % EMU_LANES;
        emu_race_cell *cell = &b->race->shared[places[n] / 4];
        for (unsigned k = 0; k < 4; k++, cell++)
            for (int r = 0; r < 2 && cell->run == b->race->run; r++)
                end_access(b, &cell->reads[r], clock, lane, clock);
    }
}

static void product_done(emu_warp *w, const emu_product *p)
{
    emu_race *r = w->block->race;
    (void)p;
    raise_to(&known_of(r, w->id)[r->own + product_clock(w->block, w->id)], r->time++);
}

/* ---- bulk copies --------------------------------------------------------------------------------------------------- */

/* Returns the issuing block's clock for copies that complete at the mbarrier. */
static uint8_t clock_of_mbarrier(const emu_bulk *bulk)
{
    const emu_block *b = bulk->from;
    emu_race *r = b->race;
    uint32_t n = 0, mbarrier = bulk->holder->rank << EMU_RANK_SHIFT | bulk->mbarrier;
    while (n < r->mbarrier_count && r->mbarriers[n] != mbarrier)
        n++;
    if (n == r->mbarrier_count && n < RACE_MBARRIERS)
        r->mbarriers[r->mbarrier_count++] = mbarrier;
    return (uint8_t)(mbarrier_clocks(b) + (n < RACE_MBARRIERS ? n : mbarrier / 8 % RACE_MBARRIERS));
}

static void complete_cell(emu_block *b, emu_race_cell *cell, uint64_t run, const emu_bulk *bulk, bool wrote,
                          uint8_t clock)
{
    if (cell->run != run)
        return;
    if (wrote)
        complete_access(b, &cell->write, bulk->thread, clock);
    for (int k = 0; k < 2 && !wrote; k++)
        complete_access(b, &cell->reads[k], bulk->thread, clock);
}

/* Completes the copy's accesses in the holder's shared memory, or those on the other side. */
static void complete_pieces(const emu_bulk *bulk, bool in_shared, uint8_t clock)
{
    emu_block *b = bulk->from;
    bool wrote = in_shared == (bulk->kind == EMU_BULK_LOAD);
    for (uint32_t n = 0; n < bulk->piece_count; n++) {
        const emu_bulk_piece *p = &bulk->pieces[n];
        if (in_shared) {
            for (uint32_t k = p->shared / 4; k * 4 < p->shared + p->bytes; k++)
                complete_cell(b, &bulk->holder->race->shared[k], bulk->holder->race->run, bulk, wrote, clock);
            continue;
        }
        const emu_block *source = p->global ? emu_block_holding(b, p->global) : NULL;
        uint64_t offset = source ? p->global - host_of(source, 0) : 0;
        for (uint64_t k = offset / 4; source && k * 4 < offset + p->bytes; k++)
            complete_cell(b, &source->race->shared[k], source->race->run, bulk, wrote, clock);
        const emu_allocation *a = p->global ? emu_memory_holding(p->global, p->bytes) : NULL;
        for (uint64_t at = p->global & ~UINT64_C(3); a && a->race_cells && at < p->global + p->bytes; at += 4)
            complete_cell(b, a->race_cells + (at - a->base) / 4, b->launch->race->run, bulk, wrote, clock);
    }
}

static void bulk_read(emu_block *b, const emu_bulk *bulk)
{
    (void)b;
    complete_pieces(bulk, true, (uint8_t)(bulk->thread / EMU_LANES));
}

/* The end of the mbarrier's phase passes on the load, and nothing else that its thread did. */
static void bulk_done(emu_block *b, const emu_bulk *bulk)
{
    emu_race *r = bulk->from->race;
    if (bulk->kind != EMU_BULK_LOAD) {
        complete_pieces(bulk, false, (uint8_t)(bulk->thread / EMU_LANES));
        return;
    }
    uint8_t clock = clock_of_mbarrier(bulk);
    sync_object *p = arrivals_at(b, host_of(b, bulk->mbarrier));
    complete_pieces(bulk, true, clock);
    complete_pieces(bulk, false, clock);
    raise_to(&p->narrow[r->own + clock], r->time);
    if (p->near)
        raise_to(&p->near[r->own + clock], r->time);
    r->time++;
}

static void bulk_issue(emu_warp *w, const emu_op *op, const emu_bulk *bulk)
{
    if (bulk->is_repeated && w->block->launch->races_of_same)
        emu_note(w, op, 1u << bulk->thread % EMU_LANES, op->at,
                 "races: stores the same bytes to the same place as another lane of its warp");
}

static void map_fence(emu_warp *w, const emu_op *op, uint32_t mask, const uint64_t at[EMU_LANES])
{
    emu_race *r = w->block->race;
    uint64_t last = 0;
    (void)op;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        if (!(mask >> i & 1) || at[i] == last)
            continue;
        unsigned n = r->map_fence_count++ % RACE_MAPS;
        r->map_fences[n].map = last = at[i];
        r->map_fences[n].warp = w->id;
        r->map_fences[n].step = first_of(w->block)->step;
        r->map_fences[n].time = r->time;
    }
}

/* True if this warp, or one that it has synchronised with since, fenced the map's proxy after the write. */
static bool is_map_fenced(const emu_warp *w, const race_record *o, uint64_t map)
{
    const emu_race *r = w->block->race;
    for (unsigned n = 0; n < RACE_MAPS && n < r->map_fence_count; n++) {
        uint32_t warp = r->map_fences[n].warp;
        bool is_later = o->block != w->block->index || r->map_fences[n].step >= o->step;
        if (r->map_fences[n].map == map && is_later &&
            (warp == w->id || known_of(r, w->id)[r->own + warp] >= r->map_fences[n].time))
            return true;
    }
    return false;
}

/* ---- accesses ------------------------------------------------------------------------------------------------------ */

/* Returns the block with this index, or NULL if it is in another cluster. */
static const emu_block *peer_of(const emu_block *b, uint64_t index)
{
    for (unsigned rank = 0; b->cluster->count > 1 && rank < b->cluster->count; rank++)
        if (b->cluster->blocks[rank].index == index)
            return &b->cluster->blocks[rank];
    return NULL;
}

static bool knows_of_other_block(const emu_warp *w, const race_record *o)
{
    const emu_block *b = w->block, *peer = peer_of(b, o->block);
    const emu_race *r = b->race;
    if (peer)
        return known_of(r, w->id)[peer->race->own + o->clock] >= o->time;
    return r->grid && r->grid[grid_index(b, o->block, o->clock)] >= o->time;
}

static inline bool is_ordered(const emu_warp *w, const race_record *o, uint32_t lane)
{
    const emu_block *b = w->block;
    const emu_race *r = b->race;
    if (o->pending)
        return false;
    if (o->block != b->index)
        return knows_of_other_block(w, o);
    if (o->clock != w->id)
        return known_of(r, w->id)[r->own + o->clock] >= o->time;
    if (r->of[w->id].all[lane] >= o->time)
        return true;
    for (uint32_t others = o->lanes & ~(1u << lane); others; others &= others - 1)
        if (r->of[w->id].lanes[lane][__builtin_ctz(others)] < o->time)
            return false;
    return true;
}

/* With the check `lanes`: returns the lanes of an ordered access that no release covers. */
static uint32_t uncovered_lanes(const emu_warp *w, const race_record *o)
{
    const emu_block *b = w->block, *other = o->block == b->index ? b : peer_of(b, o->block);
    if (!b->race->lanes || !other || o->clock >= b->warp_count || (other == b && o->clock == w->id))
        return 0;
    return emu_lanes_uncovered(&other->race->lanes[o->clock], o->lanes, o->time,
                               known_of(b->race, w->id)[other->race->own + o->clock]);
}

static bool are_strong(const emu_warp *w, const race_record *a, const race_record *b)
{
    uint8_t both = a->flags & b->flags;
    if (!(both & RACE_STRONG) || a->block == w->block->index || (both & RACE_WIDE))
        return both & RACE_STRONG;
    return (both & RACE_CLUSTER) && peer_of(w->block, a->block);
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
    bool is_same;      /* both write the same value */
    const char *order; /* what orders the pair, but not enough */
    uint64_t racing_at;
    uint64_t map; /* the tensor map that is read; 0: none */
    /* lanes that access what was accessed in another proxy */
    uint32_t unproxied;
    race_record unproxied_other;
    bool unproxied_wrote;
    uint64_t unproxied_at;
} race_access;

/* True if the store writes the value that the other write left, or mbarrier.init the same count as another lane. */
static bool is_same_value(const race_access *a, const race_record *o)
{
    const emu_op *op = a->op;
    unsigned count = op->mods.count > 1 ? op->mods.count : 1, each = a->bytes / count;
    bool same_step = o->step == a->now.step && o->block == a->now.block;
    if (a->plan->initialises) {
        const uint32_t *arrivals = emu_lanes(a->warp, op->arg[1]);
        return same_step && arrivals[a->lane] == arrivals[__builtin_ctz(o->lanes)];
    }
    if (a->plan->flow != EMU_FLOW_STORE || o->pending)
        return false;
    for (unsigned n = 0; n < count; n++) {
        const char *v = emu_lanes(a->warp, count > 1 ? op->list[n] : op->arg[1]);
        const char *other = same_step ? v + (size_t)__builtin_ctz(o->lanes) * each
                                      : (const char *)(uintptr_t)a->at + (size_t)n * each;
        if (memcmp(v + (size_t)a->lane * each, other, each) != 0)
            return false;
    }
    return true;
}

/* Names the operation that an access in flight belongs to. */
static const char *name_of(const emu_instruction *i)
{
    return emu_text_is(i->opcode, "wgmma") ? "product"
           : emu_text_is(i->opcode, "st")  ? "store"
           : emu_text_is(i->opcode, "red") ? "reduction"
                                           : "copy";
}

/* True if the access is a product, and its warpgroup knew this time of the clock at its last wgmma.fence. */
static bool knew_at_fence(const race_access *a, unsigned clock, uint32_t time)
{
    return a->plan->flow == EMU_FLOW_PRODUCT && met_of(a->warp->block->race, a->warp->id)[clock] >= time;
}

static bool is_ordered_by_fence(const race_access *a, const race_record *o)
{
    const emu_block *b = a->warp->block, *other = o->block == b->index ? b : peer_of(b, o->block);
    return !o->pending && other && knew_at_fence(a, other->race->own + o->clock, o->time);
}

/* Names what orders the two accesses, but not enough. */
static const char *order_of(const race_access *a, const race_record *o)
{
    return is_ordered(a->warp, o, a->lane)
               ? "only another lane's release, without a warp-wide operation in between,"
           : is_ordered_by_fence(a, o) ? "only wgmma.fence"
                                       : "nothing";
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
    uint32_t t = o->warp * EMU_LANES + (uint32_t)__builtin_ctz(others ? others : lanes);
    emu_describe_thread(w, o->block, t, thread, sizeof thread);
    const char *verb = a->writes ? "writes" : "reads", *other_verb = a->other_wrote ? "writes" : "reads";
    unsigned line = l->program->instructions[o->at]->line;
    emu_describe_place(w, a->racing_at, place, sizeof place);
    emu_source_of(l->program, o->at, source);
    if (o->pending)
        emu_note(
            w, a->op, a->racing, o->at,
            "races: %s %u bytes at %s, which a %s of %s, in line %u%s, still %s: nothing has waited for it",
            verb, a->bytes, place, name_of(l->program->instructions[o->at]), thread, line, source,
            other_verb);
    else
        emu_note(w, a->op, a->racing, o->at,
                 "races: %s %u bytes at %s, which %s%s %s in line %u%s with %s to order the two%s", verb,
                 a->bytes, place,
                 emu_text_is(l->program->instructions[o->at]->opcode, "cp") ? "a copy of " : "", thread,
                 other_verb, line, source, a->order, a->is_same ? ", the same value" : "");
    a->racing = 0;
}

static void race_with(race_access *a, const race_record *o, bool other_wrote, bool is_same)
{
    const uint32_t uncovered = o->pending ? 0 : uncovered_lanes(a->warp, o);
    if (a->racing && (o->at != a->other.at || other_wrote != a->other_wrote || is_same != a->is_same))
        report(a);
    if (!a->racing) {
        a->other = *o;
        a->other.lanes = uncovered ? uncovered : o->lanes;
        a->order = order_of(a, o);
        a->other_wrote = other_wrote;
        a->is_same = is_same;
        a->racing_at = a->at;
    }
    a->racing |= 1u << a->lane;
}

static bool is_race(const race_access *a, const race_record *o)
{
    return o->time && (o->bytes & a->now.bytes) &&
           (!is_ordered(a->warp, o, a->lane) || uncovered_lanes(a->warp, o)) &&
           !are_strong(a->warp, o, &a->now) &&
           (a->warp->block->launch->parts_warpgroups || !is_ordered_by_fence(a, o));
}

static void note_readers(uint32_t readers[4], const race_record *now)
{
    for (unsigned k = 0; k < 4; k++)
        readers[k] |= now->bytes >> k & 1 ? now->lanes : 0;
}

static void join_read(emu_race_cell *c, int k, const race_record *now)
{
    race_record *o = &c->reads[k];
    if (!(o->flags & RACE_MIXED) && o->bytes != now->bytes) {
        memset(c->readers[k], 0, sizeof c->readers[k]);
        note_readers(c->readers[k], o);
        o->flags |= RACE_MIXED;
    }
    if (o->flags & RACE_MIXED)
        note_readers(c->readers[k], now);
    o->lanes |= now->lanes;
    o->pending |= now->pending;
    o->bytes |= now->bytes;
    o->step = now->step;
    o->at = now->at;
}

static void note_read(emu_race_cell *c, const race_record *now)
{
    for (int k = 0; k < 2; k++) { /* the lanes of a warp share a record */
        race_record *o = &c->reads[k];
        bool same_warp = o->time && o->block == now->block && o->clock == now->clock;
        if (same_warp && o->pending && !now->pending)
            continue;
        if (same_warp && o->time == now->time && (o->flags & ~RACE_MIXED) == now->flags) {
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

/* Returns the k-th read, restricted to the lanes that read one of these bytes. */
static race_record readers_of(const emu_race_cell *c, int k, uint8_t bytes)
{
    race_record o = c->reads[k];
    bool is_mixed = o.flags & RACE_MIXED;
    uint32_t lanes = !is_mixed && (o.bytes & bytes) ? o.lanes : 0;
    for (unsigned n = 0; n < 4 && is_mixed; n++)
        lanes |= bytes >> n & 1 ? c->readers[k][n] : 0;
    o.lanes &= lanes;
    o.pending &= lanes;
    if (!o.lanes)
        o.time = 0;
    return o;
}

/* True if a proxy fence came after the access: in that access's warp, in this one, or in a warp that this one has
   synchronised with since. */
static bool is_proxied(const race_access *a, const race_record *o)
{
    const emu_warp *w = a->warp;
    const emu_block *b = w->block, *writer = o->block == b->index ? b : peer_of(b, o->block);
    const uint32_t *grid = b->launch->race->proxied;
    unsigned count = b->warp_count;
    if (!writer) /* the writer is in another cluster: any fence of this warp counts */
        return b->race->proxied[w->id][0].time || (grid && grid[o->block * count + o->warp] >= o->time);
    if (writer->race->proxied[o->warp][0].step >= o->step || b->race->proxied[w->id][0].step >= o->step)
        return true;
    for (unsigned rank = 0; rank < b->cluster->count; rank++) {
        const emu_race *r = b->cluster->blocks[rank].race;
        const uint32_t *known = known_of(b->race, w->id) + r->own;
        for (unsigned n = 0; n < count; n++)
            for (unsigned k = 0; k < RACE_PROXIED && r->proxied[n][k].step >= o->step; k++)
                if (known[n] >= r->proxied[n][k].time || knew_at_fence(a, r->own + n, r->proxied[n][k].time))
                    return true;
    }
    return false;
}

/* True for a read in the async proxy. */
static bool is_read_by_product(const race_access *a, const race_record *o)
{
    return emu_text_is(a->warp->block->launch->program->instructions[o->at]->opcode, "wgmma");
}

/* Products and bulk copies access in the async proxy, and tensor maps are read in their own. cp.async writes in the generic
   proxy. */
static bool is_in_other_proxy(const race_access *a, const race_record *o)
{
    if (!o->time || o->pending || !(o->bytes & a->now.bytes))
        return false;
    if (a->map)
        return !is_map_fenced(a->warp, o, a->map);
    return !(o->flags & RACE_ASYNC) && !is_proxied(a, o);
}

static void report_proxy(const race_access *a)
{
    char place[160], thread[96], source[EMU_SOURCE_BYTES];
    const race_record *o = &a->unproxied_other;
    const emu_program *p = a->warp->block->launch->program;
    if (!a->unproxied)
        return;
    uint32_t other = o->warp * EMU_LANES + (uint32_t)__builtin_ctz(o->lanes);
    emu_note(a->warp, a->op, a->unproxied, o->at,
             a->map
                 ? "%s %u bytes of a tensor map at %s, which %s %s in line %u%s, with no "
                   "fence.proxy.tensormap that acquires the map between the two"
                 : "%s %u bytes at %s, which %s %s in line %u%s, with no fence.proxy.async between the two",
             a->writes ? "writes" : "reads", a->bytes,
             emu_describe_place(a->warp, a->unproxied_at, place, sizeof place),
             emu_describe_thread(a->warp, o->block, other, thread, sizeof thread),
             a->unproxied_wrote ? "writes" : "reads", p->instructions[o->at]->line,
             emu_source_of(p, o->at, source));
}

static void note_unproxied(race_access *a, const race_record *o, bool other_wrote)
{
    if (!a->unproxied) {
        a->unproxied_other = *o;
        a->unproxied_wrote = other_wrote;
        a->unproxied_at = a->at;
    }
    a->unproxied |= 1u << a->lane;
}

static void check_word(race_access *a, emu_race_cell *c)
{
    const emu_launch *l = a->warp->block->launch;
    const bool is_async = a->plan->flow >= EMU_FLOW_BULK;
    if (is_race(a, &c->write)) {
        const bool is_same = a->writes && !a->reads && is_same_value(a, &c->write);
        if (!is_same || l->races_of_same)
            race_with(a, &c->write, true, is_same);
    } else if (is_async && is_in_other_proxy(a, &c->write)) {
        note_unproxied(a, &c->write, true);
    }
    for (int k = 0; a->writes && k < 2; k++) {
        if (!c->reads[k].time)
            continue;
        race_record seen = readers_of(c, k, a->now.bytes);
        if (is_race(a, &seen))
            race_with(a, &seen, false, false);
        else if (l->fences_reads && is_async && is_in_other_proxy(a, &seen) && !is_read_by_product(a, &seen))
            note_unproxied(a, &seen, false);
    }
    if (!a->writes || a->plan->flow == EMU_FLOW_MBARRIER) { /* keeps the initialisation's record */
        note_read(c, &a->now);
        return;
    }
    c->write = a->now;
    /* Drops reads that this write is ordered after. Skips a read without a time: it may be from an earlier launch, by a
       block that this launch does not have. */
    for (int k = 0; k < 2; k++)
        if (c->reads[k].time && is_ordered(a->warp, &c->reads[k], a->lane))
            c->reads[k].time = 0;
}

static void synchronise(race_access *a, uint64_t run, const emu_block *holder, emu_sync_scope scope)
{
    emu_race *r = a->warp->block->race;
    sync_object *p = sync_object_at(a->warp->block, a->at, run, holder);
    if (a->reads && (a->plan->order & EMU_ACQUIRE))
        acquire(a->warp, p, scope);
    else if (a->reads)
        remember_read(a->warp, p);
    if (a->writes && (a->plan->order & EMU_RELEASE))
        release(a->warp, p, a->lane, r->time++, scope);
    else if (a->writes)
        release_fenced(a->warp, p, a->lane, scope);
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
    return p->flow == EMU_FLOW_COPY || p->flow == EMU_FLOW_PRODUCT || p->flow == EMU_FLOW_BULK ||
           p->flow == EMU_FLOW_REMOTE;
}

/* For an access to another block's shared memory: returns false after reporting that the block may not have started. */
static bool exists(race_access *a, emu_block *holder)
{
    emu_warp *w = a->warp;
    const emu_race *r = w->block->race;
    char place[160];
    const uint32_t *known = known_of(r, w->id) + holder->race->own;
    if (!is_asynchronous(a->plan)) /* otherwise the block must wait at its mbarrier: see bulk.c */
        holder->race->remote[r->own + w->id] =
            (remote_access){.time = r->time, .at = a->op->at, .thread = w->id * EMU_LANES + a->lane};
    for (unsigned v = 0; v < r->clocks; v++)
        if (known[v])
            return true;
    emu_note(
        w, a->op, 1u << a->lane, EMU_NOBODY,
        "%s %u bytes at %s, which may not have started: no barrier.cluster or other synchronisation with that block "
        "comes before",
        a->writes ? "writes" : "reads", a->bytes, emu_describe_place(w, a->at, place, sizeof place));
    return false;
}

static void check_lane(race_access *a, bool strong, emu_sync_scope scope)
{
    emu_warp *w = a->warp;
    emu_race *r = w->block->race;
    uint64_t run = 0;
    emu_block *holder;
    uint32_t bit = 1u << a->lane;
    emu_race_cell *c = find_cell(w, a->op, a->at, &run, &holder);
    if (holder && holder != w->block && !exists(a, holder))
        return;
    if (a->plan->flow == EMU_FLOW_MBARRIER && holder)
        use_mbarrier(w, a->op, a->plan, a->lane, a->at, holder);
    else if (strong && c && !is_asynchronous(a->plan))
        synchronise(a, run, holder, scope);
    a->now = (race_record){
        .block = (uint32_t)w->block->index,
        .time = r->time,
        .step = first_of(w->block)->step,
        .lanes = bit,
        .pending = is_asynchronous(a->plan) ? bit : 0,
        .at = a->op->at,
        .clock = a->plan->flow == EMU_FLOW_PRODUCT ? product_clock(w->block, w->id) : (uint8_t)w->id,
        .warp = (uint8_t)w->id,
        .flags = (uint8_t)((strong ? RACE_STRONG : 0) | (scope >= EMU_SYNC_CLUSTER ? RACE_CLUSTER : 0) |
                           (scope == EMU_SYNC_GRID ? RACE_WIDE : 0) |
                           (a->plan->flow == EMU_FLOW_BULK ? RACE_ASYNC : 0))};
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
    unsigned written = op->mods.flags & EMU_SCOPE;
    bool strong = is_atomic || (op->mods.flags & EMU_STRONG);
    emu_sync_scope scope = written == EMU_SCOPE_CTA       ? EMU_SYNC_BLOCK
                           : written == EMU_SCOPE_CLUSTER ? EMU_SYNC_CLUSTER
                                                          : EMU_SYNC_GRID;
    if (plan->flow == EMU_FLOW_BULK || plan->flow == EMU_FLOW_REMOTE)
        strong = writes && plan->order; /* a reduction */
    race_access a = {
        .warp = w, .op = op, .plan = plan, .bytes = bytes, .reads = is_atomic || !writes, .writes = writes};
    first_of(w->block)->step++;
    if (plan->reads_only || op->mods.space == EMU_CONST || op->mods.space == EMU_PARAM ||
        op->mods.space == EMU_LOCAL)
        return;
    for (a.lane = 0; a.lane < EMU_LANES; a.lane++)
        if (mask >> a.lane & 1) {
            a.at = at[a.lane];
            check_lane(&a, strong, plan->flow == EMU_FLOW_MBARRIER ? EMU_SYNC_GRID : scope);
        }
    report(&a);
    report_proxy(&a);
}

static void map_read(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t map)
{
    static const emu_plan plan = {.flow = EMU_FLOW_MAP};
    race_access a = {.warp = w, .op = op, .plan = &plan, .bytes = EMU_MAP_BYTES, .reads = true, .lane = lane};
    a.at = a.map = map;
    first_of(w->block)->step++;
    check_lane(&a, false, EMU_SYNC_BLOCK);
    report(&a);
    report_proxy(&a);
}

/* ---- the end of a block -------------------------------------------------------------------------------------------- */

/* Reports a block that ends while another one may still access its shared memory. */
static void exit_(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    emu_block *b = w->block;
    const emu_race *r = b->race;
    if (!r->remote || b->live_warps > 1 || (w->alive & ~lanes))
        return;
    for (unsigned k = 0; k < r->span; k++) {
        const remote_access *a = &r->remote[k];
        bool is_known = a->time == 0;
        for (unsigned n = 0; n < b->warp_count && !is_known; n++)
            is_known = known_of(r, n)[k] >= a->time;
        if (is_known)
            continue;
        char thread[96], source[EMU_SOURCE_BYTES];
        const emu_program *p = b->launch->program;
        emu_note(
            w, op, lanes, a->at,
            "ends its block while %s may still access the block's shared memory, in line %u%s: nothing orders the two",
            emu_describe_thread(w, b->cluster->blocks[k / r->clocks].index, a->thread, thread, sizeof thread),
            p->instructions[a->at]->line, emu_source_of(p, a->at, source));
        return;
    }
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
    .cluster_arrive = cluster_arrive,
    .cluster_complete = cluster_complete,
    .cluster_wait = cluster_wait,
    .exit = exit_,
    .copied = copied,
    .copies_awaited = copies_awaited,
    .phase_ended = phase_ended,
    .phase_passed = phase_passed,
    .bulk_issue = bulk_issue,
    .bulk_read = bulk_read,
    .bulk_done = bulk_done,
    .map_read = map_read,
    .map_fence = map_fence,
    .warpgroup_met = warpgroup_met,
    .product_read = product_read,
    .product_done = product_done,
};

/* ---- lanes --------------------------------------------------------------------------------------------------------- */

static void lanes_meet(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    (void)op;
    emu_lanes_meet(&w->block->race->lanes[w->id], lanes, w->block->race->time++);
}

static void lanes_issue(emu_warp *w, const emu_op *op, uint32_t mask)
{
    if (mask && emu_plan_of(w, op)->is_collective)
        lanes_meet(w, op, mask);
}

/* After emu_race_check has noted the access: the lanes execute it together. */
static void lanes_access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                         const uint64_t at[EMU_LANES])
{
    (void)bytes, (void)writes, (void)at;
    lanes_issue(w, op, mask);
}

const emu_observer emu_lanes_check = {.issue = lanes_issue, .exchange = lanes_meet, .access = lanes_access};

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* Reuses the cells of freed allocations, since fresh pages are slow. Stale cells are harmless: their run has another number.
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
