/* Tests the choice of parts, the text of the time left, and ranges of results, written and read again. */
#include "test_verify.h"

#include "part.h"
#include "progress.h"
#include "results.h"
#include "verify.h"

/* What the program of a bundle defines. */
const unsigned kiln_verify_inputs = 1;
const char kiln_verify_uncompared[] = "";

enum { VARIANTS = 10 };
static const uint64_t weights[VARIANTS] = {7, 0, 30, 1, 30, 8, 0, 20, 5, 1};

/* Computed by hand: the heaviest variant first, each to the lightest part. A variant without weight counts as 1. */
static void test_three_parts(void **state)
{
    (void)state;
    static const char *const wanted[] = {"..*.....*.", ".*.**.*..*", "*....*.*.."};
    for (uint64_t part = 1; part <= 3; part++) {
        bool in_part[VARIANTS];
        char got[VARIANTS + 1] = "";
        part_choose((part_share){part, 3}, weights, VARIANTS, in_part);
        for (size_t i = 0; i < VARIANTS; i++)
            got[i] = in_part[i] ? '*' : '.';
        assert_string_equal(got, wanted[part - 1]);
    }
}

/* Each variant is in exactly one part, for any number of parts. With more parts than variants, some are empty. */
static void test_union(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 3, 7, 9, 10, 11, 300, MOST_PARTS};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        int times[VARIANTS] = {0};
        for (uint64_t part = 1; part <= counts[c] && part < 400; part++) {
            bool in_part[VARIANTS];
            size_t own = 0;
            part_choose((part_share){part, counts[c]}, weights, VARIANTS, in_part);
            for (size_t i = 0; i < VARIANTS; i++) {
                times[i] += in_part[i];
                own += in_part[i];
            }
            assert_true(part <= VARIANTS ? own >= 1 : own == 0);
        }
        for (size_t i = 0; i < VARIANTS; i++)
            assert_int_equal(times[i], 1);
    }
    part_choose((part_share){1, 3}, weights, 0, NULL);
}

static void test_time_left(void **state)
{
    (void)state;
    static const struct {
        progress p;
        double seconds;
        const char *said;
    } rows[] = {
        {{.variants = 86}, 60, "0 of 86 variants"},
        {{.variants = 86, .done = 7, .weight = 100}, 60, "7 of 86 variants"},
        {{.variants = 86, .done = 9, .weight = 100, .weight_run = 50},
         60,
         "9 of 86 variants, about 60 s left"},
        {{.variants = 86, .done = 9, .weight = 100, .weight_run = 20},
         60,
         "9 of 86 variants, about 4 min left"},
        {{.variants = 86, .done = 9, .weight = 1000, .weight_run = 1},
         60,
         "9 of 86 variants, about 17 h left"},
        {{.variants = 86, .done = 86, .weight = 7, .weight_run = 7}, 9, "86 of 86 variants, about 0 s left"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[128];
        progress_describe(&rows[i].p, rows[i].seconds, text, sizeof text);
        assert_string_equal(text, rows[i].said);
    }
}

/* Below 0 where the type has a sign, and beyond 2^63 where it has none. */
static void test_ranges(void **state)
{
    (void)state;
    manifest_arg args[] = {{.name = "n", .type = ELEMENT_U64, .direction = DIRECTION_VALUE},
                           {.name = "x", .type = ELEMENT_F32, .direction = DIRECTION_IN},
                           {.name = "offset", .type = ELEMENT_I32, .direction = DIRECTION_VALUE}};
    const manifest_variant v = {.id = "v", .args = args, .arg_count = 3}, *variants[] = {&v};
    static run_result written = {.sizes = 3, .ranges = {{1, UINT64_MAX}, {0, 0}, {(uint64_t)-7, 5}}}, read;
    pool memory = {NULL};
    run_results all = {.memory = &memory, .variants = variants, .results = &written, .count = 1};
    char text[4096], error[256];
    for (size_t i = 0; i < RUN_FACTS; i++)
        all.facts[i] = "1";
    FILE *out = fmemopen(text, sizeof text, "w");
    results_write_facts(out, &all);
    results_write_line(out, &v, &written);
    fclose(out);
    assert_non_null(
        strstr(text, "\"sizes\": 3, \"ranges\": {\"n\": [1, 18446744073709551615], \"offset\": [-7, 5]}"));
    all.results = &read;
    results_text from = {.path = "text", .text = text, .length = strlen(text), .is_journal = true};
    assert_true(results_read(&all, &from, error, sizeof error));
    assert_int_equal(read.sizes, 3);
    assert_memory_equal(read.ranges, written.ranges, sizeof read.ranges);
    pool_free(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_parts),
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_time_left),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
