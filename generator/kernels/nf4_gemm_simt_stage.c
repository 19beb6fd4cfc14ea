/* nf4_gemm's narrow tiles: copies A, widened, and scales into shared memory. */
#include "nf4_gemm_simt.h"

#include "device/narrow.h"

/* ---- A --------------------------------------------------------------------------------------------------------- */

/* Loads of A are numbered by piece, then lane of the column, then row; lane l takes numbers l, l + 32, ... */
void simt_init_stage(gemm *g, ptx_val first_row)
{
    ptx_fn *f = g->f;
    uint32_t row_loads = COLUMN_LANES * g->pieces;
    ptx_val piece = ptx_and(f, g->lane, ptx_u32(g->pieces - 1));
    ptx_val number = ptx_div(f, g->lane, ptx_u32(g->pieces));
    ptx_val member = ptx_and(f, number, ptx_u32(COLUMN_LANES - 1));
    ptx_val row = ptx_div(f, g->lane, ptx_u32(row_loads));
    g->a_k = ptx_mad(f, piece, ptx_u32(g->vector), ptx_mul(f, member, ptx_u32(LANE_K)));
    ptx_val start = ptx_add(f, row, first_row);
    for (uint32_t i = 0; i < g->loads; i++) {
        ptx_val at = clamp(f, ptx_add(f, start, ptx_u32(i * WARP_LANES / row_loads)), g->m);
        ptx_val line = ptx_at(f, g->in, ptx_mul_wide(f, at, g->k));
        g->a_at[i] = ptx_at(f, line, g->a_k);
    }
    uint32_t piece_units = g->vector * wide_bytes(g) / UNIT_BYTES;
    ptx_val unit = ptx_mad(f, piece, ptx_u32(piece_units * unit_stride(g)), member);
    ptx_val bytes = ptx_mad(f, unit, ptx_u32(UNIT_BYTES), g->stage);
    g->stage_to = ptx_mad(f, row, ptx_u32(g->stage_row_bytes), bytes);
    g->stage_from = ptx_mad(f, g->member, ptx_u32(UNIT_BYTES), g->stage);
}

/* How far load i is after load 0: members of the same row (their k), or whole rows. */
static uint32_t load_member(const gemm *g, uint32_t i)
{
    return i * WARP_LANES / g->pieces % COLUMN_LANES;
}

static uint32_t load_row(const gemm *g, uint32_t i)
{
    return i * WARP_LANES / (COLUMN_LANES * g->pieces);
}

static void store_stage(gemm *g, uint32_t i, const ptx_val raw[4])
{
    ptx_fn *f = g->f;
    ptx_val x[8];
    for (uint32_t e = 0; e < 4; e++) {
        if (g->vector == 8)
            widen_pair(f, g->type, raw[e], &x[2 * e]);
        else
            x[e] = g->wide == PTX_F64 ? ptx_cvt(f, PTX_F64, raw[e]) : raw[e];
    }
    uint32_t unit_elements = UNIT_BYTES / wide_bytes(g);
    uint32_t start = load_row(g, i) * g->stage_row_bytes + load_member(g, i) * UNIT_BYTES;
    for (uint32_t u = 0; u < g->vector / unit_elements; u++) {
        ptx_val to = shared_at(g, g->stage_to, start + u * unit_stride(g) * UNIT_BYTES);
        ptx_store_vec(f, (int)unit_elements, to, &x[u * unit_elements], PTX_PLAIN);
    }
}

/* A is 0 beyond its last column. */
static void stage_ragged(gemm *g, ptx_val at, ptx_val past, uint32_t i, uint32_t offset)
{
    ptx_fn *f = g->f;
    ptx_type held = g->vector == 8 ? PTX_U32 : PTX_F32;
    ptx_val raw[4], loaded[4];
    ptx_val in_bounds = ptx_lt(f, ptx_add(f, past, ptx_u32(offset)), g->k);
    for (int e = 0; e < 4; e++)
        raw[e] = ptx_var(f, ptx_bits(held, 0));
    PTX_WHEN (f, in_bounds) {
        ptx_load_vec(f, 4, loaded, at, PTX_NC);
        for (int e = 0; e < 4; e++)
            ptx_set(f, raw[e], loaded[e]);
    }
    store_stage(g, i, raw);
}

void simt_stage_rows(gemm *g, ptx_val k, ptx_val is_full, uint32_t round)
{
    ptx_fn *f = g->f;
    ptx_val at[MOST_LOADS];
    uint32_t offset[MOST_LOADS];
    for (uint32_t i = 0; i < g->loads; i++) {
        offset[i] = load_member(g, i) * LANE_K + round * g->depth;
        ptx_val half = ptx_at_const(f, ptx_at(f, g->a_at[i], k), offset[i]);
        at[i] = ptx_cast_ptr(f, half, g->vector == 8 ? PTX_U32 : PTX_F32);
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
        for (uint32_t i = 0; i < g->loads; i++)
            stage_ragged(g, at[i], past, i, offset[i]);
    }
}

/* ---- scales ---------------------------------------------------------------------------------------------------- */

/* Copies `count` scales of a column from `at` on; the lanes start at a sector. The rest of the stretch is 0. */
static void copy_scales(gemm *g, ptx_val at, ptx_val to, ptx_val count)
{
    ptx_fn *f = g->f;
    const uint32_t of_stretch = STRETCH / BLOCK_K;
    ptx_val end = ptx_and(f, ptx_add(f, count, ptx_u32(of_stretch - 1)), ptx_u32(-of_stretch));
    ptx_val word = ptx_shr(f, ptx_cvt(f, PTX_U32, ptx_address(f, at)), ptx_u32(2));
    ptx_val early = ptx_and(f, word, ptx_u32(7));
    ptx_val first = ptx_as(f, PTX_S32, ptx_sub(f, g->lane, early));
    PTX_FOR (f, i, first, ptx_as(f, PTX_S32, end), ptx_s32(WARP_LANES)) {
        PTX_IF (f, ptx_ge(f, i, ptx_s32(0))) {
            ptx_val x = ptx_var(f, ptx_f32(0)), from = ptx_at(f, at, i);
            ptx_val in_bounds = ptx_lt(f, i, ptx_as(f, PTX_S32, count));
            PTX_WHEN (f, in_bounds) {
                ptx_set(f, x, ptx_load_hint(f, from, PTX_NC));
            }
            ptx_store(f, ptx_at(f, to, i), x);
        }
    }
}

/* The same for columns that start at a multiple of 16 bytes: a lane takes four scales. */
static void copy_aligned_scales(gemm *g, const ptx_val at[], const ptx_val to[], uint32_t columns,
                                ptx_val count)
{
    ptx_fn *f = g->f;
    ptx_val first = ptx_shl(f, g->lane, ptx_u32(2));
    PTX_IF (f, ptx_lt(f, first, count)) {
        ptx_val x[MOST_COLUMNS][4];
        for (uint32_t i = 0; i < columns; i++)
            ptx_load_vec(f, 4, x[i], ptx_at(f, at[i], first), PTX_NC);
        for (uint32_t i = 0; i < columns; i++)
            ptx_store_vec(f, 4, ptx_at(f, to[i], first), x[i], PTX_PLAIN);
    }
}

/* A warp takes every k_warps-th column. */
void simt_stage_scales(gemm *g, ptx_val first)
{
    ptx_fn *f = g->f;
    ptx_val at[MOST_COLUMNS], to[MOST_COLUMNS];
    uint32_t columns = g->tile_n / g->k_warps;
    ptx_val count = ptx_min(f, ptx_sub(f, g->blocks, first), ptx_u32(SCALES));
    ptx_val mine = ptx_add(f, g->tile, g->k_warp);
    for (uint32_t i = 0; i < columns; i++) {
        ptx_val column = clamp(f, ptx_add(f, mine, ptx_u32(i * g->k_warps)), g->n);
        ptx_val line = ptx_at(f, g->scale, ptx_mul_wide(f, column, g->blocks));
        at[i] = ptx_at(f, line, first);
        to[i] = ptx_at_const(f, ptx_pointer(f, PTX_SHARED, PTX_F32, g->scales_to),
                             i * g->k_warps * SCALES_STRIDE);
    }
    PTX_IF (f, g->has_aligned_scales) {
        copy_aligned_scales(g, at, to, columns, count);
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < columns; i++)
            copy_scales(g, at[i], to[i], count);
    }
}
