/* y = x * W^T with NF4 weights, over the layer's values: W is decoded into the A operand, in registers, and x is the B operand,
 * in shared memory. A thread block makes 128 columns of y, 16 for each of its eight warps, by 128 rows. Scales, one for 64
 * weights, multiply the sums of these 64. One source serves both atoms: with wgmma, A of the next 64 is decoded while the
 * product runs. */
#include <kiln/author/family.h>
#include <kiln/author/tile.h>

#include "device/fragment.h"
#include "device/nf4_pairs.h"
#include "device/tail.h"

enum {
    TOKENS = 128,
    COLUMNS = 128,
    THREADS = 256,
    GROUP = 64,
    CODES = 2,
    WORDS = GROUP / 8,
    STEPS = GROUP / TILE_STEP
};
enum { SYSTEM_BYTES = 1024 };

static const kiln_param params[] = {{.name = "strategy",
                                     .type = KILN_PARAM_WORD,
                                     .role = KILN_ROLE_TUNING,
                                     .words = "mma wgmma",
                                     .default_value = "mma",
                                     .summary = "tensor-core instruction"},
                                    {0}};

static const kiln_arg args[] = {
    {.name = "x",
     .kind = KILN_ARG_IN,
     .type = "f16",
     .shape = "m, k",
     .alignment = 16,
     .summary = "activations"},
    {.name = "codes",
     .kind = KILN_ARG_IN,
     .type = "u8",
     .shape = "n, k / 2",
     .alignment = 16,
     .summary = "low first"},
    {.name = "scales",
     .kind = KILN_ARG_IN,
     .type = "f32",
     .shape = "n, k / 64",
     .summary = "absmax of 64 weights"},
    {.name = "y", .kind = KILN_ARG_OUT, .type = "f16", .shape = "m, n", .alignment = 8, .summary = "product"},
    {.name = "m", .type = "u32", .summary = "rows of x and y"},
    {.name = "n", .type = "u32", .summary = "rows of W, columns of y"},
    {.name = "k", .type = "u32", .summary = "elements of a row of x and W"},
    {0}};

static const kiln_rule rules[] = {
    {"k % 64 == 0 && n % 4 == 0", "k must be a multiple of 64, and n of 4"},
    {"m <= 4194240 && n <= 1048576 && k <= 1048576", "n and k must be at most 2^20"},
    {0}};

/* Sets of A and of scales alternate. */
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

static uint32_t stages(const kiln_variant *v)
{
    return is_wgmma(v) ? 4 : 3;
}

static uint32_t pipeline_bytes(const kiln_variant *v)
{
    return tile_pipeline_bytes(stages(v), GROUP, THREADS, TOKENS) +
           tile_pipeline_packed_bytes(stages(v), GROUP, CODES, THREADS, COLUMNS);
}

static nf4_pairs table_of(ptx_fn *f, const kiln_variant *v)
{
    return (nf4_pairs){
        .f = f, .type = PTX_F16, .is_aligned = is_wgmma(v), .reserved = SYSTEM_BYTES + pipeline_bytes(v)};
}

/* Lane t takes byte t of each word, two weights: a word has eight, and half of a step's. Scales beyond k are 0, where codes
 * are those of -1. */
static void decode(product *p, uint32_t set, ptx_val element)
{
    ptx_val words[2 * WORDS], pair[2], in_bounds = ptx_lt(p->f, element, p->k),
                                       group = ptx_div(p->f, element, GROUP);
    for (uint32_t row = 0; row < 2; row++) {
        ptx_val at = ptx_at(p->f, p->scales_at[row], group);
        ptx_set(p->f, p->scales[set][row], 0);
        PTX_WHEN (p->f, in_bounds) {
            ptx_set(p->f, p->scales[set][row], ptx_load_hint(p->f, at, PTX_NC));
        }
    }
    tile_pipeline_next(&p->pipeline);
    tile_words_load(&p->words, words);
    for (uint32_t i = 0; i < 2 * WORDS; i++) {
        const uint32_t half = i % WORDS, reg = 4 * (half / 2) + fragment_a(i / WORDS, half % 2);
        nf4_pairs_decode_selected(&p->table, words[i], p->selector, pair);
        ptx_set(p->f, p->a[set][reg], ptx_as(p->f, PTX_B32, pair[0]));
    }
}

static void init_registers(product *p, ptx_val scales, ptx_val first, ptx_val n)
{
    ptx_fn *f = p->f;
    const fragment_lane lane = fragment_find_lane(f, ptx_laneid(f));
    p->selector = nf4_pairs_selector(&p->table, lane.t);
    ptx_val row = ptx_add(f, lane.g, first), groups = ptx_div(f, p->k, GROUP);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val clamped = tail_clamp(f, ptx_add(f, row, 8 * i), n);
        p->scales_at[i] = ptx_at(f, scales, ptx_mul_wide(f, clamped, groups));
        for (uint32_t set = 0; set < 2; set++)
            p->scales[set][i] = ptx_declare(f, PTX_F32);
    }
    for (uint32_t i = 0; i < 2 * 4 * STEPS; i++)
        p->a[i % 2][i / 2] = ptx_declare(f, PTX_B32);
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    ptx_val x = ptx_param_ptr(f, PTX_F16, "x"), codes = ptx_param_ptr(f, PTX_U8, "codes"),
            scales = ptx_param_ptr(f, PTX_F32, "scales"), y = ptx_param_ptr(f, PTX_F16, "y");
    ptx_val m = ptx_param(f, PTX_U32, "m"), n = ptx_param(f, PTX_U32, "n"), k = ptx_param(f, PTX_U32, "k");
    ptx_val column = ptx_mul(f, ptx_ctaid_x(f), COLUMNS), token = ptx_mul(f, ptx_ctaid_y(f), TOKENS);
    ptx_val warp = ptx_warpid_x(f), row_bytes = ptx_shr(f, k, 1), tid = ptx_tid_x(f);
    const tile_matrix in = {x, m, k, k}, weights = {codes, n, row_bytes, row_bytes}, out = {y, m, n, n};
    product p = {.f = f, .k = k, .table = table_of(f, v)};

    p.pipeline = tile_pipeline_open(f, PTX_F16, stages(v), GROUP);
    const uint32_t x_tile = tile_pipeline_add(&p.pipeline, &in, token, TOKENS),
                   w_tile = tile_pipeline_add_packed(&p.pipeline, &weights, column, COLUMNS, CODES);
    const tile_product group = tile_product_open(&p.pipeline, x_tile, is_wgmma(v) ? TILE_WGMMA : TILE_MMA);
    tile_pipeline_start(&p.pipeline);
    nf4_pairs_layout(&p.table, ptx_add(f, p.pipeline.shared, pipeline_bytes(v)));
    nf4_pairs_find(&p.table, ptx_laneid(f));
    nf4_pairs_fill(&p.table, tid);
    p.words = tile_words_open(&p.pipeline, w_tile, ptx_mul(f, warp, 16));
    ptx_val first = ptx_mad(f, warp, 16, column);
    init_registers(&p, scales, first, n);

    tile_sums sums = tile_sums_open(f, 1, TOKENS / 8), part = tile_sums_open(f, 1, TOKENS / 8);
    decode(&p, 0, ptx_u32(0));
    PTX_FOR (f, done, 0, k, 2 * GROUP) {
        ptx_main_loop(f);
        for (uint32_t set = 0; set < 2; set++) {
            tile_product_issue(&group, p.a[set], &part, false);
            decode(&p, 1 - set, ptx_add(f, done, GROUP * (set + 1)));
            tile_product_wait(&group, 0);
            tile_sums_add_scaled(&sums, &part, p.scales[set]);
        }
    }
    tile_store_transposed(&sums, &out, token, first, NULL, NULL);
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const nf4_pairs table = table_of(NULL, v);
    s->block[0] = THREADS;
    s->shared_bytes = pipeline_bytes(v) + nf4_pairs_bytes(&table);
    s->min_sm = is_wgmma(v) ? 90 : 80;
    s->max_sm = is_wgmma(v) ? 90 : 0;
    s->is_specific = is_wgmma(v);
    s->blocks_per_multiprocessor = 1;
    s->trip = 2 * GROUP;
}

const kiln_family nf4_product_family = {
    .name = "nf4_product",
    .summary = "y = x * W^T with NF4 weights",
    .source = "QLoRA",
    .params = params,
    .args = args,
    .shape = shape,
    .rules = rules,
    .empty = "m == 0 || n == 0",
    .grid = {"ceil_div(n, 128)", "ceil_div(m, 128)"},
    .time = {.length = "k", .wait = "600"},
    .cost = {.bytes_read = "2 * m * k + n * k / 2 + n * k / 16",
             .bytes_written = "2 * m * n",
             .elements = "m * n * k"},
    .min_sm = 80,
    .emit = emit,
};
