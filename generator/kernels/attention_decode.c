/* attention on tensor cores for few queries: a tile of 16 rows, of one head or of all heads that share a head of K and V.
 *
 * All four warps have the same 16 rows, and each takes 16 of every 64 keys. A warp copies its own keys, into its own ring: K
 * of a tile, V of it, K of the next. The loop over the keys has no block-wide barrier. At the end the warps leave their sums
 * in shared memory, over the rings, and all threads join them: see attention_split.c.
 *
 * BYTES IN FLIGHT. Two of three stages at head_dim 128, and one of two at 256, are 34 KB for a thread block, whether its
 * warps calculate or wait. A lone warp takes at most 1200 cycles for a tile at head_dim 128, so that four process 27 bytes
 * per cycle: twice an H100's bandwidth per multiprocessor. 8-bit codes are half of these bytes, and a lone warp takes at most
 * 1700 cycles for a tile of them: the eight warps for which there are registers process 19 bytes per cycle.
 */
#include "attention_warp.h"
#include "device/copy.h"
#include "device/lanes.h"
#include "device/shared.h"

enum {
    WARPS = 4,
    WARP_KEYS = 16, /* of a tile */
    MOST_STAGES = 5,
    STATIC_BYTES = 512 /* of shared memory: for joining parts, and a tile's pages */
};

typedef struct decode {
    attention_warp m;
    uint32_t stages, q_bytes;  /* a stage: 16 rows of K, or of V, and with K scales of keys */
    ptx_val ahead;             /* the warp's first key in a tile */
    ptx_val k_at, v_at;        /* this lane's rows in the first stage */
    ptx_val scales, scales_at; /* with a scale for each key: scales in the first stage; this lane's */
    ptx_val stage, free_stage; /* offsets of the next stage to read, and of the previous one */
} decode;

static uint32_t bytes(const decode *d)
{
    const attention *a = d->m.a;
    uint32_t rings = WARPS * d->stages * d->m.shared_bytes;
    uint32_t records = WARPS * a->tile_q * a->shared_record * 4;
    return d->q_bytes + (rings > records ? rings : records);
}

/* As many stages as fit, on sm_75 too if head_dim is at most 128. */
static decode geometry(attention *a)
{
    decode d = {.m = attention_warp_geometry(a, WARPS, 1, WARP_KEYS), .stages = MOST_STAGES};
    const uint32_t most = (a->head_dim <= MOST_SMALL ? SHARED_SM_75 : SHARED_SM_86) - STATIC_BYTES;
    attention_lay_out(&d.m, true, true);
    d.q_bytes = layout_end(&d.m.q.lines, a->tile_q, a->head_dim / OCTET);
    while (d.stages > 2 && bytes(&d) > most)
        d.stages--;
    return d;
}

/* ---- the ring -------------------------------------------------------------------------------------------------------- */

/* Starts to copy the stage `count` stages after K of the tile at `counted`. */
static void copy_stage(decode *d, ptx_val counted, uint32_t count, ptx_val to)
{
    attention_warp *m = &d->m;
    ptx_fn *f = m->a->f;
    const bool is_v = count % 2;
    attention_panel rows = is_v ? m->v.panel : m->k.panel;
    rows.to[0] = ptx_add(f, rows.to[0], to);
    ptx_val later = attention_plus(f, counted, count / 2 * m->a->tile_k), tile = later;
    if (m->a->layout == ATTENTION_PAGED)
        tile = ptx_sub(f, later, d->ahead);
    attention_select_pages(m->a, tile);
    attention_copy_rows(&rows, attention_key(m->a, later));
    if (!is_v && m->a->kv == ATTENTION_INT8_TOKEN) {
        ptx_val scales = ptx_add(f, d->scales, to);
        attention_copy_scales(&m->copier, WARP_KEYS, scales, attention_key(m->a, later));
    }
    if (is_v)
        attention_build_pages(m->a, tile);
    copy_commit(f);
}

/* Weighs the keys, then adds the values. Each step waits for its stage, and refills the previous one, which all lanes have
 * read. */
static void add_tile(attention_warp *m, ptx_val counted)
{
    decode *d = (decode *)m;
    ptx_fn *f = m->a->f;
    for (uint32_t is_v = 0; is_v < 2; is_v++) {
        copy_wait(f, d->stages - 2);
        ptx_warp_barrier(f);
        copy_stage(d, counted, d->stages - 1 + is_v, d->free_stage);
        if (is_v) {
            m->v.at = ptx_add(f, d->v_at, d->stage);
            m->add_values(m);
        } else {
            m->k.at = ptx_add(f, d->k_at, d->stage);
            if (m->a->kv == ATTENTION_INT8_TOKEN)
                m->scales_at = ptx_add(f, d->scales_at, d->stage);
            m->weigh(m, attention_key(m->a, counted));
        }
        ptx_set(f, d->free_stage, d->stage);
        shared_next(f, d->stage, m->shared_bytes, d->stages);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------ */

static void shape(kiln_shape *s, attention *a)
{
    const decode d = geometry(a);
    attention_warp_shape(s, &d.m);
    s->shared_bytes = bytes(&d);
    s->loop_warps = WARPS;
}

static void emit(attention *a)
{
    ptx_fn *f = a->f;
    decode d = geometry(a);
    attention_warp *m = &d.m;
    attention_warp_init(m);
    const attention_copier by_all = m->copier;
    m->copier = (attention_copier){a, WARP_LANES, false, m->lane};
    m->row_warp = ptx_u32(0); /* all warps have all rows */
    d.ahead = ptx_mul(f, m->warp, WARP_KEYS);
    ptx_val rings = ptx_add(f, m->shared, d.q_bytes);
    ptx_val ring = ptx_mad(f, m->warp, d.stages * m->shared_bytes, rings);
    attention_init_panels(m, &by_all, ring);
    attention_init_operands(m, ring);
    d.k_at = m->k.at;
    d.v_at = m->v.at;
    d.scales_at = m->scales_at;
    if (a->kv == ATTENTION_INT8_TOKEN)
        d.scales = ptx_add(f, ring, m->scales_start);
    attention_init_pages(a, WARP_KEYS / OCTET);
    attention_copy_rows(&m->q.panel, a->first);
    copy_commit(f);
    ptx_val first = ptx_add(f, a->first_key, d.ahead);
    for (uint32_t i = 0; i < d.stages - 1; i++) {
        if (a->layout == ATTENTION_PAGED && i > 0)
            ptx_warp_barrier(f);
        copy_stage(&d, first, i, ptx_u32(i * m->shared_bytes));
    }
    d.stage = ptx_var(f, ptx_u32(0));
    d.free_stage = ptx_var(f, ptx_u32((d.stages - 1) * m->shared_bytes));
    copy_wait(f, d.stages - 1);
    ptx_barrier(f);
    attention_add_tiles(m, &d.ahead, add_tile);
    ptx_barrier(f);
    /* Each warp stores the sums of its keys over the rings. */
    ptx_val records = shared_at(f, PTX_F32, m->shared, d.q_bytes);
    ptx_val column = ptx_mul(f, attention_lane_t(m), m->rows.o.width);
    ptx_val in_warp = attention_lane_g(m), row = ptx_mad(f, m->warp, a->tile_q, in_warp);
    ptx_val record = ptx_at(f, records, ptx_mul(f, row, a->shared_record));
    for (uint32_t i = 0; i < m->rows.o.rows; i++)
        attention_store_record(a, &m->rows, i, column, ptx_at_const(f, record, OCTET * i * a->shared_record));
    ptx_barrier(f);
    attention_find_before(a);
    attention_leave_warps(a, records, WARPS, by_all.tid);
}

const attention_strategy attention_strategy_decode = {shape, emit};
