/* The indices of a timed problem cover all of its memory and stay in bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/tune/indices.h"
#include "../../tools/tune/shapes.h"

static pool memory;
static const manifest *bundle;

static int read_bundle(void **state)
{
    static char text[1 << 20];
    char error[256];
    (void)state;
    FILE *f = fopen(BENCH_MANIFEST, "rb");
    assert_non_null(f);
    const size_t bytes = fread(text, 1, sizeof text, f);
    fclose(f);
    bundle = manifest_read(&memory, text, bytes, error, sizeof error);
    return bundle ? 0 : -1;
}

static int free_bundle(void **state)
{
    (void)state;
    pool_free(&memory);
    return 0;
}

/* Opens the variant whose id has this prefix and suffix. */
static void open_problem(problem *p, const char *beginning, const char *end, const char *words)
{
    static const kiln_device device = {.sm = 90, .multiprocessors = 132, .max_shared_bytes = 232448};
    char error[256] = "";
    tune_shape shape;
    for (size_t i = 0; i < bundle->variant_count; i++) {
        const manifest_variant *v = &bundle->variants[i];
        if (strncmp(v->id, beginning, strlen(beginning)) != 0 || !strstr(v->id, end))
            continue;
        assert_true(problem_open(p, v, &device, error, sizeof error));
        if (!shape_parse(&memory, bundle, v->family, words, &shape, error, sizeof error) ||
            shape_apply(&shape, p, error, sizeof error) != SHAPE_FITS)
            fail_msg("%s: %s", words, error);
        return;
    }
    fail_msg("no variant %s", beginning);
}

static void expect_indices(problem *p, const char *name, const uint64_t *expected, size_t count)
{
    const argument *a = problem_find(p, name);
    const unsigned char *made = indices_make(&memory, p, a);
    assert_non_null(made);
    assert_int_equal(a->count, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        memcpy(&value, made + i * element_bytes(a->about->type), element_bytes(a->about->type));
        assert_int_equal(value, expected[i]);
    }
}

#define STRIDES                                                                                              \
    " q_row_stride=64 k_row_stride=64 v_row_stride=64 out_row_stride=64 q_head_stride=64 k_head_stride=64"   \
    " v_head_stride=64 out_head_stride=64 q_batch_stride=0 k_batch_stride=1024 v_batch_stride=1024 "         \
    "out_batch_stride=64 batch=3 q_heads=1 kv_heads=1 q_length=1 k_length=32 sequences_q_rows=3 "

static void test_indices(void **state)
{
    problem p;
    (void)state;
    open_problem(&p, "gguf_rows", "", "n=3 k=32 tensor_rows=128256");
    expect_indices(&p, "index", (uint64_t[]){0, 49585, 99170}, 3);
    open_problem(&p, "attention", "layout=paged",
                 STRIDES "pages_stride=2 pages_entries=6 pages_count=5 pages_size=16");
    expect_indices(&p, "pages_table", (uint64_t[]){0, 1, 2, 3, 4, 0}, 6);
    assert_null(indices_make(&memory, &p, problem_find(&p, "q")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_indices)};
    return cmocka_run_group_tests(tests, read_bundle, free_bundle);
}
