/* Copies from global into shared memory: in the background (cp.async) from sm_80 on, below through registers. */
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include <kiln/author/ptx.h>

/* Copies 16 bytes, or zeros where they are out of bounds; the pointers' elements are U32. A null `in_bounds` is always true.
 * `hints` are of a load into registers. */
void copy_unit(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints);

/* The same through registers on every target. */
void copy_unit_now(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints);

/* Copies 4 bytes likewise; `in_bounds` must not be null. */
void copy_word(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds);

/* Copies as many of 16 bytes as are in bounds, `left`, an S32: all, some, or, if it is not positive, none; zeros for the
 * others. Below sm_80 it branches. */
void copy_cut(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left);

/* Below sm_80 these emit nothing. Ends a group of copies; waits until at most `pending` of this thread's groups are on their
 * way. A barrier must follow before other threads read them. */
void copy_commit(ptx_fn *f);
void copy_wait(ptx_fn *f, uint32_t pending);

#endif
