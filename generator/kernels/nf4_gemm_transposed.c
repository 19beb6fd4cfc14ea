/* nf4_gemm_transposed: a matrix times transposed NF4 weights, C[m,k] = A[m,n] * B[k,n]^T, the gradient to the input of
 * what nf4_gemm calculates. B lies as it does there. */
#include "nf4_gemm_transposed.h"

#include "kernels.h"

/* clang-format off */
static const kiln_param params[] = {
    {.name = "a", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "f32 f16 bf16", .default_value = "f16",
     .summary = "element type of A and C"},
    {.name = "acc", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "f32 f64", .default_value = "f32",
     .summary = "type of products and sums; f64 where A is f32 only"},
    {.name = "nibbles", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "low high",
     .default_value = "low",
     .summary = "low: element 2i in bits 0-3 of byte i, 2i+1 in bits 4-7; high: the other way round"},
    {.name = "strategy", .type = KILN_PARAM_WORD, .role = KILN_ROLE_TUNING, .words = "simt", .default_value = "simt",
     .summary = "simt: units for single numbers"},
    {.name = "tile_m", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "1 2 4 8", .default_value = "1",
     .summary = "rows of C per thread block; the weights are read once for each such tile"},
    {.name = "warps", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "4 8 16", .default_value = "8",
     .summary = "per thread block; they share n"},
    {.name = "splits", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "1 2 4 8 16 32", .default_value = "1",
     .summary = "thread blocks that share n; more than one take a workspace"},
    {.name = "table", .type = KILN_PARAM_WORD, .role = KILN_ROLE_TUNING, .words = "near window",
     .default_value = "near",
     .summary = "of decoded bytes; window: an instruction less per two weights, for 66 KB of shared memory"},
    {.name = NULL},
};

#define TILES     "ceil_div(m, tile_m) * ceil_div(k, 512)"
#define WORKSPACE TILES " * splits * tile_m * 512"

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$a", "m, n", 2, NULL, "A, row by row"},
    {"packed", KILN_ARG_IN, "u8", "n, k / 2", 16, NULL, "two codes per byte, along K; column after column"},
    {"scale", KILN_ARG_IN, "f32", "n, k / 64", 4, NULL, "of each 64 along K of a column"},
    {"out", KILN_ARG_OUT, "$a", "m, k", 2, NULL, "C, row by row"},
    {"workspace", KILN_ARG_SCRATCH, "$acc", "workspace_size", 16, "splits != 1", "sums of parts of n"},
    {"arrivals", KILN_ARG_INOUT, "u32", "workspace_size / 512", 4, "splits != 1", "0 before and after"},
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of A and C"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of A; what the product sums over"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of C"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "numbers that workspace holds; arrivals has one for each "
                                                             "512 of them; 0: there are neither"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"k % 64 == 0", "k must be a multiple of 64"},
    {"m <= 65535", "m must be at most 65535"},
    {"n <= 2147483648", "n must be at most 2^31"},
    {"k <= 2147483648", "k must be at most 2^31"},
    {"splits == 1 || workspace_size >= " WORKSPACE, "the workspace is too small"},
    {NULL, NULL},
};

#define WIDE_BYTES "select(acc == f64, 8, 4)"
#define LANE_K     "select(tile_m * " WIDE_BYTES " <= 16, 32, 16)"
#define SLICES     "(warps * " LANE_K " / 16)"
/* Of sums of a row: 16 bytes for every four or two, and some between them. */
#define SLICE      "select(acc == f32, 2176, select(tile_m > 2, 4224, 4352))"
#define SHARED     "max(select(table == window, 67584, 32768), " SLICES " * " SLICE ")"

static const kiln_rule refusals[] = {
    {"acc == f32 || a == f32", "sums in f64 are for A in f32"},
    {"table == window || " SLICES " * " SLICE " <= 65536",
     "warps need more shared memory than every device has (64 KB)"},
    {SLICES " * " SLICE " <= 101376", "warps need more shared memory than devices with a window have (99 KB)"},
    {"acc == f32 || tile_m <= 4", "sums in f64 are for tile_m up to 4: registers"},
    {"warps * tile_m * " LANE_K " * " WIDE_BYTES " <= 4096", "tile_m and warps need more registers than there are"},
    {NULL, NULL},
};

/* Thread instructions, counted: 16 columns; a thread block's table, places, sums of its warps, stores; what parts take
 * more and less. Within 1.5 %; a ragged tile and the last columns count as full. */
#define IS_F64   "(acc == f64)"
#define ELEMENTS "(16 / warps)"
#define TURN                                                                                                           \
    "(6 + " IS_F64 " + tile_m * (2 + " IS_F64 ") + " LANE_K " / 2 * (3 - (table == window) + 2 * tile_m))"
#define CHUNK    "(256 / " LANE_K " * " TURN " + 6 + ceil_div(tile_m, 2) * (3 + (a != f32)))"
#define OF_ROW                                                                                                         \
    "(" LANE_K " * (16 + " WIDE_BYTES ") / 16 + 20 + (a != f32 || acc == f64) * " ELEMENTS                             \
    " + " ELEMENTS " * (2 * " SLICES " + 4))"
#define FIXED    "(128 / warps + 47 + 12 * (warps == 4) + 3 * (table == window) + tile_m * " OF_ROW ")"
#define INSTRUCTIONS                                                                                                   \
    "32 * (" TILES ") * (ceil_div(n, 16) * " CHUNK " + warps * (splits * (" FIXED " + 25 * (splits > 1))"              \
    " - 6 * " ELEMENTS " * tile_m * (splits - 1)))"

/* As many rows as there are, up to 8, so that the weights are read once. With a workspace, parts until two thread
 * blocks per multiprocessor are at work, as long as each of their warps has columns. The window where it fits. */
#define PARTS(rows, parts)                                                                                             \
    "workspace_size >= ceil_div(m, " rows ") * ceil_div(k, 512) * " parts " * " rows " * 512"                          \
    " && ceil_div(m, " rows ") * ceil_div(k, 512) * " parts " <= 2 * multiprocessors && n >= 128 * " parts
#define WINDOW(condition, prefer)                                                                                      \
    {"max_shared_bytes >= 101376 && " condition, prefer ",table=window"}, {condition, prefer ",table=near"}
#define ROWS(condition, rows)                                                                                          \
    WINDOW(condition " && " PARTS(rows, "32"), "tile_m=" rows ",splits=32"),                                           \
    WINDOW(condition " && " PARTS(rows, "16"), "tile_m=" rows ",splits=16"),                                           \
    WINDOW(condition " && " PARTS(rows, "8"), "tile_m=" rows ",splits=8"),                                             \
    WINDOW(condition " && " PARTS(rows, "4"), "tile_m=" rows ",splits=4"),                                             \
    WINDOW(condition " && " PARTS(rows, "2"), "tile_m=" rows ",splits=2"),                                             \
    WINDOW(condition, "tile_m=" rows ",splits=1")

static const kiln_dispatch dispatch[] = {
    ROWS("m <= 1", "1"),
    ROWS("m <= 2", "2"),
    ROWS("m <= 4", "4"),
    ROWS("m > 4", "8"),
    WINDOW("1", "splits=1"),
    {"max_shared_bytes < 101376", "table=near"},
    {"1", ""},
    {NULL, NULL},
};
/* clang-format on */

const kiln_family nf4_gemm_transposed_family = {
    .name = "nf4_gemm_transposed",
    .summary = "a matrix times transposed NF4 weights: C[m,k] = A[m,n] * B[k,n]^T",
    .source = "QLoRA (arXiv:2305.14314)",
    .nonfinite =
        "as the arithmetic goes: a NaN or an infinity in a row of A, or in a scale, makes what it has part "
        "in "
        "one too, and so does a product of A and a scale beyond f32; other elements are as without it",
    .params = params,
    .args = args,
    .refusals = refusals,
    .rules = rules,
    .empty = "m == 0 || k == 0",
    .block = {"32 * warps"},
    .grid = {"ceil_div(k, 512)", "ceil_div(m, tile_m)", "splits"},
    .shared_bytes = SHARED,
    .dispatch = dispatch,
    .cost = {.bytes_read = "select(a == f32, 4, 2) * m * n + n * (k / 2) + 4 * n * (k / 64)",
             .bytes_written = "select(a == f32, 4, 2) * m * k",
             .thread_instructions = INSTRUCTIONS,
             .elements = "m * n * k"},
    .min_sm = 75,
    .variant_min_sm = "select(table == window, 80, 75)",
    .emit = nf4_gemm_transposed_emit_simt,
};
