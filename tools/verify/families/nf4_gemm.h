/* Products with NF4 weights in blocks of 64 along K, one float32 scale for each: C[m,n] = A[m,k] * B[k,n]. */
#ifndef VERIFY_NF4_GEMM_H
#define VERIFY_NF4_GEMM_H

#include "families.h"

extern const family_row nf4_gemm_row;

#endif
