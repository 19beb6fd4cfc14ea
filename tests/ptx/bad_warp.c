/* Mistakes with warp-wide operations, and with ptx_raw. The #line before each kernel names its lines. */
#include "bad.h"

/* clang-format off */
#line 1 "k.c"
static void mma_types(ptx_fn *f)
{
    ptx_val a[2], b[1], c[4], d[4];
    for (int i = 0; i < 4; i++)
        c[i] = ptx_f32(0);
    a[0] = a[1] = b[0] = ptx_as(f, PTX_BF16X2, ptx_var(f, ptx_u32(0)));
    ptx_mma(f, PTX_MMA_M16N8K8_F16_F32, d, a, b, c);
    ptx_add(f, d[0], ptx_u32(1));
    a[0] = a[1] = b[0] = ptx_u32(0);
    ptx_mma(f, PTX_MMA_M8N8K16_S8_S32, d, a, b, c);
}
#line 1 "k.c"
static void mma_not_in_place(ptx_fn *f)
{
    ptx_val a[2], b[1], sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = i < 2 ? ptx_var(f, ptx_f32(0)) : ptx_f32(0);
    a[0] = a[1] = b[0] = ptx_bits(PTX_B32, 0);
    ptx_mma_to(f, PTX_MMA_M16N8K8_F16_F32, sums, a, b);
}
#line 1 "k.c"
static void mma_parted(ptx_fn *f)
{
    ptx_val a = ptx_var(f, ptx_bits(PTX_B32, 0)), s = ptx_var(f, ptx_s32(0)), t = ptx_var(f, ptx_s32(0)), sums[2] = {s, t};
    ptx_val lane = ptx_laneid(f), lower = ptx_lt(f, lane, ptx_u32(16));
    PTX_IF(f, lower) {
        ptx_mma_to(f, PTX_MMA_M8N8K16_S8_S32, sums, &a, &a);
    }
    PTX_WHEN(f, lower) {
        ptx_mma_to(f, PTX_MMA_M8N8K16_S8_S32, sums, &a, &a);
    }
}
#line 1 "k.c"
static void mma_above_target(ptx_fn *f)
{
    ptx_val a = ptx_f64(1), c[2] = {ptx_f64(0), ptx_f64(0)}, d[2];
    ptx_mma(f, PTX_MMA_M8N8K4_F64_F64, d, &a, &a, c);
}
#line 1 "k.c"
static void bad_matrix(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F16, "x"), out[4];
    ptx_val s = ptx_shared(f, PTX_F16, 512, 16), narrow = ptx_shared(f, PTX_F16, 64, 8);
    ptx_ldmatrix(f, 2, out, x);
    ptx_ldmatrix(f, 3, out, s);
    ptx_ldmatrix(f, 4, out, ptx_at_const(f, s, 4));
    ptx_ldmatrix_trans(f, 1, out, narrow);
    ptx_stmatrix(f, 1, s, &(ptx_val){.kind = 0});
    ptx_stmatrix(f, 1, s, (ptx_val[]){ptx_f32(1)});
}
#line 1 "k.c"
static void matrix_parted(ptx_fn *f)
{
    ptx_val s = ptx_shared(f, PTX_F16, 512, 16), out[1], tid = ptx_tid_x(f);
    PTX_FOR(f, i, tid, ptx_u32(64), ptx_u32(32)) {
        ptx_ldmatrix(f, 1, out, s);
        ptx_movmatrix_trans(f, out[0]);
    }
}
#line 1 "k.c"
static void shuffle_parted(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), tid = ptx_tid_x(f), n = ptx_load(f, x);
    PTX_IF(f, ptx_lt(f, tid, ptx_u32(33))) {
        ptx_shfl_xor(f, tid, ptx_u32(1));
    }
    PTX_FOR(f, i, ptx_u32(0), n, ptx_u32(1)) {
        ptx_ballot(f, ptx_lt(f, i, tid));
    }
    PTX_FOR(f, i, ptx_u32(0), ptx_u32(9), ptx_u32(1)) {
        ptx_warp_barrier(f);
        ptx_break_if(f, ptx_eq(f, tid, i));
    }
}
#line 1 "k.c"
static void shuffle_by_variable(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), lane = ptx_laneid(f), v = ptx_var(f, n);
    PTX_IF(f, ptx_eq(f, lane, ptx_u32(0))) {
        ptx_set(f, v, ptx_u32(1));
    }
    PTX_IF(f, ptx_eq(f, v, n)) {
        ptx_match_all(f, lane);
    }
}
#line 1 "k.c"
static void shuffle_segments(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f);
    ptx_shfl_idx_in(f, tid, ptx_u32(0), 12);
    ptx_shfl_up_in(f, tid, ptx_u32(1), 1);
    ptx_shfl_xor(f, ptx_cvt(f, PTX_U16, tid), ptx_u32(1));
}
#line 1 "k.c"
static void bad_raw(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), out[1];
    const ptx_type u32 = PTX_U32, pointer = PTX_PTR;
    ptx_raw(f, ((ptx_raw_form){.text = "sad.u32 $0, $1, $2, 0"}), 1, &u32, out, 1, &tid);
    ptx_raw(f, ((ptx_raw_form){.text = "sad.u32 $0, 1, 2, 0"}), 1, &u32, out, 1, &tid);
    ptx_raw(f, ((ptx_raw_form){.text = "mov.u32 $0, $1;"}), 1, &u32, out, 1, &tid);
    ptx_raw(f, ((ptx_raw_form){.text = "mov.u32 $0, $x"}), 1, &u32, out, 1, &tid);
    ptx_raw(f, ((ptx_raw_form){.text = "mov.u64 $0, $1"}), 1, &pointer, out, 1, &tid);
    ptx_raw(f, ((ptx_raw_form){.text = "mov.u32 $0, $1 // copy"}), 1, &u32, out, 1, &tid);
    ptx_raw(f, ((ptx_raw_form){.text = "mov.u32 $0, $1\n"}), 1, &u32, out, 1, &tid);
    ptx_add(f, out[0], tid);
}
#line 1 "k.c"
static void bad_notes(ptx_fn *f)
{
    ptx_note(f, "gr\xc3\xbc\xc3\x9f" "e");
    ptx_note(f, "\ttab");
    ptx_note(f, "two\nlines");
    ptx_note(f, "from ' ' to '~'");
}
#line 1 "k.c"
static void raw_in_kernel(ptx_fn *f)
{
    ptx_val unset = ptx_declare(f, PTX_U32), lane = ptx_laneid(f);
    const ptx_raw_form form = {.text = "mov.u32 $0, $1", .sm = 80, .version = 70, .whole_warp = true};
    const ptx_type u32 = PTX_U32;
    ptx_val out[1];
    PTX_IF(f, ptx_eq(f, lane, ptx_u32(3))) {
        ptx_raw(f, form, 1, &u32, out, 1, &unset);
    }
}
#line 1 "k.c"
void by_row(ptx_fn *f)
{
    ptx_val row = ptx_tid_y(f), warp = ptx_warpid_x(f);
    PTX_IF(f, ptx_eq(f, row, ptx_u32(1))) {
        ptx_shfl_xor(f, row, ptx_u32(1));
    }
    PTX_IF(f, ptx_eq(f, warp, ptx_u32(0))) {
        ptx_shfl_xor(f, row, ptx_u32(1));
    }
}
#line 1 "k.c"
static void by_segment(ptx_fn *f)
{
    ptx_val lane = ptx_laneid(f), eighth = ptx_shfl_idx_in(f, lane, ptx_u32(0), 8);
    PTX_IF(f, ptx_eq(f, eighth, ptx_u32(8))) {
        ptx_warp_barrier(f);
    }
}
/* clang-format on */
#line 153 "bad_warp.c"

const bad_kernel bad_warp[] = {
    BAD(mma_types, "k.c:7: error: mma: a[0] is bf16x2, expected f16x2\n"
                   "k.c:10: error: mma: c[0] is f32, expected s32\n"),
    BAD(mma_not_in_place, "k.c:7: error: mma: d and c are one array, but c[2] is not a variable\n"),
    BAD(mma_parted, "k.c:6: error: mma where lanes of the warp may have diverged\n"
                    "k.c:9: error: mma under a predicate that may differ between lanes of the warp\n"),
    BAD(mma_above_target, "k.c:4: error: mma needs sm_80, the target is sm_75\n"),
    BAD(bad_matrix, "k.c:5: error: ldmatrix: the pointer is not to shared memory\n"
                    "k.c:6: error: ldmatrix: 3 matrices, expected 1, 2 or 4\n"
                    "k.c:7: error: ldmatrix: an offset of 8 bytes is not a multiple of 16\n"
                    "k.c:8: error: ldmatrix: 16 bytes at once, but the array is aligned to 8\n"
                    "k.c:10: error: stmatrix: there is no form for f32\n"),
    BAD(matrix_parted, "k.c:5: error: ldmatrix where lanes of the warp may have diverged\n"
                       "k.c:6: error: movmatrix where lanes of the warp may have diverged\n"),
    BAD(shuffle_parted, "k.c:5: error: shfl where lanes of the warp may have diverged\n"
                        "k.c:8: error: vote where lanes of the warp may have diverged\n"
                        "k.c:11: error: bar where lanes of the warp may have diverged\n"),
    BAD(shuffle_by_variable, "k.c:8: error: match where lanes of the warp may have diverged\n"),
    BAD(shuffle_segments, "k.c:4: error: shfl: segments of 12 lanes, expected 2, 4, 8, 16 or 32\n"
                          "k.c:5: error: shfl: segments of 1 lanes, expected 2, 4, 8, 16 or 32\n"
                          "k.c:6: error: shfl: there is no form for u16\n"),
    BAD(bad_raw, "k.c:5: error: ptx_raw: the text names a value that is not there\n"
                 "k.c:6: error: ptx_raw: the text does not name every value\n"
                 "k.c:7: error: ptx_raw: the text is one instruction, without a semicolon or a comment\n"
                 "k.c:8: error: ptx_raw: the text names a value that is not there\n"
                 "k.c:9: error: ptx_raw: a result cannot be a pointer: take an address\n"
                 "k.c:10: error: ptx_raw: the text is one instruction, without a semicolon or a comment\n"
                 "k.c:11: error: ptx_raw: the text is printable ASCII on one line\n"),
    BAD(bad_notes, "k.c:3: error: ptx_note: the text is printable ASCII on one line\n"
                   "k.c:4: error: ptx_note: the text is printable ASCII on one line\n"
                   "k.c:5: error: ptx_note: the text is printable ASCII on one line\n"),
    BAD(raw_in_kernel, "k.c:8: error: a variable is used that is not set on every path to here\n"
                       "k.c:8: error: ptx_raw needs sm_80, the target is sm_75\n"
                       "k.c:8: error: ptx_raw where lanes of the warp may have diverged\n"),
    BAD(by_segment, "k.c:5: error: bar where lanes of the warp may have diverged\n"),
};
const size_t bad_warp_count = sizeof bad_warp / sizeof bad_warp[0];
