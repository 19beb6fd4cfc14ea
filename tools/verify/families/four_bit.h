/* The 4-bit formats int4 and nf4. A group has numbers: its scale and, in asymmetric int4, its zero.
 *
 * int4 symmetric: scale = max(|x|, 1e-12) / 7, x' = (code - 8) * scale. int4 asymmetric: scale = max(largest -
 * smallest, 1e-12) / 15, zero = -smallest / scale, x' = (code - zero) * scale. The zero is not rounded to an integer.
 * A code of int4 is x / scale, plus the zero, rounded to nearest even. nf4: scale = max(|x|, 1e-12), x' = table[code]
 * * scale; nf4.h has the table and the codes.
 */
#ifndef VERIFY_FOUR_BIT_H
#define VERIFY_FOUR_BIT_H

#include "families.h"

typedef struct four_bit_format {
    double range;         /* a group's range, divided by its scale */
    bool has_zero;        /* the range is largest - smallest; otherwise the largest magnitude */
    const double *levels; /* each code's value divided by its scale; null: integers */
} four_bit_format;
extern const four_bit_format four_bit_int4_sym, four_bit_int4_asym, four_bit_nf4;

typedef struct four_bit_numbers {
    double scale, zero; /* zero: only if the format has one */
} four_bit_numbers;

/* Returns the numbers of elements [first, last) of an array. NaNs are ignored; if all elements are NaNs the zero
 * is a NaN. */
four_bit_numbers four_bit_numbers_of(const four_bit_format *f, const argument *in, uint64_t first,
                                     uint64_t last);

#endif
