/* gguf_dequantize for Q4_K alone. */
#include "gguf_dequantize.h"
#include <kiln/author/families.h>

static void emit_dequantize(ptx_fn *f, const kiln_variant *v)
{
    dequantize_emit(f, format_named("q4_k"), kiln_type(v, "type"), kiln_has_sm(v, 80), false);
}

static const kiln_param params[] = {
    {.name = "type",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_CONTRACT,
     .words = "f32 f16 bf16",
     .default_value = "f32",
     .summary = "element type of the tensor"},
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"packed", KILN_ARG_IN, "u8", "n / 256 * 144", 16, NULL,
     "super-blocks of 144 bytes, as a GGUF file has them"},
    {"out", KILN_ARG_OUT, "$type", "n", 16, NULL,
     "d * scale * code - dmin * minimum, rounded to f32, then to the type"},
    {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"n % 256 == 0", "n must be a multiple of 256"},
    {"n <= 1099511627776", "n must be at most 2^40"},
    {NULL, NULL},
};

const kiln_family q4k_dequantize_family = {
    .name = "q4k_dequantize",
    .summary = "turn GGUF Q4_K super-blocks back into a tensor",
    .source = "GGUF's Q4_K, as the Python package gguf decodes it",
    .accuracy =
        "bit for bit d * scale * code - dmin * minimum, computed exactly, rounded to f32 and then to the type",
    .nonfinite =
        "IEEE arithmetic: an infinite d gives a NaN where scale or code is 0; f16 overflows to infinity",
    .params = params,
    .args = args,
    .rules = rules,
    .empty = "n == 0",
    .shape = dequantize_shape,
    .grid = {DEQUANTIZE_GRID},
    .cost = {.bytes_read = "n / 256 * 144",
             .bytes_written = "n * select(type == f32, 4, 2)",
             .elements = "n"},
    .min_sm = 75,
    .emit = emit_dequantize,
};
