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
    BLOCK_UNITS = NF4_BLOCK_K / A_UNIT,
    BLOCK_BYTES = 2 * NF4_BLOCK_K, /* of A */
    PAD_WORDS = 4,                 /* after a column's scales */
    PAD_BYTES = 16, /* after rows of A without swapped halves, so that rows start in different banks */
    SCALES_AT_ONCE = 8
};

/* ---- sizes ---------------------------------------------------------------------------------------------------------- */

/* Units of a row in a stage. */
static uint32_t row_units(const nf4_gemm_mma *g)
{
    return g->k_warps * g->rows.blocks * BLOCK_UNITS;
}

/* Rows between those that a thread copies: as many as all threads reach at once. */
static uint32_t rows_apart(const nf4_gemm_mma *g)
{
    return g->threads / row_units(g);
}

/* Columns between those whose scales a thread copies. */
static uint32_t columns_apart(const nf4_gemm_mma *g)
{
    return g->threads / g->scales.chunk;
}

void nf4_gemm_size_stages(nf4_gemm_mma *g, bool is_compact)
{
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    s->chunk = g->has_most_threads ? g->iteration_blocks : g->tile_n == 128 && is_compact ? 16 : 32;
    s->copies = g->tile_n * s->chunk / g->threads;
    s->row_bytes = 4 * (2 * s->chunk + PAD_WORDS);
    s->is_iteration = g->iteration_blocks == s->chunk;
    r->blocks = g->is_wide ? 1 : g->depth;
    r->copies = g->tile_m * row_units(g) / g->threads;
    r->swaps_halves = !(g->tile_m == 64 && g->tile_n == 128 && g->split_k == 0);
    r->row_bytes = row_units(g) * UNIT_BYTES + (r->swaps_halves ? 0 : PAD_BYTES);
    r->stage_bytes = g->tile_m * r->row_bytes;
}

/* Scales, then stages of A. */
uint32_t nf4_gemm_stages_bytes(const nf4_gemm_mma *g)
{
    return g->tile_n * g->scales.row_bytes + g->stages * g->rows.stage_bytes;
}

/* ---- quantised blocks in bounds -------------------------------------------------------------------------------------- */

/* Quantised blocks of the part of K from one on, S32. */
static ptx_val blocks_from(const nf4_gemm_mma *g, ptx_val block)
{
    return ptx_sub(g->f, ptx_as(g->f, PTX_S32, g->tile.block_count), ptx_as(g->f, PTX_S32, block));
}

void nf4_gemm_find_ends(const nf4_gemm_mma *g, ptx_val first, uint32_t count, uint32_t step, block_ends ends)
{
    ptx_val end = blocks_from(g, first);
    for (uint32_t ahead = 0; ahead < count; ahead += step)
        ends[ahead] = ptx_sub(g->f, end, ahead * g->k_warps);
}

ptx_val nf4_gemm_in_bounds(const nf4_gemm_mma *g, const block_ends ends, ptx_val done, uint32_t ahead)
{
    ptx_fn *f = g->f;
    if (g->holds_rows) /* no register is left for the other ends */
        return ptx_gt(f, ends[0], ptx_add(f, done, ahead * g->k_warps));
    return ptx_gt(f, ends[ahead], done);
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

/* Neighbouring threads copy the scales of neighbouring blocks of a column. In shared memory the `depth` scales that a
 * k_warp takes in one iteration lie together. */
static void init_scale_copies(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    const uint32_t iteration = g->iteration_blocks;
    ptx_val block = ptx_and(f, g->tid, s->chunk - 1), row = ptx_div(f, g->tid, s->chunk);
    ptx_val column = tail_clamp(f, ptx_add(f, row, g->tile.first_column), g->args.n);
    ptx_val at = ptx_add(f, block, g->tile.first_block);
    ptx_val blocks = nf4_blocks(f, &g->args), before = ptx_mul_wide(f, column, blocks);
    if (g->args.is_nested) {
        s->from = ptx_var(f, ptx_add(f, before, ptx_cvt(f, PTX_U64, at)));
        s->column_step = blocks;
    } else {
        ptx_val start = ptx_at(f, g->args.scale, before);
        s->from = ptx_var(f, ptx_address(f, ptx_at(f, start, at)));
        s->column_step = ptx_shl(f, blocks, 2);
    }
    s->columns_left = ptx_sub(f, ptx_sub(f, g->args.n, 1), column);
    for (uint32_t i = 1; !g->is_wide && i < s->copies; i++)
        s->column[i] = ptx_min(f, s->columns_left, i * columns_apart(g));
    ptx_val k_warp = ptx_and(f, block, g->k_warps - 1);
    ptx_val later = ptx_div(f, ptx_and(f, block, iteration - 1), g->k_warps);
    ptx_val whole = ptx_and(f, block, ~(iteration - 1));
    ptx_val position = ptx_add(f, ptx_mad(f, k_warp, g->depth, later), whole);
    ptx_val to = ptx_mad(f, row, s->row_bytes, s->at);
    s->to = ptx_var(f, ptx_mad(f, position, 4, to));
    s->end = blocks_from(g, block);
    s->next_end = ptx_sub(f, s->end, s->chunk);
    if (s->is_iteration)
        s->toggle_to = ptx_mad(f, s->to, 2, 4 * s->chunk);
}

/* The address of the i-th column's scale; nested, its number in the tensor. A wide tile has many columns: to keep all of them would
 * take too many registers. */
static ptx_val scale_number(nf4_gemm_mma *g, uint32_t i)
{
    ptx_fn *f = g->f;
    const scale_ring *s = &g->scales;
    if (i == 0)
        return s->from;
    ptx_val column = g->is_wide ? ptx_min(f, s->columns_left, i * columns_apart(g)) : s->column[i];
    return ptx_mad_wide(f, column, s->column_step, s->from);
}

static ptx_val scale_at(nf4_gemm_mma *g, uint32_t i)
{
    return ptx_pointer(g->f, PTX_GLOBAL, PTX_F32, scale_number(g, i));
}

static ptx_val scale_to_at(nf4_gemm_mma *g, ptx_val to, uint32_t i)
{
    return shared_at(g->f, PTX_F32, to, i * columns_apart(g) * g->scales.row_bytes);
}

/* Nested ones, and below sm_80: through registers, a few at a time. */
static void load_scales(nf4_gemm_mma *g, ptx_val to, ptx_val is_there)
{
    ptx_fn *f = g->f;
    const uint32_t copies = g->scales.copies, count = copies < SCALES_AT_ONCE ? copies : SCALES_AT_ONCE;
    for (uint32_t first = 0; first < copies; first += count) {
        ptx_val number[SCALES_AT_ONCE], scale[SCALES_AT_ONCE];
        for (uint32_t i = 0; i < count; i++) {
            if (g->args.is_nested)
                number[i] = scale_number(g, first + i);
            else
                tail_load(f, PTX_F32, 1, &scale[i], scale_at(g, first + i), &is_there, PTX_NC);
        }
        if (g->args.is_nested)
            nf4_nested_load(&g->args.nested, count, number, NULL, scale);
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, scale_to_at(g, to, first + i), scale[i]);
    }
}

/* Copies the scales of a chunk to `to`, and goes on to the next; scales of blocks out of bounds are 0. */
static void copy_chunk(nf4_gemm_mma *g, ptx_val to, ptx_val is_there)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    if (g->args.is_nested) {
        PTX_IF (f, is_there) {
            load_scales(g, to, is_there);
        }
        PTX_ELSE (f) {
            for (uint32_t i = 0; i < s->copies; i++)
                ptx_store(f, scale_to_at(g, to, i), 0);
        }
    } else if (ptx_has_sm(f, 80)) {
        ptx_val bytes = ptx_select(f, is_there, ptx_u32(4), 0);
        for (uint32_t i = 0; i < s->copies; i++)
            ptx_cp_async_zfill(f, scale_to_at(g, to, i), scale_at(g, i), 4, bytes, PTX_CA);
    } else {
        load_scales(g, to, is_there);
    }
    ptx_set(f, s->from, ptx_add(f, s->from, g->args.is_nested ? s->chunk : 4 * s->chunk));
}

/* At the start of a chunk copies the next into the ring's other half. */
static void copy_scales_ahead(nf4_gemm_mma *g, ptx_val done)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    if (s->is_iteration) {
        copy_chunk(g, s->to, ptx_gt(f, s->next_end, done));
        return;
    }
    ptx_val in_chunk = ptx_and(f, s->offset, 4 * s->chunk - 1);
    PTX_IF (f, ptx_eq(f, in_chunk, 0)) {
        ptx_val to = ptx_add(f, s->to, ptx_xor(f, s->offset, 4 * s->chunk));
        copy_chunk(g, to, ptx_gt(f, s->next_end, done));
    }
}

/* Those of all blocks of an iteration at once, except where there are registers for one block's only. */
void nf4_gemm_read_scales(nf4_gemm_mma *g, uint32_t block)
{
    ptx_fn *f = g->f;
    const scale_ring *s = &g->scales;
    const uint32_t count = g->has_most_threads || g->holds_rows ? 1 : g->depth;
    if (block % count)
        return;
    ptx_val from = s->is_iteration ? s->read : ptx_add(f, s->read, s->offset);
    for (uint32_t i = 0; i < 2 * g->groups; i++)
        ptx_load_vec(f, (int)count, &g->scale[i][block],
                     shared_at(f, PTX_F32, from, 8 * i * s->row_bytes + 4 * block), PTX_PLAIN);
}

/* ---- rows of A ---------------------------------------------------------------------------------------------------- */

/* Neighbouring threads copy neighbouring 16 bytes of a row. */
static void init_row_copies(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    row_stages *r = &g->rows;
    const uint32_t units = row_units(g);
    ptx_val unit = ptx_and(f, g->tid, units - 1), row = ptx_div(f, g->tid, units);
    ptx_val start = ptx_mul(f, g->tile.first_block, NF4_BLOCK_K);
    ptx_val position = ptx_mad(f, unit, A_UNIT, start), first = ptx_add(f, row, g->tile.first_row);
    ptx_val line = ptx_at(f, g->args.in, ptx_mul_wide(f, first, g->args.a_stride));
    r->from = ptx_var(f, ptx_cast_ptr(f, ptx_at(f, line, position), PTX_U8));
    r->step = ptx_mul_wide(f, g->args.a_stride, 2 * rows_apart(g));
    for (uint32_t i = 0; i < r->copies; i++) {
        ptx_val mine = ptx_add(f, first, i * rows_apart(g));
        r->bytes[i] = ptx_select(f, ptx_lt(f, mine, g->args.m), ptx_u32(UNIT_BYTES), 0);
    }
    ptx_val to = ptx_mad(f, row, r->row_bytes, r->at), place = unit;
    if (r->swaps_halves)
        place = ptx_xor(f, unit, ptx_and(f, row, 1));
    r->to = ptx_var(f, ptx_mad(f, place, UNIT_BYTES, to));
    if (!g->is_wide)
        r->toggle_to = ptx_mad(f, r->to, 2, r->stage_bytes);
    ptx_val block = ptx_div(f, unit, BLOCK_UNITS);
    nf4_gemm_find_ends(g, block, g->depth + r->blocks * (g->stages - 1), r->blocks, r->ends);
}

/* Copies A's elements for block `ahead` of each k_warp; zeros for rows out of bounds. Where a thread's rows are an odd number
 * apart, every other one has its halves swapped. */
static void copy_rows(nf4_gemm_mma *g, uint32_t ahead)
{
    ptx_fn *f = g->f;
    const row_stages *r = &g->rows;
    const uint32_t stage = g->is_wide ? ahead % g->stages * r->stage_bytes : 0;
    const bool alternates = r->swaps_halves && rows_apart(g) % 2 && r->copies > 1;
    ptx_val raw[MOST_COPIES][4], to[MOST_COPIES];
    ptx_val from = ptx_at_const(f, r->from, ahead * g->k_warps * BLOCK_BYTES);
    ptx_val rows[2] = {r->to, alternates ? ptx_xor(f, r->to, UNIT_BYTES) : r->to};
    for (uint32_t i = 0; i < r->copies; i++) {
        to[i] = shared_at(f, PTX_U32, rows[i % 2], stage + i * rows_apart(g) * r->row_bytes);
        if (i > 0)
            from = ptx_at(f, from, r->step);
        if (ptx_has_sm(f, 80)) {
            ptx_cp_async_zfill(f, to[i], ptx_cast_ptr(f, from, PTX_U32), UNIT_BYTES, r->bytes[i], PTX_CG);
        } else {
            ptx_val in_bounds = ptx_ne(f, r->bytes[i], 0);
            tail_load(f, PTX_U32, 4, raw[i], from, &in_bounds, PTX_NC);
        }
    }
    for (uint32_t i = 0; !ptx_has_sm(f, 80) && i < r->copies; i++)
        ptx_store_vec(f, 4, to[i], raw[i], PTX_PLAIN);
}

static void copy_a(nf4_gemm_mma *g, ptx_val done, uint32_t ahead)
{
    PTX_IF (g->f, nf4_gemm_in_bounds(g, g->rows.ends, done, ahead)) {
        copy_rows(g, ahead);
    }
}

/* Whether a register holds the address of the lane's second 16 bytes. Computing it by an exclusive or costs
 * an instruction each time, but smaller wide tiles have no register left: ptxas would spill. */
static bool keeps_second(const nf4_gemm_mma *g)
{
    return g->rows.swaps_halves && g->tile_m == 64 && g->tile_n == 128;
}

void nf4_gemm_read_a(nf4_gemm_mma *g, uint32_t block, uint32_t row_tile, ptx_val out[8])
{
    ptx_fn *f = g->f;
    const row_stages *r = &g->rows;
    const uint32_t stage = g->is_wide ? block % g->stages * r->stage_bytes : block * g->k_warps * BLOCK_BYTES;
    const uint32_t bytes = stage + row_tile * SUMS_ROWS * r->row_bytes;
    ptx_val second = keeps_second(g)   ? r->second
                     : r->swaps_halves ? ptx_xor(f, r->read, UNIT_BYTES)
                                       : ptx_add(f, r->read, UNIT_BYTES);
    ptx_load_vec(f, 4, &out[0], shared_at(f, PTX_U32, r->read, bytes), PTX_PLAIN);
    ptx_load_vec(f, 4, &out[4], shared_at(f, PTX_U32, second, bytes), PTX_PLAIN);
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

void nf4_gemm_init_reads(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    ptx_val column = ptx_mad(f, g->column_warp, SUMS_COLUMNS * g->groups, g->lane.g);
    ptx_val of_k_warp = ptx_mad(f, g->k_warp, 4 * g->depth, s->at);
    s->read = ptx_var(f, ptx_mad(f, column, s->row_bytes, of_k_warp));
    r->at = ptx_add(f, s->at, g->tile_n * s->row_bytes);
    ptx_val block = ptx_mad(f, g->k_warp, BLOCK_BYTES, r->at);
    ptx_val row = g->tile_m < SUMS_ROWS ? ptx_and(f, g->lane.g, g->tile_m - 1) : g->lane.g;
    ptx_val line = ptx_mad(f, row, r->row_bytes, block);
    ptx_val start = ptx_mad(f, g->lane.t, 2 * UNIT_BYTES, line);
    if (r->swaps_halves)
        start = ptx_mad(f, ptx_and(f, row, 1), UNIT_BYTES, start);
    r->read = g->is_wide ? start : ptx_var(f, start);
    if (keeps_second(g))
        r->second = ptx_xor(f, start, UNIT_BYTES);
    if (s->is_iteration)
        s->toggle_read = ptx_mad(f, s->read, 2, 4 * s->chunk);
    if (!g->is_wide)
        r->toggle_read = ptx_mad(f, r->read, 2, r->stage_bytes);
}

void nf4_gemm_init_copies(nf4_gemm_mma *g)
{
    init_scale_copies(g);
    init_row_copies(g);
}

void nf4_gemm_copy_first(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    copy_chunk(g, s->to, ptx_gt(f, s->end, 0));
    for (uint32_t stage = 0; stage + 1 < g->stages; stage++) {
        copy_a(g, ptx_s32(0), stage * g->rows.blocks);
        copy_commit(f);
    }
    if (s->is_iteration)
        shared_toggle(f, s->to, s->toggle_to);
    if (!g->is_wide)
        shared_toggle(f, g->rows.to, g->rows.toggle_to);
}

void nf4_gemm_next_stage(nf4_gemm_mma *g, ptx_val done, uint32_t block)
{
    copy_wait(g->f, g->stages - 2);
    ptx_barrier(g->f);
    if (block == 0)
        copy_scales_ahead(g, done);
    copy_a(g, done, block + g->rows.blocks * (g->stages - 1));
    copy_commit(g->f);
}

void nf4_gemm_step_stages(nf4_gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    if (s->is_iteration) {
        shared_toggle(f, s->read, s->toggle_read);
        shared_toggle(f, s->to, s->toggle_to);
    } else {
        ptx_val next = ptx_add(f, s->offset, 4 * g->iteration_blocks);
        ptx_set(f, s->offset, ptx_and(f, next, 8 * s->chunk - 1));
    }
    if (!g->is_wide) {
        shared_toggle(f, r->read, r->toggle_read);
        shared_toggle(f, r->to, r->toggle_to);
    }
    ptx_set(f, r->from, ptx_at_const(f, r->from, g->iteration_blocks * BLOCK_BYTES));
}
