/* Mistakes with values: types, variables, the order of arguments, the target. The #line before each kernel names its lines. */
#include "bad.h"

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
    ptx_val tid = ptx_tid_x(f), inner = {0};
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
static ptx_val doubled(ptx_fn *f, ptx_val a)
{
    return ptx_add(f, a, a);
}
#line 1 "k.c"
static void open_order_of_functions(ptx_fn *f)
{
    ptx_val a = ptx_param(f, PTX_U32, "a"), sum = ptx_var(f, a), x = ptx_param_ptr(f, PTX_U32, "x");
    ptx_add(f, doubled(f, a), doubled(f, sum));
    ptx_mad_to(f, sum, doubled(f, a), ptx_tid_x(f));
    ptx_with_policy(f, ptx_at(f, x, a), ptx_policy_evict_first(f, 1));
}
#line 1 "k.c"
void above_target(ptx_fn *f)
{
    ptx_redux_max(f, ptx_tid_x(f));
}
#line 1 "k.c"
void hint_above_target(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x");
    ptx_load_hint(f, x, PTX_NC | PTX_L2_256B);
}
#line 1 "k.c"
void family_feature(ptx_fn *f)
{
    ptx_val bytes[4];
    ptx_unpack(f, PTX_B8, 4, bytes, ptx_tid_x(f));
    ptx_f16x2_from_e2m1x2(f, bytes[0]);
}
/* Zeroed values, which were never set. Each is in its own kernel: after a mistake, poison causes no more errors. */
#define NEVER_GIVEN(name, ...)                                                                               \
    static void never_given_##name(ptx_fn *f)                                                                \
    {                                                                                                        \
        ptx_val none = {0}, out[2];                                                                          \
        (void)out;                                                                                           \
        __VA_ARGS__;                                                                                         \
    }
#line 1 "k.c"
NEVER_GIVEN(stored, ptx_store(f, ptx_param_ptr(f, PTX_U32, "x"), none))
NEVER_GIVEN(multiplied, ptx_mul(f, ptx_tid_x(f), none))
NEVER_GIVEN(pointer, ptx_load(f, none))
NEVER_GIVEN(index, ptx_at(f, ptx_param_ptr(f, PTX_U32, "x"), none))
NEVER_GIVEN(predicate, PTX_IF(f, none) {})
NEVER_GIVEN(bound, PTX_FOR(f, i, ptx_u32(0), none, ptx_u32(1)) {})
NEVER_GIVEN(first, ptx_var(f, none))
NEVER_GIVEN(part, ptx_pack(f, PTX_B64, 2, ((ptx_val[]){ptx_u32(1), none})))
NEVER_GIVEN(whole, ptx_unpack(f, PTX_U32, 2, out, none))
NEVER_GIVEN(shuffled, ptx_shfl_xor(f, none, ptx_u32(1)))
NEVER_GIVEN(lane, ptx_shfl_idx(f, ptx_u32(1), none))
NEVER_GIVEN(added, ptx_red_add(f, ptx_param_ptr(f, PTX_U32, "x"), none, PTX_PLAIN))
#line 1 "k.c"
static void never_given_once(ptx_fn *f)
{
    ptx_val none = {0};
    ptx_val q = ptx_add(f, none, ptx_u32(1));
    ptx_store(f, ptx_param_ptr(f, PTX_U32, "x"), q);
    ptx_store(f, ptx_param_ptr(f, PTX_U32, "y"), none);
}
#line 1 "k.c"
static void literals_alone(ptx_fn *f)
{
    ptx_val is_first = ptx_eq(f, ptx_tid_x(f), 0);
    ptx_add(f, 1, 2);
    ptx_select(f, is_first, 1, 0);
    ptx_shl(f, 1, ptx_tid_x(f));
    PTX_FOR(f, i, 0, 4, 1) {
    }
}
#line 1 "k.c"
static void literals_out_of_range(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), a = ptx_param(f, PTX_F32, "a"), x = ptx_param_ptr(f, PTX_U8, "x");
    ptx_val s = ptx_as(f, PTX_S32, n), p = ptx_eq(f, n, 0);
    ptx_add(f, n, -1);
    ptx_add(f, s, 0x80000000u);
    ptx_mul(f, n, 0.5);
    ptx_mul(f, a, 16777217);
    ptx_mul(f, ptx_cvt(f, PTX_F16, a), -2049);
    ptx_shr(f, n, -1);
    ptx_and(f, s, -1);
    ptx_and(f, p, 1);
    ptx_at(f, x, 0.5);
    ptx_store(f, x, 256);
}
/* clang-format on */
#line 200 "bad_values.c"

const bad_kernel bad_values[] = {
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
    BAD(bad_table, "k.c:3: error: lop3: operand 3 is u64, expected b32\n"
                   "k.c:5: error: ptx_pack: 2 parts of u32 are not as wide as u32\n"
                   "k.c:6: error: ptx_reduce_lanes: 12 lanes, expected 1, 2, 4, ... 32\n"),
    BAD(open_order, "k.c:4: error: two calls that emit are arguments of one call: C leaves their order open, "
                    "name one first\n"
                    "k.c:5: error: two calls that emit are arguments of one call: C leaves their order open, "
                    "name one first\n"
                    "k.c:6: error: two calls that emit are arguments of one call: C leaves their order open, "
                    "name one first\n"),
    BAD(open_order_of_functions,
        "k.c:4: error: two calls that emit are arguments of one call: C leaves their order open, "
        "name one first\n"
        "k.c:5: error: two calls that emit are arguments of one call: C leaves their order open, "
        "name one first\n"
        "k.c:6: error: two calls that emit are arguments of one call: C leaves their order open, "
        "name one first\n"),
    BAD(never_given_stored, "k.c:1: error: store: value 1 was never given a value\n"),
    BAD(never_given_multiplied, "k.c:2: error: mul: operand 2 was never given a value\n"),
    BAD(never_given_pointer, "k.c:3: error: load: the pointer was never given a value\n"),
    BAD(never_given_index, "k.c:4: error: ptx_at: the index was never given a value\n"),
    BAD(never_given_predicate, "k.c:5: error: PTX_IF: the predicate was never given a value\n"),
    BAD(never_given_bound, "k.c:6: error: PTX_FOR: a bound was never given a value\n"),
    BAD(never_given_first, "k.c:7: error: ptx_var: the first value was never given a value\n"),
    BAD(never_given_part, "k.c:8: error: ptx_pack: a part was never given a value\n"),
    BAD(never_given_whole, "k.c:9: error: ptx_unpack: the value was never given a value\n"),
    BAD(never_given_shuffled, "k.c:10: error: shfl: the value was never given a value\n"),
    BAD(never_given_lane, "k.c:11: error: shfl: the lane was never given a value\n"),
    BAD(never_given_added, "k.c:12: error: red: operand 2 was never given a value\n"),
    BAD(never_given_once, "k.c:4: error: add: operand 1 was never given a value\n"),
    BAD(literals_alone,
        "k.c:4: error: add: operand 1 is a plain number, and no other operand has a type: give it one, as in "
        "ptx_u32(1)\n"
        "k.c:5: error: selp: operand 1 is a plain number, and no other operand has a type: give it one, as in "
        "ptx_u32(1)\n"
        "k.c:6: error: shl: operand 1 is a plain number, and no other operand has a type: give it one, as in "
        "ptx_u32(1)\n"
        "k.c:7: error: PTX_FOR: a bound is a plain number, and no other operand has a type: give it one, as in "
        "ptx_u32(1)\n"),
    BAD(literals_out_of_range,
        "k.c:5: error: add: operand 2 is -1, which does not fit u32\n"
        "k.c:6: error: add: operand 2 is 2147483648, which does not fit s32\n"
        "k.c:7: error: mul: operand 2 is 0.5, which does not fit u32\n"
        "k.c:8: error: mul: operand 2 is 16777217, which does not fit f32\n"
        "k.c:9: error: mul: operand 2 is -2049, which does not fit f16\n"
        "k.c:10: error: shr: operand 2 is -1, which does not fit u32\n"
        "k.c:11: error: and: operand 2 is -1, which does not fit u32\n"
        "k.c:12: error: and: operand 2 is a plain number, and no other operand has a type: "
        "give it one, as in ptx_u32(1)\n"
        "k.c:13: error: ptx_at: the index is 0.5, which does not fit s64\n"
        "k.c:14: error: store: value 1 is 256, which does not fit u8\n"),
    BAD(above_target, "k.c:3: error: redux needs sm_80, the target is sm_75\n"),
    BAD(hint_above_target, "k.c:4: error: ld needs sm_80, the target is sm_75\n"),
    BAD(family_feature, "k.c:5: error: cvt needs sm_100f, the target is sm_75\n"),
};
const size_t bad_values_count = sizeof bad_values / sizeof bad_values[0];
