/* kiln's own families, for a generator that adds more. */
#ifndef KILN_FAMILIES_H
#define KILN_FAMILIES_H

#include <kiln/author/family.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const kiln_family int4_scale_family, int4_pack_family, int4_quantize_family, int4_unpack_family;
extern const kiln_family nf4_scale_family, nf4_pack_family, nf4_quantize_family, nf4_unpack_family;
extern const kiln_family nf4_gemm_family, nf4_gemm_transposed_family;
extern const kiln_family gguf_dequantize_family, gguf_rows_family, q4k_dequantize_family,
    rmsnorm_q4k_gemv_family;
extern const kiln_family linear_family, nvfp4_gemv_family, fp4_gemm_family, fp4_quantize_family,
    q8_quantize_family, rope_family, attention_family;

/* Elements of the list that kiln_main takes. */
#define KILN_FAMILIES                                                                                        \
    &int4_scale_family, &int4_pack_family, &int4_quantize_family, &int4_unpack_family, &nf4_scale_family,    \
        &nf4_pack_family, &nf4_quantize_family, &nf4_unpack_family, &nf4_gemm_family,                        \
        &nf4_gemm_transposed_family, &gguf_dequantize_family, &gguf_rows_family, &q4k_dequantize_family,     \
        &rmsnorm_q4k_gemv_family, &linear_family, &nvfp4_gemv_family, &fp4_gemm_family,                      \
        &fp4_quantize_family, &q8_quantize_family, &rope_family, &attention_family

#ifdef __cplusplus
}
#endif

#endif
