/* nvfp4_gemv: NVFP4 matrices times an NVFP4 vector each, c[m,l] = sum over k of A[m,k,l] * b[k,l]. */
#include "descriptor.h"
#include "nvfp4.h"
#include <kiln/author/families.h>

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "c", "f16 bf16 f32", "f16", "element type of c"),
    PARAM(WORD, CONTRACT, "scale_layout", "rows tiles_128x4", "rows",
          "layout of sfa and sfb\nrows: row after row; tiles_128x4: as cuBLAS and CUTLASS have them, padded to tiles of 128 rows and 4 scales", .numbers = "1 2", .is_later = true),
    PARAM(BOOL, CONTRACT, "global_scale", NULL, "false", "whether c is multiplied by alpha", .is_later = true),
    PARAM(WORD, TUNING, "decode", "software hardware", "software",
          "hardware: the instruction cvt from e2m1, which the a and f targets from sm_100 on have; the results are the same"),
    PARAM(WORD, TUNING, "strategy", "simt mma", "simt", "simt: CUDA cores; mma: tensor cores, for a k that is a multiple of 512"),
    PARAM(INT, TUNING, "lane_codes", "32 16", "32",
          "codes of a row that a lane reads at once; 16 serves a k that is not a multiple of 32"),
    PARAM(INT, TUNING, "rows", "1 2 4 16 32", "4",
          "rows per warp, or per group of warps that share them; simt: at most 4; mma: 16 or 32"),
    PARAM(INT, TUNING, "k_warps", "1 2 4 8", "1",
          "warps that share rows and split k; a thread block has 8 / k_warps * rows rows"),
    {.name = NULL},
};

#define VECTOR_ROWS "select(b_rows == 0, 128, b_rows)"

#define IS_TILED "scale_layout == tiles_128x4"
#define SCALES(rows) "l, select(" IS_TILED ", ceil_div(" rows ", 128) * 128, " rows "), " \
                     "select(" IS_TILED ", ceil_div(k, 64) * 4, k / 16)"

static const kiln_arg args[] = {
    {"a", KILN_ARG_IN, "u8", "l, m, k / 2", 16, NULL, "matrices: two codes per byte along k\nthe low nibble first"},
    {"sfa", KILN_ARG_IN, "u8", SCALES("m"), 16, NULL, "e4m3 scale of each 16 codes of a"},
    {"b", KILN_ARG_IN, "u8", "l, " VECTOR_ROWS ", k / 2", 16, NULL, "vectors: each is the first of b_rows rows"},
    {"sfb", KILN_ARG_IN, "u8", SCALES(VECTOR_ROWS), 2, NULL, "e4m3 scale of each 16 codes of b"},
    {"out", KILN_ARG_OUT, "$c", "l, m", 2, NULL, "c; a value beyond its type becomes an infinity"},
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of a matrix"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of a matrix"},
    {"l", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "matrices"},
    {"b_rows", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of b per vector; 0: 128\nthe vector is the first row, the others are padding; 1: no padding"},
    {"alpha", KILN_ARG_VALUE, "f32", NULL, 0, "global_scale", "what c is multiplied by\n1 over the product of both tensors' global_scale, if fp4_quantize made them"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"k % 16 == 0", "k must be a multiple of 16"},
    {"k % lane_codes == 0", "k must be a multiple of lane_codes"},
    {"strategy == simt || k % 512 == 0", "k must be a multiple of 512"},
    {"m <= 2147483648", "m must be at most 2^31"},
    {"k <= 2147483648", "k must be at most 2^31"},
    {"l <= 2147483648", "l must be at most 2^31"},
    {NULL, NULL},
};

/* A thread block takes every 256th vector: 2048 warps have enough loads in flight for any device. A grid is limited to 65535. */
#define GRID_Y      "min(l, 256)"
/* The thread blocks that fit the device share a vector's rows, in passes. */
#define PASS_ROWS   "(8 / k_warps * rows)"
#define ALL_ROWS    "select(" IS_TILED ", ceil_div(m, 128) * 128, m)"
#define GRID_X      "min(ceil_div(" ALL_ROWS ", " PASS_ROWS "), max(1, multiprocessors * blocks_per_multiprocessor / max(1, " GRID_Y ")))"
#define SHARE       "ceil_div(" ALL_ROWS ", max(1, " GRID_X "))"
#define PASSES      "ceil_div(" SHARE ", " PASS_ROWS ")"

/* Vectors of a thread block. */
#define VECTORS     "ceil_div(l, 256)"
/* clang-format on */

/* b is decoded in chunks; the last may be smaller. */
static void shape(kiln_shape *s, const kiln_variant *v)
{
    const bool is_mma = kiln_is(v, "strategy", "mma"), is_hardware = kiln_is(v, "decode", "hardware");
    const uint32_t rows = kiln_int(v, "rows"), lane_codes = kiln_int(v, "lane_codes");
    const nvfp4_chunk chunk = (is_mma ? nvfp4_mma_chunk : nvfp4_simt_chunk)(v);
    kiln_require(s, is_mma || rows <= 4, "strategy rows", "strategy simt needs rows 1, 2 or 4");
    kiln_require(s, !is_mma || rows >= 16, "strategy rows", "strategy mma needs rows 16 or 32");
    kiln_require(s, !is_mma || lane_codes == 32, "strategy lane_codes", "strategy mma needs lane_codes 32");
    s->block[0] = NVFP4_THREADS;
    kiln_number(s, v, "zero_bytes", chunk.zero_bytes);
    kiln_number(s, v, "part_bytes", chunk.part_bytes);
    kiln_number(s, v, "part_codes", chunk.part_codes);
    s->shared_bytes = chunk.zero_bytes + NVFP4_DEPTH / chunk.part_codes * chunk.part_bytes;
    s->least_shared_bytes = chunk.zero_bytes;
    s->trip = chunk.trip;
    s->loop_warps = kiln_int(v, "k_warps");
    s->min_sm = is_hardware ? 100 : is_mma ? 80 : 75;
    s->is_specific = is_hardware;
    /* without a limit, ptxas spills a little to fit one more thread block */
    if (is_mma)
        s->blocks_per_multiprocessor = rows == 16 ? 2 : 1;
    else if (rows == 4)
        s->blocks_per_multiprocessor = 4;
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    (kiln_is(v, "strategy", "mma") ? nvfp4_emit_mma : nvfp4_emit_simt)(f, v);
}

static const kiln_value example[] = {
    {"m", "256"}, {"k", "1024"}, {"l", "1"}, {"b_rows", "1"}, {"alpha", "1"}, {.arg = NULL},
};

const kiln_family nvfp4_gemv_family = {
    .name = "nvfp4_gemv",
    .summary = "multiply each NVFP4 matrix by its vector",
    .source = "NVFP4: e2m1 codes (OCP MX 1.0) in blocks of 16 with e4m3 scales",
    .accuracy =
        "the error is at most (L + 1) * 2^-24 times the sum of the magnitudes of an element's blocks, plus "
        "one rounding to c's type, where L = 4 + k_warps + lane_codes / 16 * ceil(k / (32 * lane_codes * "
        "k_warps)), and with mma 1 + k_warps + 8 * ceil(k / (512 * k_warps)). This holds for all scales "
        "and codes: products, block sums and scales are exact, and nothing overflows before that rounding",
    .nonfinite =
        "a scale that is NaN (0x7f, 0xff) makes every element that it contributes to NaN: a row for a "
        "scale of a, a whole vector c[.,l] for a scale of b. Bytes that pad tiles of scales do not matter. A product "
        "with alpha follows IEEE arithmetic",
    .params = params,
    .args = args,
    .rules = rules,
    .example = example,
    .empty = "m == 0 || l == 0",
    .shape = shape,
    .grid = {GRID_X, GRID_Y},
    .numbers = "zero_bytes part_bytes part_codes",
    .shared_bytes = "zero_bytes + part_bytes * ceil_div(min(k, 16384), part_codes)",
    .time = {.length = "k",
             .repeats = VECTORS " * " PASSES,
             /* b is decoded in each thread block, or in each pass if it is too long to keep */
             .side_trips = VECTORS " * select(k > 16384, " PASSES
                                   ", 1) * ceil_div(k, 256 * select(strategy == mma, 32, lane_codes))",
             /* a trip's codes come from memory; mma: 74 KB per multiprocessor, in pieces of 64 bytes */
             .wait = "select(strategy == simt, 1500, 3500)",
             .block_bytes = VECTORS " * k * (" SHARE " + 1) * 9 / 16"},
    .cost = {.bytes_read = "l * (m + 1) * (k / 2 + k / 16)",
             .bytes_written = "l * m * select(c == f32, 4, 2)",
             .elements = "l * m * k"},
    .min_sm = 75,
    .emit = emit,
};
