/* Between f32 and the 16-bit types, on targets with and without the conversions. */
#ifndef DEVICE_NARROW_H
#define DEVICE_NARROW_H

#include <kiln/author/ptx.h>

/* Prepares a store of one element: converts *x, of type `wide`, and retypes *at. */
void narrow_value(ptx_fn *f, ptx_type type, ptx_type wide, ptx_val *x, ptx_val *at);

/* Stores an element, of type `wide`, if it is in bounds. */
void narrow_store_where(ptx_fn *f, ptx_type type, ptx_type wide, ptx_val at, ptx_val x, ptx_val in_bounds);

/* Converts two f32 to F16 or BF16 in a word, U32, the first in its lower half. */
ptx_val narrow_pair(ptx_fn *f, ptx_type type, ptx_val low, ptx_val high);

/* Stores `count` neighbouring elements, from F32 where the type is F16 or BF16. */
void narrow_store(ptx_fn *f, ptx_type type, uint32_t count, ptx_val at, const ptx_val x[], int hints);

/* Widens the two F16 or BF16 of a word to F32. */
void widen_pair(ptx_fn *f, ptx_type type, ptx_val word, ptx_val x[2]);

/* Widens `count` words: to F32 if they hold two F16 or BF16 each; F32 and F64 are unchanged. */
void widen_words(ptx_fn *f, ptx_type type, uint32_t count, const ptx_val words[], ptx_val x[]);

/* Loads an F32, F16 or BF16 element as F32. */
ptx_val widen_load(ptx_fn *f, ptx_type type, ptx_val at);

/* Loads an element, also F64, if it is in bounds; else returns `otherwise`, in memory's type: for F16 also a U16, for BF16 a
 * U32. */
ptx_val widen_load_where(ptx_fn *f, ptx_type type, ptx_val at, ptx_val in_bounds, ptx_val otherwise,
                         int hints);

#endif
