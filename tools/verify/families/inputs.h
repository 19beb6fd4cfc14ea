/* Makers of float inputs that every family uses. */
#ifndef VERIFY_INPUTS_H
#define VERIFY_INPUTS_H

#include "families.h"

typedef enum input_kind {
    INPUT_NORMAL,  /* mean 0, deviation 1 */
    INPUT_UNIFORM, /* in [-1, 1) */
    INPUT_REAL, /* the numbers given to inputs_set_real, from a random place on; normal when there are none */
    INPUT_DENORMAL,    /* up to 64 times the smallest positive value, both signs */
    INPUT_LARGEST,     /* the largest finite magnitude, and random shares of it */
    INPUT_ZERO,        /* both zeros */
    INPUT_EQUAL,       /* one random number everywhere */
    INPUT_ALTERNATING, /* x, -x, x, ... */
    INPUT_HUGE_TINY,   /* one number in 41 of 2^12, the others of 2^-12 */
    INPUT_SPREAD,      /* all magnitudes alike, from the smallest to 2^-10 of the root of the largest */
    INPUT_ANY_BITS,    /* all finite bit patterns alike */
    INPUT_NONFINITE    /* normal, one in 16 a NaN or an infinity */
} input_kind;

void inputs_fill(argument *a, input_kind kind, random_stream s);

/* Random bytes. */
void inputs_fill_bytes(argument *a, random_stream s);

/* Numbers of a real model for INPUT_REAL; they must stay where they are. */
void inputs_set_real(const float *numbers, size_t count);

#endif
