/* Fragments of mma and wgmma: every element of a matrix is in exactly one place, as PTX ISA 9.7.14.5 and 9.7.15.5 define. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../generator/ptx/ir.h"

typedef ptx_element place_of(ptx_mma_shape shape, int lane, int i);

static int in_register(ptx_type type, int bits)
{
    return (int)ptx_type_bytes(type) * 8 / bits;
}

static void covers(ptx_mma_shape shape, place_of *place, int each, int rows, int columns)
{
    static bool seen[64][64];
    memset(seen, 0, sizeof seen);
    assert_int_equal(32 * each, rows * columns);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < each; i++) {
            ptx_element e = place(shape, lane, i);
            assert_in_range(e.row, 0, rows - 1);
            assert_in_range(e.column, 0, columns - 1);
            assert_false(seen[e.row][e.column]);
            seen[e.row][e.column] = true;
        }
}

static void every_element_once(void **state)
{
    (void)state;
    for (int s = 0; s < PTX_MMA_SHAPE_COUNT; s++) {
        ptx_mma_shape shape = (ptx_mma_shape)s;
        ptx_mma_info info = ptx_mma_describe(shape);
        int bits = mma_rows[s].bits, sum_bits = info.c_type == PTX_F16X2 ? 16
                                                : info.c_type == PTX_F64 ? 64
                                                                         : 32;
        assert_int_equal(mma_rows[s].shape, s);
        covers(shape, ptx_mma_a, info.a_count * in_register(info.a_type, bits), info.m, info.k);
        covers(shape, ptx_mma_b, info.b_count * in_register(info.b_type, bits), info.k, info.n);
        covers(shape, ptx_mma_c, info.c_count * in_register(info.c_type, sum_bits), info.m, info.n);
    }
}

/* Computed by hand from the section's formulas; lane 13 is thread 1 of group 3. */
static void places_of_the_specification(void **state)
{
    (void)state;
    static const struct {
        ptx_mma_shape shape;
        place_of *place;
        int lane, i, row, column;
    } rows[] = {
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_a, 13, 0, 3, 2},
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_a, 13, 3, 11, 3},
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_a, 13, 4, 3, 10},
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_a, 13, 7, 11, 11},
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_b, 13, 1, 3, 3},
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_b, 13, 2, 10, 3},
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_c, 13, 1, 3, 3},
        {PTX_MMA_M16N8K16_F16_F32, ptx_mma_c, 13, 2, 11, 2},
        {PTX_MMA_M16N8K8_F16_F32, ptx_mma_a, 13, 2, 11, 2},
        {PTX_MMA_M16N8K8_TF32_F32, ptx_mma_a, 13, 1, 11, 1},
        {PTX_MMA_M16N8K8_TF32_F32, ptx_mma_a, 13, 2, 3, 5},
        {PTX_MMA_M16N8K8_TF32_F32, ptx_mma_b, 13, 1, 5, 3},
        {PTX_MMA_M16N8K4_TF32_F32, ptx_mma_a, 13, 1, 11, 1},
        {PTX_MMA_M8N8K16_S8_S32, ptx_mma_a, 13, 3, 3, 7},
        {PTX_MMA_M16N8K16_S8_S32, ptx_mma_a, 13, 5, 11, 5},
        {PTX_MMA_M16N8K32_S8_S32, ptx_mma_a, 13, 5, 11, 5},
        {PTX_MMA_M16N8K32_S8_S32, ptx_mma_a, 13, 9, 3, 21},
        {PTX_MMA_M16N8K32_S8_S32, ptx_mma_b, 13, 6, 22, 3},
        {PTX_MMA_M16N8K64_S4_S32, ptx_mma_a, 13, 17, 3, 41},
        {PTX_MMA_M16N8K64_S4_S32, ptx_mma_b, 13, 9, 41, 3},
        {PTX_MMA_M8N8K4_F64_F64, ptx_mma_a, 13, 0, 3, 1},
        {PTX_MMA_M8N8K4_F64_F64, ptx_mma_c, 13, 1, 3, 3},
        {PTX_MMA_M16N8K16_F64_F64, ptx_mma_a, 13, 3, 11, 5},
        {PTX_MMA_M16N8K16_F64_F64, ptx_mma_a, 13, 6, 3, 13},
        {PTX_MMA_M16N8K16_F64_F64, ptx_mma_b, 13, 2, 9, 3},
        {PTX_MMA_M16N8K32_E4M3_F32, ptx_mma_a, 13, 15, 11, 23},
        {PTX_MMA_M16N8K64_E2M1_UE4M3, ptx_mma_a, 13, 25, 11, 41},
        {PTX_MMA_M16N8K64_E2M1_UE8M0, ptx_mma_b, 13, 9, 41, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ptx_element e = rows[i].place(rows[i].shape, rows[i].lane, rows[i].i);
        assert_int_equal(e.row, rows[i].row);
        assert_int_equal(e.column, rows[i].column);
    }
}

/* A warpgroup's A and D, as the fragments of its warps' products of 16 rows. */
static void warpgroups_are_warps(void **state)
{
    static const struct {
        ptx_wgmma_types types;
        ptx_mma_shape shape;
    } rows[] = {
        {PTX_WGMMA_F16_F32, PTX_MMA_M16N8K16_F16_F32},   {PTX_WGMMA_F16_F16, PTX_MMA_M16N8K16_F16_F16},
        {PTX_WGMMA_BF16_F32, PTX_MMA_M16N8K16_BF16_F32}, {PTX_WGMMA_TF32_F32, PTX_MMA_M16N8K8_TF32_F32},
        {PTX_WGMMA_E4M3_F32, PTX_MMA_M16N8K32_E4M3_F32}, {PTX_WGMMA_E5M2_F16, PTX_MMA_M16N8K32_E5M2_F16},
        {PTX_WGMMA_S8_S32, PTX_MMA_M16N8K32_S8_S32},     {PTX_WGMMA_U8S8_S32, PTX_MMA_M16N8K32_U8S8_S32},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const ptx_mma_info one = ptx_mma_describe(rows[r].shape),
                           all = ptx_wgmma_describe((ptx_wgmma_form){.types = rows[r].types, .n = 48});
        assert_int_equal(wgmma_rows[rows[r].types].types, rows[r].types);
        assert_true(all.m == 64 && all.n == 48 && all.k == one.k && all.a_type == one.a_type &&
                    all.c_type == one.c_type);
        assert_true(all.a_count == one.a_count && all.c_count == 6 * one.c_count);
        for (int thread = 0; thread < 128; thread++) {
            for (int i = 0; i < all.a_count * in_register(all.a_type, mma_rows[rows[r].shape].bits); i++) {
                const ptx_element is = ptx_wgmma_a(rows[r].types, thread, i),
                                  e = ptx_mma_a(rows[r].shape, thread % 32, i);
                assert_int_equal(is.row, e.row + thread / 32 * 16);
                assert_int_equal(is.column, e.column);
            }
            for (int i = 0; i < 64 * 48 / 128; i++) {
                const ptx_element is = ptx_wgmma_d(rows[r].types, thread, i),
                                  e = ptx_mma_c(rows[r].shape, thread % 32, i % 4);
                assert_int_equal(is.row, e.row + thread / 32 * 16);
                assert_int_equal(is.column, e.column + i / 4 * 8);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_once),
        cmocka_unit_test(places_of_the_specification),
        cmocka_unit_test(warpgroups_are_warps),
    };
    return cmocka_run_group_tests_name("ptx matrix", tests, NULL, NULL);
}
