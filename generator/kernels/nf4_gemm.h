/* The bodies of nf4_gemm, one per strategy. */
#ifndef KERNELS_NF4_GEMM_H
#define KERNELS_NF4_GEMM_H

#include "nf4_args.h"

static inline nf4_args nf4_gemm_declare_args(ptx_fn *f, const kiln_variant *v)
{
    return nf4_declare_args(f, v, kiln_is(v, "scale_type", "nested"), kiln_is(v, "rows", "strided"));
}

/* simt with tile_m up to 8, and from 16 on. */
void nf4_gemm_emit_simt(ptx_fn *f, const kiln_variant *v);
void nf4_gemm_emit_wide(ptx_fn *f, const kiln_variant *v);

/* mma and tiles. */
void nf4_gemm_emit_mma(ptx_fn *f, const kiln_variant *v);

/* Shapes of the strategies, for any parameters; mma's and tiles' with their constraints. */
void nf4_gemm_shape_mma(kiln_shape *s, const kiln_variant *v);
void nf4_gemm_shape_simt(kiln_shape *s, const kiln_variant *v); /* tile_m up to 8 */
void nf4_gemm_shape_wide(kiln_shape *s, const kiln_variant *v); /* tile_m from 16 on */

#endif
