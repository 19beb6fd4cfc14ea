/* Products on tensor cores, of F16 or BF16 with sums in F32: 16 rows by 8 columns of sums, which lie over a warp's lanes as
 * kiln/author/ptx_matrix.h has it. */
#ifndef DEVICE_TENSOR_H
#define DEVICE_TENSOR_H

#include <kiln/author/ptx.h>

/* The product that takes 8 along the sum; and 16, from sm_80 on. */
ptx_mma_shape tensor_shape(ptx_type type, bool is_deep);

/* d = a * b + c, 16 along the sum: one product from sm_80 on, below it two. d may be c itself, of variables. */
void tensor_multiply(ptx_fn *f, ptx_type type, ptx_val d[4], const ptx_val a[4], const ptx_val b[2],
                     const ptx_val c[4]);

/* The same of bytes, those of b signed, those of a as said, with exact sums in S32: 16 along the sum for each register of b, of
 * which there are `count`, 1 or 2. One product from sm_80 on, below it two for each register. */
void tensor_multiply_bytes(ptx_fn *f, bool is_signed, uint32_t count, ptx_val d[4], const ptx_val a[4],
                           const ptx_val b[2], const ptx_val c[4]);

#endif
