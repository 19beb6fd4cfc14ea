/* NF4 matrix product on CUDA cores, for a few rows.
 *
 * Thread blocks are persistent: they make tiles of C, tile_m rows by tile_n columns, one after another. The warps of a thread
 * block share the tile and split K: each takes every k_warps-th 256, and their sums are added in the order of the warps.
 * Eight lanes work on a column; each of the four such groups of a warp has every fourth column. Of 256 along K a lane takes
 * 32 codes of a column, 16 bytes, and the eight together 128 consecutive bytes. Every byte of the weights is read once per
 * tile_m rows.
 *
 * DECODING. A table in shared memory holds the two values of each byte; see nf4_pairs.h. `table` selects it: compact takes 32
 * KB and two instructions per address; aligned takes 65 KB and one.
 *
 * SCALES of 8192 along K are copied to shared memory at once. A lane reads the scale of its quantised block of 64 there.
 *
 * ROWS OF A. A warp widens its elements of A into its own part of shared memory, `depth` of each lane's 32 at a time. Lane j
 * finds its share in units (row, i, j) of 16 bytes: eight lanes read 128 consecutive bytes, the same ones in all four groups.
 * Units with neighbouring i are 8 + 32 / depth apart, so that writers have few bank conflicts.
 *
 * BYTES. Per weight 0.5625 of codes and scales, all sectors full. A is read again for every tile of columns, which
 * for f16 is 1/8 of a byte per weight and row with tile_n 16, out of the L2 cache.
 */
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/nf4_pairs.h"
#include "device/shared.h"
#include "device/tail.h"
#include "nf4_gemm.h"

enum {
    COLUMN_LANES = 8,
    GROUPS = WARP_LANES / COLUMN_LANES,
    LANE_K = 32,                     /* codes that a lane takes with one load */
    STRETCH = COLUMN_LANES * LANE_K, /* a warp's part along K */
    MOST_COLUMNS = 8,
    MOST_SUMS = 32,
    MOST_LOADS = 4 /* loads of A per lane and stage */
};

/* A variant during emission. */
typedef struct gemm {
    ptx_fn *f;
    ptx_type type, wide;                     /* of A and C; of arithmetic */
    uint32_t rows, columns, tile_n, k_warps; /* rows, columns: those of a lane */
    uint32_t sums;                           /* of a lane, row by row */
    uint32_t wide_bytes, depth, stage_row_bytes, stage_bytes, unit_stride;
    uint32_t vector, pieces, loads; /* elements of A in a load; loads in a lane's share; loads per lane */

    nf4_pairs pairs;
    nf4_args args;
    nf4_scales scales;
    ptx_val tid, lane, group, member;            /* lane of the warp; group of 4; lane of the group's 8 */
    ptx_val last_share, full_until;              /* k of the last 32 in bounds; k of the ragged stretch */
    ptx_val first_row, tile;                     /* the tile's first row, and first column */
    ptx_val stages, stage, stage_to, stage_from; /* addresses in shared memory */
    ptx_val a_at[MOST_LOADS], a_k;               /* where this lane's loads of A start, and their k */
    ptx_val codes_at[MOST_COLUMNS];
    ptx_val sum[MOST_SUMS];
} gemm;

/* ---- A --------------------------------------------------------------------------------------------------------- */

/* Loads of A are numbered by piece, then lane of the column, then row; lane l takes numbers l, l + 32, ... */
static void init_stage(gemm *g)
{
    ptx_fn *f = g->f;
    uint32_t row_loads = COLUMN_LANES * g->pieces;
    ptx_val piece = ptx_and(f, g->lane, g->pieces - 1);
    ptx_val number = ptx_div(f, g->lane, g->pieces);
    ptx_val member = ptx_and(f, number, COLUMN_LANES - 1);
    ptx_val row = ptx_div(f, g->lane, row_loads);
    g->a_k = ptx_mad(f, piece, g->vector, ptx_mul(f, member, LANE_K));
    ptx_val start = ptx_add(f, row, g->first_row);
    for (uint32_t i = 0; i < g->loads; i++) {
        ptx_val at = tail_clamp(f, ptx_add(f, start, i * WARP_LANES / row_loads), g->args.m);
        g->a_at[i] = tail_element(f, g->args.in, at, g->args.a_stride, g->a_k);
    }
    uint32_t piece_units = g->vector * g->wide_bytes / UNIT_BYTES;
    ptx_val unit = ptx_mad(f, piece, piece_units * g->unit_stride, member);
    ptx_val bytes = ptx_mad(f, unit, UNIT_BYTES, g->stage);
    g->stage_to = ptx_mad(f, row, g->stage_row_bytes, bytes);
    g->stage_from = ptx_mad(f, g->member, UNIT_BYTES, g->stage);
}

/* Distance of load i from load 0: members of the same row (their k), or whole rows. */
static uint32_t load_member(const gemm *g, uint32_t i)
{
    return i * WARP_LANES / g->pieces % COLUMN_LANES;
}

static void store_stage(gemm *g, uint32_t i, const ptx_val raw[4])
{
    ptx_fn *f = g->f;
    ptx_val x[8];
    widen_words(f, g->type, 4, raw, x);
    for (uint32_t e = 0; g->wide == PTX_F64 && e < 4; e++)
        x[e] = ptx_cvt(f, PTX_F64, x[e]);
    uint32_t unit_elements = UNIT_BYTES / g->wide_bytes;
    uint32_t start =
        i * WARP_LANES / (COLUMN_LANES * g->pieces) * g->stage_row_bytes + load_member(g, i) * UNIT_BYTES;
    for (uint32_t u = 0; u < g->vector / unit_elements; u++) {
        ptx_val to = shared_at(g->f, g->wide, g->stage_to, start + u * g->unit_stride * UNIT_BYTES);
        ptx_store_vec(f, (int)unit_elements, to, &x[u * unit_elements], PTX_PLAIN);
    }
}

static void stage_rows(gemm *g, ptx_val k, ptx_val is_full, uint32_t round)
{
    ptx_fn *f = g->f;
    ptx_val at[MOST_LOADS];
    uint32_t offset[MOST_LOADS];
    const ptx_type held = g->vector == 8 ? PTX_U32 : PTX_F32;
    for (uint32_t i = 0; i < g->loads; i++) {
        offset[i] = load_member(g, i) * LANE_K + round * g->depth;
        ptx_val half = ptx_at_const(f, ptx_at(f, g->a_at[i], k), offset[i]);
        at[i] = ptx_cast_ptr(f, half, held);
    }
    PTX_IF (f, is_full) {
        ptx_val raw[MOST_LOADS][4];
        for (uint32_t i = 0; i < g->loads; i++)
            ptx_load_vec(f, 4, raw[i], at[i], PTX_NC);
        for (uint32_t i = 0; i < g->loads; i++)
            store_stage(g, i, raw[i]);
    }
    PTX_ELSE (f) {
        ptx_val past = ptx_add(f, g->a_k, k);
        for (uint32_t i = 0; i < g->loads; i++) {
            /* A is 0 past its last column. */
            ptx_val raw[4], in_bounds = ptx_lt(f, ptx_add(f, past, offset[i]), g->args.k);
            tail_load(f, held, 4, raw, at[i], &in_bounds, PTX_NC);
            store_stage(g, i, raw);
        }
    }
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

/* partial += four elements of each row times four weights of each column; the first four of a half set it. */
static void multiply_four(gemm *g, ptx_val words[MOST_COLUMNS][4], uint32_t round, uint32_t i,
                          ptx_val partial[MOST_SUMS])
{
    ptx_fn *f = g->f;
    ptx_val weights[MOST_COLUMNS][4];
    uint32_t position = round * g->depth + 4 * i;
    for (uint32_t c = 0; c < g->columns; c++) {
        nf4_pairs_decode(&g->pairs, words[c][position / 8], position % 8 / 2, &weights[c][0]);
        nf4_pairs_decode(&g->pairs, words[c][position / 8], position % 8 / 2 + 1, &weights[c][2]);
    }
    for (uint32_t row = 0; row < g->rows; row++) {
        ptx_val x[4];
        /* Four neighbouring elements of a row of A, the i-th four of the lane's share of a stage. */
        uint32_t units = g->wide_bytes / 4, elements = 4 / units;
        for (uint32_t u = 0; u < units; u++) {
            uint32_t bytes = row * g->stage_row_bytes + (i * units + u) * g->unit_stride * UNIT_BYTES;
            ptx_load_vec(g->f, (int)elements, &x[u * elements],
                         shared_at(g->f, g->wide, g->stage_from, bytes), PTX_PLAIN);
        }
        for (uint32_t c = 0; c < g->columns; c++) {
            ptx_val *sum = &partial[row * g->columns + c];
            for (uint32_t e = 0; e < 4; e++) {
                if (position + e == 0)
                    *sum = ptx_var(f, ptx_mul(f, x[0], weights[c][0]));
                else
                    ptx_fma_to(f, *sum, x[e], weights[c][e]);
            }
        }
    }
}

/* Multiplies 256 along K of the warp's columns, from k on. `scales` is the address of the lane's first scale. Past the end of
 * K, A and the scales are 0. */
static void multiply_stretch(void *strategy, ptx_val k, ptx_val scales)
{
    gemm *g = strategy;
    ptx_fn *f = g->f;
    ptx_val words[MOST_COLUMNS][4], partial[MOST_SUMS];
    ptx_val mine = ptx_mad(f, g->member, LANE_K, k);
    ptx_val word = ptx_shr(f, ptx_min(f, mine, g->last_share), 3);
    for (uint32_t c = 0; c < g->columns; c++)
        ptx_load_vec(f, 4, words[c], ptx_at(f, g->codes_at[c], word), NF4_CODE_HINTS);
    ptx_val is_full = ptx_lt(f, k, g->full_until);
    for (uint32_t round = 0; round < LANE_K / g->depth; round++) {
        stage_rows(g, k, is_full, round);
        ptx_warp_barrier(f);
        for (uint32_t i = 0; i < g->depth / 4; i++)
            multiply_four(g, words, round, i, partial);
        ptx_warp_barrier(f);
    }
    nf4_scales_add(&g->scales, scales, GROUPS, g->columns, g->sums, partial, g->sum);
}

/* ---- sums over lanes and warps --------------------------------------------------------------------------------- */

/* Element `number` of the tile, row by row: the sum over the warps, in their order. */
static void add_k_warps(gemm *g, ptx_val number)
{
    ptx_fn *f = g->f;
    ptx_val from = ptx_mad(f, number, g->wide_bytes, g->stages);
    ptx_val sum = shared_sum(f, shared_at(f, g->wide, from, 0), g->k_warps, g->stage_bytes);
    ptx_val in_tile = ptx_and(f, number, g->tile_n - 1);
    ptx_val column = ptx_add(f, g->tile, in_tile);
    ptx_val row = ptx_add(f, ptx_div(f, number, g->tile_n), g->first_row);
    ptx_val has_column = ptx_lt(f, column, g->args.n), has_row = ptx_lt(f, row, g->args.m);
    ptx_val in_bounds = ptx_and(f, has_column, has_row);
    ptx_val at = tail_element(f, g->args.out, row, g->args.c_stride, column);
    narrow_store_where(f, g->type, g->wide, at, sum, in_bounds);
}

/* Each warp's sums overlay its stage. */
static void store_tile(gemm *g)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < g->sums; i++)
        g->sum[i] = ptx_reduce_lanes(f, PTX_OP_ADD, COLUMN_LANES, g->sum[i]);
    ptx_val to = ptx_mad(f, g->group, g->wide_bytes, g->stage);
    ptx_val is_first = ptx_eq(f, g->member, 0);
    PTX_IF (f, is_first) {
        for (uint32_t i = 0; i < g->sums; i++) {
            const uint32_t element = i / g->columns * g->tile_n + i % g->columns * GROUPS;
            ptx_store(f, shared_at(f, g->wide, to, element * g->wide_bytes), g->sum[i]);
        }
    }
    ptx_barrier(f);
    const uint32_t threads = g->k_warps * WARP_LANES, count = g->rows * g->tile_n;
    for (uint32_t i = 0; i < count; i += threads) {
        IF_NEEDED (f, count < threads, ptx_lt(f, g->tid, count)) {
            add_k_warps(g, i == 0 ? g->tid : ptx_add(f, g->tid, i));
        }
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

static gemm geometry(ptx_fn *f, const kiln_variant *v)
{
    gemm g = {.f = f, .type = kiln_type(v, "a"), .wide = kiln_type(v, "acc")};
    g.wide_bytes = g.wide == PTX_F64 ? 8 : 4;
    g.rows = kiln_int(v, "tile_m");
    g.tile_n = kiln_int(v, "tile_n");
    g.columns = g.tile_n / GROUPS;
    g.sums = g.rows * g.columns;
    g.k_warps = kiln_int(v, "k_warps");
    g.pairs = nf4_table(f, v, g.wide, 1024);
    g.vector = g.type == PTX_F32 ? 4 : 8;
    g.depth = g.rows == 1 ? 32 : g.rows == 2 || g.vector == 8 ? 16 : 8;
    g.unit_stride = 8 + 32 / g.depth;
    g.pieces = g.depth / g.vector;
    g.loads = g.rows * COLUMN_LANES * g.pieces / WARP_LANES;
    g.stage_row_bytes = g.wide_bytes * (COLUMN_LANES * g.depth + 32);
    g.stage_bytes = g.rows * g.stage_row_bytes;
    g.scales = nf4_scales_plan(f, g.tile_n, g.k_warps, WARP_LANES, STRETCH / NF4_BLOCK_K);
    return g;
}

/* As many as leave enough registers for a thread's sums. Without a limit, ptxas hoists loads of the table until no register
 * is left. */
static uint32_t blocks_per_multiprocessor(const gemm *g, const kiln_variant *v)
{
    enum { MOST_BLOCKS = 16 };
    uint32_t sums = 2 * g->sums * g->wide_bytes / 4;
    uint32_t few = g->k_warps == 4 ? 640 : 768, many = kiln_has_sm(v, 80) ? 384 : 256;
    uint32_t held = sums + g->tile_n; /* codes too */
    uint32_t resident = sums <= 8 ? few : held <= 48 ? 512 : held <= 80 ? many : 256;
    uint32_t blocks = lanes_blocks(g->k_warps * WARP_LANES, resident);
    bool is_tight = g->rows == 8 || (g->tile_n == 32 && !g->pairs.is_aligned);
    if (kiln_has_sm(v, 110) && is_tight && blocks > 1) /* for these ptxas needs up to four registers more */
        blocks--;
    return blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
}

void nf4_gemm_shape_simt(kiln_shape *s, const kiln_variant *v)
{
    const gemm g = geometry(NULL, v);
    s->block[0] = g.k_warps * WARP_LANES;
    s->shared_bytes = g.pairs.bytes + g.k_warps * g.stage_bytes + nf4_scales_bytes(&g.scales, v);
    s->blocks_per_multiprocessor = blocks_per_multiprocessor(&g, v);
    s->trip = STRETCH;
    s->loop_warps = g.k_warps;
}

/* In shared memory: the table, then a stage for each warp, then scales, then tables for nested ones. */
void nf4_gemm_emit_simt(ptx_fn *f, const kiln_variant *v)
{
    gemm g = geometry(f, v);
    g.args = nf4_declare_args(f, v, false);
    g.tid = ptx_tid_x(f);
    g.first_row = ptx_mul(f, ptx_ctaid_y(f), g.rows);
    g.lane = ptx_laneid(f);
    g.member = ptx_and(f, g.lane, COLUMN_LANES - 1);
    g.group = ptx_shr(f, g.lane, 3);
    g.scales.args = &g.args;
    g.scales.k_warp = ptx_warpid_x(f);
    g.scales.blocks = ptx_shr(f, g.args.k, NF4_BLOCK_K_LOG2);
    g.last_share = ptx_sub(f, g.args.k, LANE_K);
    g.full_until = ptx_and(f, g.args.k, ~(uint32_t)(STRETCH - 1));
    nf4_scales_align(&g.scales);
    ptx_val start = ptx_address(f, ptx_shared_dynamic(f, g.wide));
    g.stages = ptx_add(f, start, nf4_pairs_layout(&g.pairs, start));
    g.stage = ptx_mad(f, g.scales.k_warp, g.stage_bytes, g.stages);
    ptx_val scales = ptx_add(f, g.stages, g.k_warps * g.stage_bytes);
    nf4_scales_init(&g.scales, g.tid, g.lane, scales);
    ptx_val mine = ptx_mad(f, g.group, g.scales.column_bytes, scales);
    g.scales.from = ptx_mad(f, ptx_shr(f, g.member, 1), 4, mine);
    nf4_pairs_find(&g.pairs, g.lane);
    nf4_pairs_fill(&g.pairs, g.tid);
    init_stage(&g);
    ptx_val first = ptx_mul(f, ptx_ctaid_x(f), g.tile_n);
    ptx_val step = ptx_mul(f, ptx_nctaid_x(f), g.tile_n);
    PTX_FOR (f, tile, first, g.args.n, step) {
        g.tile = g.scales.first_column = tile;
        ptx_val own = ptx_add(f, g.tile, g.group), words = ptx_shr(f, g.args.k, 3);
        for (uint32_t c = 0; c < g.columns; c++) {
            ptx_val column = tail_clamp(f, ptx_add(f, own, c * GROUPS), g.args.n);
            g.codes_at[c] =
                ptx_at(f, ptx_cast_ptr(f, g.args.packed, PTX_U32), ptx_mul_wide(f, column, words));
        }
        for (uint32_t i = 0; i < g.sums; i++)
            g.sum[i] = ptx_var(f, ptx_number(g.wide, 0));
        nf4_scales_each_step(&g.scales, multiply_stretch, &g);
        store_tile(&g);
        ptx_barrier(f);
    }
}
