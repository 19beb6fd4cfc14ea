/* Quantises a matrix to e2m1 codes with a scale for each block along k: NVFP4 or MXFP4. */
#ifndef VERIFY_FP4_QUANTIZE_H
#define VERIFY_FP4_QUANTIZE_H

#include "families.h"

extern const family_row fp4_quantize_row;

#endif
