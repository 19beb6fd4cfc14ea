/* Descriptors of wgmma's matrices from layouts: the offsets of the examples in PTX ISA 9.7.15.5.1.2, and layouts that no
 * descriptor describes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../generator/device/layout.h"

enum { ROWS_ALONG_K = 16 };

typedef struct known_matrix {
    const char *name;
    layout of;
    uint32_t rows, units;
    bool is_transposed;
    ptx_matrix matrix; /* stride 0: none */
} known_matrix;

/* Eight units in each row of 128 bytes, and so on: bits 7 to 9 of an address flip its bits 4 to 6. */
#define TURNED_BY_ROWS .unit_bytes = 16, .turn_count = 3, .turns = {{0, 0}, {1, 1}, {2, 2}}
#define SWIZZLED_128   .row_bytes = 128, TURNED_BY_ROWS
#define SWIZZLED_64    .row_bytes = 64, .unit_bytes = 16, .turn_count = 2, .turns = {{1, 0}, {2, 1}}
#define SWIZZLED_32    .row_bytes = 32, .unit_bytes = 16, .turn_count = 1, .turns = {{2, 0}}

static const known_matrix known[] = {
    {"K-major, 128 bytes", {SWIZZLED_128}, 128, 8, false, {128, 1024, 16}},
    {"K-major, 64 bytes", {SWIZZLED_64}, 64, 4, false, {64, 512, 16}},
    {"K-major, 32 bytes", {SWIZZLED_32}, 256, 2, false, {32, 256, 16}},
    {"K-major, half a row", {SWIZZLED_128}, 64, 4, false, {128, 1024, 16}},
    {"K-major, at a pattern", {.start = 2048, SWIZZLED_128}, 64, 8, false, {128, 1024, 16}},
    {"K-major, none", {.row_bytes = 16, .unit_bytes = 2048}, 128, 4, false, {0, 128, 2048}},
    {"K-major, none, between", {.start = 48, .row_bytes = 16, .unit_bytes = 144}, 8, 2, false, {0, 128, 144}},
    {"MN-major, 128 bytes", {SWIZZLED_128}, 64, 8, true, {128, 1024, 0}},
    {"MN-major, 64 bytes", {SWIZZLED_64}, 32, 4, true, {64, 512, 0}},
    {"MN-major, 32 bytes, panels", {.strip_bytes = 1024, SWIZZLED_32}, 32, 8, true, {32, 256, 1024}},
    {"MN-major, none", {.row_bytes = 16, .unit_bytes = 512}, 32, 8, true, {0, 512, 128}},
    {"inside a pattern", {.start = 512, SWIZZLED_128}, 64, 8, false, {0}},
    {"rows without a swizzle", {.row_bytes = 128, .unit_bytes = 16}, 64, 8, false, {0}},
    {"the swizzle of shorter rows", {.row_bytes = 256, TURNED_BY_ROWS}, 64, 8, false, {0}},
    {"padded rows", {.padded_rows = 4, .pad_bytes = 16, SWIZZLED_32}, 64, 2, false, {0}},
    {"another swizzle",
     {.row_bytes = 128, .unit_bytes = 16, .turn_count = 1, .turns = {{0, 2}}},
     64,
     8,
     false,
     {0}},
};

static void knows_matrices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const known_matrix *k = &known[i];
        ptx_matrix m = {0};
        const bool is_known = layout_matrix(&k->of, k->rows, k->units, k->is_transposed, &m);
        if (is_known != (k->matrix.stride_bytes != 0) || m.swizzle_bytes != k->matrix.swizzle_bytes ||
            m.stride_bytes != k->matrix.stride_bytes || m.leading_bytes != k->matrix.leading_bytes)
            fail_msg("%s: %d, swizzle %u, stride %u, leading %u", k->name, is_known, m.swizzle_bytes,
                     m.stride_bytes, m.leading_bytes);
    }
}

/* The layouts that ldmatrix reads without bank conflicts are wgmma's. */
static void reads_layouts_of_matrices(void **state)
{
    (void)state;
    for (uint32_t units = 2; units <= 8; units *= 2) {
        const layout l = layout_of_matrices(units);
        ptx_matrix m;
        assert_true(layout_matrix(&l, 128, units, false, &m));
        assert_int_equal(m.swizzle_bytes, 16 * units);
        assert_int_equal(m.stride_bytes, 128 * units);
        assert_true(layout_matrix(&l, 2 * ROWS_ALONG_K, units, true, &m));
        assert_int_equal(m.swizzle_bytes, 16 * units);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_matrices),
        cmocka_unit_test(reads_layouts_of_matrices),
    };
    return cmocka_run_group_tests_name("device matrices", tests, NULL, NULL);
}
