/* What atomics and bulk reductions do to an element of memory. Blocks run on several host threads, so each element is a host
   atomic. */
#ifndef EMU_UPDATE_H
#define EMU_UPDATE_H

#include "half.h"

enum { AND, OR, XOR, EXCH, ADD, INC, DEC, MIN, MAX, CAS }; /* order of the words in OPERATIONS */

static inline uint64_t sign_or_zero_extended(unsigned type, uint64_t x)
{
    switch (type) {
    case EMU_S32:
        return (uint64_t)(int64_t)(int32_t)x;
    default:
        return x;
    }
}

static inline uint64_t integer_result(unsigned type, unsigned operation, uint64_t old, uint64_t b)
{
    bool is_signed = emu_types[type].class == EMU_SIGNED;
    uint64_t x = sign_or_zero_extended(type, old), y = sign_or_zero_extended(type, b);
    bool less = is_signed ? (int64_t)x < (int64_t)y : x < y;
    switch (operation) {
    case AND:
        return old & b;
    case OR:
        return old | b;
    case XOR:
        return old ^ b;
    case EXCH:
        return b;
    case ADD:
        return old + b;
    case INC:
        return old >= b ? 0 : old + 1;
    case DEC:
        return old == 0 || old > b ? b : old - 1;
    case MIN:
        return less ? old : b;
    default:
        return less ? b : old;
    }
}

static inline uint16_t half_result(unsigned type, unsigned operation, uint16_t old, uint16_t b)
{
    bool is_bf16 = type == EMU_BF16 || type == EMU_BF16X2;
    float x = is_bf16 ? bf16_to_float(old) : half_to_float(old),
          y = is_bf16 ? bf16_to_float(b) : half_to_float(b);
    if (operation == ADD)
        return is_bf16 ? float_to_bf16(x + y) : float_to_half(x + y);
    if (x != x)
        return y != y ? 0x7fff : b;
    bool take_b = operation == MIN ? y < x : y > x;
    bool zeros = x == 0 && y == 0; /* -0 is below +0 */
    if (zeros)
        take_b = operation == MIN ? b & 0x8000 : !(b & 0x8000);
    return y == y && take_b ? b : old;
}

/* In global memory atom.add.f32 flushes subnormals, in shared memory it does not (ISA 9.7.13.5). */
static inline uint64_t float_result(uint64_t old, uint64_t b, bool flushes)
{
    float x = float_of_bits((uint32_t)old), y = float_of_bits((uint32_t)b);
    if (flushes)
        return bits_of_float(flush_float(canonical(flush_float(x) + flush_float(y))));
    return bits_of_float(canonical(x + y));
}

static inline uint64_t double_result(uint64_t old, uint64_t b)
{
    double r = double_of_bits(old) + double_of_bits(b);
    return r == r ? bits_of_double(r) : 0x7fffffffffffffff;
}

static inline uint64_t result_of(const emu_mods *m, bool is_shared, uint64_t old, uint64_t b, uint64_t c)
{
    if (m->mode == CAS)
        return old == b ? c : old;
    switch (m->type) {
    case EMU_F32:
        return m->mode == ADD ? float_result(old, b, !is_shared) : b;
    case EMU_F64:
        return m->mode == ADD ? double_result(old, b) : b;
    case EMU_F16:
    case EMU_BF16:
        return half_result(m->type, m->mode, (uint16_t)old, (uint16_t)b);
    case EMU_F16X2:
    case EMU_BF16X2:
        return half_result(m->type, m->mode, (uint16_t)old, (uint16_t)b) |
               (uint64_t)half_result(m->type, m->mode, (uint16_t)(old >> 16), (uint16_t)(b >> 16)) << 16;
    default:
        return integer_result(m->type, m->mode, old, b);
    }
}

#define UPDATE(bits)                                                                                         \
    static inline uint64_t update_##bits(const emu_mods *m, bool is_shared, uint64_t at, uint64_t b,         \
                                         uint64_t c)                                                         \
    {                                                                                                        \
        uint##bits##_t *p = (uint##bits##_t *)(uintptr_t)at, old = __atomic_load_n(p, __ATOMIC_SEQ_CST),     \
                       new;                                                                                  \
        do                                                                                                   \
            new = (uint##bits##_t)result_of(m, is_shared, old, b, c);                                        \
        while (!__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));       \
        return old;                                                                                          \
    }
UPDATE(16)
UPDATE(32)
UPDATE(64)

static inline uint64_t update(const emu_mods *m, bool is_shared, unsigned bytes, uint64_t at, uint64_t b,
                              uint64_t c)
{
    return bytes == 4   ? update_32(m, is_shared, at, b, c)
           : bytes == 8 ? update_64(m, is_shared, at, b, c)
                        : update_16(m, is_shared, at, b, c);
}

#endif
