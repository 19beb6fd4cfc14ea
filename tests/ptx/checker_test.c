/* Every kind of mistake, with the whole message that it gives. The #line before each kernel names its lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../generator/ptx/builder.h"

typedef struct bad_kernel {
    const char *name;
    void (*emit)(ptx_fn *f);
    const char *message;
} bad_kernel;

/* clang-format off */
#line 1 "k.c"
static void wrong_operand(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), a = ptx_param(f, PTX_F32, "a");
    ptx_val sum = ptx_add(f, n, a);
    ptx_val more = ptx_mul(f, sum, a);
    ptx_add(f, more, n);
}
#line 1 "k.c"
static void no_form(ptx_fn *f)
{
    ptx_val p = ptx_lt(f, ptx_tid_x(f), ptx_u32(1));
    ptx_add(f, p, p);
}
#line 1 "k.c"
static void no_conversion(ptx_fn *f)
{
    ptx_val a = ptx_param(f, PTX_F32, "a");
    ptx_cvt(f, PTX_S32, a);
}
#line 1 "k.c"
static void bad_reinterpretation(ptx_fn *f)
{
    ptx_val a = ptx_param(f, PTX_F32, "a");
    ptx_as(f, PTX_U64, a);
}
#line 1 "k.c"
static void after_block(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), inner;
    PTX_IF(f, ptx_lt(f, tid, ptx_u32(1))) {
        inner = ptx_add(f, tid, ptx_u32(1));
    }
    ptx_add(f, inner, tid);
}
#line 1 "k.c"
static void moved(ptx_fn *f)
{
    ptx_val v = ptx_var(f, ptx_u32(1));
    ptx_val next = ptx_add(f, v, ptx_u32(1));
    ptx_set(f, v, next);
    ptx_add(f, v, next);
}
#line 1 "k.c"
static void set_type(ptx_fn *f)
{
    ptx_val v = ptx_var(f, ptx_u32(1));
    ptx_set(f, v, ptx_f32(1));
    ptx_set(f, ptx_tid_x(f), v);
}
#line 1 "k.c"
static void set_counter(ptx_fn *f)
{
    PTX_FOR(f, i, ptx_u32(0), ptx_u32(4), ptx_u32(1)) {
        ptx_add_to(f, i, ptx_u32(1));
    }
}
#line 1 "k.c"
static void not_set(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), v = ptx_declare(f, PTX_U32);
    PTX_IF(f, ptx_lt(f, tid, ptx_u32(1))) {
        ptx_set(f, v, ptx_u32(1));
    }
    ptx_add(f, v, tid);
}
#line 1 "k.c"
static void not_set_in_arm(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), v = ptx_declare(f, PTX_U32), w = ptx_declare(f, PTX_U32);
    PTX_IF(f, ptx_lt(f, tid, ptx_u32(1))) {
        ptx_set(f, v, ptx_u32(1));
        ptx_set(f, w, ptx_u32(1));
    }
    PTX_ELSE(f) {
        ptx_set(f, v, ptx_u32(2));
    }
    ptx_add(f, v, w);
}
#line 1 "k.c"
static void not_set_at_break(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), v = ptx_declare(f, PTX_U32);
    ptx_val p = ptx_lt(f, tid, ptx_u32(1));
    PTX_LOOP(f) {
        ptx_break_if(f, p);
        ptx_set(f, v, ptx_u32(1));
        ptx_repeat_if(f, p);
    }
    ptx_add(f, v, tid);
}
#line 1 "k.c"
static void divergent_barrier(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f);
    PTX_IF(f, ptx_lt(f, tid, ptx_u32(5))) {
        ptx_barrier(f);
    }
}
#line 1 "k.c"
static void divergent_loop(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f);
    PTX_FOR(f, i, ptx_u32(0), tid, ptx_u32(1)) {
        ptx_barrier(f);
    }
}
#line 1 "k.c"
static void divergent_variable(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), tid = ptx_tid_x(f), v = ptx_var(f, n);
    PTX_FOR(f, i, ptx_u32(0), n, ptx_u32(1)) {
        PTX_IF(f, ptx_lt(f, v, ptx_u32(3))) {
            ptx_barrier(f);
        }
        ptx_add_to(f, v, tid);
    }
}
#line 1 "k.c"
static void divergent_break(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), n = ptx_param(f, PTX_U32, "n");
    PTX_FOR(f, i, ptx_u32(0), n, ptx_u32(1)) {
        ptx_barrier(f);
        ptx_break_if(f, ptx_lt(f, tid, i));
    }
}
#line 1 "k.c"
static void left_by_break(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f);
    PTX_IF(f, ptx_lt(f, tid, ptx_u32(5))) {
        break;
    }
    ptx_add(f, tid, tid);
}
#line 1 "k.c"
static void for_left_by_break(ptx_fn *f)
{
    PTX_FOR(f, i, ptx_u32(0), ptx_u32(5), ptx_u32(1)) {
        ptx_add(f, i, i);
        break;
    }
}
#line 1 "k.c"
static void inner_left_by_break(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f);
    PTX_IF(f, ptx_lt(f, tid, ptx_u32(5))) {
        PTX_IF(f, ptx_lt(f, tid, ptx_u32(3))) {
            break;
        }
    }
}
#line 1 "k.c"
static void no_repeat(ptx_fn *f)
{
    PTX_LOOP(f) {
        ptx_tid_x(f);
    }
}
#line 1 "k.c"
static void after_repeat(ptx_fn *f)
{
    ptx_val p = ptx_lt(f, ptx_tid_x(f), ptx_u32(1));
    PTX_LOOP(f) {
        ptx_repeat_if(f, p);
        ptx_tid_x(f);
    }
}
#line 1 "k.c"
static void stray_else(ptx_fn *f)
{
    PTX_FOR(f, i, ptx_u32(0), ptx_ctaid_x(f), ptx_u32(1)) {
        ptx_add(f, i, i);
    }
    PTX_ELSE(f) {
        ptx_tid_x(f);
    }
}
#line 1 "k.c"
static void control_in_when(ptx_fn *f)
{
    ptx_val p = ptx_lt(f, ptx_tid_x(f), ptx_u32(1));
    PTX_WHEN(f, p) {
        PTX_IF(f, p) {
            ptx_tid_x(f);
        }
    }
}
#line 1 "k.c"
static void barrier_in_when(ptx_fn *f)
{
    ptx_val p = ptx_lt(f, ptx_ctaid_x(f), ptx_u32(1));
    PTX_WHEN(f, p) {
        ptx_barrier(f);
    }
}
#line 1 "k.c"
static void stray_break_if(ptx_fn *f)
{
    ptx_val p = ptx_lt(f, ptx_tid_x(f), ptx_u32(1));
    ptx_break_if(f, p);
    PTX_IF(f, ptx_u32(1)) {
        ptx_tid_x(f);
    }
}
#line 1 "k.c"
static void bad_bounds(ptx_fn *f)
{
    PTX_FOR(f, i, ptx_u32(0), ptx_u64(5), ptx_u32(1)) {
        ptx_add(f, i, i);
    }
}
#line 1 "k.c"
static void above_target(ptx_fn *f)
{
    ptx_redux_max(f, ptx_tid_x(f));
}
#line 1 "k.c"
static void hint_above_target(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x");
    ptx_load_hint(f, x, PTX_NC | PTX_L2_256B);
}
#line 1 "k.c"
static void family_feature(ptx_fn *f)
{
    ptx_val bytes[4];
    ptx_unpack(f, PTX_B8, 4, bytes, ptx_tid_x(f));
    ptx_f16x2_from_e2m1x2(f, bytes[0]);
}
#line 1 "k.c"
static void misaligned(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), v[4];
    ptx_load_vec(f, 4, v, ptx_at_const(f, x, 2), PTX_PLAIN);
    ptx_val s = ptx_shared(f, PTX_F32, 64, 8);
    ptx_store_vec(f, 4, s, v, PTX_PLAIN);
}
#line 1 "k.c"
static void misaligned_shared(ptx_fn *f)
{
    ptx_val s = ptx_shared(f, PTX_F32, 64, 8), v[4];
    ptx_load_vec(f, 4, v, s, PTX_PLAIN);
}
#line 1 "k.c"
static void too_much_shared(ptx_fn *f)
{
    ptx_shared(f, PTX_U8, 40000, 16);
    ptx_shared(f, PTX_U32, 2304, 16);
}
#line 1 "k.c"
static void bad_vector(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F64, "x"), v[4];
    ptx_load_vec(f, 3, v, x, PTX_PLAIN);
    ptx_load_vec(f, 4, v, ptx_shared(f, PTX_F64, 4, 32), PTX_PLAIN);
}
#line 1 "k.c"
static void bad_hints(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), s = ptx_shared(f, PTX_F32, 4, 4);
    ptx_load_hint(f, x, PTX_WT);
    ptx_load_hint(f, x, PTX_CG | PTX_NO_ALLOCATE);
    ptx_load_hint(f, s, PTX_NC);
}
#line 1 "k.c"
static void bad_store(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x");
    ptx_store(f, x, ptx_tid_x(f));
    ptx_store(f, ptx_tid_x(f), ptx_u32(1));
    ptx_load(f, ptx_at(f, x, ptx_lt(f, ptx_tid_x(f), ptx_u32(1))));
}
#line 1 "k.c"
static void bad_table(ptx_fn *f)
{
    ptx_lop3(f, ptx_tid_x(f), ptx_u32(1), ptx_u64(2), 0xea);
    ptx_val two[2] = {ptx_u32(1), ptx_u32(2)};
    ptx_pack(f, PTX_U32, 2, two);
    ptx_reduce_lanes(f, PTX_OP_ADD, 12, ptx_u32(1));
}
#line 1 "k.c"
static void open_order(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x");
    ptx_val sum = ptx_add(f, ptx_tid_x(f), ptx_ctaid_x(f));
    ptx_store(f, ptx_at(f, x, ptx_laneid(f)), ptx_tid_x(f));
    PTX_FOR(f, i, ptx_tid_x(f), ptx_nctaid_x(f), ptx_u32(1)) {
        ptx_add(f, i, sum);
    }
}
/* clang-format on */
#line 315 "checker_test.c"

#define BAD(name, message)                                                                                   \
    {                                                                                                        \
#name, name, message                                                                                 \
    }
static const bad_kernel bad_kernels[] = {
    BAD(wrong_operand, "k.c:4: error: add: operand 2 is f32, expected u32\n"),
    BAD(no_form, "k.c:4: error: add: there is no form for pred\n"),
    BAD(no_conversion, "k.c:4: error: cvt: there is no form from f32 to s32\n"),
    BAD(bad_reinterpretation, "k.c:4: error: ptx_as: f32 cannot be read as u64\n"),
    BAD(after_block, "k.c:7: error: add: operand 1 was made in a block that has ended\n"),
    BAD(moved, "k.c:6: error: add: operand 2 was moved into a variable on line 5: use the variable\n"),
    BAD(set_type,
        "k.c:4: error: ptx_set: the value is f32, expected u32\nk.c:5: error: ptx_set: not a variable\n"),
    BAD(set_counter, "k.c:4: error: ptx_set: only the loop changes its counter\n"),
    BAD(not_set, "k.c:7: error: a variable is used that is not set on every path to here\n"),
    BAD(not_set_in_arm, "k.c:11: error: a variable is used that is not set on every path to here\n"),
    BAD(not_set_at_break, "k.c:10: error: a variable is used that is not set on every path to here\n"),
    BAD(divergent_barrier, "k.c:5: error: bar where threads of the block may have taken different ways\n"),
    BAD(divergent_loop, "k.c:5: error: bar where threads of the block may have taken different ways\n"),
    BAD(divergent_variable, "k.c:6: error: bar where threads of the block may have taken different ways\n"),
    BAD(divergent_break, "k.c:5: error: bar where threads of the block may have taken different ways\n"),
    BAD(left_by_break, "k.c:4: error: a break, return or goto left this block\n"),
    BAD(for_left_by_break, "k.c:3: error: a break left this PTX_FOR: use ptx_break_if\n"),
    BAD(inner_left_by_break, "k.c:5: error: a break, return or goto left this block\n"),
    BAD(no_repeat, "k.c:3: error: PTX_LOOP does not end with ptx_repeat_if\n"),
    BAD(after_repeat, "k.c:6: error: ptx_repeat_if must be the last call of its PTX_LOOP\n"),
    BAD(stray_else, "k.c:6: error: PTX_ELSE does not follow the end of a PTX_IF\n"),
    BAD(control_in_when, "k.c:5: error: no control inside PTX_WHEN: use PTX_IF around it\n"),
    BAD(barrier_in_when, "k.c:5: error: bar inside PTX_WHEN\n"),
    BAD(stray_break_if, "k.c:4: error: ptx_break_if: not inside a loop\n"
                        "k.c:5: error: PTX_IF: the predicate is u32, expected pred\n"),
    BAD(bad_bounds, "k.c:3: error: PTX_FOR: to is u64, expected u32\n"),
    BAD(above_target, "k.c:3: error: redux needs sm_80, the target is sm_75\n"),
    BAD(hint_above_target, "k.c:4: error: ld needs sm_80, the target is sm_75\n"),
    BAD(family_feature, "k.c:5: error: cvt needs sm_100f, the target is sm_75\n"),
    BAD(misaligned, "k.c:4: error: load: an offset of 8 bytes is not a multiple of 16\n"
                    "k.c:6: error: store: 16 bytes at once, but the array is aligned to 8\n"),
    BAD(misaligned_shared, "k.c:4: error: load: 16 bytes at once, but the array is aligned to 8\n"),
    BAD(too_much_shared,
        "k.c:4: error: shared array: 49216 bytes with the arrays before it, the limit is 49152\n"),
    BAD(bad_vector,
        "k.c:4: error: load: no vector of 3 f64 there\nk.c:5: error: load: no vector of 4 f64 there\n"),
    BAD(bad_hints, "k.c:4: error: load: a cache hint that it does not take\n"
                   "k.c:5: error: load: cache hints that exclude each other\n"
                   "k.c:6: error: load: cache hints are for global memory\n"),
    BAD(bad_store, "k.c:4: error: store: value 1 is u32, expected f32\n"
                   "k.c:5: error: store: the pointer is u32, expected a pointer\n"
                   "k.c:6: error: ptx_at: the index is pred, expected u32, s32, u64 or s64\n"),
    BAD(bad_table, "k.c:3: error: lop3: operand 3 is u64, expected b32\n"
                   "k.c:5: error: ptx_pack: 2 parts of u32 are not as wide as u32\n"
                   "k.c:6: error: ptx_reduce_lanes: 12 lanes, expected 1, 2, 4, ... 32\n"),
    BAD(open_order, "k.c:4: error: two calls that emit are arguments of one call: C leaves their order open, "
                    "name one first\n"
                    "k.c:5: error: two calls that emit are arguments of one call: C leaves their order open, "
                    "name one first\n"
                    "k.c:6: error: two calls that emit are arguments of one call: C leaves their order open, "
                    "name one first\n"),
};
enum { BAD_COUNT = sizeof bad_kernels / sizeof bad_kernels[0] };

static void check_text(const char *expected, void (*emit)(ptx_fn *f), ptx_floor target)
{
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "bad", target, (uint32_t[]){64, 1, 1});
    emit(f);
    bool good = ptx_check(f, out);
    fclose(out);
    assert_string_equal(data, expected);
    assert_int_equal(good, expected[0] == '\0');
    free(data);
    arena_free(a);
}

static void is_refused(void **state)
{
    const bad_kernel *k = *state;
    check_text(k->message, k->emit, (ptx_floor){63, 75, 0});
}

/* ---- what must not be refused ----------------------------------------------------------------------------------- */

static void uniform_control(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), x = ptx_param_ptr(f, PTX_U32, "x");
    PTX_IF (f, ptx_lt(f, n, ptx_u32(5))) {
        ptx_barrier(f);
    }
    ptx_val flag = ptx_uniform(f, ptx_load(f, x));
    PTX_IF (f, ptx_lt(f, flag, n)) {
        ptx_barrier(f);
    }
    PTX_FOR (f, i, ptx_u32(0), n, ptx_u32(2)) {
        ptx_val odd = ptx_and(f, i, ptx_u32(1));
        PTX_IF (f, ptx_ne(f, odd, ptx_u32(0))) {
            ptx_barrier(f);
        }
    }
    ptx_val tid = ptx_tid_x(f);
    PTX_IF (f, ptx_lt(f, tid, n)) {
        ptx_barrier_divergent_ok(f);
    }
    ptx_barrier(f);
}

static void set_on_all_paths(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), v = ptx_declare(f, PTX_U32), w = ptx_declare(f, PTX_U32);
    PTX_IF (f, ptx_lt(f, tid, ptx_u32(1))) {
        ptx_set(f, v, ptx_u32(1));
    }
    PTX_ELSE (f) {
        ptx_set(f, v, ptx_u32(2));
    }
    PTX_LOOP (f) {
        ptx_set(f, w, ptx_u32(1));
        ptx_break_if(f, ptx_lt(f, w, v));
        ptx_repeat_if(f, ptx_lt(f, v, w));
    }
    ptx_add(f, v, w);
}

static void accepts_uniform_control(void **state)
{
    (void)state;
    check_text("", uniform_control, (ptx_floor){63, 75, 0});
}

static void accepts_set_variables(void **state)
{
    (void)state;
    check_text("", set_on_all_paths, (ptx_floor){63, 75, 0});
}

/* ---- floors ----------------------------------------------------------------------------------------------------- */

static ptx_floor needs_of(void (*emit)(ptx_fn *f), ptx_floor target)
{
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "k", target, (uint32_t[]){64, 1, 1});
    emit(f);
    assert_true(ptx_check(f, stderr));
    ptx_floor needs = ptx_needs(f);
    arena_free(a);
    return needs;
}

static void assert_floor(ptx_floor is, uint16_t version, uint16_t sm, char kind)
{
    assert_int_equal(is.version, version);
    assert_int_equal(is.sm, sm);
    assert_int_equal(is.kind, kind);
}

static void floors(void **state)
{
    (void)state;
    assert_floor(needs_of(uniform_control, (ptx_floor){90, 121, 0}), 63, 75, 0);
    assert_floor(needs_of(above_target, (ptx_floor){90, 121, 0}), 70, 80, 0);
    assert_floor(needs_of(hint_above_target, (ptx_floor){90, 90, 0}), 74, 80, 0);
    assert_floor(needs_of(family_feature, (ptx_floor){86, 100, 'a'}), 86, 100, 'a');
    assert_floor(needs_of(family_feature, (ptx_floor){88, 103, 'f'}), 88, 100, 'f');
    assert_floor(needs_of(family_feature, (ptx_floor){88, 121, 'f'}), 88, 120, 'f');
    assert_int_equal(ptx_min_driver(63), 10000);
    assert_int_equal(ptx_min_driver(78), 11080);
    assert_int_equal(ptx_min_driver(86), 12070);
    assert_int_equal(ptx_min_driver(79), 0);
}

/* ---- immediates ------------------------------------------------------------------------------------------------- */

static void numbers(void **state)
{
    (void)state;
    static const struct {
        ptx_type type;
        double value;
        uint64_t bits;
    } rows[] = {
        {PTX_F16, 1.0, 0x3c00},
        {PTX_F16, -2.5, 0xc100},
        {PTX_F16, 65504, 0x7bff},
        {PTX_F16, 65519.99, 0x7bff},
        {PTX_F16, 65520, 0x7c00},
        {PTX_F16, 0x1p-24, 0x0001},
        {PTX_F16, 0x1p-25, 0x0000},
        {PTX_F16, 0x1.8p-25, 0x0001},
        {PTX_F16, 0x1p-14, 0x0400},
        {PTX_F16, 0x1.ff8p-15, 0x03ff},
        {PTX_F16, 0x1.ffcp-15, 0x0400},
        {PTX_F16, 1 + 0x1p-11, 0x3c00},
        {PTX_F16, 1 + 0x3p-11, 0x3c02},
        {PTX_F16, 1e300, 0x7c00},
        {PTX_F16, -0.0, 0x8000},
        {PTX_BF16, 1.0, 0x3f80},
        {PTX_BF16, 3.3895313892515355e38, 0x7f7f},
        {PTX_BF16, 1 + 0x1p-8, 0x3f80},
        {PTX_BF16, 1 + 0x3p-8, 0x3f82},
        {PTX_BF16, 0x1p-133, 0x0001},
        {PTX_F16X2, 1.0, 0x3c003c00},
        {PTX_F32, 0.1, 0x3dcccccd},
        {PTX_F64, 1.0, 0x3ff0000000000000},
        {PTX_S32, -1, 0xffffffff},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(ptx_number(rows[i].type, rows[i].value).bits, rows[i].bits);
    for (ptx_type t = PTX_PRED; t <= PTX_PTR; t++)
        assert_int_equal(ptx_type_named(ptx_type_name(t)), t);
    assert_int_equal(ptx_type_named("f8"), PTX_NONE);
}

int main(void)
{
    struct CMUnitTest tests[BAD_COUNT + 4];
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < BAD_COUNT; i++) {
        tests[i].name = bad_kernels[i].name;
        tests[i].test_func = is_refused;
        tests[i].initial_state = (void *)&bad_kernels[i];
    }
    tests[BAD_COUNT] = (struct CMUnitTest)cmocka_unit_test(accepts_uniform_control);
    tests[BAD_COUNT + 1] = (struct CMUnitTest)cmocka_unit_test(accepts_set_variables);
    tests[BAD_COUNT + 2] = (struct CMUnitTest)cmocka_unit_test(floors);
    tests[BAD_COUNT + 3] = (struct CMUnitTest)cmocka_unit_test(numbers);
    return _cmocka_run_group_tests("ptx checker", tests, BAD_COUNT + 4, NULL, NULL);
}
