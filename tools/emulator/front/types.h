/* PTX's types and state spaces, and which registers can be operands of which instruction types. */
#ifndef EMU_TYPES_H
#define EMU_TYPES_H

#include "../support/emu.h"

typedef enum emu_type {
    EMU_NONE,
    EMU_B8,
    EMU_B16,
    EMU_B32,
    EMU_B64,
    EMU_B128,
    EMU_U8,
    EMU_U16,
    EMU_U32,
    EMU_U64,
    EMU_S8,
    EMU_S16,
    EMU_S32,
    EMU_S64,
    EMU_F16,
    EMU_BF16,
    EMU_F32,
    EMU_F64,
    EMU_F16X2,
    EMU_BF16X2,
    EMU_F32X2,
    EMU_U16X2,
    EMU_S16X2,
    EMU_TF32,
    EMU_E4M3X2,
    EMU_E5M2X2,
    EMU_E2M1X2,
    EMU_E2M3X2,
    EMU_E3M2X2,
    EMU_UE8M0X2,
    EMU_PRED,
    EMU_TYPES
} emu_type;

typedef enum emu_class { EMU_BITS, EMU_UNSIGNED, EMU_SIGNED, EMU_FLOAT, EMU_PACKED, EMU_PREDICATE } emu_class;

typedef struct emu_type_info {
    const char *name;
    uint8_t bytes;
    uint8_t class; /* emu_class */
} emu_type_info;

extern const emu_type_info emu_types[EMU_TYPES];

typedef enum emu_space {
    EMU_GENERIC,
    EMU_REG,
    EMU_GLOBAL,
    EMU_SHARED,
    EMU_SHARED_CLUSTER, /* in instructions: any block of the cluster */
    EMU_LOCAL,
    EMU_CONST,
    EMU_PARAM,      /* a kernel's parameters: one bank per launch */
    EMU_PARAM_CALL, /* parameters of device functions and calls: per thread */
    EMU_SPACES
} emu_space;

extern const char *const emu_space_names[EMU_SPACES];

emu_type emu_type_named(emu_text name); /* the type of this name, without the dot; EMU_NONE: no such type */
emu_type emu_bits_type(unsigned bytes);

/* ISA 6.1 and table 26: may a register declared as `reg` be an operand of type `wanted`? */
bool emu_type_fits(emu_type reg, emu_type wanted);
/* ISA 9.4.1: like emu_type_fits, for ld, st and cvt, which take wider registers. */
bool emu_type_fits_relaxed(emu_type reg, emu_type wanted);

#endif
