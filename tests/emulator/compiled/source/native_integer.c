/* Integer instructions that C has no operator for (ISA 9.7.1, 9.7.8). */
#include "device.h"

uint32_t __brev(uint32_t x)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 32; i++)
        r |= (x >> i & 1) << (31 - i);
    return r;
}

u64 __brevll(u64 x)
{
    return (u64)__brev((uint32_t)x) << 32 | __brev((uint32_t)(x >> 32));
}

uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    u64 bytes = (u64)b << 32 | a;
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++)
        r |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}

uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t by)
{
    return (uint32_t)((((u64)high << 32 | low) << (by & 31)) >> 32);
}

uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t by)
{
    return (uint32_t)(((u64)high << 32 | low) >> (by & 31));
}

uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t by)
{
    return by >= 32 ? low : __funnelshift_l(low, high, by);
}

uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t by)
{
    return by >= 32 ? high : __funnelshift_r(low, high, by);
}

int32_t dp4a_signed(uint32_t a, uint32_t b, uint32_t c)
{
    for (unsigned i = 0; i < 32; i += 8)
        c += (uint32_t)((int8_t)(a >> i) * (int8_t)(b >> i));
    return (int32_t)c;
}

uint32_t dp4a_unsigned(uint32_t a, uint32_t b, uint32_t c)
{
    for (unsigned i = 0; i < 32; i += 8)
        c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}
