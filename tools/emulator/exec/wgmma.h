/* Decoded wgmma instructions. For mma_async op->imm is an emu_wgmma; op->list has the registers of D, those of A if it is in
   registers, and again those of D, which is also C. Arguments: scale-d, B's descriptor, A's. */
#ifndef EMU_EXEC_WGMMA_H
#define EMU_EXEC_WGMMA_H

#include "mma.h"

/* mods.mode */
enum { EMU_WGMMA_FENCE, EMU_WGMMA_COMMIT, EMU_WGMMA_WAIT, EMU_WGMMA_PRODUCT };

enum {
    EMU_WGMMA_A_REGISTERS = 1,
    EMU_WGMMA_A_NEGATED = 2,
    EMU_WGMMA_B_NEGATED = 4,
    EMU_WGMMA_A_MN_MAJOR = 8,
    EMU_WGMMA_B_MN_MAJOR = 16,
};

typedef struct emu_wgmma {
    uint16_t n;
    uint8_t a, b; /* emu_element */
    uint8_t d;    /* emu_type: F16, F32, S32 */
    uint8_t flags;
    uint8_t unused[2];
} emu_wgmma;

/* Bytes of a row of A and of a column of B, whatever the type. */
#define EMU_WGMMA_ROW_BYTES   32u
#define EMU_WGMMA_A_FRAGMENTS 4u /* registers per lane */

static inline emu_wgmma emu_wgmma_of(const emu_op *op)
{
    union {
        int64_t imm;
        emu_wgmma form;
    } u = {.imm = op->imm};
    return u.form;
}

/* An element of A or B. */
static inline unsigned emu_wgmma_element_bytes(unsigned element)
{
    return element == EMU_EL_TF32 ? 4 : element <= EMU_EL_BF16 ? 2 : 1;
}

/* Registers per lane. */
static inline unsigned emu_wgmma_d_registers(const emu_wgmma *f)
{
    return f->d == EMU_F16 ? f->n / 4u : f->n / 2u;
}

#endif
