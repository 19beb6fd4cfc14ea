/* Mistakes of authors with kiln/author/tile.h's products, and the whole text that the checker prints for each on sm_90a. The
 * #line before each kernel names its lines. */
#define _GNU_SOURCE /* open_memstream */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <kiln/author/tile.h>

#include "../../generator/ptx/builder.h"

/* A pipeline with 64 rows of x and 64 packed rows of w. */
typedef struct scene {
    tile_matrix x, w, y;
    tile_pipeline p;
    uint32_t x_tile, w_tile;
    ptx_val a[16];
} scene;

/* clang-format off */
#line 1 "s.c"
static scene scene_of(ptx_fn *f, uint32_t stages, uint32_t rows)
{
    ptx_val x = ptx_param_ptr(f, PTX_F16, "x"), w = ptx_param_ptr(f, PTX_U8, "w"), y = ptx_param_ptr(f, PTX_F16, "y");
    ptx_val n = ptx_param(f, PTX_U32, "n");
    scene s = {.x = {x, n, n, n}, .w = {w, n, n, n}, .y = {y, n, n, n}};
    s.p = tile_pipeline_open(f, PTX_F16, stages, 64);
    s.x_tile = tile_pipeline_add(&s.p, &s.x, n, rows);
    s.w_tile = tile_pipeline_add_packed(&s.p, &s.w, n, 64, 2);
    for (int i = 0; i < 16; i++)
        s.a[i] = ptx_var(f, ptx_bits(PTX_B32, 0));
    return s;
}
#line 1 "k.c"
static void opens_late(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_pipeline_start(&s.p);
    tile_product_open(&s.p, s.x_tile, TILE_WGMMA);
}
#line 1 "k.c"
static void bad_slots(ptx_fn *f)
{
    scene s = scene_of(f, 4, 24);
    tile_product_open(&s.p, s.x_tile, TILE_MMA);
    tile_product_open(&s.p, s.w_tile, TILE_WGMMA);
    tile_product_open(&s.p, 2, TILE_WGMMA);
    tile_words_open(&s.p, 2, ptx_u32(0));
    tile_columns(&s.p, s.w_tile, ptx_u32(0));
    tile_pipeline none = tile_pipeline_open(f, PTX_F16, 2, 64);
    tile_rows(&none, 0, ptx_u32(0));
    tile_product_open(&none, 0, TILE_WGMMA);
}
#line 1 "k.c"
static void few_stages(ptx_fn *f)
{
    scene s = scene_of(f, 2, 64);
    tile_product_open(&s.p, s.x_tile, TILE_WGMMA);
}
#line 1 "k.c"
static void bad_packed(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_pipeline_add_packed(&s.p, &s.x, ptx_u32(0), 64, 2);
    tile_pipeline_add_packed(&s.p, &s.w, ptx_u32(0), 64, 8);
    tile_pipeline_add_packed(&s.p, &s.w, ptx_u32(0), 64, 0);
    tile_pipeline_add(&s.p, &s.w, ptx_u32(0), 64);
}
#line 1 "k.c"
static void bad_sums(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    const tile_product t = tile_product_open(&s.p, s.x_tile, TILE_WGMMA);
    tile_sums few = tile_sums_open(f, 1, 4), high = tile_sums_open(f, 2, 8);
    tile_matrix wide = s.y;
    wide.data = ptx_cast_ptr(f, s.y.data, PTX_F32);
    tile_pipeline_start(&s.p);
    tile_pipeline_next(&s.p);
    tile_product_issue(&t, s.a, &few, false);
    tile_product_issue(&t, s.a, &high, false);
    tile_store_transposed(&few, &wide, ptx_u32(0), ptx_u32(0), NULL, NULL);
}
#line 1 "k.c"
static void touches_in_flight(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    const tile_product t = tile_product_open(&s.p, s.x_tile, TILE_WGMMA);
    tile_sums sums = tile_sums_open(f, 1, 8);
    tile_pipeline_start(&s.p);
    tile_pipeline_next(&s.p);
    tile_product_issue(&t, s.a, &sums, false);
    ptx_set(f, s.a[3], ptx_bits(PTX_B32, 1));
    tile_product_wait(&t, 0);
    tile_product_issue(&t, s.a, &sums, true);
    ptx_add(f, sums.of[5], 1);
    tile_product_wait(&t, 0);
}
#line 1 "k.c"
static void never_waits(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    const tile_product t = tile_product_open(&s.p, s.x_tile, TILE_WGMMA);
    tile_sums sums = tile_sums_open(f, 1, 8);
    tile_pipeline_start(&s.p);
    tile_pipeline_next(&s.p);
    tile_product_issue(&t, s.a, &sums, false);
}
#line 1 "k.c"
static void bad_maps(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    ptx_val map = ptx_tensor_map(f, "map"), zero = ptx_u32(0);
    tile_pipeline_add_map(&s.p, map, &s.x, zero, 64, 0);
    tile_pipeline p = tile_pipeline_open(f, PTX_F16, 4, 64), few = tile_pipeline_open(f, PTX_F16, 2, 64);
    tile_pipeline_add_map(&few, map, &s.x, zero, 64, 0);
    tile_pipeline_add_map(&p, map, &s.x, zero, 257, 0);
    tile_pipeline_add_map(&p, map, &s.w, zero, 64, 8);
    tile_pipeline_add_map(&p, map, &s.w, zero, 64, 2);
    tile_pipeline_add_map(&p, (ptx_val){0}, &s.x, zero, 64, 0);
    TILE_CONSUMERS(&p, zero) {
    }
    tile_pipeline_start(&p);
    tile_pipeline_add_map(&p, map, &s.x, zero, 64, 0);
    TILE_CONSUMERS(&p, zero) {
        for (int i = 0; i < 6; i++)
            tile_pipeline_next(&p);
    }
}
#line 1 "k.c"
static void no_room_for_producer(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_pipeline p = tile_pipeline_open(f, PTX_F16, 4, 64);
    ptx_val map = ptx_tensor_map(f, "map");
    tile_pipeline_add_map(&p, map, &s.x, ptx_u32(0), 64, 0);
}
#line 1 "k.c"
static void bad_types(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_matrix x = s.x, y = s.y;
    x.rows = ptx_as(f, PTX_S32, x.rows);
    tile_pipeline_add(&s.p, &x, ptx_u32(0), 64);
    tile_pipeline_add(&s.p, &s.x, ptx_u64(0), 64);
    tile_rows(&s.p, s.x_tile, ptx_f32(0));
    tile_sums sums = tile_sums_open(f, 1, 2), none = {.f = f};
    y.columns = ptx_u64(4);
    tile_store(&sums, &y, ptx_u32(0), ptx_u32(0), NULL, NULL);
    tile_store(&none, &s.y, ptx_u32(0), ptx_u32(0), NULL, NULL);
    tile_pipeline_add_packed(&s.p, &s.w, ptx_u32(0), 64, 1u << 28);
    tile_product_open(&s.p, s.x_tile, (tile_atom)7);
}
#line 1 "k.c"
static void bad_numbers(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_rows(&s.p, s.x_tile, ptx_u32(4));
    tile_columns(&s.p, s.x_tile, ptx_u32(12));
    tile_words_open(&s.p, s.w_tile, ptx_u32(8));
    tile_rows(&s.p, s.x_tile, ptx_u32(56));
    tile_rows(&s.p, s.x_tile, ptx_u32(0xfffffff8));
    tile_matrix narrow = s.x, skewed = s.x, bytes = s.w, y = s.y;
    narrow.columns = skewed.stride = ptx_u32(12);
    bytes.stride = ptx_u32(24);
    tile_pipeline_add(&s.p, &narrow, ptx_u32(0), 64);
    tile_pipeline_add(&s.p, &skewed, ptx_u32(0), 64);
    tile_pipeline_add_packed(&s.p, &bytes, ptx_u32(0), 64, 2);
    tile_sums sums = tile_sums_open(f, 1, 2);
    y.stride = ptx_u32(6);
    tile_store(&sums, &y, ptx_u32(1), ptx_u32(4), NULL, NULL);
    tile_store(&sums, &s.y, ptx_u32(0), ptx_u32(2), NULL, NULL);
    tile_store_transposed(&sums, &s.y, ptx_u32(0), ptx_u32(1), NULL, NULL);
}
#line 1 "k.c"
static void few_rows(ptx_fn *f)
{
    scene s = scene_of(f, 4, 8);
    tile_rows(&s.p, s.x_tile, s.x.rows);
    tile_words_open(&s.p, s.x_tile, s.x.rows);
}
#line 1 "k.c"
static void sums_past_slot(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_sums sums = tile_sums_open(f, 2, 4);
    tile_pipeline_start(&s.p);
    tile_pipeline_next(&s.p);
    const tile_operand rows = tile_rows(&s.p, s.x_tile, ptx_u32(32)), late = tile_rows(&s.p, s.x_tile, ptx_u32(48)),
                       columns = tile_columns(&s.p, s.x_tile, ptx_u32(32));
    tile_multiply(&rows, &columns, &sums);
    tile_multiply(&late, &columns, &sums);
}
#line 1 "k.c"
static void without_a_stage(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    const tile_product t = tile_product_open(&s.p, s.x_tile, TILE_WGMMA);
    const tile_operand rows = tile_rows(&s.p, s.x_tile, ptx_u32(0)), columns = tile_columns(&s.p, s.x_tile, ptx_u32(0));
    const tile_words words = tile_words_open(&s.p, s.w_tile, ptx_u32(0));
    tile_sums sums = tile_sums_open(f, 1, 8);
    ptx_val out[16];
    tile_pipeline_start(&s.p);
    tile_multiply(&rows, &columns, &sums);
    tile_product_issue(&t, s.a, &sums, false);
    tile_words_load(&words, out);
    tile_pipeline_next(&s.p);
    tile_words_load(&rows, out);
}
#line 1 "k.c"
static void bad_scale(ptx_fn *f)
{
    tile_sums sums = tile_sums_open(f, 1, 4), part = tile_sums_open(f, 1, 2);
    const ptx_val factors[2] = {ptx_f32(1), ptx_u32(1)};
    tile_sums_add_scaled(&sums, &part, factors);
    tile_sums_add_scaled(&part, &part, factors);
}
#line 1 "k.c"
static void outside_of_consumers(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    ptx_val map = ptx_tensor_map(f, "map"), zero = ptx_u32(0);
    tile_pipeline p = tile_pipeline_open(f, PTX_F16, 4, 64);
    tile_pipeline_add_map(&p, map, &s.x, zero, 64, 0);
    tile_pipeline_start(&p);
    tile_pipeline_next(&p);
    TILE_CONSUMERS(&p, zero) {
        tile_pipeline_next(&p);
    }
    tile_pipeline_next(&p);
    TILE_CONSUMERS(&p, zero) {
    }
}
#line 1 "k.c"
static void bad_rows(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    ptx_val rows[2], to[2] = {ptx_u32(0), ptx_u32(0)}, one = ptx_u32(1);
    tile_row_pointers(f, &s.x, ptx_f32(0), rows);
    tile_row_pointers(f, &s.x, one, rows);
    tile_row_load(f, rows, 0, one, to);
}
#line 1 "k.c"
static void three_warps(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_product_open(&s.p, s.x_tile, TILE_WGMMA);
}
#line 1 "k.c"
static void two_pipelines(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64), t = scene_of(f, 4, 64);
    tile_pipeline_start(&s.p);
    tile_pipeline_start(&t.p);
}
static ptx_val row_of(ptx_fn *f, const void *of, ptx_val sum, ptx_val row, ptx_val column)
{
    (void)f, (void)of, (void)sum, (void)column;
    return row;
}
/* A mistake found in an instruction that a call emits has the place of the call. */
#line 1 "k.c"
static void places(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_pipeline_start(&s.p);
    PTX_IF(f, ptx_lt(f, ptx_tid_x(f), 5)) {
        tile_pipeline_next(&s.p);
    }
}
#line 1 "k.c"
static void bad_map(ptx_fn *f)
{
    scene s = scene_of(f, 4, 64);
    tile_sums sums = tile_sums_open(f, 1, 2);
    tile_store(&sums, &s.y, ptx_u32(0), ptx_u32(0), row_of, NULL);
}
/* clang-format on */
#line 188 "refused_test.c"

typedef struct mistake {
    const char *name;
    void (*emit)(ptx_fn *f);
    const char *message;
} mistake;

static const mistake mistakes[] = {
    {"bad_types", bad_types,
     "k.c:6: error: tile_pipeline_add: the matrix's rows and the first row must be u32\n"
     "k.c:7: error: tile_pipeline_add: the matrix's rows and the first row must be u32\n"
     "k.c:8: error: tile_rows, tile_columns, tile_words_open: the first row must be u32\n"
     "k.c:11: error: tile_store: rows, columns and strides must be u32\n"
     "k.c:12: error: tile_store: the sums are not from tile_sums_open\n"
     "k.c:13: error: tile_pipeline_add_packed: a row of a stage must be a multiple of 16 bytes\n"
     "k.c:14: error: tile_product_open: the atom is not a tile_atom\n"},
    {"three_warps", three_warps,
     "k.c:4: error: tile_product_open: wgmma needs a thread block of whole warpgroups\n"},
    {"bad_numbers", bad_numbers,
     "k.c:4: error: tile_rows, tile_columns, tile_words_open: the first row must be a multiple of 8, of 16 for words\n"
     "k.c:5: error: tile_rows, tile_columns, tile_words_open: the first row must be a multiple of 8, of 16 for words\n"
     "k.c:6: error: tile_rows, tile_columns, tile_words_open: the first row must be a multiple of 8, of 16 for words\n"
     "k.c:7: error: tile_rows, tile_columns, tile_words_open: the slot has fewer than 16 rows from the first row on\n"
     "k.c:8: error: tile_rows, tile_columns, tile_words_open: the slot has fewer than 16 rows from the first row on\n"
     "k.c:12: error: tile_pipeline_add: the matrix's columns and stride must be multiples of 16 bytes\n"
     "k.c:13: error: tile_pipeline_add: the matrix's columns and stride must be multiples of 16 bytes\n"
     "k.c:14: error: tile_pipeline_add: the matrix's columns and stride must be multiples of 16 bytes\n"
     "k.c:17: error: tile_store: the column, y's columns and its stride must be multiples of four\n"
     "k.c:18: error: tile_store: the column, y's columns and its stride must be multiples of four\n"
     "k.c:19: error: tile_store: the column, y's columns and its stride must be multiples of four\n"},
    {"few_rows", few_rows,
     "k.c:4: error: tile_rows, tile_columns, tile_words_open: the slot has fewer than 16 rows from the first row on\n"
     "k.c:5: error: tile_rows, tile_columns, tile_words_open: the slot has fewer than 16 rows from the first row on\n"},
    {"sums_past_slot", sums_past_slot,
     "k.c:10: error: tile_multiply: the sums have more rows or columns than the operands\n"},
    {"without_a_stage", without_a_stage,
     "k.c:10: error: tile_multiply, tile_product_issue, tile_words_load: there is no current stage before tile_pipeline_next\n"
     "k.c:11: error: tile_multiply, tile_product_issue, tile_words_load: there is no current stage before tile_pipeline_next\n"
     "k.c:12: error: tile_multiply, tile_product_issue, tile_words_load: there is no current stage before tile_pipeline_next\n"
     "k.c:14: error: tile_words_load: the words are not from tile_words_open\n"},
    {"bad_scale", bad_scale,
     "k.c:5: error: tile_sums_add_scaled: both sums must have the same numbers of tiles\n"
     "k.c:6: error: fma: operand 2 is u32, expected f32\n"
     "k.c:6: error: fma: operand 2 is u32, expected f32\n"
     "k.c:6: error: fma: operand 2 is u32, expected f32\n"
     "k.c:6: error: fma: operand 2 is u32, expected f32\n"},
    {"outside_of_consumers", outside_of_consumers,
     "k.c:8: error: tile_pipeline_next: with a producer, call it only in TILE_CONSUMERS\n"
     "k.c:12: error: tile_pipeline_next: with a producer, call it only in TILE_CONSUMERS\n"
     "k.c:13: error: TILE_CONSUMERS: a pipeline can have only one such block\n"},
    {"bad_rows", bad_rows,
     "k.c:5: error: add: operand 2 is f32, expected u32\n"
     "k.c:7: error: ptx_set: not a variable\n"
     "k.c:7: error: PTX_WHEN: the predicate is u32, expected pred\n"
     "k.c:7: error: ptx_set: not a variable\n"
     "k.c:7: error: ptx_set: not a variable\n"
     "k.c:7: error: PTX_WHEN: the predicate is u32, expected pred\n"
     "k.c:7: error: ptx_set: not a variable\n"},
    {"two_pipelines", two_pipelines,
     "k.c:5: error: tile_pipeline_start: a kernel has at most one pipeline\n"},
    {"places", places, "k.c:6: error: bar where threads of the block may have diverged\n"},
    {"bad_map", bad_map,
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"
     "k.c:5: error: ptx_set: the value is u32, expected f32\n"},
    {"opens_late", opens_late, "k.c:5: error: tile_product_open: the pipeline has started\n"},
    {"bad_slots", bad_slots,
     "k.c:4: error: tile_product_open: the slot must have at most 256 rows, a multiple of 16\n"
     "k.c:5: error: tile_product_open: the pipeline has no such slot\n"
     "k.c:6: error: tile_product_open: the pipeline has no such slot\n"
     "k.c:7: error: tile_rows, tile_columns, tile_words_open: the pipeline has no such slot\n"
     "k.c:8: error: tile_rows, tile_columns, tile_words_open: the pipeline has no such slot\n"
     "k.c:10: error: tile_rows, tile_columns, tile_words_open: the pipeline has no such slot\n"
     "k.c:11: error: tile_product_open: the pipeline has no such slot\n"},
    {"few_stages", few_stages, "k.c:4: error: tile_product_open: wgmma needs at least three stages\n"},
    {"bad_packed", bad_packed,
     "k.c:4: error: tile_pipeline_add_packed: the matrix must be of u8\n"
     "k.c:5: error: tile_pipeline_add_packed: a row of a stage must be a multiple of 16 bytes\n"
     "k.c:6: error: tile_pipeline_add: the matrix must be of the pipeline's type\n"
     "k.c:7: error: tile_pipeline_add: the matrix must be of the pipeline's type\n"},
    {"bad_sums", bad_sums,
     "k.c:10: error: tile_product_issue: the sums must have one row tile, and the slot's rows as columns\n"
     "k.c:11: error: tile_product_issue: the sums must have one row tile, and the slot's rows as columns\n"
     "k.c:12: error: tile_store: y must be of f16 or bf16\n"},
    {"touches_in_flight", touches_in_flight,
     "k.c:9: error: mov writes a register of A in flight: on some path no ptx_wgmma_wait covers the product at k.c:8\n"
     "k.c:12: error: add reads an accumulator in flight: on some path no ptx_wgmma_wait covers the product at k.c:11\n"},
    {"never_waits", never_waits,
     "k.c:8: error: the kernel ends with this product in flight: on some path no ptx_wgmma_wait covers it\n"},
    {"bad_maps", bad_maps,
     "k.c:5: error: tile_pipeline_add: a pipeline needs a map for each matrix, or no map\n"
     "k.c:7: error: tile_pipeline_add_map: there must be at least three stages\n"
     "k.c:8: error: tile_pipeline_add_map: there must be 1 to 256 rows\n"
     "k.c:9: error: tile_pipeline_add_packed: a row of a stage must be a multiple of 16 bytes\n"
     "k.c:11: error: tile_pipeline_add: a pipeline needs a map for each matrix, or no map\n"
     "k.c:12: error: TILE_CONSUMERS: the pipeline has not started\n"
     "k.c:15: error: tile_pipeline_add: a pipeline has at most four matrices, before it starts\n"
     "k.c:16: error: TILE_CONSUMERS: a loop must call tile_pipeline_next `stages` times\n"},
    {"no_room_for_producer", no_room_for_producer,
     "k.c:6: error: tile_pipeline_add_map: the thread block must be whole warpgroups, and one more\n"},
};

static void is_refused(void **state)
{
    const mistake *m = *state;
    char *said = NULL;
    size_t bytes;
    FILE *out = open_memstream(&said, &bytes);
    arena *a = arena_new();
    const uint32_t threads = m->emit == no_room_for_producer ? 128 : m->emit == three_warps ? 96 : 256;
    ptx_fn *f = ptx_new(a, "bad", (target){90, TARGET_ARCH}, (const uint32_t[]){threads, 1, 1});
    m->emit(f);
    assert_false(ptx_check(f, out));
    fclose(out);
    assert_string_equal(said, m->message);
    free(said);
    arena_free(a);
}

/* tile_pipeline_bytes returns 0 for numbers that tile_pipeline_open refuses. */
static void has_no_bytes(void **state)
{
    (void)state;
    assert_int_equal(tile_pipeline_bytes(2, 32, 128, 64), 2 * 64 * 64);
    assert_int_equal(tile_pipeline_bytes(0, 32, 128, 64), 0);
    assert_int_equal(tile_pipeline_bytes(1, 32, 128, 64), 0);
    assert_int_equal(tile_pipeline_bytes(17, 32, 128, 64), 0);
    assert_int_equal(tile_pipeline_bytes(2, 48, 128, 64), 0);
    assert_int_equal(tile_pipeline_bytes(2, 32, 33, 64), 0);
    assert_int_equal(tile_pipeline_bytes(2, 32, 128, 1025), 0);
    assert_int_equal(tile_pipeline_packed_bytes(2, 32, 1u << 28, 128, 64), 0);
}

int main(void)
{
    enum { COUNT = sizeof mistakes / sizeof *mistakes };
    struct CMUnitTest tests[COUNT + 1] = {[COUNT] = cmocka_unit_test(has_no_bytes)};
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){
            .name = mistakes[i].name, .test_func = is_refused, .initial_state = (void *)&mistakes[i]};
    return _cmocka_run_group_tests("device refused", tests, COUNT + 1, NULL, NULL);
}
