/* Mistakes with products of warpgroups, on sm_90a with a thread block of 256 threads. The #line before each kernel names
 * its lines. */
#include "bad.h"

/* clang-format off */
#line 1 "m.c"
static const ptx_wgmma_form small = {.types = PTX_WGMMA_F16_F32, .n = 8};

/* What a product takes: two sets of accumulators and of A, a descriptor. */
typedef struct scene {
    ptx_val d[4], e[4], a[4], b[4], at;
} scene;

static ptx_val made_descriptor(ptx_fn *f)
{
    ptx_val s = ptx_shared(f, PTX_F16, 512, 1024);
    return ptx_descriptor(f, s, ((ptx_matrix){.swizzle_bytes = 128, .stride_bytes = 1024}));
}

static scene scene_of(ptx_fn *f)
{
    scene s = {.at = made_descriptor(f)};
    for (int i = 0; i < 4; i++) {
        s.d[i] = ptx_var(f, ptx_f32(0));
        s.e[i] = ptx_var(f, ptx_f32(0));
        s.a[i] = ptx_as(f, PTX_F16X2, ptx_var(f, ptx_u32(0)));
        s.b[i] = ptx_as(f, PTX_F16X2, ptx_var(f, ptx_u32(0)));
    }
    return s;
}

/* A whole product with the first sets. */
static void multiply(ptx_fn *f, scene *s)
{
    ptx_wgmma_fence(f);
    ptx_wgmma(f, small, 1, s->d, s->a, s->at);
    ptx_wgmma_commit(f);
}
#line 1 "k.c"
static void reads_in_flight(ptx_fn *f)
{
    scene s = scene_of(f);
    multiply(f, &s);
    ptx_add(f, s.d[2], ptx_f32(1));
    ptx_wgmma_wait(f, 0);
    ptx_add(f, s.d[2], ptx_f32(1));
    multiply(f, &s);
    ptx_add(f, ptx_as(f, PTX_U32, s.a[3]), ptx_u32(1));
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void writes_in_flight(ptx_fn *f)
{
    scene s = scene_of(f);
    multiply(f, &s);
    ptx_set(f, s.a[1], ptx_as(f, PTX_F16X2, s.b[0]));
    ptx_wgmma_wait(f, 0);
    multiply(f, &s);
    ptx_add_to(f, s.d[0], 1);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void waits_for_older(ptx_fn *f)
{
    scene s = scene_of(f);
    multiply(f, &s);
    ptx_wgmma(f, small, 1, s.e, s.b, s.at);
    ptx_wgmma_wait(f, 0);
    ptx_add(f, s.d[0], 1);
    ptx_add(f, s.e[0], 1);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
    multiply(f, &s);
    ptx_wgmma(f, small, 1, s.e, s.b, s.at);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 1);
    ptx_add(f, s.d[0], 1);
    ptx_add(f, s.e[0], 1);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void waits_on_one_path(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n");
    scene s = scene_of(f);
    multiply(f, &s);
    PTX_IF(f, ptx_lt(f, n, 3)) {
        ptx_wgmma_wait(f, 0);
    }
    ptx_add(f, s.d[0], 1);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void decodes_too_early(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n");
    scene s = scene_of(f);
    PTX_FOR(f, i, 0, n, 1) {
        ptx_set(f, s.a[0], ptx_as(f, PTX_F16X2, i));
        multiply(f, &s);
        ptx_wgmma_wait(f, 1);
    }
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void breaks_in_flight(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n");
    scene s = scene_of(f);
    PTX_FOR(f, i, ptx_u32(0), 9, 1) {
        multiply(f, &s);
        ptx_break_if(f, ptx_eq(f, i, n));
        ptx_wgmma_wait(f, 0);
    }
    ptx_add(f, s.d[0], 1);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void never_waits(ptx_fn *f)
{
    scene s = scene_of(f);
    ptx_wgmma_fence(f);
    ptx_wgmma(f, small, 0, s.d, s.a, s.at);
    ptx_wgmma_commit(f);
    ptx_wgmma(f, small, 0, s.e, s.a, s.at);
}
#line 1 "k.c"
static void other_uses(ptx_fn *f)
{
    static const ptx_wgmma_form half = {.types = PTX_WGMMA_F16_F16, .n = 16}, wide = {.types = PTX_WGMMA_F16_F16, .n = 8};
    scene s = scene_of(f);
    ptx_wgmma_fence(f);
    ptx_wgmma(f, half, 0, s.b, s.a, s.at);
    ptx_wgmma(f, half, 1, s.b, s.a, s.at);
    ptx_wgmma(f, small, 0, s.d, s.b, s.at);
    ptx_wgmma(f, wide, 0, s.b, s.a, s.at);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
    ptx_wgmma(f, half, 0, s.a, s.b, s.at);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void no_fence(ptx_fn *f)
{
    scene s = scene_of(f);
    ptx_wgmma(f, small, 0, s.d, s.a, s.at);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void no_fence_on_one_path(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n");
    scene s = scene_of(f);
    PTX_IF(f, ptx_lt(f, n, 3)) {
        ptx_wgmma_fence(f);
    }
    ptx_wgmma(f, small, 0, s.d, s.a, s.at);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void no_fence_after_access(ptx_fn *f)
{
    ptx_val n = ptx_param(f, PTX_U32, "n");
    scene s = scene_of(f);
    ptx_wgmma_fence(f);
    PTX_FOR(f, i, 0, n, 1) {
        ptx_wgmma(f, small, 0, s.d, s.a, s.at);
        ptx_wgmma_commit(f);
        ptx_wgmma_wait(f, 0);
        ptx_add_to(f, s.e[0], s.d[0]);
    }
}
#line 1 "k.c"
static void group_parted(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), n = ptx_param(f, PTX_U32, "n");
    scene s = scene_of(f);
    PTX_IF(f, ptx_lt(f, tid, 64)) {
        multiply(f, &s);
    }
    PTX_IF(f, ptx_eq(f, ptx_shr(f, tid, 5), 1)) {
        ptx_wgmma_wait(f, 0);
    }
    PTX_WHEN(f, ptx_eq(f, n, 1)) {
        ptx_wgmma_wait(f, 0);
    }
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void descriptors_differ(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f), warp = ptx_shr(f, tid, 5);
    scene s = scene_of(f);
    ptx_val own = ptx_add(f, s.at, ptx_cvt(f, PTX_U64, warp)), first = ptx_eq(f, warp, 0);
    ptx_wgmma_fence(f);
    ptx_wgmma(f, small, 0, s.d, s.a, own);
    ptx_wgmma_shared(f, small, first, s.e, own, s.at);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
}
#line 1 "k.c"
static void bad_forms(ptx_fn *f)
{
    scene s = scene_of(f);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_F16_F32, .n = 12}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_S8_S32, .n = 40}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_S8_S32, .n = 8, .negates_a = true}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_F16_F32, .n = 8, .saturates = true}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_E4M3_F32, .n = 8, .transposes_b = true}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_F16_F32, .n = 8, .transposes_a = true}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_TYPES_COUNT, .n = 8}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, ((ptx_wgmma_form){.types = PTX_WGMMA_BF16_F32, .n = 8}), 0, s.d, s.a, s.at);
    ptx_wgmma(f, small, 0, s.a, s.a, s.at);
    ptx_wgmma(f, small, 2, s.d, s.a, s.at);
    ptx_wgmma(f, small, s.d[0], s.d, s.a, s.at);
    ptx_wgmma(f, small, 0, s.d, s.a, ptx_u32(0));
    ptx_wgmma_shared(f, small, 0, s.d, s.d[0], s.at);
    s.a[2] = ptx_bits(PTX_B32, 0);
    ptx_wgmma(f, small, 0, s.d, s.a, s.at);
    s.d[1] = ptx_add(f, s.e[0], 1);
    ptx_wgmma(f, small, 0, s.d, s.b, s.at);
}
#line 1 "k.c"
static void bad_descriptors(ptx_fn *f)
{
    const ptx_matrix wide = {.swizzle_bytes = 128, .stride_bytes = 1024}, narrow = {.swizzle_bytes = 32, .stride_bytes = 256},
                     plain = {.stride_bytes = 128, .leading_bytes = 256};
    ptx_val x = ptx_param_ptr(f, PTX_F16, "x"), s = ptx_shared(f, PTX_F16, 512, 256), n = ptx_param(f, PTX_U32, "n");
    ptx_val aligned = ptx_shared_dynamic_aligned(f, PTX_F16, 1024);
    ptx_descriptor(f, x, wide);
    ptx_descriptor(f, s, wide);
    ptx_descriptor(f, s, narrow);
    ptx_descriptor(f, ptx_at_bytes(f, s, 128), narrow);
    ptx_descriptor(f, ptx_at_bytes(f, s, 8), plain);
    ptx_descriptor(f, ptx_at(f, aligned, n), wide);
    ptx_descriptor(f, aligned, wide);
    ptx_descriptor(f, ptx_shared_dynamic(f, PTX_F16), wide);
    ptx_descriptor(f, aligned, ((ptx_matrix){.swizzle_bytes = 16}));
    ptx_descriptor(f, aligned, ((ptx_matrix){.stride_bytes = 24}));
    ptx_shared_dynamic_aligned(f, PTX_F16, 96);
    ptx_shared_dynamic_aligned(f, PTX_F16, 2048);
}
#line 1 "k.c"
static void without_group(ptx_fn *f)
{
    ptx_wgmma_fence(f);
}
/* clang-format on */
#line 253 "bad_wgmma.c"

const bad_kernel bad_wgmma[] = {
    BAD(reads_in_flight,
        "k.c:5: error: add reads an accumulator in flight: on some path no ptx_wgmma_wait covers the product at m.c:30\n"
        "k.c:9: error: add reads a register of A in flight: on some path no ptx_wgmma_wait covers the product at m.c:30\n"),
    BAD(writes_in_flight,
        "k.c:5: error: mov writes a register of A in flight: on some path no ptx_wgmma_wait covers the product at m.c:30\n"
        "k.c:8: error: add reads an accumulator in flight: on some path no ptx_wgmma_wait covers the product at m.c:30\n"),
    BAD(waits_for_older,
        "k.c:8: error: add reads an accumulator in flight: on some path no ptx_wgmma_wait covers the product at k.c:5\n"
        "k.c:16: error: add reads an accumulator in flight: on some path no ptx_wgmma_wait covers the product at k.c:12\n"),
    BAD(waits_on_one_path,
        "k.c:9: error: add reads an accumulator in flight: on some path no ptx_wgmma_wait covers the product at m.c:30\n"),
    BAD(decodes_too_early,
        "k.c:6: error: mov writes a register of A in flight: on some path no ptx_wgmma_wait covers the product at m.c:30\n"),
    BAD(breaks_in_flight,
        "k.c:10: error: add reads an accumulator in flight: on some path no ptx_wgmma_wait covers the product at m.c:30\n"),
    BAD(never_waits,
        "k.c:5: error: the kernel ends with this product in flight: on some path no ptx_wgmma_wait covers it\n"
        "k.c:7: error: the kernel ends with this product in flight: on some path no ptx_wgmma_commit covers it\n"),
    BAD(other_uses,
        "k.c:8: error: wgmma takes as A an accumulator in flight: on some path no ptx_wgmma_wait covers the product at k.c:7\n"
        "k.c:9: error: wgmma adds to a register of A in flight: on some path no ptx_wgmma_wait covers the product at k.c:8\n"
        "k.c:12: error: wgmma uses a register of the product at k.c:9 in another way, with no ptx_wgmma_fence between the two\n"),
    BAD(no_fence, "k.c:4: error: wgmma without a ptx_wgmma_fence before it on every path\n"),
    BAD(no_fence_on_one_path, "k.c:8: error: wgmma without a ptx_wgmma_fence before it on every path\n"),
    BAD(no_fence_after_access,
        "k.c:7: error: wgmma uses a register that k.c:10 accesses, with no ptx_wgmma_fence between the two\n"),
    BAD(group_parted, "m.c:29: error: wgmma where threads of the warpgroup may have diverged\n"
                      "m.c:30: error: wgmma where threads of the warpgroup may have diverged\n"
                      "m.c:31: error: wgmma where threads of the warpgroup may have diverged\n"
                      "k.c:9: error: wgmma where threads of the warpgroup may have diverged\n"
                      "k.c:12: error: wgmma inside PTX_WHEN\n"),
    BAD(descriptors_differ,
        "k.c:7: error: wgmma: the descriptor of B may differ between threads of the warpgroup\n"
        "k.c:8: error: wgmma: the descriptor of A may differ between threads of the warpgroup\n"
        "k.c:8: error: wgmma: whether it adds to d may differ between threads of the warpgroup\n"),
    BAD(bad_forms,
        "k.c:4: error: wgmma: n must be a multiple of 8 up to 256\n"
        "k.c:5: error: wgmma: n must be 8, 16, 24, 32 or a multiple of 16 up to 256\n"
        "k.c:6: error: wgmma: integers are not negated\n"
        "k.c:7: error: wgmma: only sums of bytes saturate\n"
        "k.c:8: error: wgmma: only f16 and bf16 are transposed\n"
        "k.c:9: error: wgmma: A is in registers, and cannot be transposed\n"
        "k.c:10: error: wgmma: the types are not a ptx_wgmma_types\n"
        "k.c:11: error: wgmma: a[0] is f16x2, expected bf16x2\n"
        "k.c:12: error: wgmma: d[0] is f16x2, expected f32\n"
        "k.c:13: error: wgmma: whether it adds to d is another number, expected 0, 1 or a predicate\n"
        "k.c:14: error: wgmma: whether it adds to d is f32, expected 0, 1 or a predicate\n"
        "k.c:15: error: wgmma: the descriptor of B is u32, expected u64 from ptx_descriptor\n"
        "k.c:16: error: wgmma: the descriptor of A is f32, expected u64 from ptx_descriptor\n"
        "k.c:18: error: wgmma: a[2] is a number, expected a register\n"
        "k.c:20: error: wgmma: d[1] is not a variable\n"),
    BAD(bad_descriptors,
        "k.c:7: error: ptx_descriptor: the pointer is not to shared memory\n"
        "k.c:8: error: ptx_descriptor: expected a pointer known to be a multiple of 1024 bytes, not of 256\n"
        "k.c:10: error: ptx_descriptor: expected a pointer known to be a multiple of 256 bytes, not of 128\n"
        "k.c:11: error: ptx_descriptor: expected a pointer known to be a multiple of 16 bytes, not of 8\n"
        "k.c:12: error: ptx_descriptor: expected a pointer known to be a multiple of 1024 bytes, not of 2\n"
        "k.c:14: error: ptx_descriptor: expected a pointer known to be a multiple of 1024 bytes, not of 32\n"
        "k.c:15: error: ptx_descriptor: expected a swizzle of 0, 32, 64 or 128 bytes, and multiples of 16 below 2^18\n"
        "k.c:16: error: ptx_descriptor: expected a swizzle of 0, 32, 64 or 128 bytes, and multiples of 16 below 2^18\n"
        "k.c:17: error: dynamic shared array: an alignment of 96, expected a power of two up to 1024\n"
        "k.c:18: error: dynamic shared array: an alignment of 2048, expected a power of two up to 1024\n"),
};
const size_t bad_wgmma_count = sizeof bad_wgmma / sizeof bad_wgmma[0];

void wgmma_without_group(ptx_fn *f)
{
    without_group(f);
}
