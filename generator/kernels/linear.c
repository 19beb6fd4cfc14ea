/* y = W * h: vectors times a matrix of quantised weights in one of GGUF's formats, with what a language model has before and
 * after it: h = x, or x normalised (RMSNorm); a bias; a residual.
 *
 * GEOMETRY. A thread block has a stretch of W's rows, and up to 8 vectors of x. In one wave there are as many as fit the device
 * at once. The first tiles of W are on their way (linear_w.c) while the thread block brings the vectors into shared memory in
 * the order in which groups of weights need them (linear_x.c). Then each of its eight warps goes over groups of 1, 2 or 4 rows
 * (linear_products.c). Sums of up to 256 rows gather in shared memory, and are stored together.
 *
 * NORM. The factor 1 / rms of a vector multiplies its sums at the end, so that the weights need not wait for it: one pass over
 * x makes both.
 *
 * ACTIVATION HALF is for tensor cores, which is linear_mma.c.
 *
 * CHUNKS. Where `chunk` is less than k, all this repeats for each chunk of k, and shared memory accumulates the sums of 256
 * rows. Then every 256 rows make the shares again.
 */
#include "linear.h"
#include "device/tail.h"
#include "gguf.h"
#include <kiln/author/families.h>

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

/* Stages such that all but one hold about as much as a multiprocessor has on its way. */
static uint32_t stages_of(uint32_t stage_bytes)
{
    enum { BYTES_AHEAD = 36 * 1024, MOST_STAGES = 8 };
    const uint32_t stages = BYTES_AHEAD / (LINEAR_WARPS * stage_bytes) + 1;
    return stages < 2 ? 2 : stages > MOST_STAGES ? MOST_STAGES : stages;
}

static linear_geometry geometry_of(const kiln_variant *v)
{
    linear_geometry g = {.format = gguf_format(v),
                         .rows = kiln_int(v, "rows"),
                         .vectors = kiln_int(v, "vectors"),
                         .chunk = kiln_int(v, "chunk"),
                         .is_q8 = kiln_is(v, "activation", "q8"),
                         .has_norm = kiln_is(v, "norm", "rms")};
    g.tile_bytes = (uint32_t)WARP_LANES / g.format->groups * g.format->bytes;
    g.row_bytes = g.tile_bytes + (g.format->bytes % UNIT_BYTES == 0 ? 0 : UNIT_BYTES);
    g.stage_bytes = g.rows * g.row_bytes;
    g.stages = stages_of(g.stage_bytes);
    g.vector_bytes = linear_vector_bytes(g.format, g.is_q8);
    /* An odd number of 16 bytes, so that neighbouring lanes' shares are in different banks. */
    g.share_bytes = g.vectors * g.vector_bytes | (uint32_t)UNIT_BYTES;
    return g;
}

static uint32_t fixed_bytes(const linear_geometry *g)
{
    return LINEAR_WARPS * g->stages * g->stage_bytes + 4 * LINEAR_PASS_ROWS * g->vectors +
           4 * LINEAR_WARPS * g->vectors + 4 * LINEAR_MOST_VECTORS;
}

/* Of dynamic shared memory where a chunk has so many elements. */
static uint32_t shared_bytes(const linear_geometry *g, uint32_t elements)
{
    return fixed_bytes(g) + elements / format_group_elements(g->format) * g->share_bytes;
}

static void layout_shared(linear *g)
{
    ptx_fn *f = g->f;
    const uint32_t warp_bytes = g->of.stages * g->of.stage_bytes;
    ptx_val start = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    g->stages = ptx_mad(f, g->warp, ptx_u32(warp_bytes), start);
    g->sums = ptx_add(f, start, ptx_u32(LINEAR_WARPS * warp_bytes));
    g->partials = ptx_add(f, g->sums, ptx_u32(4 * LINEAR_PASS_ROWS * g->of.vectors));
    g->scales = ptx_add(f, g->partials, ptx_u32(4 * LINEAR_WARPS * g->of.vectors));
    g->shares = ptx_add(f, g->scales, ptx_u32(4 * LINEAR_MOST_VECTORS));
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

/* Adds the sums of a group of rows to those of the chunks before, in shared memory. */
static void gather_sums(linear *g, ptx_val group)
{
    ptx_fn *f = g->f;
    const uint32_t lanes = WARP_LANES / g->of.rows;
    ptx_val of_lane = ptx_div(f, g->lane, ptx_u32(lanes)), in_row = ptx_and(f, g->lane, ptx_u32(lanes - 1));
    ptx_val row = ptx_mad(f, group, ptx_u32(g->of.rows), of_lane);
    ptx_val to = ptx_mad(f, row, ptx_u32(4), g->sums);
    ptx_val is_first = ptx_eq(f, in_row, ptx_u32(0)), in_pass = ptx_lt(f, row, g->rows_here);
    ptx_val stores = ptx_and(f, is_first, in_pass), is_later = ptx_gt(f, g->chunk_first, ptx_u32(0));
    ptx_val adds = ptx_and(f, is_later, stores);
    for (uint32_t b = 0; b < g->of.vectors; b++) {
        ptx_val sum[LINEAR_MOST_ROWS];
        for (uint32_t r = 0; r < g->of.rows; r++)
            sum[r] = g->sum[r][b];
        lanes_join(f, PTX_OP_ADD, WARP_LANES, g->of.rows, g->lane, sum);
        ptx_val total = ptx_var(f, sum[0]), at = shared_at(f, PTX_F32, to, 4 * LINEAR_PASS_ROWS * b);
        PTX_WHEN (f, adds) {
            ptx_val before = ptx_load(f, at);
            ptx_add_to(f, total, before);
        }
        PTX_WHEN (f, stores) {
            ptx_store(f, at, total);
        }
    }
}

/* ---- y ------------------------------------------------------------------------------------------------------------ */

/* Each thread has one of the pass's rows. */
static void store_rows(linear *g)
{
    ptx_fn *f = g->f;
    PTX_IF (f, ptx_lt(f, g->tid, g->rows_here)) {
        ptx_val from = ptx_mad(f, g->tid, ptx_u32(4), g->sums), row = ptx_add(f, g->tid, g->first_row);
        ptx_val row_64 = ptx_cvt(f, PTX_U64, row), bias = linear_bias(g, row), factor;
        for (uint32_t b = 0; b < g->of.vectors; b++) {
            PTX_IF (f, ptx_gt(f, g->vectors, ptx_u32(b))) {
                ptx_val vector = ptx_add(f, g->first_vector, ptx_u32(b));
                ptx_val element = ptx_mad_wide(f, vector, g->n, row_64);
                ptx_val sum = ptx_load(f, shared_at(f, PTX_F32, from, 4 * LINEAR_PASS_ROWS * b));
                if (g->of.has_norm)
                    factor = linear_factor(g, b);
                linear_store(g, sum, g->of.has_norm ? &factor : NULL, bias, element);
            }
        }
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static void multiply_group(linear *g, ptx_val group)
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->of.rows; r++)
        for (uint32_t b = 0; b < g->of.vectors; b++)
            g->sum[r][b] = ptx_var(f, ptx_f32(0));
    linear_find_rows(g, group);
    ptx_val share = ptx_var(f, ptx_add(f, g->lane_share, ptx_u32(0)));
    PTX_FOR (f, first, ptx_u32(0), g->share_count, ptx_u32(WARP_LANES)) {
        ptx_main_loop(f);
        linear_next_stage(g);
        ptx_val of_lane = ptx_add(f, first, g->lane);
        PTX_IF (f, ptx_lt(f, of_lane, g->share_count)) {
            linear_multiply_tile(g, share);
        }
        ptx_add_to(f, share, ptx_u32(WARP_LANES * g->of.share_bytes));
    }
    gather_sums(g, group);
}

/* The first chunk of the first pass needs shares; where there are several chunks, each does. */
static void make_chunk(linear *g, ptx_val is_first_pass)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t tile_elements = WARP_LANES * format_group_elements(format);
    ptx_val left = ptx_sub(f, g->k, g->chunk_first);
    g->chunk_count = ptx_min(f, left, ptx_u32(g->of.chunk));
    ptx_val raised = ptx_add(f, g->chunk_count, ptx_u32(tile_elements - 1));
    g->tiles = ptx_div(f, raised, ptx_u32(tile_elements));
    g->share_count = ptx_div(f, g->chunk_count, ptx_u32(format_group_elements(format)));
    ptx_val before = ptx_div(f, g->chunk_first, ptx_u32(format->elements));
    g->chunk_byte = ptx_mul(f, before, ptx_u32(format->bytes));
    ptx_val blocks = ptx_div(f, g->chunk_count, ptx_u32(format->elements));
    g->chunk_bytes = ptx_mul(f, blocks, ptx_u32(format->bytes));
    linear_init_stages(g);
    ptx_val is_first_chunk = ptx_eq(f, g->chunk_first, ptx_u32(0));
    ptx_val is_start = ptx_and(f, is_first_pass, is_first_chunk),
            has_more = ptx_gt(f, g->k, ptx_u32(g->of.chunk));
    PTX_IF (f, ptx_or(f, is_start, has_more)) {
        ptx_barrier(f); /* all have read the last shares */
        linear_make_shares(g, is_start);
    }
    PTX_FOR (f, group, g->warp, g->groups_of_rows, ptx_u32(LINEAR_WARPS)) {
        multiply_group(g, group);
    }
}

static void make_pass(linear *g, ptx_val is_first_pass)
{
    ptx_fn *f = g->f;
    PTX_FOR (f, chunk_first, ptx_u32(0), g->k, ptx_u32(g->of.chunk)) {
        g->chunk_first = chunk_first;
        make_chunk(g, is_first_pass);
    }
    ptx_barrier(f);
    store_rows(g);
    ptx_barrier(f);
}

/* This thread block's stretch of rows, 256 at a time. */
static void make_rows(linear *g)
{
    ptx_fn *f = g->f;
    ptx_val blocks = ptx_nctaid_x(f), block = ptx_ctaid_x(f);
    ptx_val raised = ptx_add(f, g->n, blocks);
    ptx_val most = ptx_div(f, ptx_sub(f, raised, ptx_u32(1)), blocks);
    ptx_val first = ptx_mul(f, block, most), past = ptx_add(f, first, most), end = ptx_min(f, past, g->n);
    PTX_FOR (f, row, first, end, ptx_u32(LINEAR_PASS_ROWS)) {
        g->first_row = row;
        ptx_val left = ptx_sub(f, end, row);
        g->rows_here = ptx_min(f, left, ptx_u32(LINEAR_PASS_ROWS));
        ptx_val whole = ptx_add(f, g->rows_here, ptx_u32(g->of.rows - 1));
        g->groups_of_rows = ptx_div(f, whole, ptx_u32(g->of.rows));
        make_pass(g, ptx_eq(f, row, first));
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void read_arguments(linear *g)
{
    ptx_fn *f = g->f;
    g->in = ptx_param_ptr(f, g->x_type, "in");
    if (g->of.has_norm)
        g->gamma = ptx_param_ptr(f, PTX_F32, "gamma");
    g->w = ptx_param_ptr(f, PTX_U8, "w");
    if (g->has_bias)
        g->bias = ptx_param_ptr(f, g->y_type, "bias");
    if (g->has_residual)
        g->residual = ptx_param_ptr(f, g->y_type, "residual");
    g->out = ptx_param_ptr(f, g->y_type, "out");
    g->m = ptx_param(f, PTX_U32, "m");
    g->n = ptx_param(f, PTX_U32, "n");
    g->k = ptx_param(f, PTX_U32, "k");
    if (g->of.has_norm)
        g->eps = ptx_param(f, PTX_F32, "eps");
}

static void find_vectors(linear *g)
{
    ptx_fn *f = g->f;
    g->first_vector = ptx_mul(f, ptx_ctaid_y(f), ptx_u32(g->of.vectors));
    g->vectors = ptx_sub(f, g->m, g->first_vector);
    for (uint32_t b = 0; b < g->of.vectors; b++) {
        ptx_val number = tail_clamp(f, ptx_add(f, g->first_vector, ptx_u32(b)), g->m);
        g->x[b] = ptx_at(f, g->in, ptx_mul_wide(f, number, g->k));
    }
}

static void clear_scales(linear *g)
{
    ptx_fn *f = g->f;
    PTX_WHEN (f, ptx_lt(f, g->tid, ptx_u32(g->of.vectors))) {
        ptx_store(f, shared_at(f, PTX_F32, ptx_mad(f, g->tid, ptx_u32(4), g->scales), 0), ptx_f32(1));
    }
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    linear of = {.of = geometry_of(v),
                 .f = f,
                 .x_type = kiln_type(v, "x"),
                 .y_type = kiln_type(v, "y"),
                 .has_sm_80 = kiln_has_sm(v, 80),
                 .has_bias = kiln_is(v, "epilogue", "bias") || kiln_is(v, "epilogue", "bias_residual"),
                 .has_residual =
                     kiln_is(v, "epilogue", "residual") || kiln_is(v, "epilogue", "bias_residual")},
           *g = &of;
    g->may_scale = g->of.has_norm && g->x_type != PTX_F16;
    read_arguments(g);
    g->tid = ptx_tid_x(f);
    g->lane = ptx_laneid(f);
    g->warp = ptx_warpid_x(f);
    ptx_val blocks = ptx_div(f, g->k, ptx_u32(g->of.format->elements));
    g->w_row_bytes = ptx_mul(f, blocks, ptx_u32(g->of.format->bytes));
    if (!kiln_is(v, "strategy", "simt")) {
        (kiln_is(v, "strategy", "mma") ? linear_emit_mma : linear_emit_tiles)(g, v);
        return;
    }
    layout_shared(g);
    find_vectors(g);
    ptx_val lane_group = ptx_and(f, g->lane, ptx_u32(g->of.format->groups - 1));
    g->w_lane = format_lane_init(f, g->of.format, lane_group, (ptx_val){0}, FORMAT_RAISED);
    g->lane_share = ptx_mad(f, g->lane, ptx_u32(g->of.share_bytes), g->shares);
    if (g->may_scale)
        clear_scales(g);
    make_rows(g);
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

/* Formats whose groups have 64 elements, and those whose groups have four parts. config.shared_memory holds what follows to
 * device/format.c. */
#define IS_K    "(format == q2_k || format == q3_k || format == q4_k || format == q5_k || format == q6_k)"
#define IS_FOUR "(format == q2_k || format == q3_k || format == q6_k)"
#define GROUP   "select(" IS_K ", 64, 32)"

#define HAS_BIAS     "epilogue == bias || epilogue == bias_residual"
#define HAS_RESIDUAL "epilogue == residual || epilogue == bias_residual"
#define ROW_BYTES    "k * " GGUF_BYTES " / 256"

/* Bytes of one vector's part of a share, and of a share: an odd number of 16 bytes. */
#define VECTOR_BYTES                                                                                         \
    "select(activation == q8, select(" IS_FOUR ", 96, select(" IS_K ", 80, 48)), select(" IS_K ", 272, 144))"
#define SHARE_BYTES "((vectors * " VECTOR_BYTES " / 32) * 32 + 16)"

/* The shape's shared memory is that of a whole chunk. Shares are made for whole multiples of 256 elements. */
#define MOST_K "ceil_div(min(k, chunk), 256) * 256"
#define IS_MMA "strategy != simt"
#define SHARED                                                                                               \
    "select(" IS_MMA ", shared_bytes, shared_bytes - (chunk - " MOST_K ") / " GROUP " * " SHARE_BYTES ")"

#define VECTOR_TILES "select(" IS_MMA ", ceil_div(m, tile_m), ceil_div(m, vectors))"
#define GRID                                                                                                 \
    "select(" IS_MMA ", ceil_div(n, tile_n), min(ceil_div(n, 8 * rows), max(1, multiprocessors * "           \
    "blocks_per_multiprocessor / " VECTOR_TILES ")))"
#define ROWS_HERE "ceil_div(n, " GRID ")"

static const kiln_param params[] = {
    GGUF_PARAM("format of the weights, as the Python package gguf names it"),
    {.name = "norm",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_CONTRACT,
     .words = "none rms",
     .numbers = "1 2",
     .default_value = "none",
     .summary = "none: h = x; rms: h = x * rsqrt(mean(x^2) + eps) * gamma"},
    {.name = "activation",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_CONTRACT,
     .words = "exact q8 half",
     .numbers = "1 2 3",
     .default_value = "q8",
     .summary =
         "exact: products in f32; q8: h in blocks of 32, rounded to whole multiples of max|h| / 127; half: "
         "f16 or bf16 x on tensor cores, with sums in f32"},
    {.name = "x",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_CONTRACT,
     .words = "f32 f16 bf16",
     .default_value = "f32",
     .summary = "element type of x; gamma is f32"},
    {.name = "y",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_CONTRACT,
     .words = "f32 f16 bf16",
     .default_value = "f32",
     .summary = "element type of y, bias and residual"},
    {.name = "epilogue",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_CONTRACT,
     .words = "none bias residual bias_residual",
     .numbers = "1 2 3 4",
     .default_value = "none",
     .summary = "what is added to the products"},
    {.name = "strategy",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_TUNING,
     .words = "simt mma tiles",
     .default_value = "simt",
     .summary =
         "simt: CUDA cores, activation exact and q8; mma and tiles: tensor cores, activation half, scales on sums "
         "of products or on weights"},
    {.name = "vectors",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "1 2 4 8",
     .default_value = "1",
     .summary = "simt: rows of x that a thread block multiplies at once"},
    {.name = "rows",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "1 2 4",
     .default_value = "2",
     .summary = "simt: rows of w per warp at once"},
    {.name = "chunk",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "2048 8192 65536",
     .default_value = "65536",
     .summary = "simt: elements of each row of x in shared memory at once"},
    {.name = "tile_m",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "8 16 32 64 128",
     .default_value = "8",
     .summary = "mma, tiles: rows of y per thread block; the weights are decoded once for each such tile"},
    {.name = "tile_n",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "32 64 128 256",
     .default_value = "64",
     .summary = "mma, tiles: columns of y per thread block; x is read once for each such tile"},
    {.name = "k_warps",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "2 4",
     .default_value = "2",
     .summary = "mma: warps per thread block that split k"},
    {.name = "stages",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "2 3 4",
     .default_value = "2",
     .summary = "mma, tiles: copies of tiles in shared memory, all but one of them on the way"},
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$x", "m, k", 16, NULL, "x: the rows of activations"},
    {"gamma", KILN_ARG_IN, "f32", "k", 16, "norm == rms", "factors of the elements"},
    {"w", KILN_ARG_IN, "u8", "n, " ROW_BYTES, 16, NULL, "rows of quantised blocks, as a GGUF file has them"},
    {"bias", KILN_ARG_IN, "$y", "n", 0, HAS_BIAS, "added to each row of y"},
    {"residual", KILN_ARG_IN, "$y", "m, n", 0, HAS_RESIDUAL, "added to y; may be out itself"},
    {"out", KILN_ARG_OUT, "$y", "m, n", 0, NULL, "y: the products"},
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of x and y"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of w, columns of y"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row"},
    {"eps", KILN_ARG_VALUE, "f32", NULL, 0, "norm == rms",
     "added to the mean of the squares; at least 0 and finite"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"k % (" GGUF_ELEMENTS ") == 0", "k must be a multiple of the format's block: 32 or 256 elements"},
    {"k >= 32 && k <= 1048576", "k must be from 32 to 2^20"},
    {"m <= 65535", "m must be at most 65535"},
    {"n <= 16777216", "n must be at most 2^24"},
    {"norm != rms || (!negative(eps) && finite(eps))", "eps must be at least 0 and finite"},
    {NULL, NULL},
};

static void shape(kiln_shape *s, const kiln_variant *v)
{
    enum { SM_75_ROOM = 64 * 1024 }; /* shared memory of a thread block */
    const linear_geometry g = geometry_of(v);
    kiln_require(s, g.rows * g.vectors <= 32, "rows vectors", "rows times vectors is at most 32: registers");
    const bool is_simt = kiln_is(v, "strategy", "simt"), is_half = kiln_is(v, "activation", "half");
    const bool has_simt_defaults = g.vectors == 1 && g.rows == 2 && g.chunk == 65536;
    const bool has_mma_defaults = kiln_int(v, "tile_m") == 8 && kiln_int(v, "tile_n") == 64 &&
                                  kiln_int(v, "k_warps") == 2 && kiln_int(v, "stages") == 2;
    kiln_require(s, is_simt != is_half, "activation strategy",
                 "activation half needs strategy mma or tiles, exact and q8 need simt");
    kiln_require(s, is_simt || has_simt_defaults, "strategy vectors rows chunk",
                 "vectors, rows and chunk need strategy simt");
    kiln_require(s, !is_simt || has_mma_defaults, "strategy tile_m tile_n k_warps stages",
                 "tile_m, tile_n, k_warps and stages need strategy mma or tiles");
    kiln_require(s, !is_half || kiln_type(v, "x") != PTX_F32, "activation x",
                 "activation half needs x f16 or bf16");
    kiln_require(s, !is_half || !g.has_norm, "activation norm",
                 "activation half needs norm none: a norm ahead of a large product is a pass of its own");
    linear_shape_mma(s, v, g.format);
    linear_shape_tiles(s, v, g.format);
    if (!is_simt)
        return;
    s->block[0] = LINEAR_THREADS;
    s->shared_bytes = shared_bytes(&g, g.chunk);
    s->least_shared_bytes = shared_bytes(&g, 256);
    s->min_sm = s->least_shared_bytes > SM_75_ROOM ? 80 : 75;
    s->trip = WARP_LANES * format_group_elements(g.format);
    s->blocks_per_multiprocessor =
        g.rows * g.vectors <= (g.format->parts == 4 ? 2 : 4) ? 2 : 1; /* else some spill */
}

const kiln_family linear_family = {
    .name = "linear",
    .summary = "multiply rows of activations by GGUF weights, with a norm before and a sum behind",
    .source = "GGUF's formats, as the Python package gguf decodes them; RMSNorm (arXiv:1910.07467)",
    .accuracy =
        "r is the exact product, S the sum of |h| * (|scale * code| + |minimum|), u half an ulp of y's type. An "
        "element of y is within u * |y| + (2^-22 + (L_n / 2 + 4) * 2^-24) * |r| + (L + 8) * 2^-24 * S of the "
        "exact one, with L = 8 * ceil(k / 1024) + 5 + ceil(k / chunk) and L_n = 4 * ceil(k / 1024) + 13; the "
        "second term is the norm's. Exact products add 32 to L. q8 adds scale / 2 * (1 + 2^-9) * sum |w| for "
        "each block of 32. half with strategy mma has L = 32 * ceil(k / 256) / k_warps + k_warps, and adds 40 * 2^-24 * S, "
        "which tensor cores cut off. half with strategy tiles has L = 5 / 4 * k, and rounds weights to x's type, which adds "
        "v * S + w * sum |h|, where v is half an ulp of that type and w half of its least number. A bias or a residual adds 2^-23 * (|r| + |bias| + |residual|). This holds for every finite x, as long as h and sums are normal numbers of at most "
        "2^100. An |h| below 2^-76 may count as 0",
    .nonfinite =
        "a NaN or an infinity in x makes its row of y NaNs, one in gamma all of y, one in a scale or minimum of "
        "w its column of y. So does a row of zeros with an eps of 0, and with strategy tiles a weight that is infinite "
        "in x's type: in f16 from 65520 on",
    .params = params,
    .args = args,
    .rules = rules,
    .empty = "m == 0 || n == 0",
    .shape = shape,
    .grid = {GRID, VECTOR_TILES},
    .shared_bytes = SHARED,
    .time =
        {.length = "select(" IS_MMA ", k, min(k, chunk))",
         .repeats = "select(" IS_MMA ", 1, ceil_div(" ROWS_HERE ", 8 * rows) * ceil_div(k, chunk))",
         /* mma: rows of y; simt: shares, made again for each 256 rows where a chunk is less than all of x */
         .side_trips = "select(" IS_MMA
                       ", ceil_div(min(m, tile_m), select(strategy == mma, k_warps, 1)), ceil_div(k, 1024) * "
                       "select(k > chunk, ceil_div(" ROWS_HERE ", 256), 1))",
         .wait = "200",
         .extra = "select(" IS_MMA ", 0, 300 * ceil_div(" ROWS_HERE ", 8 * rows) * ceil_div(k, chunk))",
         .block_bytes = "select(" IS_MMA ", tile_n * " ROW_BYTES " + tile_m * k * 2, " ROWS_HERE
                        " * " ROW_BYTES " + vectors * k * 4)"},
    .cost = {.bytes_read =
                 "n * (" ROW_BYTES ") + m * k * select(x == f32, 4, 2) + select(norm == rms, 4 * k, 0) + "
                 "select(y == f32, 4, 2) * (select(" HAS_BIAS ", n, 0) + select(" HAS_RESIDUAL ", m * n, 0))",
             .bytes_written = "m * n * select(y == f32, 4, 2)",
             .elements = "n * k"},
    .min_sm = 75,
    .emit = emit,
};
