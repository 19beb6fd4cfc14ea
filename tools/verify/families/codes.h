/* 8-bit codes: e4m3 (OCP 8-bit floating point 1.0), and signed bytes. */
#ifndef VERIFY_CODES_H
#define VERIFY_CODES_H

#include <stdbool.h>

enum { CODES_E4M3_LARGEST = 0x7e, CODES_E4M3_NAN = 0x7f, CODES_SIGN = 0x80 };

double codes_decode(bool is_e4m3, unsigned byte);

/* Returns the nearest code as a signed byte: ties to even, clamped; a NaN is 0x7f, or 0 for signed bytes. */
int codes_encode(bool is_e4m3, double value);

#endif
