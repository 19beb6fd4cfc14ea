/* c[m,l] = sum over k of A[m,k,l] * b[k,l], both in NVFP4: e2m1 codes with an e4m3 scale for each 16. */
#ifndef VERIFY_NVFP4_GEMV_H
#define VERIFY_NVFP4_GEMV_H

#include "families.h"

/* Return the value of a code, 0 to 15, and of a scale, 0 to 255 (OCP MX 1.0, e2m1; OCP FP8 1.0, e4m3). */
double nvfp4_code_value(unsigned code);
double nvfp4_scale_value(unsigned scale);

/* Returns the index of a block's scale; `rows` are those of a batch, `row` counts through all batches. In a tiled
 * layout, 128 rows and 4 blocks are 512 bytes, 32 groups of 16: four rows, 32 apart, with 4 blocks each. Tiles are
 * in row-major order. */
uint64_t nvfp4_scale_index(bool is_tiled, uint64_t rows, uint64_t blocks, uint64_t row, uint64_t block);

#endif
