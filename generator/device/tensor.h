/* Products on tensor cores, of F16 or BF16 with sums in F32: 16 rows by 8 columns of sums, distributed over a warp's lanes as
 * in kiln/author/ptx_matrix.h. */
#ifndef DEVICE_TENSOR_H
#define DEVICE_TENSOR_H

#include <kiln/author/ptx.h>

/* The shape of products with k 8, or with k 16 from sm_80 on. */
ptx_mma_shape tensor_shape(ptx_type type, bool is_deep);

/* d = a * b + c, k 16: one product from sm_80 on, below it two. d may be c itself, if these are variables. */
void tensor_multiply(ptx_fn *f, ptx_type type, ptx_val d[4], const ptx_val a[4], const ptx_val b[2],
                     const ptx_val c[4]);

/* Multiplies bytes, b's signed, a's by is_signed, with exact sums in S32: k 16 for each of the `count` registers of b, 1 or
 * 2. One product from sm_80 on, below it two per register. */
void tensor_multiply_bytes(ptx_fn *f, bool is_signed, uint32_t count, ptx_val d[4], const ptx_val a[4],
                           const ptx_val b[2], const ptx_val c[4]);

#endif
