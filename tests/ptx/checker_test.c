/* Every kind of mistake with its complete message, and correct code that must pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bad.h"

static const uint32_t row_of_64[3] = {64, 1, 1};

static void check_block(const char *expected, void (*emit)(ptx_fn *f), target t, const uint32_t block[3])
{
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "bad", t, block);
    emit(f);
    bool good = ptx_check(f, out);
    fclose(out);
    assert_string_equal(data, expected);
    assert_int_equal(good, expected[0] == '\0');
    free(data);
    arena_free(a);
}

static void check_text(const char *expected, void (*emit)(ptx_fn *f), target t)
{
    check_block(expected, emit, t, row_of_64);
}

static void is_refused(void **state)
{
    const bad_kernel *k = *state;
    check_text(k->message, k->emit, (target){75, TARGET_BASE});
}

static void is_refused_in_groups(void **state)
{
    const bad_kernel *k = *state;
    check_block(k->message, k->emit, (target){90, TARGET_ARCH}, (uint32_t[]){256, 1, 1});
}

/* ---- correct code that must pass -------------------------------------------------------------------------------- */

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

/* Conditions uniform in a warp: the warp's number, a bound at a multiple of 32, a vote, one lane's value. */
static void warp_uniform_control(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), x = ptx_param_ptr(f, PTX_U32, "x");
    ptx_val tid = ptx_tid_x(f), warp = ptx_warpid_x(f), thread = ptx_global_thread_x64(f);
    ptx_val a = ptx_var(f, ptx_bits(PTX_B32, 0)), sums[2];
    sums[0] = ptx_var(f, ptx_s32(0));
    sums[1] = ptx_var(f, ptx_s32(0));
    PTX_IF (f, ptx_lt(f, tid, ptx_u32(32))) {
        ptx_mma_to(f, PTX_MMA_M8N8K16_S8_S32, sums, &a, &a);
    }
    PTX_FOR (f, i, warp, n, ptx_u32(2)) {
        ptx_shfl_xor(f, i, ptx_u32(1));
    }
    ptx_val global_warp = ptx_shr(f, thread, ptx_u32(5));
    PTX_IF (f, ptx_eq(f, global_warp, ptx_u64(3))) {
        ptx_warp_barrier(f);
    }
    PTX_IF (f, ptx_eq(f, ptx_div(f, tid, ptx_u32(64)), n)) {
        ptx_warp_barrier(f);
    }
    ptx_val mine = ptx_load(f, ptx_at(f, x, tid)), some = ptx_vote_any(f, ptx_lt(f, mine, n));
    PTX_IF (f, some) {
        ptx_warp_barrier(f);
    }
    PTX_FOR (f, i, ptx_u32(0), ptx_shfl_idx(f, mine, ptx_u32(0)), ptx_u32(1)) {
        ptx_ballot(f, ptx_lt(f, i, mine));
    }
    PTX_IF (f, ptx_warp_uniform(f, ptx_lt(f, mine, n))) {
        ptx_match_all(f, mine);
    }
    PTX_IF (f, ptx_lt(f, mine, n)) {
        ptx_val here = ptx_activemask(f);
        ptx_ballot_mask(f, ptx_lt(f, mine, tid), here);
        ptx_warp_barrier_mask(f, ptx_u32(0xff));
    }
    PTX_WHEN (f, some) {
        ptx_shfl_idx_in(f, mine, ptx_u32(0), 8);
    }
}

static void raw_use(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), out[2];
    const ptx_type types[2] = {PTX_U32, PTX_PRED};
    const ptx_raw_form form = {.text = "match.all.sync.b32 $0|$1, $2, $3", .sm = 80, .version = 70};
    ptx_raw(f, form, 2, types, out, 2, ((ptx_val[]){tid, ptx_u32(PTX_ALL_LANES)}));
    ptx_raw(f, ((ptx_raw_form){.text = "nanosleep.u32 $0"}), 0, NULL, NULL, 1, &tid);
    ptx_select(f, out[1], out[0], tid);
}

/* Reads weights, the kernel's own table and shared memory before the wait, everything else after it. */
static void dependent(ptx_fn *f)
{
    static const uint64_t zeros[4] = {0};
    ptx_val n = ptx_param(f, PTX_U32, "n"), x = ptx_param_ptr(f, PTX_U32, "x");
    ptx_val w = ptx_param_ptr(f, PTX_U32, "w"), tid = ptx_tid_x(f), s = ptx_shared(f, PTX_U32, 256, 16);
    ptx_val table = ptx_global_table(f, PTX_U32, 4, zeros), at = ptx_var(f, ptx_at(f, w, n));
    ptx_prefetch_l2(f, x);
    ptx_prefetch_l2_bytes(f, x, ptx_u32(64));
    PTX_FOR (f, i, ptx_u32(0), n, ptx_u32(1)) {
        ptx_val sum = ptx_add(f, i, tid), weight = ptx_load(f, at);
        ptx_store(f, ptx_at(f, s, sum), weight);
        ptx_cp_async(f, s, ptx_at(f, w, tid), 4, PTX_PLAIN);
        ptx_set(f, at, ptx_at(f, at, n));
    }
    ptx_atom_add(f, s, ptx_load(f, ptx_at(f, table, n)), PTX_PLAIN);
    ptx_grid_launch_next(f);
    ptx_grid_wait(f);
    ptx_red_add(f, x, ptx_load(f, ptx_at(f, x, n)), PTX_PLAIN);
    ptx_set_constant(f, "w");
}

/* clang-format off */
#line 1 "k.c"
static void not_dependent(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), w = ptx_param_ptr(f, PTX_U32, "w"), s = ptx_shared(f, PTX_U32, 4, 16);
    ptx_val n = ptx_load(f, w), at = ptx_var(f, w);
    ptx_load(f, x);
    ptx_load(f, ptx_at(f, x, n));
    ptx_cp_async(f, s, x, 4, PTX_PLAIN);
    ptx_store(f, w, n);
    ptx_atom_add(f, x, n, PTX_PLAIN);
    ptx_raw(f, ((ptx_raw_form){.text = "nanosleep.u32 $0"}), 0, NULL, NULL, 1, &n);
    PTX_FOR (f, i, ptx_u32(0), n, ptx_u32(1)) {
        ptx_load(f, at);
        ptx_set(f, at, ptx_at(f, x, i));
    }
    PTX_IF (f, ptx_lt(f, n, ptx_u32(3))) {
        ptx_grid_wait(f);
    }
    PTX_WHEN (f, ptx_gt(f, n, ptx_u32(3))) {
        ptx_grid_wait(f);
    }
    ptx_load(f, x);
    ptx_set_constant(f, "w");
}
/* clang-format on */
#line 166 "checker_test.c"

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

/* Several calls on one line that are not arguments of one call, and a macro with several calls. */
#define STORE_SUM(f, to, a, b)                                                                               \
    do {                                                                                                     \
        ptx_val sum_ = ptx_add(f, a, b);                                                                     \
        ptx_val product_ = ptx_mul(f, sum_, a);                                                              \
        ptx_store(f, ptx_at(f, to, sum_), product_);                                                         \
    } while (0)

/* clang-format off */
static void calls_on_one_line(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), tid = ptx_tid_x(f), lane = ptx_laneid(f);
    ptx_val q = ptx_add(f, tid, tid); ptx_store(f, ptx_at(f, x, lane), q);
    STORE_SUM(f, x, tid, lane);
    ptx_val a = ptx_not(f, tid), b = ptx_not(f, lane), c = ptx_add(f, a, b); ptx_mad(f, a, b, ptx_not(f, c));
    ptx_add(f, ptx_mul(f, ptx_add(f, ptx_shl(f, c, ptx_u32(1)), a), b), c);
}
/* clang-format on */

static void accepts_calls_on_one_line(void **state)
{
    (void)state;
    check_text("", calls_on_one_line, (target){75, TARGET_BASE});
}

static void accepts_uniform_control(void **state)
{
    (void)state;
    check_text("", uniform_control, (target){75, TARGET_BASE});
}

static void accepts_warp_uniform_control(void **state)
{
    (void)state;
    check_text("", warp_uniform_control, (target){75, TARGET_BASE});
}

static void dependent_launches(void **state)
{
    (void)state;
    const target t = {90, TARGET_BASE};
    check_text("", dependent, t);
    check_text("k.c:16: error: griddepcontrol inside a block: every thread must wait\n"
               "k.c:19: error: griddepcontrol inside a block: every thread must wait\n"
               "k.c:5: error: ld before ptx_grid_wait, of memory that no constant argument points at\n"
               "k.c:6: error: ld before ptx_grid_wait, of memory that no constant argument points at\n"
               "k.c:7: error: cp before ptx_grid_wait, of memory that no constant argument points at\n"
               "k.c:8: error: st before ptx_grid_wait: what ran before may still use this memory\n"
               "k.c:9: error: atom before ptx_grid_wait: what ran before may still use this memory\n"
               "k.c:10: error: ptx_raw before ptx_grid_wait: its memory accesses are unknown\n"
               "k.c:12: error: ld before ptx_grid_wait, of memory that no constant argument points at\n",
               not_dependent, t);
}

/* If a warp is not a row, or part of one, its lanes have different y and x / 32. */
static void rows_and_warps(void **state)
{
    (void)state;
    const target t = {75, TARGET_BASE};
    check_block("", by_row, t, (uint32_t[]){32, 2, 2});
    check_block("", by_row, t, (uint32_t[]){24, 1, 1} /* y is 0 */);
    check_block("k.c:5: error: shfl where lanes of the warp may have diverged\n"
                "k.c:8: error: shfl where lanes of the warp may have diverged\n",
                by_row, t, (uint32_t[]){24, 2, 1});
}

static void records_raw(void **state)
{
    (void)state;
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "k", (target){80, TARGET_BASE}, row_of_64);
    raw_use(f);
    assert_true(ptx_check(f, stderr));
    assert_int_equal(ptx_raw_count(f), 2);
    assert_string_equal(ptx_raw_text(f, 0), "match.all.sync.b32 $0|$1, $2, $3");
    assert_string_equal(ptx_raw_text(f, 1), "nanosleep.u32 $0");
    assert_null(ptx_raw_text(f, 2));
    assert_int_equal(ptx_needs(f).target.sm, 80);
    text t = text_new(a);
    ptx_print_body(&t, f, false);
    assert_non_null(strstr(t.data, "\tmatch.all.sync.b32 %r2|%p1, %r1, 0xffffffff;\n\tnanosleep.u32 %r1;\n"));
    arena_free(a);
}

/* A share of a policy in a register, and a static array aligned to more than the dynamic one can be. */
static void without_limits(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), share = ptx_param(f, PTX_F32, "share");
    ptx_val policy = ptx_op1(f, PTX_OP_POLICY_LAST, share, PTX_HERE);
    ptx_store(f, ptx_with_policy(f, x, policy), share);
    ptx_store(f, ptx_shared(f, PTX_F32, 16, 4096), share);
}

static void accepts_no_limits(void **state)
{
    (void)state;
    check_text("", without_limits, (target){80, TARGET_BASE});
}

static void accepts_set_variables(void **state)
{
    (void)state;
    check_text("", set_on_all_paths, (target){75, TARGET_BASE});
}

/* Two sets of A and of accumulators: while one group is in flight, A of the next is set and the sums of the one before are
 * read. One of the two warpgroups does this, or both do. */
static void overlapped_groups(ptx_fn *f)
{
    static const ptx_wgmma_form form = {.types = PTX_WGMMA_F16_F32, .n = 8};
    ptx_val n = ptx_param(f, PTX_U32, "n"), tid = ptx_tid_x(f), group = ptx_shr(f, tid, 7), a[2][4], d[2][4],
            sum[4];
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x");
    ptx_val s = ptx_shared_dynamic_aligned(f, PTX_F16, 1024);
    ptx_val at = ptx_descriptor(f, s, ((ptx_matrix){.swizzle_bytes = 128, .stride_bytes = 1024}));
    ptx_val own = ptx_add(f, at, ptx_cvt(f, PTX_U64, group));
    for (int i = 0; i < 8; i++) {
        a[i / 4][i % 4] = ptx_as(f, PTX_F16X2, ptx_var(f, n));
        d[i / 4][i % 4] = ptx_declare(f, PTX_F32);
        sum[i % 4] = ptx_var(f, ptx_f32(0));
    }
    ptx_wgmma_fence(f);
    ptx_wgmma(f, form, 0, d[1], a[1], own);
    ptx_wgmma_commit(f);
    PTX_FOR (f, i, 0, n, 2) {
        for (int set = 0; set < 2; set++) {
            ptx_wgmma_fence(f);
            ptx_wgmma(f, form, 0, d[set], a[set], at);
            ptx_wgmma(f, form, ptx_eq(f, i, 0), d[set], a[set], own);
            ptx_wgmma_commit(f);
            ptx_wgmma_wait(f, 1);
            ptx_set(f, a[1 - set][0], ptx_as(f, PTX_F16X2, i));
            for (int j = 0; j < 4; j++)
                ptx_add_to(f, sum[j], d[1 - set][j]);
        }
    }
    ptx_wgmma_wait(f, 0);
    PTX_IF (f, ptx_ge(f, tid, 128)) {
        ptx_wgmma_fence(f);
        ptx_wgmma_shared(f, form, 1, d[1], at, at);
        ptx_wgmma_commit(f);
        ptx_wgmma_wait(f, 0);
    }
    ptx_val of_warp = ptx_shfl_idx(f, ptx_div(f, tid, 128), 0), flag = ptx_load(f, x);
    PTX_IF (f, ptx_eq(f, of_warp, 1)) {
        ptx_wgmma_wait(f, 0);
    }
    PTX_IF (f, ptx_warpgroup_uniform(f, ptx_eq(f, flag, n))) {
        ptx_wgmma_wait(f, 0);
    }
}

static void accepts_groups(void **state)
{
    (void)state;
    check_block("", overlapped_groups, (target){90, TARGET_ARCH}, (uint32_t[]){256, 1, 1});
    check_block("", overlapped_groups, (target){90, TARGET_ARCH}, (uint32_t[]){128, 2, 1});
    check_block("", wgmma_without_group, (target){90, TARGET_ARCH}, (uint32_t[]){64, 2, 1});
    check_block("k.c:3: error: wgmma takes whole warpgroups of 128 threads, the thread block has 64\n",
                wgmma_without_group, (target){90, TARGET_ARCH}, row_of_64);
    check_block("k.c:3: error: wgmma needs sm_90a, the target is sm_90\n", wgmma_without_group,
                (target){90, TARGET_BASE}, (uint32_t[]){128, 1, 1});
    check_block("k.c:3: error: wgmma needs sm_90a, the target is sm_100a\n", wgmma_without_group,
                (target){100, TARGET_ARCH}, (uint32_t[]){128, 1, 1});
}

/* ---- requirements ------------------------------------------------------------------------------------------------- */

static ptx_requirement needs_of(void (*emit)(ptx_fn *f), target t)
{
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "k", t, row_of_64);
    emit(f);
    assert_true(ptx_check(f, stderr));
    ptx_requirement needs = ptx_needs(f);
    arena_free(a);
    return needs;
}

static void assert_requirement(ptx_requirement is, uint16_t version, target t)
{
    assert_int_equal(is.version, version);
    assert_int_equal(target_compare(is.target, t), 0);
}

static void requirements(void **state)
{
    (void)state;
    assert_requirement(needs_of(uniform_control, (target){121, TARGET_BASE}), 63, (target){75, TARGET_BASE});
    assert_requirement(needs_of(above_target, (target){121, TARGET_BASE}), 70, (target){80, TARGET_BASE});
    assert_requirement(needs_of(hint_above_target, (target){90, TARGET_BASE}), 74, (target){80, TARGET_BASE});
    assert_requirement(needs_of(family_feature, (target){100, TARGET_ARCH}), 86, (target){100, TARGET_ARCH});
    assert_requirement(needs_of(family_feature, (target){103, TARGET_FAMILY}), 88,
                       (target){100, TARGET_FAMILY});
    assert_requirement(needs_of(family_feature, (target){121, TARGET_FAMILY}), 88,
                       (target){120, TARGET_FAMILY});
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
        {PTX_F32X2, 0.1, 0x3dcccccd3dcccccd},
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
    enum { MOST = 128 };
    static const struct {
        const bad_kernel *kernels;
        const size_t *count;
        void (*test)(void **state);
    } groups[] = {
        {bad_values, &bad_values_count, is_refused},      {bad_numbers, &bad_numbers_count, is_refused},
        {bad_control, &bad_control_count, is_refused},    {bad_memory, &bad_memory_count, is_refused},
        {bad_warp, &bad_warp_count, is_refused},          {bad_wgmma, &bad_wgmma_count, is_refused_in_groups},
        {bad_bulk, &bad_bulk_count, is_refused_in_groups}};
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(accepts_calls_on_one_line),
        cmocka_unit_test(accepts_uniform_control),
        cmocka_unit_test(accepts_warp_uniform_control),
        cmocka_unit_test(rows_and_warps),
        cmocka_unit_test(accepts_groups),
        cmocka_unit_test(dependent_launches),
        cmocka_unit_test(accepts_set_variables),
        cmocka_unit_test(accepts_no_limits),
        cmocka_unit_test(records_raw),
        cmocka_unit_test(requirements),
        cmocka_unit_test(numbers),
    };
    struct CMUnitTest tests[MOST];
    size_t count = sizeof others / sizeof others[0];
    memset(tests, 0, sizeof tests);
    memcpy(tests, others, sizeof others);
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
        for (size_t i = 0; i < *groups[g].count && count < MOST; i++, count++) {
            tests[count].name = groups[g].kernels[i].name;
            tests[count].test_func = groups[g].test;
            tests[count].initial_state = (void *)&groups[g].kernels[i];
        }
    return _cmocka_run_group_tests("ptx checker", tests, count, NULL, NULL);
}
