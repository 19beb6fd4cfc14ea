/* The families that the `kiln` program is built with. */
#include "kernels.h"

const kiln_family *const kiln_families[] = {
    /* clang-format off */
    &int4_scale_family, &int4_pack_family, &int4_quantize_family, &int4_unpack_family,
    &nf4_scale_family, &nf4_pack_family, &nf4_quantize_family, &nf4_unpack_family,
    &nf4_gemm_family, &nf4_gemm_transposed_family,
    &q4k_dequantize_family, &rmsnorm_q4k_gemv_family,
    &nvfp4_gemv_family, &attention_family,
    NULL,
    /* clang-format on */
};
