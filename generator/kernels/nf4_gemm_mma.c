/* NF4 matrix product on tensor cores.
 *
 * The weights are mma's first operand: 16 columns of B are its 16 rows. A is the second: eight of its rows are the 8 columns.
 * So mma gives C transposed, and 1 to 8 rows of A cost the same. linear's files (linear.h) find the tiles, split K, add the
 * parts and store the sums. In a wide tile (tile_n from 64, or tile_m from 16) each warp has 32 columns, and `k_warps` groups
 * of such warps share K; in a narrow one all warps have the same columns. Each k_warp takes every k_warps-th quantised block.
 *
 * ORDER ALONG K is free as long as the operands agree. In a quantised block, lane (g, t) takes the 16 codes from 16*t on of
 * columns g and g + 8, 8 bytes each, and the same 16 elements of row g of A, 32 bytes. Each byte becomes one register of an
 * operand, two weights: prmt for the byte, mad for the address (not with an aligned table), one load from the table. Four
 * lanes read a whole sector of codes, and nothing is repacked.
 *
 * SCALES multiply the sums of a quantised block, in f32: weights keep the table's 11 or 8 bits, and no scale overflows or
 * underflows the type. With 128 rows in bf16, whose range holds every scale, they multiply the weights instead: half as many
 * instructions, and no product waits for them. A scale is the sum of two bf16 numbers, so that a weight is rounded once: t *
 * high + (t * low).
 *
 * PREFETCHING. Codes go straight into registers, since no two warps need the same ones: in shared memory they would be written
 * and read, and its bandwidth already limits the lookups in the table. As soon as a quantised block is done, its registers are
 * loaded for the block `depth` later. Strategy tiles has registers for one block's codes: before the products they are decoded,
 * and then loaded for the next block.
 *
 * A AND THE SCALES are copied into shared memory. Each warp reads all of A from there, which limits tiles of many rows: with
 * 16 or 32 rows and tile_n 128 a warp has 64 columns, and half as many bytes of A for each. Then a warp holds its part of A
 * in registers, and decodes 16 columns at a time. Two thread blocks of four warps wait less at barriers than one of eight.
 * With 16 warps a thread block has a multiprocessor to itself: as many bytes are in flight as with two of 8 warps, but K
 * need not be split over thread blocks for that, nor A be copied twice.
 *
 * STAGES. A is copied asynchronously, stages - 1 ahead, into one of `stages` stages: in a wide tile a quantised block per
 * k_warp, in a narrow one an iteration's. Strategy tiles has two stages of stages / 2 blocks, an iteration each: fewer barriers
 * keep tensor cores busier. Lane (g, t) reads 16 bytes at a time, 32t bytes from row g's start; two rows at a time are in
 * different banks, since odd rows have the two halves of each 32 bytes swapped, which keeps sectors whole (device/README.md).
 *
 * A column's scales are copied a chunk at a time into a ring of two chunks, in the order in which a lane reads them. A chunk
 * has 32 scales, or 16 or 8 if there is no room for more, so that their sectors are full.
 *
 *             bytes of shared memory                 copied                                     waited for
 *     table   pairs.bytes                            once                                       at the loop's first barrier
 *     scales  tile_n * 4 * (2 * chunk + PAD_WORDS)   chunk c + 1 when chunk c begins            with a stage of A
 *     A       rows.stages * tile_m * row_bytes       the stage rows.stages - 1 ahead, after     before its first block: a
 *                                                    the barrier that frees its place           copy_wait and a barrier
 *     nested  NF4_NESTED_BYTES                       once                                       as the table
 *     sums    overlay all but a stretch's table, after the loop
 */
#include "nf4_gemm.h"

#include "device/copy.h"
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/sums.h"
#include "device/tail.h"
#include "device/tensor.h"
#include "linear.h"

enum {
    BLOCK_PRODUCTS = 4,            /* products of a quantised block */
    BLOCK_BYTES = 2 * NF4_BLOCK_K, /* of a row of A */
    BLOCK_UNITS = BLOCK_BYTES / UNIT_BYTES,
    PAD_WORDS = 4,   /* padding after a column's scales */
    MOST_GROUPS = 4, /* groups of 16 columns per warp */
    MOST_LANE_COLUMNS = 2 * MOST_GROUPS,
    MOST_DEPTH = 4,
    MOST_COPIES = 16, /* copies per thread and stage */
    MOST_HELD_TILES = 4,
    MOST_AHEAD = 4, /* row tiles whose elements are loaded at once */
    MOST_THREADS = 512
};

/* An iteration whose first block is `done` takes blocks done + first + i * k_warps, where `first` belongs to a warp or to a thread
 * that copies. Element i, for this iteration and the next: the first `done` at which that block is out of bounds, S32. With 7
 * blocks, k_warps 2 and first 1 these are 6, 4, 2 and 0: block done + 1 is in bounds while done < 6, done + 3 while done < 4. */
typedef ptx_val block_ends[2 * MOST_DEPTH];

/* An address that alternates between two buffers, and the sum of both addresses. A poison sum: it does not alternate. */
typedef struct buffered {
    ptx_val at, sum;
} buffered;

/* Scales of the tile's columns in shared memory: a ring of two chunks. */
typedef struct scale_ring {
    uint32_t chunk;  /* quantised blocks whose scales are copied at once */
    uint32_t copies; /* columns that a thread copies, `apart` from each other */
    uint32_t apart;
    uint32_t row_bytes; /* of a column */
    /* Each iteration takes a whole chunk: `to` and `read` alternate, instead of `offset`. */
    bool per_iteration;
    ptx_val at;   /* address of the first column */
    ptx_val from; /* this thread's copies, a variable: see scale_number */
    buffered to;
    ptx_val column_step, columns_left;
    ptx_val next_end; /* end of this thread's quantised blocks in the next chunk: see block_ends */
    buffered read;    /* where this lane reads */
    ptx_val offset;   /* bytes to this iteration's scales, a variable */
} scale_ring;

/* Rows of A in shared memory, in a ring. */
typedef struct row_stages {
    uint32_t stages;
    uint32_t blocks; /* quantised blocks of a k_warp in a stage */
    uint32_t units;  /* of a row in a stage */
    uint32_t copies; /* rows that a thread copies, `apart` from each other */
    uint32_t apart;
    /* Each iteration takes a whole stage: `to` and `read` alternate; else immediates select the stage. */
    bool per_iteration;
    uint32_t row_bytes, stage_bytes;
    ptx_val at;   /* address of the first stage */
    ptx_val from; /* this thread's copies, a variable */
    buffered to;
    ptx_val step;               /* bytes from row to row */
    ptx_val bytes[MOST_COPIES]; /* bytes of each copy, 0 if out of bounds: then zeros are stored */
    ptx_val rows_left;          /* strategy tiles: index of the last copy in bounds; later ones repeat it */
    block_ends ends;
    buffered read; /* this lane's first 16 bytes */
} row_stages;

typedef struct gemm_mma {
    ptx_fn *f;
    uint32_t tile_m, tile_n, k_warps, split_k;
    uint32_t groups, row_tiles, column_warps, threads;
    uint32_t steps;            /* quantised blocks of a warp in an iteration */
    uint32_t iteration_blocks; /* quantised blocks of all k_warps in an iteration */
    uint32_t depth;            /* quantised blocks whose codes a warp prefetches */
    bool is_tiles;             /* the strategy */
    bool is_wide;              /* warps have different columns, or there are many rows */
    bool holds_rows;           /* a warp has 64 columns, and reads A half as often as with 32 */
    bool scales_weights;       /* else sums */
    bool has_most_threads;     /* MOST_THREADS: each has half as many registers */

    nf4_args args;
    linear l;
    linear_tile tile;
    nf4_pairs pairs;
    ptx_val k_warp, first_block, part_blocks; /* of the thread block's part of K: quantised blocks, U32 */
    block_ends ends;                          /* this warp's */
    ptx_val done;                             /* first block of the iteration, S32 */
    scale_ring scales;
    row_stages rows;

    ptx_val codes_at[MOST_LANE_COLUMNS]; /* of this lane, in the iteration's first block */
    ptx_val codes[MOST_DEPTH][MOST_LANE_COLUMNS][NF4_LANE_WORDS];
    ptx_val scale[MOST_LANE_COLUMNS][MOST_DEPTH];
    ptx_val zero;
    warp_sums sums;
} gemm_mma;

/* ---- the thread block ----------------------------------------------------------------------------------------------- */

static gemm_mma geometry(ptx_fn *f, const kiln_variant *v)
{
    gemm_mma of = {.f = f}, *g = &of;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    g->tile_m = kiln_int(v, "tile_m");
    g->tile_n = kiln_int(v, "tile_n");
    g->k_warps = kiln_int(v, "k_warps");
    g->split_k = kiln_int(v, "split_k");
    g->is_tiles = kiln_is(v, "strategy", "tiles");
    g->scales_weights = g->is_tiles && g->tile_m == 128 && kiln_is(v, "a", "bf16");
    g->holds_rows = (g->tile_m == 32 || g->tile_m == 16) && g->tile_n == 128;
    g->groups = g->tile_n == 16 ? 1 : g->holds_rows ? 4 : 2;
    g->row_tiles = g->tile_m < SUMS_ROWS ? 1 : g->tile_m / SUMS_ROWS;
    g->column_warps = g->tile_n / (SUMS_COLUMNS * g->groups);
    g->threads = WARP_LANES * g->column_warps * g->k_warps;
    g->has_most_threads = g->threads == MOST_THREADS;
    g->is_wide = g->column_warps > 1 || g->tile_m > SUMS_ROWS;
    g->depth = g->is_tiles                                                                 ? 1
               : g->tile_m <= 4 || (g->tile_m <= 16 && g->is_wide && !g->has_most_threads) ? 4
                                                                                           : 2;
    g->steps = g->is_tiles ? kiln_int(v, "stages") / 2 : g->depth;
    g->iteration_blocks = g->k_warps * g->steps;
    g->pairs = nf4_table(f, v, kiln_type(v, "a"), 1024 + linear_split_bytes(v));
    s->chunk = g->is_tiles                                          ? 8
               : g->has_most_threads                                ? g->iteration_blocks
               : g->tile_n == 128 && kiln_is(v, "table", "compact") ? 16
                                                                    : 32;
    s->apart = g->threads / s->chunk;
    s->copies = g->tile_n / s->apart;
    s->row_bytes = 4 * (2 * s->chunk + PAD_WORDS);
    s->per_iteration = g->iteration_blocks == s->chunk;
    r->per_iteration = g->is_tiles || !g->is_wide;
    r->stages = r->per_iteration ? 2 : kiln_int(v, "stages");
    r->blocks = r->per_iteration ? g->steps : 1;
    r->units = g->k_warps * r->blocks * BLOCK_UNITS;
    r->apart = g->threads / r->units;
    r->copies = g->tile_m * r->units / g->threads;
    r->row_bytes = r->units * UNIT_BYTES;
    r->stage_bytes = g->tile_m * r->row_bytes;
    return of;
}

/* ---- quantised blocks in bounds -------------------------------------------------------------------------------------- */

/* Finds the ends of the blocks of an iteration and the next, whose first one is quantised block `first` of the part of K. */
static void find_ends(const gemm_mma *g, ptx_val first, block_ends ends)
{
    ptx_fn *f = g->f;
    ptx_val end = ptx_sub(f, ptx_as(f, PTX_S32, g->part_blocks), ptx_as(f, PTX_S32, first));
    for (uint32_t ahead = 0; ahead < 2 * g->steps; ahead++)
        ends[ahead] = ptx_sub(f, end, ahead * g->k_warps);
}

/* Whether block `ahead`, counted from this iteration's first, is in bounds. */
static ptx_val in_bounds(const gemm_mma *g, const block_ends ends, uint32_t ahead)
{
    ptx_fn *f = g->f;
    if (g->holds_rows || g->is_tiles) /* no register is left for the other ends */
        return ptx_gt(f, ends[0], ptx_add(f, g->done, ahead * g->k_warps));
    return ptx_gt(f, ends[ahead], g->done);
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

/* Loads the codes of this warp's block `ahead`, if it is in bounds. */
static void load_ahead(gemm_mma *g, uint32_t ahead)
{
    ptx_fn *f = g->f;
    const uint32_t words = ahead * g->k_warps * NF4_BLOCK_WORDS;
    PTX_WHEN (f, in_bounds(g, g->ends, ahead)) {
        for (uint32_t i = 0; i < 2 * g->groups; i++)
            tail_set(f, NF4_LANE_WORDS, g->codes[ahead % g->depth][i], ptx_at_const(f, g->codes_at[i], words),
                     NF4_CODE_HINTS);
    }
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

/* Neighbouring threads copy the scales of neighbouring blocks of a column. In shared memory the scales that a k_warp
 * takes in one iteration lie together. */
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
    ptx_val k_warp = ptx_and(f, block, g->k_warps - 1);
    ptx_val later = ptx_div(f, ptx_and(f, block, iteration - 1), g->k_warps);
    ptx_val whole = ptx_and(f, block, ~(iteration - 1));
    ptx_val position = ptx_add(f, ptx_mad(f, k_warp, g->steps, later), whole);
    ptx_val to = ptx_mad(f, row, s->row_bytes, s->at);
    s->to.at = ptx_var(f, ptx_mad(f, position, 4, to));
    ptx_val end = ptx_sub(f, ptx_as(f, PTX_S32, g->part_blocks), ptx_as(f, PTX_S32, block));
    s->next_end = ptx_sub(f, end, s->chunk);
    if (s->per_iteration)
        s->to.sum = ptx_mad(f, s->to.at, 2, 4 * s->chunk);
}

/* The address of the i-th column's scale; nested, its number in the tensor. Computed at each use: a wide tile has too
 * many columns to keep all. */
static ptx_val scale_number(gemm_mma *g, uint32_t i)
{
    ptx_fn *f = g->f;
    const scale_ring *s = &g->scales;
    if (i == 0)
        return s->from;
    ptx_val column = ptx_min(f, s->columns_left, i * s->apart);
    return ptx_mad_wide(f, column, s->column_step, s->from);
}

static ptx_val scale_to_at(gemm_mma *g, ptx_val to, uint32_t i)
{
    const ptx_type type = g->args.is_nested ? PTX_F32 : PTX_U32; /* a copy's words */
    return shared_at(g->f, type, to, i * g->scales.apart * g->scales.row_bytes);
}

/* Copies the scales of a chunk to `to`, and advances to the next; scales of blocks out of bounds are 0. Nested ones go through
 * registers, a few at a time. */
static void copy_chunk(gemm_mma *g, ptx_val to, ptx_val is_in_bounds)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    if (g->args.is_nested) {
        const uint32_t count = s->copies < NF4_NESTED_AT_ONCE ? s->copies : NF4_NESTED_AT_ONCE;
        PTX_IF (f, is_in_bounds) {
            for (uint32_t first = 0; first < s->copies; first += count) {
                ptx_val number[NF4_NESTED_AT_ONCE], scale[NF4_NESTED_AT_ONCE];
                for (uint32_t i = 0; i < count; i++)
                    number[i] = scale_number(g, first + i);
                nf4_nested_load(&g->args.nested, count, number, NULL, scale);
                for (uint32_t i = 0; i < count; i++)
                    ptx_store(f, scale_to_at(g, to, first + i), scale[i]);
            }
        }
        PTX_ELSE (f) {
            for (uint32_t i = 0; i < s->copies; i++)
                ptx_store(f, scale_to_at(g, to, i), 0);
        }
    }
    for (uint32_t i = 0; i < s->copies && !g->args.is_nested; i++) {
        ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, scale_number(g, i));
        copy_word(f, scale_to_at(g, to, i), from, &is_in_bounds);
    }
    ptx_set(f, s->from, ptx_add(f, s->from, g->args.is_nested ? s->chunk : 4 * s->chunk));
}

/* At the start of a chunk copies the next into the ring's other half. */
static void copy_scales_ahead(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    if (s->per_iteration) {
        copy_chunk(g, s->to.at, ptx_gt(f, s->next_end, g->done));
        return;
    }
    ptx_val in_chunk = ptx_and(f, s->offset, 4 * s->chunk - 1);
    PTX_IF (f, ptx_eq(f, in_chunk, 0)) {
        ptx_val to = ptx_add(f, s->to.at, ptx_xor(f, s->offset, 4 * s->chunk));
        copy_chunk(g, to, ptx_gt(f, s->next_end, g->done));
    }
}

/* Reads the scales of block `block` of an iteration; of all blocks at the first one, if registers allow. */
static void read_scales(gemm_mma *g, uint32_t block)
{
    ptx_fn *f = g->f;
    const scale_ring *s = &g->scales;
    const uint32_t count = g->has_most_threads || g->holds_rows || g->is_tiles ? 1 : g->steps;
    if (block % count)
        return;
    ptx_val from = s->per_iteration ? s->read.at : ptx_add(f, s->read.at, s->offset);
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
    ptx_val unit = ptx_and(f, g->l.tid, r->units - 1), row = ptx_div(f, g->l.tid, r->units);
    ptx_val start = ptx_mul(f, g->first_block, NF4_BLOCK_K);
    ptx_val position = ptx_mad(f, unit, UNIT_BYTES / 2, start), first = ptx_add(f, row, g->tile.first_x);
    if (g->is_tiles)
        first = tail_clamp(f, first, g->args.m);
    ptx_val at = tail_element(f, g->args.in, first, g->args.a_stride, position);
    r->from = ptx_var(f, ptx_cast_ptr(f, at, PTX_U8));
    r->step = g->is_tiles ? ptx_mul(f, g->args.a_stride, 2 * r->apart) /* below 2^32 by nf4_gemm's rule */
                          : ptx_mul_wide(f, g->args.a_stride, 2 * r->apart);
    ptx_val left = ptx_sub(f, ptx_sub(f, g->args.m, 1), first);
    r->rows_left = ptx_div(f, left, r->apart);
    for (uint32_t i = 0; i < r->copies && !g->is_tiles; i++) {
        ptx_val mine = ptx_add(f, first, i * r->apart);
        r->bytes[i] = ptx_select(f, ptx_lt(f, mine, g->args.m), ptx_u32(UNIT_BYTES), 0);
    }
    ptx_val to = ptx_mad(f, row, r->row_bytes, r->at), place = ptx_xor(f, unit, ptx_and(f, row, 1));
    r->to.at = ptx_var(f, ptx_mad(f, place, UNIT_BYTES, to));
    if (r->per_iteration)
        r->to.sum = ptx_mad(f, r->to.at, 2, r->stage_bytes);
    ptx_val block = ptx_div(f, unit, BLOCK_UNITS);
    find_ends(g, block, r->ends);
}

/* Copies A's elements for block `ahead` of each k_warp, if it is in bounds. If a thread's rows are an odd number apart, every
 * other one has its halves swapped. */
static void copy_a(gemm_mma *g, uint32_t ahead)
{
    ptx_fn *f = g->f;
    const row_stages *r = &g->rows;
    const uint32_t stage = r->per_iteration ? 0 : ahead % r->stages * r->stage_bytes;
    const bool alternates = r->apart % 2 && r->copies > 1;
    PTX_IF (f, in_bounds(g, r->ends, ahead)) {
        ptx_val first = ptx_at_const(f, r->from, ahead * g->k_warps * BLOCK_BYTES), from = first;
        ptx_val rows[2] = {r->to.at, alternates ? ptx_xor(f, r->to.at, UNIT_BYTES) : r->to.at};
        for (uint32_t i = 0; i < r->copies; i++) {
            ptx_val to = shared_at(f, PTX_U32, rows[i % 2], stage + i * r->apart * r->row_bytes);
            if (i > 0)
                from = g->is_tiles ? ptx_at(f, first, ptx_mul_wide(f, ptx_min(f, r->rows_left, i), r->step))
                                   : ptx_at(f, from, r->step);
            if (g->is_tiles)
                copy_unit(f, to, ptx_cast_ptr(f, from, PTX_U32), NULL, PTX_NC);
            else
                copy_unit_or_zeros(f, to, ptx_cast_ptr(f, from, PTX_U32), r->bytes[i], PTX_NC);
        }
    }
}

/* Reads a half of A's fragment of eight rows for block `block` of an iteration: four registers of two elements each. */
static void read_half(gemm_mma *g, uint32_t block, uint32_t row_tile, uint32_t half, ptx_val out[4])
{
    ptx_fn *f = g->f;
    const row_stages *r = &g->rows;
    const uint32_t stage =
        r->per_iteration ? block * g->k_warps * BLOCK_BYTES : block % r->stages * r->stage_bytes;
    const uint32_t bytes = stage + row_tile * SUMS_ROWS * r->row_bytes;
    ptx_val at = half == 0 ? r->read.at : ptx_xor(f, r->read.at, UNIT_BYTES);
    ptx_load_vec(f, 4, out, shared_at(f, PTX_B32, at, bytes), PTX_PLAIN);
}

static void read_a(gemm_mma *g, uint32_t block, uint32_t row_tile, ptx_val out[2 * BLOCK_PRODUCTS])
{
    for (uint32_t half = 0; half < 2; half++)
        read_half(g, block, row_tile, half, &out[BLOCK_PRODUCTS * half]);
}

/* ---- stages ------------------------------------------------------------------------------------------------------- */

static void alternate(ptx_fn *f, const buffered *b)
{
    if (b->sum.type != PTX_NONE)
        shared_toggle(f, b->at, b->sum);
}

static void init_reads(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    ptx_val column = ptx_mad(f, g->tile.column_warp, g->tile.warp_columns, g->tile.lane.g);
    ptx_val of_k_warp = ptx_mad(f, g->k_warp, 4 * g->steps, s->at);
    s->read.at = ptx_var(f, ptx_mad(f, column, s->row_bytes, of_k_warp));
    r->at = ptx_add(f, s->at, g->tile_n * s->row_bytes);
    ptx_val block = ptx_mad(f, g->k_warp, BLOCK_BYTES, r->at);
    ptx_val row = g->tile_m < SUMS_ROWS ? ptx_and(f, g->tile.lane.g, g->tile_m - 1) : g->tile.lane.g;
    ptx_val line = ptx_mad(f, row, r->row_bytes, block);
    ptx_val start = ptx_mad(f, g->tile.lane.t, 2 * UNIT_BYTES, line);
    start = ptx_mad(f, ptx_and(f, row, 1), UNIT_BYTES, start);
    r->read.at = r->per_iteration ? ptx_var(f, start) : start;
    if (s->per_iteration)
        s->read.sum = ptx_mad(f, s->read.at, 2, 4 * s->chunk);
    if (r->per_iteration)
        r->read.sum = ptx_mad(f, r->read.at, 2, r->stage_bytes);
}

/* Starts the copies that are in flight when the first iteration begins. */
static void copy_first(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    copy_chunk(g, s->to.at, ptx_gt(f, s->next_end, ptx_s32(-(int32_t)s->chunk)));
    for (uint32_t stage = 0; stage + 1 < g->rows.stages; stage++) {
        copy_a(g, stage * g->rows.blocks);
        copy_commit(f);
    }
    alternate(f, &s->to);
    alternate(f, &g->rows.to);
}

/* Waits for the stage of block `block` of the iteration, so that all threads see it, and refills the stage that is now free. */
static void next_stage(gemm_mma *g, uint32_t block)
{
    copy_wait(g->f, g->rows.stages - 2);
    ptx_barrier(g->f);
    if (block == 0)
        copy_scales_ahead(g);
    copy_a(g, block + g->rows.blocks * (g->rows.stages - 1));
    copy_commit(g->f);
}

static void end_iteration(gemm_mma *g)
{
    ptx_fn *f = g->f;
    scale_ring *s = &g->scales;
    row_stages *r = &g->rows;
    alternate(f, &s->read);
    alternate(f, &s->to);
    if (!s->per_iteration) {
        ptx_val next = ptx_add(f, s->offset, 4 * g->iteration_blocks);
        ptx_set(f, s->offset, ptx_and(f, next, 8 * s->chunk - 1));
    }
    alternate(f, &r->read);
    alternate(f, &r->to);
    ptx_set(f, r->from, ptx_at_const(f, r->from, g->iteration_blocks * BLOCK_BYTES));
    for (uint32_t i = 0; i < 2 * g->groups; i++)
        ptx_set(f, g->codes_at[i], ptx_at_const(f, g->codes_at[i], g->iteration_blocks * NF4_BLOCK_WORDS));
}

/* ---- the product --------------------------------------------------------------------------------------------------- */

/* 16 columns' weights of a quantised block, as the products' first operands. */
static void decode_group(gemm_mma *g, uint32_t block, uint32_t group, ptx_val out[BLOCK_PRODUCTS][4])
{
    for (uint32_t lower = 0; lower < 2; lower++) {
        for (uint32_t p = 0; p < 2 * BLOCK_PRODUCTS; p++) {
            ptx_val pair[2], word = g->codes[block % g->depth][2 * group + lower][p / 4];
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
        ptx_val next[4];
        tensor_multiply(f, g->args.type, next, weights[p], &a[2 * p], partial);
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
    const uint32_t most_ahead = g->has_most_threads ? MOST_AHEAD / 2 : MOST_AHEAD;
    ptx_val weights[MOST_GROUPS][BLOCK_PRODUCTS][4];
    for (uint32_t group = 0; group < g->groups; group++)
        decode_group(g, block, group, weights[group]);
    if (g->is_tiles)
        load_ahead(g, block + g->depth);
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

/* Registers hold half of the block's weights, scaled: their products are added to the sums directly. */
static void add_scaled_block(gemm_mma *g, uint32_t block)
{
    ptx_fn *f = g->f;
    ptx_val codes[MOST_LANE_COLUMNS][NF4_LANE_WORDS] = {{{0}}}, scale[MOST_LANE_COLUMNS][2] = {{{0}}};
    ptx_val weights[MOST_GROUPS][BLOCK_PRODUCTS / 2][4], a[BLOCK_PRODUCTS];
    for (uint32_t i = 0; i < 2 * g->groups; i++) {
        /* A scale's high and low part, each broadcast to both halves. */
        ptx_val wide[2], whole = g->scale[i][block];
        scale[i][0] = ptx_cvt_pair(f, PTX_BF16X2, whole, whole);
        widen_pair(f, PTX_BF16, ptx_as(f, PTX_U32, scale[i][0]), wide);
        ptx_val rest = ptx_sub(f, whole, wide[0]);
        scale[i][1] = ptx_cvt_pair(f, PTX_BF16X2, rest, rest);
        for (uint32_t word = 0; word < NF4_LANE_WORDS; word++)
            codes[i][word] = ptx_var(f, g->codes[block % g->depth][i][word]);
    }
    load_ahead(g, block + g->depth);
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t i = 0; i < 2 * g->groups; i++) {
            for (uint32_t byte = 0; byte < BLOCK_PRODUCTS; byte++) {
                ptx_val pair[2];
                nf4_pairs_decode(&g->pairs, codes[i][half], byte, pair);
                ptx_val values = ptx_as(f, PTX_BF16X2, pair[0]);
                ptx_val low = ptx_fma(f, values, scale[i][1], ptx_number(PTX_BF16X2, -0.0));
                ptx_val scaled = ptx_fma(f, values, scale[i][0], low);
                weights[i / 2][byte / 2][fragment_a(i % 2, byte % 2)] = ptx_as(f, PTX_B32, scaled);
            }
        }
        for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++) {
            read_half(g, block, row_tile, half, a);
            for (uint32_t p = 0; p < BLOCK_PRODUCTS / 2; p++)
                for (uint32_t group = 0; group < g->groups; group++) {
                    ptx_val *sums = sums_of(&g->sums, row_tile, group);
                    tensor_multiply(f, g->args.type, sums, weights[group][p], &a[2 * p], sums);
                }
        }
    }
}

static void multiply_blocks(gemm_mma *g)
{
    ptx_fn *f = g->f;
    void (*multiply)(gemm_mma * g, uint32_t block) = g->scales_weights ? add_scaled_block
                                                     : g->holds_rows   ? add_block_to_rows
                                                                       : add_block;
    ptx_val end = ptx_as(f, PTX_S32, g->part_blocks);
    PTX_FOR (f, done, 0, end, g->iteration_blocks) {
        ptx_main_loop(f);
        g->done = done;
        for (uint32_t block = 0; block < g->steps; block++) {
            if (block % g->rows.blocks == 0)
                next_stage(g, block);
            read_scales(g, block);
            const bool is_tested = block == 0 && g->k_warps == 1; /* by the loop */
            IF_NEEDED (f, !is_tested, in_bounds(g, g->ends, block)) {
                multiply(g, block);
            }
            if (!g->is_tiles)
                load_ahead(g, block + g->depth);
        }
        end_iteration(g);
    }
    copy_wait(f, 0);
}

/* ---- the launch's shape -------------------------------------------------------------------------------------- */

/* Registers per thread that ptxas 13.0 uses on sm_90, rounded up as far as the same number of thread blocks fit. */
static uint32_t registers_of_wide(const gemm_mma *g, uint32_t stages, bool is_compact)
{
    enum { FOUR_WARPS = 128 };
    const bool has_stretch = g->split_k == 0;
    if (g->tile_m == SUMS_ROWS)
        return g->threads > FOUR_WARPS && is_compact && stages == 2 && !has_stretch ? 128 : 160;
    const bool is_tight = g->tile_m == 32 ? has_stretch || (g->split_k == 1 && g->tile_n == 64)
                                          : has_stretch && stages == 4 && g->tile_n == 32;
    return is_tight ? 184 : 168;
}

void nf4_gemm_shape_mma(kiln_shape *s, const kiln_variant *v)
{
    enum { K_WARPS_OF_NARROW = 8 };
    const gemm_mma g = geometry(NULL, v);
    const bool is_mma = kiln_is(v, "strategy", "mma"), is_tiles = g.is_tiles,
               is_compact = kiln_is(v, "table", "compact");
    const uint32_t stages = kiln_int(v, "stages");
    const ptx_type type = kiln_type(v, "a");
    const uint32_t table = g.pairs.bytes,
                   copies = table + g.tile_n * g.scales.row_bytes + g.rows.stages * g.rows.stage_bytes +
                            (kiln_is(v, "scale_type", "nested") ? NF4_NESTED_BYTES : 0),
                   kept = g.split_k == 0 ? table : 0;
    s->block[0] = g.threads;
    s->shared_bytes = kept + linear_bytes(copies - kept, g.tile_m, g.tile_n, g.k_warps);
    s->min_sm = type == PTX_BF16 || s->shared_bytes > SHARED_SM_75 || g.holds_rows || is_tiles ? 80 : 75;
    /* As many as leave enough registers for a thread's sums. */
    const uint32_t resident = g.tile_m >= 64 || g.holds_rows    ? 256
                              : g.has_most_threads              ? 512
                              : g.is_wide                       ? 320
                              : g.groups == 1 && g.split_k == 1 ? 768
                                                                : 512;
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, resident);
    if (is_mma && g.is_wide && g.tile_m < 64 && !g.has_most_threads && !g.holds_rows)
        s->registers = registers_of_wide(&g, stages, is_compact);
    s->trip = g.steps * NF4_BLOCK_K;
    s->loop_warps = g.k_warps;
    kiln_require(s, is_mma || is_tiles || (stages == 2 && g.split_k == 1), "strategy stages split_k",
                 "stages 4 and split_k other than 1 need strategy mma or tiles");
    kiln_require(s, !is_mma || type != PTX_F32, "a strategy", "strategy mma needs a f16 or bf16");
    kiln_require(s, !is_mma || g.is_wide || g.k_warps == K_WARPS_OF_NARROW, "strategy tile_m tile_n k_warps",
                 "strategy mma with tile_n 16 or 32 and tile_m of at most 8 needs k_warps 8");
    kiln_require(
        s, !is_mma || !g.is_wide || (g.tile_n >= 32 && g.tile_m >= SUMS_ROWS && g.tile_m >= g.tile_n / 8),
        "strategy tile_m tile_n",
        "strategy mma needs tile_m of at most 8 with tile_n 16, of at least 8 with 64, and of at least 16 with 128");
    kiln_require(
        s,
        !is_mma || !g.is_wide || (g.threads >= 128 && g.threads <= 256) ||
            (g.has_most_threads && g.tile_m <= 32 && g.tile_n <= 64),
        "strategy tile_m tile_n k_warps",
        "strategy mma needs 4 to 16 warps, tile_n / 32 * k_warps, or tile_n / 64 * k_warps with tile_m 16 or 32 and tile_n 128; 16 with tile_m of at most 32 and tile_n of at most 64");
    kiln_require(
        s, !is_mma || stages == 2 || (g.is_wide && g.depth == stages),
        "strategy tile_m tile_n k_warps stages",
        "strategy mma with stages 4 needs tile_n of at least 64, or tile_m 16; tile_m of at most 16; and at most 8 warps, by tile_n and k_warps");
    kiln_require(s, g.tile_m < 128 || is_tiles, "strategy tile_m", "tile_m 128 needs strategy tiles");
    kiln_require(
        s, g.split_k != 0 || is_tiles || (is_mma && g.is_wide), "strategy tile_m tile_n split_k",
        "split_k 0 needs strategy tiles, or mma with tile_n of at least 64 or tile_m of at least 16");
    kiln_require_shared_bytes(s, is_mma ? s->shared_bytes : 0, SHARED_SM_80,
                              "strategy tile_m tile_n k_warps table stages split_k",
                              "tile_m, tile_n, k_warps and stages of strategy mma");
    kiln_require(s, !is_tiles || type != PTX_F32, "a strategy", "strategy tiles needs a f16 or bf16");
    kiln_require(s, !is_tiles || (g.tile_m >= 64 && g.tile_n == 128 && g.k_warps == 1 && is_compact),
                 "strategy tile_m tile_n k_warps table",
                 "strategy tiles needs tile_m 64 or 128, tile_n 128, k_warps 1 and table compact");
    kiln_require(s, !is_tiles || g.split_k == 1 || (g.split_k == 0 && g.tile_m == 64),
                 "strategy tile_m split_k",
                 "strategy tiles needs split_k 1, or with tile_m 64 split_k 0: registers");
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

static linear_tile find_tile(gemm_mma *g)
{
    linear_find_threads(&g->l);
    if (g->has_most_threads)
        g->l.warp = ptx_shfl_idx(g->f, g->l.warp, 0);
    return linear_find_tile(&g->l, g->tile_m, g->tile_n, SUMS_COLUMNS * g->groups, g->k_warps, 1,
                            NF4_BLOCK_K);
}

static void make_tile(void *strategy)
{
    gemm_mma *g = strategy;
    ptx_fn *f = g->f;
    const bool has_all = g->split_k == 1;
    g->k_warp = g->k_warps == 1 ? ptx_u32(0) : g->tile.k_warp;
    g->first_block = has_all ? ptx_u32(0) : ptx_div(f, g->l.part_element, NF4_BLOCK_K);
    g->part_blocks = has_all ? g->l.row_numbers : g->l.part_stages;
    find_ends(g, g->k_warp, g->ends);
    g->done = ptx_s32(0);
    init_reads(g);
    init_codes(g);
    init_scale_copies(g);
    init_row_copies(g);
    for (uint32_t block = 0; block < g->depth; block++)
        load_ahead(g, block);
    if (g->args.is_nested)
        nf4_nested_fill(&g->args.nested, ptx_add(f, g->rows.at, g->rows.stages * g->rows.stage_bytes),
                        g->l.tid);
    copy_first(g);
    nf4_pairs_find(&g->pairs, g->l.lane);
    const bool is_stretch = g->split_k == 0; /* its first tile fills the table */
    ptx_val step = {0};
    if (is_stretch)
        step = ptx_mad(f, g->tile.number, g->l.row_numbers, g->first_block);
    IF_NEEDED (f, is_stretch, ptx_eq(f, step, g->tile.stretch.first)) {
        nf4_pairs_fill(&g->pairs, g->l.tid);
    }
    g->zero = ptx_var(f, ptx_f32(0));
    g->scales.offset = ptx_var(f, ptx_u32(0));
    g->sums =
        (warp_sums){.row_tiles = g->row_tiles, .column_tiles = g->groups, .has_one_row = g->tile_m == 1};
    sums_clear(f, &g->sums);
    multiply_blocks(g);
    if (g->scales_weights || !ptx_has_sm(f, 80)) { /* the loop leaves no registers to keep the lane's place */
        linear_tile again = find_tile(g);
        g->tile.lane = again.lane;
        g->tile.k_warp = again.k_warp;
        g->tile.column_warp = again.column_warp;
    }
    linear_store_sums(&g->l, &g->tile, &g->sums);
}

/* The arguments as linear's tiles take them. */
static linear arguments_of(ptx_fn *f, const nf4_args *args)
{
    return (linear){.of = {.format = format_nf4(false, NF4_BLOCK_K)},
                    .f = f,
                    .x_type = args->type,
                    .y_type = args->type,
                    .matrices = 1,
                    .column_rows = 1,
                    .keeps_infinity = true,
                    .in = args->in,
                    .m = args->m,
                    .k = args->k,
                    .w = {args->packed},
                    .out = {args->out},
                    .n = {args->n},
                    .y_stride = args->c_stride,
                    .split_k = args->split_k,
                    .workspace = args->workspace,
                    .tile_counters = args->tile_counters};
}

void nf4_gemm_emit_mma(ptx_fn *f, const kiln_variant *v)
{
    gemm_mma of = geometry(f, v), *g = &of;
    g->args = nf4_declare_args(f, v, false);
    g->l = arguments_of(f, &g->args);
    g->tile = find_tile(g);
    g->scales.at = ptx_add(f, g->tile.shared, nf4_pairs_layout(&g->pairs, g->tile.shared));
    if (g->split_k == 0)
        g->tile.shared = g->scales.at;
    linear_make_tiles(&g->l, &g->tile, make_tile, g);
}
