/* y = W * h, with W in GGUF's Q4_K and h = x * rsqrt(mean(x^2) + eps) * gamma, for 1 to 8 vectors x: the kernel of linear on
 * CUDA cores (linear.c), with the number of vectors fixed.
 */
#include "descriptor.h"
#include "linear.h"
#include <kiln/author/families.h>

static linear_geometry geometry_of(const kiln_variant *v)
{
    return linear_plan((linear_geometry){.format = format_named("q4_k"),
                                         .rows = kiln_int(v, "rows"),
                                         .vectors = kiln_int(v, "batch"),
                                         .chunk = kiln_int(v, "chunk"),
                                         .is_q8 = kiln_is(v, "activation", "q8"),
                                         .has_norm = kiln_is(v, "norm", "rms")});
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    linear g = {.of = geometry_of(v),
                .f = f,
                .x_type = kiln_type(v, "x"),
                .y_type = kiln_type(v, "y"),
                .has_all_vectors = true,
                .matrices = 1,
                .column_rows = 1};
    g.in = ptx_param_ptr(f, g.x_type, "in");
    if (g.of.has_norm)
        g.gamma = ptx_param_ptr(f, PTX_F32, "gamma");
    g.w[0] = ptx_param_ptr(f, PTX_U8, "w");
    g.out[0] = ptx_param_ptr(f, g.y_type, "out");
    g.n[0] = ptx_param(f, PTX_U32, "n");
    g.k = ptx_param(f, PTX_U32, "k");
    if (g.of.has_norm)
        g.eps = ptx_param(f, PTX_F32, "eps");
    linear_emit_simt(&g);
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "norm", "rms none", "rms", "rms: h = x * rsqrt(mean(x^2) + eps) * gamma; none: h = x", .numbers = "1 2"),
    PARAM(WORD, CONTRACT, "x", "f32 f16 bf16", "f32", "element type of x; gamma is f32"),
    PARAM(WORD, CONTRACT, "activation", "exact q8", "exact",
          "how products are made\nexact: products in f32; q8: h in blocks of 32, rounded to whole multiples of max|h| / 127", .numbers = "1 2"),
    PARAM(INT, CONTRACT, "batch", NULL, "1", "vectors", .min = 1, .max = LINEAR_MOST_VECTORS, .step = 1),
    PARAM(WORD, CONTRACT, "y", "f32 f16 bf16", "f32", "element type of y"),
    PARAM(INT, TUNING, "rows", "1 2 4", "4", "rows of w that a warp computes at once"),
    PARAM(INT, TUNING, "chunk", "1024 2048 8192 65536", "65536", "elements of each vector in shared memory at once"),
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$x", "batch, k", 16, NULL, "x: the vectors, one after the other"},
    {"gamma", KILN_ARG_IN, "f32", "k", 16, "norm == rms", "factor of each element"},
    {"w", KILN_ARG_IN, "u8", "n, k / 256 * 144", 16, NULL, "rows of Q4_K super-blocks, as a GGUF file has them"},
    {"out", KILN_ARG_OUT, "$y", "batch, n", 4, NULL, "y: the products, vector by vector"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of w"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row"},
    {"eps", KILN_ARG_VALUE, "f32", NULL, 0, "norm == rms", "added to the mean of the squares; at least 0 and finite"},
    {.name = NULL},
};
/* clang-format on */

static const kiln_rule rules[] = {
    {"k % 256 == 0", "k must be a multiple of 256"},
    {"k >= 256 && k <= 1048576", "k must be from 256 to 2^20"},
    {"n <= 16777216", "n must be at most 2^24"},
    {"norm != rms || (!negative(eps) && finite(eps))", "eps must be at least 0 and finite"},
    {NULL, NULL},
};

/* shared_bytes assumes a whole chunk; a smaller k needs less. */
#define SHARED "shared_bytes - (chunk - min(k, chunk)) / group_elements * share_bytes"

/* As many thread blocks as give each warp a group of rows, at most as many as fit the device at once: more would only compute
 * h again. */
#define GRID      "min(ceil_div(n, 8 * rows), multiprocessors * blocks_per_multiprocessor)"
#define ROWS_HERE "ceil_div(n, " GRID ")"

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const linear_geometry g = geometry_of(v);
    kiln_number(s, v, "group_elements", format_group_elements(g.format));
    kiln_number(s, v, "share_bytes", g.share_bytes);
    kiln_require(s, g.rows * g.vectors <= 32, "batch rows", "rows times batch is at most 32: registers");
    linear_shape_simt(s, &g);
}

static const kiln_value example[] = {{"n", "256"}, {"k", "1024"}, {"eps", "1e-5"}, {.arg = NULL}};

/* Terms beyond `accuracy`, which defines the names. */
static const kiln_bound bounds[] = {
    {"activation exact", "L is 32 more"},
    {"activation q8",
     "adds scale / 2 * (1 + 2^-9) * sum |w| for each block of 32, where a scale is at least 2^-118 / 127; with the norm that least scale may be as large as 2^-106 / 127 (x in f16: 2^-94 / 127). It holds for |h| up to 2^111"},
    {NULL, NULL}};

const kiln_family rmsnorm_q4k_gemv_family = {
    .name = "rmsnorm_q4k_gemv",
    .summary = "normalise vectors and multiply them by GGUF Q4_K weights",
    .source = "RMSNorm (arXiv:1910.07467); GGUF's Q4_K, as the Python package gguf decodes it",
    .accuracy =
        "let r be the exact element, S the sum of |h| * (|d| * scale * code + |dmin| * minimum), u half an ulp of y's type, L_n = 4 * ceil(k / 1024) + 13 and L = 4 * ceil(k / min(chunk, 2048)) + 5 + ceil(k / chunk). The error of an element of y is at most u * |r| + (2^-22 + (L_n / 2 + 3) * 2^-24) * |r| + (L + 6) * 2^-24 * S. This holds for every finite x while h, sums and y are normal numbers (a denormal x * r or h is also off by half of the least denormal)",
    .bounds = bounds,
    .nonfinite =
        "a NaN or an infinity in h makes its vector's y NaN; one in d or dmin its row's y. With norm rms, one "
        "in x or gamma makes h NaN; so does a zero vector with eps 0",
    .params = params,
    .example = example,
    .args = args,
    .rules = rules,
    .empty = "n == 0",
    .numbers = "group_elements share_bytes",
    .shape = shape,
    .grid = {GRID},
    .shared_bytes = SHARED,
    .time = {.length = "min(k, chunk)",
             .repeats = LINEAR_REPEATS(ROWS_HERE),
             .side_trips = LINEAR_SIDE_TRIPS(ROWS_HERE),
             /* cycles until a trip's weights arrive from memory */
             .wait = "800",
             .extra = LINEAR_EXTRA(ROWS_HERE),
             .block_bytes = ROWS_HERE " * k * 9 / 16 + batch * k * 4"},
    .cost = {.bytes_read =
                 "n * (k / 256) * 144 + batch * k * select(x == f32, 4, 2) + select(norm == rms, 4 * k, 0)",
             .bytes_written = "batch * n * select(y == f32, 4, 2)",
             .elements = "n * k"},
    .min_sm = 75,
    .emit = emit,
};
