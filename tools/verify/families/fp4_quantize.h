/* Quantises a matrix to codes with a scale for each block along k: NVFP4, MXFP4 or MXFP8. */
#ifndef VERIFY_FP4_QUANTIZE_H
#define VERIFY_FP4_QUANTIZE_H

#include "families.h"

extern const family_row fp4_quantize_row;

#endif
