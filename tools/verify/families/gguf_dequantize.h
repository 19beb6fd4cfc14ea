/* Dequantises GGUF's quantised blocks: a tensor, or some of its rows. */
#ifndef VERIFY_GGUF_DEQUANTIZE_H
#define VERIFY_GGUF_DEQUANTIZE_H

#include "families.h"
#include "gguf_blocks.h"

/* Expects the elements of `packed`, which holds whole blocks, in `out`. */
void gguf_expect(const gguf_format *f, problem *p);

#endif
