/* Integer arithmetic of every width. */
#include "device.h"

KERNEL(int_arithmetic, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = (a[i] + b[i]) ^ (a[i] - b[i]) ^ (a[i] * b[i]) ^ (~a[i] & b[i]);
}

KERNEL(int_divide_signed, int32_t, int32_t, int32_t)
{
    EACH(i);
    bool overflows = a[i] == INT32_MIN && b[i] == -1;
    out[i] = b[i] == 0 ? -1 : overflows ? a[i] : a[i] / b[i];
}

KERNEL(int_remainder_signed, int32_t, int32_t, int32_t)
{
    EACH(i);
    bool overflows = a[i] == INT32_MIN && b[i] == -1;
    out[i] = b[i] == 0 ? a[i] : overflows ? 0 : a[i] % b[i];
}

KERNEL(int_divide_unsigned, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = b[i] ? a[i] / b[i] + (a[i] % b[i] << 3) : 0xffffffffu;
}

/* Multiplications by reciprocals, and shifts that round towards zero. */
KERNEL(int_divide_constants, int32_t, int32_t, uint32_t)
{
    EACH(i);
    uint32_t q = (uint32_t)(a[i] / 7) + (uint32_t)(a[i] / -10) + (uint32_t)(a[i] / 16) + (uint32_t)(a[i] % 8);
    out[i] = (int32_t)(q + b[i] / 641 + b[i] % 1000 + b[i] / 3);
}

KERNEL(int_multiply_high, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = __umulhi(a[i], b[i]) ^ (uint32_t)__mulhi((int32_t)a[i], (int32_t)b[i]);
}

KERNEL(int_multiply_wide, u64, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = (u64)a[i] * b[i] + (u64)((s64)(int32_t)a[i] * (int32_t)b[i]);
}

KERNEL(int_multiply_24, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = __umul24(a[i], b[i]) + (uint32_t)__mul24((int32_t)a[i], (int32_t)b[i]);
}

KERNEL(int_shift, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t by = b[i] & 31;
    out[i] = (a[i] << by) ^ (a[i] >> by) ^ (uint32_t)((int32_t)a[i] >> by);
}

KERNEL(int_rotate, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t by = b[i] & 31;
    out[i] = (a[i] << by | a[i] >> ((32 - by) & 31)) + (a[i] << 13 | a[i] >> 19);
}

KERNEL(int_funnel_shift, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t by = b[i] & 63;
    out[i] = __funnelshift_l(a[i], b[i], by) + 3 * __funnelshift_r(a[i], b[i], by) +
             5 * __funnelshift_lc(a[i], b[i], by) + 7 * __funnelshift_rc(a[i], b[i], by);
}

KERNEL(int_count_bits, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = (uint32_t)__popc(a[i]) | (uint32_t)__clz(a[i]) << 8 | (uint32_t)__ffs((int)a[i]) << 16;
}

KERNEL(int_reverse_bits, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = __brev(a[i]) ^ __byte_perm(a[i], b[i], 0x0123);
}

KERNEL(int_permute_bytes, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = __byte_perm(a[i], b[i], b[i] & 0x7777) ^ __byte_perm(a[i], b[i], 0x5410);
}

KERNEL(int_absolute_difference, uint32_t, int32_t, int32_t)
{
    EACH(i);
    out[i] = (uint32_t)__sad(a[i], b[i], i) ^ __usad((uint32_t)a[i], (uint32_t)b[i], i);
}

KERNEL(int_extremes, uint32_t, int32_t, int32_t)
{
    EACH(i);
    int32_t low = a[i] < b[i] ? a[i] : b[i], high = a[i] > b[i] ? a[i] : b[i];
    uint32_t ua = (uint32_t)a[i], ub = (uint32_t)b[i];
    uint32_t magnitude = a[i] < 0 ? 0u - ua : ua;
    out[i] = (uint32_t)low + 3 * (uint32_t)high + 5 * (ua < ub ? ua : ub) + 7 * magnitude;
}

KERNEL(int_dot_signed, int32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = dp4a_signed(a[i], b[i], i);
}

KERNEL(int_dot_unsigned, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    out[i] = dp4a_unsigned(a[i], b[i], a[i]);
}

KERNEL(int_bytes, uint8_t, uint8_t, uint8_t)
{
    EACH(i);
    uint8_t sum = (uint8_t)(a[i] + b[i]), product = (uint8_t)(a[i] * b[i]);
    int8_t quotient = (int8_t)(b[i] ? (int8_t)a[i] / (int32_t)b[i] : 0);
    out[i] = (uint8_t)(sum ^ product ^ (uint8_t)quotient ^ (a[i] >> (b[i] & 7)));
}

KERNEL(int_saturate_bytes, uint8_t, int16_t, uint8_t)
{
    EACH(i);
    int32_t v = a[i] + b[i];
    out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

KERNEL(int_halfwords, uint16_t, int16_t, int16_t)
{
    EACH(i);
    uint16_t product = (uint16_t)((uint32_t)(uint16_t)a[i] * (uint16_t)b[i]);
    uint16_t shifted = (uint16_t)(a[i] >> (b[i] & 15));
    out[i] = (uint16_t)(product + shifted + (uint16_t)(b[i] ? a[i] / b[i] : 0));
}

KERNEL(int_wide_arithmetic, u64, u64, u64)
{
    EACH(i);
    out[i] = (a[i] + b[i]) ^ (a[i] - b[i]) ^ (a[i] * b[i]) ^ (a[i] << (b[i] & 63)) ^
             (u64)((s64)a[i] >> (b[i] & 63)) ^ (a[i] >> (b[i] >> 8 & 63));
}

KERNEL(int_wide_divide_unsigned, u64, u64, u64)
{
    EACH(i);
    out[i] = b[i] ? a[i] / b[i] + (a[i] % b[i] << 7) : ~0ull;
}

KERNEL(int_wide_divide_signed, s64, s64, s64)
{
    EACH(i);
    bool overflows = a[i] == INT64_MIN && b[i] == -1;
    out[i] = b[i] == 0 ? -1 : overflows ? a[i] : a[i] / b[i] - a[i] % b[i];
}

KERNEL(int_wide_multiply_high, u64, u64, u64)
{
    EACH(i);
    out[i] = __umul64hi(a[i], b[i]) ^ (u64)__mul64hi((s64)a[i], (s64)b[i]);
}

KERNEL(int_wide_bits, u64, u64, u64)
{
    EACH(i);
    u64 counts = (u64)__popcll(a[i]) | (u64)__clzll((s64)a[i]) << 8 | (u64)__ffsll((s64)a[i]) << 16;
    out[i] = counts ^ __brevll(b[i]);
}

/* 128-bit addition and multiplication by halves: the carries of compilers. */
KERNEL(int_carry, u64, u64, u64)
{
    EACH(i);
    u64 low = a[i] + b[i], carry = low < a[i];
    u64 high = (a[i] ^ b[i]) + b[i / 2] + carry;
    u64 product_low = low * high, product_high = __umul64hi(low, high);
    out[i] = product_low ^ (product_high << 1) ^ carry;
}

union fields {
    uint32_t whole;
    struct {
        uint32_t low : 5, middle : 11, high : 16;
    } part;
};

KERNEL(int_bit_fields, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    union fields f;
    f.whole = a[i];
    f.part.middle = (f.part.middle + b[i]) & 0x7ff;
    f.part.high = (f.part.high ^ f.part.low) & 0xffff;
    int32_t extended = (int32_t)(a[i] << 9) >> 20;
    out[i] = f.whole + (uint32_t)extended;
}

KERNEL(int_hash, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t h = a[i] ^ b[i] * 0x9e3779b9u;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    out[i] = h ^ h >> 16;
}

KERNEL(int_crc32, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t crc = ~0u;
    for (uint32_t byte = 0; byte < 8; byte++) {
        crc ^= (byte < 4 ? a[i] : b[i]) >> 8 * (byte & 3) & 0xff;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    out[i] = ~crc;
}

KERNEL(int_greatest_divisor, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t x = a[i], y = b[i];
    while (y) {
        uint32_t r = x % y;
        x = y;
        y = r;
    }
    out[i] = x;
}

KERNEL(int_power_modulo, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    u64 base = a[i] % 1000003, result = 1;
    for (uint32_t e = b[i]; e; e >>= 1) {
        if (e & 1)
            result = result * base % 1000003;
        base = base * base % 1000003;
    }
    out[i] = (uint32_t)result;
}

KERNEL(int_square_root, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t x = a[i], root = 0;
    for (uint32_t bit = 1u << 30; bit; bit >>= 2) {
        bool fits = x >= root + bit;
        x -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    out[i] = root;
}

KERNEL(int_decimal_digits, uint32_t, u64, u64)
{
    EACH(i);
    uint32_t digits = 0, sum = 0;
    u64 x = a[i];
    do {
        sum += (uint32_t)(x % 10);
        x /= 10;
        digits++;
    } while (x);
    out[i] = digits << 16 | sum;
}
