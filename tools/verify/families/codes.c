#include "codes.h"

#include <math.h>

static double e4m3_value(unsigned code)
{
    const int exponent = (int)code >> 3, fraction = (int)code & 7;
    return exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
}

/* Returns the nearest magnitude's code; on a tie the even one. */
static unsigned e4m3_nearest(double magnitude)
{
    unsigned code = 0;
    while (code < CODES_E4M3_LARGEST) {
        const double below = magnitude - e4m3_value(code), above = e4m3_value(code + 1) - magnitude;
        if (below < above || (below == above && code % 2 == 0))
            break;
        code++;
    }
    return code;
}

double codes_decode(bool is_e4m3, unsigned byte)
{
    const unsigned magnitude = byte & (CODES_SIGN - 1);
    if (!is_e4m3)
        return (double)byte - (byte & CODES_SIGN ? 256 : 0);
    const double value = magnitude == CODES_E4M3_NAN ? NAN : e4m3_value(magnitude);
    return byte & CODES_SIGN ? -value : value;
}

int codes_encode(bool is_e4m3, double q)
{
    if (isnan(q))
        return is_e4m3 ? CODES_E4M3_NAN : 0;
    if (!is_e4m3)
        return (int)rint(fmin(fmax(q, -128), 127));
    const int code = (int)e4m3_nearest(fabs(q));
    return signbit(q) ? code - CODES_SIGN : code;
}
