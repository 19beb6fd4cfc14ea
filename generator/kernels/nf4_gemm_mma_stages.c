/* nf4_gemm's stages in shared memory: copies into them, and where lanes read.
 *
 * A is copied in the background, stages - 1 ahead, into one of `stages` stages: in a wide tile a quantised block per k_warp, in
 * a narrow one all that an iteration takes. Lanes (g, t) of two rows g read 16 bytes each at once, 32t bytes from a row's
 * start, from different banks: odd rows have the two halves of each 32 bytes swapped, which keeps sectors whole
 * (device/README.md). Only rows of 64 by 128 with split_k 0 have 16 bytes of padding instead, as ptxas has no register left for
 * the other half's address on sm_120.
 *
 * A column's scales are copied a chunk at a time into a ring of two chunks, in the order in which a lane takes them. A chunk has
 * 32 scales, or 16 where there is no room for more, so that their sectors are full.
 */
#include "nf4_gemm_mma.h"

#include "device/copy.h"
#include "device/shared.h"
#include "device/tail.h"

enum {
    A_UNIT = 8, /* elements of A in a copy */
    SCALES_AT_ONCE = 8
};

ptx_val nf4_gemm_is_within(const nf4_gemm_mma *g, const ptx_val ends[], ptx_val done, uint32_t ahead)
{
    ptx_fn *f = g->f;
    if (!g->holds_rows) /* it lacks registers to hold what an addition makes again */
        return ptx_gt(f, ends[ahead], done);
    return ptx_gt(f, ends[0], ptx_add(f, done, ahead * g->k_warps));
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

/* Columns between those whose scales a thread copies. */
static uint32_t scale_step(const nf4_gemm_mma *g)
{
    return g->threads / g->chunk;
}

/* Neighbouring threads copy the scales of neighbouring blocks of a column. In shared memory the `depth` scales that a
 * k_warp takes in one iteration lie together. */
static void init_scale_copies(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    const uint32_t iteration = g->iteration_blocks, step = scale_step(g);
    ptx_val block = ptx_and(f, g->tid, g->chunk - 1), row = ptx_div(f, g->tid, g->chunk);
    ptx_val column = tail_clamp(f, ptx_add(f, row, g->first_column), g->args.n),
            at = ptx_add(f, block, g->first_block);
    ptx_val blocks = ptx_shr(f, g->args.k, 6), before = ptx_mul_wide(f, column, blocks);
    if (g->is_nested) {
        g->scale_from = ptx_var(f, ptx_add(f, before, ptx_cvt(f, PTX_U64, at)));
        g->column_bytes = blocks;
    } else {
        ptx_val start = ptx_at(f, g->args.scale, before);
        g->scale_from = ptx_var(f, ptx_address(f, ptx_at(f, start, at)));
        g->column_bytes = ptx_shl(f, blocks, 2);
    }
    g->columns_left = ptx_sub(f, ptx_sub(f, g->args.n, 1), column);
    for (uint32_t i = 1; !g->is_wide && i < g->scale_copies; i++)
        g->column_of[i] = ptx_min(f, g->columns_left, i * step);
    ptx_val k_warp = ptx_and(f, block, g->k_warps - 1);
    ptx_val later = ptx_div(f, ptx_and(f, block, iteration - 1), g->k_warps);
    ptx_val whole = ptx_and(f, block, ~(iteration - 1));
    ptx_val position = ptx_add(f, ptx_mad(f, k_warp, g->depth, later), whole);
    ptx_val to = ptx_mad(f, row, g->scale_row_bytes, g->scales);
    g->scale_to = ptx_var(f, ptx_mad(f, position, 4, to));
    g->scale_end = ptx_sub(f, g->block_count, ptx_as(f, PTX_S32, block));
    g->scale_next_end = ptx_sub(f, g->scale_end, g->chunk);
    if (g->is_double_buffered)
        g->toggle_to = ptx_mad(f, g->scale_to, 2, 4 * g->chunk);
}

/* The address of the i-th column's scales; nested, their number. A wide tile has many columns: those of all would take too many
 * registers. */
static ptx_val scale_number(nf4_gemm_mma *g, uint32_t i)
{
    ptx_fn *f = g->f;
    if (i == 0)
        return g->scale_from;
    ptx_val column = g->is_wide ? ptx_min(f, g->columns_left, i * scale_step(g)) : g->column_of[i];
    return ptx_mad_wide(f, column, g->column_bytes, g->scale_from);
}

static ptx_val scale_at(nf4_gemm_mma *g, uint32_t i)
{
    return ptx_pointer(g->f, PTX_GLOBAL, PTX_F32, scale_number(g, i));
}

static ptx_val scale_to_at(nf4_gemm_mma *g, ptx_val to, uint32_t i)
{
    return shared_at(g->f, PTX_F32, to, i * scale_step(g) * g->scale_row_bytes);
}

/* Loads `count` columns' scales from column `first` on. */
static void load_some_scales(nf4_gemm_mma *g, uint32_t first, uint32_t count, ptx_val is_there, ptx_val raw[])
{
    ptx_val number[SCALES_AT_ONCE];
    for (uint32_t i = 0; i < count; i++) {
        if (g->is_nested)
            number[i] = scale_number(g, first + i);
        else
            tail_load(g->f, PTX_F32, 1, &raw[i], scale_at(g, first + i), &is_there, PTX_NC);
    }
    if (g->is_nested)
        nf4_nested_load(&g->args.nested, count, number, NULL, raw);
}

/* Below sm_80, and nested ones: through registers, a few at a time. */
static void load_scales(nf4_gemm_mma *g, ptx_val to, ptx_val is_there)
{
    ptx_fn *f = g->f;
    for (uint32_t first = 0; first < g->scale_copies; first += SCALES_AT_ONCE) {
        ptx_val raw[SCALES_AT_ONCE];
        uint32_t left = g->scale_copies - first, count = left < SCALES_AT_ONCE ? left : SCALES_AT_ONCE;
        load_some_scales(g, first, count, is_there, raw);
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, scale_to_at(g, to, first + i), raw[i]);
    }
}

/* Copies the scales of a chunk to `to`; scales of blocks out of bounds are 0. */
static void copy_chunk(nf4_gemm_mma *g, ptx_val to, ptx_val is_there)
{
    ptx_fn *f = g->f;
    if (ptx_has_sm(f, 80) && !g->is_nested) {
        ptx_val bytes = ptx_select(f, is_there, ptx_u32(4), 0);
        for (uint32_t i = 0; i < g->scale_copies; i++)
            ptx_cp_async_zfill(f, scale_to_at(g, to, i), scale_at(g, i), 4, bytes, PTX_CA);
    } else if (g->is_nested) {
        PTX_IF (f, is_there) {
            load_scales(g, to, is_there);
        }
        PTX_ELSE (f) {
            for (uint32_t i = 0; i < g->scale_copies; i++)
                ptx_store(f, scale_to_at(g, to, i), 0);
        }
    } else {
        load_scales(g, to, is_there);
    }
    ptx_set(f, g->scale_from, ptx_add(f, g->scale_from, g->is_nested ? g->chunk : 4 * g->chunk));
}

/* Copies the chunk after the one that starts at block `done` into the ring's other half. */
static void copy_scales(nf4_gemm_mma *g, ptx_val done)
{
    ptx_fn *f = g->f;
    ptx_val to = g->scale_to;
    if (!g->is_double_buffered)
        to = ptx_add(f, g->scale_to, ptx_xor(f, g->ring, 4 * g->chunk));
    copy_chunk(g, to, ptx_gt(f, g->scale_next_end, done));
}

static void copy_scales_ahead(nf4_gemm_mma *g, ptx_val done)
{
    ptx_fn *f = g->f;
    if (g->is_double_buffered) {
        copy_scales(g, done);
        return;
    }
    ptx_val in_chunk = ptx_and(f, g->ring, 4 * g->chunk - 1);
    PTX_IF (f, ptx_eq(f, in_chunk, 0)) {
        copy_scales(g, done);
    }
}

/* ---- rows of A ---------------------------------------------------------------------------------------------------- */

static uint32_t a_row_units(const nf4_gemm_mma *g)
{
    return g->k_warps * g->stage_blocks * BLOCK_K / A_UNIT;
}

/* Of this thread's i-th row that are in bounds. */
static ptx_val bytes_of_row(const nf4_gemm_mma *g, uint32_t i)
{
    ptx_fn *f = g->f;
    ptx_val row = ptx_add(f, g->a_row, i * (g->threads / a_row_units(g)));
    return ptx_select(f, ptx_lt(f, row, g->args.m), ptx_u32(UNIT_BYTES), 0);
}

/* Neighbouring threads copy neighbouring 16 bytes of a row. A thread's rows are as far apart as all threads reach at once. */
static void init_a_copies(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    uint32_t row_units = a_row_units(g), step = g->threads / row_units;
    ptx_val unit = ptx_and(f, g->tid, row_units - 1), row = ptx_div(f, g->tid, row_units);
    ptx_val start = ptx_mul(f, g->first_block, BLOCK_K);
    ptx_val position = ptx_mad(f, unit, A_UNIT, start), first = ptx_add(f, row, g->first_row);
    ptx_val line = ptx_at(f, g->args.in, ptx_mul_wide(f, first, g->args.a_stride));
    g->a_from = ptx_var(f, ptx_cast_ptr(f, ptx_at(f, line, position), PTX_U8));
    g->a_step = ptx_mul_wide(f, g->args.a_stride, 2 * step);
    g->a_row = first;
    for (uint32_t i = 0; i < g->a_copies; i++)
        g->a_bytes[i] = bytes_of_row(g, i);
    ptx_val to = ptx_mad(f, row, g->a_row_bytes, g->a_stages), place = unit;
    if (g->swaps_halves)
        place = ptx_xor(f, unit, ptx_and(f, row, 1));
    g->a_to = ptx_var(f, ptx_mad(f, place, UNIT_BYTES, to));
    if (!g->is_wide)
        g->toggle_a_to = ptx_mad(f, g->a_to, 2, g->a_stage_bytes);
    ptx_val block = ptx_div(f, unit, BLOCK_K / A_UNIT);
    ptx_val end = ptx_sub(f, g->block_count, ptx_as(f, PTX_S32, block));
    for (uint32_t ahead = 0; ahead < g->depth + g->stage_blocks * (g->stages - 1); ahead += g->stage_blocks)
        g->a_end[ahead] = ptx_sub(f, end, ahead * g->k_warps);
}

/* Copies A's elements for block `ahead` of each k_warp; zeros for rows out of bounds. A thread's rows are `step` apart: where
 * that is odd, every other one has its halves the other way round. */
static void copy_rows(nf4_gemm_mma *g, uint32_t ahead)
{
    ptx_fn *f = g->f;
    uint32_t step = g->threads / a_row_units(g),
             stage = g->is_wide ? ahead % g->stages * g->a_stage_bytes : 0;
    bool alternates = g->swaps_halves && step % 2 && g->a_copies > 1;
    ptx_val raw[MOST_COPIES][4], from = ptx_at_const(f, g->a_from, 2 * ahead * g->k_warps * BLOCK_K);
    ptx_val to_rows[2] = {g->a_to, alternates ? ptx_xor(f, g->a_to, UNIT_BYTES) : g->a_to};
    for (uint32_t i = 0; i < g->a_copies; i++) {
        ptx_val to = shared_at(f, PTX_U32, to_rows[i % 2], stage + i * step * g->a_row_bytes);
        if (i > 0)
            from = ptx_at(f, from, g->a_step);
        if (ptx_has_sm(f, 80)) {
            ptx_cp_async_zfill(f, to, ptx_cast_ptr(f, from, PTX_U32), UNIT_BYTES, g->a_bytes[i], PTX_CG);
        } else {
            ptx_val in_bounds = ptx_ne(f, g->a_bytes[i], 0);
            tail_load(f, PTX_U32, 4, raw[i], from, &in_bounds, PTX_NC);
        }
    }
    for (uint32_t i = 0; !ptx_has_sm(f, 80) && i < g->a_copies; i++)
        ptx_store_vec(f, 4, shared_at(f, PTX_U32, to_rows[i % 2], stage + i * step * g->a_row_bytes), raw[i],
                      PTX_PLAIN);
}

static void copy_a(nf4_gemm_mma *g, ptx_val done, uint32_t ahead)
{
    ptx_fn *f = g->f;
    PTX_IF (f, nf4_gemm_is_within(g, g->a_end, done, ahead)) {
        copy_rows(g, ahead);
    }
}

/* Whether a register holds the address of the lane's second 16 bytes. Computing it by an exclusive or costs
 * an instruction each time, but smaller wide tiles have no register left: ptxas would spill. */
static bool keeps_second(const nf4_gemm_mma *g)
{
    return g->swaps_halves && g->tile_m == 64 && g->tile_n == 128;
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

void nf4_gemm_init_reads(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val column = ptx_mad(f, g->column_warp, COLUMNS * g->groups, g->lane.g);
    ptx_val of_k_warp = ptx_mad(f, g->k_warp, 4 * g->depth, g->scales);
    g->scales_read = ptx_var(f, ptx_mad(f, column, g->scale_row_bytes, of_k_warp));
    g->a_stages = ptx_add(f, g->scales, g->tile_n * g->scale_row_bytes);
    ptx_val block = ptx_mad(f, g->k_warp, 2 * BLOCK_K, g->a_stages);
    ptx_val row = g->tile_m < ROWS ? ptx_and(f, g->lane.g, g->tile_m - 1) : g->lane.g;
    ptx_val line = ptx_mad(f, row, g->a_row_bytes, block);
    ptx_val start = ptx_mad(f, g->lane.t, 2 * UNIT_BYTES, line);
    if (g->swaps_halves)
        start = ptx_mad(f, ptx_and(f, row, 1), UNIT_BYTES, start);
    g->a_read = g->is_wide ? start : ptx_var(f, start);
    if (keeps_second(g))
        g->a_second = ptx_xor(f, start, UNIT_BYTES);
    if (g->is_double_buffered)
        g->toggle_read = ptx_mad(f, g->scales_read, 2, 4 * g->chunk);
    if (!g->is_wide)
        g->toggle_a = ptx_mad(f, g->a_read, 2, g->a_stage_bytes);
}

void nf4_gemm_init_copies(nf4_gemm_mma *g)
{
    init_scale_copies(g);
    init_a_copies(g);
}

void nf4_gemm_copy_first(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    copy_chunk(g, g->scale_to, ptx_gt(f, g->scale_end, 0));
    for (uint32_t stage = 0; stage + 1 < g->stages; stage++) {
        copy_a(g, ptx_s32(0), stage * g->stage_blocks);
        copy_commit(g->f);
    }
    if (g->is_double_buffered)
        shared_toggle(f, g->scale_to, g->toggle_to);
    if (!g->is_wide)
        shared_toggle(f, g->a_to, g->toggle_a_to);
}

void nf4_gemm_next_stage(nf4_gemm_mma *g, ptx_val done, uint32_t block)
{
    copy_wait(g->f, g->stages - 2);
    ptx_barrier(g->f);
    if (block == 0)
        copy_scales_ahead(g, done);
    copy_a(g, done, block + g->stage_blocks * (g->stages - 1));
    copy_commit(g->f);
}

/* Those of all blocks of an iteration at once, but where a block's are all that there are registers for. */
void nf4_gemm_read_scales(nf4_gemm_mma *g, uint32_t block)
{
    ptx_fn *f = g->f;
    const uint32_t count = g->has_most_threads || g->holds_rows ? 1 : g->depth;
    if (block % count)
        return;
    ptx_val from = g->is_double_buffered ? g->scales_read : ptx_add(f, g->scales_read, g->ring);
    for (uint32_t i = 0; i < 2 * g->groups; i++)
        ptx_load_vec(f, (int)count, &g->scale_of[i / 2][i % 2][block],
                     shared_at(f, PTX_F32, from, 8 * i * g->scale_row_bytes + 4 * block), PTX_PLAIN);
}

void nf4_gemm_read_a(nf4_gemm_mma *g, uint32_t block, uint32_t row_tile, ptx_val out[8])
{
    ptx_fn *f = g->f;
    uint32_t place = g->is_wide ? block % g->stages * g->a_stage_bytes : block * g->k_warps * 2 * BLOCK_K;
    uint32_t bytes = place + row_tile * ROWS * g->a_row_bytes;
    ptx_val second = keeps_second(g)   ? g->a_second
                     : g->swaps_halves ? ptx_xor(f, g->a_read, UNIT_BYTES)
                                       : ptx_add(f, g->a_read, UNIT_BYTES);
    ptx_load_vec(f, 4, &out[0], shared_at(f, PTX_U32, g->a_read, bytes), PTX_PLAIN);
    ptx_load_vec(f, 4, &out[4], shared_at(f, PTX_U32, second, bytes), PTX_PLAIN);
}

void nf4_gemm_step_stages(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    if (g->is_double_buffered) {
        shared_toggle(f, g->scales_read, g->toggle_read);
        shared_toggle(f, g->scale_to, g->toggle_to);
    } else {
        ptx_val next = ptx_add(f, g->ring, 4 * g->iteration_blocks);
        ptx_set(f, g->ring, ptx_and(f, next, 8 * g->chunk - 1));
    }
    if (!g->is_wide) {
        shared_toggle(f, g->a_read, g->toggle_a);
        shared_toggle(f, g->a_to, g->toggle_a_to);
    }
    ptx_set(f, g->a_from, ptx_at_const(f, g->a_from, 2 * g->iteration_blocks * BLOCK_K));
}
