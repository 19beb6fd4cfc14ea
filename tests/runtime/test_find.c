/* kiln_find and kiln_find_name with synthetic indices. */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "mini.h"

typedef struct synthetic {
    kiln_bundle bundle;
    kiln_index index;
    kiln_kernel *kernels;
    const kiln_kernel **list;
    uint32_t *table;
    char (*ids)[32];
} synthetic;

static void insert(synthetic *s, uint32_t place)
{
    uint64_t at = s->kernels[place].key & s->index.table_mask;
    while (s->table[at] != 0)
        at = (at + 1) & s->index.table_mask;
    s->table[at] = place + 1;
}

/* keys null: the hashes of the ids "k0", "k1", ... */
static synthetic make(uint32_t count, uint32_t table_size, const uint64_t *keys)
{
    synthetic s = {.bundle = {.kernel_count = count},
                   .kernels = calloc(count, sizeof(kiln_kernel)),
                   .list = calloc(count, sizeof(kiln_kernel *)),
                   .table = calloc(table_size, sizeof(uint32_t)),
                   .ids = calloc(count, 32)};
    s.index = (kiln_index){.kernels = s.list, .table = s.table, .table_mask = table_size - 1};
    for (uint32_t i = 0; i < count; i++) {
        snprintf(s.ids[i], 32, "k%u", i);
        s.kernels[i].id = s.ids[i];
        s.kernels[i].key = keys != NULL ? keys[i] : XXH3_64bits(s.ids[i], strlen(s.ids[i]));
        s.list[i] = &s.kernels[i];
        insert(&s, i);
    }
    return s;
}

static void destroy(synthetic *s)
{
    free(s->kernels);
    free(s->list);
    free(s->table);
    free(s->ids);
}

static void finds_every_kernel_and_no_other(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 7, 100, 1000, 60000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint32_t size = 1;
        while (size < 2 * counts[c])
            size *= 2;
        synthetic s = make(counts[c], size, NULL);
        for (uint32_t i = 0; i < counts[c]; i++) {
            assert_ptr_equal(kiln_find(&s.index, s.kernels[i].key), &s.kernels[i]);
            assert_ptr_equal(kiln_find_name(&s.index, s.ids[i]), &s.kernels[i]);
        }
        for (uint32_t i = counts[c]; i < counts[c] + 1000; i++) {
            char id[32];
            snprintf(id, sizeof id, "k%u", i);
            assert_null(kiln_find(&s.index, XXH3_64bits(id, strlen(id))));
            assert_null(kiln_find_name(&s.index, id));
        }
        destroy(&s);
    }
}

static void probes_wrap_around(void **state)
{
    (void)state;
    static const uint64_t keys[] = {7, 15, 23, 6}; /* slots 7, then 0 and 1 by wrapping; 6 */
    synthetic s = make(4, 8, keys);
    for (uint32_t i = 0; i < 4; i++)
        assert_ptr_equal(kiln_find(&s.index, keys[i]), &s.kernels[i]);
    assert_int_equal(s.table[0], 2);
    assert_int_equal(s.table[1], 3);
    assert_null(kiln_find(&s.index, 31)); /* probes 7, 0, 1, then the free 2 */
    assert_null(kiln_find(&s.index, 2));
    destroy(&s);
}

static void a_full_table_ends_the_search(void **state)
{
    (void)state;
    static const uint64_t keys[] = {0, 1, 2, 3};
    synthetic s = make(4, 4, keys);
    assert_null(kiln_find(&s.index, 4));
    assert_ptr_equal(kiln_find(&s.index, 3), &s.kernels[3]);
    destroy(&s);
    s = make(1, 1, keys);
    assert_ptr_equal(kiln_find(&s.index, 0), &s.kernels[0]);
    assert_null(kiln_find(&s.index, 1));
    destroy(&s);
}

static void keys_use_all_64_bits(void **state)
{
    (void)state;
    static const uint64_t keys[] = {1, 0x100000001, UINT64_MAX, 0};
    synthetic s = make(4, 8, keys);
    for (uint32_t i = 0; i < 4; i++)
        assert_ptr_equal(kiln_find(&s.index, keys[i]), &s.kernels[i]);
    assert_null(kiln_find(&s.index, 0x200000001));
    destroy(&s);
}

static void a_name_with_another_ones_key_is_absent(void **state)
{
    (void)state;
    const uint64_t key = XXH3_64bits("imposter", strlen("imposter"));
    synthetic s = make(1, 2, &key);
    assert_ptr_equal(kiln_find(&s.index, key), &s.kernels[0]);
    assert_null(kiln_find_name(&s.index, "imposter"));
    destroy(&s);
}

static void null_finds_nothing(void **state)
{
    (void)state;
    assert_null(kiln_find(NULL, 1));
    assert_null(kiln_find_name(NULL, "x"));
    assert_null(kiln_find_name(&mini_index, NULL));
    assert_null(kiln_find(&(kiln_index){0}, 1));
}

static void the_bundle_written_by_hand_is_right(void **state)
{
    (void)state;
    assert_ptr_equal(kiln_find_name(&mini_index, "axpy/type=f32"), &mini_axpy_f32_kernel);
    assert_ptr_equal(kiln_find_name(&mini_index, "axpy/type=f64"), &mini_axpy_f64_kernel);
    assert_null(kiln_find_name(&mini_index, "axpy/type=f16"));
    assert_null(kiln_find_name(&mini_index, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_kernel_and_no_other),        cmocka_unit_test(probes_wrap_around),
        cmocka_unit_test(a_full_table_ends_the_search),           cmocka_unit_test(keys_use_all_64_bits),
        cmocka_unit_test(a_name_with_another_ones_key_is_absent), cmocka_unit_test(null_finds_nothing),
        cmocka_unit_test(the_bundle_written_by_hand_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
