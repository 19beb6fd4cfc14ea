/* Between f32 and the 16-bit types, on targets with and without the conversions. */
#ifndef DEVICE_NARROW_H
#define DEVICE_NARROW_H

#include <kiln/author/ptx.h>

/* Before a store of one element: makes *x, of type `wide`, the value, and has *at take it. */
void narrow_value(ptx_fn *f, ptx_type type, ptx_type wide, ptx_val *x, ptx_val *at);

/* Stores an element, of type `wide`, where it is in bounds. */
void narrow_store_where(ptx_fn *f, ptx_type type, ptx_type wide, ptx_val at, ptx_val x, ptx_val in_bounds);

/* Two f32 to two F16 or BF16 as a word of memory, U32, the first in its lower half. */
ptx_val narrow_pair(ptx_fn *f, ptx_type type, ptx_val low, ptx_val high);

/* Stores `count` neighbouring elements, from F32 where the type is F16 or BF16. */
void narrow_store(ptx_fn *f, ptx_type type, uint32_t count, ptx_val at, const ptx_val x[], int hints);

/* The two F16 or BF16 of a word of memory as F32. */
void widen_pair(ptx_fn *f, ptx_type type, ptx_val word, ptx_val x[2]);

/* `count` words as elements: F32 of two F16 or BF16 each; F32 and F64 are as they are. */
void widen_words(ptx_fn *f, ptx_type type, uint32_t count, const ptx_val words[], ptx_val x[]);

/* An element as F32, of a pointer to F32, F16 or BF16. */
ptx_val widen_load(ptx_fn *f, ptx_type type, ptx_val at);

/* The same, also of F64, where it is in bounds; else `otherwise`, which is as memory has it: of F16 a U16 too, of BF16 a U32. */
ptx_val widen_load_where(ptx_fn *f, ptx_type type, ptx_val at, ptx_val in_bounds, ptx_val otherwise,
                         int hints);

#endif
