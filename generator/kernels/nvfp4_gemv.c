/* nvfp4_gemv: NVFP4 matrices times an NVFP4 vector each, c[m,l] = sum over k of A[m,k,l] * b[k,l]. */
#include "nvfp4.h"
#include <kiln/families.h>

/* clang-format off */
static const kiln_param params[] = {
    {.name = "c", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "f16 bf16 f32", .default_value = "f16",
     .summary = "element type of c"},
    {.name = "decode", .type = KILN_PARAM_WORD, .role = KILN_ROLE_TUNING, .words = "software hardware",
     .default_value = "software",
     .summary = "hardware: cvt from e2m1, which the a and f targets from sm_100 have; the same results"},
    {.name = "strategy", .type = KILN_PARAM_WORD, .role = KILN_ROLE_TUNING, .words = "simt mma",
     .default_value = "simt", .summary = "simt: CUDA cores; mma: tensor cores, for k that is a multiple of 512"},
    {.name = "lane_codes", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "32 16", .default_value = "32",
     .summary = "codes of a row that a lane reads at once; 16 is for k that is no multiple of 32"},
    {.name = "rows", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "1 2 4 16 32", .default_value = "4",
     .summary = "rows per warp, or per warps that share them; 16 and 32 with strategy mma"},
    {.name = "k_warps", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "1 2 4 8", .default_value = "1",
     .summary = "warps that share rows and split k; a thread block has 8 / k_warps * rows rows"},
    {.name = NULL},
};

#define VECTOR_ROWS "select(b_rows == 0, 128, b_rows)"

static const kiln_arg args[] = {
    {"a", KILN_ARG_IN, "u8", "l, m, k / 2", 16, NULL, "matrices: two codes per byte along k, the low nibble first"},
    {"sfa", KILN_ARG_IN, "u8", "l, m, k / 16", 16, NULL, "e4m3 scale of each 16 codes of a"},
    {"b", KILN_ARG_IN, "u8", "l, " VECTOR_ROWS ", k / 2", 16, NULL, "vectors: row 0 of each b_rows rows"},
    {"sfb", KILN_ARG_IN, "u8", "l, " VECTOR_ROWS ", k / 16", 2, NULL, "e4m3 scale of each 16 codes of b"},
    {"out", KILN_ARG_OUT, "$c", "l, m", 2, NULL, "c; beyond its type, an infinity"},
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of a matrix"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of a matrix"},
    {"l", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "matrices"},
    {"b_rows", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows that each vector lies in b, of which it is the first: 1 where there is no padding; 0 is 128"},
    {.name = NULL},
};

static const kiln_rule refusals[] = {
    {"strategy == mma || rows <= 4", "strategy simt takes 1, 2 or 4 rows"},
    {"strategy == simt || rows >= 16", "strategy mma takes 16 or 32 rows"},
    {"strategy == simt || lane_codes == 32", "strategy mma reads 32 codes at once"},
    {NULL, NULL},
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

#define BLOCK_ROWS  "(8 / k_warps * rows)"
#define GRID_X      "ceil_div(m, " BLOCK_ROWS ")"
/* A thread block takes every 256th vector: 2048 warps have enough loads on the way on any device. A grid may have 65535. */
#define GRID_Y      "min(l, 256)"
#define UNROLL      "max(1, 4 / (rows * k_warps))"
#define BLOCKS      "(lane_codes / 16)"
#define STEP_BYTES  "(" BLOCKS " * (64 + select(decode == hardware, 1024, 512)))"
#define TURN        "(k_warps * " UNROLL ")"
#define TURNS       "ceil_div(ceil_div(min(k, 16384), 32 * lane_codes), " TURN ")"

/* Thread instructions: of every thread; of a thread block for each vector, and for each 16384 along k; of the warps' steps
 * that decode b, up to a whole turn; of the warps' turns along k; and stores. Exact but where k is 0 or passes 16384. */
#define STEPS       "ceil_div(k, 32 * lane_codes)"
#define PLANES      "(" BLOCKS " * select(decode == hardware, 2, 1))"
#define BY_DECODER(software_75, software_89, hardware) \
    "select(decode == hardware, " hardware ", select(sm < 89, " software_75 ", " software_89 "))"
#define OF_DECODING BY_DECODER("25 + 27 * " BLOCKS, "19 + 26 * " BLOCKS, "19 + 11 * " BLOCKS)
#define OF_ROW      BY_DECODER("12 + 26 * " BLOCKS, "9 + 25 * " BLOCKS, "9 + 21 * " BLOCKS)
#define OF_TURN     "(5 + " UNROLL " * (3 + " PLANES " + rows * (" OF_ROW ")))"
#define OF_STORE    "(select(c == f32, 0, 1) + select(c == bf16 && sm < 80, 5, 0))"
#define ALL_TURNS \
    "select(k_warps == 2 && rows == 1, 4 * (ceil_div(" STEPS ", 4) + ceil_div(max(" STEPS ", 1) - 1, 4)), " \
    "8 / k_warps * ceil_div(" STEPS ", " UNROLL "))"
#define OF_BATCH    "(18 + rows * " BY_DECODER("19", "15", "16") ")"
#define OF_JOIN     "(1280 + 8 * rows + " BLOCK_ROWS " * (9 + 2 * k_warps + " OF_STORE "))"
#define DECODED     "(ceil_div(" STEPS ", " TURN ") * " TURN ")"
#define OF_CHUNK \
    "(256 * select(" TURN " == 1, 17, 19) - 64 * (8 / k_warps * min(k_warps, " STEPS ") + min(8, " DECODED ")))"
#define SIMT_INSTRUCTIONS \
    GRID_X " * " GRID_Y " * 256 * select(k_warps > 1, 34, 33) + " GRID_X " * l * (256 * " OF_BATCH \
    " + select(k_warps > 1, " OF_JOIN ", 256 * (7 + " OF_STORE ")) + ceil_div(k, 16384) * " OF_CHUNK \
    " + 32 * (" DECODED " * (" OF_DECODING ") + " ALL_TURNS " * " OF_TURN ")) + l * m"


/* The same of strategy mma. */
#define TILES "(rows / 16)"
#define MMA_OF_BATCH \
    "(256 * (14 + 2 * (k_warps > 1) + " TILES " * (" BY_DECODER("48", "40", "42") \
    " + select(k_warps > 1, 0, 10 + 2 * " OF_STORE \
    "))) + select(k_warps > 1, 256 + 128 * " TILES " + " BLOCK_ROWS " * (9 + 2 * k_warps + " OF_STORE "), 0))"
#define MMA_OF_CHUNK "(5376 - 2 * min(256, k / 32) - 64 * (8 / k_warps * min(k_warps, k / 512)))"
#define MMA_INSTRUCTIONS \
    GRID_X " * " GRID_Y " * (256 * select(k_warps > 1, 51, 50) + 32) + " GRID_X " * l * (" MMA_OF_BATCH \
    " + ceil_div(k, 16384) * " MMA_OF_CHUNK " + k / 32 * " BY_DECODER("105", "98", "42") \
    " + 256 / k_warps * (k / 512) * (27 + " TILES " * " BY_DECODER("390", "358", "278") ")) + l * m"
#define INSTRUCTIONS "select(strategy == mma, " MMA_INSTRUCTIONS ", " SIMT_INSTRUCTIONS ")"

/* The wide path where k allows it, the conversion where the device has it. */
#define PICK(condition, prefer) \
    {"k % 32 == 0 && " condition, "decode=hardware,strategy=simt,lane_codes=32" prefer}, \
    {"k % 32 == 0 && " condition, "strategy=simt,lane_codes=32" prefer}, \
    {condition, "decode=hardware,lane_codes=16" prefer}, \
    {condition, "lane_codes=16" prefer}

/* Tensor cores, with as many warps for 16 rows as make 16 for each multiprocessor, but no more than k gives work to where
 * fewer leave it a thread block; with integers below sm_100 only. Chosen by their count of instructions, not yet by
 * measurements. */
#define MATRIX "k % 512 == 0 && "
#define PICK_MMA(condition, prefer) \
    {MATRIX condition, "decode=hardware,strategy=mma,rows=16" prefer}, \
    {MATRIX "sm < 100 && " condition, "decode=software,strategy=mma,rows=16" prefer}

/* As many rows per warp as leave 24 warps to each multiprocessor; few rows are shared by warps. */
static const kiln_dispatch dispatch[] = {
    PICK_MMA("m * l >= select(k < 1024, 128, 256) * multiprocessors", ",k_warps=1"),
    PICK_MMA("m * l >= select(k < 2048, 64, 128) * multiprocessors", ",k_warps=2"),
    PICK_MMA("m * l >= select(k < 4096, 32, 64) * multiprocessors", ",k_warps=4"),
    PICK_MMA("m * l >= 32 * multiprocessors", ",k_warps=8"),
    PICK("m >= 32 && m * l >= 96 * multiprocessors", ",rows=4,k_warps=1"),
    PICK("m >= 16 && m * l >= 48 * multiprocessors", ",rows=2,k_warps=1"),
    PICK("m >= 8 && (m * l >= 24 * multiprocessors || k < 4096)", ",rows=1,k_warps=1"),
    PICK("1", ",rows=1,k_warps=4"),
    PICK("1", ""),
    {"1", ""},
    {NULL, NULL},
};
/* clang-format on */

static void emit(ptx_fn *f, const kiln_variant *v)
{
    if (kiln_is(v, "strategy", "mma"))
        nvfp4_emit_mma(f, v);
    else
        nvfp4_emit_simt(f, v);
}

const kiln_family nvfp4_gemv_family = {
    .name = "nvfp4_gemv",
    .summary = "NVFP4 matrices times an NVFP4 vector each, in one launch",
    .source = "NVFP4: e2m1 codes (OCP MX 1.0) in blocks of 16 with e4m3 scales",
    .accuracy =
        "an element is within (L + 1) * 2^-24 of the sum of its blocks' magnitudes, plus one "
        "rounding to c's type, where L = "
        "4 + k_warps + lane_codes / 16 * ceil(k / (32 * lane_codes * k_warps)), with mma 1 + k_warps + 8 * "
        "ceil(k / (512 * k_warps)); "
        "for all scales and codes: products, block sums and scales are exact, and nothing overflows "
        "before that rounding",
    .nonfinite =
        "a scale that is NaN (0x7f, 0xff) makes what it has part in one too: of a a row, of b a whole "
        "vector c[.,l]",
    .params = params,
    .args = args,
    .refusals = refusals,
    .rules = rules,
    .empty = "m == 0 || l == 0",
    .block = {"256"},
    .grid = {GRID_X, GRID_Y},
    .shared_bytes = "select(strategy == mma, 512 + 1152 * ceil_div(min(k, 16384), 512), " TURNS " * " TURN
                    " * " STEP_BYTES ")",
    .max_shared_bytes = "select(strategy == mma, 37376, 16384 / (32 * lane_codes) * " STEP_BYTES ")",
    .dispatch = dispatch,
    .cost = {.bytes_read = "l * (m + 1) * (k / 2 + k / 16)",
             .bytes_written = "l * m * select(c == f32, 4, 2)",
             .thread_instructions = INSTRUCTIONS,
             .elements = "l * m * k"},
    .min_sm = 75,
    .variant_min_sm = "select(strategy == mma, 80, 75)",
    .variant_runs_on = "decode == software || (target_is_specific && target_sm >= 100)",
    .emit = emit,
};
