/* Copies from global into shared memory: asynchronously (cp.async) from sm_80 on, below through registers. */
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include <kiln/author/ptx.h>

/* Copies 16 bytes, or zeros if out of bounds; the pointers' elements are U32. A null `in_bounds` means true. `hints` apply to
 * loads into registers. */
void copy_unit(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints);

/* The same, with a U32 for the bounds: 16 if in bounds, else 0. Saves an instruction per copy with the same bounds. */
void copy_unit_or_zeros(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, int hints);

/* Copies through registers on every target. */
void copy_unit_now(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints);

/* Copies 4 or 8 bytes; `in_bounds` must not be null. */
void copy_word(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds);
void copy_half(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds);

/* Copies the first `left` of 16 bytes, an S32 that may be negative or too large; zero-fills the rest. Below sm_80 it
 * branches. */
void copy_cut(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left);

/* Copies the first `left` of 4 bytes, as copy_cut does of 16. */
void copy_word_cut(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left);

/* Ends a group of copies; waits until at most `pending` of this thread's groups are in flight. Below sm_80 these emit
 * nothing. A barrier must follow before other threads read them. */
void copy_commit(ptx_fn *f);
void copy_wait(ptx_fn *f, uint32_t pending);

#endif
