/* Shared memory: addresses are U32, and an access is to one of them plus a constant. */
#ifndef DEVICE_SHARED_H
#define DEVICE_SHARED_H

#include "layout.h"

/* A sector of global memory. For cp.async its two halves are one request to the L2 cache if they go to the
 * same aligned 32 bytes of shared memory, in either order; otherwise two. */
enum { SECTOR_BYTES = 32 };

/* Bytes that a thread block may have: on sm_75; on sm_86, sm_89 and sm_120, the least from sm_80 on; on sm_80. */
enum { SHARED_SM_75 = 65536, SHARED_SM_86 = 101376, SHARED_SM_80 = 166912 };

ptx_val shared_at(ptx_fn *f, ptx_type type, ptx_val address, uint32_t bytes);

/* Double buffers: sets a variable, the address of one or its offset, to the other's; `sum` is the sum of the two. */
void shared_toggle(ptx_fn *f, ptx_val variable, ptx_val sum);

/* A ring: sets a variable, the offset of a stage, to that of the next of `count` stages. */
void shared_next(ptx_fn *f, ptx_val offset, uint32_t stage_bytes, uint32_t count);

/* One F32 of each warp from `to` + `byte` on: stores this warp's, out of its first lane. After a barrier, reduces those of
 * `warps` warps, a multiple of four, in their order. */
void shared_store_warp(ptx_fn *f, ptx_val lane, ptx_val warp, ptx_val to, uint32_t byte, ptx_val value);
ptx_val shared_join_warps(ptx_fn *f, ptx_op op, ptx_val from, uint32_t byte, uint32_t warps);

/* The sum of `count` numbers, `bytes` apart, in their order: one of each of the warps that share a reduction. */
ptx_val shared_sum(ptx_fn *f, ptx_val from, uint32_t count, uint32_t bytes);

#endif
