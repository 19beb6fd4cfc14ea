/* mma.sync as the decoder leaves it in op->imm for the handlers. op->list holds the registers of
   D, A, B and C, in this order. Fragment layouts: ISA 9.7.14.5.1 to 9.7.14.5.13. With block scaling op->arg has scale-a-data,
   byte-id-a, thread-id-a, and the same for b. */
#ifndef EMU_MMA_H
#define EMU_MMA_H

#include "../core/program.h"

typedef enum emu_element {
    EMU_EL_F16,
    EMU_EL_BF16,
    EMU_EL_TF32,
    EMU_EL_E4M3,
    EMU_EL_E5M2,
    EMU_EL_E3M2, /* this and the next two are in 8-bit containers */
    EMU_EL_E2M3,
    EMU_EL_E2M1,
    EMU_EL_E2M1_PACKED, /* two in 8 bits */
    EMU_EL_F64,
    EMU_EL_S8,
    EMU_EL_U8,
    EMU_EL_S4,
    EMU_EL_U4,
    EMU_EL_B1,
    EMU_ELEMENTS
} emu_element;

enum { EMU_MMA_A_COL = 1, EMU_MMA_B_ROW = 2, EMU_MMA_AND = 4, EMU_MMA_UE4M3 = 8 /* else .ue8m0 */ };

typedef struct emu_mma {
    uint16_t k;
    uint8_t m;    /* 8 or 16; n is 8 */
    uint8_t a, b; /* emu_element */
    uint8_t d, c; /* emu_type: F16, F32, F64, S32 */
    uint8_t flags : 4;
    uint8_t chunks : 4; /* of a row of A or a column of B, each with a scale: 1, 2, 4; 0: no block scaling */
} emu_mma;

/* m8n8k4 with f16 multiplies four pairs of matrices, in its own layout. */
static inline bool emu_mma_is_quad(const emu_mma *f)
{
    return f->k == 4 && f->a == EMU_EL_F16;
}

static inline unsigned emu_element_bits(unsigned element)
{
    return element == EMU_EL_F64                                                           ? 64
           : element == EMU_EL_TF32                                                        ? 32
           : element <= EMU_EL_BF16                                                        ? 16
           : element == EMU_EL_B1                                                          ? 1
           : element == EMU_EL_S4 || element == EMU_EL_U4 || element == EMU_EL_E2M1_PACKED ? 4
                                                                                           : 8;
}

/* Registers per lane. */
static inline unsigned emu_mma_a_registers(const emu_mma *f)
{
    unsigned bits = emu_element_bits(f->a), each = bits == 64 ? 64 : 32;
    return (emu_mma_is_quad(f) ? 2u : f->m * f->k * bits / (32u * each));
}

static inline unsigned emu_mma_b_registers(const emu_mma *f)
{
    unsigned bits = emu_element_bits(f->b), each = bits == 64 ? 64 : 32;
    return (emu_mma_is_quad(f) ? 2u : 8u * f->k * bits / (32u * each));
}

static inline unsigned emu_mma_c_registers(const emu_mma *f, unsigned type)
{
    unsigned elements = emu_mma_is_quad(f) ? 8u : f->m / 4u;
    return type == EMU_F16 ? elements / 2 : elements;
}

#endif
