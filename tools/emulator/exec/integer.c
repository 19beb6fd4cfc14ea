/* Integer arithmetic (ISA 9.7.1, 9.7.2). Signed wrap-around is done on unsigned types. */
#include "exec.h"

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

#define ALL_ONES (~UINT64_C(0)) /* result of a division by zero, which the ISA leaves open */

#define SIGNLESS2(name, value)                                                                               \
    DEFINE2(name##_16, uint16_t, uint16_t, uint16_t, value)                                                  \
    DEFINE2(name##_32, uint32_t, uint32_t, uint32_t, value)                                                  \
    DEFINE2(name##_64, uint64_t, uint64_t, uint64_t, value)                                                  \
    TYPES(name) = {[EMU_U16] = name##_16, [EMU_S16] = name##_16, [EMU_U32] = name##_32,                      \
                   [EMU_S32] = name##_32, [EMU_U64] = name##_64, [EMU_S64] = name##_64};

#define SIGNLESS3(name, value)                                                                               \
    DEFINE3(name##_16, uint16_t, uint16_t, uint16_t, uint16_t, value)                                        \
    DEFINE3(name##_32, uint32_t, uint32_t, uint32_t, uint32_t, value)                                        \
    DEFINE3(name##_64, uint64_t, uint64_t, uint64_t, uint64_t, value)                                        \
    TYPES(name) = {[EMU_U16] = name##_16, [EMU_S16] = name##_16, [EMU_U32] = name##_32,                      \
                   [EMU_S32] = name##_32, [EMU_U64] = name##_64, [EMU_S64] = name##_64};

#define INTEGER_TYPES(name)                                                                                  \
    TYPES(name) = {[EMU_U16] = name##_u16, [EMU_S16] = name##_s16, [EMU_U32] = name##_u32,                   \
                   [EMU_S32] = name##_s32, [EMU_U64] = name##_u64, [EMU_S64] = name##_s64}

#define SIGNED2(name, value)                                                                                 \
    DEFINE2(name##_u16, uint16_t, uint16_t, uint16_t, value)                                                 \
    DEFINE2(name##_s16, int16_t, int16_t, int16_t, value)                                                    \
    DEFINE2(name##_u32, uint32_t, uint32_t, uint32_t, value)                                                 \
    DEFINE2(name##_s32, int32_t, int32_t, int32_t, value)                                                    \
    DEFINE2(name##_u64, uint64_t, uint64_t, uint64_t, value)                                                 \
    DEFINE2(name##_s64, int64_t, int64_t, int64_t, value)                                                    \
    INTEGER_TYPES(name);

SIGNLESS2(add, (uint64_t)a + b)
SIGNLESS2(sub, (uint64_t)a - b)
SIGNLESS2(mul_lo, (uint64_t)a *b)
SIGNLESS3(mad_lo, (uint64_t)a *b + c)
SIGNED2(min, a < b ? a : b)
SIGNED2(max, a > b ? a : b)

/* The generic form would make the compiler use 64-bit multiplications. */
DEFINE2(mul_lo_32_fast, uint32_t, uint32_t, uint32_t, a *b)
DEFINE3(mad_lo_32_fast, uint32_t, uint32_t, uint32_t, uint32_t, a *b + c)

static emu_handler *pick_mul_lo(const emu_mods *m)
{
    return emu_types[m->type].bytes == 4 ? mul_lo_32_fast : mul_lo[m->type];
}

static emu_handler *pick_mad_lo(const emu_mods *m)
{
    return emu_types[m->type].bytes == 4 ? mad_lo_32_fast : mad_lo[m->type];
}

DEFINE2(mul_hi_u16, uint16_t, uint16_t, uint16_t, (uint32_t)a *b >> 16)
DEFINE2(mul_hi_s16, int16_t, int16_t, int16_t, (int32_t)a *b >> 16)
DEFINE2(mul_hi_u32, uint32_t, uint32_t, uint32_t, (uint64_t)a *b >> 32)
DEFINE2(mul_hi_s32, int32_t, int32_t, int32_t, (int64_t)a *b >> 32)
DEFINE2(mul_hi_u64, uint64_t, uint64_t, uint64_t, (u128)a *b >> 64)
DEFINE2(mul_hi_s64, int64_t, int64_t, int64_t, (s128)a *b >> 64)
INTEGER_TYPES(mul_hi);

DEFINE3(mad_hi_u16, uint16_t, uint16_t, uint16_t, uint16_t, ((uint32_t)a * b >> 16) + c)
DEFINE3(mad_hi_s16, int16_t, int16_t, int16_t, int16_t, ((int32_t)a * b >> 16) + c)
DEFINE3(mad_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, ((uint64_t)a * b >> 32) + c)
DEFINE3(mad_hi_s32, uint32_t, int32_t, int32_t, uint32_t, (uint32_t)((int64_t)a *b >> 32) + c)
DEFINE3(mad_hi_u64, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)((u128)a *b >> 64) + c)
DEFINE3(mad_hi_s64, uint64_t, int64_t, int64_t, uint64_t, (uint64_t)((s128)a *b >> 64) + c)
INTEGER_TYPES(mad_hi);

DEFINE2(mul_wide_u16, uint32_t, uint16_t, uint16_t, (uint32_t)a *b)
DEFINE2(mul_wide_s16, int32_t, int16_t, int16_t, (int32_t)a *b)
DEFINE2(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)a *b)
DEFINE2(mul_wide_s32, int64_t, int32_t, int32_t, (int64_t)a *b)
TYPES(mul_wide) = {
    [EMU_U16] = mul_wide_u16, [EMU_S16] = mul_wide_s16, [EMU_U32] = mul_wide_u32, [EMU_S32] = mul_wide_s32};

DEFINE3(mad_wide_u16, uint32_t, uint16_t, uint16_t, uint32_t, (uint32_t)a *b + c)
DEFINE3(mad_wide_s16, uint32_t, int16_t, int16_t, uint32_t, (uint32_t)((int32_t)a *b) + c)
DEFINE3(mad_wide_u32, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)a *b + c)
DEFINE3(mad_wide_s32, uint64_t, int32_t, int32_t, uint64_t, (uint64_t)((int64_t)a *b) + c)
TYPES(mad_wide) = {
    [EMU_U16] = mad_wide_u16, [EMU_S16] = mad_wide_s16, [EMU_U32] = mad_wide_u32, [EMU_S32] = mad_wide_s32};

static inline int32_t clamp_s32(int64_t v)
{
    return (int32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}

DEFINE2(add_sat, int32_t, int32_t, int32_t, clamp_s32((int64_t)a + b))
DEFINE2(sub_sat, int32_t, int32_t, int32_t, clamp_s32((int64_t)a - b))
DEFINE3(mad_hi_sat, int32_t, int32_t, int32_t, int32_t, clamp_s32(((int64_t)a * b >> 32) + c))
DEFINE2(min_relu, int32_t, int32_t, int32_t, (a < b ? a : b) > 0 ? (a < b ? a : b) : 0)
DEFINE2(max_relu, int32_t, int32_t, int32_t, (a > b ? a : b) > 0 ? (a > b ? a : b) : 0)

static inline uint32_t low24(uint32_t a)
{
    return a & 0xffffff;
}

static inline int32_t signed24(uint32_t a)
{
    return (int32_t)(a << 8) >> 8;
}

DEFINE2(mul24_lo_u32, uint32_t, uint32_t, uint32_t, low24(a) * low24(b))
DEFINE2(mul24_lo_s32, uint32_t, uint32_t, uint32_t, (int64_t)signed24(a) * signed24(b))
DEFINE2(mul24_hi_u32, uint32_t, uint32_t, uint32_t, (uint64_t)low24(a) * low24(b) >> 16)
DEFINE2(mul24_hi_s32, uint32_t, uint32_t, uint32_t, (int64_t)signed24(a) * signed24(b) >> 16)
DEFINE3(mad24_lo_u32, uint32_t, uint32_t, uint32_t, uint32_t, mul24_lo_u32_f(a, b) + c)
DEFINE3(mad24_lo_s32, uint32_t, uint32_t, uint32_t, uint32_t, mul24_lo_s32_f(a, b) + c)
DEFINE3(mad24_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, mul24_hi_u32_f(a, b) + c)
DEFINE3(mad24_hi_s32, uint32_t, uint32_t, uint32_t, uint32_t, mul24_hi_s32_f(a, b) + c)
DEFINE3(mad24_hi_sat, int32_t, uint32_t, uint32_t, int32_t,
        clamp_s32((int64_t)(int32_t)mul24_hi_s32_f(a, b) + c))
TYPES(mul24_lo) = {[EMU_U32] = mul24_lo_u32, [EMU_S32] = mul24_lo_s32};
TYPES(mul24_hi) = {[EMU_U32] = mul24_hi_u32, [EMU_S32] = mul24_hi_s32};
TYPES(mad24_lo) = {[EMU_U32] = mad24_lo_u32, [EMU_S32] = mad24_lo_s32};
TYPES(mad24_hi) = {[EMU_U32] = mad24_hi_u32, [EMU_S32] = mad24_hi_s32};

#define SAD(suffix, U, S)                                                                                    \
    DEFINE3(sad_##suffix, U, S, S, U, (U)(c + (a < b ? (U)((U)b - (U)a) : (U)((U)a - (U)b))))
SAD(u16, uint16_t, uint16_t)
SAD(s16, uint16_t, int16_t)
SAD(u32, uint32_t, uint32_t)
SAD(s32, uint32_t, int32_t)
SAD(u64, uint64_t, uint64_t)
SAD(s64, uint64_t, int64_t)
INTEGER_TYPES(sad);

/* MININT / -1 wraps to MININT, its remainder is 0. */
#define DIVIDE_UNSIGNED(bits)                                                                                \
    DEFINE2(div_u##bits, uint##bits##_t, uint##bits##_t, uint##bits##_t,                                     \
            b == 0 ? ALL_ONES : (uint64_t)(a / b))                                                           \
    DEFINE2(rem_u##bits, uint##bits##_t, uint##bits##_t, uint##bits##_t, b == 0 ? a : a % b)
#define DIVIDE_SIGNED(bits)                                                                                  \
    DEFINE2(div_s##bits, int##bits##_t, int##bits##_t, int##bits##_t,                                        \
            b == 0    ? -1                                                                                   \
            : b == -1 ? (int##bits##_t)((uint##bits##_t)0 - (uint##bits##_t)a)                               \
                      : a / b)                                                                               \
    DEFINE2(rem_s##bits, int##bits##_t, int##bits##_t, int##bits##_t, b == 0 ? a : b == -1 ? 0 : a % b)
DIVIDE_UNSIGNED(16)
DIVIDE_UNSIGNED(32)
DIVIDE_UNSIGNED(64)
DIVIDE_SIGNED(16)
DIVIDE_SIGNED(32)
DIVIDE_SIGNED(64)
INTEGER_TYPES(div);
INTEGER_TYPES(rem);

DEFINE1(abs_16, uint16_t, int16_t, a < 0 ? -a : a)
DEFINE1(abs_32, uint32_t, int32_t, a < 0 ? 0u - (uint32_t)a : (uint32_t)a)
DEFINE1(abs_64, uint64_t, int64_t, a < 0 ? 0u - (uint64_t)a : (uint64_t)a)
DEFINE1(neg_16, uint16_t, uint16_t, 0u - a)
DEFINE1(neg_32, uint32_t, uint32_t, 0u - a)
DEFINE1(neg_64, uint64_t, uint64_t, 0u - a)
TYPES(abs_int) = {[EMU_S16] = abs_16, [EMU_S32] = abs_32, [EMU_S64] = abs_64};
TYPES(neg_int) = {[EMU_S16] = neg_16, [EMU_S32] = neg_32, [EMU_S64] = neg_64};

/* Two halves side by side in 32 bits. */
#define PAIR(low, high) ((uint32_t)(uint16_t)(low) | (uint32_t)(uint16_t)(high) << 16)
#define LOW(T, x)       ((T)(x))
#define HIGH(T, x)      ((T)((x) >> 16))
#define LESS(T, x, y)   ((x) < (y) ? (T)(x) : (T)(y))
#define MORE(T, x, y)   ((x) > (y) ? (T)(x) : (T)(y))
#define HALVES2(name, T, OP)                                                                                 \
    DEFINE2(name, uint32_t, uint32_t, uint32_t,                                                              \
            PAIR(OP(T, LOW(T, a), LOW(T, b)), OP(T, HIGH(T, a), HIGH(T, b))))
#define SUM(T, x, y)       ((T)((x) + (y)))
#define LESS_RELU(T, x, y) MORE(T, LESS(T, x, y), 0)
#define MORE_RELU(T, x, y) MORE(T, MORE(T, x, y), 0)
HALVES2(add_x2, uint16_t, SUM)
HALVES2(min_u16x2, uint16_t, LESS)
HALVES2(max_u16x2, uint16_t, MORE)
HALVES2(min_s16x2, int16_t, LESS)
HALVES2(max_s16x2, int16_t, MORE)
HALVES2(min_relu_s16x2, int16_t, LESS_RELU)
HALVES2(max_relu_s16x2, int16_t, MORE_RELU)
TYPES(min_x2) = {[EMU_U16X2] = min_u16x2, [EMU_S16X2] = min_s16x2};
TYPES(max_x2) = {[EMU_U16X2] = max_u16x2, [EMU_S16X2] = max_s16x2};

/* Byte dot products. */
static inline int64_t byte_of(uint32_t v, int i, bool is_signed)
{
    return is_signed ? (int64_t)(int8_t)(v >> 8 * i) : (int64_t)(uint8_t)(v >> 8 * i);
}

static inline int64_t half_of(uint32_t v, int i, bool is_signed)
{
    return is_signed ? (int64_t)(int16_t)(v >> 16 * i) : (int64_t)(uint16_t)(v >> 16 * i);
}

#define DP4A_PRODUCT(i, sa, sb) (uint32_t)(int32_t)(byte_of(a, i, sa) * byte_of(b, i, sb))
#define DP4A(name, sa, sb)                                                                                   \
    DEFINE3(name, uint32_t, uint32_t, uint32_t, uint32_t,                                                    \
            c + DP4A_PRODUCT(0, sa, sb) + DP4A_PRODUCT(1, sa, sb) + DP4A_PRODUCT(2, sa, sb) +                \
                DP4A_PRODUCT(3, sa, sb))
DP4A(dp4a_uu, false, false)
DP4A(dp4a_us, false, true)
DP4A(dp4a_su, true, false)
DP4A(dp4a_ss, true, true)

#define DP2A_PRODUCT(i, sa, sb, at) (uint32_t)(int32_t)(half_of(a, i, sa) * byte_of(b, at + i, sb))
#define DP2A(name, sa, sb, at)                                                                               \
    DEFINE3(name, uint32_t, uint32_t, uint32_t, uint32_t,                                                    \
            c + DP2A_PRODUCT(0, sa, sb, at) + DP2A_PRODUCT(1, sa, sb, at))
DP2A(dp2a_lo_uu, false, false, 0)
DP2A(dp2a_lo_us, false, true, 0)
DP2A(dp2a_lo_su, true, false, 0)
DP2A(dp2a_lo_ss, true, true, 0)
DP2A(dp2a_hi_uu, false, false, 2)
DP2A(dp2a_hi_us, false, true, 2)
DP2A(dp2a_hi_su, true, false, 2)
DP2A(dp2a_hi_ss, true, true, 2)

static emu_handler *pick_dot(const emu_mods *m)
{
    static emu_handler *const table[3][2][2] = {{{dp2a_lo_uu, dp2a_lo_us}, {dp2a_lo_su, dp2a_lo_ss}},
                                                {{dp2a_hi_uu, dp2a_hi_us}, {dp2a_hi_su, dp2a_hi_ss}},
                                                {{dp4a_uu, dp4a_us}, {dp4a_su, dp4a_ss}}};
    return table[m->mode][m->type == EMU_S32][m->source == EMU_S32];
}

static emu_handler *pick_dp4a(const emu_mods *m)
{
    emu_mods dp4a = *m;
    dp4a.mode = 2;
    return pick_dot(&dp4a);
}

/* Extended precision: CC.CF is a lane mask in the warp. The ISA does not say what a borrow that one instruction writes
   means to an add that reads it as a carry. On devices CC.CF is the carry of a + ~b + 1, so a borrow is 0: ptxas computes
   subc as a + ~b + CC.CF, whichever instruction wrote CC.CF. It is 0 before the first write, which the ISA leaves open. */
#define CARRY_CHAIN(name, T, bits, sum, carry_in, carry_out)                                                 \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        const T *x = LANES_OF(const T, 1), *y = LANES_OF(const T, 2), *z = LANES_OF(const T, 3);             \
        T *d = LANES_OF(T, 0);                                                                               \
        (void)z;                                                                                             \
        ACTIVE_LANES(mask)                                                                                   \
        {                                                                                                    \
            u128 a = x[i], b = y[i], in = (carry_in) ? w->carry >> i & 1 : 0, r;                             \
            (void)in;                                                                                        \
            r = (sum);                                                                                       \
            d[i] = (T)r;                                                                                     \
            if (carry_out)                                                                                   \
                w->carry = (w->carry & ~(1u << i)) | (uint32_t)(r >> (bits)&1) << i;                         \
        }                                                                                                    \
    }

#define HALF_PRODUCT(T, bits, hi) ((hi) ? (T)((u128)a * b >> (bits)) : (T)(a * b))
#define SIGNED_HIGH(bits)         (uint##bits##_t)((s128)(int##bits##_t)a * (int##bits##_t)b >> (bits))

#define CARRY_SET(bits)                                                                                      \
    CARRY_CHAIN(add_cc_##bits, uint##bits##_t, bits, a + b, false, true)                                     \
    CARRY_CHAIN(addc_##bits, uint##bits##_t, bits, a + b + in, true, false)                                  \
    CARRY_CHAIN(addc_cc_##bits, uint##bits##_t, bits, a + b + in, true, true)                                \
    CARRY_CHAIN(sub_cc_##bits, uint##bits##_t, bits, a + (uint##bits##_t) ~b + 1, false, true)               \
    CARRY_CHAIN(subc_##bits, uint##bits##_t, bits, a + (uint##bits##_t) ~b + in, true, false)                \
    CARRY_CHAIN(subc_cc_##bits, uint##bits##_t, bits, a + (uint##bits##_t) ~b + in, true, true)              \
    CARRY_CHAIN(mad_lo_cc_##bits, uint##bits##_t, bits,                                                      \
                (u128)HALF_PRODUCT(uint##bits##_t, bits, false) + z[i], false, true)                         \
    CARRY_CHAIN(madc_lo_##bits, uint##bits##_t, bits,                                                        \
                (u128)HALF_PRODUCT(uint##bits##_t, bits, false) + z[i] + in, true, false)                    \
    CARRY_CHAIN(madc_lo_cc_##bits, uint##bits##_t, bits,                                                     \
                (u128)HALF_PRODUCT(uint##bits##_t, bits, false) + z[i] + in, true, true)                     \
    CARRY_CHAIN(mad_hi_cc_u##bits, uint##bits##_t, bits,                                                     \
                (u128)HALF_PRODUCT(uint##bits##_t, bits, true) + z[i], false, true)                          \
    CARRY_CHAIN(madc_hi_u##bits, uint##bits##_t, bits,                                                       \
                (u128)HALF_PRODUCT(uint##bits##_t, bits, true) + z[i] + in, true, false)                     \
    CARRY_CHAIN(madc_hi_cc_u##bits, uint##bits##_t, bits,                                                    \
                (u128)HALF_PRODUCT(uint##bits##_t, bits, true) + z[i] + in, true, true)                      \
    CARRY_CHAIN(mad_hi_cc_s##bits, uint##bits##_t, bits, (u128)SIGNED_HIGH(bits) + z[i], false, true)        \
    CARRY_CHAIN(madc_hi_s##bits, uint##bits##_t, bits, (u128)SIGNED_HIGH(bits) + z[i] + in, true, false)     \
    CARRY_CHAIN(madc_hi_cc_s##bits, uint##bits##_t, bits, (u128)SIGNED_HIGH(bits) + z[i] + in, true, true)
CARRY_SET(32)
CARRY_SET(64)

#define CARRY_TYPES(name)                                                                                    \
    TYPES(name) = {[EMU_U32] = name##_32, [EMU_S32] = name##_32, [EMU_U64] = name##_64, [EMU_S64] = name##_64}
#define CARRY_TYPES_SIGNED(name)                                                                             \
    TYPES(name) = {                                                                                          \
        [EMU_U32] = name##_u32, [EMU_S32] = name##_s32, [EMU_U64] = name##_u64, [EMU_S64] = name##_s64}
CARRY_TYPES(add_cc);
CARRY_TYPES(addc);
CARRY_TYPES(addc_cc);
CARRY_TYPES(sub_cc);
CARRY_TYPES(subc);
CARRY_TYPES(subc_cc);
CARRY_TYPES(mad_lo_cc);
CARRY_TYPES(madc_lo);
CARRY_TYPES(madc_lo_cc);
CARRY_TYPES_SIGNED(mad_hi_cc);
CARRY_TYPES_SIGNED(madc_hi);
CARRY_TYPES_SIGNED(madc_hi_cc);

static const emu_row rows[] = {
    {"add", "@int", "=t t t", .by_type = add},
    {"add", "sat t:s32", "=t t t", .run = add_sat},
    {"add", "t:u16x2|s16x2", "=x x x", 80, 90, .run = add_x2},
    {"add", "cc @int32_64", "=t t t", .by_type = add_cc},
    {"addc", "@int32_64", "=t t t", .by_type = addc},
    {"addc", "cc @int32_64", "=t t t", .by_type = addc_cc},
    {"sub", "@int", "=t t t", .by_type = sub},
    {"sub", "sat t:s32", "=t t t", .run = sub_sat},
    {"sub", "cc @int32_64", "=t t t", .by_type = sub_cc},
    {"subc", "@int32_64", "=t t t", .by_type = subc},
    {"subc", "cc @int32_64", "=t t t", .by_type = subc_cc},
    {"mul", "lo @int", "=t t t", .pick = pick_mul_lo},
    {"mul", "hi @int", "=t t t", .by_type = mul_hi},
    {"mul", "wide t:u16|u32|s16|s32", "=w t t", .by_type = mul_wide},
    {"mad", "lo @int", "=t t t t", .pick = pick_mad_lo},
    {"mad", "hi @int", "=t t t t", .by_type = mad_hi},
    {"mad", "hi sat t:s32", "=t t t t", .run = mad_hi_sat},
    {"mad", "wide t:u16|u32|s16|s32", "=w t t w", .by_type = mad_wide},
    {"mad", "lo cc @int32_64", "=t t t t", .by_type = mad_lo_cc},
    {"mad", "hi cc @int32_64", "=t t t t", .by_type = mad_hi_cc},
    {"madc", "lo @int32_64", "=t t t t", .by_type = madc_lo},
    {"madc", "hi @int32_64", "=t t t t", .by_type = madc_hi},
    {"madc", "lo cc @int32_64", "=t t t t", .by_type = madc_lo_cc},
    {"madc", "hi cc @int32_64", "=t t t t", .by_type = madc_hi_cc},
    {"mul24", "lo @int32", "=t t t", .by_type = mul24_lo},
    {"mul24", "hi @int32", "=t t t", .by_type = mul24_hi},
    {"mad24", "lo @int32", "=t t t t", .by_type = mad24_lo},
    {"mad24", "hi @int32", "=t t t t", .by_type = mad24_hi},
    {"mad24", "hi sat t:s32", "=t t t t", .run = mad24_hi_sat},
    {"sad", "@int", "=t t t t", .by_type = sad},
    {"div", "@int", "=t t t", .by_type = div},
    {"rem", "@int", "=t t t", .by_type = rem},
    {"abs", "@signed", "=t t", .by_type = abs_int},
    {"neg", "@signed", "=t t", .by_type = neg_int},
    {"min", "@int", "=t t t", .by_type = min},
    {"max", "@int", "=t t t", .by_type = max},
    {"min", "relu t:s32", "=t t t", 80, 90, .run = min_relu},
    {"max", "relu t:s32", "=t t t", 80, 90, .run = max_relu},
    {"min", "t:u16x2|s16x2", "=x x x", 80, 90, .by_type = min_x2},
    {"max", "t:u16x2|s16x2", "=x x x", 80, 90, .by_type = max_x2},
    {"min", "relu t:s16x2", "=x x x", 80, 90, .run = min_relu_s16x2},
    {"max", "relu t:s16x2", "=x x x", 80, 90, .run = max_relu_s16x2},
    {"dp4a", "t:u32|s32 s:u32|s32", "=u32 b32 b32 u32", 50, 61, .pick = pick_dp4a},
    {"dp2a", "m:lo|hi t:u32|s32 s:u32|s32", "=u32 b32 b32 u32", 50, 61, .pick = pick_dot},
};

EXPORT_ROWS(emu_rows_integer);
