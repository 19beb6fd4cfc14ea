/* NF4 matrix product on the units for single numbers.
 *
 * A thread block makes a tile of C, tile_m rows by tile_n columns. Its warps share the tile and split K: warp s takes
 * every slices-th stretch of 512, and the warps' sums are added in their order. Eight lanes look after a column; the
 * four such groups of a warp have tile_n / 4 columns each. In half a stretch a lane takes 32 codes of a column, 16
 * bytes, and the eight of them 128 bytes in a row: every byte of the weights is read once per tile_m rows of A. A lane
 * loads the scale of one block of 64, so that eight scales are a sector; a shuffle brings it where it is needed.
 *
 * DECODING. A table in shared memory holds the two values of each byte, in 16 copies of 8 bytes (in eight of 16 for
 * f64) beside each other, so that no two lanes meet in a bank. Per two weights: prmt for the byte, mad for the address,
 * one load. Shuffles out of a register would take a shift and a shuffle for each weight, and a shuffle costs as much
 * of the memory pipe as the load of a pair.
 *
 * ROWS OF A. A warp widens what it needs of A into its own part of shared memory, `depth` of each lane's 32, so that
 * lane j finds its share at unit (row, i, j) of 16 bytes: eight lanes read 128 bytes in a row, all four groups the same
 * ones. Units with neighbouring i lie 8 + 32 / depth apart, so that the writers meet in few banks.
 *
 * BYTES. Per weight 0.5625 of codes and scales, all sectors full; where K is no multiple of 512 the scales of a stretch
 * may lie across two sectors: at K = 6912 1.06 of the weights' bytes are requested. A is read again by every thread
 * block, which for f16 is 1/8 of a byte per weight and row with tile_n 16, out of the L2 cache.
 *
 * INSTRUCTIONS per weight in the loop, tile_n 16, one row: 2.5 for decoding and the product (prmt, mad, load and two
 * fma for two weights), 0.06 for reading A, 0.06 for the scale and its shuffle, 0.06 for the codes and their address,
 * the rest for staging A and the loop: 2.87 f32, 2.95 f16, 2.92 bf16; 2.76, 2.80 and 2.79 with tile_n 32. Two rows take
 * 4.03, four 6.36, eight 10.9 (f32). With a block's table and sums, K = 4096, 4 slices: 3.22, 3.28, 3.25 for one row.
 * The address takes two instructions because a table that is indexed by a byte in place, 64 KB and aligned to that,
 * leaves one thread block per multiprocessor.
 */
#include "narrow.h"
#include "nf4_gemm.h"
#include "nf4_pairs.h"

enum {
    WARP_LANES = 32,
    COLUMN_LANES = 8,
    LANE_K = 32,                  /* of a half: codes that a lane takes with one load */
    HALF = COLUMN_LANES * LANE_K, /* of a stretch */
    STRETCH = 2 * HALF,
    BLOCK_K = 64, /* weights that share a scale */
    TABLE_BYTES = NF4_PAIRS_BYTES,
    UNIT_BYTES = 16,
    MOST_ROWS = 8,
    MOST_COLUMNS = 8,
    MOST_LOADS = 4 /* of A, per lane and stage */
};

/* ---- a variant while it is emitted ----------------------------------------------------------------------------- */

typedef struct gemm {
    ptx_fn *f;
    ptx_type type, wide; /* of A and C; of arithmetic */
    uint32_t sm, rows, columns, tile_n, slices;
    uint32_t depth, stage_row_bytes;
    uint32_t vector, pieces, loads; /* elements of A in a load; loads in a lane's share; loads per lane */

    nf4_pairs pairs;
    ptx_val in, packed, scale, out, m, n, k;     /* arguments */
    ptx_val lane, group, member, slice;          /* of the warp; of 4; of 8; the warp itself */
    ptx_val shared, stage, stage_to, stage_from; /* addresses in shared memory */
    ptx_val scale_lane[2];                       /* whose scale is this lane's, in either half */
    ptx_val a_at[MOST_LOADS], a_k;               /* where this lane's loads of A start, at which k */
    ptx_val codes_at[MOST_COLUMNS], scales_at[MOST_COLUMNS];
    ptx_val sum[MOST_ROWS][MOST_COLUMNS];
} gemm;

static uint32_t wide_bytes(const gemm *g)
{
    return g->wide == PTX_F64 ? 8 : 4;
}

static uint32_t unit_stride(const gemm *g)
{
    return 8 + 32 / g->depth;
}

/* The row of C and of A, at most the last one: what does not exist is calculated and not stored. */
static ptx_val clamp(ptx_fn *f, ptx_val index, ptx_val count)
{
    ptx_val last = ptx_sub(f, count, ptx_u32(1));
    return ptx_min(f, index, last);
}

static ptx_val shared_at(const gemm *g, ptx_val address, uint32_t bytes)
{
    ptx_val at = ptx_pointer(g->f, PTX_SHARED, g->wide, address);
    return ptx_at_bytes(g->f, at, bytes);
}

/* ---- what lies where ------------------------------------------------------------------------------------------- */

static void place_columns(gemm *g)
{
    ptx_fn *f = g->f;
    ptx_val tile = ptx_mul(f, ptx_ctaid_x(f), ptx_u32(g->tile_n));
    ptx_val first = ptx_mad(f, g->group, ptx_u32(g->columns), tile);
    ptx_val words = ptx_shr(f, g->k, ptx_u32(3)), blocks = ptx_shr(f, g->k, ptx_u32(6));
    for (uint32_t c = 0; c < g->columns; c++) {
        ptx_val column = clamp(f, ptx_add(f, first, ptx_u32(c)), g->n);
        g->codes_at[c] = ptx_at(f, ptx_cast_ptr(f, g->packed, PTX_U32), ptx_mul_wide(f, column, words));
        g->scales_at[c] = ptx_at(f, g->scale, ptx_mul_wide(f, column, blocks));
    }
}

/* Loads of A are numbered by piece, then lane of the column, then row; lane l takes numbers l, l + 32, ... */
static void place_stage(gemm *g, ptx_val first_row)
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

/* How far load i is behind load 0: members of the same row (their k), or whole rows. */
static uint32_t load_member(const gemm *g, uint32_t i)
{
    return i * WARP_LANES / g->pieces % COLUMN_LANES;
}

static uint32_t load_row(const gemm *g, uint32_t i)
{
    return i * WARP_LANES / (COLUMN_LANES * g->pieces);
}

/* ---- A into shared memory -------------------------------------------------------------------------------------- */

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

/* What lies behind A's last column counts as 0. */
static void stage_ragged(gemm *g, ptx_val at, ptx_val past, uint32_t i, uint32_t offset)
{
    ptx_fn *f = g->f;
    ptx_type held = g->vector == 8 ? PTX_U32 : PTX_F32;
    ptx_val raw[4], loaded[4];
    ptx_val exists = ptx_lt(f, ptx_add(f, past, ptx_u32(offset)), g->k);
    for (int e = 0; e < 4; e++)
        raw[e] = ptx_var(f, ptx_bits(held, 0));
    PTX_WHEN (f, exists) {
        ptx_load_vec(f, 4, loaded, at, PTX_NC);
        for (int e = 0; e < 4; e++)
            ptx_set(f, raw[e], loaded[e]);
    }
    store_stage(g, i, raw);
}

/* `depth` of each lane's share of the half at k, of all rows. */
static void stage_rows(gemm *g, ptx_val k, ptx_val is_full, uint32_t round)
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

/* ---- the product ----------------------------------------------------------------------------------------------- */

/* Four neighbouring elements of a row of A, the i-th four of the lane's share of a stage. */
static void load_four(gemm *g, uint32_t row, uint32_t i, ptx_val x[4])
{
    uint32_t units = wide_bytes(g) / 4, elements = 4 / units;
    for (uint32_t u = 0; u < units; u++) {
        uint32_t bytes = row * g->stage_row_bytes + (i * units + u) * unit_stride(g) * UNIT_BYTES;
        ptx_load_vec(g->f, (int)elements, &x[u * elements], shared_at(g, g->stage_from, bytes), PTX_PLAIN);
    }
}

typedef ptx_val partial_sums[MOST_ROWS][MOST_COLUMNS];

/* partial += four elements of each row times four weights of each column; the first four of a half set it. */
static void multiply_four(gemm *g, ptx_val words[MOST_COLUMNS][4], uint32_t round, uint32_t i,
                          partial_sums partial)
{
    ptx_fn *f = g->f;
    ptx_val weights[MOST_COLUMNS][4];
    uint32_t place = round * g->depth + 4 * i;
    for (uint32_t c = 0; c < g->columns; c++) {
        nf4_pairs_decode(&g->pairs, words[c][place / 8], place % 8 / 2, &weights[c][0]);
        nf4_pairs_decode(&g->pairs, words[c][place / 8], place % 8 / 2 + 1, &weights[c][2]);
    }
    for (uint32_t row = 0; row < g->rows; row++) {
        ptx_val x[4];
        load_four(g, row, i, x);
        for (uint32_t c = 0; c < g->columns; c++) {
            for (uint32_t e = 0; e < 4; e++) {
                if (place + e == 0)
                    partial[row][c] = ptx_var(f, ptx_mul(f, x[0], weights[c][0]));
                else
                    ptx_fma_to(f, partial[row][c], x[e], weights[c][e]);
            }
        }
    }
}

static void multiply_half(gemm *g, ptx_val k, const ptx_val scales[], uint32_t half)
{
    ptx_fn *f = g->f;
    ptx_val words[MOST_COLUMNS][4];
    partial_sums partial;
    ptx_val mine = ptx_mad(f, g->member, ptx_u32(LANE_K), k);
    ptx_val most = ptx_sub(f, g->k, ptx_u32(LANE_K));
    ptx_val word = ptx_shr(f, ptx_min(f, mine, most), ptx_u32(3));
    for (uint32_t c = 0; c < g->columns; c++)
        ptx_load_vec(f, 4, words[c], ptx_at(f, g->codes_at[c], word), PTX_NC | PTX_NO_ALLOCATE);
    ptx_val end = ptx_add(f, k, ptx_u32(HALF));
    ptx_val is_full = ptx_le(f, end, g->k);
    for (uint32_t round = 0; round < LANE_K / g->depth; round++) {
        stage_rows(g, k, is_full, round);
        ptx_warp_barrier(f);
        for (uint32_t i = 0; i < g->depth / 4; i++)
            multiply_four(g, words, round, i, partial);
        ptx_warp_barrier(f);
    }
    for (uint32_t c = 0; c < g->columns; c++) {
        ptx_val scale = ptx_shfl_idx_in(f, scales[c], g->scale_lane[half], COLUMN_LANES);
        if (g->wide == PTX_F64)
            scale = ptx_cvt(f, PTX_F64, scale);
        for (uint32_t row = 0; row < g->rows; row++)
            ptx_fma_to(f, g->sum[row][c], partial[row][c], scale);
    }
}

static void multiply_stretches(gemm *g)
{
    ptx_fn *f = g->f;
    for (uint32_t row = 0; row < g->rows; row++)
        for (uint32_t c = 0; c < g->columns; c++)
            g->sum[row][c] = ptx_var(f, ptx_number(g->wide, 0));
    ptx_val blocks = ptx_shr(f, g->k, ptx_u32(6));
    ptx_val start = ptx_mul(f, g->slice, ptx_u32(STRETCH));
    PTX_FOR (f, k, start, g->k, ptx_u32(g->slices * STRETCH)) {
        ptx_val scales[MOST_COLUMNS];
        ptx_val first = ptx_shr(f, k, ptx_u32(6));
        ptx_val block = clamp(f, ptx_add(f, first, g->member), blocks);
        for (uint32_t c = 0; c < g->columns; c++)
            scales[c] = ptx_load_hint(f, ptx_at(f, g->scales_at[c], block), PTX_NC);
        multiply_half(g, k, scales, 0);
        ptx_val second = ptx_add(f, k, ptx_u32(HALF));
        PTX_IF (f, ptx_lt(f, second, g->k)) {
            multiply_half(g, second, scales, 1);
        }
    }
}

/* ---- sums over lanes and warps --------------------------------------------------------------------------------- */

/* Each warp's tile of sums, where its stage was. */
static void store_sums(gemm *g)
{
    ptx_fn *f = g->f;
    uint32_t at_once = UNIT_BYTES / wide_bytes(g);
    for (uint32_t row = 0; row < g->rows; row++)
        for (uint32_t c = 0; c < g->columns; c++)
            g->sum[row][c] = ptx_reduce_lanes(f, PTX_OP_ADD, COLUMN_LANES, g->sum[row][c]);
    ptx_val to = ptx_mad(f, g->group, ptx_u32(g->columns * wide_bytes(g)), g->stage);
    ptx_val is_first = ptx_eq(f, g->member, ptx_u32(0));
    PTX_IF (f, is_first) {
        for (uint32_t row = 0; row < g->rows; row++)
            for (uint32_t c = 0; c < g->columns; c += at_once)
                ptx_store_vec(f, (int)at_once, shared_at(g, to, (row * g->tile_n + c) * wide_bytes(g)),
                              &g->sum[row][c], PTX_PLAIN);
    }
}

static void store_result(gemm *g, ptx_val at, ptx_val x, ptx_val exists)
{
    ptx_fn *f = g->f;
    if (g->type == PTX_BF16 && g->sm < 80) {
        x = ptx_shr(f, narrow_to_bf16(f, x), ptx_u32(16));
        at = ptx_cast_ptr(f, at, PTX_U16);
    } else if (g->type != g->wide) {
        x = ptx_cvt(f, g->type, x);
    }
    PTX_WHEN (f, exists) {
        ptx_store(f, at, x);
    }
}

/* Element `number` of the tile, row by row: the sum over the warps, in their order. */
static void add_slices(gemm *g, ptx_val number, ptx_val first_row)
{
    ptx_fn *f = g->f;
    ptx_val from = ptx_mad(f, number, ptx_u32(wide_bytes(g)), g->shared);
    uint32_t stage_bytes = g->rows * g->stage_row_bytes;
    ptx_val sum = ptx_load(f, shared_at(g, from, TABLE_BYTES));
    for (uint32_t s = 1; s < g->slices; s++) {
        ptx_val next = ptx_load(f, shared_at(g, from, TABLE_BYTES + s * stage_bytes));
        sum = ptx_add(f, sum, next);
    }
    ptx_val in_tile = ptx_and(f, number, ptx_u32(g->tile_n - 1));
    ptx_val column = ptx_mad(f, ptx_ctaid_x(f), ptx_u32(g->tile_n), in_tile);
    ptx_val row = ptx_add(f, ptx_div(f, number, ptx_u32(g->tile_n)), first_row);
    ptx_val has_column = ptx_lt(f, column, g->n), has_row = ptx_lt(f, row, g->m);
    ptx_val exists = ptx_and(f, has_column, has_row);
    ptx_val line = ptx_at(f, g->out, ptx_mul_wide(f, row, g->n));
    store_result(g, ptx_at(f, line, column), sum, exists);
}

static void store_tile(gemm *g, ptx_val tid, ptx_val first_row)
{
    ptx_fn *f = g->f;
    uint32_t threads = g->slices * WARP_LANES, count = g->rows * g->tile_n;
    ptx_barrier(f);
    if (count < threads) {
        PTX_IF (f, ptx_lt(f, tid, ptx_u32(count))) {
            add_slices(g, tid, first_row);
        }
        return;
    }
    for (uint32_t i = 0; i < count; i += threads)
        add_slices(g, i == 0 ? tid : ptx_add(f, tid, ptx_u32(i)), first_row);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

static gemm open_gemm(ptx_fn *f, const kiln_variant *v)
{
    gemm g = {.f = f, .type = kiln_type(v, "a"), .wide = kiln_type(v, "acc"), .sm = kiln_target_sm(v)};
    g.rows = kiln_int(v, "tile_m");
    g.tile_n = kiln_int(v, "tile_n");
    g.columns = g.tile_n / (WARP_LANES / COLUMN_LANES);
    g.slices = kiln_int(v, "slices");
    g.pairs = (nf4_pairs){.f = f, .type = g.wide, .is_high_first = kiln_is(v, "nibbles", "high")};
    g.vector = g.type == PTX_F32 ? 4 : 8;
    g.depth = g.rows == 1 ? 32 : g.rows == 2 || g.vector == 8 ? 16 : 8;
    g.pieces = g.depth / g.vector;
    g.loads = g.rows * COLUMN_LANES * g.pieces / WARP_LANES;
    g.stage_row_bytes = wide_bytes(&g) * (COLUMN_LANES * g.depth + 32);

    g.in = ptx_param_ptr(f, g.type, "in");
    g.packed = ptx_param_ptr(f, PTX_U8, "packed");
    g.scale = ptx_param_ptr(f, PTX_F32, "scale");
    g.out = ptx_param_ptr(f, g.type, "out");
    g.m = ptx_param(f, PTX_U32, "m");
    g.n = ptx_param(f, PTX_U32, "n");
    g.k = ptx_param(f, PTX_U32, "k");
    return g;
}

static void place_warp(gemm *g)
{
    ptx_fn *f = g->f;
    g->lane = ptx_laneid(f);
    g->member = ptx_and(f, g->lane, ptx_u32(COLUMN_LANES - 1));
    g->group = ptx_shr(f, g->lane, ptx_u32(3));
    g->slice = ptx_warpid_x(f);
    g->pairs.start = g->shared;
    ptx_val stages = ptx_add(f, g->shared, ptx_u32(TABLE_BYTES));
    g->stage = ptx_mad(f, g->slice, ptx_u32(g->rows * g->stage_row_bytes), stages);
    g->scale_lane[0] = ptx_shr(f, g->member, ptx_u32(1));
    g->scale_lane[1] = ptx_add(f, g->scale_lane[0], ptx_u32(HALF / BLOCK_K));
}

/* As many as leave a thread the registers that its sums need. Left to itself, ptxas hoists loads of the table until
 * there are none left. */
static uint32_t blocks_per_multiprocessor(const gemm *g)
{
    enum { ALL_REGISTERS = 65536, MOST_BLOCKS = 16 };
    uint32_t sums = 2 * g->rows * g->columns * wide_bytes(g) / 4;
    uint32_t few = g->slices == 4 ? 96 : 85, many = g->sm < 80 ? 255 : 168;
    uint32_t registers = sums <= 8 ? few : sums <= 32 ? 128 : many;
    uint32_t blocks = ALL_REGISTERS / (g->slices * WARP_LANES * registers);
    return blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
}

void nf4_gemm_emit_simt(ptx_fn *f, const kiln_variant *v)
{
    gemm g = open_gemm(f, v);
    ptx_min_blocks(f, blocks_per_multiprocessor(&g));
    ptx_val tid = ptx_tid_x(f);
    g.shared = ptx_address(f, ptx_shared_dynamic(f, g.wide));
    ptx_val first_row = ptx_mul(f, ptx_ctaid_y(f), ptx_u32(g.rows));
    place_warp(&g);
    nf4_pairs_fill(&g.pairs, tid, g.slices * WARP_LANES, g.lane);
    place_columns(&g);
    place_stage(&g, first_row);
    ptx_barrier(f);
    multiply_stretches(&g);
    store_sums(&g);
    store_tile(&g, tid, first_row);
}
