/* The transposed NF4 matrix product. */
#ifndef VERIFY_NF4_GEMM_TRANSPOSED_H
#define VERIFY_NF4_GEMM_TRANSPOSED_H

#include "families.h"

extern const family_row nf4_gemm_transposed_row;

#endif
