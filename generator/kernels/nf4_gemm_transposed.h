/* nf4_gemm_transposed on tensor cores. */
#ifndef KERNELS_NF4_GEMM_TRANSPOSED_H
#define KERNELS_NF4_GEMM_TRANSPOSED_H

#include "nf4_args.h"

enum { TRANSPOSED_TILE_K = 512 }; /* of C, per thread block */

void nf4_gemm_transposed_emit_mma(ptx_fn *f, const kiln_variant *v);
void nf4_gemm_transposed_shape_mma(kiln_shape *s, const kiln_variant *v);

#endif
