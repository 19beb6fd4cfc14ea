/* Undefined values: registers that were never written, with the check that reports them; and memory after the end of an
   allocation, without the check.

   usage: test_undefined [pages] */
#include "emu_test.h"

/* A vector store is reported only if all of its elements are undefined; undefined elements are NaNs. */
static void test_vector(void **state)
{
    (void)state;
    float out[4];
    const char *body = ".reg .f32 %f<4>; .reg .u64 %p; .local .align 4 .b8 l[4]; ld.param.u64 %p, [p0];\n"
                       "mov.f32 %f0, 0f3f800000; add.f32 %f2, %f1, %f0; ld.local.f32 %f3, [l];\n"
                       "st.global.v4.f32 [%p], {%f0, %f1, %f2, %f3}; ret;";
    run_body(NULL, body, 1, NULL, 0, out, sizeof out);
    assert_true(out[0] == 1);
    for (int i = 1; i < 4; i++)
        assert_true(out[i] != out[i]);
}

/* Without the memory check, accesses may reach to the end of the allocation's last page, as on a device; also with the race
   check, which keeps state for every word. */
static void test_behind_the_end(void **state)
{
    (void)state;
    uint32_t out[1] = {0};
    const char *body = ".reg .u32 %r<2>; .reg .u64 %p; ld.param.u64 %p, [p0];\n"
                       "mov.u32 %r0, 7; st.global.u32 [%p+4088], %r0; ld.global.nc.u32 %r1, [%p+4084];\n"
                       "ld.global.u32 %r1, [%p+4088]; st.global.u32 [%p], %r1; ret;";
    CUfunction f = kernel_of(NULL, body);
    CUdeviceptr p = device_bytes(sizeof out, out);
    assert_int_equal(launch(f, 1, 1, p, p, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(out, p, sizeof out), CUDA_SUCCESS);
    assert_int_equal(out[0], 7);
    assert_int_equal(cuMemFree_v2(p), CUDA_SUCCESS);
}

/* A process reads KILN_EMU_CHECK only once. */
int main(int argc, char **argv)
{
    const struct CMUnitTest registers[] = {cmocka_unit_test(test_vector)},
                            pages[] = {cmocka_unit_test(test_behind_the_end)};
    const bool is_pages = argc == 2 && strcmp(argv[1], "pages") == 0;
    setenv("KILN_EMU_CHECK", is_pages ? "race" : "init", 1);
    return is_pages ? cmocka_run_group_tests(pages, begin_context, end_context)
                    : cmocka_run_group_tests(registers, begin_context, end_context);
}
