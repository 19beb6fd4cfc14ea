/* Mistakes with loads, stores, copies in the background, atomics and fences. The #line before each kernel names its lines. */
#include "bad.h"

/* clang-format off */
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
static void bad_local(ptx_fn *f)
{
    ptx_val l = ptx_local(f, PTX_F32, 64, 8), v[4];
    ptx_load_vec(f, 4, v, l, PTX_PLAIN);
    ptx_load_hint(f, l, PTX_CG);
    ptx_atom_add(f, l, ptx_f32(1), PTX_PLAIN);
    ptx_local(f, PTX_F64, 65536, 8);
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
static void bad_copy(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U8, "x"), s = ptx_shared(f, PTX_U8, 64, 16);
    ptx_cp_async(f, s, x, 12, PTX_PLAIN);
    ptx_cp_async(f, s, x, 8, PTX_CG);
    ptx_cp_async(f, x, x, 16, PTX_PLAIN);
    ptx_cp_async(f, s, s, 16, PTX_PLAIN);
    ptx_cp_async(f, ptx_at_const(f, s, 8), x, 16, PTX_CG);
    ptx_cp_async(f, s, ptx_at_const(f, x, 2), 4, PTX_PLAIN);
    ptx_cp_async(f, s, x, 16, PTX_NC);
    ptx_cp_async_zfill(f, s, x, 16, ptx_u64(3), PTX_CG);
}
#line 1 "k.c"
static void bad_mbarrier(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U64, "x"), s = ptx_shared(f, PTX_U32, 2, 8);
    ptx_mbarrier_init(f, x, ptx_u32(1));
    ptx_mbarrier_arrive(f, s);
    ptx_mbarrier_end(f, ptx_cast_ptr(f, ptx_at_const(f, s, 1), PTX_B64));
    ptx_mbarrier_test(f, ptx_cast_ptr(f, s, PTX_B64), ptx_u32(1));
}
#line 1 "k.c"
static void bad_atomic(ptx_fn *f)
{
    static const uint64_t zero[1] = {0};
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), t = ptx_const_table(f, PTX_U32, 1, zero);
    ptx_val b = ptx_cast_ptr(f, x, PTX_B32), w = ptx_cast_ptr(f, x, PTX_U16);
    ptx_atom_add(f, x, ptx_s32(1), PTX_PLAIN);
    ptx_atom_add(f, b, ptx_bits(PTX_B32, 1), PTX_PLAIN);
    ptx_atom_add(f, t, ptx_u32(1), PTX_PLAIN);
    ptx_atom_add(f, x, ptx_u32(1), PTX_ACQ_REL);
    ptx_atom_add(f, x, ptx_u32(1), PTX_GPU | PTX_CTA | PTX_RELAXED);
    ptx_red_add(f, x, ptx_u32(1), PTX_ACQ_REL | PTX_GPU);
    ptx_atom_min(f, w, ptx_u16(1), PTX_PLAIN);
    ptx_atom_cas(f, ptx_at_bytes(f, x, 2), ptx_u32(1), ptx_u32(2), PTX_PLAIN);
    ptx_atom_cas(f, x, ptx_u32(1), ptx_f32(2), PTX_PLAIN);
    ptx_atom_or(f, x, ptx_u32(1), PTX_NC);
}
#line 1 "k.c"
static void bad_fence(ptx_fn *f)
{
    ptx_fence(f, PTX_RELAXED | PTX_GPU);
    ptx_fence(f, PTX_SC);
    ptx_fence(f, PTX_PLAIN);
    ptx_membar(f, PTX_GPU | PTX_SYS);
    ptx_membar(f, PTX_SC | PTX_GPU);
}
#line 1 "k.c"
static void bad_orders(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x");
    ptx_load_hint(f, x, PTX_RELEASE | PTX_GPU);
    ptx_load_hint(f, x, PTX_ACQUIRE);
    ptx_load_hint(f, x, PTX_ACQUIRE | PTX_GPU | PTX_NC);
    ptx_store_hint(f, x, ptx_u32(1), PTX_ACQUIRE | PTX_GPU);
    ptx_store_hint(f, x, ptx_u32(1), PTX_RELEASE | PTX_GPU | PTX_CS);
}
#line 1 "k.c"
static void bad_policy(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), s = ptx_shared(f, PTX_U32, 4, 16), v[4];
    ptx_val policy = ptx_policy_evict_last(f, 0.5f), number = ptx_cvt(f, PTX_U64, ptx_tid_x(f));
    ptx_with_policy(f, s, policy);
    ptx_with_policy(f, x, number);
    ptx_load_vec(f, 4, v, x, PTX_L2_EVICT_FIRST);
    ptx_prefetch_l2(f, s), ptx_prefetch_l2_bytes(f, s, ptx_u32(16)), ptx_prefetch_l2_bytes(f, x, x);
    x = ptx_cast_ptr(f, ptx_with_policy(f, x, policy), PTX_F64);
    ptx_load_vec(f, 4, v, x, PTX_L2_EVICT_LAST);
}
#line 1 "k.c"
static void policy_after_block(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), p = {0};
    PTX_IF(f, ptx_lt(f, ptx_ctaid_x(f), ptx_u32(1))) {
        p = ptx_with_policy(f, x, ptx_policy_evict_first(f, 1));
    }
    ptx_load(f, p);
}
#line 1 "k.c"
static void misaligned_index(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), i = ptx_tid_x(f), v[4];
    ptx_val four = ptx_shl(f, i, ptx_u32(2)), wide = ptx_mul_wide(f, four, ptx_u32(3));
    ptx_val at = ptx_at(f, x, four), far = ptx_at(f, x, wide), any = ptx_at(f, x, i);
    ptx_load_vec(f, 4, v, ptx_at_const(f, at, 2), PTX_PLAIN);
    ptx_load_vec(f, 4, v, ptx_at_const(f, far, 1), PTX_PLAIN);
    ptx_load_vec(f, 4, v, ptx_at_const(f, any, 2), PTX_PLAIN);
    ptx_load(f, ptx_at_bytes(f, any, 2));
    PTX_FOR(f, j, ptx_u32(0), i, ptx_u32(8)) {
        ptx_load_vec(f, 2, v, ptx_at_const(f, ptx_at(f, x, j), 5), PTX_PLAIN);
    }
}
/* clang-format on */
#line 152 "bad_memory.c"

const bad_kernel bad_memory[] = {
    BAD(misaligned, "k.c:4: error: load: an offset of 8 bytes is not a multiple of 16\n"
                    "k.c:6: error: store: 16 bytes at once, but the array is aligned to 8\n"),
    BAD(misaligned_shared, "k.c:4: error: load: 16 bytes at once, but the array is aligned to 8\n"),
    BAD(too_much_shared,
        "k.c:4: error: shared array: 49216 bytes with the arrays before it, the limit is 49152\n"),
    BAD(bad_local,
        "k.c:4: error: load: 16 bytes at once, but the array is aligned to 8\n"
        "k.c:5: error: load: cache hints are for global memory\n"
        "k.c:6: error: atom: the pointer is not to global or shared memory\n"
        "k.c:7: error: local array: 524544 bytes with the arrays before it, the limit is 524288\n"),
    BAD(bad_vector,
        "k.c:4: error: load: no vector of 3 f64 there\nk.c:5: error: load: no vector of 4 f64 there\n"),
    BAD(bad_hints, "k.c:4: error: load: a cache hint that it does not take\n"
                   "k.c:5: error: load: cache hints that exclude each other\n"
                   "k.c:6: error: load: cache hints are for global memory\n"),
    BAD(bad_store, "k.c:4: error: store: value 1 is u32, expected f32\n"
                   "k.c:5: error: store: the pointer is u32, expected a pointer\n"
                   "k.c:6: error: ptx_at: the index is pred, expected u32, s32, u64 or s64\n"),
    BAD(bad_copy, "k.c:4: error: cp.async: 12 bytes, expected 4, 8 or 16\n"
                  "k.c:5: error: cp.async: past L1, with PTX_CG, go 16 bytes only\n"
                  "k.c:6: error: cp.async to: the pointer is not to shared memory\n"
                  "k.c:7: error: cp.async from: the pointer is not to global memory\n"
                  "k.c:8: error: cp.async to: an offset of 8 bytes is not a multiple of 16\n"
                  "k.c:9: error: cp.async from: an offset of 2 bytes is not a multiple of 4\n"
                  "k.c:10: error: cp.async: a cache hint that it does not take\n"
                  "k.c:11: error: cp: operand 4 is u64, expected u32\n"),
    BAD(bad_mbarrier, "k.c:4: error: mbarrier: the pointer is not to shared memory\n"
                      "k.c:5: error: mbarrier: the pointer is to u32, expected b64 or u64\n"
                      "k.c:6: error: mbarrier: an offset of 4 bytes is not a multiple of 8\n"
                      "k.c:7: error: mbarrier: there is no form for u32\n"),
    BAD(bad_atomic, "k.c:6: error: atom: value 1 is s32, expected u32\n"
                    "k.c:7: error: atom: there is no form for b32\n"
                    "k.c:8: error: atom: the pointer is not to global or shared memory\n"
                    "k.c:9: error: atom: expected one order and one scope\n"
                    "k.c:10: error: atom: expected one order and one scope\n"
                    "k.c:11: error: red: an order, scope or hint that it does not take\n"
                    "k.c:12: error: atom: there is no form for u16\n"
                    "k.c:13: error: atom: an offset of 2 bytes is not a multiple of 4\n"
                    "k.c:14: error: atom: value 2 is f32, expected u32\n"
                    "k.c:15: error: atom: a cache hint that it does not take\n"),
    BAD(bad_fence, "k.c:3: error: fence: an order, scope or hint that it does not take\n"
                   "k.c:4: error: fence: expected one order and one scope\n"
                   "k.c:5: error: fence: expected one order and one scope\n"
                   "k.c:6: error: membar: expected one scope\n"
                   "k.c:7: error: membar: an order, scope or hint that it does not take\n"),
    BAD(bad_orders, "k.c:4: error: load: an order, scope or hint that it does not take\n"
                    "k.c:5: error: load: expected one order and one scope\n"
                    "k.c:6: error: load: expected one order and one scope\n"
                    "k.c:7: error: store: an order, scope or hint that it does not take\n"
                    "k.c:8: error: store: expected one order and one scope\n"),
    BAD(bad_policy, "k.c:5: error: ptx_with_policy: expected a pointer to global memory and a policy in b64\n"
                    "k.c:6: error: ptx_with_policy: expected a pointer to global memory and a policy in b64\n"
                    "k.c:7: error: load: evict_first and evict_last of L2 take 32 bytes at once\n"
                    "k.c:8: error: prefetch: the pointer is not to global memory\n"
                    "k.c:8: error: prefetch: the pointer is not to global memory\n"
                    "k.c:8: error: cp: operand 2 is ptr, expected u32\n"
                    "k.c:10: error: load: cache hints that exclude each other\n"),
    BAD(policy_after_block, "k.c:7: error: ld: operand 2 was made in a block that has ended\n"),
    BAD(misaligned_index, "k.c:6: error: load: an offset of 8 bytes is not a multiple of 16\n"
                          "k.c:7: error: load: an offset of 4 bytes is not a multiple of 16\n"
                          "k.c:9: error: load: an offset of 2 bytes is not a multiple of 4\n"
                          "k.c:11: error: load: an offset of 20 bytes is not a multiple of 8\n"),
};
const size_t bad_memory_count = sizeof bad_memory / sizeof bad_memory[0];
