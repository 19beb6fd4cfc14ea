/* What the NF4 product on tensor cores moves: scales and A into shared memory, sums from there to C. */
#include "device/split.h"
#include "nf4_gemm_mma.h"

enum { A_UNIT = 8, UNIT_BYTES = 16 }; /* elements of A in a copy */

ptx_val mma_shared_at(const mma_gemm *g, ptx_type type, ptx_val address, uint32_t bytes)
{
    return ptx_at_bytes(g->f, ptx_pointer(g->f, PTX_SHARED, type, address), bytes);
}

/* Clamps a row or column to the last one: what is out of bounds is calculated, but not stored. */
ptx_val mma_clamp(ptx_fn *f, ptx_val index, ptx_val count)
{
    ptx_val last = ptx_sub(f, count, ptx_u32(1));
    return ptx_min(f, index, last);
}

/* ---- copies into shared memory ------------------------------------------------------------------------------------ */

/* Columns between those whose scales a thread copies. */
static uint32_t scale_step(const mma_gemm *g)
{
    return g->threads / g->chunk;
}

/* Neighbouring threads copy the scales of neighbouring blocks of a column. In shared memory the `depth` scales that a
 * k_warp takes in one iteration lie together. */
static void init_scale_copies(mma_gemm *g)
{
    ptx_fn *f = g->f;
    uint32_t iteration = g->k_warps * g->depth, step = scale_step(g);
    ptx_val block = ptx_and(f, g->tid, ptx_u32(g->chunk - 1)), row = ptx_div(f, g->tid, ptx_u32(g->chunk));
    ptx_val column = mma_clamp(f, ptx_add(f, row, g->first_column), g->n),
            at = ptx_add(f, block, g->first_block);
    ptx_val blocks = ptx_shr(f, g->k, ptx_u32(6)),
            start = ptx_at(f, g->scale, ptx_mul_wide(f, column, blocks));
    g->scale_from = ptx_var(f, ptx_address(f, ptx_at(f, start, at)));
    g->column_bytes = ptx_shl(f, blocks, ptx_u32(2));
    g->columns_left = ptx_sub(f, ptx_sub(f, g->n, ptx_u32(1)), column);
    for (uint32_t i = 1; !g->is_wide && i < g->scale_copies; i++)
        g->column_of[i] = ptx_min(f, g->columns_left, ptx_u32(i * step));
    ptx_val k_warp = ptx_and(f, block, ptx_u32(g->k_warps - 1));
    ptx_val later = ptx_div(f, ptx_and(f, block, ptx_u32(iteration - 1)), ptx_u32(g->k_warps));
    ptx_val whole = ptx_and(f, block, ptx_u32(~(iteration - 1)));
    ptx_val position = ptx_add(f, ptx_mad(f, k_warp, ptx_u32(g->depth), later), whole);
    ptx_val to = ptx_mad(f, row, ptx_u32(g->scale_row_bytes), g->scales);
    g->scale_to = ptx_var(f, ptx_mad(f, position, ptx_u32(4), to));
    g->scale_end = ptx_sub(f, g->block_count, ptx_as(f, PTX_S32, block));
    g->scale_next_end = ptx_sub(f, g->scale_end, ptx_s32((int32_t)g->chunk));
    if (mma_is_double_buffered(g))
        g->toggle_to = ptx_mad(f, g->scale_to, ptx_u32(2), ptx_u32(4 * g->chunk));
}

static uint32_t a_row_units(const mma_gemm *g)
{
    return g->k_warps * g->stage_blocks * MMA_BLOCK_K / A_UNIT;
}

/* Neighbouring threads copy neighbouring 16 bytes of a row. A thread's rows are as far apart as all threads reach at once. */
static void init_a_copies(mma_gemm *g)
{
    ptx_fn *f = g->f;
    uint32_t row_units = a_row_units(g), step = g->threads / row_units;
    ptx_val unit = ptx_and(f, g->tid, ptx_u32(row_units - 1)), row = ptx_div(f, g->tid, ptx_u32(row_units));
    ptx_val start = ptx_mul(f, g->first_block, ptx_u32(MMA_BLOCK_K));
    ptx_val position = ptx_mad(f, unit, ptx_u32(A_UNIT), start), first = ptx_add(f, row, g->first_row);
    ptx_val line = ptx_at(f, g->in, ptx_mul_wide(f, first, g->k));
    g->a_from = ptx_var(f, ptx_cast_ptr(f, ptx_at(f, line, position), PTX_U8));
    g->a_step = ptx_mul_wide(f, g->k, ptx_u32(2 * step));
    for (uint32_t i = 0; i < g->a_copies; i++) {
        ptx_val in_bounds = ptx_lt(f, ptx_add(f, first, ptx_u32(i * step)), g->m);
        g->a_bytes[i] = ptx_select(f, in_bounds, ptx_u32(UNIT_BYTES), ptx_u32(0));
    }
    ptx_val to = ptx_mad(f, row, ptx_u32(g->a_row_bytes), g->a_stages);
    g->a_to = ptx_var(f, ptx_mad(f, unit, ptx_u32(UNIT_BYTES), to));
    if (!g->is_wide)
        g->toggle_a_to = ptx_mad(f, g->a_to, ptx_u32(2), ptx_u32(g->a_stage_bytes));
    ptx_val block = ptx_div(f, unit, ptx_u32(MMA_BLOCK_K / A_UNIT));
    ptx_val end = ptx_sub(f, g->block_count, ptx_as(f, PTX_S32, block));
    for (uint32_t ahead = 0; ahead < g->depth + g->stage_blocks * (g->stages - 1); ahead += g->stage_blocks)
        g->a_end[ahead] = ptx_sub(f, end, ptx_s32((int32_t)(ahead * g->k_warps)));
}

void mma_init_copies(mma_gemm *g)
{
    init_scale_copies(g);
    init_a_copies(g);
}

/* The address of the i-th column's scales. A wide tile has many columns: pointers to all would take too many registers. */
static ptx_val scale_at(mma_gemm *g, uint32_t i)
{
    ptx_fn *f = g->f;
    ptx_val from = g->scale_from;
    if (i > 0) {
        ptx_val column =
            g->is_wide ? ptx_min(f, g->columns_left, ptx_u32(i * scale_step(g))) : g->column_of[i];
        from = ptx_mad_wide(f, column, g->column_bytes, g->scale_from);
    }
    return ptx_pointer(f, PTX_GLOBAL, PTX_F32, from);
}

static ptx_val scale_to_at(mma_gemm *g, ptx_val to, uint32_t i)
{
    return mma_shared_at(g, PTX_F32, to, i * scale_step(g) * g->scale_row_bytes);
}

/* Below sm_80: through registers, a few at a time. */
static void load_scales(mma_gemm *g, ptx_val to, ptx_val is_there)
{
    enum { AT_ONCE = 8 };
    ptx_fn *f = g->f;
    for (uint32_t first = 0; first < g->scale_copies; first += AT_ONCE) {
        ptx_val raw[AT_ONCE];
        uint32_t count = g->scale_copies - first < AT_ONCE ? g->scale_copies - first : AT_ONCE;
        for (uint32_t i = 0; i < count; i++) {
            ptx_val from = scale_at(g, first + i);
            raw[i] = ptx_var(f, ptx_f32(0));
            PTX_WHEN (f, is_there) {
                ptx_set(f, raw[i], ptx_load_hint(f, from, PTX_NC));
            }
        }
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, scale_to_at(g, to, first + i), raw[i]);
    }
}

/* Copies the scales of a chunk to `to`; scales of blocks out of bounds are 0. */
static void copy_chunk(mma_gemm *g, ptx_val to, ptx_val is_there)
{
    ptx_fn *f = g->f;
    if (g->has_sm_80) {
        ptx_val bytes = ptx_select(f, is_there, ptx_u32(4), ptx_u32(0));
        for (uint32_t i = 0; i < g->scale_copies; i++)
            ptx_cp_async_zfill(f, scale_to_at(g, to, i), scale_at(g, i), 4, bytes, PTX_CA);
    } else {
        load_scales(g, to, is_there);
    }
    ptx_set(f, g->scale_from, ptx_add(f, g->scale_from, ptx_u64(4 * g->chunk)));
}

/* Copies the chunk after the one that starts at block `done` into the ring's other half. */
void mma_copy_scales(mma_gemm *g, ptx_val done)
{
    ptx_fn *f = g->f;
    ptx_val to = g->scale_to;
    if (!mma_is_double_buffered(g))
        to = ptx_add(f, g->scale_to, ptx_xor(f, g->ring, ptx_u32(4 * g->chunk)));
    copy_chunk(g, to, ptx_gt(f, g->scale_next_end, done));
}

/* Below sm_80: through registers. */
static void load_row(mma_gemm *g, ptx_val from, uint32_t i, ptx_val raw[4])
{
    ptx_fn *f = g->f;
    ptx_val loaded[4], in_bounds = ptx_ne(f, g->a_bytes[i], ptx_u32(0));
    for (uint32_t e = 0; e < 4; e++)
        raw[e] = ptx_var(f, ptx_u32(0));
    PTX_WHEN (f, in_bounds) {
        ptx_load_vec(f, 4, loaded, from, PTX_NC);
        for (uint32_t e = 0; e < 4; e++)
            ptx_set(f, raw[e], loaded[e]);
    }
}

/* Copies A's elements for block `ahead` of each k_warp; zeros for rows out of bounds. */
static void copy_rows(mma_gemm *g, uint32_t ahead)
{
    ptx_fn *f = g->f;
    uint32_t step = g->threads / a_row_units(g),
             stage = g->is_wide ? ahead % g->stages * g->a_stage_bytes : 0;
    ptx_val raw[MMA_MOST_COPIES][4], from = ptx_at_const(f, g->a_from, 2 * ahead * g->k_warps * MMA_BLOCK_K);
    for (uint32_t i = 0; i < g->a_copies; i++) {
        ptx_val to = mma_shared_at(g, PTX_U32, g->a_to, stage + i * step * g->a_row_bytes);
        if (i > 0)
            from = ptx_at(f, from, g->a_step);
        if (g->has_sm_80)
            ptx_cp_async_zfill(f, to, ptx_cast_ptr(f, from, PTX_U32), UNIT_BYTES, g->a_bytes[i], PTX_CG);
        else
            load_row(g, ptx_cast_ptr(f, from, PTX_U32), i, raw[i]);
    }
    for (uint32_t i = 0; !g->has_sm_80 && i < g->a_copies; i++)
        ptx_store_vec(f, 4, mma_shared_at(g, PTX_U32, g->a_to, stage + i * step * g->a_row_bytes), raw[i],
                      PTX_PLAIN);
}

void mma_copy_a(mma_gemm *g, ptx_val done, uint32_t ahead)
{
    ptx_fn *f = g->f;
    PTX_IF (f, ptx_gt(f, g->a_end[ahead], done)) {
        copy_rows(g, ahead);
    }
}

void mma_step_copies(mma_gemm *g)
{
    ptx_set(g->f, g->a_from, ptx_at_const(g->f, g->a_from, 2 * g->k_warps * g->depth * MMA_BLOCK_K));
}

bool mma_is_double_buffered(const mma_gemm *g)
{
    return g->k_warps * g->depth == g->chunk;
}

void mma_copy_first(mma_gemm *g)
{
    ptx_fn *f = g->f;
    copy_chunk(g, g->scale_to, ptx_gt(f, g->scale_end, ptx_s32(0)));
    for (uint32_t stage = 0; stage + 1 < g->stages; stage++) {
        mma_copy_a(g, ptx_s32(0), stage * g->stage_blocks);
        mma_copies_commit(g);
    }
    if (mma_is_double_buffered(g))
        ptx_set(f, g->scale_to, ptx_sub(f, g->toggle_to, g->scale_to));
    if (!g->is_wide)
        ptx_set(f, g->a_to, ptx_sub(f, g->toggle_a_to, g->a_to));
}

void mma_copies_commit(mma_gemm *g)
{
    if (g->has_sm_80)
        ptx_cp_async_commit(g->f);
}

void mma_copies_wait(mma_gemm *g, uint32_t pending)
{
    if (g->has_sm_80)
        ptx_cp_async_wait(g->f, pending);
}

/* ---- sums into C --------------------------------------------------------------------------------------------------- */

uint32_t mma_sums_row_bytes(const mma_gemm *g)
{
    return 4 * (g->tile_n + MMA_PAD_WORDS);
}

/* Stores each k_warp's tile of sums where the table and the copies were. */
static void store_sums(mma_gemm *g)
{
    ptx_fn *f = g->f;
    uint32_t row_bytes = mma_sums_row_bytes(g);
    ptx_val column = ptx_mad(f, g->column_warp, ptx_u32(MMA_COLUMNS * g->groups), g->g);
    ptx_val of_k_warp = ptx_mad(f, g->k_warp, ptx_u32(g->row_tiles * MMA_ROWS * row_bytes), g->shared);
    ptx_val line = ptx_mad(f, g->t, ptx_u32(2 * row_bytes), of_k_warp);
    ptx_val to = ptx_mad(f, column, ptx_u32(4), line);
    for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++) {
        for (uint32_t i = 0; i < 4 * g->groups; i++) {
            uint32_t row = row_tile * MMA_ROWS + i % 2, in_warp = i / 4 * MMA_COLUMNS + i % 4 / 2 * 8;
            ptx_store(f, mma_shared_at(g, PTX_F32, to, row * row_bytes + 4 * in_warp),
                      g->sum[row_tile][i / 4][i % 4]);
        }
    }
}

/* This thread's i-th element of the tile: the sum over the k_warps, in their order. */
static ptx_val add_k_warps(mma_gemm *g, ptx_val from, uint32_t i)
{
    ptx_fn *f = g->f;
    uint32_t row_bytes = mma_sums_row_bytes(g), bytes = i * (g->threads / g->tile_n) * row_bytes;
    ptx_val sum = ptx_load(f, mma_shared_at(g, PTX_F32, from, bytes));
    for (uint32_t s = 1; s < g->k_warps; s++) {
        ptx_val next =
            ptx_load(f, mma_shared_at(g, PTX_F32, from, bytes + s * g->row_tiles * MMA_ROWS * row_bytes));
        sum = ptx_add(f, sum, next);
    }
    return sum;
}

static ptx_val add_splits(mma_gemm *g, ptx_val sums[], uint32_t count, uint32_t threads)
{
    ptx_fn *f = g->f;
    ptx_val column_tiles = ptx_nctaid_x(f), row_tile = ptx_ctaid_y(f), column_tile = ptx_ctaid_x(f);
    split s = {.f = f,
               .type = PTX_F32,
               .parts = g->split_k,
               .threads = threads,
               .block_threads = g->threads,
               .workspace = g->workspace,
               .tile_counters = g->tile_counters,
               .tile = ptx_mad(f, row_tile, column_tiles, column_tile),
               .part = ptx_ctaid_z(f),
               .tid = g->tid};
    return split_add(&s, sums, count);
}

/* Stores this thread's elements of a column: from `row` on, every `step`-th row. */
static void store_column(mma_gemm *g, ptx_val row, ptx_val column, ptx_val may, const ptx_val sums[],
                         uint32_t count, uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val line = ptx_at(f, g->out, ptx_mul_wide(f, row, g->n)), at = ptx_at(f, line, column);
    ptx_val line_step = ptx_mul_wide(f, g->n, ptx_u32(step));
    ptx_val left = ptx_sub(f, ptx_as(f, PTX_S32, g->m), ptx_as(f, PTX_S32, row));
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            at = ptx_at(f, at, line_step);
        ptx_val in_bounds = ptx_and(f, ptx_gt(f, left, ptx_s32((int32_t)(i * step))), may);
        ptx_val narrow = ptx_cvt(f, g->type, sums[i]);
        PTX_WHEN (f, in_bounds) {
            ptx_store(f, at, narrow);
        }
    }
}

/* Threads take neighbouring elements of a row; a small tile has fewer elements than there are threads. */
void mma_store_tile(mma_gemm *g)
{
    ptx_fn *f = g->f;
    uint32_t elements = g->tile_m * g->tile_n, pass_rows = g->threads / g->tile_n;
    uint32_t count = elements < g->threads ? 1 : elements / g->threads, threads = elements / count;
    ptx_val sums[MMA_MOST_SUMS], row = ptx_div(f, g->tid, ptx_u32(g->tile_n));
    ptx_val in_tile = ptx_and(f, g->tid, ptx_u32(g->tile_n - 1));
    ptx_val line = ptx_mad(f, row, ptx_u32(mma_sums_row_bytes(g)), g->shared);
    ptx_val from = ptx_mad(f, in_tile, ptx_u32(4), line);
    ptx_val column = ptx_add(f, in_tile, g->first_column), may = ptx_lt(f, column, g->n);
    ptx_barrier(f);
    store_sums(g);
    ptx_barrier(f);
    for (uint32_t i = 0; i < count; i++)
        sums[i] = ptx_var(f, ptx_f32(0));
    if (threads < g->threads) {
        ptx_val has_sums = ptx_lt(f, g->tid, ptx_u32(threads));
        may = ptx_and(f, may, has_sums);
        PTX_IF (f, has_sums) {
            ptx_set(f, sums[0], add_k_warps(g, from, 0));
        }
    } else {
        for (uint32_t i = 0; i < count; i++)
            ptx_set(f, sums[i], add_k_warps(g, from, i));
    }
    if (g->split_k > 1)
        may = ptx_and(f, may, add_splits(g, sums, count, threads));
    store_column(g, ptx_add(f, row, g->first_row), column, may, sums, count, pass_rows);
}
