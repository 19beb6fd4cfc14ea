/* Launches a kernel with tensor maps on the runtime's scripted driver, and checks the arguments that its launcher passes to
 * cuTensorMapEncodeTiled and to the kernel. Captures a graph with the launch on the emulated driver. */
#include <dlfcn.h>
#include <stdlib.h>

#include "fake_driver.h"
#include "test.h"

#include <kiln/tensor_map.h>

#include "boxed.h"

static kiln_driver driver;
static kiln_loader loader;
static kiln_slot slots[BOXED_SLOTS];
static int launches;

/* The calls of cuTensorMapEncodeTiled. */
typedef struct encoded {
    int type, interleave, swizzle, promotion, fill;
    unsigned rank, box[5], element_strides[5];
    void *address;
    uint64_t sizes[5], strides[4];
} encoded;
static encoded calls[4];
static int call_count, encode_result;

static int encode(struct CUtensorMap_st *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                  const uint64_t *strides, const unsigned *box, const unsigned *element_strides,
                  int interleave, int swizzle, int promotion, int fill)
{
    encoded *e = &calls[call_count++];
    *e = (encoded){.type = type,
                   .interleave = interleave,
                   .swizzle = swizzle,
                   .promotion = promotion,
                   .fill = fill,
                   .rank = rank,
                   .address = address};
    memcpy(e->sizes, sizes, rank * sizeof *sizes);
    memcpy(e->strides, strides, (rank - 1) * sizeof *strides);
    memcpy(e->box, box, rank * sizeof *box);
    memcpy(e->element_strides, element_strides, rank * sizeof *element_strides);
    assert_int_equal((uintptr_t)map % 64, 0);
    memset(map, call_count, 128);
    return encode_result;
}

/* The maps come after the five arguments. */
static int launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
                  void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)extra;
    uint32_t rows;
    memcpy(&rows, params[2], sizeof rows);
    assert_int_equal(rows, 100);
    for (int i = 0; i < 2; i++)
        for (int byte = 0; byte < 128; byte++)
            assert_int_equal(((unsigned char *)params[5 + i])[byte], i + 1);
    launches++;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    kiln_close(&loader);
    fake_reset();
    fake.major = 9;
    fake.minor = 0;
    driver = fake_table;
    driver.launch_kernel = launch;
    driver.tensor_map_encode_tiled = encode;
    launches = call_count = encode_result = 0;
    assert_status(kiln_open(&loader, &driver, &boxed_bundle, slots, BOXED_SLOTS, NULL), KILN_OK);
    return 0;
}

static boxed_boxes_args args_of(void)
{
    return (boxed_boxes_args){.x = 0x1000, .y = 0x2000, .rows = 100, .n = 64, .stride = 4096};
}

static void expect_call(const encoded *e, uintptr_t address, uint64_t width, uint64_t stride_bytes)
{
    assert_int_equal(e->type, 7 /* CU_TENSOR_MAP_DATA_TYPE_FLOAT32 */);
    assert_int_equal(e->rank, 2);
    assert_int_equal((uintptr_t)e->address, address);
    assert_int_equal(e->sizes[0], width);
    assert_int_equal(e->sizes[1], 100);
    assert_int_equal(e->strides[0], stride_bytes);
    assert_int_equal(e->box[0], 32);
    assert_int_equal(e->box[1], 8);
    assert_int_equal(e->element_strides[0], 1);
    assert_int_equal(e->element_strides[1], 1);
    assert_int_equal(e->interleave, 0);
    assert_int_equal(e->swizzle, 3 /* CU_TENSOR_MAP_SWIZZLE_128B */);
    assert_int_equal(e->fill, 0 /* zeros */);
}

static void encodes_the_arrays(void **state)
{
    (void)state;
    const boxed_boxes_args args = args_of();
    assert_status(boxed_boxes(&loader, NULL, &args), KILN_OK);
    assert_int_equal(call_count, 2);
    assert_int_equal(launches, 1);
    expect_call(&calls[0], 0x1000, 4096, 16384);
    expect_call(&calls[1], 0x2000, 64, 256);
}

static void encodes_without_a_launch(void **state)
{
    (void)state;
    const boxed_boxes_args args = args_of();
    assert_status(boxed_boxes(&loader, KILN_NO_LAUNCH, &args), KILN_OK);
    assert_int_equal(call_count, 2);
    assert_int_equal(launches, 0);
}

static void expect_failure(kiln_status wanted, const char *detail)
{
    const boxed_boxes_args args = args_of();
    kiln_error error;
    assert_status(boxed_boxes(&loader, NULL, &args), wanted);
    kiln_last_error(&loader, &error);
    assert_string_equal(error.subject, "boxes");
    assert_string_equal(error.detail, detail);
    assert_int_equal(launches, 0);
}

static void reports_rejected_maps(void **state)
{
    (void)state;
    encode_result = 1;
    expect_failure(KILN_ERROR_BAD_ARGUMENT, "cuTensorMapEncodeTiled rejects the address or the sizes of x");
    assert_int_equal(call_count, 1);
}

static void reports_a_missing_entry(void **state)
{
    (void)state;
    driver.tensor_map_encode_tiled = NULL;
    expect_failure(KILN_ERROR_DRIVER_SYMBOL, "cuTensorMapEncodeTiled");
}

/* Encodes three contiguous dimensions. For an empty array the driver is not called. */
static void encodes_dimensions(void **state)
{
    (void)state;
    static const kiln_box box = {"rejected", 6, 2, 3, {16, 4, 2}, 1};
    static const uint64_t sizes[] = {24, 5, 3}, none[] = {24, 0, 3}, strides[] = {32, 256};
    kiln_tensor_map map;
    assert_status(kiln_encode_map(&loader, "s", &box, 0x1000, sizes, NULL, &map), KILN_OK);
    assert_int_equal(calls[0].rank, 3);
    assert_int_equal(calls[0].strides[0], 48);
    assert_int_equal(calls[0].strides[1], 240);
    assert_status(kiln_encode_map(&loader, "s", &box, 0x1000, sizes, strides, &map), KILN_OK);
    assert_int_equal(calls[1].strides[0], 64);
    assert_int_equal(calls[1].strides[1], 512);
    assert_status(kiln_encode_map(&loader, "s", &box, 0, none, NULL, &map), KILN_OK);
    assert_int_equal(call_count, 2);
    for (int i = 0; i < 16; i++)
        assert_int_equal(map.words[i], 0);
}

/* Sizes and strides that wrap would describe a small array; the driver gets a stride that it rejects. */
static void caps_what_wraps(void **state)
{
    (void)state;
    static const kiln_box box = {"rejected", 6, 2, 3, {16, 4, 2}, 1};
    static const uint64_t sizes[] = {24, 5, 3}, strides[] = {32, (UINT64_C(1) << 63) + 256},
                          large[] = {UINT64_C(1) << 32, UINT64_C(1) << 32, 3};
    kiln_tensor_map map;
    assert_status(kiln_encode_map(&loader, "s", &box, 0x1000, sizes, strides, &map), KILN_OK);
    assert_int_equal(calls[0].strides[1], UINT64_MAX);
    assert_status(kiln_encode_map(&loader, "s", &box, 0x1000, large, NULL, &map), KILN_OK);
    assert_int_equal(call_count, 2);
    assert_int_equal(calls[1].strides[0], UINT64_C(1) << 33);
    assert_int_equal(calls[1].strides[1], UINT64_MAX);
}

/* ---- graphs -------------------------------------------------------------------------------------------------------- */

/* Calls an entry point that the table lacks, with at most two pointers or numbers, and flags: all fit in registers. */
static void call(const char *symbol, void *a, void *b)
{
    int (*function)(void *, void *, unsigned long long);
    void *address = dlsym(driver.library, symbol);
    memcpy(&function, &address, sizeof function);
    assert_int_equal(function(a, b, 0), 0);
}

/* The map is on the launcher's stack, and another call overwrites it before the graph is launched. */
static void keeps_maps_in_a_graph(void **state)
{
    (void)state;
    enum { ROWS = 13, N = 44, STRIDE = 48 };
    static float from[ROWS * STRIDE], to[ROWS * N];
    CUcontext context;
    CUdeviceptr x, y;
    void *graph, *exec, *stream;
    for (int i = 0; i < ROWS * STRIDE; i++)
        from[i] = (float)i;
    setenv("KILN_EMU_DEVICE", "sm_90", 1);
    kiln_close(&loader);
    assert_status(kiln_driver_load(&driver, EMULATOR, NULL), KILN_OK);
    assert_int_equal(driver.init(0), 0);
    assert_int_equal(driver.device_primary_ctx_retain(&context, 0), 0);
    assert_int_equal(driver.ctx_set_current(context), 0);
    assert_int_equal(driver.mem_alloc(&x, sizeof from), 0);
    assert_int_equal(driver.mem_alloc(&y, sizeof to), 0);
    assert_int_equal(driver.memcpy_htod(x, from, sizeof from), 0);
    assert_status(kiln_open(&loader, &driver, &boxed_bundle, slots, BOXED_SLOTS, NULL), KILN_OK);
    const kiln_kernel *kernel = &boxed_boxes_kernel;
    assert_status(kiln_preload(&loader, &kernel, 1), KILN_OK);
    const boxed_boxes_args args = {.x = x, .y = y, .rows = ROWS, .n = N, .stride = STRIDE};
    call("cuStreamCreate", &stream, (void *)(uintptr_t)1);
    call("cuStreamBeginCapture_v2", stream, NULL);
    assert_status(boxed_boxes(&loader, (CUstream)stream, &args), KILN_OK);
    call("cuStreamEndCapture", stream, &graph);
    const boxed_boxes_args other = {.x = x, .y = x, .rows = 1, .n = 4, .stride = 4};
    assert_status(boxed_boxes(&loader, KILN_NO_LAUNCH, &other), KILN_OK);
    call("cuGraphInstantiateWithFlags", &exec, graph);
    call("cuGraphLaunch", exec, stream);
    assert_int_equal(driver.ctx_synchronize(), 0);
    assert_int_equal(driver.memcpy_dtoh(to, y, sizeof to), 0);
    for (int i = 0; i < ROWS * N; i++)
        assert_true(to[i] == from[i / N * STRIDE + i % N]);
    call("cuGraphExecDestroy", exec, NULL);
    call("cuGraphDestroy", graph, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(encodes_the_arrays, set_up),
        cmocka_unit_test_setup(encodes_without_a_launch, set_up),
        cmocka_unit_test_setup(reports_rejected_maps, set_up),
        cmocka_unit_test_setup(reports_a_missing_entry, set_up),
        cmocka_unit_test_setup(encodes_dimensions, set_up),
        cmocka_unit_test_setup(caps_what_wraps, set_up),
        cmocka_unit_test(keeps_maps_in_a_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
