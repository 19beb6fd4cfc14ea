/* Mistakes with blocks and barriers. The #line before each kernel names its lines. */
#include "bad.h"

/* clang-format off */
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
static void stray_marks(ptx_fn *f)
{
    ptx_main_loop(f);
    ptx_rarely(f);
    PTX_FOR(f, i, ptx_u32(0), ptx_u32(5), ptx_u32(1)) {
        ptx_main_loop(f);
        ptx_side_loop(f);
    }
    PTX_FOR(f, i, ptx_u32(0), ptx_u32(5), ptx_u32(1)) {
        ptx_main_loop(f);
    }
}
#line 1 "k.c"
static void barrier_by_warp(ptx_fn *f)
{
    ptx_val warp = ptx_warpid_x(f), tid = ptx_tid_x(f);
    PTX_IF(f, ptx_eq(f, warp, ptx_u32(0))) {
        ptx_barrier(f);
    }
    ptx_val first = ptx_warp_uniform(f, ptx_load(f, ptx_param_ptr(f, PTX_U32, "x")));
    PTX_IF(f, ptx_lt(f, first, ptx_u32(1))) {
        ptx_barrier(f);
    }
    PTX_IF(f, ptx_vote_any(f, ptx_lt(f, tid, ptx_u32(3)))) {
        ptx_barrier(f);
    }
}
/* clang-format on */
#line 145 "bad_control.c"

const bad_kernel bad_control[] = {
    BAD(divergent_barrier, "k.c:5: error: bar where threads of the block may have diverged\n"),
    BAD(divergent_loop, "k.c:5: error: bar where threads of the block may have diverged\n"),
    BAD(divergent_variable, "k.c:6: error: bar where threads of the block may have diverged\n"),
    BAD(divergent_break, "k.c:5: error: bar where threads of the block may have diverged\n"),
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
    BAD(stray_marks, "k.c:3: error: ptx_main_loop: not directly inside a PTX_FOR or PTX_LOOP\n"
                     "k.c:4: error: ptx_rarely: not directly inside a PTX_IF or PTX_ELSE\n"
                     "k.c:7: error: ptx_side_loop: this is the main loop\n"
                     "k.c:10: error: ptx_main_loop: the kernel has one already\n"),
    BAD(barrier_by_warp, "k.c:5: error: bar where threads of the block may have diverged\n"
                         "k.c:9: error: bar where threads of the block may have diverged\n"
                         "k.c:12: error: bar where threads of the block may have diverged\n"),
};
const size_t bad_control_count = sizeof bad_control / sizeof bad_control[0];
