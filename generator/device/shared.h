/* Shared memory: addresses are U32, and an access adds a constant to one. */
#ifndef DEVICE_SHARED_H
#define DEVICE_SHARED_H

#include "layout.h"

/* A sector of global memory. For cp.async its two halves are one request to the L2 cache if they go to the
 * same aligned 32 bytes of shared memory, in either order; otherwise two. */
enum { SECTOR_BYTES = 32 };

/* Shared memory limits of a thread block: on sm_75; on sm_86, sm_89 and sm_120, the smallest from sm_80 on; on sm_80. */
enum { SHARED_SM_75 = 65536, SHARED_SM_86 = 101376, SHARED_SM_80 = 166912 };

ptx_val shared_at(ptx_fn *f, ptx_type type, ptx_val address, uint32_t bytes);

/* Double buffers: toggles a variable, the address of one or its offset; `sum` is the sum of the two. */
void shared_toggle(ptx_fn *f, ptx_val variable, ptx_val sum);

/* A ring: advances a variable, the offset of a stage, to the next of `count` stages. */
void shared_next(ptx_fn *f, ptx_val offset, uint32_t stage_bytes, uint32_t count);

/* Stores one F32 per warp at `to` + `byte`, from the warp's first lane. After a barrier, shared_join_warps reduces the
 * values of `warps` warps, a multiple of four, in order. */
void shared_store_warp(ptx_fn *f, ptx_val lane, ptx_val warp, ptx_val to, uint32_t byte, ptx_val value);
ptx_val shared_join_warps(ptx_fn *f, ptx_op op, ptx_val from, uint32_t byte, uint32_t warps);

/* The sum of `count` numbers, `bytes` apart, in order: one from each of the warps that share a reduction. */
ptx_val shared_sum(ptx_fn *f, ptx_val from, uint32_t count, uint32_t bytes);

#endif
