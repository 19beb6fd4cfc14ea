/* NF4 matrix product on tensor cores.
 *
 * The weights are the first operand of mma: 16 columns of B are its 16 rows. A is the second: eight of its rows are the 8
 * columns. So mma gives C transposed, and 1 to 8 rows of A cost the same. A thread block makes tile_m rows by tile_n
 * columns of C. In a wide tile (tile_n from 64) each warp has 32 columns, and `k_warps` groups of such warps share K; in a
 * narrow one all warps have the same columns and share K. A quantised block is 64 weights along K with one scale. Each
 * k_warp takes every k_warps-th quantised block, and the sums are added in the order of the warps. Each of `split_k` thread
 * blocks has a part of K.
 *
 * ORDER ALONG K. Any order will do as long as the operands agree. In a quantised block, lane (g, t) takes the 16 codes from
 * 16*t on of columns g and g + 8, 8 bytes each, and the same 16 elements of row g of A, 32 bytes. Each byte becomes one
 * register of an operand, two weights: prmt for the byte, mad for the address (not with an aligned table), one load from
 * the table. Four lanes read a whole sector of codes, rows of A in shared memory have 16 bytes of padding, and nothing is
 * repacked.
 *
 * SCALES multiply the sums of a quantised block, in f32: weights keep the 11 or 8 bits that the table has, and no scale is
 * too large or too small for the type. A scale is 4 bytes; a column's are copied into shared memory 32 at a time (16 where
 * there is no room for more), so that their sectors are full, and in the order in which a lane takes them.
 *
 * PREFETCHING. Codes go straight into registers, since no two warps need the same ones: through shared memory they would
 * take twice the bandwidth that already limits the table. As soon as a quantised block is done, its registers are loaded
 * for the one that comes `depth` later. A and the scales are copied in the background, stages - 1 ahead, into one of
 * `stages` stages: in a wide tile a quantised block per k_warp, in a narrow one all that an iteration takes. A thread block
 * reads each row of A once.
 *
 * INSTRUCTIONS per weight in the loop, tile_m 1, tile_n 32: 1.5 for decoding (1.0 with an aligned table), 0.125
 * for mma, 0.125 for scales, 0.06 for codes, 0.03 for A, the rest for bounds, copies and the loop: 2.00 (1.50).
 * Below sm_80 a product takes half as much of K: 0.125 more. With tile_m 64, besides products, 1 for scales: 3.2 (2.7).
 */
#include "nf4_gemm_mma.h"
#include "nf4_gemm.h"

/* ---- this warp's codes ------------------------------------------------------------------------------------------- */

static void init_codes(mma_gemm *g)
{
    ptx_fn *f = g->f;
    ptx_val of_warp = ptx_mad(f, g->column_warp, ptx_u32(MMA_COLUMNS * g->groups), g->first_column);
    ptx_val mine = ptx_add(f, of_warp, g->g);
    ptx_val block = ptx_add(f, g->first_block, g->k_warp);
    ptx_val byte = ptx_mad(f, g->t, ptx_u32(8), ptx_mul(f, block, ptx_u32(MMA_BLOCK_K / 2)));
    ptx_val column_bytes = ptx_shr(f, g->k, ptx_u32(1));
    for (uint32_t i = 0; i < 2 * g->groups; i++) {
        ptx_val column = mma_clamp(f, ptx_add(f, mine, ptx_u32(8 * i)), g->n);
        ptx_val start = ptx_at(f, g->packed, ptx_mul_wide(f, column, column_bytes));
        g->codes_at[i / 2][i % 2] = ptx_var(f, ptx_cast_ptr(f, ptx_at(f, start, byte), PTX_U32));
        for (uint32_t j = 0; j < g->depth; j++)
            for (uint32_t word = 0; word < 2; word++)
                g->codes[j][i / 2][i % 2][word] = ptx_var(f, ptx_u32(0));
    }
}

/* ---- loads ahead --------------------------------------------------------------------------------------------------- */

static void load_into(mma_gemm *g, uint32_t count, ptx_val to[], ptx_val from, int hints)
{
    ptx_val loaded[4];
    ptx_load_vec(g->f, (int)count, loaded, from, hints);
    for (uint32_t i = 0; i < count; i++)
        ptx_set(g->f, to[i], loaded[i]);
}

/* Loads the codes of this warp's block `ahead`, counted from the iteration's first. */
static void load_codes(mma_gemm *g, uint32_t ahead)
{
    uint32_t words = ahead * g->k_warps * MMA_BLOCK_K / 8;
    for (uint32_t i = 0; i < 2 * g->groups; i++)
        load_into(g, 2, g->codes[ahead % g->depth][i / 2][i % 2],
                  ptx_at_const(g->f, g->codes_at[i / 2][i % 2], words), PTX_NC | PTX_NO_ALLOCATE);
}

/* Whether this warp has a block `ahead`, counted from the iteration's first, which is `done`. */
static ptx_val in_bounds(const mma_gemm *g, ptx_val done, uint32_t ahead)
{
    return ptx_gt(g->f, g->end[ahead], done);
}

static void load_ahead(mma_gemm *g, ptx_val done, uint32_t block)
{
    ptx_fn *f = g->f;
    PTX_WHEN (f, in_bounds(g, done, block)) {
        load_codes(g, block);
    }
}

/* ---- the product --------------------------------------------------------------------------------------------------- */

/* A's fragment of eight rows for block `block` of an iteration: eight registers of two elements each. */
static void read_a(mma_gemm *g, uint32_t block, uint32_t row_tile, ptx_val out[8])
{
    ptx_fn *f = g->f;
    uint32_t place = g->is_wide ? block % g->stages * g->a_stage_bytes : block * g->k_warps * 2 * MMA_BLOCK_K;
    uint32_t bytes = place + row_tile * MMA_ROWS * g->a_row_bytes;
    for (uint32_t half = 0; half < 2; half++)
        ptx_load_vec(f, 4, &out[4 * half], mma_shared_at(g, PTX_U32, g->a_read, bytes + 16 * half),
                     PTX_PLAIN);
}

static ptx_mma_shape shape_of(const mma_gemm *g)
{
    return g->type == PTX_BF16 ? PTX_MMA_M16N8K16_BF16_F32
           : g->has_sm_80      ? PTX_MMA_M16N8K16_F16_F32
                               : PTX_MMA_M16N8K8_F16_F32;
}

typedef ptx_val weight_pairs[MMA_MOST_GROUPS][2][8];

/* out = 16 columns of 64 weights times 64 elements of eight rows. */
static void multiply_block(mma_gemm *g, ptx_val weights[2][8], const ptx_val a[8], ptx_val out[4])
{
    ptx_fn *f = g->f;
    uint32_t pairs = g->has_sm_80 ? 2 : 1; /* per lane and column, in one product */
    for (int e = 0; e < 4; e++)
        out[e] = g->zero;
    for (uint32_t p = 0; p < 8; p += pairs) {
        ptx_val of_weights[4], of_a[2], next[4];
        for (uint32_t i = 0; i < pairs; i++) {
            of_weights[2 * i] = ptx_as(f, PTX_B32, weights[0][p + i]);
            of_weights[2 * i + 1] = ptx_as(f, PTX_B32, weights[1][p + i]);
            of_a[i] = ptx_as(f, PTX_B32, a[p + i]);
        }
        ptx_mma(f, shape_of(g), next, of_weights, of_a, out);
        for (int e = 0; e < 4; e++)
            out[e] = next[e];
    }
}

static void decode_block(mma_gemm *g, uint32_t block, weight_pairs out)
{
    for (uint32_t group = 0; group < g->groups; group++)
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t p = 0; p < 8; p++)
                nf4_pairs_decode(&g->pairs, g->codes[block][group][half][p / 4], p % 4, &out[group][half][p]);
}

/* ptxas moves no load across a barrier. Without one it would load all of a large tile's A at once, and run out of
 * registers. */
static void bound_loads_ahead(mma_gemm *g, uint32_t row_tile)
{
    enum { ROW_TILES_AHEAD = 4 };
    if (row_tile > 0 && row_tile % ROW_TILES_AHEAD == 0)
        ptx_warp_barrier(g->f);
}

static void add_block(mma_gemm *g, uint32_t block)
{
    ptx_fn *f = g->f;
    weight_pairs weights;
    decode_block(g, block, weights);
    for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++) {
        ptx_val read[8];
        bound_loads_ahead(g, row_tile);
        read_a(g, block, row_tile, read);
        for (uint32_t group = 0; group < g->groups; group++) {
            ptx_val partial[4];
            multiply_block(g, weights[group], read, partial);
            for (uint32_t e = 0; e < 4; e++)
                ptx_fma_to(f, g->sum[row_tile][group][e], partial[e], g->scale_of[group][e / 2][block]);
        }
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

static void read_scales(mma_gemm *g)
{
    ptx_fn *f = g->f;
    ptx_val from = mma_is_double_buffered(g) ? g->scales_read : ptx_add(f, g->scales_read, g->ring);
    for (uint32_t i = 0; i < 2 * g->groups; i++)
        ptx_load_vec(f, (int)g->depth, g->scale_of[i / 2][i % 2],
                     mma_shared_at(g, PTX_F32, from, 8 * i * g->scale_row_bytes), PTX_PLAIN);
}

static uint32_t iteration_blocks(const mma_gemm *g)
{
    return g->k_warps * g->depth;
}

static void copy_scales_ahead(mma_gemm *g, ptx_val done)
{
    ptx_fn *f = g->f;
    if (mma_is_double_buffered(g)) {
        mma_copy_scales(g, done);
        return;
    }
    ptx_val in_chunk = ptx_and(f, g->ring, ptx_u32(4 * g->chunk - 1));
    PTX_IF (f, ptx_eq(f, in_chunk, ptx_u32(0))) {
        mma_copy_scales(g, done);
    }
}

/* Waits for a block's stage, so that all threads see it, and fills the stage that is free now. */
static void next_stage(mma_gemm *g, ptx_val done, uint32_t block)
{
    mma_copies_wait(g, g->stages - 2);
    ptx_barrier(g->f);
    if (block == 0)
        copy_scales_ahead(g, done);
    mma_copy_a(g, done, block + g->stage_blocks * (g->stages - 1));
    mma_copies_commit(g);
}

/* Switches an address to the other buffer of two; `sum` is the sum of their addresses. */
static void toggle(mma_gemm *g, ptx_val address, ptx_val sum)
{
    ptx_set(g->f, address, ptx_sub(g->f, sum, address));
}

static void step_ring(mma_gemm *g)
{
    ptx_fn *f = g->f;
    if (mma_is_double_buffered(g)) {
        toggle(g, g->scales_read, g->toggle_read);
        toggle(g, g->scale_to, g->toggle_to);
    } else {
        ptx_val next = ptx_add(f, g->ring, ptx_u32(4 * iteration_blocks(g)));
        ptx_set(f, g->ring, ptx_and(f, next, ptx_u32(8 * g->chunk - 1)));
    }
    if (!g->is_wide) {
        toggle(g, g->a_read, g->toggle_a);
        toggle(g, g->a_to, g->toggle_a_to);
    }
}

static void step(mma_gemm *g)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < 2 * g->groups; i++)
        ptx_set(f, g->codes_at[i / 2][i % 2],
                ptx_at_const(f, g->codes_at[i / 2][i % 2], iteration_blocks(g) * MMA_BLOCK_K / 8));
    step_ring(g);
    mma_step_copies(g);
}

static void multiply_blocks(mma_gemm *g)
{
    ptx_fn *f = g->f;
    PTX_FOR (f, done, ptx_s32(0), g->block_count, ptx_s32((int32_t)iteration_blocks(g))) {
        ptx_main_loop(f);
        for (uint32_t block = 0; block < g->depth; block++) {
            if (block % g->stage_blocks == 0)
                next_stage(g, done, block);
            if (block == 0)
                read_scales(g);
            PTX_IF (f, in_bounds(g, done, block)) {
                add_block(g, block);
            }
            load_ahead(g, done, block + g->depth);
        }
        step(g);
    }
    mma_copies_wait(g, 0);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

static mma_gemm geometry(ptx_fn *f, const kiln_variant *v)
{
    mma_gemm of = {.f = f}, *g = &of;
    g->type = kiln_type(v, "a");
    g->has_sm_80 = kiln_has_sm(v, 80);
    g->tile_m = kiln_int(v, "tile_m");
    g->tile_n = kiln_int(v, "tile_n");
    g->k_warps = kiln_int(v, "k_warps");
    g->stages = kiln_int(v, "stages");
    g->split_k = kiln_int(v, "split_k");
    g->groups = g->tile_n == 16 ? 1 : 2;
    g->row_tiles = g->tile_m < MMA_ROWS ? 1 : g->tile_m / MMA_ROWS;
    g->column_warps = g->tile_n / (MMA_COLUMNS * g->groups);
    g->threads = MMA_WARP_LANES * g->column_warps * g->k_warps;
    g->is_wide = g->column_warps > 1;
    g->chunk = g->tile_n == 128 && kiln_is(v, "table", "compact") ? 16 : 32;
    g->depth = g->is_wide ? (g->tile_m <= 16 ? 4 : 2) : (g->tile_m <= 4 ? 4 : 2);
    g->stage_blocks = g->is_wide ? 1 : g->depth;
    g->scale_row_bytes = 4 * (2 * g->chunk + MMA_PAD_WORDS);
    g->scale_copies = g->tile_n * g->chunk / g->threads;
    g->a_row_bytes = g->k_warps * g->stage_blocks * MMA_BLOCK_K * 2 + MMA_PAD_BYTES;
    g->a_stage_bytes = g->tile_m * g->a_row_bytes;
    g->a_copies = g->tile_m * g->k_warps * g->stage_blocks * (MMA_BLOCK_K / 8) / g->threads;
    g->pairs = (nf4_pairs){.f = g->f,
                           .type = g->type,
                           .is_high_first = kiln_is(v, "nibbles", "high"),
                           .is_aligned = kiln_is(v, "table", "aligned")};
    return of;
}

static void read_arguments(mma_gemm *g)
{
    ptx_fn *f = g->f;
    g->in = ptx_param_ptr(f, g->type, "in");
    g->packed = ptx_param_ptr(f, PTX_U8, "packed");
    g->scale = ptx_param_ptr(f, PTX_F32, "scale");
    g->out = ptx_param_ptr(f, g->type, "out");
    if (g->split_k > 1) {
        g->workspace = ptx_param_ptr(f, PTX_F32, "workspace");
        g->tile_counters = ptx_param_ptr(f, PTX_U32, "tile_counters");
    }
    g->m = ptx_param(f, PTX_U32, "m");
    g->n = ptx_param(f, PTX_U32, "n");
    g->k = ptx_param(f, PTX_U32, "k");
}

/* This thread block's part of the quantised blocks. Where they do not divide evenly, the first parts have one more. */
static void init_part(mma_gemm *g)
{
    ptx_fn *f = g->f;
    ptx_val blocks = ptx_shr(f, g->k, ptx_u32(6));
    g->first_block = ptx_u32(0);
    if (g->split_k > 1) {
        ptx_val part = ptx_ctaid_z(f);
        ptx_val each = ptx_div(f, blocks, ptx_u32(g->split_k)),
                more = ptx_rem(f, blocks, ptx_u32(g->split_k));
        g->first_block = ptx_mad(f, part, each, ptx_min(f, part, more));
        ptx_val longer = ptx_select(f, ptx_lt(f, part, more), ptx_u32(1), ptx_u32(0));
        blocks = ptx_add(f, each, longer);
    }
    g->block_count = ptx_as(f, PTX_S32, blocks);
}

static void init_warp(mma_gemm *g)
{
    ptx_fn *f = g->f;
    g->tid = ptx_tid_x(f);
    g->lane = ptx_laneid(f);
    g->g = ptx_shr(f, g->lane, ptx_u32(2));
    g->t = ptx_and(f, g->lane, ptx_u32(3));
    ptx_val warp = ptx_warpid_x(f);
    g->k_warp = g->column_warps == 1 ? warp : ptx_div(f, warp, ptx_u32(g->column_warps));
    g->column_warp = g->column_warps == 1 ? ptx_u32(0) : ptx_rem(f, warp, ptx_u32(g->column_warps));
    g->first_row = ptx_mul(f, ptx_ctaid_y(f), ptx_u32(g->tile_m));
    g->first_column = ptx_mul(f, ptx_ctaid_x(f), ptx_u32(g->tile_n));
    ptx_val end = ptx_sub(f, g->block_count, ptx_as(f, PTX_S32, g->k_warp));
    for (uint32_t ahead = 0; ahead < 2 * g->depth; ahead++)
        g->end[ahead] = ptx_sub(f, end, ptx_s32((int32_t)(ahead * g->k_warps)));
}

/* The most that lies before an aligned table: 1 KB of the system's and the shared memory of split_add. */
static uint32_t table_reserved(const mma_gemm *g)
{
    return 1024 + (g->split_k > 1 ? 16 : 0);
}

static uint32_t table_bytes(const mma_gemm *g)
{
    return g->pairs.is_aligned ? NF4_PAIRS_ALIGNED_BYTES + table_reserved(g) : NF4_PAIRS_BYTES;
}

/* The table, scales and stages of A; at the end the sums of the warps take their bytes. */
static uint32_t shared_bytes(const mma_gemm *g)
{
    const uint32_t copies = table_bytes(g) + g->tile_n * g->scale_row_bytes + g->stages * g->a_stage_bytes;
    const uint32_t sums = g->k_warps * (g->tile_m < MMA_ROWS ? MMA_ROWS : g->tile_m) * mma_sums_row_bytes(g);
    return copies > sums ? copies : sums;
}

/* The table, then scales, then stages of A. An aligned table starts `reserved` bytes after the multiple of 64 KB nearest to
 * the start of shared memory. That multiple is 0 as long as no more than `reserved` lies before the table. */
static void layout_shared(mma_gemm *g)
{
    ptx_fn *f = g->f;
    g->shared = ptx_address(f, ptx_shared_dynamic(f, PTX_F32));
    g->pairs.start = g->shared;
    if (g->pairs.is_aligned) {
        const uint32_t alignment = NF4_PAIRS_ALIGNED_BYTES, reserved = table_reserved(g);
        g->pairs.skipped = reserved;
        g->pairs.start =
            ptx_and(f, ptx_add(f, g->shared, ptx_u32(alignment - 1 - reserved)), ptx_u32(-alignment));
    }
    g->scales = ptx_add(f, g->shared, ptx_u32(table_bytes(g)));
    ptx_val column = ptx_mad(f, g->column_warp, ptx_u32(MMA_COLUMNS * g->groups), g->g);
    ptx_val of_k_warp = ptx_mad(f, g->k_warp, ptx_u32(4 * g->depth), g->scales);
    g->scales_read = ptx_var(f, ptx_mad(f, column, ptx_u32(g->scale_row_bytes), of_k_warp));
    g->a_stages = ptx_add(f, g->scales, ptx_u32(g->tile_n * g->scale_row_bytes));
    ptx_val block = ptx_mad(f, g->k_warp, ptx_u32(2 * MMA_BLOCK_K), g->a_stages);
    ptx_val row = g->tile_m < MMA_ROWS ? ptx_and(f, g->g, ptx_u32(g->tile_m - 1)) : g->g;
    ptx_val line = ptx_mad(f, row, ptx_u32(g->a_row_bytes), block);
    g->a_read = ptx_var(f, ptx_mad(f, g->t, ptx_u32(32), line));
    if (mma_is_double_buffered(g))
        g->toggle_read = ptx_mad(f, g->scales_read, ptx_u32(2), ptx_u32(4 * g->chunk));
    if (!g->is_wide)
        g->toggle_a = ptx_mad(f, g->a_read, ptx_u32(2), ptx_u32(g->a_stage_bytes));
}

static void clear_sums(mma_gemm *g)
{
    ptx_fn *f = g->f;
    g->zero = ptx_var(f, ptx_f32(0));
    g->ring = ptx_var(f, ptx_u32(0));
    for (uint32_t row_tile = 0; row_tile < g->row_tiles; row_tile++)
        for (uint32_t i = 0; i < 4 * g->groups; i++)
            g->sum[row_tile][i / 4][i % 4] = ptx_var(f, ptx_f32(0));
}

/* As many as leave enough registers for a thread's sums. */
static uint32_t blocks_per_multiprocessor(const mma_gemm *g)
{
    enum { ALL_REGISTERS = 65536 };
    uint32_t registers = g->tile_m == 64                     ? 255
                         : g->is_wide                        ? 204
                         : g->groups == 1 && g->split_k == 1 ? 85
                                                             : 128;
    uint32_t blocks = ALL_REGISTERS / (g->threads * registers);
    return blocks < 1 ? 1 : blocks;
}

void nf4_gemm_shape_mma(kiln_shape *s, const kiln_variant *v)
{
    enum {
        NARROW = 32,
        K_WARPS_OF_NARROW = 8,
        COMPACT_ROOM = 101376,
        ALIGNED_ROOM = 166912,
        SM_75_ROOM = 65536
    };
    const mma_gemm g = geometry(NULL, v);
    const bool is_mma = kiln_is(v, "strategy", "mma"), is_narrow = g.tile_n <= NARROW;
    s->block[0] = g.threads;
    s->shared_bytes = shared_bytes(&g);
    s->min_sm = g.type == PTX_BF16 || s->shared_bytes > SM_75_ROOM ? 80 : 75;
    s->blocks_per_multiprocessor = blocks_per_multiprocessor(&g);
    if (is_mma && g.is_wide && g.tile_m < 64)
        s->registers = g.tile_m == MMA_ROWS ? 128 : 168;
    s->trip = g.depth * MMA_BLOCK_K;
    s->loop_warps = g.k_warps;
    kiln_require(s, is_mma || (g.stages == 2 && g.split_k == 1), "strategy stages split_k",
                 "stages 4 and split_k above 1 need strategy mma");
    kiln_require(s, !is_mma || g.type != PTX_F32, "a strategy", "strategy mma needs a f16 or bf16");
    kiln_require(s, !is_mma || !is_narrow || (g.tile_m <= MMA_ROWS && g.k_warps == K_WARPS_OF_NARROW),
                 "strategy tile_m tile_n k_warps",
                 "strategy mma with tile_n 16 or 32 needs tile_m of at most 8 and k_warps 8");
    kiln_require(
        s, !is_mma || is_narrow || (g.tile_m >= MMA_ROWS && g.tile_m >= g.tile_n / 8),
        "strategy tile_m tile_n",
        "strategy mma needs tile_m of at least 8 with tile_n 64, and of at least 16 with tile_n 128");
    kiln_require(s, !is_mma || is_narrow || (g.threads >= 128 && g.threads <= 256), "strategy tile_n k_warps",
                 "strategy mma needs k_warps 2 or 4 with tile_n 64, and 1 or 2 with tile_n 128");
    kiln_require(s, !is_mma || g.stages == 2 || (!is_narrow && g.tile_m <= 16),
                 "strategy tile_m tile_n stages",
                 "stages 4 needs tile_n of at least 64 and tile_m of at most 16");
    kiln_require(s, !is_mma || s->shared_bytes <= (g.pairs.is_aligned ? ALIGNED_ROOM : COMPACT_ROOM),
                 "strategy tile_m tile_n k_warps table stages split_k",
                 "tile_m, tile_n, k_warps and stages fit 99 KB of shared memory, with table aligned 163 KB");
}

void nf4_gemm_emit_mma(ptx_fn *f, const kiln_variant *v)
{
    mma_gemm g = geometry(f, v);
    read_arguments(&g);
    init_part(&g);
    init_warp(&g);
    layout_shared(&g);
    init_codes(&g);
    mma_init_copies(&g);
    for (uint32_t block = 0; block < g.depth; block++)
        load_ahead(&g, ptx_s32(0), block);
    mma_copy_first(&g);
    nf4_pairs_fill(&g.pairs, g.tid, g.threads, g.lane);
    clear_sums(&g);
    multiply_blocks(&g);
    mma_store_tile(&g);
}
