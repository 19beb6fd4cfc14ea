/* y[m,n] = x[m,k] * W[n,k]^T, W in NVFP4 or MXFP4, x in 16 bits, NVFP4 or MXFP8. */
#ifndef VERIFY_FP4_GEMM_H
#define VERIFY_FP4_GEMM_H

#include "families.h"

extern const family_row fp4_gemm_row;

#endif
