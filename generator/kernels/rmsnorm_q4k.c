/* y = W * h, with W in GGUF's Q4_K and h = x * rsqrt(mean(x^2) + eps) * gamma, for 1 to 8 vectors x: one launch.
 *
 * GEOMETRY. Thread blocks stay, and go over groups of 16 rows. Each of their four warps has four rows, whose super-blocks
 * it stages in shared memory by tiles of 8, 1152 bytes of each row, with 16-byte copies. When a row's first super-block
 * begins in the middle of a sector, its tiles begin one super-block earlier, so that all others begin at a sector; every
 * second row is like that where rows have an odd number of super-blocks, so the four rows are two apart and alike. Lane l
 * takes word l of the codes of each super-block, 4 elements in each of two neighbouring sub-blocks, and the same elements
 * of x, which are made into h once for the four rows.
 *
 * ARITHMETIC of a sub-block's four elements. exact: sum of code * h times d * scale, less sum of h times dmin * minimum,
 * in f32. q8: the same sums of 8-bit integers, with h in blocks of 32 rounded to max|h| / 127, as 8 lanes share.
 */
#include "kernels.h"
#include "narrow.h"
#include "q4k.h"

enum {
    WARPS = 4, /* per thread block */
    THREADS = 32 * WARPS,
    ROWS = 4, /* per warp */
    MOST_BATCH = 8,
    PIECE_BYTES = 16,
    BLOCK_PIECES = Q4K_BLOCK_BYTES / PIECE_BYTES,
    TILE_BYTES = Q4K_TILE_BLOCKS * Q4K_BLOCK_BYTES,
    COPIES = (TILE_BYTES / PIECE_BYTES + 31) / 32,
    LAST_COPY_LANES = TILE_BYTES / PIECE_BYTES % 32
};

/* A variant while it is emitted. */
typedef struct gemv {
    ptx_fn *f;
    ptx_type x_type, y_type;
    uint32_t sm, batch;
    bool has_norm, is_q8;
    ptx_val x[MOST_BATCH], gamma, w, y, n, k, eps;
    ptx_val lane, warp;
    ptx_val blocks;             /* super-blocks of a row, U32 */
    ptx_val factor[MOST_BATCH]; /* of x, with the norm */
    ptx_val staged;             /* this warp's tiles, row by row */
    ptx_val row[ROWS], row_exists[ROWS], row_at[ROWS];
    ptx_val early; /* 1 when the rows' tiles begin one super-block early */
    q4k_numbers numbers[ROWS];
    ptx_val sum[ROWS][MOST_BATCH];
} gemv;

/* Four elements of h, as the products need them. */
typedef struct four {
    ptx_val h[4];         /* exact */
    ptx_val codes, scale; /* q8: a byte each; what they are multiples of */
    ptx_val sum;          /* of the four */
} four;

/* ---- x and the norm ----------------------------------------------------------------------------------------------- */

static void load_four(gemv *g, ptx_val at, ptx_val x[4])
{
    ptx_fn *f = g->f;
    ptx_val words[2];
    if (g->x_type == PTX_F32) {
        ptx_load_vec(f, 4, x, at, PTX_NC);
        return;
    }
    ptx_load_vec(f, 2, words, ptx_cast_ptr(f, at, PTX_U32), PTX_NC);
    widen_pair(f, g->x_type, words[0], &x[0]);
    widen_pair(f, g->x_type, words[1], &x[2]);
}

/* This warp's share of the sum of squares, in each of its lanes. */
static ptx_val sum_squares(gemv *g, uint32_t vector)
{
    ptx_fn *f = g->f;
    ptx_val thread = ptx_tid_x(f);
    ptx_val start = ptx_shl(f, thread, ptx_u32(2));
    ptx_val sum = ptx_var(f, ptx_f32(0));
    PTX_FOR (f, i, start, g->k, ptx_u32(4 * THREADS)) {
        ptx_val x[4];
        load_four(g, ptx_at(f, g->x[vector], i), x);
        for (uint32_t e = 0; e < 4; e++)
            ptx_fma_to(f, sum, x[e], x[e]);
    }
    return ptx_reduce_lanes(f, PTX_OP_ADD, 32, sum);
}

static void find_factors(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val partial = ptx_shared(f, PTX_F32, MOST_BATCH * WARPS, 16);
    ptx_val mine = ptx_at(f, partial, g->warp);
    ptx_val is_first = ptx_eq(f, g->lane, ptx_u32(0));
    for (uint32_t b = 0; b < g->batch; b++) {
        ptx_val sum = sum_squares(g, b);
        PTX_WHEN (f, is_first) {
            ptx_store(f, ptx_at_const(f, mine, WARPS * b), sum);
        }
    }
    ptx_barrier(f);
    ptx_val elements = ptx_cvt(f, PTX_F32, g->k);
    for (uint32_t b = 0; b < g->batch; b++) {
        ptx_val part[WARPS];
        ptx_load_vec(f, WARPS, part, ptx_at_const(f, partial, WARPS * b), PTX_PLAIN);
        ptx_val sum = ptx_var(f, part[0]);
        for (uint32_t i = 1; i < WARPS; i++)
            ptx_add_to(f, sum, part[i]);
        ptx_val mean = ptx_div(f, sum, elements);
        ptx_val raised = ptx_add(f, mean, g->eps);
        g->factor[b] = ptx_rsqrt_approx(f, raised);
    }
}

/* ---- h ------------------------------------------------------------------------------------------------------------ */

static void sum_four(ptx_fn *f, four *v)
{
    ptx_val low = ptx_add(f, v->h[0], v->h[1]);
    ptx_val high = ptx_add(f, v->h[2], v->h[3]);
    v->sum = ptx_add(f, low, high);
}

/* A quotient that passes 127, which only a scale that is denormal or 0 can make, is 127; 0 / 0 is a NaN, whose code is 0. */
static void round_four(ptx_fn *f, four *v)
{
    ptx_val most = ptx_var(f, ptx_abs(f, v->h[0])), code[4];
    for (uint32_t i = 1; i < 4; i++) {
        ptx_val size = ptx_abs(f, v->h[i]);
        ptx_max_to(f, most, size);
    }
    ptx_val of_block = ptx_reduce_lanes(f, PTX_OP_MAX, 8, most);
    v->scale = ptx_div(f, of_block, ptx_f32(127));
    for (uint32_t i = 0; i < 4; i++) {
        ptx_val quotient = ptx_div(f, v->h[i], v->scale);
        ptx_val whole = ptx_cvt_rni(f, PTX_S32, quotient);
        ptx_val capped = ptx_min(f, whole, ptx_s32(127));
        code[i] = ptx_as(f, PTX_U32, ptx_max(f, capped, ptx_s32(-127)));
    }
    ptx_val low = ptx_prmt(f, code[0], code[1], ptx_u32(0x0040));
    ptx_val high = ptx_prmt(f, code[2], code[3], ptx_u32(0x0040));
    v->codes = ptx_prmt(f, low, high, ptx_u32(0x5410));
    ptx_val ones = ptx_as(f, PTX_S32, ptx_u32(0x01010101));
    ptx_val total = ptx_dp4a_ss(f, ptx_as(f, PTX_S32, v->codes), ones, ptx_s32(0));
    ptx_val sum = ptx_cvt(f, PTX_F32, total);
    v->sum = ptx_mul(f, v->scale, sum);
}

static void make_h(gemv *g, uint32_t vector, ptx_val element, const ptx_val gamma[4], four *v)
{
    ptx_fn *f = g->f;
    load_four(g, ptx_at(f, g->x[vector], element), v->h);
    for (uint32_t i = 0; i < 4 && g->has_norm; i++) {
        ptx_val scaled = ptx_mul(f, v->h[i], g->factor[vector]);
        v->h[i] = ptx_mul(f, scaled, gamma[i]);
    }
    if (g->is_q8)
        round_four(f, v);
    else
        sum_four(f, v);
}

/* ---- tiles of W --------------------------------------------------------------------------------------------------- */

/* `first`: the tile's first super-block, counted from where the rows' tiles begin. Pieces before the row and behind it
 * have numbers beyond its own, and are left as they are. */
static void stage_tiles(gemv *g, ptx_val first)
{
    ptx_fn *f = g->f;
    ptx_val in_row = ptx_sub(f, first, g->early);
    ptx_val pieces = ptx_mul(f, g->blocks, ptx_u32(BLOCK_PIECES));
    ptx_val piece = ptx_mad(f, in_row, ptx_u32(BLOCK_PIECES), g->lane);
    ptx_val word = ptx_as(f, PTX_S32, ptx_shl(f, piece, ptx_u32(2)));
    ptx_val to = ptx_at(f, g->staged, ptx_shl(f, g->lane, ptx_u32(2)));
    ptx_val from[ROWS];
    for (uint32_t r = 0; r < ROWS; r++)
        from[r] = ptx_at(f, g->row_at[r], word);
    for (uint32_t i = 0; i < COPIES; i++) {
        ptx_val here = i == 0 ? piece : ptx_add(f, piece, ptx_u32(32 * i));
        ptx_val exists = ptx_lt(f, here, pieces);
        if (i == COPIES - 1) {
            ptx_val has_one = ptx_lt(f, g->lane, ptx_u32(LAST_COPY_LANES));
            exists = ptx_and(f, exists, has_one);
        }
        for (uint32_t r = 0; r < ROWS; r++) {
            ptx_val copies = ptx_and(f, exists, g->row_exists[r]);
            PTX_WHEN (f, copies) {
                ptx_val v[4];
                ptx_load_vec(f, 4, v, ptx_at_bytes(f, from[r], 512 * i), PTX_NC | PTX_NO_ALLOCATE);
                ptx_store_vec(f, 4, ptx_at_bytes(f, to, TILE_BYTES * r + 512 * i), v, PTX_PLAIN);
            }
        }
    }
    ptx_warp_barrier(f);
}

static void decode_headers(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val block = ptx_shr(f, g->lane, ptx_u32(2));
    ptx_val at = ptx_at(f, g->staged, ptx_mul(f, block, ptx_u32(Q4K_BLOCK_WORDS)));
    for (uint32_t r = 0; r < ROWS; r++) {
        ptx_val word[Q4K_HEADER_WORDS];
        ptx_load_vec(f, Q4K_HEADER_WORDS, word, ptx_at_bytes(f, at, TILE_BYTES * r), PTX_PLAIN);
        g->numbers[r] = q4k_decode_header(f, g->lane, word);
    }
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

static void multiply_exact(gemv *g, ptx_val nibbles, ptx_val scale, ptx_val minimum, const four v[],
                           ptx_val sum[])
{
    ptx_fn *f = g->f;
    ptx_val code[Q4K_CODES];
    for (uint32_t i = 0; i < Q4K_CODES; i++)
        code[i] = q4k_code(f, nibbles, i);
    for (uint32_t b = 0; b < g->batch; b++) {
        ptx_val dot = ptx_var(f, ptx_mul(f, code[0], v[b].h[0]));
        for (uint32_t i = 1; i < Q4K_CODES; i++)
            ptx_fma_to(f, dot, code[i], v[b].h[i]);
        ptx_fma_to(f, sum[b], scale, dot);
        ptx_fma_to(f, sum[b], minimum, v[b].sum);
    }
}

static void multiply_q8(gemv *g, ptx_val nibbles, ptx_val scale, ptx_val minimum, const four v[],
                        ptx_val sum[])
{
    ptx_fn *f = g->f;
    for (uint32_t b = 0; b < g->batch; b++) {
        ptx_val total = ptx_dp4a_us(f, nibbles, ptx_as(f, PTX_S32, v[b].codes), ptx_s32(0));
        ptx_val whole = ptx_cvt(f, PTX_F32, total);
        ptx_val dot = ptx_mul(f, v[b].scale, whole);
        ptx_fma_to(f, sum[b], scale, dot);
        ptx_fma_to(f, sum[b], minimum, v[b].sum);
    }
}

/* Super-block s of the tile, which is super-block `block` of the rows. */
static void multiply_block(gemv *g, ptx_val s, ptx_val block)
{
    ptx_fn *f = g->f;
    ptx_val pair = ptx_shr(f, g->lane, ptx_u32(3));
    ptx_val from = ptx_mad(f, s, ptx_u32(4), pair);
    ptx_val word = ptx_mad(f, s, ptx_u32(Q4K_BLOCK_WORDS), g->lane);
    ptx_val codes_at = ptx_at_const(f, ptx_at(f, g->staged, word), Q4K_HEADER_WORDS);
    ptx_val in_pair = ptx_and(f, g->lane, ptx_u32(7));
    ptx_val of_pair = ptx_mad(f, pair, ptx_u32(64), ptx_shl(f, in_pair, ptx_u32(2)));
    ptx_val element = ptx_mad(f, block, ptx_u32(Q4K_BLOCK_ELEMENTS), of_pair);
    ptx_val codes[ROWS];
    for (uint32_t r = 0; r < ROWS; r++)
        codes[r] = ptx_load(f, ptx_at_bytes(f, codes_at, TILE_BYTES * r));
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val e = half == 0 ? element : ptx_add(f, element, ptx_u32(32));
        ptx_val gamma[4];
        four v[MOST_BATCH];
        if (g->has_norm)
            ptx_load_vec(f, 4, gamma, ptx_at(f, g->gamma, e), PTX_NC);
        for (uint32_t b = 0; b < g->batch; b++)
            make_h(g, b, e, gamma, &v[b]);
        for (uint32_t r = 0; r < ROWS; r++) {
            ptx_val scale = ptx_shfl_idx(f, g->numbers[r].scale[half], from);
            ptx_val minimum = ptx_shfl_idx(f, g->numbers[r].minimum[half], from);
            ptx_val nibbles = q4k_nibbles(f, codes[r], half);
            (g->is_q8 ? multiply_q8 : multiply_exact)(g, nibbles, scale, minimum, v, g->sum[r]);
        }
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static void begin_rows(gemv *g, ptx_val first)
{
    ptx_fn *f = g->f;
    ptx_val of_two = ptx_and(f, g->warp, ptx_u32(1));
    ptx_val two = ptx_shr(f, g->warp, ptx_u32(1));
    ptx_val place = ptx_mad(f, two, ptx_u32(2 * ROWS), of_two);
    g->row[0] = ptx_add(f, first, place);
    for (uint32_t r = 0; r < ROWS; r++) {
        if (r > 0)
            g->row[r] = ptx_add(f, g->row[0], ptx_u32(2 * r));
        g->row_exists[r] = ptx_lt(f, g->row[r], g->n);
        ptx_val block = ptx_mul_wide(f, g->row[r], g->blocks);
        ptx_val byte = ptx_mul(f, block, ptx_u64(Q4K_BLOCK_BYTES));
        g->row_at[r] = ptx_cast_ptr(f, ptx_at(f, g->w, byte), PTX_U32);
        for (uint32_t b = 0; b < g->batch; b++)
            g->sum[r][b] = ptx_var(f, ptx_f32(0));
    }
    ptx_val both = ptx_and(f, g->row[0], g->blocks);
    g->early = ptx_and(f, both, ptx_u32(1));
}

static void store_sum(gemv *g, uint32_t r, uint32_t b)
{
    ptx_fn *f = g->f;
    ptx_val sum = ptx_reduce_lanes(f, PTX_OP_ADD, 32, g->sum[r][b]);
    ptx_val at = ptx_at(f, g->y, g->row[r]);
    if (b > 0) {
        ptx_val skipped = ptx_mul_wide(f, g->n, ptx_u32(b));
        at = ptx_at(f, at, skipped);
    }
    if (g->y_type == PTX_BF16 && g->sm < 80) {
        sum = ptx_shr(f, narrow_to_bf16(f, sum), ptx_u32(16));
        at = ptx_cast_ptr(f, at, PTX_U16);
    } else if (g->y_type != PTX_F32) {
        sum = ptx_cvt(f, g->y_type, sum);
    }
    ptx_val is_first = ptx_eq(f, g->lane, ptx_u32(0));
    ptx_val stores = ptx_and(f, is_first, g->row_exists[r]);
    PTX_WHEN (f, stores) {
        ptx_store(f, at, sum);
    }
}

static void multiply_rows(gemv *g, ptx_val first_row)
{
    ptx_fn *f = g->f;
    begin_rows(g, first_row);
    ptx_val end = ptx_add(f, g->blocks, g->early);
    PTX_FOR (f, first, ptx_u32(0), end, ptx_u32(Q4K_TILE_BLOCKS)) {
        stage_tiles(g, first);
        decode_headers(g);
        ptx_val is_first = ptx_eq(f, first, ptx_u32(0));
        ptx_val low = ptx_select(f, is_first, g->early, ptx_u32(0));
        ptx_val left = ptx_sub(f, end, first);
        ptx_val high = ptx_min(f, left, ptx_u32(Q4K_TILE_BLOCKS));
        ptx_val before = ptx_sub(f, first, g->early);
        PTX_FOR (f, s, low, high, ptx_u32(1)) {
            ptx_val block = ptx_add(f, before, s);
            multiply_block(g, s, block);
        }
        ptx_warp_barrier(f);
    }
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t b = 0; b < g->batch; b++)
            store_sum(g, r, b);
}

/* What no tile fills is read, and not used. */
static void clear_staged(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val zero[4], at = ptx_at(f, g->staged, ptx_shl(f, g->lane, ptx_u32(2)));
    for (uint32_t i = 0; i < 4; i++)
        zero[i] = ptx_u32(0);
    for (uint32_t i = 0; i < ROWS * TILE_BYTES / 512; i++)
        ptx_store_vec(f, 4, ptx_at_bytes(f, at, 512 * i), zero, PTX_PLAIN);
    ptx_warp_barrier(f);
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    gemv g = {.f = f,
              .x_type = kiln_type(v, "x"),
              .y_type = kiln_type(v, "y"),
              .sm = kiln_target_sm(v),
              .batch = kiln_int(v, "batch"),
              .has_norm = kiln_is(v, "norm", "rms"),
              .is_q8 = kiln_is(v, "activation", "q8")};
    ptx_min_blocks(f, g.batch == 1   ? 4
                      : g.batch <= 4 ? 3
                                     : 2); /* else ptxas spills a little to reach one more */
    g.x[0] = ptx_param_ptr(f, g.x_type, "in");
    if (g.has_norm)
        g.gamma = ptx_param_ptr(f, PTX_F32, "gamma");
    g.w = ptx_param_ptr(f, PTX_U8, "w");
    g.y = ptx_param_ptr(f, g.y_type, "out");
    g.n = ptx_param(f, PTX_U32, "n");
    g.k = ptx_param(f, PTX_U32, "k");
    if (g.has_norm)
        g.eps = ptx_param(f, PTX_F32, "eps");
    for (uint32_t b = 1; b < g.batch; b++)
        g.x[b] = ptx_at(f, g.x[b - 1], g.k);
    g.lane = ptx_laneid(f);
    g.warp = ptx_warpid_x(f);
    g.blocks = ptx_shr(f, g.k, ptx_u32(8));
    ptx_val staged = ptx_shared(f, PTX_U32, WARPS * ROWS * TILE_BYTES / 4, 16);
    g.staged = ptx_at(f, staged, ptx_mul(f, g.warp, ptx_u32(ROWS * TILE_BYTES / 4)));
    clear_staged(&g);
    if (g.has_norm)
        find_factors(&g);
    ptx_val thread_block = ptx_ctaid_x(f), thread_blocks = ptx_nctaid_x(f);
    ptx_val first = ptx_mul(f, thread_block, ptx_u32(WARPS * ROWS));
    ptx_val step = ptx_mul(f, thread_blocks, ptx_u32(WARPS * ROWS));
    PTX_FOR (f, row, first, g.n, step) {
        multiply_rows(&g, row);
    }
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

#define PARAM(param, values, first, text)                                                                    \
    {                                                                                                        \
        .name = param, .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = values,                 \
        .default_value = first, .summary = text                                                              \
    }

static const kiln_param params[] = {
    PARAM("norm", "rms none", "rms", "rms: h = x * rsqrt(mean(x^2) + eps) * gamma; none: h = x"),
    PARAM("x", "f32 f16 bf16", "f32", "element type of x; gamma is f32"),
    PARAM("activation", "exact q8", "exact",
          "exact: products in f32; q8: h in blocks of 32, rounded to whole multiples of max|h| / 127"),
    {.name = "batch",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_CONTRACT,
     .min = 1,
     .max = MOST_BATCH,
     .step = 1,
     .default_value = "1",
     .summary = "vectors"},
    PARAM("y", "f32 f16 bf16", "f32", "element type of y"),
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$x", "batch, k", 16, NULL, "x: the vectors, one after the other"},
    {"gamma", KILN_ARG_IN, "f32", "k", 16, "norm == rms", "factors of the elements"},
    {"w", KILN_ARG_IN, "u8", "n, k / 256 * 144", 16, NULL,
     "rows of Q4_K super-blocks, as a GGUF file has them"},
    {"out", KILN_ARG_OUT, "$y", "batch, n", 4, NULL, "y: the products, vector by vector"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of w"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row"},
    {"eps", KILN_ARG_VALUE, "f32", NULL, 0, "norm == rms", "added to the mean of the squares"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"k % 256 == 0", "k must be a multiple of 256"},
    {"k >= 256 && k <= 1048576", "k must be from 256 to 2^20"},
    {"n <= 16777216", "n must be at most 2^24"},
    {NULL, NULL},
};

/* Thread instructions, but for threads without a square where k is 256. A thread block goes over some of the groups of 16
 * rows; of its warps, the two with odd rows may begin a super-block early. Copies and stores are executed by the lanes that
 * have something to do: two per 16 bytes of w, and one per result. */
#define ROW_GROUPS "ceil_div(n, 16)"
#define GRID       "min(" ROW_GROUPS ", 4 * multiprocessors)"
#define TILES      "(64 * (ceil_div(k, 2048) + ceil_div(k / 256 + k / 256 % 2, 8)))"
#define OF_THREAD_BLOCK                                                                                      \
    "select(norm == rms, 128 * (36 + 22 * batch) + 4 * batch + batch * (k / 4) * "                           \
    "select(x == f32, 9, select(x == f16, 15, 13)), 128 * (29 + batch))"
#define OF_SUM "(68 + select(y == f32, 0, select(y == bf16 && sm < 80, 24, 4)))"
#define OF_BLOCK                                                                                             \
    "select(activation == exact, 109 + 58 * batch, 45 + 116 * batch) + "                                     \
    "select(norm == rms, 4 + 16 * batch, 0) + batch * select(x == f32, 0, select(x == f16, 12, 8))"

const kiln_family rmsnorm_q4k_gemv_family = {
    .name = "rmsnorm_q4k_gemv",
    .summary = "normalise vectors, and multiply them by GGUF Q4_K weights",
    .source = "RMSNorm (arXiv:1910.07467); GGUF's Q4_K, as the Python package gguf decodes it",
    .nonfinite = "as the arithmetic goes; q8: a NaN gets code 0 and has no part in its block's scale",
    .params = params,
    .args = args,
    .rules = rules,
    .empty = "n == 0",
    .block = {"128"},
    .grid = {GRID},
    .cost = {.bytes_read =
                 "n * (k / 256) * 144 + batch * k * select(x == f32, 4, 2) + select(norm == rms, 4 * k, 0)",
             .bytes_written = "batch * n * select(y == f32, 4, 2)",
             .thread_instructions =
                 GRID " * (" OF_THREAD_BLOCK ") + " ROW_GROUPS " * (128 * (18 + batch * " OF_SUM ") + " TILES
                      " * 187 + 128 * (k / 256) * (" OF_BLOCK ")) + n * (18 * (k / 256) + batch)",
             .elements = "n * k"},
    .min_sm = 75,
    .emit = emit,
};
