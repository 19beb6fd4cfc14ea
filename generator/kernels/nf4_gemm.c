/* nf4_gemm: a matrix times NF4 weights, C[m,n] = A[m,k] * B[k,n]. */
#include "nf4_gemm.h"
#include "sharing.h"

#include "device/shared.h"
#include <kiln/author/families.h>

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "a", "f32 f16 bf16", "f16", "element type of A and C"),
    PARAM(WORD, CONTRACT, "acc", "f32 f64", "f32", "type of products and sums; f64 needs A in f32"),
    NIBBLES_PARAM,
    NF4_SCALE_TYPE_PARAM,
    PARAM(WORD, CONTRACT, "rows", "packed strided", "packed",
          "layout of rows of A and C\npacked: one after the other; strided: a_stride and c_stride apart", .numbers = "1 2", .is_later = true),
    PARAM(WORD, TUNING, "strategy", "simt mma tiles", "simt",
          "simt: CUDA cores; mma: tensor cores, for f16 and bf16; tiles: the same for many rows, from sm_80 on"),
    PARAM(INT, TUNING, "tile_m", "1 2 4 8 16 32 64 128", "1",
          "rows of C per thread block; the weights are read once for each such tile; simt: 16 and 32 need A in f32"),
    PARAM(INT, TUNING, "tile_n", "16 32 64 128", "16",
          "columns of C per thread block; A is read once for each such tile"),
    PARAM(INT, TUNING, "k_warps", "1 2 4 8 16", "8", "warps per thread block that split K"),
    PARAM(WORD, TUNING, "table", "compact aligned", "compact",
          "table of decoded bytes in shared memory; compact takes 32 KB, and simt with tile_m 16 and 32 has none; aligned takes 65 KB and saves an instruction per byte"),
    PARAM(INT, TUNING, "stages", "2 4", "2",
          "stages of A in shared memory; mma: all but one are being loaded; tiles: half of them"),
    PARAM(INT, TUNING, "split_k", "0 1 2 4 8 16", "1",
          "mma and tiles: thread blocks that share K; 0: as many as the device runs at once, with equal shares of the work; the last bits of C then depend on its number of multiprocessors; all but 1 need a workspace"),
    {.name = NULL},
};

/* Elements of a matrix; 0 without rows or columns. */
#define SPAN(stride, columns)                                                                                          \
    "select(rows == packed, m * " columns ", select(m * " columns " == 0, 0, (max(m, 1) - 1) * " stride " + " columns "))"

#define TILE_COUNT   "ceil_div(m, tile_m) * ceil_div(n, tile_n)"
#define GUESSED_SHARERS "320"

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$a", SPAN("a_stride", "k"), 16, NULL, "A, row by row"},
    {"packed", KILN_ARG_IN, "u8", "n, k / 2", 16, NULL, "two codes per byte, along K\ncolumn after column"},
    {"scale", KILN_ARG_IN, "f32", "n, k / 64", 4, "scale_type == f32", "scale of each 64 weights along K of a column"},
    NF4_NESTED_ARGS("n, k / 64", "ceil_div(n * (k / 64), 256)"),
    {"out", KILN_ARG_OUT, "$a", SPAN("c_stride", "n"), 2, NULL, "C, row by row"},
    SHARING_ARGS("K", "f32", "32", "C"),
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of A and C"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of C"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of A"},
    {"a_stride", KILN_ARG_VALUE, "u32", NULL, 0, "rows == strided", "elements of A from row to row"},
    {"c_stride", KILN_ARG_VALUE, "u32", NULL, 0, "rows == strided", "the same for C\ngaps between rows are unchanged"},
    NF4_NESTED_OFFSET,
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of workspace; 0: none, and K is not split\ntile_counters has one for each 32 of them. 16 * (m + 64) * (n + 128) are enough for any tiles"},
    {.name = NULL},
};

static const kiln_workspace workspace = {"workspace", "tile_counters", "workspace_size", WORKSPACE, NULL};

static const kiln_rule rules[] = {
    NF4_SIZE_RULES,
    {"rows == packed || (a_stride >= k && a_stride % 8 == 0)", "a_stride must be at least k and a multiple of 8"},
    {"rows == packed || c_stride >= n", "c_stride must be at least n"},
    {"strategy != tiles || k <= 16777216", "with strategy tiles k must be at most 2^24"},
    {"strategy != tiles || rows == packed || a_stride <= 16777216", "with strategy tiles a_stride must be at most 2^24"},
    {"split_k != 0 || (k > 0 && " TILE_COUNT " <= 2147483648 / max(1, k / 64))",
     "split_k 0 needs k above 0, and at most 2^31 quantised blocks of 64 in all tiles together"},
    {"split_k == 1 || workspace_size >= " WORKSPACE, "workspace_size must be at least " WORKSPACE},
    {NULL, NULL},
};

#define IS_SIMT "strategy == simt"

/* Strategy simt launches as many persistent thread blocks as fit. */
#define TILES_N     "ceil_div(n, tile_n)"
#define IS_PERSISTENT "(" IS_SIMT " && tile_m < 16)"
#define GRID_N      "select(" IS_PERSISTENT ", min(" TILES_N ", " AT_ONCE "), select(split_k == 0, " SHARING ", " TILES_N "))"

/* A thread block's part of K, and its tiles. */
#define PART_K "select(split_k == 0, 64 * ceil_div(" TILE_COUNT " * (k / 64), max(1, " SHARING ")), ceil_div(k, max(1, split_k)))"
#define TILES  "select(" IS_PERSISTENT ", ceil_div(" TILES_N ", " AT_ONCE "), 1)"

/* Shared memory leaves 28 KB of L1 cache, or 60, or more. A load of mma's codes holds eight lines of it until they arrive, so
 * a smaller cache has fewer loads in flight: on an H100 such kernels take 1.2 to 1.5 times as long, or 1.1 times. */
#define TAKEN "blocks_per_multiprocessor * (shared_bytes + 1024)"
#define L1_SLOWS                                                                                                       \
    "select(strategy != mma, 1, select(" TAKEN " > max(32768, multiprocessor_shared_bytes) - 32768, 3, "               \
    "select(" TAKEN " > max(65536, multiprocessor_shared_bytes) - 65536, 2, 1)))"

/* Bytes of scales; and of 64 weights with their scales. */
#define SCALE_BYTES  "select(scale_type == f32, 4 * n * (k / 64), " NF4_NESTED_BYTES_READ("n * (k / 64)") ")"
#define COLUMN_BYTES "select(scale_type == f32, 36, 33)"
/* clang-format on */

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const bool is_simt = kiln_is(v, "strategy", "simt"), is_f32 = kiln_is(v, "a", "f32");
    const bool is_compact = kiln_is(v, "table", "compact"), has_f32_sums = kiln_is(v, "acc", "f32");
    const uint32_t tile_m = kiln_int(v, "tile_m"), tile_n = kiln_int(v, "tile_n"),
                   k_warps = kiln_int(v, "k_warps");
    const bool is_wide = tile_m >= 16;
    kiln_require(s, has_f32_sums || is_f32, "a acc", "acc f64 needs a f32");
    kiln_require(s, 32 * k_warps <= 1024, "k_warps", "a thread block has at most 1024 threads");
    nf4_gemm_shape_mma(s, v);
    if (is_simt) {
        (is_wide ? nf4_gemm_shape_wide : nf4_gemm_shape_simt)(s, v);
        s->min_sm = s->shared_bytes > SHARED_SM_75 ? 80 : 75;
    }
    kiln_require(s, !is_simt || (tile_m <= 32 && tile_n <= 64 && k_warps >= 4),
                 "strategy tile_m tile_n k_warps",
                 "strategy simt needs tile_m of at most 32, tile_n of at most 64 and k_warps of at least 4");
    kiln_require_shared_bytes(s, is_simt && is_compact ? s->shared_bytes : 0, SHARED_SM_75,
                              "a acc strategy tile_m tile_n k_warps table",
                              "tile_m, tile_n and k_warps with table compact");
    kiln_require_shared_bytes(s, is_simt && !is_compact ? s->shared_bytes : 0, SHARED_SM_86,
                              "a acc strategy tile_m tile_n k_warps table",
                              "tile_m, tile_n and k_warps with table aligned");
    kiln_require(s, has_f32_sums || is_compact, "acc table", "acc f64 needs table compact");
    kiln_require(
        s, !is_simt || is_wide || tile_n == 16 || (tile_n == 32 && tile_m <= 4 && has_f32_sums),
        "acc strategy tile_m tile_n",
        "strategy simt with tile_m up to 8 needs tile_n 16, or 32 with tile_m up to 4 and acc f32: registers");
    kiln_require(s, has_f32_sums || tile_m <= 4, "acc tile_m",
                 "acc f64 needs tile_m of at most 4: registers");
    kiln_require(s, !is_simt || is_wide || tile_m * k_warps <= 32, "strategy tile_m k_warps",
                 "tile_m and k_warps must fit the registers of a multiprocessor");
    kiln_require(
        s, !is_simt || !is_wide || (is_f32 && is_compact && tile_n >= 32 && k_warps <= 8),
        "a strategy tile_m tile_n k_warps table",
        "strategy simt with tile_m of at least 16 needs a f32, table compact, tile_n 32 or 64, and k_warps 4 or 8");
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    if (!kiln_is(v, "strategy", "simt"))
        nf4_gemm_emit_mma(f, v);
    else
        (kiln_int(v, "tile_m") >= 16 ? nf4_gemm_emit_wide : nf4_gemm_emit_simt)(f, v);
}

static const kiln_dense dense[] = {
    {"in", "m, k", "", "rows == packed"},
    {"out", "m, n", "", "rows == packed"},
    {"in", "m, k", "a_stride", "rows == strided"},
    {"out", "m, n", "c_stride", "rows == strided"},
    {.args = NULL},
};

/* Terms beyond `accuracy`, which defines the names. */
static const kiln_bound bounds[] = {
    {"strategy simt",
     "(L + 3) * 2^-24 * S, with L = 34 + k_warps + ceil(ceil(k / 256) / k_warps), and from tile_m 16 on L = 63 + k_warps + ceil(ceil(k / 64) / k_warps)"},
    {"acc f64", "2^-24 of the element plus (L + 3) * 2^-53 * S, with the same L"},
    {"strategy mma",
     "(u + 5 * 2^-20 + (L + 3) * 2^-24) * S, with L = k_warps + split_k + ceil(ceil(k / 64) / (k_warps * split_k)), or with split_k 0 L = k_warps + 9 + ceil(ceil(k / 64) / k_warps)"},
    {"strategy tiles",
     "as mma, except in bf16 with tile_m 128: there scaled weights are also rounded, and the bound is (2 * u + 4 * u^2 + (L + 3) * 2^-24) * S + 3 * 2^-134 * sum |A| + 2^-149 * k, with L = 5 / 4 * k"},
    {NULL, NULL}};

const kiln_family nf4_gemm_family = {
    .name = "nf4_gemm",
    .summary = "multiply a matrix by NF4 weights: C[m,n] = A[m,k] * B[k,n]",
    .source = "QLoRA (arXiv:2305.14314)",
    .accuracy =
        "let S be the sum of the magnitudes of an element's products, and u half an ulp of C's type. The error is at most what the variant's row says, plus one rounding to a 16-bit type. This holds if nothing overflows; products and sums that are not normal numbers of f32 add 2^-150 * (k + 1 + sum |scale|), and half the smallest subnormal of C's type",
    .bounds = bounds,
    .nonfinite =
        "IEEE arithmetic: a NaN or an infinity in A or in a scale makes the elements that it "
        "contributes to NaN or infinite; other rows and columns do not change. Up to 64 products with the "
        "codes' values are added before the scale is applied. That sum does not overflow if |A| is "
        "below 2^122, whatever the scale (in f16, and with acc f64, for any A). With strategy tiles in bf16 with tile_m 128, the scale multiplies each weight first; a scale of 0x1.ffp127 or more becomes infinite",
    .params = params,
    .args = args,
    .workspace = &workspace,
    .rules = rules,
    .dense = dense,
    .example = nf4_example,
    .empty = "m == 0 || n == 0",
    .shape = shape,
    .grid = {GRID_N, "select(split_k == 0, 1, ceil_div(m, tile_m))", "max(1, split_k)"},
    .time = {.length = PART_K,
             .repeats = TILES,
             .side_trips = "select(" IS_SIMT " || split_k != 1, 0, ceil_div(min(m, tile_m), k_warps))",
             .wait = "select(" IS_SIMT ", 600, 200)",
             .block_bytes = TILES " * " PART_K " * (tile_n * " COLUMN_BYTES " * " L1_SLOWS
                                  " / 64 + tile_m * select(a == f32, 4, 2))",
             .extra = GUESSED_JOIN},
    .cost = {.bytes_read = "select(a == f32, 4, 2) * m * k + n * (k / 2) + " SCALE_BYTES,
             .bytes_written = "select(a == f32, 4, 2) * m * n",
             .elements = "m * n * k"},
    .min_sm = 75,
    .emit = emit,
};
