/* The PTX builder's products of warpgroups, wgmma: sm_90a only. Part of kiln/author/ptx.h.
 *
 * A warpgroup is four warps: 128 threads, the first a multiple of 128. It computes D = A * B + D, or A * B: A of 64 rows
 * and k columns, B k by n, D 64 by n. B is in shared memory; A is in shared memory or in registers; D is in registers.
 * Warp w of the warpgroup has rows 16w to 16w + 15 of A and D, in the fragments of ptx_matrix.h: A's four registers are
 * those of a product of 16 rows, and D's are those of n / 8 products of 8 columns, one after the other.
 *
 * A product is asynchronous. Its registers are in flight until it has been waited for:
 *
 *     ptx_wgmma_fence(f);                          before the first product, and after other accesses to its registers
 *     ptx_wgmma(f, form, 0, d, a, b);              d = a * b
 *     ptx_wgmma(f, form, 1, d, &a[4], b_next);     d = a * b + d
 *     ptx_wgmma_commit(f);                         makes a group of the products
 *     ...                                          no access to d or a; other work
 *     ptx_wgmma_wait(f, 0);                        at most 0 groups are still in flight
 *
 * The checker reports, on every path: an access to a register in flight, except by products of the same shape that add to
 * the same d, or read the same a; a missing fence; a product that is not waited for; a call where threads of the warpgroup
 * may have diverged; a descriptor that may differ between them. It does not know what a product reads from shared
 * memory: writes there need a ptx_fence_async and a barrier before the product, and must wait for its end.
 *
 * ptxas does not report an access to a register in flight. It may serialise products, for example if a wait is under a
 * condition; its notes C7508 to C7519 say so.
 */
#ifndef KILN_PTX_WGMMA_H
#define KILN_PTX_WGMMA_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Columns are aligned by hand. */
/* clang-format off */

/* Type of A and B (of each, if they differ), then type of D. Registers are as for ptx_mma_shape. */
typedef enum KILN_AS_INT ptx_wgmma_types {
    PTX_WGMMA_F16_F32, PTX_WGMMA_F16_F16, PTX_WGMMA_BF16_F32,                                       /* k 16 */
    PTX_WGMMA_TF32_F32,                                                                             /* k 8 */
    PTX_WGMMA_E4M3_F32, PTX_WGMMA_E5M2_F32, PTX_WGMMA_E4M3E5M2_F32, PTX_WGMMA_E5M2E4M3_F32,         /* k 32 */
    PTX_WGMMA_E4M3_F16, PTX_WGMMA_E5M2_F16, PTX_WGMMA_E4M3E5M2_F16, PTX_WGMMA_E5M2E4M3_F16,
    PTX_WGMMA_S8_S32, PTX_WGMMA_U8_S32,
    PTX_WGMMA_S8U8_S32, PTX_WGMMA_U8S8_S32,                                                         /* PTX 8.4 */
    PTX_WGMMA_TYPES_COUNT
} ptx_wgmma_types;

typedef struct ptx_wgmma_form {
    ptx_wgmma_types types;
    int n;                           /* a multiple of 8 up to 256; for bytes 8, 16, 24, 32 and multiples of 16 */
    bool negates_a, negates_b;       /* floats */
    bool transposes_a, transposes_b; /* f16 and bf16 in shared memory: neighbours lie along m or n, not along k */
    bool saturates;                  /* bytes: sums are clamped instead of wrapped */
} ptx_wgmma_form;

/* A form's m, n and k, and its registers per thread: those of A, and those of D as c; b_count is 0. */
ptx_mma_info ptx_wgmma_describe(ptx_wgmma_form form);

/* Position of an element of a thread's registers in A or D; `thread` is 0 to 127, i counts through the registers. */
ptx_element ptx_wgmma_a(ptx_wgmma_types types, int thread, int i);
ptx_element ptx_wgmma_d(ptx_wgmma_types types, int thread, int i);

/* Starts d = a*b + d if `adds` is 1, or d = a*b if it is 0; a predicate decides when the kernel runs. d are variables. b is
 * a descriptor, and a is four registers; for _shared a is a descriptor too. */
#define ptx_wgmma(f, form, adds, d, a, b) ptx_wgmma_at(f, form, PTX_VAL_(adds), d, a, b, PTX_HERE)
#define ptx_wgmma_shared(f, form, adds, d, a, b) ptx_wgmma_shared_at(f, form, PTX_VAL_(adds), d, a, b, PTX_HERE)
void ptx_wgmma_at(ptx_fn *f, ptx_wgmma_form form, ptx_val adds, ptx_val d[], const ptx_val a[], ptx_val b,
                  const char *file, int line);
void ptx_wgmma_shared_at(ptx_fn *f, ptx_wgmma_form form, ptx_val adds, ptx_val d[], ptx_val a, ptx_val b,
                         const char *file, int line);

/* Orders earlier accesses to registers before the products that follow. */
#define ptx_wgmma_fence(f)         ptx_effect0(f, PTX_OP_WGMMA_FENCE, PTX_HERE)
/* Makes a group of this warpgroup's products since its last group. */
#define ptx_wgmma_commit(f)        ptx_effect0(f, PTX_OP_WGMMA_COMMIT, PTX_HERE)
/* Waits until at most `pending` of its groups are in flight, a C integer. */
#define ptx_wgmma_wait(f, pending) ptx_effect1(f, PTX_OP_WGMMA_WAIT, ptx_u32(pending), PTX_HERE)

/* A matrix's layout in shared memory: rows of A, or of B's transpose; with transposes_a or _b the rows are along k.
 * Eight rows of swizzle_bytes make a pattern, which begins at a multiple of its size: in it bits 7 to 9 of an
 * address flip bits 4 to 6 (64 bytes: 7 and 8 flip 4 and 5; 32 bytes: 7 flips 4). Without a swizzle rows have 16 bytes.
 *
 *     neighbours along   swizzle   stride_bytes, from one to the next    leading_bytes, from one to the next
 *     k                  32 ...    8 rows                                unused
 *     k                  0         8 rows                                16 bytes of a row
 *     m or n             32 ...    8 along k                             swizzle_bytes along m or n
 *     m or n             0         16 bytes along m or n                 8 along k
 *
 * (PTX ISA 9.7.15.5.1.2.) Both are multiples of 16. */
typedef struct ptx_matrix {
    uint32_t swizzle_bytes; /* 0, 32, 64 or 128 */
    uint32_t stride_bytes, leading_bytes;
} ptx_matrix;

/* Returns the descriptor, U64, of the matrix at `pointer` in shared memory. The pointer must be known to be a multiple of
 * the pattern's size (of 16 without a swizzle): declare the array with that alignment. For a later part, such as the next
 * 32 bytes along k or another stage, add the distance in units of 16 bytes. */
#define ptx_descriptor(f, pointer, matrix) ptx_descriptor_at(f, pointer, matrix, PTX_HERE)
ptx_val ptx_descriptor_at(ptx_fn *f, ptx_val pointer, ptx_matrix matrix, const char *file, int line);

/* clang-format on */
#ifdef __cplusplus
}
#endif

#endif
