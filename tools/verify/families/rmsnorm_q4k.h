/* y = W * h with W in GGUF's Q4_K, and h = x * rsqrt(mean(x^2) + eps) * gamma, or x itself. */
#ifndef VERIFY_RMSNORM_Q4K_H
#define VERIFY_RMSNORM_Q4K_H

#include "families.h"

extern const family_row rmsnorm_q4k_gemv_row;

#endif
