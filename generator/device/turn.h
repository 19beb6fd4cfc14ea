/* Sine and cosine of a fraction of a turn. */
#ifndef DEVICE_TURN_H
#define DEVICE_TURN_H

#include <kiln/author/ptx.h>

/* Of an angle of turn * 2^-64 full turns, U64, so that angles wrap as they should. F32, each within 2^-22 of the exact one. */
typedef struct turn_values {
    ptx_val cosine, sine;
} turn_values;

turn_values turn_evaluate(ptx_fn *f, ptx_val turn);

#endif
