/* nf4_gemm_transposed: a matrix times transposed NF4 weights, C[m,k] = A[m,n] * B[k,n]^T. It is the gradient of nf4_gemm with
 * respect to its input, and takes B in the same layout.
 *
 * BYTES. A thread block has the same 512 along K of all columns: 256 bytes of codes and 32 of scales per column. If K is not
 * a multiple of 512, the scales of half of the columns or more start within a sector of 32 bytes. Then a thread block reads
 * two sectors for its 32 bytes: 1.058 times the weights' bytes at K = 6912. Moving the tile along K does not help, since it
 * is the same for all columns. The neighbouring thread block reads the rest of such a sector when it reaches the same column:
 * one of the two reads hits the L2 cache, and memory moves each sector once.
 *
 * ON CUDA CORES the reduction runs over columns of the weights.
 *
 * A thread block makes a tile of C, tile_m rows by 512 along K, so that a column's share is 256 bytes of codes and one sector
 * of scales. A lane has lane_k of the 512, for all rows. With 32 a warp takes two columns at a time; with 16, which leaves
 * room for the sums of more rows, it takes one. The warps of all thread blocks that share a tile take 16 columns each in
 * turn. At the end all sums are added in a fixed order, first through shared memory.
 *
 * ROWS OF A. A lane loads one column of two rows; 16 columns are two sectors in f32 and one in 16 bits. A shuffle
 * broadcasts each element when its column is multiplied.
 *
 * SCALES. A lane multiplies its a by the scale of its quantised block of 64, once per column and row. That adds a rounding,
 * which the bound of products in f32 includes; f64 has none, since a * s fits in 48 bits.
 *
 * DECODING is nf4_pairs.h's: per two weights two instructions for the address, one if it is aligned, and a load.
 */
#include "nf4_gemm.h"

#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/nf4_pairs.h"
#include "device/shared.h"
#include "device/tail.h"
#include <kiln/author/families.h>

enum {
    TILE_K = TRANSPOSED_TILE_K,
    CHUNK = 16, /* columns whose rows of A are loaded at once */
    MOST_BATCH = 8,
    MOST_ROWS = 8,
    MOST_SUMS = 128,
    MOST_TOTALS = 32 /* elements of the tile, per thread */
};

/* ---- a variant while it is emitted ----------------------------------------------------------------------------- */

typedef struct product {
    ptx_fn *f;
    ptx_type type, wide; /* of A and C; of arithmetic */
    uint32_t wide_bytes, rows, k_warps, threads;
    uint32_t loads;                 /* a lane's loads of A */
    uint32_t unit_elements;         /* of 16 bytes */
    uint32_t partial_bytes;         /* of a row of sums of the lanes of a column */
    uint32_t unit_stride;           /* bytes between a lane's units in such a row: see add_all */
    uint32_t lane_k, sum_count;     /* a lane's k, and its sums, row by row */
    uint32_t sum_words;             /* of these sums */
    uint32_t column_lanes, columns; /* lanes per column; columns of a warp at once */
    uint32_t batch;                 /* loads of codes in flight */
    uint32_t row_elements;          /* of C, of a thread */

    nf4_pairs pairs;
    nf4_args args;
    ptx_val tid, lane, member, group, warp; /* lane of the column; the warp's column */
    ptx_val shared, first_k, first_row;
    ptx_val codes_at, scales_at;           /* addresses for column 0 */
    ptx_val a_at[MOST_ROWS / 2], a_column; /* rows of A; which of the 16 columns this lane loads */
    ptx_val column_bytes, scale_bytes, last_column;
    ptx_val sum[MOST_SUMS], total[MOST_TOTALS];
} product;

/* ---- layout ---------------------------------------------------------------------------------------------------- */

/* A lane past the end of K repeats the last one's work.
 *
 * The first half of a column's lanes load the even rows of A and the others the odd ones, each for the columns that this group
 * multiplies. So the lane that loads a column of A has the same place in every group. Rows past the last repeat the
 * last. */
static void init_loads(product *g)
{
    ptx_fn *f = g->f;
    const uint32_t rounds = CHUNK / g->columns;
    ptx_val mine = ptx_mad(f, g->member, g->lane_k, g->first_k);
    ptx_val most = ptx_sub(f, g->args.k, g->lane_k);
    ptx_val k = ptx_min(f, mine, most);
    ptx_val codes = ptx_at(f, g->args.packed, ptx_shr(f, k, 1));
    g->codes_at = ptx_address(f, codes);
    ptx_val scales = ptx_at(f, g->args.scale, ptx_shr(f, k, 6));
    g->scales_at = ptx_address(f, scales);
    g->column_bytes = ptx_shr(f, g->args.k, 1);
    g->scale_bytes = ptx_shr(f, g->args.k, 4);
    g->last_column = ptx_sub(f, g->args.n, 1);
    ptx_val round = ptx_and(f, g->member, rounds - 1);
    g->a_column = ptx_mad(f, round, g->columns, g->group);
    ptx_val odd = ptx_div(f, g->member, rounds);
    ptx_val row = g->rows == 1 ? g->first_row : ptx_add(f, odd, g->first_row);
    ptx_val last = ptx_sub(f, g->args.m, 1);
    for (uint32_t i = 0; i < g->loads; i++) {
        ptx_val at = ptx_min(f, ptx_add(f, row, 2 * i), last);
        g->a_at[i] = tail_element(f, g->args.in, at, g->args.n, g->a_column);
    }
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

static void multiply_chunk(product *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    const uint32_t rounds = CHUNK / g->columns;
    ptx_val a[MOST_ROWS / 2] = {{0}}, mine = ptx_add(f, chunk, g->group);
    /* This lane's share of 16 columns of A; 0 past the last column. */
    const ptx_val zero = g->type == PTX_BF16 ? ptx_u32(0) : ptx_number(g->type, 0);
    ptx_val column = ptx_add(f, chunk, g->a_column);
    ptx_val in_bounds = ptx_lt(f, column, g->args.n);
    for (uint32_t i = 0; i < g->loads; i++)
        a[i] = widen_load_where(f, g->type, ptx_at(f, g->a_at[i], chunk), in_bounds, zero, PTX_NC);
    for (uint32_t round = 0; round < rounds; round += g->batch) {
        ptx_val words[MOST_BATCH][4], scales[MOST_BATCH];
        for (uint32_t i = 0; i < g->batch; i++) { /* past the last column, where a is 0, the last column's */
            ptx_val past = ptx_add(f, mine, (round + i) * g->columns);
            ptx_val at_column = ptx_min(f, past, g->last_column);
            ptx_val codes = ptx_mad_wide(f, at_column, g->column_bytes, g->codes_at);
            ptx_load_vec(f, (int)(g->lane_k / 8), words[i], ptx_pointer(f, PTX_GLOBAL, PTX_U32, codes),
                         NF4_CODE_HINTS);
            ptx_val scale = ptx_mad_wide(f, at_column, g->scale_bytes, g->scales_at);
            scales[i] = ptx_load_hint(f, ptx_pointer(f, PTX_GLOBAL, PTX_F32, scale), PTX_NC);
        }
        for (uint32_t i = 0; i < g->batch; i++) {
            ptx_val x[MOST_ROWS];
            /* a * s of every row. */
            ptx_val scale = g->wide == PTX_F64 ? ptx_cvt(f, PTX_F64, scales[i]) : scales[i];
            for (uint32_t row = 0; row < g->rows; row++) {
                ptx_val from = ptx_u32(round + i + row % 2 * rounds);
                ptx_val own = ptx_shfl_idx_in(f, a[row / 2], from, (int)g->column_lanes);
                if (g->wide == PTX_F64)
                    own = ptx_cvt(f, PTX_F64, own);
                x[row] = ptx_mul(f, own, scale);
            }
            for (uint32_t byte = 0; byte < g->lane_k / 2; byte++) {
                ptx_val weights[2];
                nf4_pairs_decode(&g->pairs, words[i][byte / 4], byte % 4, weights);
                for (uint32_t row = 0; row < g->rows; row++)
                    for (uint32_t e = 0; e < 2; e++)
                        ptx_fma_to(f, g->sum[row * g->lane_k + 2 * byte + e], x[row], weights[e]);
            }
        }
    }
}

static void multiply_columns(product *g)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < g->sum_count; i++)
        g->sum[i] = ptx_var(f, ptx_number(g->wide, 0));
    ptx_val number = g->args.split_k == 1 ? g->warp : ptx_mad(f, ptx_ctaid_z(f), g->k_warps, g->warp);
    ptx_val start = ptx_mul(f, number, CHUNK);
    PTX_FOR (f, chunk, start, g->args.n, g->args.split_k * g->k_warps * CHUNK) {
        ptx_main_loop(f);
        multiply_chunk(g, chunk);
    }
}

/* ---- sums over lanes, warps and thread blocks ------------------------------------------------------------------ */

static void store_tile(product *g)
{
    ptx_fn *f = g->f;
    ptx_val k = ptx_add(f, g->first_k, g->tid);
    for (uint32_t row = 0; row < g->rows; row++) {
        ptx_val at_row = ptx_add(f, g->first_row, row);
        ptx_val at = tail_element(f, g->args.out, at_row, g->args.k, k);
        for (uint32_t i = 0; i < g->row_elements; i++) {
            ptx_val mine = ptx_add(f, k, i * g->threads);
            ptx_val has_column = ptx_lt(f, mine, g->args.k), has_row = ptx_lt(f, at_row, g->args.m);
            PTX_WHEN (f, ptx_and(f, has_column, has_row)) {
                ptx_val x = g->total[row * g->row_elements + i], to = ptx_at_const(f, at, i * g->threads);
                narrow_value(f, g->type, g->wide, &x, &to);
                ptx_store(f, to, x);
            }
        }
    }
}

/* A row at a time: the lanes store their sums, and each thread adds those of elements tid, tid + threads, ... The 16-byte units
 * of a lane are unit_stride apart, next to those of its neighbours: no bank conflicts. Readers have none either: they take
 * neighbouring elements of one lane, or of two. */
static void add_all(product *g)
{
    ptx_fn *f = g->f;
    const uint32_t at_once = g->unit_elements, lanes_apart = g->threads / g->lane_k;
    for (uint32_t row = 0; row < g->rows; row++) {
        ptx_barrier(f);
        ptx_val partial = ptx_mad(f, g->warp, g->columns, g->group);
        ptx_val lane_start = ptx_mad(f, partial, g->partial_bytes, g->shared);
        ptx_val to = ptx_mad(f, g->member, UNIT_BYTES, lane_start);
        for (uint32_t i = 0; i < g->lane_k; i += at_once)
            ptx_store_vec(f, (int)at_once,
                          shared_at(f, g->wide, to, i / at_once * g->unit_stride * UNIT_BYTES),
                          &g->sum[row * g->lane_k + i], PTX_PLAIN);
        ptx_barrier(f);
        ptx_val member = ptx_div(f, g->tid, g->lane_k);
        ptx_val mine = ptx_and(f, g->tid, g->lane_k - 1);
        ptx_val unit = ptx_div(f, mine, at_once);
        ptx_val position = ptx_mad(f, unit, g->unit_stride, member);
        ptx_val start = ptx_mad(f, position, UNIT_BYTES, g->shared);
        ptx_val in_unit = ptx_and(f, mine, at_once - 1);
        ptx_val from = ptx_mad(f, in_unit, g->wide_bytes, start);
        for (uint32_t i = 0; i < g->row_elements; i++) {
            ptx_val first = shared_at(f, g->wide, from, i * lanes_apart * UNIT_BYTES);
            ptx_val total = shared_sum(f, first, g->k_warps * g->columns, g->partial_bytes);
            g->total[row * g->row_elements + i] = ptx_var(f, total);
        }
    }
    IF_NEEDED (f, g->args.split_k > 1,
               nf4_add_parts(f, &g->args, g->tid, g->threads, g->total, g->rows * g->row_elements)) {
        store_tile(g);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

static product geometry(ptx_fn *f, const kiln_variant *v)
{
    product g = {.f = f, .type = kiln_type(v, "a"), .wide = kiln_type(v, "acc")};
    g.rows = kiln_int(v, "tile_m");
    g.k_warps = kiln_int(v, "k_warps");
    g.wide_bytes = g.wide == PTX_F64 ? 8 : 4;
    g.unit_elements = UNIT_BYTES / g.wide_bytes;
    g.threads = g.k_warps * WARP_LANES;
    g.row_elements = TILE_K / g.threads;
    g.loads = g.rows == 1 ? 1 : g.rows / 2;
    g.lane_k = g.rows * g.wide_bytes <= 16 ? 32 : 16;
    g.column_lanes = TILE_K / g.lane_k;
    g.columns = WARP_LANES / g.column_lanes;
    g.sum_count = g.rows * g.lane_k;
    g.sum_words = g.sum_count * g.wide_bytes / 4;
    g.batch = g.sum_words <= 32 ? 8 : g.sum_words <= 64 ? 2 : 4;
    uint32_t lanes_read = 128 / (g.lane_k * g.wide_bytes); /* in a wavefront of 128 bytes */
    g.unit_stride = g.column_lanes + (lanes_read ? lanes_read : 1);
    g.partial_bytes = g.lane_k / g.unit_elements * g.unit_stride * UNIT_BYTES;
    g.pairs = nf4_table(f, v, g.wide, 2048);
    return g;
}

/* Call it before the loop and again after it: values kept across the loop would take registers and be spilled. */
static void init(product *g)
{
    ptx_fn *f = g->f;
    g->tid = ptx_tid_x(f);
    g->warp = ptx_warpid_x(f);
    g->member = ptx_and(f, g->lane, g->column_lanes - 1);
    g->group = ptx_div(f, g->lane, g->column_lanes);
    g->shared = ptx_address(f, ptx_shared_dynamic(f, g->wide));
    g->first_k = ptx_mul(f, ptx_ctaid_x(f), TILE_K);
    g->first_row = ptx_mul(f, ptx_ctaid_y(f), g->rows);
}

/* At the end the sums of the lanes of all columns overlay the table. */
static void shape_simt(kiln_shape *s, const kiln_variant *v)
{
    const product g = geometry(NULL, v);
    const uint32_t table = g.pairs.bytes, sums = g.k_warps * g.columns * g.partial_bytes;
    s->block[0] = g.threads;
    s->shared_bytes = table > sums ? table : sums;
    /* As many thread blocks as leave registers for the sums. Without a limit ptxas uses more, for table loads. */
    s->blocks_per_multiprocessor = lanes_blocks(g.threads, g.sum_words > 64 || g.wide == PTX_F64 ? 256 : 512);
    s->trip = CHUNK;
    s->loop_warps = g.k_warps;
}

static void emit_simt(ptx_fn *f, const kiln_variant *v)
{
    product g = geometry(f, v);
    g.args = nf4_declare_args(f, v, true);
    g.lane = ptx_laneid(f);
    init(&g);
    nf4_pairs_layout(&g.pairs, g.shared);
    nf4_pairs_find(&g.pairs, g.lane);
    nf4_pairs_fill(&g.pairs, g.tid);
    init_loads(&g);
    ptx_barrier(f);
    multiply_columns(&g);
    init(&g);
    add_all(&g);
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "a", "f32 f16 bf16", "f16", "element type of A and C"),
    PARAM(WORD, CONTRACT, "acc", "f32 f64", "f32", "type of products and sums; f64 needs A in f32"),
    NIBBLES_PARAM,
    PARAM(WORD, TUNING, "strategy", "simt mma", "simt",
          "simt: CUDA cores; mma: tensor cores, for A in f16 and, from sm_80 on, bf16"),
    PARAM(INT, TUNING, "tile_m", "1 2 4 8 16 32 64", "1",
          "rows of C per thread block, which reads the weights once; simt: at most 8; mma: at least 8"),
    PARAM(INT, TUNING, "k_warps", "4 8 16", "8", "warps per thread block; simt: they share n; mma: always 8, which share k"),
    PARAM(INT, TUNING, "split_k", "1 2 4 8 16 32", "1", "thread blocks that share n; more than one need a workspace"),
    PARAM(INT, TUNING, "vector", "1 8", "1", "mma: elements of A per load; 8 needs an n that is a multiple of 8"),
    PARAM(WORD, TUNING, "table", "compact aligned", "compact",
          "table of decoded bytes; aligned takes 66 KB of shared memory and saves an instruction per two weights"),
    PARAM(WORD, TUNING, "scales", "any normal", "any",
          "mma with A in f16: any multiplies in tf32, from sm_80 on; normal multiplies in f16, if the caller sets normal_scales"),
    {.name = NULL},
};

#define TILES     "ceil_div(m, tile_m) * ceil_div(k, 512)"
#define WORKSPACE TILES " * split_k * tile_m * 512"

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$a", "m, n", 16, NULL, "A, row by row"},
    {"packed", KILN_ARG_IN, "u8", "n, k / 2", 16, NULL, "two codes per byte, along K\ncolumn after column"},
    {"scale", KILN_ARG_IN, "f32", "n, k / 64", 4, NULL, "scale of each 64 weights along K of a column"},
    {"out", KILN_ARG_OUT, "$a", "m, k", 16, NULL, "C, row by row"},
    SHARING_ARGS("n", "$acc", "512", "C"),
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of A and C"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of A; what the product sums over"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns of C"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of workspace; 0: none, and n is not split\ntile_counters has one for each 512 of them. 32 * (m + 32) * (k + 512) are enough for any tiles"},
    {"normal_scales", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "1: every scale is 0 or a normal number of f16; 0: any\n2^-14 to 65504, so "
                                                            "that tensor cores may take f16 products"},
    {.name = NULL},
};

static const kiln_workspace workspace = {"workspace", "tile_counters", "workspace_size", WORKSPACE, NULL};

static const kiln_rule rules[] = {
    NF4_SIZE_RULES,
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
    enum { MOST_SUM_WORDS = 1024 /* words of a lane's sums, times k_warps */ };
    const bool is_mma = kiln_is(v, "strategy", "mma"), is_f32 = kiln_is(v, "a", "f32"),
               is_f16 = kiln_is(v, "a", "f16");
    const bool is_aligned = kiln_is(v, "table", "aligned"), is_any = kiln_is(v, "scales", "any");
    const bool has_f32_sums = kiln_is(v, "acc", "f32");
    const uint32_t tile_m = kiln_int(v, "tile_m"), k_warps = kiln_int(v, "k_warps");
    const product simt = geometry(NULL, v);
    (is_mma ? nf4_gemm_transposed_shape_mma : shape_simt)(s, v);
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
    kiln_require_shared_bytes(s, is_aligned ? 0 : s->shared_bytes, SHARED_SM_75, "acc strategy tile_m k_warps table",
                              "tile_m and k_warps with table compact");
    kiln_require_shared_bytes(s, is_aligned ? s->shared_bytes : 0, SHARED_SM_86, "acc strategy tile_m k_warps table",
                              "tile_m and k_warps with table aligned");
    kiln_require(s, has_f32_sums || tile_m <= 4, "acc tile_m", "acc f64 needs tile_m of at most 4: registers");
    kiln_require(s, is_mma || (k_warps * simt.sum_words <= MOST_SUM_WORDS && (tile_m == 1 || k_warps <= 8)),
                 "acc strategy tile_m k_warps", "tile_m and k_warps must fit the registers of a multiprocessor");
    /* clang-format on */
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    (kiln_is(v, "strategy", "mma") ? nf4_gemm_transposed_emit_mma : emit_simt)(f, v);
    ptx_param(f, PTX_U32, "normal_scales"); /* for the rules */
}

/* Terms beyond `accuracy`, which defines the names. */
static const kiln_bound bounds[] = {
    {"strategy simt",
     "(L + 3) * 2^-24 * S, with L = 16 * ceil(ceil(n / 16) / (k_warps * split_k)) + 2 * k_warps + split_k"},
    {"acc f64", "2^-24 of the element plus (L + 3) * 2^-53 * S, with the same L"},
    {"strategy mma",
     "(2 * u + (L + 3) * 2^-24) * S, with L = 1.5 * min(c, 1024) + ceil(c / 1024) + split_k and c = 32 * ceil(ceil(n / 32) / split_k); in bf16 2^-134 * sum |t| * (2 + |a|) more"},
    {"scales normal", "adds 2^-25 * sum |a| * (2 + |t|)"},
    {NULL, NULL}};

const kiln_family nf4_gemm_transposed_family = {
    .name = "nf4_gemm_transposed",
    .summary = "multiply a matrix by transposed NF4 weights: C[m,k] = A[m,n] * B[k,n]^T",
    .source = "QLoRA (arXiv:2305.14314)",
    .accuracy =
        "let S be the sum of the magnitudes of an element's products, t the table's entry, and u half an ulp of C's type. The error is at most what the variant's row says, plus one rounding to a 16-bit type. This holds if nothing overflows; products and sums that are not normal numbers of f32 add 2^-150 * (2 * n + 1), and half the smallest subnormal of C's type",
    .bounds = bounds,
    .nonfinite =
        "IEEE arithmetic: a NaN or an infinity in A or in a scale makes the elements that it "
        "contributes to NaN or infinite. So does a product of A and a scale that overflows f32 (with mma "
        "in bf16: bf16), and with scales normal a scale above 65504. Other elements do not change",
    .params = params,
    .args = args,
    .workspace = &workspace,
    .rules = rules,
    .example = nf4_example,
    .empty = "m == 0 || k == 0",
    .shape = shape,
    .grid = {"ceil_div(k, 512)", "ceil_div(m, tile_m)", "split_k"},
    .time = {.length = PART_N,
             .wait = "select(strategy == simt, 600, 300)",
             .block_bytes = PART_N " * (288 + tile_m * select(a == f32, 4, 2))",
             .extra = "select(split_k == 1, 0, 2500 + split_k * tile_m * 48)"},
    .cost = {.bytes_read = "select(a == f32, 4, 2) * m * n + n * (k / 2) + 4 * n * (k / 64)",
             .bytes_written = "select(a == f32, 4, 2) * m * k",
             .elements = "m * n * k"},
    .min_sm = 75,
    .emit = emit,
};
