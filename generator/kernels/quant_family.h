/* What the descriptors of int4 and nf4 have in common. */
#ifndef KERNELS_QUANT_FAMILY_H
#define KERNELS_QUANT_FAMILY_H

#include "quant.h"

/* clang-format off */

#define QUANT_ACCURACY                                                                                                 \
    "bit for bit what a scalar program computes by the format's rules, with every operation rounded to " \
    "nearest even; for finite inputs, and as told below for others"

/* ---- parameters --------------------------------------------------------------------------------------------------- */

#define QUANT_PARAM(param, values, own_numbers, first, text)                                                                     \
    {.name = param, .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = values,                              \
     .numbers = own_numbers, .default_value = first, .summary = text}
#define QUANT_TYPE_PARAM                                                                                               \
    QUANT_PARAM("type", "f32 f64 f16 bf16", NULL, "f32", "element type of the tensor that is not quantised")
#define QUANT_GROUP_PARAM                                                                                              \
    QUANT_PARAM("group", "32 64 128 256 any", NULL, "64", "elements that share a scale; any: as many as the argument group_size says, which is slower")
#define QUANT_NIBBLES_PARAM                                                                                            \
    QUANT_PARAM("nibbles", "low high", NULL, "low",                                                                          \
                "low: element 2i in bits 0-3 of byte i, 2i+1 in bits 4-7; high: the other way round")

/* ---- arguments ---------------------------------------------------------------------------------------------------- */

#define QUANT_GROUPS "ceil_div(n, select(group == any, group_size, group))"
#define QUANT_WIDE   "$type:f64:f32"

#define QUANT_IN_ARG                 {"in", KILN_ARG_IN, "$type", "n", 16, NULL, "the tensor, in memory order"}
#define QUANT_OUT_ARG(text)          {"out", KILN_ARG_OUT, "$type", "n", 16, NULL, text}
#define QUANT_PACKED_ARG(kind, text) {"packed", kind, "u8", "ceil_div(n, 2)", 16, NULL, text}
#define QUANT_SCALE_ARG(kind, text)  {"scale", kind, QUANT_WIDE, QUANT_GROUPS, 4, NULL, text}
#define QUANT_ZERO_ARG(kind, text)   {"zero", kind, QUANT_WIDE, QUANT_GROUPS, 4, "mode == asym", text}
#define QUANT_SIZE_ARGS                                                                                                \
    {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"},                                                           \
    {"group_size", KILN_ARG_VALUE, "u64", NULL, 0, "group == any", "elements that share a scale; may exceed n"},       \
    {.name = NULL}

#define QUANT_PACKED_IN  QUANT_PACKED_ARG(KILN_ARG_IN, "two codes per byte")
#define QUANT_PACKED_OUT QUANT_PACKED_ARG(KILN_ARG_OUT, "two codes per byte; for an odd n the last byte's second code is 0")

/* ---- rules, launch and cost --------------------------------------------------------------------------------------- */

#define QUANT_RULES                                                                                                    \
    {"n <= 1099511627776", "n must be at most 2^40"},                                                                  \
    {"group != any || group_size >= 1", "group_size must be at least 1"}

#define QUANT_ELEMENT_BYTES "select(type == f64, 8, select(type == f32, 4, 2))"
#define QUANT_TENSOR_BYTES  QUANT_ELEMENT_BYTES " * n"
#define QUANT_PACKED_BYTES  "ceil_div(n, 2)"
#define QUANT_NUMBER_BYTES  "select(type == f64, 8, 4) * " QUANT_GROUPS

/* A thread block has eight warps, each with a tile of 2 or 4 KB of the tensor (see quant_init). Where the group's size is
 * an argument and the entry makes scales, it has an even number of whole groups instead. */
#define QUANT_TILE_BYTES                                                                                               \
    "select(group == any || ((type == f32 || type == f64) && (group == 128 || group == 256)), 4096, 2048)"
#define QUANT_TILE       "(" QUANT_TILE_BYTES " / " QUANT_ELEMENT_BYTES ")"
#define QUANT_TILES      "ceil_div(n, 8 * " QUANT_TILE ")"
#define QUANT_LARGE_GROUP "select(type == f64, 1024, 2048)"
#define QUANT_ANY_GROUPS                                                                                               \
    "select(min(group_size, n) < " QUANT_LARGE_GROUP ", 2 * ceil_div(" QUANT_LARGE_GROUP " / 2, min(group_size, n)), 2)"
#define QUANT_SHARES     "select(group == any, ceil_div(n, min(group_size, n) * " QUANT_ANY_GROUPS "), " QUANT_TILES ")"

/* Members that all eight families share. */
#define QUANT_LAUNCH(shape_of, blocks) .rules = rules, .empty = "n == 0", .shape = shape_of, .grid = {blocks}, .min_sm = 75

/* clang-format on */

#endif
