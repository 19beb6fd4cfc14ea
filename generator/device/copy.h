/* Copies from global into shared memory: asynchronously (cp.async) from sm_80 on, below through registers. */
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include "layout.h"

/* Copies 4, 8 or 16 bytes, or zeros if out of bounds; the pointers' elements are U32. A null `in_bounds` means true. `hints` apply
 * to loads into registers. copy_now copies through registers on every target. */
void copy_async(ptx_fn *f, uint32_t bytes, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints);
void copy_now(ptx_fn *f, uint32_t bytes, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints);
#define copy_word(f, to, from, in_bounds)        copy_async(f, 4, to, from, in_bounds, PTX_NC)
#define copy_half(f, to, from, in_bounds)        copy_async(f, 8, to, from, in_bounds, PTX_NC)
#define copy_unit(f, to, from, in_bounds, hints) copy_async(f, UNIT_BYTES, to, from, in_bounds, hints)

/* copy_unit with the number of bytes in bounds, 16 or 0, as a U32: saves an instruction per copy if several copies share it. */
void copy_unit_or_zeros(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, int hints);

/* Copies the first `left` of `size` bytes, 16 or 4, an S32 that may be negative or too large; zero-fills the rest. Below sm_80
 * it branches. */
void copy_some(ptx_fn *f, uint32_t size, ptx_val to, ptx_val from, ptx_val left);
#define copy_cut(f, to, from, left)      copy_some(f, UNIT_BYTES, to, from, left)
#define copy_word_cut(f, to, from, left) copy_some(f, 4, to, from, left)

/* Ends a group of copies; waits until at most `pending` of this thread's groups are in flight. Below sm_80 these emit
 * nothing. A barrier must follow before other threads read the copies. */
void copy_commit(ptx_fn *f);
void copy_wait(ptx_fn *f, uint32_t pending);

#endif
