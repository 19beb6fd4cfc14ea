/* linear as a family: its parameters and arguments, a call's rules, and its cost. */
#include "gguf.h"
#include "linear.h"
#include "sharing.h"
#include <kiln/author/families.h>

/* ---- a variant ---------------------------------------------------------------------------------------------------- */

static const weight_format *format_of(const kiln_variant *v)
{
    const bool is_high_first = kiln_is(v, "nibbles", "high");
    if (kiln_is(v, "format", "int4"))
        return format_int4(kiln_is(v, "mode", "asym"), is_high_first, kiln_int(v, "group"));
    return kiln_is(v, "format", "nf4") ? format_nf4(is_high_first, kiln_int(v, "group")) : gguf_format(v);
}

static linear_geometry geometry_of(const kiln_variant *v)
{
    return linear_plan((linear_geometry){.format = format_of(v),
                                         .rows = kiln_int(v, "rows"),
                                         .vectors = kiln_int(v, "vectors"),
                                         .chunk = kiln_int(v, "chunk"),
                                         .is_q8 = kiln_is(v, "activation", "q8"),
                                         .has_norm = kiln_is(v, "norm", "rms")});
}

static void read_arguments(linear *g)
{
    const char *const w[] = {"w", g->is_pair ? "gate" : "w_2", "w_3"}, *const scale[] = {"w_scale",
                                                                                         g->is_pair
                                                                                             ? "gate_scale"
                                                                                             : "w_scale_2",
                                                                                         "w_scale_3"};
    const char *const arrays[2][3] = {{"w_scales", g->is_pair ? "gate_scales" : "w_scales_2", "w_scales_3"},
                                      {"w_zeros", g->is_pair ? "gate_zeros" : "w_zeros_2", "w_zeros_3"}};
    ptx_fn *f = g->f;
    g->in = ptx_param_ptr(f, g->x_type, "in");
    if (g->x_type == PTX_S8)
        g->in_scale = ptx_param_ptr(f, PTX_F32, "in_scale");
    if (g->of.has_norm)
        g->gamma = ptx_param_ptr(f, PTX_F32, "gamma");
    linear_read_each(g, g->matrices, true, PTX_U8, w, g->w);
    for (uint32_t i = 0; i < format_arrays(g->of.format); i++)
        linear_read_each(g, g->matrices, true, PTX_F32, arrays[i], g->arrays[i]);
    linear_read_y(g);
    if (g->of.has_norm)
        g->eps = ptx_param(f, PTX_F32, "eps");
    if (g->has_scale)
        linear_read_each(g, g->matrices, false, PTX_F32, scale, g->scale);
    if (g->split_k != 1)
        ptx_param(f, PTX_U64, "workspace_size"); /* for the rules and dispatch */
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    linear of = {.of = geometry_of(v),
                 .f = f,
                 .x_type = kiln_type(v, "x"),
                 .has_scale = kiln_is(v, "scale", "tensor"),
                 .overlaps = kiln_bool(v, "overlap") && kiln_has_sm(v, 90)},
           *g = &of;
    linear_set_epilogue(g, v);
    if (!g->is_pair)
        g->matrices = kiln_int(v, "matrices");
    read_arguments(g);
    if (kiln_is(v, "strategy", "simt"))
        linear_emit_simt(g);
    else if (g->x_type == PTX_S8)
        linear_emit_q8(g, v);
    else
        (kiln_is(v, "strategy", "mma") ? linear_emit_mma : linear_emit_tiles)(g, v);
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

#define HAS_SCALE   "scale == tensor"
#define HAS_2       "matrices >= 2"
#define HAS_3       "matrices == 3"
#define HAS_ARRAYS  "(format == int4 || format == nf4)"
#define HAS_ZEROS   "format == int4 && mode == asym"
#define W_256_BYTES "select(" HAS_ARRAYS ", 128, " GGUF_BYTES ")"
#define ROW_BYTES   "k * " W_256_BYTES " / 256"
#define ROW_NUMBERS "select(" HAS_ARRAYS ", k / group * select(mode == asym, 8, 4), 0)"
#define X_256_BYTES "select(x == f32, 1024, select(x == s8, 288, 512))"
#define X_ROW_BYTES "k * " X_256_BYTES " / 256"

/* Rows of all matrices, and columns of all of y. */
#define COLUMNS "select(matrices == 3, n + n_2 + n_3, select(matrices == 2, n + n_2, n))"
#define W_ROWS  "select(" IS_PAIR ", 2 * n, " COLUMNS ")"

/* The shape's shared memory is for a whole chunk. Shares are made for whole multiples of 256 elements. */
#define MOST_K "ceil_div(min(k, chunk), 256) * 256"
#define IS_MMA "strategy != simt"
#define SHARED                                                                                               \
    "select(" IS_MMA ", shared_bytes, shared_bytes - (chunk - " MOST_K ") / group_elements * share_bytes)"

#define VECTOR_TILES "select(" IS_MMA ", ceil_div(m, tile_m), ceil_div(m, vectors))"

/* Tiles of y on tensor cores. */
#define COLUMN_TILES    "ceil_div(" W_ROWS ", tile_n)"
#define TILE_COUNT      COLUMN_TILES " * ceil_div(m, tile_m)"
#define GUESSED_SHARERS "640"
#define STAGES          "ceil_div(k, stage_elements)"
#define PART_K          "select(split_k == 1, k, stage_elements * " PART_STAGES ")"

#define GRID                                                                                                 \
    "select(" IS_MMA ", select(split_k == 0, " SHARING ", " COLUMN_TILES "), min(ceil_div(" W_ROWS           \
    ", 8 * rows), max(1, " AT_ONCE " / " VECTOR_TILES ")))"
#define ROWS_HERE "ceil_div(" W_ROWS ", " GRID ")"

static const kiln_param params[] = {
    PARAM(
        WORD, CONTRACT, "format", FORMAT_WORDS " int4 nf4", "q4_k",
        "format of the weights, as the Python package gguf names it; int4, nf4: codes, scales and zeros as int4_quantize and nf4_quantize make them",
        .numbers = FORMAT_NUMBERS " 15 16"),
    PARAM(INT, CONTRACT, "group", "32 64 128 256", "64", "int4, nf4: elements along k that share a scale",
          .is_later = true),
    PARAM(WORD, CONTRACT, "mode", "sym asym", "sym",
          "int4: how codes are scaled\nsym: w = (code - 8) * scale; asym: w = (code - zero) * scale",
          .numbers = "1 2", .is_later = true),
    PARAM(
        WORD, CONTRACT, "nibbles", "low high", "low",
        "int4, nf4: order of a byte's codes\nlow: element 2i in bits 0-3 of byte i, 2i+1 in bits 4-7; high: the reverse",
        .is_later = true),
    PARAM(WORD, CONTRACT, "norm", "none rms", "none",
          "what x goes through first\nnone: h = x; rms: h = x * rsqrt(mean(x^2) + eps) * gamma",
          .numbers = "1 2"),
    PARAM(
        WORD, CONTRACT, "activation", "exact q8 half", "q8",
        "how products are computed\nexact: products in f32; q8: h in blocks of 32, rounded to whole multiples of max|h| / 127; half: "
        "f16 or bf16 x on tensor cores, with sums in f32",
        .numbers = "1 2 3"),
    PARAM(WORD, CONTRACT, "x", "f32 f16 bf16 s8", "f32",
          "element type of x; gamma is f32; s8: codes of q8_quantize", .numbers = "5"),
    PARAM(WORD, CONTRACT, "y", "f32 f16 bf16", "f32", "element type of y, bias and residual"),
    PARAM(WORD, CONTRACT, "epilogue", "none bias residual bias_residual swiglu geglu", "none",
          "what is added to the products\nswiglu, geglu: y = act(h * gate^T) * (h * w^T), where act is SiLU, "
          "x / (1 + exp(-x)), or GELU, x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))",
          .numbers = "1 2 3 4 5 6"),
    PARAM(INT, CONTRACT, "matrices", "1 2 3", "1",
          "matrices that x is multiplied by in one launch\nw, w_2 and w_3; each has its own y",
          .is_later = true),
    PARAM(WORD, CONTRACT, "scale", "none tensor", "none",
          "tensor: a matrix's products are multiplied by its w_scale", .numbers = "1 2", .is_later = true),
    PARAM(
        WORD, TUNING, "strategy", "simt mma tiles", "simt",
        "simt: CUDA cores, activation exact and q8; mma and tiles: tensor cores, activation half and x s8, few rows or "
        "many; with half, mma multiplies sums of products by scales, and tiles multiplies weights"),
    PARAM(INT, TUNING, "vectors", NULL, "1", "simt: rows of x that a thread block multiplies at once",
          .min = 1, .max = LINEAR_MOST_VECTORS, .step = 1),
    PARAM(INT, TUNING, "rows", "1 2 4", "2", "simt: rows of w per warp at once"),
    PARAM(INT, TUNING, "chunk", "2048 8192 65536", "65536",
          "simt: elements of each row of x in shared memory at once"),
    PARAM(INT, TUNING, "tile_m", "8 16 32 64 128", "8",
          "mma, tiles: rows of y per thread block; the weights are decoded once for each such tile"),
    PARAM(INT, TUNING, "tile_n", "32 64 128 256", "64",
          "mma, tiles: columns of y per thread block; x is read once for each such tile"),
    PARAM(INT, TUNING, "k_warps", "2 4 8", "2", "mma: warps per thread block that split k"),
    PARAM(
        INT, TUNING, "stages", "2 3 4", "2",
        "mma, tiles: stages in shared memory; all but one are being loaded; tiles: of x only, and of 4 two are being loaded"),
    PARAM(
        WORD, TUNING, "rounding", "once twice", "once",
        "tiles: once: weights are rounded to x's type; twice: scales and minima are first rounded to f16 too, which takes "
        "fewer instructions",
        .is_later = true),
    PARAM(
        INT, TUNING, "split_k", "0 1 2 4", "1",
        "mma, tiles: thread blocks that share k; 0: as many as the device runs at once, with equal shares of the work; the "
        "last bits of y then depend on its number of multiprocessors; all but 1 need a workspace",
        .is_later = true),
    PARAM(
        BOOL, TUNING, "overlap", NULL, "false",
        "simt and x s8, from sm_90 on: begins before the preceding launch has ended, and prefetches or copies W, "
        "where kiln_options.overlap_launches is set",
        .is_later = true),
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$x", "m, k", 16, NULL, "x: the rows of activations"},
    {"in_scale", KILN_ARG_IN, "f32", "m, k / 32", 0, "x == s8",
     "scale of each 32 codes, with at most 22 significant bits: with more, products are wrong"},
    {"gamma", KILN_ARG_IN, "f32", "k", 16, "norm == rms", "factors of the elements"},
    {"w", KILN_ARG_CONSTANT, "u8", "n, " ROW_BYTES, 16, NULL,
     "rows of quantised blocks, as a GGUF file has them; int4, nf4: rows of codes, two in a byte"},
    {"w_2", KILN_ARG_CONSTANT, "u8", "n_2, " ROW_BYTES, 16, HAS_2, "the second matrix"},
    {"w_3", KILN_ARG_CONSTANT, "u8", "n_3, " ROW_BYTES, 16, HAS_3, "the third matrix"},
    {"gate", KILN_ARG_CONSTANT, "u8", "n, " ROW_BYTES, 16, IS_PAIR,
     "the matrix whose products go through the activation"},
    {"w_scales", KILN_ARG_CONSTANT, "f32", "n, k / group", 4, HAS_ARRAYS,
     "scale of each group of a row of w"},
    {"w_scales_2", KILN_ARG_CONSTANT, "f32", "n_2, k / group", 4, HAS_ARRAYS " && " HAS_2,
     "scale of each group of a row of w_2"},
    {"w_scales_3", KILN_ARG_CONSTANT, "f32", "n_3, k / group", 4, HAS_ARRAYS " && " HAS_3,
     "scale of each group of a row of w_3"},
    {"gate_scales", KILN_ARG_CONSTANT, "f32", "n, k / group", 4, HAS_ARRAYS " && " IS_PAIR,
     "scale of each group of a row of gate"},
    {"w_zeros", KILN_ARG_CONSTANT, "f32", "n, k / group", 4, HAS_ZEROS, "zero of each group of a row of w"},
    {"w_zeros_2", KILN_ARG_CONSTANT, "f32", "n_2, k / group", 4, HAS_ZEROS " && " HAS_2,
     "zero of each group of a row of w_2"},
    {"w_zeros_3", KILN_ARG_CONSTANT, "f32", "n_3, k / group", 4, HAS_ZEROS " && " HAS_3,
     "zero of each group of a row of w_3"},
    {"gate_zeros", KILN_ARG_CONSTANT, "f32", "n, k / group", 4, HAS_ZEROS " && " IS_PAIR,
     "zero of each group of a row of gate"},
    {"bias", KILN_ARG_IN, "$y", "n", 0, HAS_BIAS, "added to each row of y"},
    {"bias_2", KILN_ARG_IN, "$y", "n_2", 0, HAS_2 " && (" HAS_BIAS ")", "added to each row of out_2"},
    {"bias_3", KILN_ARG_IN, "$y", "n_3", 0, HAS_3 " && (" HAS_BIAS ")", "added to each row of out_3"},
    {"residual", KILN_ARG_IN, "$y", "m, n", 0, HAS_RESIDUAL, "added to y; may be out itself"},
    {"out", KILN_ARG_OUT, "$y", "m, n", 0, NULL, "y: the products"},
    {"out_2", KILN_ARG_OUT, "$y", "m, n_2", 0, HAS_2, "the products of w_2"},
    {"out_3", KILN_ARG_OUT, "$y", "m, n_3", 0, HAS_3, "the products of w_3"},
    SHARING_ARGS("k", "f32", "256", "y"),
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of x and y"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of w, columns of y"},
    {"n_2", KILN_ARG_VALUE, "u32", NULL, 0, HAS_2, "rows of w_2; may be 0"},
    {"n_3", KILN_ARG_VALUE, "u32", NULL, 0, HAS_3, "rows of w_3; may be 0"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row"},
    {"eps", KILN_ARG_VALUE, "f32", NULL, 0, "norm == rms",
     "added to the mean of the squares; at least 0 and finite"},
    {"w_scale", KILN_ARG_VALUE, "f32", NULL, 0, HAS_SCALE, "factor of w; finite"},
    {"w_scale_2", KILN_ARG_VALUE, "f32", NULL, 0, HAS_SCALE " && " HAS_2, "factor of w_2; finite"},
    {"w_scale_3", KILN_ARG_VALUE, "f32", NULL, 0, HAS_SCALE " && " HAS_3, "factor of w_3; finite"},
    {"gate_scale", KILN_ARG_VALUE, "f32", NULL, 0, HAS_SCALE " && " IS_PAIR, "factor of gate; finite"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, "split_k != 1",
     "elements of workspace; 0: none, and k is not split\ntile_counters has one for each 256 of them"},
    {.name = NULL},
};

static const kiln_workspace workspace = {"workspace", "tile_counters", "workspace_size", WORKSPACE, NULL};

static const kiln_rule rules[] = {
    {"k % select(" HAS_ARRAYS ", group, " GGUF_ELEMENTS ") == 0",
     "k must be a multiple of the format's block, 32 or 256 elements, or with int4 and nf4 of group"},
    {"k >= 32 && k <= 1048576", "k must be from 32 to 2^20"},
    {"m <= 65535", "m must be at most 65535"},
    {"n <= 16777216", "n must be at most 2^24"},
    {"matrices < 2 || n_2 <= 16777216", "n_2 must be at most 2^24"},
    {"matrices < 3 || n_3 <= 16777216", "n_3 must be at most 2^24"},
    /* Without parameters, so that they are checked before `empty`. */
    {"n > 0 || n_2 == 0", "n may be 0 only if n_2 is 0"},
    {"n > 0 || n_3 == 0", "n may be 0 only if n_3 is 0"},
    {"norm != rms || (!negative(eps) && finite(eps))", "eps must be at least 0 and finite"},
    {"scale != tensor || finite(w_scale) && (matrices < 2 || finite(w_scale_2)) && (matrices < 3 || "
     "finite(w_scale_3)) && (!" IS_PAIR " || finite(gate_scale))",
     "scales must be finite"},
    {"split_k != 0 || " TILE_COUNT " <= 2147483648 / " STAGES,
     "split_k 0 needs at most 2^31 stages of k in all tiles together"},
    {"split_k == 1 || workspace_size >= " WORKSPACE,
     "workspace_size must be at least what NAME_linear_workspace says, or NAME_linear_workspace_max of any variant"},
    {NULL, NULL},
};

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const linear_geometry g = geometry_of(v);
    kiln_number(s, v, "group_elements", format_group_elements(g.format));
    kiln_number(s, v, "share_bytes", g.share_bytes);
    kiln_require(s, g.rows * g.vectors <= 32, "rows vectors", "rows times vectors is at most 32: registers");
    const bool is_simt = kiln_is(v, "strategy", "simt"), is_half = kiln_is(v, "activation", "half");
    const bool has_simt_defaults = g.vectors == 1 && g.rows == 2 && g.chunk == 65536;
    const bool has_mma_defaults = kiln_int(v, "tile_m") == 8 && kiln_int(v, "tile_n") == 64 &&
                                  kiln_int(v, "k_warps") == 2 && kiln_int(v, "stages") == 2 &&
                                  kiln_int(v, "split_k") == 1;
    const bool is_codes = kiln_is(v, "x", "s8");
    kiln_require(s,
                 g.format->scale_elements > 0 || (kiln_int(v, "group") == 64 && kiln_is(v, "mode", "sym") &&
                                                  kiln_is(v, "nibbles", "low")),
                 "format group mode nibbles",
                 "group and nibbles need format int4 or nf4, mode asym needs int4");
    kiln_require(
        s, !format_has_values(g.format) || (kiln_is(v, "mode", "sym") && !kiln_is(v, "activation", "q8")),
        "format mode activation", "format nf4 needs mode sym and activation exact or half");
    kiln_require(s, !format_has_values(g.format) || !kiln_is(v, "activation", "exact") || g.rows <= 2,
                 "format activation rows", "format nf4 with activation exact has rows up to 2: registers");
    kiln_require(s, is_simt != (is_half || is_codes), "activation strategy x",
                 "activation half and x s8 need strategy mma or tiles, exact and q8 of other x need simt");
    kiln_require(s, !is_codes || kiln_is(v, "activation", "q8"), "activation x", "x s8 needs activation q8");
    kiln_require(s, !is_codes || !g.has_norm, "x norm", "x s8 needs norm none: q8_quantize has the norm");
    kiln_require(s, is_simt || has_simt_defaults, "strategy vectors rows chunk",
                 "vectors, rows and chunk need strategy simt");
    kiln_require(s, !is_simt || has_mma_defaults, "strategy tile_m tile_n k_warps stages split_k",
                 "tile_m, tile_n, k_warps, stages and split_k need strategy mma or tiles");
    kiln_require(s, is_simt || is_codes || !kiln_bool(v, "overlap"), "strategy x overlap",
                 "overlap needs strategy simt or x s8");
    kiln_require(s, !is_half || kiln_type(v, "x") != PTX_F32, "activation x",
                 "activation half needs x f16 or bf16");
    kiln_require(s, !is_half || !g.has_norm, "activation norm",
                 "activation half needs norm none: normalise in a launch before");
    const bool is_one = kiln_int(v, "matrices") == 1;
    kiln_require(s, is_one || kiln_is(v, "epilogue", "none") || kiln_is(v, "epilogue", "bias"),
                 "matrices epilogue",
                 "matrices above 1 need epilogue none or bias: each matrix has its own y");
    kiln_require(s, is_codes || kiln_int(v, "k_warps") != 8, "x k_warps", "k_warps 8 needs x s8");
    linear_shape_mma(s, v, g.format);
    linear_shape_q8(s, v, g.format);
    linear_shape_tiles(s, v, g.format);
    s->least_shared_bytes = s->shared_bytes;
    s->min_sm =
        kiln_type(v, "x") == PTX_BF16 || s->shared_bytes + linear_split_bytes(v) > SHARED_SM_75 ? 80 : 75;
    if (is_simt)
        linear_shape_simt(s, &g);
}

static const kiln_value example[] = {
    {"m", "4"},         {"n", "256"},        {"n_2", "256"},   {"n_3", "256"},
    {"k", "1024"},      {"eps", "1e-5"},     {"w_scale", "1"}, {"w_scale_2", "1"},
    {"w_scale_3", "1"}, {"gate_scale", "1"}, {.arg = NULL},
};

static const kiln_rule advice[] = {
    {"norm == none && activation != half && (x == f16 || x == bf16) && m > 8",
     "activation exact and q8 run on CUDA cores, whatever m is; with f16 and bf16 'activation: half' runs on tensor cores"},
    {"norm == none && x == f32 && m > 8",
     "x in f32 runs on CUDA cores, whatever m is; f16 or bf16 with 'activation: half', and s8, run on tensor cores"},
    {"norm != none && m > 8",
     "a norm in the product runs on CUDA cores, whatever m is; a norm before it and 'activation: half' run on tensor cores"},
    {NULL, NULL}};

/* Terms beyond `accuracy`, which defines the names. */
static const kiln_bound bounds[] = {
    {"code",
     "an integer less the format's offset: 8 of Q4_0 and of int4 with mode sym, 16 of Q5_0, 4 of Q3_K, 32 of Q6_K, 1 of TQ2_0; the value that a code of IQ4_NL or IQ4_XS picks; twice the e2m1 number of MXFP4, whose scale is 2^(e - 128); the value of NF4"},
    {"strategy simt", "L = 8 * ceil(k / 1024) + 5 + ceil(k / chunk), with activation exact 32 more"},
    {"mode asym", "L is 1 more: the minimum is -zero * scale, rounded"},
    {"norm rms", "adds (2^-22 + (L_n / 2 + 4) * 2^-24) * |r|, with L_n = 4 * ceil(k / 1024) + 13"},
    {"activation q8",
     "adds a / 254 * (1 + 2^-9) * sum |w| for each block of 32, with a the largest |h| of the block"},
    {"strategy mma, and x s8",
     "each element has its own L: k_warps (with strategy tiles 1), plus 9 if split_k is not 1, plus c times the number of stages from its stage to its thread block's last. L * S is the sum over elements of L times the element's part of S. With split_k 2 or 4, thread blocks share the stages in order, and the first ones may have one more; with split_k 0 the last stage is k's. If all parts of S are alike, L is about half of the first element's"},
    {"c of strategy mma, and of x s8",
     "a warp's additions in a stage: one for each 32 elements (16 of Q2_K, Q3_K, Q6_K and TQ2_0) of its 1 / k_warps share of the stage, and as many more if the format has minima (Q4_1, Q5_1, Q2_K, Q4_K, Q5_K, int4 with mode asym). A stage is 512 elements with tile_m 8 and 16, 256 with more, and 256 * k_warps with x s8; with x s8 and strategy tiles it is 256 if the format's block or int4's group is 256, else 128"},
    {"strategy mma, x not s8", "adds 40 * 2^-24 * S, for bits that tensor cores cut off"},
    {"strategy mma, format nf4",
     "adds v * S, where v is half an ulp of x's type, to which it rounds the values"},
    {"strategy tiles, x not s8",
     "L = 5 / 4 * k, with 9 more if split_k is not 1. It rounds weights to x's type, which adds v * S + w * sum |h|, where v is half an ulp of that type and w half of its smallest positive number"},
    {"rounding twice", "2 * v * S + w * sum (|code| + 2) * |h| replaces v * S + w * sum |h|"},
    {"bias, residual", "adds 2^-23 * (|r| + |bias| + |residual|)"},
    {"w_scale", "r and S include the factor; adds 2^-24 * |r|"},
    {"a gated pair",
     "the total error is at most u * |y| + |act(r_g)| * e + d * (|r| + e), where e and e_g are the bounds of the products r and r_g, and d = 1.13 * (e_g + 2^-22 * |r_g|) + 2^-20 * |act(r_g)|"},
    {NULL, NULL}};

const kiln_family linear_family = {
    .name = "linear",
    .summary = "multiply rows by GGUF, INT4 or NF4 weights, with a norm before and a sum or gate after",
    .source =
        "GGUF's formats, as the Python package gguf decodes them; int4 and nf4 as int4_quantize and nf4_quantize make them; RMSNorm (arXiv:1910.07467); SwiGLU and GeGLU "
        "(arXiv:2002.05202), GELU's tanh form (arXiv:1606.08415)",
    .accuracy =
        "r is the exact product, S is the sum of |h| * (|scale * code| + |minimum|), where a code is the number that its scale multiplies, and u is half an ulp of y's type. The error of an element of y is at most u * |y| + the smallest positive number of y's type + (L + 8) * 2^-24 * S, plus the terms in the rows below. It holds for finite x if h, the sums and the sums times w_scale are normal numbers, and these and |y| are at most 2^100. An |h| below 2^-90 may count as 0",
    .bounds = bounds,
    .nonfinite =
        "a NaN or an infinity in x makes its row of y NaN; one in gamma, all of y; one in a scale, minimum or zero of "
        "a matrix, its column of y. A row of zeros with eps 0 makes its row of y NaN. With strategy tiles, a weight that is infinite "
        "in x's type (in f16 from 65520 on) makes its column NaN; with rounding twice, so does such a scale or minimum",
    .params = params,
    .args = args,
    .rules = rules,
    .example = example,
    .advice = advice,
    .empty = "m == 0 || n == 0",
    .numbers = "group_elements share_bytes stage_elements",
    .shape = shape,
    .workspace = &workspace,
    .grid = {GRID, "select(split_k == 0, 1, " VECTOR_TILES ")", "max(1, split_k)"},
    .shared_bytes = SHARED,
    .time = {.length = "select(" IS_MMA ", " PART_K ", min(k, chunk))",
             .repeats = "select(" IS_MMA ", 1, " LINEAR_REPEATS(ROWS_HERE) ")",
             /* mma: a trip per row of y in a warp */
             .side_trips =
                 "select(" IS_MMA
                 ", ceil_div(min(m, tile_m), select(strategy == mma, k_warps, 1)), " LINEAR_SIDE_TRIPS(
                     ROWS_HERE) ")",
             /* a load from memory takes 1600 cycles beside others; with fewer stages it begins later */
             .wait = "select(" IS_MMA ", 1600 / stages, 400)",
             .extra = "select(" IS_MMA ", " GUESSED_JOIN ", " LINEAR_EXTRA(ROWS_HERE) ")",
             .block_bytes =
                 "select(" IS_MMA ", (tile_n * (" W_256_BYTES " + select(" HAS_ARRAYS
                 ", 256 / group * select(mode == asym, 8, 4), 0)) + tile_m * " X_256_BYTES ") * " PART_K
                 " / 256, " ROWS_HERE " * (" ROW_BYTES " + " ROW_NUMBERS ") + vectors * k * 4)"},
    .cost = {.bytes_read = W_ROWS
             " * (" ROW_BYTES " + " ROW_NUMBERS ") + m * (" X_ROW_BYTES ") + select(norm == rms, 4 * k, 0) + "
             "select(y == f32, 4, 2) * (select(" HAS_BIAS ", " COLUMNS ", 0) + select(" HAS_RESIDUAL
             ", m * n, 0))",
             .bytes_written = "m * (" COLUMNS ") * select(y == f32, 4, 2)",
             .elements = "(" W_ROWS ") * k"},
    .min_sm = 75,
    .emit = emit,
};
