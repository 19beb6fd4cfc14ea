/* Floating point in integer arithmetic: any format, any rounding, the same results on every host. Used where the host's
   arithmetic is not suitable (directed rounding, narrow formats); common operations have vectorised handlers. */
#ifndef EMU_SOFT_H
#define EMU_SOFT_H

#include "../support/emu.h"

typedef struct emu_format {
    uint8_t exponent_bits, fraction_bits;
    bool has_infinity; /* e4m3 has none */
    bool has_nan;
    uint64_t nan; /* canonical */
} emu_format;

extern const emu_format emu_f16, emu_bf16, emu_f32, emu_f64, emu_tf32;

typedef enum emu_soft_class {
    EMU_SOFT_ZERO,
    EMU_SOFT_FINITE,
    EMU_SOFT_INFINITY,
    EMU_SOFT_NAN
} emu_soft_class;

/* 1.xxx * 2^exponent. Bit 63 of the significand is the leading one. sticky: a bit below bit 0 is not zero. */
typedef struct emu_soft {
    emu_soft_class class;
    bool sign, sticky;
    int exponent;
    uint64_t significand;
} emu_soft;

emu_soft emu_soft_unpack(const emu_format *format, uint64_t bits);
/* `round` is EMU_RN, EMU_RZ, EMU_RM, EMU_RP or EMU_RNA. */
uint64_t emu_soft_pack(const emu_format *format, emu_soft value, unsigned round);
emu_soft emu_soft_of_integer(bool sign, uint64_t magnitude);
/* Rounds to an integral value: EMU_RNI, EMU_RZI, EMU_RMI, EMU_RPI. */
emu_soft emu_soft_integral(emu_soft value, unsigned round);

emu_soft emu_soft_add(emu_soft a, emu_soft b, unsigned round); /* round: for the sign of an exact zero */
emu_soft emu_soft_multiply(emu_soft a, emu_soft b);
emu_soft emu_soft_fma(emu_soft a, emu_soft b, emu_soft c, unsigned round);
emu_soft emu_soft_divide(emu_soft a, emu_soft b);
emu_soft emu_soft_sqrt(emu_soft a);

#endif
