/* Mistakes with C numbers: types, counts, shapes and limits that a call does not take. The #line before each kernel names its
 * lines. */
#include <limits.h>
#include <math.h>

#include "bad.h"

/* clang-format off */
#line 1 "k.c"
static void bad_elements(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), n = ptx_param(f, PTX_U32, "n"), address = ptx_address(f, x);
    ptx_store(f, ptx_cast_ptr(f, ptx_at(f, ptx_cast_ptr(f, x, PTX_NONE), n), PTX_F32), 1);
    ptx_cast_ptr(f, x, PTX_PRED);
    ptx_cast_ptr(f, x, (ptx_type)(256 + PTX_F32));
    ptx_pointer(f, PTX_GLOBAL, PTX_PTR, address);
    ptx_pointer(f, (ptx_space)99, PTX_F32, address);
    ptx_param_ptr(f, PTX_NONE, "y");
    ptx_shared(f, PTX_PRED, 4, 4);
    ptx_shared_dynamic(f, PTX_NONE);
    ptx_local(f, PTX_PTR, 4, 8);
    ptx_global_table(f, PTX_PRED, 1, &(uint64_t){1});
}
#line 1 "k.c"
static void bad_arrays(ptx_fn *f)
{
    ptx_shared(f, PTX_F32, 0, 4);
    ptx_shared(f, PTX_F32, 4, 1u << 31);
    ptx_local(f, PTX_F32, 0, 4);
    ptx_const_table(f, PTX_F32, 0, &(uint64_t){1});
    ptx_const_table(f, PTX_F32, 1, NULL);
    ptx_store(f, ptx_const_table(f, PTX_U32, 1, &(uint64_t){1}), 1);
}
#line 1 "k.c"
static void bad_indices(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x");
    ptx_at(f, x, ptx_f32(1));
    ptx_at(f, x, ptx_s16(-1));
    ptx_at(f, x, ptx_u64(UINT64_MAX));
    ptx_at_const(f, x, INT64_MAX / 2);
    ptx_at_bytes(f, ptx_at_bytes(f, x, 4), INT64_MAX);
}
#line 1 "k.c"
static void bad_counts(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), s = ptx_shared(f, PTX_F16, 256, 16), v[16] = {ptx_u32(1), ptx_u32(2)};
    ptx_store_vec(f, 0x40000008, x, v, PTX_PLAIN);
    ptx_load_vec(f, 0x40000008, v, x, PTX_PLAIN);
    v[0] = v[1] = v[2] = v[3] = ptx_u32(1);
    ptx_pack(f, PTX_B64, INT_MAX, v);
    ptx_unpack(f, PTX_U32, INT_MAX, v, ptx_u64(1));
    ptx_ldmatrix(f, INT_MAX, v, s);
}
#line 1 "k.c"
static void bad_enumerations(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), v[4] = {n, n, n, n};
    ptx_mma(f, PTX_MMA_SHAPE_COUNT, v, v, v, v);
    ptx_special(f, PTX_SREG_COUNT);
    ptx_cvt(f, PTX_NONE, n);
    ptx_cvt(f, (ptx_type)99, n);
    ptx_cvt_pair(f, PTX_NONE, 1.0f, 1.0f);
    ptx_reduce_lanes(f, PTX_OP_NEG, 32, n);
    ptx_reduce_lanes(f, PTX_OP_SUB, 32, n);
    ptx_reduce_lanes(f, PTX_OP_COUNT, 32, n);
    ptx_raw(f, ((ptx_raw_form){0}), 0, NULL, v, 0, v);
    ptx_raw(f, ((ptx_raw_form){.text = "mov.u32 $0, 1"}), 1, &(ptx_type){(ptx_type)99}, v, 0, v);
    ptx_raw(f, ((ptx_raw_form){.text = "mov.u32 $0, 1", .kind = 'x'}), 1, &(ptx_type){PTX_U32}, v, 0, v);
    ptx_note(f, NULL);
    ptx_load_hint(f, ptx_param_ptr(f, PTX_U32, "x"), 1 << 30);
}
#line 1 "k.c"
static void bad_immediates(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n"), p = ptx_eq(f, n, 0);
    ptx_add(f, n, ptx_bits(PTX_U32, 1ull << 40));
    ptx_and(f, p, ptx_bits(PTX_PRED, 2));
    ptx_add(f, n, ptx_number(PTX_U32, 1e30));
    ptx_add(f, n, ptx_number(PTX_U32, -1));
    ptx_add(f, n, ptx_number(PTX_U32, 4294967295.5));
    ptx_and(f, p, ptx_number(PTX_PRED, 1));
    PTX_FOR(f, i, 0, n, 0) {
    }
    PTX_FOR(f, i, ptx_s32(0), ptx_s32(4), -1) {
    }
}
#line 1 "k.c"
static void bad_limits(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), n = ptx_param(f, PTX_U32, "n"), s = ptx_shared(f, PTX_F32, 4, 16);
    ptx_lop3(f, n, n, n, 256);
    ptx_cp_async_zfill(f, s, x, 16, ptx_u32(17), PTX_PLAIN);
    ptx_with_policy(f, x, ptx_policy_evict_first(f, 0));
    ptx_with_policy(f, x, ptx_policy_evict_last(f, 1.5f));
    ptx_with_policy(f, x, ptx_policy_evict_normal(f, NAN));
}
#line 1 "k.c"
static void sums_twice(ptx_fn *f)
{
    ptx_val half = ptx_bits(PTX_F16X2, 0), a[2] = {half, half}, sum = ptx_var(f, ptx_f32(0)), c[4] = {sum, sum, sum, sum};
    ptx_mma_to(f, PTX_MMA_M16N8K8_F16_F32, c, a, a);
}
/* clang-format on */
#line 200 "bad_numbers.c"

/* clang-format off */
const bad_kernel bad_numbers[] = {
    BAD(bad_elements,
        "k.c:4: error: ptx_cast_ptr: an element cannot be of type none\n"
        "k.c:5: error: ptx_cast_ptr: an element cannot be of type pred\n"
        "k.c:6: error: ptx_cast_ptr: an element cannot be of type none\n"
        "k.c:7: error: ptx_pointer: an element cannot be of type ptr\n"
        "k.c:8: error: ptx_pointer: the space is not a ptx_space\n"
        "k.c:9: error: ptx_param_ptr: an element cannot be of type none\n"
        "k.c:10: error: shared array: an element cannot be of type pred\n"
        "k.c:11: error: dynamic shared array: an element cannot be of type none\n"
        "k.c:12: error: local array: an element cannot be of type ptr\n"
        "k.c:13: error: table: an element cannot be of type pred\n"),
    BAD(bad_arrays,
        "k.c:3: error: shared array: no elements\n"
        "k.c:4: error: shared array: an alignment of 2147483648, expected a power of two up to 65536\n"
        "k.c:5: error: local array: no elements\n"
        "k.c:6: error: constant table: no elements\n"
        "k.c:7: error: constant table: no elements\n"
        "k.c:8: error: store: the pointer is not to writable memory\n"),
    BAD(bad_indices,
        "k.c:4: error: ptx_at: the index is f32, expected u32, s32, u64 or s64\n"
        "k.c:5: error: ptx_at: the index is s16, expected u32, s32, u64 or s64\n"
        "k.c:6: error: ptx_at: a constant offset beyond 2 GB: use a u64 index\n"
        "k.c:7: error: ptx_at: a constant offset beyond 2 GB: use a u64 index\n"
        "k.c:8: error: ptx_at: a constant offset beyond 2 GB: use a u64 index\n"),
    BAD(bad_counts,
        "k.c:4: error: store: no vector of 1073741832 u32 there\n"
        "k.c:5: error: load: no vector of 1073741832 u32 there\n"
        "k.c:7: error: ptx_pack: 2147483647 parts of u32 are not as wide as b64\n"
        "k.c:8: error: ptx_unpack: 2147483647 parts of u32 are not as wide as u64\n"
        "k.c:9: error: ldmatrix: 2147483647 matrices, expected 1, 2 or 4\n"),
    BAD(bad_enumerations,
        "k.c:4: error: mma: the shape is not a ptx_mma_shape\n"
        "k.c:5: error: ptx_special: the register is not a ptx_sreg\n"
        "k.c:6: error: cvt: the result has no type\n"
        "k.c:7: error: cvt: the result has no type\n"
        "k.c:8: error: cvt: the result has no type\n"
        "k.c:9: error: ptx_reduce_lanes: the operation is not add, mul, min, max, and, or, xor\n"
        "k.c:10: error: ptx_reduce_lanes: the operation is not add, mul, min, max, and, or, xor\n"
        "k.c:11: error: ptx_reduce_lanes: the operation is not add, mul, min, max, and, or, xor\n"
        "k.c:12: error: ptx_raw: the text is printable ASCII on one line\n"
        "k.c:13: error: ptx_raw: a result has no type\n"
        "k.c:14: error: ptx_raw: the kind of target is not 0, 'a' or 'f'\n"
        "k.c:15: error: ptx_note: the text is printable ASCII on one line\n"
        "k.c:16: error: load: a number that is not a ptx_hint\n"),
    BAD(bad_immediates,
        "k.c:4: error: add: operand 2 is 0x10000000000, which does not fit u32\n"
        "k.c:5: error: and: operand 2 is 0x2, which does not fit pred\n"
        "k.c:6: error: add: operand 2 is 1e+30, which does not fit u32\n"
        "k.c:7: error: add: operand 2 is -1, which does not fit u32\n"
        "k.c:8: error: add: operand 2 is 4294967296, which does not fit u32\n"
        "k.c:9: error: and: operand 2 is a plain number, and no other operand has a type: give it one, as in ptx_u32(1)\n"
        "k.c:10: error: PTX_FOR: step must be positive\n"
        "k.c:12: error: PTX_FOR: step must be positive\n"),
    BAD(bad_limits,
        "k.c:4: error: lop3: the table is 256, expected 0 to 255\n"
        "k.c:5: error: cp needs sm_80, the target is sm_75\n"
        "k.c:5: error: cp.async: reads 17 bytes to write 16\n"
        "k.c:6: error: createpolicy needs sm_80, the target is sm_75\n"
        "k.c:6: error: createpolicy: the fraction of lines must be above 0 and at most 1\n"
        "k.c:7: error: createpolicy needs sm_80, the target is sm_75\n"
        "k.c:7: error: createpolicy: the fraction of lines must be above 0 and at most 1\n"
        "k.c:8: error: createpolicy needs sm_80, the target is sm_75\n"
        "k.c:8: error: createpolicy: the fraction of lines must be above 0 and at most 1\n"),
    BAD(sums_twice,
        "k.c:4: error: mma: c[0] and c[1] are the same variable\n"),
};
/* clang-format on */
const size_t bad_numbers_count = sizeof bad_numbers / sizeof bad_numbers[0];
