/* nf4_gemm_transposed: a matrix times transposed NF4 weights, C[m,k] = A[m,n] * B[k,n]^T. It is the gradient of nf4_gemm
 * with respect to its input, and takes B in the same layout.
 *
 * BYTES. A thread block has the same 512 along K of all columns: of each column 256 bytes of codes and 32 of scales. Where K
 * is no multiple of 512, the scales of half of the columns or more start within a sector of 32 bytes. Then a thread block
 * reads two sectors for its 32 bytes: 1.058 times the weights' bytes at K = 6912. Moving the tile along K does not help,
 * since it is the same for all columns. The neighbouring thread block reads the rest of such a sector when it comes to the
 * same column: one of the two reads hits the L2 cache, and memory moves each sector once.
 */
#include "nf4_gemm_transposed.h"

#include "device/shared.h"
#include <kiln/author/families.h>

/* clang-format off */
#define NONFINITE                                                                                                      \
    "IEEE arithmetic: a NaN or an infinity in a row of A, or in a scale, makes the elements that it " \
    "contributes to NaN or infinite. So does a product of A and a scale that overflows f32 (with mma " \
    "in bf16: bf16), and with scales normal a scale above 65504. Other elements do not change"

static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "a", "f32 f16 bf16", "f16", "element type of A and C"),
    PARAM(WORD, CONTRACT, "acc", "f32 f64", "f32", "type of products and sums; f64 needs A in f32"),
    NIBBLES_PARAM,
    PARAM(WORD, TUNING, "strategy", "simt mma", "simt",
          "simt: CUDA cores; mma: tensor cores, for A in f16 and, from sm_80 on, bf16"),
    PARAM(INT, TUNING, "tile_m", "1 2 4 8 16 32 64", "1",
          "rows of C per thread block, which reads the weights once; simt: at most 8; mma: at least 8"),
    PARAM(INT, TUNING, "k_warps", "4 8 16", "8", "warps per thread block; simt: they share n; mma: there are 8, which share k"),
    PARAM(INT, TUNING, "split_k", "1 2 4 8 16 32", "1", "thread blocks that share n; more than one need a workspace"),
    PARAM(INT, TUNING, "vector", "1 8", "1", "mma: elements of A per load; 8 needs an n that is a multiple of 8"),
    PARAM(WORD, TUNING, "table", "compact aligned", "compact",
          "of decoded bytes; aligned takes 66 KB of shared memory and saves an instruction per two weights"),
    PARAM(WORD, TUNING, "scales", "any normal", "any",
          "mma with A in f16: any multiplies in tf32, from sm_80 on; normal multiplies in f16, where the caller sets normal_scales"),
    {.name = NULL},
};

#define TILES     "ceil_div(m, tile_m) * ceil_div(k, 512)"
#define WORKSPACE TILES " * split_k * tile_m * 512"

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$a", "m, n", 16, NULL, "A, row by row"},
    {"packed", KILN_ARG_IN, "u8", "n, k / 2", 16, NULL, "two codes per byte, along K; column after column"},
    {"scale", KILN_ARG_IN, "f32", "n, k / 64", 4, NULL, "scale of each 64 weights along K of a column"},
    {"out", KILN_ARG_OUT, "$a", "m, k", 16, NULL, "C, row by row"},
    {"workspace", KILN_ARG_SCRATCH, "$acc", "workspace_size", 16, "split_k != 1",
     "partial sums over n; workspace and tile_counters belong to one launch at a time"},
    {"tile_counters", KILN_ARG_INOUT, "u32", "workspace_size / 512", 4, "split_k != 1",
     "must be all 0 before a launch, or C is wrong; the launch leaves them 0; one launch at a time"},
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of A and C"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of A; what the product sums over"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of C"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "numbers that workspace holds; tile_counters has one for each 512 of them; 0: neither is given, "
                                                             "and n is not split. 32 * (m + 32) * (k + 512) are enough for any tiles"},
    {"normal_scales", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "1: every scale is 0 or a normal number of f16, 2^-14 to 65504, so "
                                                            "that tensor cores may take f16 products; 0: any scales"},
    {.name = NULL},
};

static const kiln_workspace workspace = {"workspace", "tile_counters", "workspace_size", WORKSPACE, NULL};

static const kiln_rule rules[] = {
    {"k % 64 == 0", "k must be a multiple of 64"},
    {"m <= 65535", "m must be at most 65535"},
    {"n <= 2147483648", "n must be at most 2^31"},
    {"k <= 2147483648", "k must be at most 2^31"},
    {"vector == 1 || n % 8 == 0", "n must be a multiple of 8"},
    {"split_k == 1 || workspace_size >= " WORKSPACE, "workspace_size must be at least " WORKSPACE},
    {"normal_scales <= 1", "normal_scales must be 0 or 1"},
    {"scales == any || normal_scales == 1", "normal_scales must be 1"},
    {NULL, NULL},
};

/* Columns of a thread block's part of n. */
#define PART_N "ceil_div(n, split_k)"
/* clang-format on */

static void shape(kiln_shape *s, const kiln_variant *v)
{
    enum { MOST_LANE_SUMS = 4096 /* words, by k_warps and lanes */ };
    const bool is_mma = kiln_is(v, "strategy", "mma"), is_f32 = kiln_is(v, "a", "f32"),
               is_f16 = kiln_is(v, "a", "f16");
    const bool is_aligned = kiln_is(v, "table", "aligned"), is_any = kiln_is(v, "scales", "any");
    const bool has_f32_sums = kiln_is(v, "acc", "f32");
    const uint32_t tile_m = kiln_int(v, "tile_m"), k_warps = kiln_int(v, "k_warps");
    const uint32_t wide_bytes = has_f32_sums ? 4 : 8, lane_k = tile_m * wide_bytes <= 16 ? 32 : 16;
    (is_mma ? nf4_gemm_transposed_shape_mma : nf4_gemm_transposed_shape_simt)(s, v);
    s->min_sm = is_aligned || (is_mma && is_any) ? 80 : 75;
    /* clang-format off */
    kiln_require(s, has_f32_sums || is_f32, "a acc", "acc f64 needs a f32");
    kiln_require(s, !is_mma || !is_f32, "a strategy", "strategy mma needs a f16 or bf16");
    kiln_require(s, !is_mma || tile_m >= 8, "strategy tile_m", "strategy mma needs tile_m of at least 8");
    kiln_require(s, !is_mma || k_warps == 8, "strategy k_warps", "strategy mma needs k_warps 8");
    kiln_require(s, !is_mma || tile_m <= 32 || kiln_int(v, "split_k") == 1, "strategy tile_m split_k",
                 "strategy mma with split_k above 1 needs tile_m of at most 32: registers");
    kiln_require(s, is_mma || tile_m <= 8, "strategy tile_m", "strategy simt needs tile_m of at most 8: registers");
    kiln_require(s, is_mma || kiln_int(v, "vector") == 1, "strategy vector", "vector 8 needs strategy mma");
    kiln_require(s, is_any || (is_mma && is_f16), "a strategy scales", "scales normal needs strategy mma and a f16");
    kiln_require(s, s->shared_bytes <= (is_aligned ? SHARED_SM_86 : SHARED_SM_75), "acc strategy tile_m k_warps table",
                 "tile_m and k_warps fit 64 KB of shared memory, with table aligned 99 KB");
    kiln_require(s, has_f32_sums || tile_m <= 4, "acc tile_m", "acc f64 needs tile_m of at most 4: registers");
    kiln_require(s, is_mma || (k_warps * tile_m * lane_k * wide_bytes <= MOST_LANE_SUMS && (tile_m == 1 || k_warps <= 8)),
                 "acc strategy tile_m k_warps", "tile_m and k_warps fit the registers of a multiprocessor");
    /* clang-format on */
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    if (kiln_is(v, "strategy", "mma"))
        nf4_gemm_transposed_emit_mma(f, v);
    else
        nf4_gemm_transposed_emit_simt(f, v);
    ptx_param(f, PTX_U32, "normal_scales"); /* for the rules */
}

const kiln_family nf4_gemm_transposed_family = {
    .name = "nf4_gemm_transposed",
    .summary = "multiply a matrix by transposed NF4 weights: C[m,k] = A[m,n] * B[k,n]^T",
    .source = "QLoRA (arXiv:2305.14314)",
    .accuracy =
        "let S be the sum of the magnitudes of an element's products. The error is at most (L + 3) * 2^-24 "
        "* S, plus one rounding to a 16-bit type, where L = 16 * ceil(ceil(n / 16) / (k_warps * split_k)) "
        "+ 2 * k_warps + split_k. With acc f64 it is at most 2^-24 of the element plus (L + 3) * 2^-53 * "
        "S. With mma it is at most (2 * u + (L + 3) * 2^-24) * S, plus one rounding, where u is half an "
        "ulp of the type, L = 1.5 * min(c, 1024) + ceil(c / 1024) + split_k and c = 32 * ceil(ceil(n / 32) "
        "/ split_k). This holds where nothing overflows. Products and sums that are not normal numbers of "
        "f32 add 2^-150 * (2 * n + 1), and half of the least number of C's type. With t the table's entry, "
        "scales normal adds 2^-25 * sum |a| * (2 + |t|), and mma in bf16 adds 2^-134 * sum |t| * (2 + |a|)",
    .nonfinite = NONFINITE,
    .params = params,
    .args = args,
    .workspace = &workspace,
    .rules = rules,
    .empty = "m == 0 || k == 0",
    .shape = shape,
    .grid = {"ceil_div(k, 512)", "ceil_div(m, tile_m)", "split_k"},
    .time = {.length = PART_N,
             .wait = "select(strategy == simt, 600, 300)",
             .block_bytes = PART_N " * (288 + tile_m * select(a == f32, 4, 2))",
             .extra = "select(split_k == 1, 0, 2500 + split_k * tile_m * 32)"},
    .cost = {.bytes_read = "select(a == f32, 4, 2) * m * n + n * (k / 2) + 4 * n * (k / 64)",
             .bytes_written = "select(a == f32, 4, 2) * m * k",
             .elements = "m * n * k"},
    .min_sm = 75,
    .emit = emit,
};
