/* Workspace sizes of the default bundle: exactly what the picked variant needs, and the maximum is enough for every smaller
 * size. */
#include "fake_driver.h"
#include "test.h"

#include "kiln_default.h"

static kiln_loader loader;
static kiln_slot slots[KILN_DEFAULT_SLOTS];

enum { SIZES = 3 };

/* A family under a common type: args is its argument struct, sizes are the three that vary. */
typedef struct subject {
    void (*set)(const uint32_t sizes[SIZES], uint64_t workspace_size);
    kiln_status (*workspace)(uint64_t *bytes, uint64_t *counters);
    kiln_status (*workspace_max)(uint64_t *bytes, uint64_t *counters);
    kiln_status (*pick)(const kiln_kernel **kernel);
    const void *args;
    uint32_t most[SIZES], multiple[SIZES];
} subject;

#define FUNCTIONS(family)                                                                                    \
    static kiln_default_##family##_args family##_args;                                                       \
    static kiln_status family##_workspace(uint64_t *bytes, uint64_t *counters)                               \
    {                                                                                                        \
        return kiln_default_##family##_workspace(&loader, &family##_args, bytes, counters);                  \
    }                                                                                                        \
    static kiln_status family##_workspace_max(uint64_t *bytes, uint64_t *counters)                           \
    {                                                                                                        \
        return kiln_default_##family##_workspace_max(&loader, &family##_args, bytes, counters);              \
    }                                                                                                        \
    static kiln_status family##_pick(const kiln_kernel **kernel)                                             \
    {                                                                                                        \
        return kiln_default_##family##_pick(&loader, &family##_args, kernel);                                \
    }
FUNCTIONS(nf4_gemm)
FUNCTIONS(nf4_gemm_transposed)
FUNCTIONS(attention)

static void set_nf4_gemm(const uint32_t sizes[SIZES], uint64_t workspace_size)
{
    const CUdeviceptr at = workspace_size ? 0x1000 : 0;
    nf4_gemm_args = (kiln_default_nf4_gemm_args){.in = 256,
                                                 .packed = 512,
                                                 .scale = 1024,
                                                 .out = 2048,
                                                 .workspace = at,
                                                 .tile_counters = at,
                                                 .m = sizes[0],
                                                 .n = sizes[1],
                                                 .k = sizes[2],
                                                 .workspace_size = workspace_size};
}

static void set_nf4_gemm_transposed(const uint32_t sizes[SIZES], uint64_t workspace_size)
{
    const CUdeviceptr at = workspace_size ? 0x1000 : 0;
    nf4_gemm_transposed_args = (kiln_default_nf4_gemm_transposed_args){.in = 256,
                                                                       .packed = 512,
                                                                       .scale = 1024,
                                                                       .out = 2048,
                                                                       .workspace = at,
                                                                       .tile_counters = at,
                                                                       .m = sizes[0],
                                                                       .n = sizes[1],
                                                                       .k = sizes[2],
                                                                       .workspace_size = workspace_size};
}

static void set_attention(const uint32_t sizes[SIZES], uint64_t workspace_size)
{
    const CUdeviceptr at = workspace_size ? 0x1000 : 0;
    attention_args = (kiln_default_attention_args){.type = KILN_DEFAULT_ATTENTION_TYPE_BF16,
                                                   .head_dim = 128,
                                                   .causal = 1,
                                                   .q = 256,
                                                   .k = 512,
                                                   .v = 1024,
                                                   .out = 2048,
                                                   .workspace = at,
                                                   .tile_counters = at,
                                                   .batch = 1,
                                                   .kv_heads = 1,
                                                   .q_heads = sizes[0],
                                                   .q_length = sizes[1],
                                                   .k_length = sizes[2],
                                                   .scale = 0.125,
                                                   .out_row_stride = 1024,
                                                   .out_head_stride = 1024,
                                                   .out_batch_stride = 1024,
                                                   .workspace_size = workspace_size};
}

#define OF(family) set_##family, family##_workspace, family##_workspace_max, family##_pick, &family##_args
static const subject subjects[] = {
    {OF(nf4_gemm), {300, 9000, 8192}, {1, 1, 64}},
    {OF(nf4_gemm_transposed), {300, 8192, 9024}, {1, 8, 64}},
    {OF(attention), {32, 40, 8192}, {1, 1, 1}},
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static int open_loader(void **state)
{
    (void)state;
    fake_reset();
    return (int)kiln_open(&loader, &fake_table, &kiln_default_bundle, slots, KILN_DEFAULT_SLOTS, NULL);
}

static int close_loader(void **state)
{
    (void)state;
    return (int)kiln_close(&loader);
}

/* Returns the i-th sizes to try, up to the subject's largest: mostly small, and few multiples of tiles. */
static void sizes_of(const subject *s, uint32_t i, uint32_t sizes[SIZES])
{
    for (int k = 0; k < SIZES; k++, i /= 16) {
        const uint32_t size = s->most[k] * (i % 16 + 1) / 16 * (i % 16 + 1) / 16 + i % 3;
        sizes[k] = (size < s->most[k] ? size : s->most[k]) / s->multiple[k] * s->multiple[k];
    }
}

/* A call with the stated workspace launches the same variant; a call with less cannot. */
static uint32_t check_sizes(const subject *s, const uint32_t sizes[SIZES], uint64_t most_bytes,
                            uint64_t most_counters)
{
    uint64_t bytes, counters, again;
    const kiln_kernel *unlimited = NULL, *kernel = NULL;
    s->set(sizes, 0);
    assert_status(s->workspace(&bytes, &counters), KILN_OK);
    assert_true(bytes <= most_bytes && counters <= most_counters);
    if (bytes == 0) {
        assert_int_equal(counters, 0);
        return 0;
    }
    assert_true(counters > 0);
    s->set(sizes, UINT64_MAX >> 8); /* the largest array allowed */
    assert_status(s->pick(&unlimited), KILN_OK);
    s->set(sizes, bytes / 4);
    assert_status(s->pick(&kernel), KILN_OK);
    assert_ptr_equal(kernel, unlimited);
    assert_status(s->workspace(&again, &counters), KILN_OK); /* whatever value the struct has */
    assert_int_equal(again, bytes);
    assert_status(kernel->launch(&loader, NULL, s->args), KILN_OK);
    s->set(sizes, bytes / 4 - 1);
    assert_status(kernel->launch(&loader, NULL, s->args), KILN_ERROR_BAD_ARGUMENT);
    return 1;
}

static void is_what_the_picked_variant_asks_for(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        const subject *s = &subjects[i];
        uint64_t most_bytes, most_counters;
        uint32_t with = 0;
        s->set(s->most, 0);
        assert_status(s->workspace_max(&most_bytes, &most_counters), KILN_OK);
        for (uint32_t k = 0; k < 4096; k++) {
            uint32_t sizes[SIZES];
            sizes_of(s, k, sizes);
            with += check_sizes(s, sizes, most_bytes, most_counters);
        }
        assert_true(with > 10);
        print_message("%u of 4096 sizes take a workspace\n", (unsigned)with);
    }
}

/* Rules let attention split at most 2^36 rows and 2^31 tiles. Beyond that the products would exceed 64 bits, so the maximum stays
 * the same. */
static void the_maximum_does_not_wrap(void **state)
{
    (void)state;
    uint64_t bytes, counters, more, more_counters;
    set_attention((const uint32_t[]){65535, 1 << 20, 1 << 30}, 0);
    attention_args.splits = 256;
    assert_status(attention_workspace_max(&bytes, &counters), KILN_OK);
    assert_int_equal(bytes, (UINT64_C(65535) << 20) * 256 * 136 * 4);
    set_attention((const uint32_t[]){65535, 1 << 30, 1 << 30}, 0);
    attention_args.splits = 256;
    attention_args.batch = 65535;
    attention_args.kv_heads = 65535;
    assert_status(attention_workspace_max(&more, &more_counters), KILN_OK);
    assert_int_equal(more, (UINT64_C(1) << 36) * 256 * 136 * 4);
    assert_int_equal(more_counters, (UINT64_C(1) << 32) * 17 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_what_the_picked_variant_asks_for, open_loader, close_loader),
        cmocka_unit_test_setup_teardown(the_maximum_does_not_wrap, open_loader, close_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
