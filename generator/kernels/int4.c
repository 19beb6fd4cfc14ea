/* INT4: 4-bit integers with a scale per group (symmetric), or a scale and a zero (asymmetric). */
#include "quant_family.h"
#include <kiln/author/families.h>

#define MODE_PARAM                                                                                           \
    QUANT_PARAM("mode", "sym asym", "1 2", "sym",                                                            \
                "sym: x = (code - 8) * scale; asym: x = (code - zero) * scale")
#define NUMBERS_BYTES "select(mode == asym, 2, 1) * " QUANT_NUMBER_BYTES
#define SOURCE        "round to nearest with a scale per group, as in GPTQ's and AWQ's baselines"
/* For entries that make codes or scales. */
#define NONFINITE                                                                                            \
    "a NaN does not change its group's scale. A group of NaNs alone has the least scale, and a NaN as "      \
    "its zero. An infinity makes the scale infinite, and so does a range (asym) that overflows. Minus "      \
    "infinity makes the zero a NaN. But equal elements have no range (asym), and equal infinities have "     \
    "none either: their scale is the least one. Their zero is infinite beyond 1e25 (f32), which "            \
    "restores an infinity. What is a NaN before it is rounded gets code 0: a NaN, an infinite element "      \
    "divided by an infinite scale, every element of a group with such a zero"
#define UNPACK_NONFINITE "IEEE arithmetic: 0 times an infinite scale is a NaN"
#define SCALE_SUMMARY                                                                                        \
    "scale of each group; sym: max(largest magnitude, 1e-12) / 7; asym: max(largest - smallest, 1e-12) / 15"

static const kiln_param params[] = {
    QUANT_TYPE_PARAM, MODE_PARAM, QUANT_GROUP_PARAM, QUANT_NIBBLES_PARAM, {.name = NULL}};
static const kiln_param scale_params[] = {QUANT_TYPE_PARAM, MODE_PARAM, QUANT_GROUP_PARAM, {.name = NULL}};

static const kiln_rule rules[] = {QUANT_RULES, {NULL, NULL}};

static quant_coder coder_of(const kiln_variant *v)
{
    return kiln_is(v, "mode", "asym") ? QUANT_INT4_ASYM : QUANT_INT4_SYM;
}

/* ---- scale -------------------------------------------------------------------------------------------------------- */

static void emit_scale(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_scale(f, v, coder_of(v));
}

static const kiln_arg scale_args[] = {
    QUANT_IN_ARG, QUANT_SCALE_ARG(KILN_ARG_OUT, SCALE_SUMMARY),
    QUANT_ZERO_ARG(KILN_ARG_OUT, "zero of each group: (0 - smallest) / scale, not rounded"), QUANT_SIZE_ARGS};

const kiln_family int4_scale_family = {
    .name = "int4_scale",
    .summary = "compute the scale, and for asym the zero, of each INT4 group",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = scale_params,
    .args = scale_args,
    QUANT_LAUNCH(quant_shape, QUANT_SHARES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES, .bytes_written = NUMBERS_BYTES, .elements = "n"},
    .emit = emit_scale,
};

/* ---- pack --------------------------------------------------------------------------------------------------------- */

static void emit_pack(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_pack(f, v, coder_of(v));
}

static const kiln_arg pack_args[] = {QUANT_IN_ARG, QUANT_SCALE_ARG(KILN_ARG_IN, "scale of each group"),
                                     QUANT_ZERO_ARG(KILN_ARG_IN, "zero of each group"), QUANT_PACKED_OUT,
                                     QUANT_SIZE_ARGS};

const kiln_family int4_pack_family = {
    .name = "int4_pack",
    .summary = "quantise a tensor to INT4 codes with given scales and zeros",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = params,
    .args = pack_args,
    QUANT_LAUNCH(quant_coding_shape, QUANT_TILES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES " + " NUMBERS_BYTES,
             .bytes_written = QUANT_PACKED_BYTES,
             .elements = "n"},
    .emit = emit_pack,
};

/* ---- quantize ----------------------------------------------------------------------------------------------------- */

static void emit_quantize(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_quantize(f, v, coder_of(v));
}

static const kiln_arg quantize_args[] = {
    QUANT_IN_ARG, QUANT_SCALE_ARG(KILN_ARG_OUT, SCALE_SUMMARY),
    QUANT_ZERO_ARG(KILN_ARG_OUT, "zero of each group: (0 - smallest) / scale, not rounded"), QUANT_PACKED_OUT,
    QUANT_SIZE_ARGS};

const kiln_family int4_quantize_family = {
    .name = "int4_quantize",
    .summary = "quantise a tensor to INT4 in groups: scales, zeros and packed codes, in one read",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = params,
    .args = quantize_args,
    QUANT_LAUNCH(quant_coding_shape, QUANT_SHARES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES,
             .bytes_written = QUANT_PACKED_BYTES " + " NUMBERS_BYTES,
             .elements = "n"},
    .emit = emit_quantize,
};

/* ---- unpack ------------------------------------------------------------------------------------------------------- */

static void emit_unpack(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_unpack(f, v, coder_of(v));
}

static const kiln_arg unpack_args[] = {
    QUANT_PACKED_IN, QUANT_SCALE_ARG(KILN_ARG_IN, "scale of each group"),
    QUANT_ZERO_ARG(KILN_ARG_IN, "zero of each group"),
    QUANT_OUT_ARG("(code - 8, or code - zero) * scale, rounded after each step"), QUANT_SIZE_ARGS};

const kiln_family int4_unpack_family = {
    .name = "int4_unpack",
    .summary = "turn INT4 codes, scales and zeros back into a tensor",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = UNPACK_NONFINITE,
    .params = params,
    .args = unpack_args,
    QUANT_LAUNCH(quant_shape, QUANT_TILES),
    .cost = {.bytes_read = QUANT_PACKED_BYTES " + " NUMBERS_BYTES,
             .bytes_written = QUANT_TENSOR_BYTES,
             .elements = "n"},
    .emit = emit_unpack,
};
