/* attention on tensor cores for few queries: a tile of 16 rows, of one head or of all heads that share one of K and V.
 *
 * All four warps have the same 16 rows, and each takes 16 of every 64 keys. A warp copies its keys itself, into a ring of its
 * own: K of a tile, V of it, K of the next. It waits for nobody: there is no barrier of the thread block among the keys. In the
 * end the warps leave their sums in shared memory, where rings were, and all threads join them: see attention_split.h.
 *
 * BYTES ON THE WAY. Two of three stages at head_dim 128, and one of two at 256, are 34 KB for a thread block, whether its warps
 * calculate or wait. A warp by itself takes at most 1200 cycles for a tile at head_dim 128, so that four go through 27 bytes
 * in a cycle: twice what an H100 has for a multiprocessor. Codes of 8 bits are half of these bytes, and a warp by itself takes at
 * most 1700 cycles for a tile of them: the eight that registers leave room for go through 19 bytes in a cycle.
 */
#include "attention_mma.h"
#include "attention_score.h"
#include "device/copy.h"
#include "device/lanes.h"
#include "device/shared.h"

enum {
    WARPS = 4,
    WARP_KEYS = 16, /* of a tile */
    WARP_OCTETS = WARP_KEYS / 8,
    MOST_STAGES = 5,
    STATIC_BYTES = 512 /* of shared memory: of what joins parts, and of a tile's pages */
};

typedef struct decode {
    attention_mma m;
    uint32_t stages, stage_bytes, q_bytes; /* a stage: 16 rows of K, or of V, and with K scales of keys */
    attention_copier copier;
    attention_panel rows[2]; /* of K, of V; to the first stage */
    ptx_val warp, ahead;
    ptx_val k_at, v_at;        /* the lane's rows of the first stage */
    ptx_val scales, scales_at; /* of its keys; the lane's */
    ptx_val stage, free_stage; /* offsets of the next one to read, and of the one before it */
} decode;

static uint32_t bytes(const decode *d)
{
    const attention *a = &d->m.a;
    uint32_t rings = WARPS * d->stages * d->stage_bytes;
    uint32_t records = WARPS * a->tile_q * attention_shared_record(a) * 4;
    return d->q_bytes + (rings > records ? rings : records);
}

/* As many stages as fit, on sm_75 too where head_dim is not more than 128. */
static decode geometry(attention_mma m)
{
    decode d = {.m = m, .stages = MOST_STAGES};
    const uint32_t most = (m.a.head_dim <= MOST_SMALL ? SHARED_SM_75 : SHARED_SM_86) - STATIC_BYTES;
    d.stage_bytes = m.shared_bytes;
    d.q_bytes = layout_end(&m.q_lines, m.a.tile_q, m.a.head_dim / UNIT);
    while (d.stages > 2 && bytes(&d) > most)
        d.stages--;
    return d;
}

/* ---- the ring -------------------------------------------------------------------------------------------------------- */

/* Starts to copy what comes `count` stages behind K of the tile at `counted`. */
static void copy_stage(decode *d, ptx_val counted, uint32_t count, ptx_val to)
{
    ptx_fn *f = d->m.f;
    const attention *a = &d->m.a;
    const uint32_t tiles = count / 2;
    attention_panel rows = d->rows[count % 2];
    rows.to = ptx_add(f, rows.to, to);
    ptx_val later = tiles == 0 ? counted : ptx_add(f, counted, tiles * a->tile_k), tile = later;
    if (a->layout == ATTENTION_PAGED)
        tile = ptx_sub(f, later, d->ahead);
    attention_turn_pages(&d->m.pages, tile);
    attention_copy_rows(&rows, attention_key(a, later), a->keys, ptx_u32(0));
    if (count % 2 == 0 && a->kv == ATTENTION_INT8_TOKEN) {
        ptx_val scales = ptx_add(f, d->scales, to);
        attention_copy_scales(&d->copier, WARP_KEYS, scales, attention_key(a, later), a->keys);
    }
    if (count % 2 == 1)
        attention_lay_out_next(&d->m.pages, tile);
    copy_commit(f);
}

/* Waits for the next stage, and has the one before it, which all lanes have read, filled again. */
static void next_stage(decode *d, ptx_val counted, uint32_t is_v)
{
    ptx_fn *f = d->m.f;
    copy_wait(f, d->stages - 2);
    ptx_warp_barrier(f);
    copy_stage(d, counted, d->stages - 1 + is_v, d->free_stage);
}

static void leave_stage(decode *d)
{
    ptx_fn *f = d->m.f;
    ptx_set(f, d->free_stage, d->stage);
    shared_next(f, d->stage, d->stage_bytes, d->stages);
}

static void add_tile(void *of, ptx_val counted)
{
    decode *d = of;
    attention_mma *m = &d->m;
    next_stage(d, counted, 0);
    m->k_at = ptx_add(m->f, d->k_at, d->stage);
    if (m->a.kv == ATTENTION_INT8_TOKEN)
        m->scales_at = ptx_add(m->f, d->scales_at, d->stage);
    attention_mma_weigh(m, attention_key(&m->a, counted));
    leave_stage(d);
    next_stage(d, counted, 1);
    m->v_at = ptx_add(m->f, d->v_at, d->stage);
    attention_mma_add_values(m);
    leave_stage(d);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------ */

static void init_copies(decode *d, ptx_val shared, ptx_val tid)
{
    ptx_fn *f = d->m.f;
    attention_mma *m = &d->m;
    const attention *a = &m->a;
    const attention_copier by_all = {a, WARPS * WARP_LANES, 2, ptx_has_sm(f, 80), tid};
    const uint32_t ring_bytes = d->stages * d->stage_bytes;
    m->lane = ptx_laneid(f);
    m->warp = ptx_u32(0);
    d->warp = ptx_warpid_x(f);
    d->ahead = ptx_mul(f, d->warp, WARP_KEYS);
    ptx_val rings = ptx_add(f, shared, d->q_bytes);
    ptx_val ring = ptx_mad(f, d->warp, ring_bytes, rings);
    attention_panel q = attention_init_panel(&by_all, a->q, a->tile_q, a->head_dim, shared, m->q_lines);
    d->copier = (attention_copier){a, WARP_LANES, 2, ptx_has_sm(f, 80), m->lane};
    d->rows[0] = attention_init_panel(&d->copier, a->k, WARP_KEYS, a->head_dim, ring, m->k_lines);
    d->rows[1] = attention_init_panel(&d->copier, a->v, WARP_KEYS, a->head_dim_v, ring, m->v_lines);
    attention_mma_init_lane(m, shared, ring);
    d->k_at = m->k_at;
    d->v_at = m->v_at;
    d->scales_at = m->scales_at;
    if (a->kv == ATTENTION_INT8_TOKEN)
        d->scales = ptx_add(f, ring, m->scales_start);
    m->pages = attention_init_pages(&m->a, WARP_OCTETS);
    attention_copy_rows(&q, a->first, a->q_end, ptx_u32(0));
    copy_commit(f);
    ptx_val first = ptx_add(f, a->first_key, d->ahead);
    for (uint32_t i = 0; i < d->stages - 1; i++) {
        if (a->layout == ATTENTION_PAGED && i > 0)
            ptx_warp_barrier(f);
        copy_stage(d, first, i, ptx_u32(i * d->stage_bytes));
    }
    d->stage = ptx_var(f, ptx_u32(0));
    d->free_stage = ptx_var(f, ptx_u32((d->stages - 1) * d->stage_bytes));
    copy_wait(f, d->stages - 1);
    ptx_barrier(f);
    attention_mma_hold_q(m);
}

static void shape(kiln_shape *s, const attention *a)
{
    const decode d = geometry(attention_mma_geometry(*a, WARP_KEYS));
    s->block[0] = WARPS * WARP_LANES;
    s->shared_bytes = bytes(&d);
    s->blocks_per_multiprocessor = attention_mma_blocks(&d.m, s->block[0]);
    s->trip = WARP_KEYS;
    s->loop_warps = WARPS;
}

static void emit(const attention *a)
{
    ptx_fn *f = a->f;
    decode d = geometry(attention_mma_init(a, WARP_KEYS));
    ptx_val tid = ptx_tid_x(f), shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    init_copies(&d, shared, tid);
    attention_mma_add_tiles(&d.m, &d.ahead, add_tile, &d);
    ptx_barrier(f);
    ptx_val records = shared_at(f, PTX_F32, shared, d.q_bytes);
    /* Each warp leaves the sums of its keys where the rings were. */
    attention_mma_slices slices;
    attention_mma_slice(&d.m, &slices);
    ptx_val in_warp = ptx_shr(f, d.m.lane, 2);
    ptx_val row = ptx_mad(f, d.warp, a->tile_q, in_warp);
    ptx_val record = ptx_at(f, records, ptx_mul(f, row, attention_shared_record(a)));
    for (uint32_t i = 0; i < 2; i++)
        attention_store_slice(a, &slices.of[i], ptx_at_const(f, record, 8 * i * attention_shared_record(a)));
    ptx_barrier(f);
    attention_find_before(&d.m.a);
    attention_leave_warps(&d.m.a, records, WARPS, tid);
}

const attention_strategy attention_strategy_decode = {shape, emit};
