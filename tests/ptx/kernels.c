/* Small complete kernels; golden.txt has their PTX. */
#include "kernels.h"

/* dst[0..n) = src[0..n) in bytes: 16 at a time, then one thread per byte of the tail.  block 128 */
static void emit_copy(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U64, "n");
    ptx_val src = ptx_param_ptr(f, PTX_U8, "src"), dst = ptx_param_ptr(f, PTX_U8, "dst");
    ptx_val i = ptx_global_thread_x64(f), whole = ptx_shr(f, n, 4);
    PTX_IF (f, ptx_lt(f, i, whole)) {
        ptx_val offset = ptx_shl(f, i, 4), word[4];
        ptx_val from = ptx_cast_ptr(f, ptx_at(f, src, offset), PTX_B32);
        ptx_val to = ptx_cast_ptr(f, ptx_at(f, dst, offset), PTX_B32);
        ptx_load_vec(f, 4, word, from, PTX_NC | PTX_NO_ALLOCATE | PTX_L2_128B);
        ptx_store_vec(f, 4, to, word, PTX_CS);
    }
    PTX_ELSE (f) {
        ptx_val tail = ptx_and(f, n, 15), beyond = ptx_sub(f, i, whole);
        PTX_IF (f, ptx_lt(f, beyond, tail)) {
            ptx_val done = ptx_shl(f, whole, 4);
            ptx_val at = ptx_add(f, done, beyond);
            ptx_val from = ptx_at(f, src, at), to = ptx_at(f, dst, at);
            ptx_store(f, to, ptx_load(f, from));
        }
    }
}

/* out[i] = x[0] + ... + x[i] within each warp, and the warp's largest sum as an unsigned number.  block 32 */
static void emit_warp_scan(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_S32, "x"), out = ptx_param_ptr(f, PTX_S32, "out");
    ptx_val largest = ptx_param_ptr(f, PTX_U32, "largest"), i = ptx_global_thread_x(f);
    ptx_val sum = ptx_var(f, ptx_load(f, ptx_at(f, x, i)));
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        ptx_val in_range;
        ptx_val left = ptx_shfl_up_in_range(f, sum, ptx_u32(distance), &in_range);
        PTX_WHEN (f, in_range) {
            ptx_add_to(f, sum, left);
        }
    }
    ptx_store(f, ptx_at(f, out, i), sum);
    ptx_val all = ptx_redux_max(f, ptx_as(f, PTX_U32, sum));
    ptx_store(f, ptx_at(f, largest, ptx_shr(f, i, 5)), all);
}

/* Steps from n down to 1 by the Collatz rule.  block 64 */
static void emit_collatz(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), steps = ptx_param_ptr(f, PTX_U32, "steps");
    ptx_val i = ptx_global_thread_x(f);
    ptx_val n = ptx_var(f, ptx_load(f, ptx_at(f, x, i))), count = ptx_var(f, ptx_u32(0));
    PTX_LOOP (f) {
        ptx_break_if(f, ptx_le(f, n, 1));
        ptx_val bit = ptx_and(f, n, 1);
        ptx_val odd = ptx_ne(f, bit, 0);
        PTX_IF (f, odd) {
            ptx_set(f, n, ptx_mad(f, n, 3, 1));
        }
        PTX_ELSE (f) {
            ptx_set(f, n, ptx_shr(f, n, 1));
        }
        ptx_add_to(f, count, 1);
        ptx_repeat_if(f, ptx_lt(f, count, 1000));
    }
    ptx_store(f, ptx_at(f, steps, i), count);
}

/* out[i] = table[code[i]] from constants.  block 128 */
static void emit_lookup(ptx_fn *f)
{
    static const float levels[4] = {-1.0f, -0.25f, 0.25f, 1.0f};
    uint64_t bits[4];
    for (int k = 0; k < 4; k++)
        bits[k] = ptx_f32(levels[k]).bits;
    ptx_val code = ptx_param_ptr(f, PTX_U8, "code"), out = ptx_param_ptr(f, PTX_F16, "out");
    ptx_val table = ptx_const_table(f, PTX_F32, 4, bits);
    ptx_val staged = ptx_shared_dynamic(f, PTX_F32);
    ptx_val i = ptx_global_thread_x(f), tid = ptx_tid_x(f);
    PTX_IF (f, ptx_lt(f, tid, 4)) {
        ptx_val level = ptx_load(f, ptx_at(f, table, tid));
        ptx_store(f, ptx_at(f, staged, tid), level);
    }
    ptx_barrier(f);
    ptx_val c = ptx_load(f, ptx_at(f, code, i));
    ptx_val level = ptx_load(f, ptx_at(f, staged, c));
    ptx_val half = ptx_cvt(f, PTX_F16, level);
    ptx_val shifted = ptx_add(f, half, ptx_number(PTX_F16, 0.5));
    ptx_store(f, ptx_at(f, out, i), shifted);
}

/* out[i] = x[4 * i + i mod 4], through local memory.  block 32 */
static void emit_pick(ptx_fn *f)
{
    enum { COUNT = 4 };
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), out = ptx_param_ptr(f, PTX_F32, "out");
    ptx_val numbers = ptx_local(f, PTX_F32, COUNT, 16), v[COUNT];
    ptx_val i = ptx_global_thread_x(f);
    ptx_load_vec(f, COUNT, v, ptx_at(f, x, ptx_mul(f, i, COUNT)), PTX_PLAIN);
    ptx_store_vec(f, COUNT, numbers, v, PTX_PLAIN);
    ptx_val at = ptx_at(f, numbers, ptx_and(f, i, COUNT - 1));
    ptx_val own = ptx_load(f, at);
    ptx_store(f, ptx_at(f, out, i), own);
}

/* The difference of neighbours: a negative offset. */
static void emit_differences(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), out = ptx_param_ptr(f, PTX_F32, "out");
    ptx_val i = ptx_global_thread_x(f);
    ptx_val at = ptx_at(f, ptx_at_const(f, x, 1), i);
    ptx_val own = ptx_load(f, at), before = ptx_load(f, ptx_at_const(f, at, -2));
    ptx_val to = ptx_at(f, out, i);
    ptx_store(f, to, ptx_sub(f, own, before));
}

/* A product whose results take the place of its first operand. B is in shared memory: two matrices of 8 rows. */
static void emit_over_operands(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_B32, "x"), zero = ptx_var(f, ptx_f32(0)),
            c[4] = {zero, zero, zero, zero};
    ptx_val tile = ptx_shared(f, PTX_BF16, 128, 16), tid = ptx_tid_x(f), b[2];
    ptx_val at = ptx_at(f, x, ptx_mul(f, tid, 4)), values[4];
    ptx_load_vec(f, 4, values, at, PTX_PLAIN);
    ptx_ldmatrix_trans(f, 2, b, ptx_at(f, tile, ptx_mul(f, tid, 8)));
    ptx_mma(f, PTX_MMA_M16N8K8_BF16_F32, values, values, b, c);
    ptx_store_vec(f, 4, ptx_cast_ptr(f, at, PTX_F32), values, PTX_PLAIN);
}

const test_kernel test_kernels[] = {
    {"copy", {90, TARGET_BASE}, {128, 1, 1}, emit_copy},
    {"warp_scan", {90, TARGET_BASE}, {32, 1, 1}, emit_warp_scan},
    {"collatz", {90, TARGET_BASE}, {64, 1, 1}, emit_collatz},
    {"lookup", {90, TARGET_BASE}, {128, 1, 1}, emit_lookup},
    {"stream_sum", {90, TARGET_BASE}, {128, 1, 1}, emit_stream_sum},
    {"grid_sum", {90, TARGET_BASE}, {256, 1, 1}, emit_grid_sum},
    {"mbarrier_copy", {90, TARGET_BASE}, {64, 1, 1}, emit_mbarrier_copy},
    {"group_tile", {90, TARGET_ARCH}, {128, 1, 1}, emit_group_tile},
    {"group_flags", {90, TARGET_ARCH}, {128, 1, 1}, emit_group_flags},
    {"boxes", {90, TARGET_ARCH}, {256, 1, 1}, emit_boxes},
    {"pairs", {100, TARGET_BASE}, {128, 1, 1}, emit_pairs},
    {"vectors", {90, TARGET_BASE}, {32, 1, 1}, emit_vectors}, /* vectors_test.c runs it */
    {"pick", {90, TARGET_BASE}, {32, 1, 1}, emit_pick},
    {"over_operands", {90, TARGET_BASE}, {32, 1, 1}, emit_over_operands},
    {"differences", {90, TARGET_BASE}, {32, 1, 1}, emit_differences},
};
const size_t test_kernel_count = sizeof test_kernels / sizeof test_kernels[0];
