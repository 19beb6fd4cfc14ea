/* Arrays of 2^63 bytes and more, which rules about single sizes accept: their addresses would wrap around. */
#include "fake_driver.h"
#include "test.h"

#include "kiln_default.h"

static kiln_loader loader;
static kiln_slot slots[KILN_DEFAULT_SLOTS];

static int open_loader(void **state)
{
    (void)state;
    fake_reset();
    memset(&loader, 0, sizeof loader);
    return (int)kiln_open(&loader, &fake_table, &kiln_default_bundle, slots, KILN_DEFAULT_SLOTS, NULL);
}

static int close_loader(void **state)
{
    (void)state;
    return (int)kiln_close(&loader);
}

static void assert_refused(kiln_status status, const char *subject, const char *detail)
{
    kiln_error error;
    assert_status(kiln_last_error(&loader, &error), KILN_OK);
    assert_status(status, KILN_ERROR_BAD_ARGUMENT);
    assert_string_equal(error.subject, subject);
    assert_string_equal(error.detail, detail);
    assert_int_equal(fake.counts[FAKE_launch_kernel], 0);
}

/* An accepted call reaches the launch's own checks, where the grid may be too large. */
static void assert_not_refused(kiln_status status)
{
    if (status != KILN_OK)
        assert_status(status, KILN_ERROR_GRID_TOO_LARGE);
}

static const kiln_default_nvfp4_gemv_args nvfp4 = {
    .a = 256, .sfa = 256, .b = 256, .sfb = 256, .out = 256, .m = 128, .k = 2048, .l = 1};

static void of_a_product_of_sizes(void **state)
{
    (void)state;
    kiln_default_nvfp4_gemv_args a = nvfp4;
    a.m = (1u << 30) - 1;
    a.l = 1190151697;
    assert_refused(kiln_default_nvfp4_gemv(&loader, NULL, &a), "nvfp4_gemv",
                   "a would have 2^63 bytes or more");
    a = nvfp4;
    a.m = 1u << 31; /* 2^31 * 2^31 / 2 for each of l */
    a.k = 1u << 31;
    a.l = 4;
    assert_refused(kiln_default_nvfp4_gemv(&loader, NULL, &a), "nvfp4_gemv",
                   "a would have 2^63 bytes or more");
    a.l = 3;
    assert_not_refused(kiln_default_nvfp4_gemv(&loader, KILN_NO_LAUNCH, &a));
    a = nvfp4;
    a.b_rows = UINT32_MAX;
    a.k = 1u << 31;
    a.l = 3;
    assert_refused(kiln_default_nvfp4_gemv(&loader, NULL, &a), "nvfp4_gemv",
                   "b would have 2^63 bytes or more");
}

static kiln_default_rope_args rope(void)
{
    return (kiln_default_rope_args){.q = 256,
                                    .k = 256,
                                    .v = 256,
                                    .frequencies = 256,
                                    .positions = 256,
                                    .slots = 256,
                                    .q_out = 256,
                                    .k_cache = 256,
                                    .v_cache = 256,
                                    .n = 4,
                                    .q_heads = 4,
                                    .k_heads = 2,
                                    .v_heads = 2,
                                    .rotary_dim = 128,
                                    .magnitude = 1,
                                    .pages = 8,
                                    .page_size = 16,
                                    .q_row_stride = 512,
                                    .q_head_stride = 128,
                                    .k_row_stride = 256,
                                    .k_head_stride = 128,
                                    .v_row_stride = 256,
                                    .v_head_stride = 128,
                                    .out_row_stride = 512,
                                    .out_head_stride = 128,
                                    .cache_page_stride = 4096,
                                    .cache_row_stride = 256,
                                    .cache_head_stride = 128};
}

static void of_strides(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        const char *detail;
        uint64_t steps; /* the factor of the stride in the array's extent */
    } rows[] = {
#define ROW(member, arg, steps)                                                                              \
    {offsetof(kiln_default_rope_args, member), arg " would have 2^63 bytes or more", steps}
        ROW(q_row_stride, "q", 3),
        ROW(q_head_stride, "q", 3),
        ROW(k_row_stride, "k", 3),
        ROW(k_head_stride, "k", 1),
        ROW(v_row_stride, "v", 3),
        ROW(v_head_stride, "v", 1),
        ROW(out_row_stride, "q_out", 3),
        ROW(out_head_stride, "q_out", 3),
        ROW(cache_page_stride, "k_cache", 7),
        ROW(cache_row_stride, "k_cache", 15),
        ROW(cache_head_stride, "k_cache", 1),
    };
    kiln_default_rope_args a = rope();
    assert_status(kiln_default_rope(&loader, KILN_NO_LAUNCH, &a), KILN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t *stride = (uint64_t *)(void *)((char *)&a + rows[i].offset);
        a = rope();
        *stride = UINT64_MAX / 8 * 8 - 8; /* would wrap to a negative offset */
        assert_refused(kiln_default_rope(&loader, NULL, &a), "rope", rows[i].detail);
        *stride = (UINT64_C(1) << 62) / rows[i].steps / 8 * 8 + 8; /* elements of 2 bytes */
        assert_refused(kiln_default_rope(&loader, NULL, &a), "rope", rows[i].detail);
        *stride = ((UINT64_C(1) << 62) - (1 << 20)) / rows[i].steps / 8 * 8;
        assert_not_refused(kiln_default_rope(&loader, KILN_NO_LAUNCH, &a));
    }
    a = rope();
    a.n = a.pages = 1; /* with one row, strides do not matter */
    a.q_row_stride = a.k_row_stride = a.v_row_stride = a.out_row_stride = a.cache_page_stride =
        UINT64_MAX - 7;
    assert_status(kiln_default_rope(&loader, KILN_NO_LAUNCH, &a), KILN_OK);
}

static void of_workspaces(void **state)
{
    (void)state;
    uint64_t bytes, counters;
    kiln_default_nf4_gemm_args a = {.in = 256,
                                    .packed = 256,
                                    .scale = 256,
                                    .out = 256,
                                    .workspace = 256,
                                    .tile_counters = 256,
                                    .m = 32,
                                    .n = 4096,
                                    .k = 4096,
                                    .workspace_size = UINT64_MAX >> 8,
                                    .a = KILN_DEFAULT_NF4_GEMM_A_F16};
    const kiln_kernel *kernel = &kiln_default_nf4_gemm_f16_f32_low_mma_32_128_2_compact_2_0_kernel;
    assert_status(kernel->launch(&loader, KILN_NO_LAUNCH, &a), KILN_OK);
    a.workspace_size = (UINT64_C(1) << 61) - 1024;
    assert_status(kernel->launch(&loader, KILN_NO_LAUNCH, &a), KILN_OK);
    a.workspace_size = UINT64_C(1) << 61;
    assert_refused(kernel->launch(&loader, NULL, &a), "nf4_gemm", "workspace would have 2^63 bytes or more");
    a.workspace_size = UINT64_MAX;
    assert_refused(kernel->launch(&loader, NULL, &a), "nf4_gemm", "workspace would have 2^63 bytes or more");
    assert_status(kiln_default_nf4_gemm_workspace(&loader, &a, &bytes, &counters), KILN_OK);
    assert_in_range(bytes, 1, 1 << 28);

    kiln_default_nf4_gemm_transposed_args back = {.in = 256,
                                                  .packed = 256,
                                                  .scale = 256,
                                                  .out = 256,
                                                  .workspace = 256,
                                                  .tile_counters = 256,
                                                  .m = 32,
                                                  .n = 4096,
                                                  .k = 4096,
                                                  .workspace_size = UINT64_MAX,
                                                  .a = KILN_DEFAULT_NF4_GEMM_TRANSPOSED_A_F16};
    assert_status(kiln_default_nf4_gemm_transposed_workspace(&loader, &back, &bytes, &counters), KILN_OK);
    assert_in_range(bytes, 1, 1 << 28);
    assert_refused(kiln_default_nf4_gemm_transposed(&loader, NULL, &back), "nf4_gemm_transposed",
                   "workspace would have 2^63 bytes or more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_a_product_of_sizes, open_loader, close_loader),
        cmocka_unit_test_setup_teardown(of_strides, open_loader, close_loader),
        cmocka_unit_test_setup_teardown(of_workspaces, open_loader, close_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
