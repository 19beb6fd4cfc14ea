/* GGUF's quantised blocks back to a tensor, and rows of one. */
#ifndef VERIFY_GGUF_DEQUANTIZE_H
#define VERIFY_GGUF_DEQUANTIZE_H

#include "families.h"

extern const family_row gguf_dequantize_row, gguf_rows_row;

#endif
