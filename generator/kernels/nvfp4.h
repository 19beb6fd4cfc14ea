/* NVFP4 on the device: e2m1 codes, two in a byte, the low nibble first, and an e4m3 scale for each 16 of them. */
#ifndef KERNELS_NVFP4_H
#define KERNELS_NVFP4_H

#include <kiln/author/family.h>

enum {
    NVFP4_BLOCK = 16,        /* codes per scale */
    NVFP4_DEPTH = 16384,     /* codes of b that are decoded at once */
    NVFP4_THREADS = 256,     /* per thread block */
    NVFP4_SUPER_CODES = 512, /* of a row, in a trip of strategy mma's main loop */
    NVFP4_NAN_MARKS = 0x40004000
};

/* Magnitudes of 8 codes, times 2: four bytes in each word, 0 where the sign is the other one. */
typedef struct nvfp4_bytes {
    ptx_val positive[2], negative[2]; /* U32 */
} nvfp4_bytes;
nvfp4_bytes nvfp4_split(ptx_fn *f, ptx_val word);

/* One of the two words as signed bytes, U32. */
ptx_val nvfp4_signed(ptx_fn *f, const nvfp4_bytes *bytes, uint32_t half);

/* 8 codes as four F16X2, on targets with the conversion. */
void nvfp4_halves(ptx_fn *f, ptx_val word, ptx_val pairs[4]);

/* Two scales, from the low bytes of a U32 or U16, as F16X2. Below sm_89 they are times 2^-8, and a NaN is 480 times 2^-8;
 * for each NaN `marks` then has one of NVFP4_NAN_MARKS set, among other bits. From sm_89 on `marks` is poison. */
typedef struct nvfp4_scales {
    ptx_val pair, marks;
} nvfp4_scales;
nvfp4_scales nvfp4_widen_scales(ptx_fn *f, bool has_sm_89, ptx_val raw);

/* Two scales of b, from the low bytes of a U32 or U16, as F16X2 in a U32, scaled so that the product with a pair of
 * nvfp4_widen_scales is a quarter of the scales' product. That is exact: it has 8 bits and lies between 2^-20 and 50176.
 * NaNs stay NaNs. */
ptx_val nvfp4_vector_scales(ptx_fn *f, bool has_sm_89, ptx_val raw);

void nvfp4_emit_simt(ptx_fn *f, const kiln_variant *v);
void nvfp4_emit_mma(ptx_fn *f, const kiln_variant *v);

/* Dynamic shared memory: the most that a call takes; on tensor cores what a call takes whose chunk of b has `depth` codes. */
uint32_t nvfp4_simt_shared_bytes(uint32_t lane_codes, bool is_hardware);
uint32_t nvfp4_mma_shared_bytes(uint32_t depth);

/* Codes of each row in a trip of a warp's main loop. */
uint32_t nvfp4_simt_trip(const kiln_variant *v);

#endif
