/* format_flaw: the kernels take every format that there is, and blocks of 64 and 128; a format that they do not take is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../generator/device/format.h"

static const char *const bad_size = "weight_format: a block must have 32, 64, 128 or 256 elements";
static const char *const bad_groups = "weight_format: groups must have a shape that device/format.h lists";
static const char *const bad_bytes =
    "weight_format: d and the runs of words must begin where device/format.h allows";
static const char *const bad_size_of_eight = "weight_format: eight groups must have a multiple of 4 bytes";

static void takes_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; format_at(i) != NULL; i++)
        assert_null(format_flaw(format_at(i)));
    for (uint32_t group = 32; group <= 256; group *= 2) {
        assert_null(format_flaw(format_nf4(true, group)));
        assert_null(format_flaw(format_int4(true, false, group)));
    }
}

/* clang-format off */
/* A run of words that begins at `first`, `step` bytes for each group. */
#define RUN(first, step) {{RUN_UNITS, .byte = first, .group = step}}
static const struct {
    weight_format format;
    const char *const *flaw;
} formats[] = {
    /* 4 bits; d at the end, or at the beginning */
    {{.elements = 64, .bytes = 34, .groups = 2, .units = 4, .parts = 1, .quads = 2, .quad_step = 4, .unit_step = 8,
      .d_byte = 32, .runs = RUN(0, 16)}, NULL},
    {{.elements = 128, .bytes = 66, .groups = 4, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 16)}, NULL},
    {{.elements = 64, .bytes = 34, .groups = 1, .units = 8, .parts = 2, .quads = 2, .quad_step = 32, .unit_step = 4,
      .runs = RUN(2, 0)}, NULL},
    {{.elements = 128, .bytes = 34, .groups = 2, .units = 4, .parts = 4, .quads = 4, .quad_step = 32, .unit_step = 4,
      .d_byte = 32, .runs = RUN(0, 16)}, NULL},
    {{.elements = 16, .bytes = 10, .groups = 1, .units = 2, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 0)}, &bad_size},
    /* one scale for a group of 64; sixteens of one group; groups that are not the block */
    {{.elements = 64, .bytes = 34, .groups = 1, .units = 8, .parts = 1, .quads = 2, .quad_step = 32, .unit_step = 4,
      .runs = RUN(2, 0)}, &bad_groups},
    {{.elements = 64, .bytes = 18, .groups = 1, .units = 4, .parts = 4, .quads = 4, .quad_step = 32, .unit_step = 4,
      .runs = RUN(0, 16)}, &bad_groups},
    {{.elements = 128, .bytes = 66, .groups = 2, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 16)}, &bad_groups},
    /* d amid the codes; codes at 2 of blocks whose words are aligned; d at 2 */
    {{.elements = 64, .bytes = 34, .groups = 2, .units = 4, .parts = 1, .quads = 2, .quad_step = 4, .unit_step = 8,
      .d_byte = 16, .runs = RUN(0, 18)}, &bad_bytes},
    {{.elements = 32, .bytes = 20, .groups = 1, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 0)}, &bad_bytes},
    {{.elements = 32, .bytes = 20, .groups = 1, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .d_byte = 2, .runs = RUN(4, 0)}, &bad_bytes},
    {{.elements = 256, .bytes = 130, .groups = 8, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 16)}, &bad_size_of_eight},
};
/* clang-format on */

static void names_flaws(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const char *flaw = format_flaw(&formats[i].format);
        if (formats[i].flaw == NULL)
            assert_null(flaw);
        else
            assert_string_equal(flaw, *formats[i].flaw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_all), cmocka_unit_test(names_flaws)};
    return cmocka_run_group_tests_name("device formats", tests, NULL, NULL);
}
