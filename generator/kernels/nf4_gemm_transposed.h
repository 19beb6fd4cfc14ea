/* The bodies of nf4_gemm_transposed, one per strategy. */
#ifndef KERNELS_NF4_GEMM_TRANSPOSED_H
#define KERNELS_NF4_GEMM_TRANSPOSED_H

#include <kiln/family.h>

void nf4_gemm_transposed_emit_simt(ptx_fn *f, const kiln_variant *v);
void nf4_gemm_transposed_emit_mma(ptx_fn *f, const kiln_variant *v);

#endif
