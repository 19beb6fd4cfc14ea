/* The transposed NF4 product on the matrix units.
 *
 * A thread block makes a tile of C, tile_m rows by 512 along K; each of its eight warps has the 64 along K that share a
 * scale, so that no sums cross warps. Weights are mma's A: its 16 rows are values of k, the reduction runs over columns.
 * Rows of A are mma's B. The order of columns is free as long as both agree: of 16 columns lane t of four has 4t to
 * 4t + 3, which in A are 8 bytes in a row.
 *
 * STAGES. All threads bring 32 columns of codes, scales and A to shared memory: loads for the next 32 are on the way
 * while these are multiplied, and two buffers take turns, so that there is one barrier per 32. The 32 bytes that a warp
 * needs of a column's 256 lie turned by the lane that reads them, so that no two lanes meet in a bank.
 *
 * DECODING. A register of mma's A has two columns of one k, a byte of codes two k of one column: the words of two columns
 * are merged first, four instructions for 16 weights; then nf4_pairs.h's table gives a register per byte.
 *
 * SCALES. They differ along the reduction and along k, so they go into the weights. A scale is kept as two numbers of A's
 * type, rounded and the rest, and t * high + t * low is rounded once: with the table's rounding a weight is within two
 * half ulps, besides half of the smallest number that there is (2^-25 in f16) for each of three roundings.
 */
#include "narrow.h"
#include "nf4_gemm_transposed.h"
#include "nf4_pairs.h"
#include "split.h"

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    TILE_K = 512,
    WARP_K = TILE_K / WARPS, /* a block of one scale */
    CHUNK = 32,              /* columns of a stage */
    STEP = 16,               /* columns of an mma, or of two */
    STEPS = CHUNK / STEP,
    COLUMN_BYTES = TILE_K / 2,
    CODES_BYTES = CHUNK * COLUMN_BYTES,
    CODES_LOADS = CODES_BYTES / 16 / THREADS,
    SCALES_STRIDE =
        8 * CHUNK / 2 + 16, /* bytes from one warp's to the next's: writers and readers meet in no bank */
    SCALES_BYTES = WARPS * SCALES_STRIDE,
    ROW_BYTES = 2 * CHUNK + 32, /* of A; likewise */
    LANE_K = 8,
    FRAGMENTS = LANE_K / 2,
    RESERVED_BYTES = 2048, /* of shared memory, at most, before what is dynamic */
    MOST_GROUPS = 8        /* of 8 rows */
};

/* ---- a variant while it is emitted ----------------------------------------------------------------------------- */

typedef struct product {
    ptx_fn *f;
    ptx_type type, pair; /* f16, f16x2, or bf16 */
    uint32_t sm, groups, vector, splits;
    bool is_high_first;

    nf4_pairs pairs;
    ptx_val in, packed, scale, out, workspace, arrivals, m, n, k; /* arguments */
    ptx_val tid, lane, warp, quad, member;                        /* of 8; of the lanes of four */
    ptx_val first_k, first_row, part, minus_zero;
    ptx_val codes_at, scales_at, a_at[MOST_GROUPS], a_column; /* where loads start, for column 0 */
    ptx_val code_column, scale_column, column_bytes, scale_bytes, last_column;
    ptx_val codes_to, scales_to, a_to, codes_from, scales_from, a_from; /* in the first of the buffers */
    ptx_val buffer;                                                     /* bytes to the one in use */
    ptx_val codes[CODES_LOADS][4], scales[2], a[MOST_GROUPS];           /* on the way */
    ptx_val sum[FRAGMENTS][MOST_GROUPS][4];
} product;

static uint32_t stage_bytes(const product *g)
{
    return CODES_BYTES + SCALES_BYTES + g->groups * 8 * ROW_BYTES;
}

/* Loads of A per thread. */
static uint32_t loads_of_a(const product *g)
{
    return g->vector == 1 ? g->groups : 4;
}

static ptx_val shared_at(const product *g, ptx_type type, ptx_val address, uint32_t bytes)
{
    return ptx_at_bytes(g->f, ptx_pointer(g->f, PTX_SHARED, type, address), bytes);
}

/* ---- what lies where ------------------------------------------------------------------------------------------- */

/* What is behind the end of K repeats what is before it. */
static void place_codes(product *g)
{
    ptx_fn *f = g->f;
    ptx_val unit = ptx_and(f, g->tid, ptx_u32(COLUMN_BYTES / 16 - 1));
    ptx_val k = ptx_mad(f, unit, ptx_u32(32), g->first_k);
    ptx_val most = ptx_sub(f, g->k, ptx_u32(32));
    ptx_val codes = ptx_at(f, g->packed, ptx_shr(f, ptx_min(f, k, most), ptx_u32(1)));
    g->codes_at = ptx_address(f, codes);
    g->code_column = ptx_shr(f, g->tid, ptx_u32(4));
    g->column_bytes = ptx_shr(f, g->k, ptx_u32(1));
    g->last_column = ptx_sub(f, g->n, ptx_u32(1));

    ptx_val turn = ptx_and(f, ptx_shr(f, g->code_column, ptx_u32(2)), ptx_u32(3));
    ptx_val group = ptx_xor(f, ptx_shr(f, unit, ptx_u32(1)), turn);
    ptx_val half = ptx_and(f, unit, ptx_u32(1));
    ptx_val in_column = ptx_mad(f, half, ptx_u32(16), ptx_mul(f, group, ptx_u32(32)));
    ptx_val to = ptx_mad(f, g->code_column, ptx_u32(COLUMN_BYTES), in_column);
    g->codes_to = ptx_add(f, to, g->codes_to);

    ptx_val mine = ptx_mul(f, ptx_xor(f, g->warp, g->member), ptx_u32(32));
    ptx_val row = ptx_mad(f, g->quad, ptx_u32(4), mine);
    ptx_val from = ptx_mad(f, g->member, ptx_u32(4 * COLUMN_BYTES), row);
    g->codes_from = ptx_add(f, from, g->codes_from);
}

/* Half of the threads bring the scales of two columns and one block each. */
static void place_scales(product *g)
{
    ptx_fn *f = g->f;
    ptx_val block = ptx_and(f, g->tid, ptx_u32(WARPS - 1));
    ptx_val first = ptx_shr(f, g->first_k, ptx_u32(6));
    ptx_val blocks = ptx_shr(f, g->k, ptx_u32(6));
    ptx_val mine = ptx_add(f, first, block), last = ptx_sub(f, blocks, ptx_u32(1));
    g->scales_at = ptx_address(f, ptx_at(f, g->scale, ptx_min(f, mine, last)));
    g->scale_bytes = ptx_shr(f, g->k, ptx_u32(4));
    ptx_val pair = ptx_shr(f, g->tid, ptx_u32(3));
    g->scale_column = ptx_shl(f, pair, ptx_u32(1));
    ptx_val to = ptx_mad(f, block, ptx_u32(SCALES_STRIDE), ptx_mul(f, pair, ptx_u32(8)));
    g->scales_to = ptx_add(f, to, g->scales_to);
    ptx_val from = ptx_mad(f, g->warp, ptx_u32(SCALES_STRIDE), ptx_mul(f, g->member, ptx_u32(16)));
    g->scales_from = ptx_add(f, from, g->scales_from);
}

/* A thread loads an element of each eighth row, or eight of one row. Rows behind the last repeat it. */
static void place_rows(product *g)
{
    ptx_fn *f = g->f;
    bool is_vector = g->vector == 8;
    ptx_val row = is_vector ? ptx_shr(f, g->tid, ptx_u32(2)) : g->warp;
    ptx_val unit = ptx_and(f, g->lane, ptx_u32(CHUNK / g->vector - 1));
    g->a_column = is_vector ? ptx_mul(f, unit, ptx_u32(8)) : unit;
    ptx_val first = ptx_add(f, row, g->first_row), last = ptx_sub(f, g->m, ptx_u32(1));
    for (uint32_t i = 0; i < (is_vector ? 1 : g->groups); i++) {
        ptx_val mine = ptx_min(f, ptx_add(f, first, ptx_u32(8 * i)), last);
        ptx_val line = ptx_at(f, g->in, ptx_mul_wide(f, mine, g->n));
        g->a_at[i] = ptx_at(f, line, g->a_column);
    }
    ptx_val to = ptx_mad(f, row, ptx_u32(ROW_BYTES), ptx_mul(f, g->a_column, ptx_u32(2)));
    g->a_to = ptx_add(f, to, g->a_to);
    ptx_val from = ptx_mad(f, g->quad, ptx_u32(ROW_BYTES), ptx_mul(f, g->member, ptx_u32(8)));
    g->a_from = ptx_add(f, from, g->a_from);
}

/* ---- 32 columns into registers --------------------------------------------------------------------------------- */

static void load_codes(product *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val first = ptx_add(f, chunk, g->code_column);
    for (uint32_t i = 0; i < CODES_LOADS; i++) {
        ptx_val words[4];
        ptx_val column = ptx_min(f, ptx_add(f, first, ptx_u32(i * CHUNK / CODES_LOADS)), g->last_column);
        ptx_val at = ptx_mad_wide(f, column, g->column_bytes, g->codes_at);
        ptx_load_vec(f, 4, words, ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), PTX_NC | PTX_NO_ALLOCATE);
        for (uint32_t e = 0; e < 4; e++)
            ptx_set(f, g->codes[i][e], words[e]);
    }
}

/* Whose that do not exist is 0. */
static void load_scales(product *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val first = ptx_add(f, chunk, g->scale_column);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val column = ptx_add(f, first, ptx_u32(i));
        ptx_val at = ptx_mad_wide(f, column, g->scale_bytes, g->scales_at);
        ptx_val exists = ptx_lt(f, column, g->n);
        ptx_set(f, g->scales[i], ptx_f32(0));
        PTX_WHEN (f, exists) {
            ptx_set(f, g->scales[i], ptx_load_hint(f, ptx_pointer(f, PTX_GLOBAL, PTX_F32, at), PTX_NC));
        }
    }
}

static void load_rows(product *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val exists = ptx_lt(f, ptx_add(f, chunk, g->a_column), g->n);
    for (uint32_t i = 0; i < loads_of_a(g); i++)
        ptx_set(f, g->a[i], ptx_u32(0));
    if (g->vector == 8) {
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, g->a_at[0], chunk), PTX_U32), words[4];
        PTX_WHEN (f, exists) {
            ptx_load_vec(f, 4, words, at, PTX_NC);
            for (uint32_t e = 0; e < 4; e++)
                ptx_set(f, g->a[e], words[e]);
        }
        return;
    }
    for (uint32_t i = 0; i < g->groups; i++) {
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, g->a_at[i], chunk), PTX_U16);
        PTX_WHEN (f, exists) {
            ptx_set(f, g->a[i], ptx_load_as(f, PTX_U32, at, PTX_NC));
        }
    }
}

/* Half of the threads have scales; of A in vectors, as many as there are. */
static void load_chunk(product *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    load_codes(g, chunk);
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(THREADS / 2))) {
        load_scales(g, chunk);
    }
    uint32_t threads_of_a = g->vector == 8 ? g->groups * 32 : THREADS;
    if (threads_of_a == THREADS) {
        load_rows(g, chunk);
        return;
    }
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(threads_of_a))) {
        load_rows(g, chunk);
    }
}

/* ---- and into shared memory ------------------------------------------------------------------------------------ */

static void store_scales(product *g)
{
    ptx_fn *f = g->f;
    ptx_val halves[2], high[2], low[2];
    halves[0] = narrow_pair(f, g->type, g->sm, g->scales[0], g->scales[1]);
    widen_pair(f, g->type, halves[0], high);
    for (uint32_t i = 0; i < 2; i++)
        low[i] = ptx_sub(f, g->scales[i], high[i]);
    halves[1] = narrow_pair(f, g->type, g->sm, low[0], low[1]);
    ptx_val to = ptx_add(f, g->scales_to, g->buffer);
    ptx_store_vec(f, 2, shared_at(g, PTX_U32, to, 0), halves, PTX_PLAIN);
}

static void store_rows(product *g)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->a_to, g->buffer);
    if (g->vector == 8) {
        ptx_store_vec(f, 4, shared_at(g, PTX_U32, to, 0), g->a, PTX_PLAIN);
        return;
    }
    for (uint32_t i = 0; i < g->groups; i++)
        ptx_store(f, shared_at(g, PTX_U16, to, i * 8 * ROW_BYTES), g->a[i]);
}

static void store_chunk(product *g)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->codes_to, g->buffer);
    for (uint32_t i = 0; i < CODES_LOADS; i++)
        ptx_store_vec(f, 4, shared_at(g, PTX_U32, to, i * CODES_BYTES / CODES_LOADS), g->codes[i], PTX_PLAIN);
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(THREADS / 2))) {
        store_scales(g);
    }
    uint32_t threads_of_a = g->vector == 8 ? g->groups * 32 : THREADS;
    if (threads_of_a == THREADS) {
        store_rows(g);
        return;
    }
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(threads_of_a))) {
        store_rows(g);
    }
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

/* Of two columns' words those of the even k, and of the odd ones: the first column in the bytes' low halves. */
static void merge_columns(const product *g, ptx_val first, ptx_val second, ptx_val merged[2])
{
    ptx_fn *f = g->f;
    enum { FIRST_OR_SECOND = 0xCA /* c ? b : a, of (c, b, a) */ };
    ptx_val low_halves = ptx_u32(0x0f0f0f0f);
    ptx_val up = ptx_shl(f, second, ptx_u32(4)), down = ptx_shr(f, first, ptx_u32(4));
    merged[g->is_high_first ? 1 : 0] = ptx_lop3(f, low_halves, first, up, FIRST_OR_SECOND);
    merged[g->is_high_first ? 0 : 1] = ptx_lop3(f, low_halves, down, second, FIRST_OR_SECOND);
}

/* Two weights, times their scales: high and low. */
static ptx_val decode(const product *g, ptx_val word, uint32_t byte, const ptx_val scale[2])
{
    ptx_fn *f = g->f;
    ptx_val codes[2];
    nf4_pairs_decode(&g->pairs, word, byte, codes);
    ptx_val entry = ptx_as(f, g->pair, codes[0]);
    ptx_val rest =
        g->type == PTX_F16 ? ptx_mul(f, entry, scale[1]) : ptx_fma(f, entry, scale[1], g->minus_zero);
    return ptx_fma(f, entry, scale[0], rest);
}

static void multiply_fragment(product *g, uint32_t fragment, const ptx_val weights[4], ptx_val rows[][2])
{
    ptx_fn *f = g->f;
    for (uint32_t group = 0; group < g->groups; group++) {
        ptx_val *sum = g->sum[fragment][group];
        if (g->sm >= 80) {
            ptx_mma_to(f, g->type == PTX_F16 ? PTX_MMA_M16N8K16_F16_F32 : PTX_MMA_M16N8K16_BF16_F32, sum,
                       weights, rows[group]);
        } else {
            ptx_mma_to(f, PTX_MMA_M16N8K8_F16_F32, sum, weights, rows[group]);
            ptx_mma_to(f, PTX_MMA_M16N8K8_F16_F32, sum, weights + 2, rows[group] + 1);
        }
    }
}

static void load_fragments_of_rows(product *g, ptx_val from, uint32_t step, ptx_val rows[][2])
{
    ptx_fn *f = g->f;
    for (uint32_t group = 0; group < g->groups; group++) {
        ptx_val words[2];
        ptx_load_vec(f, 2, words, shared_at(g, PTX_U32, from, group * 8 * ROW_BYTES + step * 2 * STEP),
                     PTX_PLAIN);
        for (uint32_t i = 0; i < 2; i++)
            rows[group][i] = ptx_as(f, g->pair, words[i]);
    }
}

static void multiply_step(product *g, const ptx_val from[3], uint32_t step)
{
    ptx_fn *f = g->f;
    ptx_val words[4], merged[2][2], halves[4], scales[2][2], rows[MOST_GROUPS][2];
    for (uint32_t c = 0; c < 4; c++)
        words[c] = ptx_load(f, shared_at(g, PTX_U32, from[0], (step * STEP + c) * COLUMN_BYTES));
    ptx_load_vec(f, 4, halves, shared_at(g, PTX_U32, from[1], step * STEP / 2 * 8), PTX_PLAIN);
    for (uint32_t pair = 0; pair < 2; pair++) {
        merge_columns(g, words[2 * pair], words[2 * pair + 1], merged[pair]);
        for (uint32_t i = 0; i < 2; i++)
            scales[pair][i] = ptx_as(f, g->pair, halves[2 * pair + i]);
    }
    load_fragments_of_rows(g, from[2], step, rows);
    for (uint32_t fragment = 0; fragment < FRAGMENTS; fragment++) {
        ptx_val weights[4];
        for (uint32_t i = 0; i < 4; i++)
            weights[i] = decode(g, merged[i / 2][i % 2], fragment, scales[i / 2]);
        multiply_fragment(g, fragment, weights, rows);
    }
}

static void multiply_chunk(product *g)
{
    ptx_fn *f = g->f;
    ptx_val from[3];
    from[0] = ptx_add(f, g->codes_from, g->buffer);
    from[1] = ptx_add(f, g->scales_from, g->buffer);
    from[2] = ptx_add(f, g->a_from, g->buffer);
    for (uint32_t step = 0; step < STEPS; step++)
        multiply_step(g, from, step);
}

static void declare(product *g)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < CODES_LOADS; i++)
        for (uint32_t e = 0; e < 4; e++)
            g->codes[i][e] = ptx_var(f, ptx_u32(0));
    for (uint32_t i = 0; i < 2; i++)
        g->scales[i] = ptx_var(f, ptx_f32(0));
    for (uint32_t i = 0; i < loads_of_a(g); i++)
        g->a[i] = ptx_var(f, ptx_u32(0));
    for (uint32_t i = 0; i < FRAGMENTS; i++)
        for (uint32_t group = 0; group < g->groups; group++)
            for (uint32_t e = 0; e < 4; e++)
                g->sum[i][group][e] = ptx_var(f, ptx_f32(0));
    g->buffer = ptx_var(f, ptx_u32(0));
}

static void multiply_columns(product *g)
{
    ptx_fn *f = g->f;
    const uint32_t turn = g->splits * CHUNK;
    declare(g);
    ptx_val start = g->splits == 1 ? ptx_u32(0) : ptx_mul(f, g->part, ptx_u32(CHUNK));
    PTX_IF (f, ptx_lt(f, start, g->n)) {
        load_chunk(g, start);
    }
    PTX_FOR (f, chunk, start, g->n, ptx_u32(turn)) {
        store_chunk(g);
        ptx_barrier(f);
        ptx_val next = ptx_add(f, chunk, ptx_u32(turn));
        PTX_IF (f, ptx_lt(f, next, g->n)) {
            load_chunk(g, next);
        }
        multiply_chunk(g);
        ptx_set(f, g->buffer, ptx_sub(f, ptx_u32(stage_bytes(g)), g->buffer));
    }
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* A lane has eight k in a row, of two rows of each eight. */
static void store_tile(product *g)
{
    ptx_fn *f = g->f;
    ptx_val mine = ptx_mad(f, g->warp, ptx_u32(WARP_K), g->first_k);
    ptx_val k = ptx_mad(f, g->quad, ptx_u32(LANE_K), mine);
    ptx_val has_k = ptx_lt(f, k, g->k);
    ptx_val first = ptx_mad(f, g->member, ptx_u32(2), g->first_row);
    for (uint32_t group = 0; group < g->groups; group++) {
        for (uint32_t odd = 0; odd < 2; odd++) {
            ptx_val words[FRAGMENTS];
            ptx_val row = ptx_add(f, first, ptx_u32(8 * group + odd));
            ptx_val line = ptx_at(f, g->out, ptx_mul_wide(f, row, g->k));
            ptx_val at = ptx_cast_ptr(f, ptx_at(f, line, k), PTX_U32);
            for (uint32_t i = 0; i < FRAGMENTS; i++)
                words[i] = narrow_pair(f, g->type, g->sm, g->sum[i][group][odd], g->sum[i][group][2 + odd]);
            ptx_val has_row = ptx_lt(f, row, g->m);
            PTX_WHEN (f, ptx_and(f, has_k, has_row)) {
                ptx_store_vec(f, 4, at, words, PTX_PLAIN);
            }
        }
    }
}

static void finish(product *g)
{
    ptx_fn *f = g->f;
    if (g->splits == 1) {
        store_tile(g);
        return;
    }
    ptx_val column = ptx_ctaid_x(f), row = ptx_ctaid_y(f);
    ptx_val tile = ptx_mad(f, row, ptx_nctaid_x(f), column);
    split s = {.f = f,
               .type = PTX_F32,
               .parts = g->splits,
               .threads = THREADS,
               .block_threads = THREADS,
               .workspace = g->workspace,
               .arrivals = g->arrivals,
               .tile = tile,
               .part = g->part,
               .tid = g->tid};
    ptx_val sums[FRAGMENTS * MOST_GROUPS * 4];
    uint32_t count = 0;
    for (uint32_t i = 0; i < FRAGMENTS; i++)
        for (uint32_t group = 0; group < g->groups; group++)
            for (uint32_t e = 0; e < 4; e++)
                sums[count++] = g->sum[i][group][e];
    PTX_IF (f, split_add(&s, sums, count)) {
        store_tile(g);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

static product open_product(ptx_fn *f, const kiln_variant *v)
{
    product g = {.f = f, .type = kiln_type(v, "a"), .sm = kiln_target_sm(v)};
    g.pair = g.type == PTX_F16 ? PTX_F16X2 : PTX_BF16X2;
    g.groups = kiln_int(v, "tile_m") / 8;
    g.vector = kiln_int(v, "vector");
    g.splits = kiln_int(v, "splits");
    g.is_high_first = kiln_is(v, "nibbles", "high");
    g.pairs = (nf4_pairs){.f = f, .type = g.type, .in_window = kiln_is(v, "table", "window")};

    g.in = ptx_param_ptr(f, g.type, "in");
    g.packed = ptx_param_ptr(f, PTX_U8, "packed");
    g.scale = ptx_param_ptr(f, PTX_F32, "scale");
    g.out = ptx_param_ptr(f, g.type, "out");
    if (g.splits > 1) {
        g.workspace = ptx_param_ptr(f, PTX_F32, "workspace");
        g.arrivals = ptx_param_ptr(f, PTX_U32, "arrivals");
    }
    g.m = ptx_param(f, PTX_U32, "m");
    g.n = ptx_param(f, PTX_U32, "n");
    g.k = ptx_param(f, PTX_U32, "k");
    ptx_param(f, PTX_U64, "workspace_size"); /* for dispatch */
    return g;
}

/* The table, then two stages. */
static void place_shared(product *g)
{
    ptx_fn *f = g->f;
    ptx_val start = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    uint32_t table_bytes = NF4_PAIRS_BYTES;
    g->pairs.start = start;
    if (g->pairs.in_window) {
        const uint32_t window = NF4_PAIRS_WINDOW_BYTES;
        ptx_val past = ptx_add(f, start, ptx_u32(window - 1 - RESERVED_BYTES));
        g->pairs.start = ptx_and(f, past, ptx_u32(0u - window));
        g->pairs.skipped = RESERVED_BYTES;
        table_bytes = window + RESERVED_BYTES;
    }
    g->codes_to = ptx_add(f, start, ptx_u32(table_bytes));
    g->scales_to = ptx_add(f, g->codes_to, ptx_u32(CODES_BYTES));
    g->a_to = ptx_add(f, g->scales_to, ptx_u32(SCALES_BYTES));
    g->codes_from = g->codes_to;
    g->scales_from = g->scales_to;
    g->a_from = g->a_to;
}

static void place(product *g)
{
    ptx_fn *f = g->f;
    g->tid = ptx_tid_x(f);
    g->lane = ptx_laneid(f);
    g->warp = ptx_warpid_x(f);
    g->quad = ptx_shr(f, g->lane, ptx_u32(2));
    g->member = ptx_and(f, g->lane, ptx_u32(3));
    g->first_k = ptx_mul(f, ptx_ctaid_x(f), ptx_u32(TILE_K));
    g->first_row = ptx_mul(f, ptx_ctaid_y(f), ptx_u32(8 * g->groups));
    if (g->splits > 1)
        g->part = ptx_ctaid_z(f);
    if (g->type == PTX_BF16)
        g->minus_zero = ptx_var(f, ptx_bits(PTX_BF16X2, 0x80008000));
    place_shared(g);
}

void nf4_gemm_transposed_emit_mma(ptx_fn *f, const kiln_variant *v)
{
    product g = open_product(f, v);
    ptx_min_blocks(f, g.groups <= 4 ? 2 : 1);
    place(&g);
    nf4_pairs_fill(&g.pairs, g.tid, THREADS, g.lane);
    place_codes(&g);
    place_scales(&g);
    place_rows(&g);
    multiply_columns(&g); /* its first barrier is the table's too */
    finish(&g);
}
