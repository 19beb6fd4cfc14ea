/* NF4 matrix product on tensor cores.
 *
 * The weights are mma's first operand: 16 columns of B are its 16 rows. A is the second: eight of its rows are the 8 columns.
 * So mma gives C transposed, and 1 to 8 rows of A cost the same. A thread block makes tile_m rows by tile_n columns of C. In
 * a wide tile (tile_n from 64, or tile_m from 16) each warp has 32 columns, and `k_warps` groups of such warps share K; in a
 * narrow one all warps have the same columns and share K. A quantised block is 64 weights along K with one scale. Each k_warp
 * takes every k_warps-th quantised block, and the sums are added in the order of the warps. Each of `split_k` thread blocks
 * has a part of K. With split_k 0 each of as many thread blocks as fit the device at once has an equal stretch of the
 * quantised blocks of all tiles (device/split.h): no second wave, and no idle thread blocks.
 *
 * ORDER ALONG K is free as long as the operands agree. In a quantised block, lane (g, t) takes the 16 codes from 16*t on of
 * columns g and g + 8, 8 bytes each, and the same 16 elements of row g of A, 32 bytes. Each byte becomes one register of an
 * operand, two weights: prmt for the byte, mad for the address (not with an aligned table), one load from the table. Four
 * lanes read a whole sector of codes, and nothing is repacked.
 *
 * SCALES multiply the sums of a quantised block, in f32: weights keep the table's 11 or 8 bits, and no scale overflows or
 * underflows the type.
 *
 * PREFETCHING. Codes go straight into registers, since no two warps need the same ones: through shared memory they would take
 * twice the bandwidth that already limits the table. As soon as a quantised block is done, its registers are loaded for the
 * one `depth` later. A and the scales are copied into shared memory. A thread block reads each row of A once, and each warp
 * reads all of it from shared memory, which limits many rows: with 16 or 32 rows and tile_n 128 a warp has 64 columns, and
 * half as many bytes of A for each. Then it holds its part of A in registers, and decodes 16 columns at a time. Two thread
 * blocks of four warps wait less at barriers than one of eight. With 16 warps a thread block has a multiprocessor to itself:
 * as many bytes are in flight as with two of 8 warps, but K need not be split over thread blocks for that, nor A be copied
 * twice.
 *
 * STAGES. A is copied asynchronously, stages - 1 ahead, into one of `stages` stages: in a wide tile a quantised block per
 * k_warp, in a narrow one an iteration's. Lanes (g, t) of two rows g read 16 bytes each at once, 32t bytes from a row's
 * start, from different banks: odd rows have the two halves of each 32 bytes swapped, which keeps sectors whole
 * (device/README.md). Only tiles of 64 by 128 with split_k 0 have 16 bytes of padding after each row instead, since ptxas has
 * no register left for the other half's address on sm_120.
 *
 * A column's scales are copied a chunk at a time into a ring of two chunks, in the order in which a lane reads them. A chunk
 * has 32 scales, or 16 if there is no room for more, so that their sectors are full.
 */
#include "nf4_gemm.h"

#include "device/copy.h"
#include "device/lanes.h"
#include "device/shared.h"
#include "device/sums.h"
#include "device/tail.h"
#include "device/tensor.h"

enum {
    BLOCK_PRODUCTS = 4,            /* of a quantised block */
    BLOCK_BYTES = 2 * NF4_BLOCK_K, /* of a row of A */
    BLOCK_UNITS = BLOCK_BYTES / UNIT_BYTES,
    PAD_WORDS = 4,  /* after a column's scales */
    PAD_BYTES = 16, /* after rows of A without swapped halves, so that rows start in different banks */
    SCALES_AT_ONCE = 8,
    MOST_GROUPS = 4, /* of 16 columns, per warp */
    MOST_LANE_COLUMNS = 2 * MOST_GROUPS,
    MOST_DEPTH = 4,
    MOST_COPIES = 16, /* per thread and stage */
    MOST_HELD_TILES = 4,
    MOST_THREADS = 512
};

/* An iteration takes every k_warps-th block from the first one of a warp, or of a thread. For each block of this iteration
 * and the next: the iteration, named by its first block, from which on that block is out of bounds. S32. */
typedef ptx_val block_ends[2 * MOST_DEPTH];

/* An address in one of two buffers, and the sum of its two values; a poison sum: always the first. */
typedef struct buffered {
    ptx_val at, sum;
} buffered;

/* Scales of the tile's columns in shared memory: a ring of two chunks. */
typedef struct scale_ring {
    uint32_t chunk;     /* quantised blocks whose scales are copied at once */
    uint32_t copies;    /* of a thread: columns */
    uint32_t row_bytes; /* of a column */
    bool is_iteration;  /* an iteration takes a whole chunk: `to` and `read` alternate, instead of `offset` */
    ptx_val at;         /* address of the first column */
    ptx_val from;       /* this thread's copies, a variable: see scale_number */
    buffered to;
    ptx_val column_step, columns_left, column[MOST_COPIES];
    ptx_val end, next_end; /* of this thread's quantised blocks, in this chunk and in the next */
    buffered read;         /* where this lane reads */
    ptx_val offset;        /* bytes to this iteration's scales, a variable */
} scale_ring;

/* Rows of A in shared memory, `stages` times. In a wide tile immediates select stages, in a narrow one addresses alternate. */
typedef struct row_stages {
    uint32_t blocks; /* quantised blocks of a k_warp in a stage */
    uint32_t copies; /* of a thread: rows */
    uint32_t row_bytes, stage_bytes;
    bool swaps_halves; /* of each 32 bytes, in odd rows: see STAGES */
    ptx_val at;        /* address of the first stage */
    ptx_val from;      /* this thread's copies, a variable */
    buffered to;
    ptx_val step, bytes[MOST_COPIES];
    block_ends ends;
    buffered read;  /* this lane's first 16 bytes */
    ptx_val second; /* its next 16: see keeps_second */
} row_stages;

typedef struct gemm_mma {
    ptx_fn *f;
    uint32_t tile_m, tile_n, k_warps, stages, split_k;
    uint32_t groups, row_tiles, column_warps, threads;
    uint32_t depth;            /* quantised blocks whose codes a warp prefetches: an iteration's */
    uint32_t iteration_blocks; /* those of all k_warps */
    bool is_wide;              /* warps have different columns, or there are many rows */
    bool holds_rows;           /* a warp has 64 columns, and reads A half as often as with 32 */
    bool has_most_threads;     /* a thread has half of the registers then */

    nf4_args args;
    linear l;
    linear_tile tile;
    nf4_pairs pairs;
    ptx_val k_warp, first_block, block_count; /* of the thread block's part of K: quantised blocks, U32 */
    block_ends ends;                          /* this warp's */
    scale_ring scales;
    row_stages rows;

    ptx_val codes_at[MOST_LANE_COLUMNS]; /* of this lane, the next to be loaded */
    ptx_val codes[MOST_DEPTH][MOST_LANE_COLUMNS][NF4_LANE_WORDS];
    ptx_val scale[MOST_LANE_COLUMNS][MOST_DEPTH];
    ptx_val zero;
    warp_sums sums;
} gemm_mma;

/* ---- the thread block ---------------------------------------------------------------------------------------------------------- */

/* Units of a row in a stage. */
static uint32_t row_units(const gemm_mma *g)
{
    return g->k_warps * g->rows.blocks * BLOCK_UNITS;
}

/* Distance of the rows that a thread copies: as many as all threads reach at once. */
static uint32_t rows_apart(const gemm_mma *g)
{
    return g->threads / row_units(g);
}

/* Distance of the columns whose scales a thread copies. */
static uint32_t columns_apart(const gemm_mma *g)
{
    return g->threads / g->scales.chunk;
}

static gemm_mma geometry(ptx_fn *f, const kiln_variant *v)
{
    gemm_mma of = {.f = f}, *g = &of;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    g->tile_m = kiln_int(v, "tile_m");
    g->tile_n = kiln_int(v, "tile_n");
    g->k_warps = kiln_int(v, "k_warps");
    g->stages = kiln_int(v, "stages");
    g->split_k = kiln_int(v, "split_k");
    g->holds_rows = (g->tile_m == 32 || g->tile_m == 16) && g->tile_n == 128;
    g->groups = g->tile_n == 16 ? 1 : g->holds_rows ? 4 : 2;
    g->row_tiles = g->tile_m < SUMS_ROWS ? 1 : g->tile_m / SUMS_ROWS;
    g->column_warps = g->tile_n / (SUMS_COLUMNS * g->groups);
    g->threads = WARP_LANES * g->column_warps * g->k_warps;
    g->has_most_threads = g->threads == MOST_THREADS;
    g->is_wide = g->column_warps > 1 || g->tile_m > SUMS_ROWS;
    g->depth = g->is_wide ? (g->tile_m <= 16 && !g->has_most_threads ? 4 : 2) : (g->tile_m <= 4 ? 4 : 2);
    g->iteration_blocks = g->k_warps * g->depth;
    g->pairs = nf4_table(f, v, kiln_type(v, "a"), 1024 + linear_split_bytes(v));
    s->chunk = g->has_most_threads                                  ? g->iteration_blocks
               : g->tile_n == 128 && kiln_is(v, "table", "compact") ? 16
                                                                    : 32;
    s->copies = g->tile_n * s->chunk / g->threads;
    s->row_bytes = 4 * (2 * s->chunk + PAD_WORDS);
    s->is_iteration = g->iteration_blocks == s->chunk;
    r->blocks = g->is_wide ? 1 : g->depth;
    r->copies = g->tile_m * row_units(g) / g->threads;
    r->swaps_halves = !(g->tile_m == 64 && g->tile_n == 128 && g->split_k == 0);
    r->row_bytes = row_units(g) * UNIT_BYTES + (r->swaps_halves ? 0 : PAD_BYTES);
    r->stage_bytes = g->tile_m * r->row_bytes;
    return of;
}

/* ---- quantised blocks in bounds -------------------------------------------------------------------------------------- */

/* Quantised blocks of the part of K from `block` on, S32. */
static ptx_val blocks_from(const gemm_mma *g, ptx_val block)
{
    return ptx_sub(g->f, ptx_as(g->f, PTX_S32, g->block_count), ptx_as(g->f, PTX_S32, block));
}

/* The ends of the blocks 0, `step`, ... below `count`, where block 0 is quantised block `first` of the part of K. */
static void find_ends(const gemm_mma *g, ptx_val first, uint32_t count, uint32_t step, block_ends ends)
{
    ptx_val end = blocks_from(g, first);
    for (uint32_t ahead = 0; ahead < count; ahead += step)
        ends[ahead] = ptx_sub(g->f, end, ahead * g->k_warps);
}

/* Whether block `ahead` is in bounds in the iteration that starts at `done`. */
static ptx_val in_bounds(const gemm_mma *g, const block_ends ends, ptx_val done, uint32_t ahead)
{
    ptx_fn *f = g->f;
    if (g->holds_rows) /* no register is left for the other ends */
        return ptx_gt(f, ends[0], ptx_add(f, done, ahead * g->k_warps));
    return ptx_gt(f, ends[ahead], done);
}

/* ---- this warp's codes ------------------------------------------------------------------------------------------- */

static void init_codes(gemm_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val of_warp = ptx_mad(f, g->tile.column_warp, g->tile.warp_columns, g->tile.first_w);
    ptx_val mine = ptx_add(f, of_warp, g->tile.lane.g);
    ptx_val byte = ptx_mad(f, g->k_warp, NF4_BLOCK_K / 2, ptx_mul(f, g->tile.lane.t, 4 * NF4_LANE_WORDS));
    for (uint32_t i = 0; i < 2 * g->groups; i++) {
        ptx_val row = linear_row_address(&g->l, ptx_add(f, mine, 8 * i));
        ptx_val at = ptx_add(f, row, ptx_cvt(f, PTX_U64, byte));
        g->codes_at[i] = ptx_var(f, ptx_pointer(f, PTX_GLOBAL, PTX_U32, at));
        for (uint32_t j = 0; j < g->depth; j++)
            for (uint32_t word = 0; word < NF4_LANE_WORDS; word++)
                g->codes[j][i][word] = ptx_var(f, ptx_u32(0));
    }
}

/* Loads the codes of this warp's block `ahead`, counted from the iteration's first, if it is in bounds. */
static void load_ahead(gemm_mma *g, ptx_val done, uint32_t ahead)
{
    ptx_fn *f = g->f;
    const uint32_t words = ahead * g->k_warps * NF4_BLOCK_WORDS;
    PTX_WHEN (f, in_bounds(g, g->ends, done, ahead)) {
        for (uint32_t i = 0; i < 2 * g->groups; i++)
            nf4_load_words(f, NF4_LANE_WORDS, g->codes[ahead % g->depth][i],
                           ptx_at_const(f, g->codes_at[i], words), NF4_CODE_HINTS);
    }
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

/* Neighbouring threads copy the scales of neighbouring blocks of a column. In shared memory the `depth` scales that a
 * k_warp takes in one iteration lie together. */
static void init_scale_copies(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    const uint32_t iteration = g->iteration_blocks;
    ptx_val block = ptx_and(f, g->l.tid, s->chunk - 1), row = ptx_div(f, g->l.tid, s->chunk);
    ptx_val column = tail_clamp(f, ptx_add(f, row, g->tile.first_w), g->args.n);
    ptx_val at = ptx_add(f, block, g->first_block);
    ptx_val blocks = g->l.row_numbers, before = ptx_mul_wide(f, column, blocks);
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
    s->to.at = ptx_var(f, ptx_mad(f, position, 4, to));
    s->end = blocks_from(g, block);
    s->next_end = ptx_sub(f, s->end, s->chunk);
    if (s->is_iteration)
        s->to.sum = ptx_mad(f, s->to.at, 2, 4 * s->chunk);
}

/* The address of the i-th column's scale; nested, its number in the tensor. Computed at each use: a wide tile has too many
 * columns to keep all. */
static ptx_val scale_number(gemm_mma *g, uint32_t i)
{
    ptx_fn *f = g->f;
    const scale_ring *s = &g->scales;
    if (i == 0)
        return s->from;
    ptx_val column = g->is_wide ? ptx_min(f, s->columns_left, i * columns_apart(g)) : s->column[i];
    return ptx_mad_wide(f, column, s->column_step, s->from);
}

static ptx_val scale_to_at(gemm_mma *g, ptx_val to, uint32_t i)
{
    return shared_at(g->f, PTX_F32, to, i * columns_apart(g) * g->scales.row_bytes);
}

/* Nested scales, and all below sm_80: through registers, a few at a time. */
static void load_scales(gemm_mma *g, ptx_val to, ptx_val is_there)
{
    ptx_fn *f = g->f;
    const uint32_t copies = g->scales.copies, count = copies < SCALES_AT_ONCE ? copies : SCALES_AT_ONCE;
    for (uint32_t first = 0; first < copies; first += count) {
        ptx_val number[SCALES_AT_ONCE], scale[SCALES_AT_ONCE];
        for (uint32_t i = 0; i < count; i++) {
            number[i] = scale_number(g, first + i);
            if (!g->args.is_nested)
                tail_load(f, PTX_F32, 1, &scale[i], ptx_pointer(f, PTX_GLOBAL, PTX_F32, number[i]), &is_there,
                          PTX_NC);
        }
        if (g->args.is_nested)
            nf4_nested_load(&g->args.nested, count, number, NULL, scale);
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, scale_to_at(g, to, first + i), scale[i]);
    }
}

/* Copies the scales of a chunk to `to`, and advances to the next; scales of blocks out of bounds are 0. */
static void copy_chunk(gemm_mma *g, ptx_val to, ptx_val is_there)
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
        for (uint32_t i = 0; i < s->copies; i++) {
            ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_F32, scale_number(g, i));
            ptx_cp_async_zfill(f, scale_to_at(g, to, i), from, 4, bytes, PTX_CA);
        }
    } else {
        load_scales(g, to, is_there);
    }
    ptx_set(f, s->from, ptx_add(f, s->from, g->args.is_nested ? s->chunk : 4 * s->chunk));
}

/* At the start of a chunk copies the next into the ring's other half. */
static void copy_scales_ahead(gemm_mma *g, ptx_val done)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    if (s->is_iteration) {
        copy_chunk(g, s->to.at, ptx_gt(f, s->next_end, done));
        return;
    }
    ptx_val in_chunk = ptx_and(f, s->offset, 4 * s->chunk - 1);
    PTX_IF (f, ptx_eq(f, in_chunk, 0)) {
        ptx_val to = ptx_add(f, s->to.at, ptx_xor(f, s->offset, 4 * s->chunk));
        copy_chunk(g, to, ptx_gt(f, s->next_end, done));
    }
}

/* Reads the scales of block `block` of an iteration; of all blocks at the first one, if registers allow. */
static void read_scales(gemm_mma *g, uint32_t block)
{
    ptx_fn *f = g->f;
    const scale_ring *s = &g->scales;
    const uint32_t count = g->has_most_threads || g->holds_rows ? 1 : g->depth;
    if (block % count)
        return;
    ptx_val from = s->is_iteration ? s->read.at : ptx_add(f, s->read.at, s->offset);
    for (uint32_t i = 0; i < 2 * g->groups; i++)
        ptx_load_vec(f, (int)count, &g->scale[i][block],
                     shared_at(f, PTX_F32, from, 8 * i * s->row_bytes + 4 * block), PTX_PLAIN);
}

/* ---- rows of A ---------------------------------------------------------------------------------------------------- */

/* Neighbouring threads copy neighbouring 16 bytes of a row. */
static void init_row_copies(gemm_mma *g)
{
    ptx_fn *f = g->f;
    row_stages *r = &g->rows;
    const uint32_t units = row_units(g);
    ptx_val unit = ptx_and(f, g->l.tid, units - 1), row = ptx_div(f, g->l.tid, units);
    ptx_val start = ptx_mul(f, g->first_block, NF4_BLOCK_K);
    ptx_val position = ptx_mad(f, unit, UNIT_BYTES / 2, start), first = ptx_add(f, row, g->tile.first_x);
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
    r->to.at = ptx_var(f, ptx_mad(f, place, UNIT_BYTES, to));
    if (!g->is_wide)
        r->to.sum = ptx_mad(f, r->to.at, 2, r->stage_bytes);
    ptx_val block = ptx_div(f, unit, BLOCK_UNITS);
    find_ends(g, block, g->depth + r->blocks * (g->stages - 1), r->blocks, r->ends);
}

/* Copies A's elements for block `ahead` of each k_warp; zeros for rows out of bounds. If a thread's rows are an odd number
 * apart, every other one has its halves swapped. */
static void copy_rows(gemm_mma *g, uint32_t ahead)
{
    ptx_fn *f = g->f;
    const row_stages *r = &g->rows;
    const uint32_t stage = g->is_wide ? ahead % g->stages * r->stage_bytes : 0;
    const bool alternates = r->swaps_halves && rows_apart(g) % 2 && r->copies > 1;
    ptx_val raw[MOST_COPIES][4], to[MOST_COPIES];
    ptx_val from = ptx_at_const(f, r->from, ahead * g->k_warps * BLOCK_BYTES);
    ptx_val rows[2] = {r->to.at, alternates ? ptx_xor(f, r->to.at, UNIT_BYTES) : r->to.at};
    for (uint32_t i = 0; i < r->copies; i++) {
        to[i] = shared_at(f, PTX_U32, rows[i % 2], stage + i * rows_apart(g) * r->row_bytes);
        if (i > 0)
            from = ptx_at(f, from, r->step);
        if (ptx_has_sm(f, 80)) {
            ptx_cp_async_zfill(f, to[i], ptx_cast_ptr(f, from, PTX_U32), UNIT_BYTES, r->bytes[i], PTX_CG);
        } else {
            ptx_val is_there = ptx_ne(f, r->bytes[i], 0);
            tail_load(f, PTX_U32, 4, raw[i], from, &is_there, PTX_NC);
        }
    }
    for (uint32_t i = 0; !ptx_has_sm(f, 80) && i < r->copies; i++)
        ptx_store_vec(f, 4, to[i], raw[i], PTX_PLAIN);
}

static void copy_a(gemm_mma *g, ptx_val done, uint32_t ahead)
{
    PTX_IF (g->f, in_bounds(g, g->rows.ends, done, ahead)) {
        copy_rows(g, ahead);
    }
}

/* Whether a register holds the address of the lane's second 16 bytes. Computing it by an exclusive or costs an instruction
 * each time, but smaller wide tiles have no register left: ptxas would spill. */
static bool keeps_second(const gemm_mma *g)
{
    return g->rows.swaps_halves && g->tile_m == 64 && g->tile_n == 128;
}

/* Reads A's fragment of eight rows for block `block` of an iteration: eight registers of two elements each. */
static void read_a(gemm_mma *g, uint32_t block, uint32_t row_tile, ptx_val out[8])
{
    ptx_fn *f = g->f;
    const row_stages *r = &g->rows;
    const uint32_t stage = g->is_wide ? block % g->stages * r->stage_bytes : block * g->k_warps * BLOCK_BYTES;
    const uint32_t bytes = stage + row_tile * SUMS_ROWS * r->row_bytes;
    ptx_val second = keeps_second(g)   ? r->second
                     : r->swaps_halves ? ptx_xor(f, r->read.at, UNIT_BYTES)
                                       : ptx_add(f, r->read.at, UNIT_BYTES);
    ptx_load_vec(f, 4, &out[0], shared_at(f, PTX_U32, r->read.at, bytes), PTX_PLAIN);
    ptx_load_vec(f, 4, &out[4], shared_at(f, PTX_U32, second, bytes), PTX_PLAIN);
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

static void alternate(ptx_fn *f, const buffered *b)
{
    if (b->sum.type != PTX_NONE)
        shared_toggle(f, b->at, b->sum);
}

/* Sets this lane's read addresses. */
static void init_reads(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    ptx_val column = ptx_mad(f, g->tile.column_warp, g->tile.warp_columns, g->tile.lane.g);
    ptx_val of_k_warp = ptx_mad(f, g->k_warp, 4 * g->depth, s->at);
    s->read.at = ptx_var(f, ptx_mad(f, column, s->row_bytes, of_k_warp));
    r->at = ptx_add(f, s->at, g->tile_n * s->row_bytes);
    ptx_val block = ptx_mad(f, g->k_warp, BLOCK_BYTES, r->at);
    ptx_val row = g->tile_m < SUMS_ROWS ? ptx_and(f, g->tile.lane.g, g->tile_m - 1) : g->tile.lane.g;
    ptx_val line = ptx_mad(f, row, r->row_bytes, block);
    ptx_val start = ptx_mad(f, g->tile.lane.t, 2 * UNIT_BYTES, line);
    if (r->swaps_halves)
        start = ptx_mad(f, ptx_and(f, row, 1), UNIT_BYTES, start);
    r->read.at = g->is_wide ? start : ptx_var(f, start);
    if (keeps_second(g))
        r->second = ptx_xor(f, start, UNIT_BYTES);
    if (s->is_iteration)
        s->read.sum = ptx_mad(f, s->read.at, 2, 4 * s->chunk);
    if (!g->is_wide)
        r->read.sum = ptx_mad(f, r->read.at, 2, r->stage_bytes);
}

/* Starts the copies that are in flight when the first iteration begins. */
static void copy_first(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    copy_chunk(g, s->to.at, ptx_gt(f, s->end, 0));
    for (uint32_t stage = 0; stage + 1 < g->stages; stage++) {
        copy_a(g, ptx_s32(0), stage * g->rows.blocks);
        copy_commit(f);
    }
    alternate(f, &s->to);
    alternate(f, &g->rows.to);
}

/* Waits for the stage of block `block` of the iteration that starts at `done`, so that all threads see it, and refills the
 * stage that is now free. */
static void next_stage(gemm_mma *g, ptx_val done, uint32_t block)
{
    copy_wait(g->f, g->stages - 2);
    ptx_barrier(g->f);
    if (block == 0)
        copy_scales_ahead(g, done);
    copy_a(g, done, block + g->rows.blocks * (g->stages - 1));
    copy_commit(g->f);
}

/* Advances to the next iteration. */
static void step_stages(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    alternate(f, &s->read);
    alternate(f, &s->to);
    if (!s->is_iteration) {
        ptx_val next = ptx_add(f, s->offset, 4 * g->iteration_blocks);
        ptx_set(f, s->offset, ptx_and(f, next, 8 * s->chunk - 1));
    }
    alternate(f, &r->read);
    alternate(f, &r->to);
    ptx_set(f, r->from, ptx_at_const(f, r->from, g->iteration_blocks * BLOCK_BYTES));
}

/* ---- the product --------------------------------------------------------------------------------------------------- */

/* 16 columns' weights of a quantised block, as the products' first operands. */
static void decode_group(gemm_mma *g, uint32_t block, uint32_t group, ptx_val out[BLOCK_PRODUCTS][4])
{
    for (uint32_t lower = 0; lower < 2; lower++) {
        for (uint32_t p = 0; p < 2 * BLOCK_PRODUCTS; p++) {
            ptx_val pair[2], word = g->codes[block][2 * group + lower][p / 4];
            nf4_pairs_decode(&g->pairs, word, p % 4, pair);
            out[p / 2][fragment_a(lower, p % 2)] = ptx_as(g->f, PTX_B32, pair[0]);
        }
    }
}

/* Multiplies 64 weights of 16 columns by eight rows' elements; scales, then adds. */
static void add_products(gemm_mma *g, uint32_t block, uint32_t row_tile, uint32_t group,
                         ptx_val weights[BLOCK_PRODUCTS][4], const ptx_val a[2 * BLOCK_PRODUCTS])
{
    ptx_fn *f = g->f;
    ptx_val *sums = sums_of(&g->sums, row_tile, group), partial[4] = {g->zero, g->zero, g->zero, g->zero};
    for (uint32_t p = 0; p < BLOCK_PRODUCTS; p++) {
        const ptx_val of_a[2] = {ptx_as(f, PTX_B32, a[2 * p]), ptx_as(f, PTX_B32, a[2 * p + 1])};
        ptx_val next[4];
        tensor_multiply(f, g->args.type, next, weights[p], of_a, partial);
        for (uint32_t e = 0; e < 4; e++)
            partial[e] = next[e];
    }
    for (uint32_t e = 0; e < 4; e++)
        if (sums_has(&g->sums, e))
            ptx_fma_to(f, sums[e], partial[e], g->scale[2 * group + e / 2][block]);
}

/* Registers hold the block's weights of all groups. ptxas moves no load across a barrier: without barriers it would load all of a
 * large tile's A at once, and run out of registers. */
static void add_block(gemm_mma *g, uint32_t block)
{
    const uint32_t most_ahead = g->has_most_threads ? 2 : 4;
    ptx_val weights[MOST_GROUPS][BLOCK_PRODUCTS][4];
    for (uint32_t group = 0; group < g->groups; group++)
        decode_group(g, block, group, weights[group]);
    for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++) {
        ptx_val a[2 * BLOCK_PRODUCTS];
        if (row_tile > 0 && row_tile % most_ahead == 0)
            ptx_warp_barrier(g->f);
        read_a(g, block, row_tile, a);
        for (uint32_t group = 0; group < g->groups; group++)
            add_products(g, block, row_tile, group, weights[group], a);
    }
}

/* Registers hold A's rows. */
static void add_block_to_rows(gemm_mma *g, uint32_t block)
{
    ptx_val rows[MOST_HELD_TILES][2 * BLOCK_PRODUCTS], weights[BLOCK_PRODUCTS][4];
    for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++)
        read_a(g, block, row_tile, rows[row_tile]);
    for (uint32_t group = 0; group < g->groups; group++) {
        decode_group(g, block, group, weights);
        for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++)
            add_products(g, block, row_tile, group, weights, rows[row_tile]);
    }
}

static void multiply_blocks(gemm_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val end = ptx_as(f, PTX_S32, g->block_count);
    PTX_FOR (f, done, 0, end, g->iteration_blocks) {
        ptx_main_loop(f);
        for (uint32_t block = 0; block < g->depth; block++) {
            if (block % g->rows.blocks == 0)
                next_stage(g, done, block);
            read_scales(g, block);
            PTX_IF (f, in_bounds(g, g->ends, done, block)) {
                (g->holds_rows ? add_block_to_rows : add_block)(g, block);
            }
            load_ahead(g, done, block + g->depth);
        }
        const uint32_t words = g->iteration_blocks * NF4_BLOCK_WORDS;
        for (uint32_t i = 0; i < 2 * g->groups; i++)
            ptx_set(f, g->codes_at[i], ptx_at_const(f, g->codes_at[i], words));
        step_stages(g);
    }
    copy_wait(f, 0);
}

/* ---- the launch's shape -------------------------------------------------------------------------------------- */

/* The table, scales and stages of A, and tables for nested scales; at the end the sums of the warps. */
static uint32_t shared_bytes(const gemm_mma *g, bool is_nested)
{
    const uint32_t table = nf4_pairs_bytes(&g->pairs), nested = is_nested ? NF4_NESTED_BYTES : 0;
    const uint32_t copies =
                       table + g->tile_n * g->scales.row_bytes + g->stages * g->rows.stage_bytes + nested,
                   sums = (g->split_k == 0 ? table : 0) + linear_sums_bytes(g->tile_m, g->tile_n, g->k_warps);
    return copies > sums ? copies : sums;
}

/* As many as leave enough registers for a thread's sums. */
static uint32_t blocks_per_multiprocessor(const gemm_mma *g)
{
    const uint32_t resident = g->tile_m >= 64 || g->holds_rows    ? 256
                              : g->has_most_threads               ? 512
                              : g->is_wide                        ? 320
                              : g->groups == 1 && g->split_k == 1 ? 768
                                                                  : 512;
    return lanes_blocks(g->threads, resident);
}

/* Registers per thread that ptxas 13.0 uses on sm_90, rounded up as far as the same number of thread blocks fit. */
static uint32_t registers_of_wide(const gemm_mma *g, bool is_compact)
{
    enum { FOUR_WARPS = 128 };
    const bool has_stretch = g->split_k == 0;
    if (g->tile_m == SUMS_ROWS)
        return g->threads > FOUR_WARPS && is_compact && g->stages == 2 && !has_stretch ? 128 : 160;
    const bool is_tight = g->tile_m == 32 ? has_stretch || (g->split_k == 1 && g->tile_n == 64)
                                          : has_stretch && g->stages == 4 && g->tile_n == 32;
    return is_tight ? 184 : 168;
}

void nf4_gemm_shape_mma(kiln_shape *s, const kiln_variant *v)
{
    enum { K_WARPS_OF_NARROW = 8 };
    const gemm_mma g = geometry(NULL, v);
    const bool is_mma = kiln_is(v, "strategy", "mma"), is_narrow = !g.is_wide,
               is_tiles = kiln_is(v, "strategy", "tiles");
    const ptx_type type = kiln_type(v, "a");
    s->block[0] = g.threads;
    s->shared_bytes = shared_bytes(&g, kiln_is(v, "scale_type", "nested"));
    s->min_sm = type == PTX_BF16 || s->shared_bytes > SHARED_SM_75 || g.holds_rows ? 80 : 75;
    s->blocks_per_multiprocessor = blocks_per_multiprocessor(&g);
    if (is_mma && g.is_wide && g.tile_m < 64 && !g.has_most_threads && !g.holds_rows)
        s->registers = registers_of_wide(&g, kiln_is(v, "table", "compact"));
    s->trip = g.depth * NF4_BLOCK_K;
    s->loop_warps = g.k_warps;
    kiln_require(s, is_mma || is_tiles || (g.stages == 2 && g.split_k == 1), "strategy stages split_k",
                 "stages 4 and split_k above 1 need strategy mma or tiles");
    kiln_require(s, !is_mma || type != PTX_F32, "a strategy", "strategy mma needs a f16 or bf16");
    kiln_require(s, !is_mma || !is_narrow || g.k_warps == K_WARPS_OF_NARROW, "strategy tile_m tile_n k_warps",
                 "strategy mma with tile_n 16 or 32 and tile_m of at most 8 needs k_warps 8");
    kiln_require(
        s, !is_mma || is_narrow || (g.tile_n >= 32 && g.tile_m >= SUMS_ROWS && g.tile_m >= g.tile_n / 8),
        "strategy tile_m tile_n",
        "strategy mma needs tile_m of at most 8 with tile_n 16, of at least 8 with 64, and of at least 16 with 128");
    kiln_require(
        s,
        !is_mma || is_narrow || (g.threads >= 128 && g.threads <= 256) ||
            (g.has_most_threads && g.tile_m <= 32 && g.tile_n <= 64),
        "strategy tile_m tile_n k_warps",
        "strategy mma needs 4 to 16 warps, tile_n / 32 * k_warps, or tile_n / 64 * k_warps with tile_m 16 or 32 and tile_n 128; 16 with tile_m of at most 32 and tile_n of at most 64");
    kiln_require(
        s, !is_mma || g.stages == 2 || (g.is_wide && g.depth == g.stages),
        "strategy tile_m tile_n k_warps stages",
        "stages 4 needs tile_n of at least 64, or tile_m 16; tile_m of at most 16; and at most 8 warps, by tile_n and k_warps");
    kiln_require(s, g.tile_m < 128 || is_tiles, "strategy tile_m", "tile_m 128 needs strategy tiles");
    kiln_require(
        s, g.split_k != 0 || is_tiles || (is_mma && g.is_wide), "strategy tile_m tile_n split_k",
        "split_k 0 needs strategy tiles, or mma with tile_n of at least 64 or tile_m of at least 16");
    kiln_require_shared_bytes(s, is_mma ? s->shared_bytes : 0, SHARED_SM_80,
                              "strategy tile_m tile_n k_warps table stages split_k",
                              "tile_m, tile_n, k_warps and stages of strategy mma");
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

/* This thread block's part of the quantised blocks. */
static void find_part(gemm_mma *g)
{
    ptx_fn *f = g->f;
    const bool has_all = g->split_k == 1;
    g->first_block = has_all ? ptx_u32(0) : ptx_div(f, g->l.part_element, NF4_BLOCK_K);
    g->block_count = has_all ? g->l.row_numbers : g->l.part_stages;
}

/* For the only tile, or for the first one of a stretch; a barrier must follow. */
static void fill_table(gemm_mma *g)
{
    ptx_fn *f = g->f;
    if (g->split_k != 0) {
        nf4_pairs_fill(&g->pairs, g->l.tid);
        return;
    }
    ptx_val step = ptx_mad(f, g->tile.number, g->l.row_numbers, g->first_block);
    PTX_IF (f, ptx_eq(f, step, g->tile.stretch.first)) {
        nf4_pairs_fill(&g->pairs, g->l.tid);
    }
}

static void make_tile(void *strategy)
{
    gemm_mma *g = strategy;
    ptx_fn *f = g->f;
    find_part(g);
    find_ends(g, g->k_warp, 2 * g->depth, 1, g->ends);
    init_reads(g);
    init_codes(g);
    init_scale_copies(g);
    init_row_copies(g);
    for (uint32_t block = 0; block < g->depth; block++)
        load_ahead(g, ptx_s32(0), block);
    if (g->args.is_nested)
        nf4_nested_fill(&g->args.nested, ptx_add(f, g->rows.at, g->stages * g->rows.stage_bytes), g->l.tid);
    copy_first(g);
    nf4_pairs_find(&g->pairs, g->l.lane);
    fill_table(g);
    g->zero = ptx_var(f, ptx_f32(0));
    g->scales.offset = ptx_var(f, ptx_u32(0));
    g->sums =
        (warp_sums){.row_tiles = g->row_tiles, .column_tiles = g->groups, .has_one_row = g->tile_m == 1};
    sums_clear(f, &g->sums);
    multiply_blocks(g);
    linear_store_sums(&g->l, &g->tile, &g->sums);
}

/* In shared memory: the table, then scales, then stages of A, then tables for nested scales. The sums overlay the copies and,
 * except in a stretch, the table. */
void nf4_gemm_emit_mma(ptx_fn *f, const kiln_variant *v)
{
    gemm_mma of = geometry(f, v), *g = &of;
    g->args = nf4_gemm_declare_args(f, v);
    g->l = nf4_linear(f, &g->args);
    linear_find_threads(&g->l);
    if (g->has_most_threads)
        g->l.warp = ptx_shfl_idx(f, g->l.warp, 0);
    g->tile =
        linear_find_tile(&g->l, g->tile_m, g->tile_n, SUMS_COLUMNS * g->groups, g->k_warps, NF4_BLOCK_K);
    g->k_warp = g->k_warps == 1 ? ptx_u32(0) : g->tile.k_warp;
    g->scales.at = ptx_add(f, g->tile.shared, nf4_pairs_layout(&g->pairs, g->tile.shared));
    if (g->split_k == 0)
        g->tile.shared = g->scales.at;
    linear_make_tiles(&g->l, &g->tile, make_tile, g);
}
