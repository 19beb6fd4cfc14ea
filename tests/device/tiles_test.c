/* Tests kiln/author/tile.h on the emulated device: exact products of small integers, for every kind of stages, depths, thread
 * blocks and tiles, at sizes that are not multiples of a tile; with A in registers on both atoms, and with a producer warp.
 *
 *     device_tiles_test DRIVER
 */
#include <string.h>

#include <kiln/author/tile.h>
#include <kiln/tensor_map.h>

#include "emitted.h"

typedef struct test_case {
    uint32_t stages, depth, warps, row_tiles, column_tiles; /* warps are stacked along the rows */
    uint32_t m, n, k;
} test_case;

static const test_case cases[] = {
    {2, 16, 1, 1, 2, 16, 16, 16},   {2, 16, 1, 1, 2, 1, 4, 8},      {3, 16, 4, 1, 4, 70, 40, 104},
    {2, 32, 4, 2, 4, 129, 68, 96},  {4, 32, 4, 2, 4, 65, 36, 40},   {5, 32, 2, 4, 8, 100, 132, 72},
    {2, 64, 8, 1, 2, 200, 28, 136}, {2, 64, 8, 2, 16, 31, 256, 64}, {2, 64, 1, 2, 6, 33, 52, 0},
    {4, 64, 2, 1, 8, 3, 72, 200},   {2, 64, 1, 1, 2, 33, 20, 136},  {3, 64, 3, 1, 4, 100, 36, 72},
    {2, 64, 5, 1, 2, 90, 16, 64},   {2, 64, 7, 1, 6, 120, 52, 192},
};

/* 64 rows of w by `columns` rows of x. */
typedef struct product_case {
    tile_atom atom;
    ptx_type type; /* of x and w; y is of f16 */
    uint32_t stages, depth, columns;
    uint32_t m, n, k;
    bool is_mapped; /* a producer warp copies x */
} product_case;

static const product_case product_cases[] = {
    {TILE_MMA, PTX_F16, 2, 16, 16, 17, 64, 16, false},
    {TILE_MMA, PTX_F16, 3, 32, 48, 100, 68, 72, false},
    {TILE_MMA, PTX_F16, 2, 64, 128, 31, 60, 136, false},
    {TILE_WGMMA, PTX_F16, 3, 16, 16, 16, 64, 16, false},
    {TILE_WGMMA, PTX_BF16, 4, 16, 48, 70, 132, 40, false},
    {TILE_WGMMA, PTX_F16, 3, 32, 32, 33, 68, 96, false},
    {TILE_WGMMA, PTX_F16, 4, 32, 112, 30, 4, 200, false},
    {TILE_WGMMA, PTX_F16, 3, 64, 64, 65, 60, 64, false},
    {TILE_WGMMA, PTX_F16, 5, 64, 256, 260, 64, 136, false},
    {TILE_WGMMA, PTX_BF16, 4, 64, 128, 1, 72, 8, false},
    {TILE_WGMMA, PTX_F16, 4, 64, 128, 129, 64, 0, false},
    {TILE_MMA, PTX_F16, 3, 16, 48, 60, 68, 104, true},
    {TILE_WGMMA, PTX_F16, 3, 16, 16, 17, 64, 56, true},
    {TILE_WGMMA, PTX_BF16, 4, 32, 112, 70, 132, 200, true},
    {TILE_WGMMA, PTX_F16, 5, 64, 256, 260, 64, 136, true},
    {TILE_WGMMA, PTX_F16, 3, 16, 64, 65, 60, 232, true},
    {TILE_WGMMA, PTX_F16, 4, 64, 128, 129, 64, 0, true},
};

enum {
    MOST = 1 << 16,
    BIAS = 3,
    ROWS = 64,
    MAX_DYNAMIC_SHARED = 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
};

/* Returns an integer from -4 to 4. */
static int number_at(uint32_t i)
{
    return (int)((i * 2654435761u >> 20) % 9) - 4;
}

static uint16_t half_of(int number)
{
    uint32_t size = (uint32_t)abs(number), exponent = 0;
    if (number == 0)
        return 0;
    while (size >> (exponent + 1))
        exponent++;
    return (uint16_t)((number < 0 ? 0x8000u : 0u) | (exponent + 15) << 10 |
                      (size << (10 - exponent) & 0x3ff));
}

static uint16_t bfloat_of(int number)
{
    return (uint16_t)(ptx_f32((float)number).bits >> 16);
}

static ptx_val add_three(ptx_fn *f, const void *of, ptx_val sum, ptx_val row, ptx_val column)
{
    (void)of, (void)row, (void)column;
    return ptx_add(f, sum, BIAS);
}

static void emit(ptx_fn *f, const test_case *c)
{
    const uint32_t tile_m = 16 * c->row_tiles * c->warps, tile_n = 8 * c->column_tiles;
    ptx_val x = ptx_param_ptr(f, PTX_F16, "x"), w = ptx_param_ptr(f, PTX_F16, "w"),
            y = ptx_param_ptr(f, PTX_F16, "y");
    ptx_val m = ptx_param(f, PTX_U32, "m"), n = ptx_param(f, PTX_U32, "n"), k = ptx_param(f, PTX_U32, "k");
    ptx_val row = ptx_mul(f, ptx_ctaid_y(f), tile_m), column = ptx_mul(f, ptx_ctaid_x(f), tile_n);
    ptx_val warp_row = ptx_mul(f, ptx_warpid_x(f), 16 * c->row_tiles);
    const tile_matrix in = {x, m, k, k}, weights = {w, n, k, k}, out = {y, m, n, n};
    tile_pipeline p = tile_pipeline_open(f, PTX_F16, c->stages, c->depth);
    const uint32_t x_tile = tile_pipeline_add(&p, &in, row, tile_m),
                   w_tile = tile_pipeline_add(&p, &weights, column, tile_n);
    const tile_operand rows = tile_rows(&p, x_tile, warp_row), columns = tile_columns(&p, w_tile, ptx_u32(0));
    tile_sums sums = tile_sums_open(f, c->row_tiles, c->column_tiles);
    tile_pipeline_start(&p);
    PTX_FOR (f, done, 0, k, c->depth) {
        tile_pipeline_next(&p);
        tile_multiply(&rows, &columns, &sums);
    }
    ptx_val first_row = ptx_add(f, row, warp_row);
    tile_store(&sums, &out, first_row, column, add_three, NULL);
}

/* A's registers: two neighbouring elements of this lane's two rows in each half of a step, or zeros beyond k. */
static void load_a(ptx_fn *f, uint32_t depth, const ptx_val rows[2], ptx_val done, ptx_val k, ptx_val a[])
{
    ptx_val lane = ptx_laneid(f), t = ptx_and(f, lane, 3);
    for (uint32_t reg = 0; reg < depth / 4; reg++) {
        ptx_val element = ptx_add(f, ptx_mad(f, t, 2, done), 16 * (reg / 4) + 8 * (reg % 4 / 2));
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, rows[reg % 2], element), PTX_B32);
        ptx_set(f, a[reg], ptx_bits(PTX_B32, 0));
        PTX_WHEN (f, ptx_lt(f, element, k)) {
            ptx_set(f, a[reg], ptx_load(f, at));
        }
    }
}

static void emit_product(ptx_fn *f, const product_case *c)
{
    ptx_val x = ptx_param_ptr(f, c->type, "x"), w = ptx_param_ptr(f, c->type, "w"),
            y = ptx_param_ptr(f, PTX_F16, "y"), a[16], rows[2];
    ptx_val m = ptx_param(f, PTX_U32, "m"), n = ptx_param(f, PTX_U32, "n"), k = ptx_param(f, PTX_U32, "k");
    ptx_val row = ptx_mul(f, ptx_ctaid_y(f), c->columns), column = ptx_mul(f, ptx_ctaid_x(f), ROWS);
    ptx_val first = ptx_mad(f, ptx_warpid_x(f), 16, column);
    const tile_matrix in = {x, m, k, k}, weights = {w, n, k, k}, out = {y, m, n, n};
    const uint32_t unrolled = c->is_mapped ? c->stages : 1, trip = c->depth * unrolled;
    ptx_val map = {0}, count = ptx_mul(f, ptx_div(f, ptx_add(f, k, trip - 1), trip), unrolled);
    if (c->is_mapped)
        map = ptx_tensor_map(f, "map");
    ptx_min_blocks(f, 1);
    tile_pipeline p = tile_pipeline_open(f, c->type, c->stages, c->depth);
    const uint32_t x_tile = tile_pipeline_add_map(&p, map, &in, row, c->columns, 0);
    const tile_product product = tile_product_open(&p, x_tile, c->atom);
    tile_sums sums = tile_sums_open(f, 1, c->columns / 8);
    tile_row_pointers(f, &weights, first, rows);
    for (uint32_t i = 0; i < c->depth / 4; i++)
        a[i] = ptx_declare(f, PTX_B32);
    tile_pipeline_start(&p);
    TILE_CONSUMERS (&p, count) {
        PTX_FOR (f, done, 0, k, trip) {
            for (uint32_t i = 0; i < unrolled; i++) {
                tile_pipeline_next(&p);
                load_a(f, c->depth, rows, ptx_add(f, done, c->depth * i), k, a);
                tile_product_issue(&product, a, &sums, true);
                tile_product_wait(&product, 0);
            }
        }
        tile_pipeline_end(&p);
        tile_store_transposed(&sums, &out, row, first, add_three, NULL);
    }
}

/* Emits one of the two cases; the other is null. */
static CUfunction load(const test_case *c, const product_case *with_a, target t, uint32_t threads,
                       CUmodule *module)
{
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "product", t, (const uint32_t[]){threads, 1, 1});
    if (c)
        emit(f, c);
    else
        emit_product(f, with_a);
    CUfunction function = load_emitted(a, f, "product", module);
    arena_free(a);
    return function;
}

static int count_wrong(uint32_t m, uint32_t n, uint32_t k, const uint16_t *y)
{
    int wrong = 0;
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < n; j++) {
            int sum = BIAS;
            for (uint32_t l = 0; l < k; l++)
                sum += number_at(i * k + l) * number_at(j * k + l);
            wrong += y[i * n + j] != half_of(sum);
        }
    return wrong;
}

typedef struct launch {
    uint32_t m, n, k, threads, tile_m, tile_n, shared_bytes;
    uint32_t depth; /* of the boxes of x; 0: no tensor map */
} launch;

static void encode(const launch *of, ptx_type type, CUdeviceptr x, kiln_tensor_map *map)
{
    enum { F16 = 6, BF16 = 9 }; /* CUtensorMapDataType */
    const uint64_t sizes[] = {of->k, of->m}, strides[] = {2 * (uint64_t)of->k};
    const unsigned box[] = {of->depth, of->tile_m}, each[] = {1, 1};
    const int swizzle = of->depth == 64 ? 3 : of->depth == 32 ? 2 : 1;
    memset(map, 0, sizeof *map);
    if (of->depth && of->k)
        need(driver.tensor_map_encode_tiled((struct CUtensorMap_st *)map, type == PTX_F16 ? F16 : BF16, 2,
                                            (void *)(uintptr_t)x, sizes, strides, box, each, 0, swizzle, 0,
                                            0) == 0,
             "cuTensorMapEncodeTiled");
}

static int launch_product(CUfunction function, ptx_type type, launch of)
{
    static uint16_t numbers[MOST], y[MOST];
    CUdeviceptr at[3];
    uint32_t m = of.m, n = of.n, k = of.k, shared = of.shared_bytes;
    kiln_tensor_map map;
    void *params[] = {&at[0], &at[1], &at[2], &m, &n, &k, &map};
    const size_t bytes[] = {2 * (size_t)(m * k), 2 * (size_t)(n * k), 2 * (size_t)(m * n)};
    for (uint32_t i = 0; i < MOST; i++)
        numbers[i] = type == PTX_F16 ? half_of(number_at(i)) : bfloat_of(number_at(i));
    for (int i = 0; i < 3; i++) {
        at[i] = allocate(bytes[i] ? bytes[i] : 2);
        if (i < 2 && bytes[i])
            upload_to(at[i], numbers, bytes[i]);
    }
    encode(&of, type, at[0], &map);
    if (shared > 48 << 10)
        need(driver.func_set_attribute(function, MAX_DYNAMIC_SHARED, (int)shared) == 0, "cuFuncSetAttribute");
    need(driver.launch_kernel(function, (n + of.tile_n - 1) / of.tile_n, (m + of.tile_m - 1) / of.tile_m, 1,
                              of.threads, 1, 1, shared, NULL, params, NULL) == 0,
         "cuLaunchKernel");
    download(y, at[2], bytes[2]);
    for (int i = 0; i < 3; i++)
        driver.mem_free(at[i]);
    return count_wrong(m, n, k, y);
}

static int run(const test_case *c, target t)
{
    const uint32_t threads = 32 * c->warps, tile_m = 16 * c->row_tiles * c->warps,
                   tile_n = 8 * c->column_tiles,
                   shared = tile_pipeline_bytes(c->stages, c->depth, threads, tile_m) +
                            tile_pipeline_bytes(c->stages, c->depth, threads, tile_n);
    CUmodule module;
    CUfunction function = load(c, NULL, t, threads, &module);
    const int wrong =
        launch_product(function, PTX_F16, (launch){c->m, c->n, c->k, threads, tile_m, tile_n, shared, 0});
    driver.module_unload(module);
    if (wrong)
        printf("sm_%u, stages %u, depth %u, %u warps, %u by %u tiles, m=%u n=%u k=%u: %d wrong\n", t.sm,
               c->stages, c->depth, c->warps, c->row_tiles, c->column_tiles, c->m, c->n, c->k, wrong);
    return wrong;
}

static int run_with_a(const product_case *c, target t)
{
    enum { THREADS = 128 };
    const uint32_t threads = THREADS + (c->is_mapped ? TILE_PRODUCER_THREADS : 0),
                   shared = tile_pipeline_bytes(c->stages, c->depth, c->is_mapped ? 0 : THREADS, c->columns);
    CUmodule module;
    CUfunction function = load(NULL, c, t, threads, &module);
    const int wrong = launch_product(
        function, c->type,
        (launch){c->m, c->n, c->k, threads, c->columns, ROWS, shared, c->is_mapped ? c->depth : 0});
    driver.module_unload(module);
    if (wrong)
        printf("sm_%u, atom %d, stages %u, depth %u, %u columns, m=%u n=%u k=%u, %s: %d wrong\n", t.sm,
               (int)c->atom, c->stages, c->depth, c->columns, c->m, c->n, c->k,
               c->is_mapped ? "map" : "no map", wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    static const target targets[] = {{75, TARGET_BASE}, {80, TARGET_BASE}};
    int wrong = 0;
    if (argc != 2)
        return 2;
    open_driver(argv[1]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t j = 0; j < sizeof targets / sizeof *targets; j++)
            wrong += run(&cases[i], targets[j]);
    for (size_t i = 0; i < sizeof product_cases / sizeof *product_cases; i++)
        for (size_t j = 0; j < sizeof targets / sizeof *targets && product_cases[i].atom == TILE_MMA &&
                           !product_cases[i].is_mapped;
             j++)
            wrong += run_with_a(&product_cases[i], targets[j]);
    for (size_t i = 0; i < sizeof product_cases / sizeof *product_cases; i++)
        wrong += run_with_a(&product_cases[i], (target){90, TARGET_ARCH});
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
