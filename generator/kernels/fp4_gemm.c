/* fp4_gemm as a family: its parameters and arguments, a call's rules, and its cost. The tiles of y, their parts of k and the
 * epilogues are linear's (linear.h). */
#include "fp4_gemm.h"
#include "sharing.h"

#include "descriptor.h"
#include <kiln/author/families.h>

/* ---- a variant ---------------------------------------------------------------------------------------------------- */

static void read_arguments(linear *l, const fp4_gemm_geometry *g, ptx_val *in_scales)
{
    ptx_fn *f = l->f;
    l->in = g->has_codes ? ptx_param_ptr(f, PTX_U8, "in_codes") : ptx_param_ptr(f, g->type, "in");
    if (g->has_codes)
        *in_scales = ptx_param_ptr(f, PTX_U8, "in_scales");
    l->w[0] = ptx_param_ptr(f, PTX_U8, "w");
    l->arrays[0][0] = ptx_param_ptr(f, PTX_U8, "w_scales");
    if (l->is_pair) {
        l->w[1] = ptx_param_ptr(f, PTX_U8, "gate");
        l->arrays[0][1] = ptx_param_ptr(f, PTX_U8, "gate_scales");
    }
    linear_read_y(l);
    if (l->has_scale)
        linear_read_each(l, l->matrices, false, PTX_F32, (const char *const[]){"alpha", "gate_alpha"},
                         l->scale);
    if (l->split_k != 1)
        ptx_param(f, PTX_U64, "workspace_size"); /* for the rules and dispatch */
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    const fp4_gemm_geometry g = fp4_gemm_plan(v);
    ptx_val in_scales = {0};
    linear l = {.of = {.format = &fp4_gemm_codes}, .f = f, .x_type = g.type, .has_scale = !g.is_mx};
    linear_set_epilogue(&l, v);
    read_arguments(&l, &g, &in_scales);
    fp4_gemm_emit(&l, &g, in_scales);
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const fp4_gemm_geometry g = fp4_gemm_plan(v);
    const uint32_t shared_bytes = g.shared_bytes + linear_split_bytes(v);
    kiln_require(s, !g.has_codes || g.is_e4m3 == g.is_mx, "format x",
                 "x nvfp4 needs format nvfp4, and x mxfp8 format mxfp4");
    kiln_require(s, !g.is_block_scaled || g.has_codes, "x strategy",
                 "strategy block_scaled needs x nvfp4 or mxfp8");
    kiln_require(
        s, g.has_codes ? g.tile_m <= g.tile_n : 8 * g.tile_m >= g.tile_n, "x tile_m tile_n",
        "tile_m is at least an eighth of tile_n with x f16 or bf16, and at most tile_n with x nvfp4 or mxfp8");
    kiln_require_shared_bytes(s, shared_bytes, g.is_block_scaled ? SHARED_SM_86 : SHARED_SM_80,
                              "x strategy tile_m tile_n stages", "tile_m, tile_n and stages");
    s->block[0] = g.threads;
    s->shared_bytes = s->least_shared_bytes = g.shared_bytes;
    s->is_specific = g.is_block_scaled;
    s->min_sm = g.is_block_scaled ? 120 : g.type == PTX_BF16 || shared_bytes > SHARED_SM_75 ? 80 : 75;
    s->trip = FP4_STAGE;
    /* Lanes per multiprocessor, by the registers of the sums: 512 with tile_m up to 32, then 384 and 256. A join needs more. */
    const bool has_join = kiln_int(v, "split_k") != 1;
    const uint32_t lanes = g.tile_m <= 32 && !has_join ? 512 : g.tile_m <= (has_join ? 32 : 64) ? 384 : 256;
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, lanes);
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

#define HAS_CODES    "(x == nvfp4 || x == mxfp8)"
#define BLOCK        "select(format == mxfp4, 32, 16)"
#define IS_TILED     "scale_layout == tiles_128x4"
#define ACROSS       "select(" IS_TILED ", ceil_div(k, 4 * " BLOCK ") * 4, k / " BLOCK ")"
#define SCALES(rows) "select(" IS_TILED ", ceil_div(" rows ", 128) * 128, " rows "), " ACROSS
#define W_ROWS       "select(" IS_PAIR ", 2 * n, n)"
#define W_BYTES      "(k / 2 + k / " BLOCK ")"
#define X_CODES      "select(x == mxfp8, k, k / 2)"
#define X_BYTES      "select(" HAS_CODES ", " X_CODES " + k / " BLOCK ", 2 * k)"

/* Tiles of y, their thread blocks and the parts of k, as linear's. */
#define ROW_TILES       "ceil_div(m, tile_m)"
#define COLUMN_TILES    "ceil_div(" W_ROWS ", tile_n)"
#define TILE_COUNT      COLUMN_TILES " * " ROW_TILES
#define GUESSED_SHARERS "select(tile_m == 128, 384, 640)" /* 384: two on each multiprocessor */
#define STAGES          "ceil_div(k, 128)"
#define PART_K          "select(split_k == 1, k, 128 * " PART_STAGES ")"

/* Cycles that parts of k add, counted in a replay of sm_120's machine code: a tile's start and store take about 1000 cycles and
 * half a cycle per element. Joining its parts takes another half; in a stretch only the first and the last tile have parts to
 * join. With split_k 2 and 4 a tile's last thread block reads all parts: 4 bytes per element, with two thread blocks per
 * multiprocessor. */
#define TILE_CYCLES "(1000 + tile_m * tile_n / 2)"
#define JOIN                                                                                                 \
    "select(split_k == 0, (1 + ceil_div(" TILE_COUNT ", max(1, " SHARING "))) * " TILE_CYCLES                \
    " + tile_m * tile_n, select(split_k == 1, 0, 3000 + (split_k + 1) * tile_m * tile_n * 2 / 7))"

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "format", "nvfp4 mxfp4", "nvfp4",
          "format of W, codes and scales apart as fp4_quantize makes them\nnvfp4: an e4m3 scale for each 16 elements, and alpha; mxfp4: a power of two, e8m0, for each 32", .numbers = "1 2"),
    PARAM(WORD, CONTRACT, "x", "f16 bf16 nvfp4 mxfp8", "f16",
          "elements of x\nnvfp4: codes and scales of fp4_quantize, for format nvfp4; mxfp8: those, for format mxfp4", .numbers = "5 6"),
    PARAM(WORD, CONTRACT, "y", "f32 f16 bf16", "f16", "element type of y, bias and residual"),
    PARAM(WORD, CONTRACT, "scale_layout", "rows tiles_128x4", "rows",
          "how scales lie\nrows: row after row; tiles_128x4: as cuBLAS and CUTLASS have them, in tiles of 128 rows and 4 scales", .numbers = "1 2"),
    PARAM(WORD, CONTRACT, "epilogue", "none bias residual bias_residual swiglu geglu", "none",
          "what is added to the products\nor two products make y = act(x * gate^T) * (x * w^T), swiglu with SiLU, geglu with GELU in its tanh form, as linear's",
          .numbers = "1 2 3 4 5 6"),
    PARAM(WORD, TUNING, "strategy", "mma block_scaled", "mma",
          "mma: codes are decoded to 16 bits for tensor cores; block_scaled: tensor cores multiply codes and their scales, on sm_120f and sm_120a"),
    PARAM(INT, TUNING, "tile_m", "8 16 32 64 128", "16",
          "rows of y per thread block; with strategy mma the weights are decoded once for each such tile"),
    PARAM(INT, TUNING, "tile_n", "64 128 256", "64", "columns of y per thread block; x is read once for each such tile"),
    PARAM(INT, TUNING, "stages", "2 3 4", "3", "stages of 128 elements of k in shared memory, all but one of them in flight"),
    PARAM(INT, TUNING, "split_k", "0 1 2 4", "1",
          "thread blocks that share k; 0: as many as the device runs at once, with equal shares of the work; the last bits of y then depend on its number of multiprocessors; all but 1 need a workspace"),
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$x:bf16:f16", "m, k", 16, "x != nvfp4 && x != mxfp8", "x: the rows of activations"},
    {"in_codes", KILN_ARG_IN, "u8", "m, " X_CODES, 16, HAS_CODES, "x: two codes per byte along k\nthe low nibble first; mxfp8: one"},
    {"in_scales", KILN_ARG_IN, "u8", SCALES("m"), 16, HAS_CODES,
     "scale of each block of x\nnvfp4: sign bits must be 0, here and in W's scales, as fp4_quantize makes them; no launch checks that"},
    {"w", KILN_ARG_CONSTANT, "u8", "n, k / 2", 16, NULL, "W: two codes per byte along k\nthe low nibble first"},
    {"w_scales", KILN_ARG_CONSTANT, "u8", SCALES("n"), 16, NULL, "scale of each block of W"},
    {"gate", KILN_ARG_CONSTANT, "u8", "n, k / 2", 16, IS_PAIR, "the matrix whose products go through the activation"},
    {"gate_scales", KILN_ARG_CONSTANT, "u8", SCALES("n"), 16, IS_PAIR, "scale of each block of gate"},
    {"bias", KILN_ARG_IN, "$y", "n", 0, HAS_BIAS, "added to each row of y"},
    {"residual", KILN_ARG_IN, "$y", "m, n", 0, HAS_RESIDUAL, "added to y; may be out itself"},
    {"out", KILN_ARG_OUT, "$y", "m, n", 0, NULL, "y: the products"},
    SHARING_ARGS("k", "f32", "256", "y"),
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of x and y"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of W, columns of y"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row"},
    {"alpha", KILN_ARG_VALUE, "f32", NULL, 0, "format == nvfp4",
     "factor of the products with w\n1 over the global scale of W, and of x if that is NVFP4; finite"},
    {"gate_alpha", KILN_ARG_VALUE, "f32", NULL, 0, "format == nvfp4 && " IS_PAIR, "factor of the products with gate; finite"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, "split_k != 1",
     "elements of workspace; 0: none, and k is not split\ntile_counters has one for each 256 of them"},
    {.name = NULL},
};

static const kiln_workspace workspace = {"workspace", "tile_counters", "workspace_size", WORKSPACE, NULL};

static const kiln_rule rules[] = {
    {"k % " BLOCK " == 0", "k must be a multiple of a block's elements, 16 or 32"},
    {"k >= 16 && k <= 1048576", "k must be from 16 to 2^20"},
    {"m <= 65535", "m must be at most 65535"},
    {"n <= 16777216", "n must be at most 2^24"},
    {"format != nvfp4 || finite(alpha) && (!" IS_PAIR " || finite(gate_alpha))", "alpha must be finite"},
    {"split_k != 0 || " TILE_COUNT " <= 2147483648 / " STAGES, "split_k 0 needs at most 2^31 stages of k in all tiles together"},
    {"split_k == 1 || workspace_size >= " WORKSPACE,
     "workspace_size must be at least what NAME_fp4_gemm_workspace says, or NAME_fp4_gemm_workspace_max of any variant"},
    {NULL, NULL},
};

static const kiln_bound bounds[] = {
    {"format mxfp4, x f16, or x mxfp8 with strategy mma",
     "codes of MX formats are decoded to f16: code * scale, both the scale and the product rounded: scales below 2^-24 count as 0"},
    {"x mxfp8, strategy mma",
     "adds 2^-17 * the sum over each 64 of k of their largest product, in which a decoded number below 2^-14 counts as 2^-14, f16's smallest normal one"},
    {"x nvfp4, strategy block_scaled",
     "adds 2^-16 * the sum over each 64 of k of their largest product, in which a code of 0.5 counts as 1, and a scale below 2^-6 as 2^-6: nothing is published about how these tensor cores add; it is the bound if they do as with fp8"},
    {"x mxfp8, strategy block_scaled",
     "adds 2^-19 * the sum over each 32 of k of their largest product, in which a code of W of 0.5 counts as 1, and a code of x below 2^-6 as 2^-6: as for nvfp4"},
    {"bias, residual", "adds 2^-23 * (|r| + |bias| + |residual|)"},
    {"alpha", "r and S include the factor; adds 2^-24 * |r|"},
    {"a gated pair", "as linear's"},
    {NULL, NULL}};
/* clang-format on */

static const kiln_value example[] = {{"m", "4"},     {"n", "256"},        {"k", "1024"},
                                     {"alpha", "1"}, {"gate_alpha", "1"}, {.arg = NULL}};

const kiln_family fp4_gemm_family = {
    .name = "fp4_gemm",
    .summary = "multiply rows by NVFP4 or MXFP4 weights, with a sum or gate after",
    .source =
        "NVFP4 as TransformerEngine and vLLM make it; OCP Microscaling Formats (MX) 1.0; block scaling of "
        "mma (PTX ISA 9.7.14.3)",
    .accuracy =
        "r is the exact product, S is the sum of |x * w|, and u is half an ulp of y's type. The error of an element of y "
        "is at most u * |y| + the smallest positive number of y's type + (L + 8) * 2^-24 * S, where L = 5 / 4 * k, with 9 "
        "more if split_k is not 1, plus the terms in the rows below. Codes times e4m3 scales, and in bf16 times e8m0 scales, "
        "are exact. It holds for finite x if the sums, and the sums times alpha, are at most 2^100",
    .bounds = bounds,
    .nonfinite =
        "a NaN or an infinity makes elements of y NaN: in x its row, in a scale of W its column, in a code or scale of x its row. "
        "So does a code times its scale that is infinite in the type that it is decoded to: x's, or f16 if x is mxfp8. With x nvfp4, scales must "
        "not have a sign bit; fp4_quantize makes none",
    .params = params,
    .args = args,
    .rules = rules,
    .example = example,
    .empty = "m == 0 || n == 0",
    .shape = shape,
    .workspace = &workspace,
    .grid = {"select(split_k == 0, " SHARING ", " COLUMN_TILES ")", "select(split_k == 0, 1, " ROW_TILES ")",
             "max(1, split_k)"},
    .time = {.length = PART_K,
             .repeats = "1",
             .side_trips = "min(m, tile_m)",
             .wait = "1600 / stages",
             .extra = JOIN,
             .block_bytes = "(tile_n * " W_BYTES " + tile_m * " X_BYTES ") * " PART_K " / max(1, k)"},
    .cost = {.bytes_read =
                 W_ROWS " * " W_BYTES " + m * " X_BYTES " + select(y == f32, 4, 2) * (select(" HAS_BIAS
                        ", n, 0) + select(" HAS_RESIDUAL ", m * n, 0))",
             .bytes_written = "m * n * select(y == f32, 4, 2)",
             .elements = W_ROWS " * k"},
    .min_sm = 75,
    .emit = emit,
};
