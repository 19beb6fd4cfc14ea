/* y = x * W^T with NF4 weights, over the layer's values: W is decoded into the A operand, in registers, and x is the B operand, in
 * shared memory. Eight warps make 128 columns of y, 16 each, by 128 rows. A scale multiplies the sums of its 64 weights. One
 * source serves both atoms; with wgmma a producer warp copies, and the next 64 weights are decoded while the product runs. */
#include <kiln/author/family.h>
#include <kiln/author/tile.h>

#include "device/fragment.h"
#include "device/nf4_pairs.h"

enum { TOKENS = 128, COLUMNS = 128, THREADS = 256, STAGES = 4, GROUP = 64, CODES = 2 };
enum { WORDS = GROUP / 8, STEPS = GROUP / TILE_STEP };

/* clang-format off */
static const kiln_param params[] = {
    {.name = "strategy", .type = KILN_PARAM_WORD, .role = KILN_ROLE_TUNING, .words = "mma wgmma", .default_value = "mma",
     .summary = "tensor-core instruction"},
    {0}};

static const kiln_arg args[] = {
    {.name = "x",      .kind = KILN_ARG_IN,  .type = "f16", .shape = "m, k", .alignment = 16, .summary = "activations"},
    {.name = "codes",  .kind = KILN_ARG_IN,  .type = "u8",  .shape = "n, k / 2", .alignment = 16, .summary = "W, low first"},
    {.name = "scales", .kind = KILN_ARG_IN,  .type = "f32", .shape = "n, k / 64", .summary = "of 64 weights each"},
    {.name = "y",      .kind = KILN_ARG_OUT, .type = "f16", .shape = "m, n", .alignment = 8, .summary = "product"},
    {.name = "m", .type = "u32", .summary = "rows of x and y"},
    {.name = "n", .type = "u32", .summary = "rows of W, columns of y"},
    {.name = "k", .type = "u32", .summary = "elements of a row of x and W"},
    {0}};

static const kiln_map maps[] = {
    {.name = "x_map", .arg = "x",     .box = "128, 64", .swizzle_bytes = "128", .when = "strategy == wgmma"},
    {.name = "w_map", .arg = "codes", .box = "128, 32", .swizzle_bytes = "32",  .when = "strategy == wgmma"},
    {0}};
/* clang-format on */

static const kiln_rule rules[] = {
    {"k % 64 == 0 && n % 4 == 0", "k must be a multiple of 64, and n of 4"},
    {"m <= 4194240 && n <= 1048576 && k <= 1048576", "n and k must be at most 2^20"},
    {0}};

/* Two sets of A and of scales alternate. */
typedef struct product {
    ptx_fn *f;
    tile_pipeline pipeline;
    tile_words words;
    nf4_pairs table;
    ptx_val selector, scales_at[2], k;
    ptx_val a[2][4 * STEPS], scales[2][2];
} product;

static bool is_wgmma(const kiln_variant *v)
{
    return kiln_is(v, "strategy", "wgmma");
}

static uint32_t pipeline_bytes(const kiln_variant *v)
{
    const uint32_t threads = is_wgmma(v) ? 0 : THREADS;
    return tile_pipeline_bytes(STAGES, GROUP, threads, TOKENS) +
           tile_pipeline_packed_bytes(STAGES, GROUP, CODES, threads, COLUMNS);
}

static nf4_pairs table_of(ptx_fn *f, const kiln_variant *v)
{
    return nf4_pairs_plan((nf4_pairs){
        .f = f, .type = PTX_F16, .is_aligned = is_wgmma(v), .reserved = 1024 + pipeline_bytes(v)});
}

/* Lane t takes byte t of each word, two weights of eight. Scales beyond k are 0: the codes there are those of -1. */
static void decode_next(product *p, uint32_t group, ptx_val element)
{
    ptx_fn *f = p->f;
    ptx_val words[2 * WORDS], pair[2], in_bounds = ptx_lt(f, element, p->k);
    tile_row_load(f, p->scales_at, group, in_bounds, p->scales[group % 2]);
    tile_pipeline_next(&p->pipeline);
    tile_words_load(&p->words, words);
    for (uint32_t i = 0; i < 2 * WORDS; i++) {
        const uint32_t half = i % WORDS, reg = 4 * (half / 2) + fragment_a(i / WORDS, half % 2);
        nf4_pairs_decode_selected(&p->table, words[i], p->selector, pair);
        ptx_set(f, p->a[group % 2][reg], ptx_as(f, PTX_B32, pair[0]));
    }
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    ptx_val x = ptx_param_ptr(f, PTX_F16, "x"), codes = ptx_param_ptr(f, PTX_U8, "codes"),
            scales = ptx_param_ptr(f, PTX_F32, "scales"), y = ptx_param_ptr(f, PTX_F16, "y");
    ptx_val m = ptx_param(f, PTX_U32, "m"), n = ptx_param(f, PTX_U32, "n"), k = ptx_param(f, PTX_U32, "k");
    ptx_val map[2] = {{0}};
    for (int i = 0; i < (is_wgmma(v) ? 2 : 0); i++)
        map[i] = ptx_tensor_map(f, maps[i].name);
    ptx_val column = ptx_mul(f, ptx_ctaid_x(f), COLUMNS), token = ptx_mul(f, ptx_ctaid_y(f), TOKENS);
    ptx_val warp_row = ptx_mul(f, ptx_warpid_x(f), 16), first = ptx_add(f, column, warp_row),
            bytes = ptx_shr(f, k, 1), groups = ptx_shr(f, k, 6);
    const tile_matrix in = {x, m, k, k}, weights = {codes, n, bytes, bytes},
                      row_scales = {scales, n, groups, groups}, out = {y, m, n, n};
    product p = {.f = f, .k = k, .table = table_of(f, v)};
    p.pipeline = tile_pipeline_open(f, PTX_F16, STAGES, GROUP);
    const uint32_t x_tile = tile_pipeline_add_map(&p.pipeline, map[0], &in, token, TOKENS, 0),
                   w_tile = tile_pipeline_add_map(&p.pipeline, map[1], &weights, column, COLUMNS, CODES);
    const tile_product multiply = tile_product_open(&p.pipeline, x_tile, is_wgmma(v) ? TILE_WGMMA : TILE_MMA);
    nf4_pairs_layout(&p.table, ptx_add(f, p.pipeline.shared, pipeline_bytes(v)));
    nf4_pairs_find(&p.table, ptx_laneid(f));
    nf4_pairs_fill(&p.table, ptx_tid_x(f));
    tile_pipeline_start(&p.pipeline);
    p.words = tile_words_open(&p.pipeline, w_tile, warp_row);
    p.selector = nf4_pairs_selector(&p.table, ptx_and(f, ptx_laneid(f), 3));
    tile_row_pointers(f, &row_scales, first, p.scales_at);
    for (uint32_t i = 0; i < 8 * STEPS; i++)
        p.a[i % 2][i / 2] = ptx_declare(f, PTX_B32);
    for (uint32_t i = 0; i < 4; i++)
        p.scales[i % 2][i / 2] = ptx_declare(f, PTX_F32);
    ptx_val trips = ptx_div(f, ptx_add(f, k, STAGES * GROUP - 1), STAGES * GROUP), is_one = ptx_min(f, k, 1);
    TILE_CONSUMERS (&p.pipeline, ptx_mad(f, trips, STAGES, is_one)) {
        tile_sums sums = tile_sums_open(f, 1, TOKENS / 8), part = tile_sums_open(f, 1, TOKENS / 8);
        PTX_IF (f, ptx_ne(f, k, 0)) {
            decode_next(&p, 0, ptx_u32(0));
            PTX_FOR (f, done, 0, k, STAGES * GROUP) {
                ptx_main_loop(f);
                for (uint32_t i = 0; i < STAGES; i++) {
                    tile_product_issue(&multiply, p.a[i % 2], &part, false);
                    decode_next(&p, i + 1, ptx_add(f, done, GROUP * (i + 1)));
                    tile_product_wait(&multiply, 0);
                    tile_sums_add_scaled(&sums, &part, p.scales[i % 2]);
                }
                tile_row_advance(f, p.scales_at, STAGES);
            }
        }
        tile_store_transposed(&sums, &out, token, first, NULL, NULL);
    }
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const nf4_pairs table = table_of(NULL, v);
    s->block[0] = THREADS + (is_wgmma(v) ? TILE_PRODUCER_THREADS : 0);
    s->shared_bytes = pipeline_bytes(v) + table.bytes;
    s->blocks_per_multiprocessor = 1;
    if (is_wgmma(v))
        s->min_sm = s->max_sm = 90, s->is_specific = true;
    s->trip = STAGES * GROUP;
}

/* clang-format off */
const kiln_family nf4_product_family = {
    .name = "nf4_product", .summary = "y = x * W^T with NF4 weights", .source = "QLoRA", .params = params, .args = args, .maps = maps,
    .shape = shape, .rules = rules, .empty = "m == 0 || n == 0", .grid = {"ceil_div(n, 128)", "ceil_div(m, 128)"},
    .time = {.length = "k", .wait = "600"}, .min_sm = 80, .emit = emit,
    .cost = {.bytes_read = "2 * m * k + n * k / 2 + n * k / 16", .bytes_written = "2 * m * n", .elements = "m * n * k"},
};
/* clang-format on */
