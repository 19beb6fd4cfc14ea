/* y = W * h, with W in GGUF's Q4_K and h = x * rsqrt(mean(x^2) + eps) * gamma, for 1 to 8 vectors x: one launch.
 *
 * GEOMETRY. Thread blocks are persistent: as many as fit the device at once, each with a stretch of rows. A thread block
 * makes h once, in shared memory (rmsnorm_q4k_h.c), while the first tiles of W are being copied (rmsnorm_q4k_tiles.c). Then
 * each of its eight warps goes over groups of 1, 2 or 4 rows, and multiplies (rmsnorm_q4k_products.c). Sums of up to 256
 * rows are gathered in shared memory, and stored together.
 *
 * CHUNKS. Where `chunk` is less than k, this repeats for each chunk of k, and shared memory accumulates the sums of 256
 * rows. Then every 256 rows make h again.
 */
#include "rmsnorm_q4k.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include <kiln/author/families.h>

/* ---- shared memory ------------------------------------------------------------------------------------------------ */

/* Bytes of a warp's stages. After those of all warps come the sums of a pass of rows, the warps' partials and each vector's
 * h. */
static uint32_t stages_bytes(uint32_t rows, uint32_t batch)
{
    return GEMV_STAGES * rows * gemv_tiles(rows, batch) * GEMV_TILE_BYTES;
}

/* Bytes of dynamic shared memory where h has so many elements. */
static uint32_t shared_bytes(const kiln_variant *v, uint32_t elements)
{
    const uint32_t rows = kiln_int(v, "rows"), batch = kiln_int(v, "batch");
    const uint32_t share = kiln_is(v, "activation", "q8") ? GEMV_Q8_SHARE_BYTES : GEMV_EXACT_SHARE_BYTES;
    const uint32_t of_share = GEMV_SHARES * GEMV_SHARE_ELEMENTS;
    const uint32_t h = (elements + of_share - 1) / of_share * GEMV_SHARES * share;
    return GEMV_WARPS * stages_bytes(rows, batch) + batch * (4 * GEMV_PASS_ROWS + 4 * GEMV_WARPS + 16 + h);
}

static void layout_shared(gemv *g)
{
    ptx_fn *f = g->f;
    uint32_t of_warp = stages_bytes(g->rows, g->batch);
    ptx_val start = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    g->stages = ptx_mad(f, g->warp, ptx_u32(of_warp), start);
    g->sums = ptx_add(f, start, ptx_u32(GEMV_WARPS * of_warp));
    g->partials = ptx_add(f, g->sums, ptx_u32(4 * GEMV_PASS_ROWS * g->batch));
    g->units = ptx_add(f, g->partials, ptx_u32(4 * GEMV_WARPS * g->batch));
    g->h = ptx_add(f, g->units, ptx_u32(16 * g->batch));
    ptx_val most = ptx_min(f, g->k, ptx_u32(g->chunk));
    ptx_val raised = ptx_add(f, most, ptx_u32(GEMV_SHARES * GEMV_SHARE_ELEMENTS - 1));
    ptx_val groups = ptx_div(f, raised, ptx_u32(GEMV_SHARES * GEMV_SHARE_ELEMENTS));
    g->h_bytes = ptx_mul(f, groups, ptx_u32(GEMV_SHARES * g->share_bytes));
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

/* Adds the sums to those of the chunks before, in shared memory. */
static void gather_sums(gemv *g, ptx_val group)
{
    ptx_fn *f = g->f;
    uint32_t lanes = 32 / g->rows;
    ptx_val row = gemv_row(g, group);
    if (g->rows > 1) {
        ptx_val of_lane = ptx_div(f, g->lane, ptx_u32(lanes));
        row = ptx_mad(f, of_lane, ptx_u32(2), row);
    }
    ptx_val to = ptx_mad(f, row, ptx_u32(4), g->sums);
    ptx_val in_row = ptx_and(f, g->lane, ptx_u32(lanes - 1));
    ptx_val stores = ptx_eq(f, in_row, ptx_u32(0));
    ptx_val is_later = ptx_gt(f, g->chunk_first, ptx_u32(0));
    ptx_val adds = ptx_and(f, is_later, stores);
    for (uint32_t b = 0; b < g->batch; b++) {
        ptx_val unit[2], sums[GEMV_MOST_ROWS], at = shared_at(f, PTX_F32, to, 4 * GEMV_PASS_ROWS * b);
        for (uint32_t r = 0; r < g->rows; r++)
            sums[r] = g->sum[r][b];
        lanes_join(f, PTX_OP_ADD, WARP_LANES, g->rows, g->lane, sums);
        ptx_val total = sums[0];
        if (!g->is_q8) {
            ptx_load_vec(f, 2, unit, shared_at(f, PTX_F32, g->units, 8 * b), PTX_PLAIN);
            total = ptx_mul(f, total, unit[0]);
            total = ptx_mul(f, total, unit[1]);
        }
        total = ptx_var(f, total);
        PTX_WHEN (f, adds) {
            ptx_val before = ptx_load(f, at);
            ptx_add_to(f, total, before);
        }
        PTX_WHEN (f, stores) {
            ptx_store(f, at, total);
        }
    }
}

static void store_rows(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val thread = ptx_tid_x(f);
    ptx_val in_bounds = ptx_lt(f, thread, g->rows_here);
    PTX_IF (f, in_bounds) {
        ptx_val from = ptx_mad(f, thread, ptx_u32(4), g->sums);
        ptx_val at = ptx_at(f, g->y, ptx_add(f, thread, g->first_row));
        for (uint32_t b = 0; b < g->batch; b++) {
            if (b > 0)
                at = ptx_at(f, at, g->n);
            ptx_val sum = ptx_load(f, shared_at(f, PTX_F32, from, 4 * GEMV_PASS_ROWS * b));
            if (g->has_rest)
                sum = ptx_mul(f, sum, gemv_load_rest(g, b));
            ptx_val to = at;
            narrow_value(f, g->y_type, PTX_F32, g->has_sm_80, &sum, &to);
            ptx_store(f, to, sum);
        }
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static void multiply_group(gemv *g, ptx_val group)
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t b = 0; b < g->batch; b++)
            g->sum[r][b] = ptx_var(f, ptx_f32(0));
    PTX_FOR (f, first, ptx_u32(0), g->chunk_blocks, ptx_u32(g->tiles * Q4K_TILE_BLOCKS)) {
        ptx_main_loop(f);
        gemv_next_tile(g);
        gemv_multiply_tile(g, first);
        gemv_end_tile(g);
    }
    gather_sums(g, group);
}

/* The groups of `rows` rows; see gemv_row. */
static ptx_val count_groups(gemv *g, ptx_val rows)
{
    ptx_fn *f = g->f;
    if (g->rows == 1)
        return rows;
    ptx_val pairs = ptx_div(f, rows, ptx_u32(2 * g->rows));
    ptx_val rest = ptx_and(f, rows, ptx_u32(2 * g->rows - 1));
    ptx_val last = ptx_min(f, rest, ptx_u32(2));
    return ptx_mad(f, pairs, ptx_u32(2), last);
}

/* The first chunk of the first pass needs h; where there are several chunks, each does. The first one needs the norm. */
static void prepare_h(gemv *g, ptx_val is_first_pass)
{
    ptx_fn *f = g->f;
    ptx_val is_first_chunk = ptx_eq(f, g->chunk_first, ptx_u32(0));
    ptx_val is_start = ptx_and(f, is_first_pass, is_first_chunk);
    ptx_val is_again = ptx_gt(f, g->k, ptx_u32(g->chunk));
    if (g->has_norm) {
        PTX_IF (f, is_start) {
            gemv_find_factors(g);
        }
    }
    ptx_val is_needed = ptx_or(f, is_start, is_again);
    PTX_IF (f, is_needed) {
        ptx_barrier(f); /* all have read the last h and partial sums */
        gemv_make_h(g);
        ptx_barrier(f);
    }
}

static void make_pass(gemv *g, ptx_val is_first_pass)
{
    ptx_fn *f = g->f;
    PTX_FOR (f, chunk_first, ptx_u32(0), g->k, ptx_u32(g->chunk)) {
        g->chunk_first = chunk_first;
        ptx_val left = ptx_sub(f, g->k, chunk_first);
        ptx_val elements = ptx_min(f, left, ptx_u32(g->chunk));
        g->chunk_blocks = ptx_shr(f, elements, ptx_u32(8));
        gemv_init_tiles(g);
        gemv_limit_lanes(g);
        prepare_h(g, is_first_pass);
        PTX_FOR (f, group, g->warp, g->groups, ptx_u32(GEMV_WARPS)) {
            multiply_group(g, group);
        }
    }
    ptx_barrier(f);
    store_rows(g);
    ptx_barrier(f);
}

static void make_rows(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val blocks = ptx_nctaid_x(f), block = ptx_ctaid_x(f);
    ptx_val raised = ptx_add(f, g->n, blocks);
    ptx_val most = ptx_div(f, ptx_sub(f, raised, ptx_u32(1)), blocks);
    ptx_val first = ptx_mul(f, block, most);
    ptx_val past = ptx_add(f, first, most);
    ptx_val end = ptx_min(f, past, g->n);
    for (uint32_t b = 0; b < g->batch && g->has_norm; b++)
        g->factor[b] = ptx_var(f, ptx_f32(0));
    PTX_FOR (f, row, first, end, ptx_u32(GEMV_PASS_ROWS)) {
        g->first_row = row;
        ptx_val left = ptx_sub(f, end, row);
        g->rows_here = ptx_min(f, left, ptx_u32(GEMV_PASS_ROWS));
        g->groups = count_groups(g, g->rows_here);
        ptx_val is_first_pass = ptx_eq(f, row, first);
        make_pass(g, is_first_pass);
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static gemv init_gemv(ptx_fn *f, const kiln_variant *v)
{
    gemv g = {.f = f,
              .x_type = kiln_type(v, "x"),
              .y_type = kiln_type(v, "y"),
              .has_sm_80 = kiln_has_sm(v, 80),
              .batch = kiln_int(v, "batch"),
              .rows = kiln_int(v, "rows"),
              .chunk = kiln_int(v, "chunk"),
              .has_norm = kiln_is(v, "norm", "rms"),
              .is_q8 = kiln_is(v, "activation", "q8")};
    g.has_rest = g.has_norm && g.x_type != PTX_F16;
    g.tiles = gemv_tiles(g.rows, g.batch);
    g.share_bytes = g.is_q8 ? GEMV_Q8_SHARE_BYTES : GEMV_EXACT_SHARE_BYTES;
    g.x[0] = ptx_param_ptr(f, g.x_type, "in");
    if (g.has_norm)
        g.gamma = ptx_param_ptr(f, PTX_F32, "gamma");
    g.w = ptx_param_ptr(f, PTX_U8, "w");
    g.y = ptx_param_ptr(f, g.y_type, "out");
    g.n = ptx_param(f, PTX_U32, "n");
    g.k = ptx_param(f, PTX_U32, "k");
    if (g.has_norm)
        g.eps = ptx_param(f, PTX_F32, "eps");
    return g;
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    gemv g = init_gemv(f, v);
    for (uint32_t b = 1; b < g.batch; b++)
        g.x[b] = ptx_at(f, g.x[b - 1], g.k);
    g.lane = ptx_laneid(f);
    g.warp = ptx_warpid_x(f);
    g.row_blocks = ptx_shr(f, g.k, ptx_u32(8));
    layout_shared(&g);
    if (g.rows > 1)
        gemv_clear_stages(&g);
    gemv_init_products(&g);
    make_rows(&g);
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

#define PARAM(param, values, own_numbers, first, text)                                                       \
    {                                                                                                        \
        .name = param, .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = values,                 \
        .numbers = own_numbers, .default_value = first, .summary = text                                      \
    }

static const kiln_param params[] = {
    PARAM("norm", "rms none", "1 2", "rms", "rms: h = x * rsqrt(mean(x^2) + eps) * gamma; none: h = x"),
    PARAM("x", "f32 f16 bf16", NULL, "f32", "element type of x; gamma is f32"),
    PARAM("activation", "exact q8", "1 2", "exact",
          "exact: products in f32; q8: h in blocks of 32, rounded to whole multiples of max|h| / 127"),
    {.name = "batch",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_CONTRACT,
     .min = 1,
     .max = GEMV_MOST_BATCH,
     .step = 1,
     .default_value = "1",
     .summary = "vectors"},
    PARAM("y", "f32 f16 bf16", NULL, "f32", "element type of y"),
    {.name = "rows",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "1 2 4",
     .default_value = "4",
     .summary = "rows of w that a warp computes at once"},
    {.name = "chunk",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "1024 2048 8192 65536",
     .default_value = "65536",
     .summary = "elements of each vector in shared memory at once"},
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$x", "batch, k", 16, NULL, "x: the vectors, one after the other"},
    {"gamma", KILN_ARG_IN, "f32", "k", 16, "norm == rms", "factor of each element"},
    {"w", KILN_ARG_IN, "u8", "n, k / 256 * 144", 16, NULL,
     "rows of Q4_K super-blocks, as a GGUF file has them"},
    {"out", KILN_ARG_OUT, "$y", "batch, n", 4, NULL, "y: the products, vector by vector"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of w"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row"},
    {"eps", KILN_ARG_VALUE, "f32", NULL, 0, "norm == rms",
     "added to the mean of the squares; at least 0 and finite"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"k % 256 == 0", "k must be a multiple of 256"},
    {"k >= 256 && k <= 1048576", "k must be from 256 to 2^20"},
    {"n <= 16777216", "n must be at most 2^24"},
    {"norm != rms || (!negative(eps) && finite(eps))", "eps must be at least 0 and finite"},
    {NULL, NULL},
};

/* Bytes of shared memory: stages, sums of 256 rows, the warps' partials; h. */
#define TILES       "(1 + (rows == 1 && batch <= 2))"
#define FIXED_BYTES "18432 * rows * " TILES " + 1072 * batch"
#define H_BYTES(of) "batch * 8 * ceil_div(" of ", 512) * select(activation == q8, 80, 272)"
#define SHARED      FIXED_BYTES " + " H_BYTES("min(k, chunk)")

/* As many thread blocks as give each warp a group of rows, but only as many as fit the device at once: more would only make
 * h again. */
#define GRID      "min(ceil_div(n, 8 * rows), multiprocessors * blocks_per_multiprocessor)"
#define ROWS_HERE "ceil_div(n, " GRID ")"

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const uint32_t batch = kiln_int(v, "batch"), rows = kiln_int(v, "rows");
    const uint32_t most_for_two = kiln_has_sm(v, 80) ? 4 : 2;
    kiln_require(s, rows * batch <= 8, "batch rows", "rows times batch is at most 8: registers");
    s->block[0] = 256;
    s->shared_bytes = shared_bytes(v, kiln_int(v, "chunk"));
    s->least_shared_bytes = shared_bytes(v, Q4K_BLOCK_ELEMENTS);
    s->min_sm = rows == 4 ? 80 : 75; /* devices below have no room for the stages */
    s->trip = gemv_tiles(rows, batch) * Q4K_TILE_BLOCKS * Q4K_BLOCK_ELEMENTS;
    s->blocks_per_multiprocessor = rows < 4 && rows * batch <= most_for_two ? 2 : 1; /* else some spill */
}

const kiln_family rmsnorm_q4k_gemv_family = {
    .name = "rmsnorm_q4k_gemv",
    .summary = "normalise vectors and multiply them by GGUF Q4_K weights",
    .source = "RMSNorm (arXiv:1910.07467); GGUF's Q4_K, as the Python package gguf decodes it",
    .accuracy =
        "let r be the exact element, S the sum of |h| * (|d| * scale * code + |dmin| * minimum), u half an "
        "ulp of y's type, L_n = 4 * ceil(k / 1024) + 13 and L = 4 * ceil(k / min(chunk, 2048)) + 5 + "
        "ceil(k / chunk), 32 more with exact products. The error of an element of y is at most u * |r| + "
        "(2^-22 + (L_n / 2 + 3) * 2^-24) * |r| + (L + 6) * 2^-24 * S. q8 adds scale / 2 * (1 + 2^-9) * sum "
        "|w| for each block of 32. This holds for every finite x while h, sums and y are normal numbers (a "
        "denormal x * r or h is also off by half of the least denormal), and with q8 for |h| up to 2^111",
    .nonfinite =
        "with q8, a NaN or an infinity in h makes y of its vector NaN; with exact, y follows the sums of "
        "code * h and of h over sub-blocks. A NaN or an infinity in d or dmin makes y of its row NaN. With "
        "norm rms, an infinity in x makes its own h a NaN and the others 0, and a NaN in x makes every h a "
        "NaN, as do zeros with an eps of 0",
    .params = params,
    .args = args,
    .rules = rules,
    .empty = "n == 0",
    .shape = shape,
    .grid = {GRID},
    .shared_bytes = SHARED,
    .time = {.length = "min(k, chunk)",
             .repeats = "ceil_div(" ROWS_HERE ", 8 * rows) * ceil_div(k, chunk)",
             /* h, which is made again for each 256 rows where a chunk is less than all of it */
             .side_trips = "ceil_div(k, 1024) * select(k > chunk, ceil_div(" ROWS_HERE ", 256), 1)",
             .wait = "select(rows == 1, 100, 300)",
             /* each chunk's sums of each group of rows */
             .extra = "300 * ceil_div(" ROWS_HERE ", 8 * rows) * ceil_div(k, chunk)",
             .block_bytes = ROWS_HERE " * k * 9 / 16 + batch * k * 4"},
    .cost = {.bytes_read =
                 "n * (k / 256) * 144 + batch * k * select(x == f32, 4, 2) + select(norm == rms, 4 * k, 0)",
             .bytes_written = "batch * n * select(y == f32, 4, 2)",
             .elements = "n * k"},
    .min_sm = 75,
    .emit = emit,
};
