/* Without the memory check an access reaches to the end of the allocation's last page, as on a device: also where the race
   check keeps something of every word. */
#include "emu_test.h"

static int begin_unbounded(void **state)
{
    setenv("KILN_EMU_CHECK", "race", 1);
    return begin_context(state);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_behind_the_end)};
    return cmocka_run_group_tests(tests, begin_unbounded, end_context);
}
