/* NF4: 4-bit NormalFloat quantisation in groups. */
#include "nf4_args.h"
#include "quant_family.h"
#include <kiln/author/families.h>

#define SOURCE "QLoRA (arXiv:2305.14314)"
/* For entries that make codes or scales. */
#define NONFINITE                                                                                            \
    "a NaN does not change its group's scale. A group of NaNs alone has the least scale. An infinity "       \
    "makes the scale infinite. A quotient that is a NaN gets code 0: that of a NaN, and of an infinite "     \
    "element divided by an infinite scale. A finite element divided by an infinite scale is 0"
#define UNPACK_NONFINITE "IEEE arithmetic: 0 times an infinite scale is a NaN"
#define SCALE_SUMMARY    "scale of each group: max(largest magnitude, 1e-12)"

static const kiln_param params[] = {QUANT_TYPE_PARAM, QUANT_GROUP_PARAM, QUANT_NIBBLES_PARAM, {.name = NULL}};
static const kiln_param scale_params[] = {QUANT_TYPE_PARAM, QUANT_GROUP_PARAM, {.name = NULL}};

static const kiln_rule rules[] = {QUANT_RULES, {NULL, NULL}};

/* ---- scale -------------------------------------------------------------------------------------------------------- */

static void emit_scale(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_scale(f, v, QUANT_NF4);
}

static const kiln_arg scale_args[] = {QUANT_IN_ARG, QUANT_SCALE_ARG(KILN_ARG_OUT, SCALE_SUMMARY),
                                      QUANT_SIZE_ARGS};

const kiln_family nf4_scale_family = {
    .name = "nf4_scale",
    .summary = "compute the scale of each NF4 group",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = scale_params,
    .args = scale_args,
    QUANT_LAUNCH(quant_shape, QUANT_SHARES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES, .bytes_written = QUANT_NUMBER_BYTES, .elements = "n"},
    .emit = emit_scale,
};

/* ---- pack --------------------------------------------------------------------------------------------------------- */

static void emit_pack(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_pack(f, v, QUANT_NF4);
}

static const kiln_arg pack_args[] = {QUANT_IN_ARG, QUANT_SCALE_ARG(KILN_ARG_IN, "scale of each group"),
                                     QUANT_PACKED_OUT, QUANT_SIZE_ARGS};

const kiln_family nf4_pack_family = {
    .name = "nf4_pack",
    .summary = "quantise a tensor to NF4 codes with given scales",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = params,
    .args = pack_args,
    QUANT_LAUNCH(quant_coding_shape, QUANT_TILES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES " + " QUANT_NUMBER_BYTES,
             .bytes_written = QUANT_PACKED_BYTES,
             .elements = "n"},
    .emit = emit_pack,
};

/* ---- quantize ----------------------------------------------------------------------------------------------------- */

static void emit_quantize(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_quantize(f, v, QUANT_NF4);
}

static const kiln_arg quantize_args[] = {QUANT_IN_ARG, QUANT_SCALE_ARG(KILN_ARG_OUT, SCALE_SUMMARY),
                                         QUANT_PACKED_OUT, QUANT_SIZE_ARGS};

const kiln_family nf4_quantize_family = {
    .name = "nf4_quantize",
    .summary = "quantise a tensor to NF4 in groups: scales and packed codes, in one read",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = params,
    .args = quantize_args,
    QUANT_LAUNCH(quant_coding_shape, QUANT_SHARES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES,
             .bytes_written = QUANT_PACKED_BYTES " + " QUANT_NUMBER_BYTES,
             .elements = "n"},
    .emit = emit_quantize,
};

/* ---- unpack ------------------------------------------------------------------------------------------------------- */

static void emit_unpack(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_unpack(f, v, QUANT_NF4);
}

/* clang-format off */
static const kiln_param unpack_params[] = {QUANT_TYPE_PARAM, QUANT_GROUP_PARAM, QUANT_NIBBLES_PARAM, NF4_SCALE_TYPE_PARAM, {.name = NULL}};

static const kiln_arg unpack_args[] = {
    QUANT_PACKED_IN,
    {"scale", KILN_ARG_IN, QUANT_WIDE, QUANT_GROUPS, 4, "scale_type == f32", "scale of each group"},
    NF4_NESTED_ARGS(QUANT_GROUPS, "ceil_div(" QUANT_GROUPS ", 256)"),
    QUANT_OUT_ARG("value of the code times the scale of its group"),
    {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"},
    {"group_size", KILN_ARG_VALUE, "u64", NULL, 0, "group == any", "elements that share a scale; may exceed n"},
    NF4_NESTED_OFFSET,
    {.name = NULL}};

/* clang-format on */

static void unpack_shape(kiln_shape *s, const kiln_variant *v)
{
    quant_shape(s, v);
    kiln_require(s, kiln_is(v, "scale_type", "f32") || !kiln_is(v, "type", "f64"), "type scale_type",
                 "scale_type nested needs type f32, f16 or bf16");
}

const kiln_family nf4_unpack_family = {
    .name = "nf4_unpack",
    .summary = "turn NF4 codes and scales back into a tensor",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = UNPACK_NONFINITE,
    .params = unpack_params,
    .args = unpack_args,
    QUANT_LAUNCH(unpack_shape, QUANT_TILES),
    .cost = {.bytes_read = QUANT_PACKED_BYTES " + select(scale_type == f32, " QUANT_NUMBER_BYTES
                                              ", " NF4_NESTED_BYTES_READ(QUANT_GROUPS) ")",
             .bytes_written = QUANT_TENSOR_BYTES,
             .elements = "n"},
    .emit = emit_unpack,
};
