/* GGUF's quantised blocks back to a tensor, for the families of all formats and of one. */
#ifndef KERNELS_GGUF_DEQUANTIZE_H
#define KERNELS_GGUF_DEQUANTIZE_H

#include <kiln/author/family.h>

#include "device/format.h"

enum { DEQUANTIZE_WARPS = 8, DEQUANTIZE_TILE = 2048 /* elements of a warp */ };

#define DEQUANTIZE_GRID "ceil_div(n, 16384)"

/* Emits the kernel with parameters packed, out, n; with `by_index` packed, index, out, tensor_rows, n, k. */
void dequantize_emit(ptx_fn *f, const weight_format *format, ptx_type type, bool has_sm_80, bool by_index);
void dequantize_shape(kiln_shape *s, const kiln_variant *v);

#endif
