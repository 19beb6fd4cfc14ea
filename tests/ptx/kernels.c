/* Small complete kernels; golden.txt has their PTX. */
#include "kernels.h"

/* y[i] = a*x[i] + y[i].  launch: grid ceil(n/256), block 256.  source: BLAS saxpy */
static void emit_saxpy(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), a = ptx_param(f, PTX_F32, "a");
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), y = ptx_param_ptr(f, PTX_F32, "y");
    ptx_val i = ptx_global_thread_x(f);
    PTX_IF (f, ptx_lt(f, i, n)) {
        ptx_val xi = ptx_load(f, ptx_at(f, x, i));
        ptx_val at = ptx_at(f, y, i);
        ptx_val yi = ptx_load(f, at);
        ptx_store(f, at, ptx_fma(f, a, xi, yi));
    }
}

/* out[block] = sum of the block's share of x, in a grid-stride loop.  block 256 */
static void emit_block_sum(ptx_fn *f)
{
    enum { WARPS = 8 };
    ptx_val n = ptx_param(f, PTX_U32, "n");
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), out = ptx_param_ptr(f, PTX_F32, "out");
    ptx_val partial = ptx_shared(f, PTX_F32, WARPS, 4);
    ptx_val sum = ptx_var(f, ptx_f32(0));
    ptx_val blocks = ptx_nctaid_x(f);
    ptx_val stride = ptx_mul(f, blocks, ptx_block_x(f));
    ptx_val first = ptx_global_thread_x(f);
    PTX_FOR (f, i, first, n, stride) {
        ptx_val xi = ptx_load_hint(f, ptx_at(f, x, i), PTX_NC | PTX_NO_ALLOCATE);
        ptx_add_to(f, sum, xi);
    }
    ptx_val tid = ptx_tid_x(f), lane = ptx_and(f, tid, 31);
    ptx_val warp = ptx_shr(f, tid, 5);
    ptx_val warp_sum = ptx_reduce_lanes(f, PTX_OP_ADD, 32, sum);
    PTX_WHEN (f, ptx_eq(f, lane, 0)) {
        ptx_store(f, ptx_at(f, partial, warp), warp_sum);
    }
    ptx_barrier(f);
    PTX_IF (f, ptx_eq(f, tid, 0)) {
        ptx_val total = ptx_var(f, ptx_f32(0));
        for (int w = 0; w < WARPS; w++)
            ptx_add_to(f, total, ptx_load(f, ptx_at_const(f, partial, w)));
        ptx_val block = ptx_ctaid_x(f);
        ptx_store(f, ptx_at(f, out, block), total);
    }
}

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

/* out[i] = x[0] + ... + x[i] within each warp.  block 32 */
static void emit_warp_scan(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_S32, "x"), out = ptx_param_ptr(f, PTX_S32, "out");
    ptx_val i = ptx_global_thread_x(f);
    ptx_val sum = ptx_var(f, ptx_load(f, ptx_at(f, x, i)));
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        ptx_val in_range;
        ptx_val left = ptx_shfl_up_in_range(f, sum, ptx_u32(distance), &in_range);
        PTX_WHEN (f, in_range) {
            ptx_add_to(f, sum, left);
        }
    }
    ptx_store(f, ptx_at(f, out, i), sum);
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

/* Absolute maximum of 32 values per warp on the bits, and the values over it as bytes: x/max*7 rounded, in order.
 * block 32; one u32 per 4 values */
static void emit_quantize(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), scale = ptx_param_ptr(f, PTX_F32, "scale");
    ptx_val packed = ptx_param_ptr(f, PTX_U32, "packed");
    ptx_val i = ptx_global_thread_x(f), first = ptx_shl(f, i, 2), v[4], code[4];
    ptx_load_vec(f, 4, v, ptx_at(f, x, first), PTX_NC | PTX_NO_ALLOCATE);
    ptx_val largest = ptx_var(f, ptx_u32(0));
    for (int k = 0; k < 4; k++) {
        ptx_val bits = ptx_and(f, ptx_as(f, PTX_U32, v[k]), 0x7fffffff);
        ptx_max_to(f, largest, bits);
    }
    ptx_set(f, largest, ptx_redux_max(f, largest));
    ptx_val clamped = ptx_max(f, ptx_as(f, PTX_F32, largest), 1e-12f);
    ptx_val s = ptx_div(f, clamped, 7);
    for (int k = 0; k < 4; k++) {
        ptx_val q = ptx_div(f, v[k], s);
        code[k] = ptx_cvt_rni(f, PTX_S32, q);
    }
    ptx_val low = ptx_prmt(f, code[0], code[1], 0x0040);
    ptx_val high = ptx_prmt(f, code[2], code[3], 0x0040);
    ptx_val word = ptx_prmt(f, low, high, 0x5410);
    ptx_store_hint(f, ptx_at(f, packed, i), ptx_as(f, PTX_U32, word), PTX_CS);
    ptx_val lane = ptx_laneid(f);
    PTX_IF (f, ptx_eq(f, lane, 0)) {
        ptx_val block = ptx_ctaid_x(f);
        ptx_store(f, ptx_at(f, scale, block), s);
    }
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

/* A product whose results take the place of its first operand. */
static void emit_over_operands(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_B32, "x"), zero = ptx_var(f, ptx_f32(0)),
            c[4] = {zero, zero, zero, zero};
    ptx_val at = ptx_at(f, x, ptx_mul(f, ptx_tid_x(f), 4)), values[4];
    ptx_load_vec(f, 4, values, at, PTX_PLAIN);
    const ptx_val b[2] = {values[0], values[1]};
    ptx_mma(f, PTX_MMA_M16N8K8_BF16_F32, values, values, b, c);
    ptx_store_vec(f, 4, ptx_cast_ptr(f, at, PTX_F32), values, PTX_PLAIN);
}

const test_kernel test_kernels[] = {
    {"saxpy", {90, TARGET_BASE}, {256, 1, 1}, emit_saxpy},
    {"block_sum", {90, TARGET_BASE}, {256, 1, 1}, emit_block_sum},
    {"copy", {90, TARGET_BASE}, {128, 1, 1}, emit_copy},
    {"warp_scan", {90, TARGET_BASE}, {32, 1, 1}, emit_warp_scan},
    {"collatz", {90, TARGET_BASE}, {64, 1, 1}, emit_collatz},
    {"quantize", {90, TARGET_BASE}, {32, 1, 1}, emit_quantize},
    {"lookup", {90, TARGET_BASE}, {128, 1, 1}, emit_lookup},
    {"mma_tile", {90, TARGET_BASE}, {128, 1, 1}, emit_mma_tile},
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
