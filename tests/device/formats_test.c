/* Tests that every format has blocks, groups and words of the kinds that device/format.h lists, which kernels take. Made-up formats
 * show that this check accepts and rejects the right ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../generator/device/format.h"

/* The shapes of format.h. */
static const struct {
    uint8_t units, quads, parts, unit_step, quad_step, least_groups;
} shapes[] = {
    {4, 2, 1, 4, 16, 1}, {4, 2, 1, 8, 4, 1}, {8, 1, 1, 4, 0, 1}, {8, 2, 2, 4, 32, 1}, {4, 4, 4, 4, 32, 2}};

static bool has_known_groups(const weight_format *w)
{
    bool is_known = false;
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        is_known |= w->units == shapes[i].units && w->quads == shapes[i].quads &&
                    w->parts == shapes[i].parts && w->unit_step == shapes[i].unit_step &&
                    w->quad_step == shapes[i].quad_step && w->groups >= shapes[i].least_groups;
    return is_known && w->elements == w->groups * w->units * w->quads * 4;
}

static bool has_known_bytes(const weight_format *w)
{
    const uint32_t first = w->runs[0].byte % 4;
    bool is_known = w->d_byte % 4 == 0;
    for (const format_run *r = w->runs; r < w->runs + FORMAT_RUNS; r++) {
        is_known &= r->byte % 4 == 0 || (r->byte % 4 == first && w->bytes % 4 != 0);
        is_known &= r->group % 4 == 0 && r->half % 4 == 0 && r->odd % 4 == 0;
    }
    return is_known;
}

static bool is_known(const weight_format *w)
{
    const bool has_size = w->elements == 32 || w->elements == 64 || w->elements == 128 || w->elements == 256;
    return has_size && has_known_groups(w) && has_known_bytes(w) && 8 / w->groups * w->bytes % 4 == 0;
}

static void knows_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; format_at(i) != NULL; i++)
        assert_true(is_known(format_at(i)));
    for (uint32_t group = 32; group <= 256; group *= 2) {
        assert_true(is_known(format_nf4(true, group)));
        assert_true(is_known(format_int4(true, false, group)));
    }
}

/* clang-format off */
/* A run of words that begins at `first`, `step` bytes for each group. */
#define RUN(first, step) {{RUN_UNITS, .byte = first, .group = step}}
static const struct {
    weight_format format;
    bool is_known;
} formats[] = {
    /* 4 bits; d at the end, or at the beginning */
    {{.elements = 64, .bytes = 34, .groups = 2, .units = 4, .parts = 1, .quads = 2, .quad_step = 4, .unit_step = 8,
      .d_byte = 32, .runs = RUN(0, 16)}, true},
    {{.elements = 128, .bytes = 66, .groups = 4, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 16)}, true},
    {{.elements = 64, .bytes = 34, .groups = 1, .units = 8, .parts = 2, .quads = 2, .quad_step = 32, .unit_step = 4,
      .runs = RUN(2, 0)}, true},
    {{.elements = 128, .bytes = 34, .groups = 2, .units = 4, .parts = 4, .quads = 4, .quad_step = 32, .unit_step = 4,
      .d_byte = 32, .runs = RUN(0, 16)}, true},
    {{.elements = 16, .bytes = 10, .groups = 1, .units = 2, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 0)}, false},
    /* one scale for a group of 64; sixteens of one group; groups that are not the block */
    {{.elements = 64, .bytes = 34, .groups = 1, .units = 8, .parts = 1, .quads = 2, .quad_step = 32, .unit_step = 4,
      .runs = RUN(2, 0)}, false},
    {{.elements = 64, .bytes = 18, .groups = 1, .units = 4, .parts = 4, .quads = 4, .quad_step = 32, .unit_step = 4,
      .runs = RUN(0, 16)}, false},
    {{.elements = 128, .bytes = 66, .groups = 2, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 16)}, false},
    /* d amid the codes; codes at 2 of blocks whose words are aligned; d at 2 */
    {{.elements = 64, .bytes = 34, .groups = 2, .units = 4, .parts = 1, .quads = 2, .quad_step = 4, .unit_step = 8,
      .d_byte = 16, .runs = RUN(0, 18)}, false},
    {{.elements = 32, .bytes = 20, .groups = 1, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 0)}, false},
    {{.elements = 32, .bytes = 20, .groups = 1, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .d_byte = 2, .runs = RUN(4, 0)}, false},
    {{.elements = 256, .bytes = 130, .groups = 8, .units = 4, .parts = 1, .quads = 2, .quad_step = 16, .unit_step = 4,
      .runs = RUN(2, 16)}, false},
};
/* clang-format on */

static void refuses_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        assert_int_equal(is_known(&formats[i].format), formats[i].is_known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(knows_all), cmocka_unit_test(refuses_others)};
    return cmocka_run_group_tests_name("device formats", tests, NULL, NULL);
}
