/* GGUF's quantised blocks back to a tensor, and rows of one. */
#ifndef VERIFY_GGUF_DEQUANTIZE_H
#define VERIFY_GGUF_DEQUANTIZE_H

#include "families.h"
#include "gguf_blocks.h"

extern const family_row gguf_dequantize_row, gguf_rows_row;

/* Expects the whole blocks of `packed`, as elements, in `out`. */
void gguf_expect(const gguf_format *f, problem *p);

#endif
