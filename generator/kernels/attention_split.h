/* Thread blocks that share the keys of a tile of queries (split-K): each has a part of the keys and leaves a record of every
 * row. The last to arrive joins the records in the order of the parts, so that the result does not depend on which one is
 * last; no thread block waits for another. With split_k 0 the number of parts is the grid's: groups of 8 or 16 parts are
 * joined first, each by its last, then the groups by the last group. */
#ifndef KERNELS_ATTENTION_SPLIT_H
#define KERNELS_ATTENTION_SPLIT_H

#include "attention.h"

/* Numbers of a record in shared memory: four neighbouring columns of eight rows, a lane's columns with codes, cover all banks. */
uint32_t attention_shared_record(const attention *a);

/* Stores the lane's columns of row i, from `column` on, into the row's record, a pointer. */
void attention_store_record(const attention *a, const attention_rows *r, uint32_t i, ptx_val column,
                            ptx_val record);

/* Ends a kernel whose warps have their own rows. If several thread blocks share the tile, stores the lane's rows of this part,
 * from row number `first` and `column` on, which may be out of bounds; the last part to arrive stores O and its logarithms.
 * Otherwise store_results stores O. All threads of the thread block must call it: it has barriers. */
void attention_finish(const attention *a, const attention_rows *r, ptx_val first, ptx_val column, ptx_val tid,
                      void (*store_results)(void *of, ptx_val first), void *of);

/* Like attention_finish, from the records of `warps` warps in shared memory, one warp after the other, tile_q rows each. */
void attention_leave_warps(const attention *a, ptx_val records, uint32_t warps, ptx_val tid);

#endif
