/* The PTX builder's matrix products: mma, and the loads and stores that go with it. Part of kiln/author/ptx.h.
 *
 * A warp multiplies small matrices that are distributed over its lanes: D = A*B + C, A of m rows and k columns, B k by
 * n, C and D m by n. Each lane holds a few registers of each, its fragments. With g = lane / 4, t = lane % 4, and p
 * elements in a register (8 of 4 bits, 4 of 8, 2 of 16, 1 of 32 or 64), element i, counted from the low bits, of
 * register r is
 *
 *     A   row g + 8*(r % 2)     column t*p + 4*p*(r / 2) + i     m = 16
 *     A   row g                 column t*p + i                   m = 8, one register
 *     B   row t*p + 4*p*r + i   column g
 *     C   row g + 8*(e / 2)     column 2*t + e % 2               e = r, for f16 sums 2*r + i
 *
 * (PTX ISA 9.7.14.5; e2m1 has 4 bits where k is 64, else it is bits 2 to 5 of a byte.) So two neighbouring elements of a row of
 * A, or of a column of B, share a register, and the C of one product, rounded to pairs, is the A of the next. The order along k
 * is free as long as A and B agree.
 */
#ifndef KILN_PTX_MATRIX_H
#define KILN_PTX_MATRIX_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Columns are aligned by hand. */
/* clang-format off */

/* Shape, type of A and B (of each, if they differ), type of the sums. In registers: f16 as F16X2, bf16 as BF16X2, 8 and
 * 4-bit integers, e4m3, e5m2 and tf32 as B32, the first element lowest; sums as F32, S32, F64 or F16X2. B32 is accepted
 * for any 32-bit type. The comment beside each gives its requirement. */
typedef enum KILN_AS_INT ptx_mma_shape {
    PTX_MMA_M16N8K8_F16_F32, PTX_MMA_M16N8K8_F16_F16,                                                  /* sm_75 */
    PTX_MMA_M16N8K16_F16_F32, PTX_MMA_M16N8K16_F16_F16,                                                /* sm_80 */
    PTX_MMA_M16N8K8_BF16_F32, PTX_MMA_M16N8K16_BF16_F32, PTX_MMA_M16N8K4_TF32_F32, PTX_MMA_M16N8K8_TF32_F32,
    PTX_MMA_M8N8K16_S8_S32, PTX_MMA_M8N8K16_U8_S32, PTX_MMA_M8N8K16_S8U8_S32, PTX_MMA_M8N8K16_U8S8_S32, /* sm_75 */
    PTX_MMA_M16N8K16_S8_S32, PTX_MMA_M16N8K16_U8_S32, PTX_MMA_M16N8K16_S8U8_S32, PTX_MMA_M16N8K16_U8S8_S32, /* sm_80 */
    PTX_MMA_M16N8K32_S8_S32, PTX_MMA_M16N8K32_U8_S32, PTX_MMA_M16N8K32_S8U8_S32, PTX_MMA_M16N8K32_U8S8_S32,
    PTX_MMA_M16N8K64_S4_S32, PTX_MMA_M16N8K64_U4_S32, PTX_MMA_M16N8K64_S4U4_S32, PTX_MMA_M16N8K64_U4S4_S32,
    PTX_MMA_M8N8K4_F64_F64,
    PTX_MMA_M16N8K4_F64_F64, PTX_MMA_M16N8K8_F64_F64, PTX_MMA_M16N8K16_F64_F64,                        /* sm_90 */
    PTX_MMA_M16N8K32_E4M3_F32, PTX_MMA_M16N8K32_E5M2_F32,                                              /* sm_89 */
    PTX_MMA_M16N8K32_E4M3E5M2_F32, PTX_MMA_M16N8K32_E5M2E4M3_F32,
    PTX_MMA_M16N8K32_E4M3_F16, PTX_MMA_M16N8K32_E5M2_F16,                                              /* PTX 8.7 */
    PTX_MMA_M16N8K32_E4M3E5M2_F16, PTX_MMA_M16N8K32_E5M2E4M3_F16,
    PTX_MMA_M16N8K64_E2M1_UE4M3, PTX_MMA_M16N8K64_E2M1_UE8M0,      /* ptx_mma_scaled: sm_120f and sm_120a, PTX 8.7 */
    PTX_MMA_M16N8K32_E4M3_UE8M0, PTX_MMA_M16N8K32_E2M1E4M3_UE8M0, PTX_MMA_M16N8K32_E4M3E2M1_UE8M0,
    PTX_MMA_SHAPE_COUNT
} ptx_mma_shape;

/* What a shape takes: m, n and k, and per lane the registers of A, B, and C and D, with their types. */
typedef struct ptx_mma_info {
    int m, n, k;
    int a_count, b_count, c_count;
    ptx_type a_type, b_type, c_type;
    int scales; /* along k, for each row of A and each column of B; 0: none */
} ptx_mma_info;
ptx_mma_info ptx_mma_describe(ptx_mma_shape shape);

/* Position of a fragment's element in its matrix, by the table above; i counts through the lane's registers. */
typedef struct ptx_element {
    int row, column;
} ptx_element;
ptx_element ptx_mma_a(ptx_mma_shape shape, int lane, int i);
ptx_element ptx_mma_b(ptx_mma_shape shape, int lane, int i);
ptx_element ptx_mma_c(ptx_mma_shape shape, int lane, int i);

/* Computes d = a*b + c; ptx_mma_describe gives the number of values. d may be c itself, if these are variables: the
 * product is added in place. Sums of f16, bf16 and tf32 are not exact f32 sums: products are aligned and truncated. */
#define ptx_mma(f, shape, d, a, b, c)  ptx_mma_at(f, shape, d, a, b, c, PTX_HERE)
#define ptx_mma_to(f, shape, sums, a, b) ptx_mma_at(f, shape, sums, a, b, sums, PTX_HERE)
void ptx_mma_at(ptx_fn *f, ptx_mma_shape shape, ptx_val d[], const ptx_val a[], const ptx_val b[], const ptx_val c[],
                const char *file, int line);

/* The scales of A or B, one byte each: `scales` of them from byte `byte` of `word` on, a multiple of `scales`. In a
 * group of four lanes, lane 2*thread holds those of row g of A, lane 2*thread + 1 those of row g + 8, thread 0 or 1; lane `thread`
 * holds those of column g of B, thread 0 to 3. Scale i multiplies elements i * k / scales and on. ue4m3 is e4m3 without its sign
 * bit, which must be 0. */
typedef struct ptx_mma_scales {
    ptx_val word; /* 32 bits */
    int byte, thread;
} ptx_mma_scales;

/* ptx_mma with block scaling (PTX ISA 9.7.14.3): sums in F32 of a * scale of a * b * scale of b. */
#define ptx_mma_scaled(f, shape, d, a, b, c, of_a, of_b) ptx_mma_scaled_at(f, shape, d, a, b, c, of_a, of_b, PTX_HERE)
void ptx_mma_scaled_at(ptx_fn *f, ptx_mma_shape shape, ptx_val d[], const ptx_val a[], const ptx_val b[],
                       const ptx_val c[], ptx_mma_scales of_a, ptx_mma_scales of_b, const char *file, int line);

/* Loads 1, 2 or 4 matrices of 8 rows of 16 bytes from shared memory: lane 8*i + j points to row j of matrix i (below
 * sm_80 all 32 lanes must point to valid memory), at a multiple of 16. In each lane out[i] holds the 16-bit elements
 * 2*t and 2*t + 1 of row g of matrix i: a register of A, or of B if memory holds B's columns. The type is F16X2 or
 * BF16X2 for elements of F16 or BF16, else B32. _trans reads column g, for a B whose rows are in memory. */
#define ptx_ldmatrix(f, count, out, pointer)        ptx_ldmatrix_at(f, PTX_OP_LDMATRIX, count, out, pointer, PTX_HERE)
#define ptx_ldmatrix_trans(f, count, out, pointer)                                                           \
    ptx_ldmatrix_at(f, PTX_OP_LDMATRIX_TRANS, count, out, pointer, PTX_HERE)
/* Stores matrices in the same layout, for 32-bit values; sm_90. */
#define ptx_stmatrix(f, count, pointer, values)     ptx_stmatrix_at(f, PTX_OP_STMATRIX, count, pointer, values, PTX_HERE)
#define ptx_stmatrix_trans(f, count, pointer, values)                                                        \
    ptx_stmatrix_at(f, PTX_OP_STMATRIX_TRANS, count, pointer, values, PTX_HERE)
/* Transposes an 8 by 8 matrix of 16-bit elements within the warp. */
#define ptx_movmatrix_trans(f, a)                   ptx_op1(f, PTX_OP_MOVMATRIX, a, PTX_HERE)

/* clang-format on */
#ifdef __cplusplus
}
#endif

#endif
