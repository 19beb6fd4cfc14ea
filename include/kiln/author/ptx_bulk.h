/* The PTX builder's bulk copies between global and shared memory, of bytes and of boxes of tensors: sm_90. Part of
 * kiln/author/ptx.h.
 *
 * One thread starts a bulk copy. A load completes at an mbarrier object, whose phase waits for its bytes:
 *
 *     PTX_IF (f, ptx_eq(f, tid, 0)) {
 *         ptx_mbarrier_init(f, full, 1);
 *         ptx_fence_mbarrier_init(f);
 *     }
 *     ptx_barrier(f);
 *     PTX_IF (f, ptx_eq(f, tid, 0)) {
 *         ptx_mbarrier_arrive_bytes(f, full, 4096);
 *         ptx_tensor_load(f, 2, tile, map, first, full);
 *     }
 *     PTX_LOOP (f) {
 *         ptx_val is_full = ptx_mbarrier_try_parity(f, full, 0);
 *         ptx_repeat_if(f, ptx_not(f, is_full));
 *     }
 *
 * A store belongs to one of its thread's groups, as in ptx_cp_async. Bulk copies are in the async proxy: after a thread's
 * writes to shared memory, a bulk store of them needs a ptx_fence_async and a barrier first.
 *
 * The checker reports a copy that all lanes of a warp start with the same operands, a load in a kernel without
 * ptx_fence_mbarrier_init, and a store in a kernel without _commit and _wait.
 */
#ifndef KILN_PTX_BULK_H
#define KILN_PTX_BULK_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Columns are aligned by hand. */
/* clang-format off */

/* ---- copies of bytes -------------------------------------------------------------------------------------------- */

/* _load copies `bytes`, a U32, from global to shared memory, and completes them at `barrier`. _store copies from shared to global
 * memory. Both addresses and `bytes` are multiples of 16. */
#define ptx_bulk_load(f, to, from, bytes, barrier) PTX_CALL_(f, bulk_load, to, from, PTX_VAL_(bytes), barrier)
#define ptx_bulk_store(f, to, from, bytes)         PTX_CALL_(f, bulk_store, to, from, PTX_VAL_(bytes))
/* _commit makes a group of this thread's bulk stores since its last group. _wait waits until at most `pending` groups, a C
 * integer, are in flight; _wait_read waits until at most `pending` groups still read shared memory. */
#define ptx_bulk_commit(f)             ptx_effect0(f, PTX_OP_BULK_COMMIT, PTX_HERE)
#define ptx_bulk_wait(f, pending)      ptx_effect1(f, PTX_OP_BULK_WAIT, ptx_u32(pending), PTX_HERE)
#define ptx_bulk_wait_read(f, pending) ptx_effect1(f, PTX_OP_BULK_WAIT_READ, ptx_u32(pending), PTX_HERE)

/* ---- boxes of tensors ------------------------------------------------------------------------------------------- */

/* Declares a tensor map, the next parameter of the kernel: 128 bytes from cuTensorMapEncodeTiled. A family describes it in
 * kiln_family.maps, and the launcher encodes it. */
#define ptx_tensor_map(f, name)    ptx_tensor_map_at(f, name, PTX_HERE)
/* Prefetches the map itself, from one thread. */
#define ptx_prefetch_map(f, map)   ptx_prefetch_map_at(f, map, PTX_HERE)

/* _load copies a box of a tensor of 1 to 5 dimensions to shared memory, and completes its bytes at `barrier`. _store copies a box
 * from shared memory. The map gives the box's size; in shared memory it is aligned to 128 bytes. first[] has the box's first
 * element per dimension, innermost first, U32 or S32. A load reads zeros outside of the tensor, and completes all bytes of
 * the box; a store omits elements outside. */
#define ptx_tensor_load(f, dimensions, to, map, first, barrier)                                              \
    PTX_CALL_(f, tensor_load, dimensions, to, map, first, barrier)
#define ptx_tensor_store(f, dimensions, map, first, from)                                                    \
    PTX_CALL_(f, tensor_store, dimensions, map, first, from)

/* ---- registers -------------------------------------------------------------------------------------------------- */

/* Set how many registers each thread of a warpgroup has, a C integer: a multiple of 8 from 24 to 256. _dec gives registers to
 * a pool of the thread block, _inc waits until the pool has enough. All warps of the warpgroup execute it. sm_90a. The shape
 * must set blocks_per_multiprocessor: otherwise ptxas may ignore the call. */
#define ptx_setmaxnreg_inc(f, registers) ptx_setmaxnreg_at(f, PTX_OP_SETMAXNREG_INC, registers, PTX_HERE)
#define ptx_setmaxnreg_dec(f, registers) ptx_setmaxnreg_at(f, PTX_OP_SETMAXNREG_DEC, registers, PTX_HERE)

/* clang-format on */
#ifdef __cplusplus
}
#endif

#endif
