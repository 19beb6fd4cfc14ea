/* The families of the 4-bit quantisers: of int4 (integers with a scale per group, or with a scale and a zero) and of nf4
 * (NormalFloat with a scale per group) each a maker of scales, a packer, a quantiser that is both, and what goes back. */
#include "nf4_args.h"
#include "quant.h"
#include <kiln/author/families.h>

/* clang-format off */

/* ---- parameters --------------------------------------------------------------------------------------------------- */

#define TYPE  PARAM(WORD, CONTRACT, "type", "f32 f64 f16 bf16", "f32", "element type of the tensor that is not quantised")
#define MODE  PARAM(WORD, CONTRACT, "mode", "sym asym", "sym", \
                    "sym: x = (code - 8) * scale; asym: x = (code - zero) * scale", .numbers = "1 2")
#define GROUP PARAM(WORD, CONTRACT, "group", "32 64 128 256 any", "64", \
                    "elements that share a scale; any: as many as the argument group_size says, which is slower")

static const kiln_param int4_scale_params[] = {TYPE, MODE, GROUP, {.name = NULL}};
static const kiln_param int4_params[] = {TYPE, MODE, GROUP, NIBBLES_PARAM, {.name = NULL}};
static const kiln_param nf4_scale_params[] = {TYPE, GROUP, {.name = NULL}};
static const kiln_param nf4_params[] = {TYPE, GROUP, NIBBLES_PARAM, {.name = NULL}};
static const kiln_param nf4_unpack_params[] = {TYPE, GROUP, NIBBLES_PARAM, NF4_SCALE_TYPE_PARAM, {.name = NULL}};

/* ---- arguments ---------------------------------------------------------------------------------------------------- */

#define GROUPS "ceil_div(n, select(group == any, group_size, group))"
#define WIDE   "$type:f64:f32"

#define IN                {"in", KILN_ARG_IN, "$type", "n", 16, NULL, "the tensor, in memory order"}
#define OUT(text)         {"out", KILN_ARG_OUT, "$type", "n", 16, NULL, text}
#define PACKED(way, text) {"packed", KILN_ARG_##way, "u8", "ceil_div(n, 2)", 16, NULL, text}
#define SCALE(way, text)  {"scale", KILN_ARG_##way, WIDE, GROUPS, 4, NULL, text}
#define ZERO(way, text)   {"zero", KILN_ARG_##way, WIDE, GROUPS, 4, "mode == asym", text}
#define SIZES             {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"}, \
                          {"group_size", KILN_ARG_VALUE, "u64", NULL, 0, "group == any", "elements that share a scale; may exceed n"}

#define PACKED_IN       PACKED(IN, "two codes per byte")
#define PACKED_OUT      PACKED(OUT, "two codes per byte; for an odd n the last byte's second code is 0")
#define SCALE_GIVEN     SCALE(IN, "scale of each group")
#define ZERO_GIVEN      ZERO(IN, "zero of each group")
#define ZERO_MADE       ZERO(OUT, "zero of each group: (0 - smallest) / scale, not rounded")
#define INT4_SCALE_MADE SCALE(OUT, "scale of each group; sym: max(largest magnitude, 1e-12) / 7; asym: max(largest - smallest, 1e-12) / 15")
#define NF4_SCALE_MADE  SCALE(OUT, "scale of each group: max(largest magnitude, 1e-12)")

static const kiln_arg int4_scale_args[] = {IN, INT4_SCALE_MADE, ZERO_MADE, SIZES, {.name = NULL}};
static const kiln_arg int4_pack_args[] = {IN, SCALE_GIVEN, ZERO_GIVEN, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg int4_quantize_args[] = {IN, INT4_SCALE_MADE, ZERO_MADE, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg int4_unpack_args[] = {
    PACKED_IN, SCALE_GIVEN, ZERO_GIVEN, OUT("(code - 8, or code - zero) * scale, rounded after each step"), SIZES, {.name = NULL}};

static const kiln_arg nf4_scale_args[] = {IN, NF4_SCALE_MADE, SIZES, {.name = NULL}};
static const kiln_arg nf4_pack_args[] = {IN, SCALE_GIVEN, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg nf4_quantize_args[] = {IN, NF4_SCALE_MADE, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg nf4_unpack_args[] = {
    PACKED_IN, {"scale", KILN_ARG_IN, WIDE, GROUPS, 4, "scale_type == f32", "scale of each group"},
    NF4_NESTED_ARGS(GROUPS, "ceil_div(" GROUPS ", 256)"), OUT("value of the code times the scale of its group"), SIZES,
    NF4_NESTED_OFFSET, {.name = NULL}};

static const kiln_rule rules[] = {
    {"n <= 1099511627776", "n must be at most 2^40"},
    {"group != any || group_size >= 1", "group_size must be at least 1"},
    {NULL, NULL},
};

/* ---- launch and cost ---------------------------------------------------------------------------------------------- */

#define ELEMENT_BYTES "select(type == f64, 8, select(type == f32, 4, 2))"
#define TENSOR        ELEMENT_BYTES " * n"
#define CODES         "ceil_div(n, 2)"
#define NF4_NUMBERS   "select(type == f64, 8, 4) * " GROUPS
#define INT4_NUMBERS  "select(mode == asym, 2, 1) * " NF4_NUMBERS
#define NF4_STORED    "select(scale_type == f32, " NF4_NUMBERS ", " NF4_NESTED_BYTES_READ(GROUPS) ")"

/* A thread block has eight warps, each with a tile of 2 or 4 KB of the tensor (see quant_init). Where the group's size is
 * an argument and the entry makes scales, it has an even number of whole groups instead. */
#define TILE_BYTES  "select(group == any || ((type == f32 || type == f64) && (group == 128 || group == 256)), 4096, 2048)"
#define TILES       "ceil_div(n, 8 * (" TILE_BYTES " / " ELEMENT_BYTES "))"
#define LARGE_GROUP "select(type == f64, 1024, 2048)"
#define ANY_GROUPS  "select(min(group_size, n) < " LARGE_GROUP ", 2 * ceil_div(" LARGE_GROUP " / 2, min(group_size, n)), 2)"
#define SHARES      "select(group == any, ceil_div(n, min(group_size, n) * " ANY_GROUPS "), " TILES ")"

static void nf4_unpack_shape(kiln_shape *s, const kiln_variant *v)
{
    quant_shape(s, v);
    kiln_require(s, kiln_is(v, "scale_type", "f32") || !kiln_is(v, "type", "f64"), "type scale_type",
                 "scale_type nested needs type f32, f16 or bf16");
}

/* ---- the families ------------------------------------------------------------------------------------------------- */

#define ACCURACY \
    "bit for bit what a scalar program computes by the format's rules, with every operation rounded to " \
    "nearest even; for finite inputs, and as told below for others"
#define INT4_SOURCE "round to nearest with a scale per group, as in GPTQ's and AWQ's baselines"
#define NF4_SOURCE  "QLoRA (arXiv:2305.14314)"
#define INT4_NONFINITE \
    "a NaN does not change its group's scale. A group of NaNs alone has the least scale, and a NaN as " \
    "its zero. An infinity makes the scale infinite, and so does a range (asym) that overflows. Minus " \
    "infinity makes the zero a NaN. But equal elements have no range (asym), and equal infinities have " \
    "none either: their scale is the least one. Their zero is infinite beyond 1e25 (f32), which " \
    "restores an infinity. What is a NaN before it is rounded gets code 0: a NaN, an infinite element " \
    "divided by an infinite scale, every element of a group with such a zero"
#define NF4_NONFINITE \
    "a NaN does not change its group's scale. A group of NaNs alone has the least scale. An infinity " \
    "makes the scale infinite. A quotient that is a NaN gets code 0: that of a NaN, and of an infinite " \
    "element divided by an infinite scale. A finite element divided by an infinite scale is 0"
#define BACK_NONFINITE "IEEE arithmetic: 0 times an infinite scale is a NaN"

#define INT4_CODER(v) (kiln_is(v, "mode", "asym") ? QUANT_INT4_ASYM : QUANT_INT4_SYM)
#define NF4_CODER(v)  ((void)(v), QUANT_NF4)

#define FAMILY(of, OF, entry, what, of_nonfinite, params_of, shape_of, blocks, read, written)                          \
    static void emit_##of##_##entry(ptx_fn *f, const kiln_variant *v)                                                  \
    {                                                                                                                  \
        quant_emit_##entry(f, v, OF##_CODER(v));                                                                       \
    }                                                                                                                  \
    const kiln_family of##_##entry##_family = {                                                                        \
        .name = #of "_" #entry, .summary = what, .source = OF##_SOURCE, .accuracy = ACCURACY,                          \
        .nonfinite = of_nonfinite, .params = params_of, .args = of##_##entry##_args, .rules = rules,                   \
        .empty = "n == 0", .shape = shape_of, .grid = {blocks}, .min_sm = 75,                                          \
        .cost = {.bytes_read = read, .bytes_written = written, .elements = "n"}, .emit = emit_##of##_##entry};

FAMILY(int4, INT4, scale, "compute the scale, and for asym the zero, of each INT4 group",
       INT4_NONFINITE, int4_scale_params, quant_shape, SHARES, TENSOR, INT4_NUMBERS)
FAMILY(int4, INT4, pack, "quantise a tensor to INT4 codes with given scales and zeros",
       INT4_NONFINITE, int4_params, quant_coding_shape, TILES, TENSOR " + " INT4_NUMBERS, CODES)
FAMILY(int4, INT4, quantize, "quantise a tensor to INT4 in groups: scales, zeros and packed codes, in one read",
       INT4_NONFINITE, int4_params, quant_coding_shape, SHARES, TENSOR, CODES " + " INT4_NUMBERS)
FAMILY(int4, INT4, unpack, "turn INT4 codes, scales and zeros back into a tensor",
       BACK_NONFINITE, int4_params, quant_shape, TILES, CODES " + " INT4_NUMBERS, TENSOR)
FAMILY(nf4, NF4, scale, "compute the scale of each NF4 group",
       NF4_NONFINITE, nf4_scale_params, quant_shape, SHARES, TENSOR, NF4_NUMBERS)
FAMILY(nf4, NF4, pack, "quantise a tensor to NF4 codes with given scales",
       NF4_NONFINITE, nf4_params, quant_coding_shape, TILES, TENSOR " + " NF4_NUMBERS, CODES)
FAMILY(nf4, NF4, quantize, "quantise a tensor to NF4 in groups: scales and packed codes, in one read",
       NF4_NONFINITE, nf4_params, quant_coding_shape, SHARES, TENSOR, CODES " + " NF4_NUMBERS)
FAMILY(nf4, NF4, unpack, "turn NF4 codes and scales back into a tensor",
       BACK_NONFINITE, nf4_unpack_params, nf4_unpack_shape, TILES, CODES " + " NF4_STORED, TENSOR)
/* clang-format on */
