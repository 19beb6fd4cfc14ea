/* y = x * w^T + bias on tensor cores. A thread block computes 64 x 64 elements of y, each of its four warps 32 x 32.
 * It copies 32 elements of k of both matrices at a time into a ring of `stages`. */
#include <kiln/author/family.h>
#include <kiln/author/tile.h>

enum { TILE = 64, WARP_TILE = 32, DEPTH = 32, THREADS = 128 };

static const kiln_param params[] = {{.name = "type",
                                     .type = KILN_PARAM_WORD,
                                     .role = KILN_ROLE_CONTRACT,
                                     .words = "f16 bf16",
                                     .default_value = "f16",
                                     .summary = "element type"},
                                    {.name = "stages",
                                     .type = KILN_PARAM_INT,
                                     .role = KILN_ROLE_TUNING,
                                     .words = "2 4",
                                     .default_value = "4",
                                     .summary = "of the ring"},
                                    {0}};

static const kiln_arg args[] = {
    {.name = "x",
     .kind = KILN_ARG_IN,
     .type = "$type",
     .shape = "m, k",
     .alignment = 16,
     .summary = "factor"},
    {.name = "w",
     .kind = KILN_ARG_IN,
     .type = "$type",
     .shape = "n, k",
     .alignment = 16,
     .summary = "the weights"},
    {.name = "bias", .kind = KILN_ARG_IN, .type = "$type", .shape = "n", .summary = "of the columns of y"},
    {.name = "y",
     .kind = KILN_ARG_OUT,
     .type = "$type",
     .shape = "m, n",
     .alignment = 8,
     .summary = "the product"},
    {.name = "m", .type = "u32", .summary = "rows of x and y"},
    {.name = "n", .type = "u32", .summary = "rows of w, columns of y"},
    {.name = "k", .type = "u32", .summary = "elements of a row of x and w"},
    {0}};

static const kiln_rule rules[] = {
    {"k % 8 == 0 && n % 4 == 0", "k must be a multiple of 8, and n of 4"},
    {"m <= 4194240 && n <= 1048576 && k <= 1048576", "n and k must be at most 2^20, m 65535 * 64"},
    {0}};

static ptx_val add_bias(ptx_fn *f, const void *of, ptx_val sum, ptx_val row, ptx_val column)
{
    const ptx_val *bias = of;
    (void)row;
    return ptx_add(f, sum, ptx_cvt(f, PTX_F32, ptx_load(f, ptx_at(f, *bias, column))));
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    const ptx_type type = kiln_type(v, "type");
    ptx_val x = ptx_param_ptr(f, type, "x"), w = ptx_param_ptr(f, type, "w"),
            bias = ptx_param_ptr(f, type, "bias");
    ptx_val y = ptx_param_ptr(f, type, "y"), m = ptx_param(f, PTX_U32, "m"), n = ptx_param(f, PTX_U32, "n");
    ptx_val k = ptx_param(f, PTX_U32, "k"), warp = ptx_warpid_x(f);
    ptx_val warp_row = ptx_mul(f, ptx_shr(f, warp, 1), WARP_TILE),
            warp_column = ptx_mul(f, ptx_and(f, warp, 1), WARP_TILE);
    ptx_val row = ptx_mul(f, ptx_ctaid_y(f), TILE), column = ptx_mul(f, ptx_ctaid_x(f), TILE);
    const tile_matrix in = {x, m, k, k}, weights = {w, n, k, k}, out = {y, m, n, n};

    tile_pipeline p = tile_pipeline_open(f, type, kiln_int(v, "stages"), DEPTH);
    const uint32_t x_tile = tile_pipeline_add(&p, &in, row, TILE),
                   w_tile = tile_pipeline_add(&p, &weights, column, TILE);
    tile_pipeline_start(&p);
    const tile_operand rows = tile_rows(&p, x_tile, warp_row),
                       columns = tile_columns(&p, w_tile, warp_column);
    tile_sums sums = tile_sums_open(f, WARP_TILE / 16, WARP_TILE / 8);
    PTX_FOR (f, done, 0, k, DEPTH) {
        ptx_main_loop(f);
        tile_pipeline_next(&p);
        tile_multiply(&rows, &columns, &sums);
    }
    ptx_val first_row = ptx_add(f, row, warp_row), first_column = ptx_add(f, column, warp_column);
    tile_store(&sums, &out, first_row, first_column, add_bias, &bias);
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    s->block[0] = THREADS;
    s->shared_bytes = 2 * tile_pipeline_bytes(kiln_int(v, "stages"), DEPTH, THREADS, TILE);
    s->min_sm = kiln_is(v, "type", "bf16") ? 80 : 75;
    s->trip = DEPTH;
}

const kiln_family product_family = {
    .name = "product",
    .summary = "y = x * w^T + bias",
    .source = "a layer of a neural network",
    .params = params,
    .args = args,
    .shape = shape,
    .rules = rules,
    .empty = "m == 0 || n == 0",
    .grid = {"ceil_div(n, 64)", "ceil_div(m, 64)"},
    .time = {.length = "k", .wait = "600"},
    .cost = {.bytes_read = "2 * (m * k + n * k + n)", .bytes_written = "2 * m * n", .elements = "m * n * k"},
    .min_sm = 75,
    .emit = emit,
};
