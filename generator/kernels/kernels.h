/* The families of this folder, for families.c. One file per family or group of families. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <kiln/family.h>

extern const kiln_family int4_scale_family, int4_pack_family, int4_quantize_family, int4_unpack_family;
extern const kiln_family nf4_scale_family, nf4_pack_family, nf4_quantize_family, nf4_unpack_family;
extern const kiln_family nf4_gemm_family, nf4_gemm_transposed_family;
extern const kiln_family nvfp4_gemv_family;
extern const kiln_family q4k_dequantize_family, rmsnorm_q4k_gemv_family;
extern const kiln_family attention_family;

#endif
