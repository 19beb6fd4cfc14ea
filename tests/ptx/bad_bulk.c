/* Mistakes with bulk copies, named barriers and setmaxnreg, on sm_90a with a thread block of 256 threads. The #line before each
 * kernel names its lines. */
#include "bad.h"

/* clang-format off */
#line 1 "k.c"
static void bad_bytes(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U8, "x"), s = ptx_shared(f, PTX_U8, 256, 16), tid = ptx_tid_x(f);
    ptx_val full = ptx_shared(f, PTX_B64, 1, 8);
    PTX_IF(f, ptx_eq(f, tid, 0)) {
        ptx_bulk_load(f, s, x, 24, full);
        ptx_bulk_load(f, x, s, 32, full);
        ptx_bulk_load(f, ptx_at_bytes(f, s, 8), x, 32, full);
        ptx_bulk_load(f, s, x, 32, s);
        ptx_bulk_store(f, s, x, 32);
        ptx_bulk_store(f, x, ptx_at_bytes(f, s, 8), 32);
        ptx_bulk_store(f, x, s, ptx_f32(1));
    }
}
#line 1 "k.c"
static void bad_boxes(ptx_fn *f)
{
    ptx_val map = ptx_tensor_map(f, "map"), x = ptx_param_ptr(f, PTX_U8, "x"), first[6];
    ptx_val s = ptx_shared(f, PTX_U8, 256, 128), full = ptx_shared(f, PTX_B64, 1, 8), tid = ptx_tid_x(f);
    for (int i = 0; i < 6; i++)
        first[i] = ptx_u32(0);
    PTX_IF(f, ptx_eq(f, tid, 0)) {
        ptx_tensor_load(f, 0, s, map, first, full);
        ptx_tensor_load(f, 6, s, map, first, full);
        ptx_tensor_load(f, 2, s, x, first, full);
        ptx_tensor_load(f, 2, x, map, first, full);
        ptx_tensor_load(f, 2, ptx_at_bytes(f, s, 64), map, first, full);
        ptx_tensor_load(f, 2, s, map, first, x);
        ptx_tensor_store(f, 2, s, first, s);
        ptx_tensor_store(f, 2, map, first, x);
        ptx_tensor_store(f, 2, map, ((ptx_val[]){first[0], ptx_f32(0)}), s);
        ptx_prefetch_map(f, x);
        ptx_load(f, map);
    }
}
#line 1 "k.c"
static void by_all_lanes(ptx_fn *f)
{
    ptx_val map = ptx_tensor_map(f, "map"), x = ptx_param_ptr(f, PTX_U8, "x"), warp = ptx_warpid_x(f), first = ptx_u32(0);
    ptx_val s = ptx_shared(f, PTX_U8, 4096, 128), full = ptx_shared(f, PTX_B64, 1, 8), lane = ptx_laneid(f);
    ptx_mbarrier_init(f, full, 1);
    PTX_IF(f, ptx_eq(f, warp, 0)) {
        ptx_mbarrier_arrive_bytes(f, full, 128);
        ptx_tensor_load(f, 1, s, map, &first, full);
        ptx_tensor_store(f, 1, map, &warp, s);
        ptx_bulk_load(f, s, x, 32, full);
        ptx_bulk_store(f, x, s, 32);
        ptx_bulk_store(f, ptx_at(f, x, ptx_mul(f, lane, 32)), s, 32);
    }
    PTX_WHEN(f, ptx_eq(f, lane, 0)) {
        ptx_bulk_store(f, x, s, 32);
    }
}
#line 1 "k.c"
static void bad_registers(ptx_fn *f)
{
    ptx_setmaxnreg_dec(f, 16);
    ptx_setmaxnreg_inc(f, 264);
    ptx_setmaxnreg_inc(f, 100);
}
#line 1 "k.c"
static void registers_ignored(ptx_fn *f)
{
    ptx_setmaxnreg_dec(f, 24);
}
#line 1 "k.c"
static void registers_parted(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f);
    ptx_min_blocks(f, 1);
    PTX_IF(f, ptx_lt(f, tid, 128)) {
        ptx_setmaxnreg_dec(f, 24);
        PTX_IF(f, ptx_lt(f, tid, 32)) {
            ptx_setmaxnreg_dec(f, 24);
        }
    }
}
#line 1 "k.c"
static void named_parted(ptx_fn *f)
{
    ptx_val tid = ptx_tid_x(f);
    PTX_IF(f, ptx_lt(f, tid, 64)) {
        ptx_barrier_named(f, 1, 64);
    }
    PTX_IF(f, ptx_lt(f, tid, 48)) {
        ptx_barrier_named(f, 1, 64);
        ptx_barrier_arrive(f, 1, 64);
    }
    ptx_barrier_named(f, 0, 256);
    ptx_barrier_arrive(f, 16, 48);
    ptx_barrier_named(f, 15, 288);
}
#line 1 "k.c"
static void never_waits(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U8, "x"), s = ptx_shared(f, PTX_U8, 256, 16), tid = ptx_tid_x(f);
    PTX_IF(f, ptx_eq(f, tid, 0)) {
        ptx_bulk_store(f, x, s, 32);
        ptx_bulk_commit(f);
    }
}
#line 1 "k.c"
static void box_before_wait(ptx_fn *f)
{
    ptx_val map = ptx_tensor_map(f, "map"), first = ptx_u32(0), tid = ptx_tid_x(f);
    ptx_val weights = ptx_tensor_map(f, "weights");
    ptx_val s = ptx_shared(f, PTX_U8, 4096, 128), full = ptx_shared(f, PTX_B64, 1, 8);
    ptx_set_constant(f, "weights");
    PTX_IF(f, ptx_eq(f, tid, 0)) {
        ptx_prefetch_map(f, map);
        ptx_tensor_load(f, 1, s, weights, &first, full);
        ptx_tensor_load(f, 1, s, map, &first, full);
        ptx_tensor_store(f, 1, weights, &first, s);
    }
    ptx_grid_wait(f);
}
/* clang-format on */
#line 125 "bad_bulk.c"

const bad_kernel bad_bulk[] = {
    BAD(bad_bytes, "k.c:6: error: bulk copy: the number of bytes is 24, expected a multiple of 16\n"
                   "k.c:7: error: bulk load to: the pointer is not to shared memory\n"
                   "k.c:8: error: bulk load to: an offset of 8 bytes is not a multiple of 16\n"
                   "k.c:9: error: mbarrier: the pointer is to u8, expected b64 or u64\n"
                   "k.c:10: error: bulk store to: the pointer is not to global memory\n"
                   "k.c:11: error: bulk store from: an offset of 8 bytes is not a multiple of 16\n"
                   "k.c:12: error: cp: operand 3 is f32, expected u32\n"),
    BAD(bad_boxes, "k.c:8: error: a box of 0 dimensions, expected 1 to 5\n"
                   "k.c:9: error: a box of 6 dimensions, expected 1 to 5\n"
                   "k.c:10: error: expected a tensor map, from ptx_tensor_map\n"
                   "k.c:11: error: tensor load to: the pointer is not to shared memory\n"
                   "k.c:12: error: tensor load to: an offset of 64 bytes is not a multiple of 128\n"
                   "k.c:13: error: mbarrier: the pointer is not to shared memory\n"
                   "k.c:14: error: expected a tensor map, from ptx_tensor_map\n"
                   "k.c:15: error: tensor store from: the pointer is not to shared memory\n"
                   "k.c:16: error: first[1] of the box is f32, expected u32 or s32\n"
                   "k.c:17: error: expected a tensor map, from ptx_tensor_map\n"
                   "k.c:18: error: load: no vector of 1 none there\n"),
    BAD(by_all_lanes,
        "k.c:10: error: bulk load in a kernel without ptx_fence_mbarrier_init\n"
        "k.c:8: error: tensor load in a kernel without ptx_fence_mbarrier_init\n"
        "k.c:11: error: bulk store in a kernel without ptx_bulk_commit\n"
        "k.c:9: error: tensor store in a kernel without ptx_bulk_commit\n"
        "k.c:5: error: mbarrier by all lanes of a warp alike: one thread must execute it, as with ptx_elect\n"
        "k.c:7: error: mbarrier by all lanes of a warp alike: one thread must execute it, as with ptx_elect\n"
        "k.c:8: error: cp by all lanes of a warp alike: one thread must execute it, as with ptx_elect\n"
        "k.c:9: error: cp by all lanes of a warp alike: one thread must execute it, as with ptx_elect\n"
        "k.c:10: error: cp by all lanes of a warp alike: one thread must execute it, as with ptx_elect\n"
        "k.c:11: error: cp by all lanes of a warp alike: one thread must execute it, as with ptx_elect\n"),
    BAD(bad_registers, "k.c:3: error: setmaxnreg: 16 registers, expected a multiple of 8 from 24 to 256\n"
                       "k.c:4: error: setmaxnreg: 264 registers, expected a multiple of 8 from 24 to 256\n"
                       "k.c:5: error: setmaxnreg: 100 registers, expected a multiple of 8 from 24 to 256\n"),
    BAD(registers_ignored,
        "k.c:3: error: setmaxnreg in a kernel whose shape has no blocks_per_multiprocessor\n"),
    BAD(registers_parted, "k.c:8: error: setmaxnreg where threads of the warpgroup may have diverged\n"),
    BAD(never_waits, "k.c:6: error: ptx_bulk_commit in a kernel without ptx_bulk_wait\n"),
    BAD(named_parted, "k.c:8: error: bar where lanes of the warp may have diverged\n"
                      "k.c:9: error: bar where lanes of the warp may have diverged\n"
                      "k.c:11: error: bar: barrier 0, expected 1 to 15\n"
                      "k.c:12: error: bar: barrier 16, expected 1 to 15\n"
                      "k.c:12: error: bar: 48 threads, expected whole warps of the thread block\n"
                      "k.c:13: error: bar: 288 threads, expected whole warps of the thread block\n"),
    BAD(box_before_wait,
        "k.c:10: error: cp before ptx_grid_wait, of memory that no constant argument points at\n"
        "k.c:11: error: cp before ptx_grid_wait: what ran before may still use this memory\n"
        "k.c:9: error: tensor load in a kernel without ptx_fence_mbarrier_init\n"
        "k.c:11: error: tensor store in a kernel without ptx_bulk_commit\n"),
};
const size_t bad_bulk_count = sizeof bad_bulk / sizeof bad_bulk[0];
