/* Copies from global into shared memory: in the background (cp.async) from sm_80 on, below through registers. */
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include <kiln/author/ptx.h>

/* Copies 16 bytes, or zeros where they are out of bounds; the pointers' elements are U32. A null `in_bounds` is always true.
 * `hints` are of a load into registers. */
void copy_unit(ptx_fn *f, bool has_sm_80, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints);

/* Below sm_80 these emit nothing. Ends a group of copies; waits until at most `pending` of this thread's groups are on their
 * way. A barrier must follow before other threads read them. */
void copy_commit(ptx_fn *f, bool has_sm_80);
void copy_wait(ptx_fn *f, bool has_sm_80, uint32_t pending);

#endif
