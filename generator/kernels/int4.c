/* INT4: 4-bit integers with a scale per group (symmetric), or a scale and a zero (asymmetric). */
#include "quant_family.h"
#include <kiln/families.h>

#define MODE_PARAM                                                                                           \
    QUANT_PARAM("mode", "sym asym", "sym", "sym: x = (code - 8) * scale; asym: x = (code - zero) * scale")
#define NUMBERS_BYTES "select(mode == asym, 2, 1) * " QUANT_NUMBER_BYTES
#define SOURCE        "round to nearest with a scale per group, as in GPTQ's and AWQ's baselines"
/* Of the entries that make codes or scales. */
#define NONFINITE                                                                                            \
    "a NaN has no part in its group's scale; NaNs alone have the least scale, and a NaN for a zero. An "     \
    "infinity makes the scale infinite, as does a range (asym) that overflows; minus infinity makes the "    \
    "zero a NaN. But equal elements have no range (asym), equal infinities neither: their scale is the "     \
    "least one, and their zero infinite beyond 1e25 (f32), by which an infinity comes back as it was. "      \
    "What is a NaN before it is rounded gets code 0: NaNs, infinite elements by an infinite scale, all "     \
    "elements of such zeros"
#define UNPACK_NONFINITE "as the arithmetic goes: 0 times an infinite scale is a NaN"
#define SCALE_SUMMARY                                                                                        \
    "of each group; sym: max(largest magnitude, 1e-12) / 7; asym: max(largest - smallest, 1e-12) / 15"

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
    QUANT_ZERO_ARG(KILN_ARG_OUT, "of each group: (0 - smallest) / scale, not rounded"), QUANT_SIZE_ARGS};

/* clang-format off */
#define SCALE_SYM QUANT_BY_TYPE(QUANT_BY_GROUP(2576, 2632, 4168, 3780), \
                                QUANT_BY_GROUP(2600, 2692, 3332, 3042), \
                                QUANT_BY_GROUP(5088, 5136, 5192, 5188), \
                                QUANT_BY_GROUP(4576, 4624, 4680, 4676))
#define SCALE_ASYM QUANT_BY_TYPE(QUANT_BY_GROUP(3264, 3376, 5360, 4584), \
                                 QUANT_BY_GROUP(3824, 4072, 4712, 4132), \
                                 QUANT_BY_GROUP(5728, 5824, 5936, 5992), \
                                 QUANT_BY_GROUP(5216, 5312, 5424, 5480))
/* clang-format on */

const kiln_family int4_scale_family = {
    .name = "int4_scale",
    .summary = "scales, and zeros, for INT4 codes in groups",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = scale_params,
    .args = scale_args,
    QUANT_LAUNCH(QUANT_SHARES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES,
             .bytes_written = NUMBERS_BYTES,
             .thread_instructions = QUANT_INSTRUCTIONS("select(mode == asym, " SCALE_ASYM ", " SCALE_SYM ")"),
             .elements = "n"},
    .emit = emit_scale,
};

/* ---- pack --------------------------------------------------------------------------------------------------------- */

static void emit_pack(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_pack(f, v, coder_of(v));
}

static const kiln_arg pack_args[] = {QUANT_IN_ARG, QUANT_SCALE_ARG(KILN_ARG_IN, "of each group"),
                                     QUANT_ZERO_ARG(KILN_ARG_IN, "of each group"), QUANT_PACKED_OUT,
                                     QUANT_SIZE_ARGS};

/* clang-format off */
#define PACK_SYM QUANT_BY_TYPE(QUANT_BY_GROUP(5472, 5472, 9632, 9376), \
                               QUANT_BY_GROUP(4704, 4640, 7072, 6560), \
                               QUANT_BY_GROUP(10720, 10720, 10720, 10656), \
                               QUANT_BY_GROUP(10208, 10208, 10208, 10144))
#define PACK_ASYM QUANT_BY_TYPE(QUANT_BY_GROUP(7520, 7520, 13472, 13088), \
                                QUANT_BY_GROUP(6368, 6304, 9632, 8864), \
                                QUANT_BY_GROUP(14304, 14304, 14304, 14240), \
                                QUANT_BY_GROUP(13792, 13792, 13792, 13728))
/* clang-format on */

const kiln_family int4_pack_family = {
    .name = "int4_pack",
    .summary = "a tensor to INT4 codes with given scales, and zeros",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = params,
    .args = pack_args,
    QUANT_LAUNCH(QUANT_TILES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES " + " NUMBERS_BYTES,
             .bytes_written = QUANT_PACKED_BYTES,
             .thread_instructions = QUANT_INSTRUCTIONS("select(mode == asym, " PACK_ASYM ", " PACK_SYM ")"),
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
    QUANT_ZERO_ARG(KILN_ARG_OUT, "of each group: (0 - smallest) / scale, not rounded"), QUANT_PACKED_OUT,
    QUANT_SIZE_ARGS};

/* clang-format off */
#define QUANTIZE_SYM QUANT_BY_TYPE(QUANT_BY_GROUP(6224, 6280, 11144, 10500), \
                                   QUANT_BY_GROUP(5736, 5828, 8260, 7458), \
                                   QUANT_BY_GROUP(11936, 11984, 12040, 12036), \
                                   QUANT_BY_GROUP(11424, 11472, 11528, 11524))
#define QUANTIZE_ASYM QUANT_BY_TYPE(QUANT_BY_GROUP(8160, 8272, 14736, 13576), \
                                    QUANT_BY_GROUP(8080, 8328, 11272, 9924), \
                                    QUANT_BY_GROUP(14848, 14944, 15056, 15112), \
                                    QUANT_BY_GROUP(14336, 14432, 14544, 14600))
/* clang-format on */

const kiln_family int4_quantize_family = {
    .name = "int4_quantize",
    .summary = "quantise to INT4 in groups: scales, zeros and packed codes, in one read",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = NONFINITE,
    .params = params,
    .args = quantize_args,
    QUANT_LAUNCH(QUANT_SHARES),
    .cost = {.bytes_read = QUANT_TENSOR_BYTES,
             .bytes_written = QUANT_PACKED_BYTES " + " NUMBERS_BYTES,
             .thread_instructions =
                 QUANT_INSTRUCTIONS("select(mode == asym, " QUANTIZE_ASYM ", " QUANTIZE_SYM ")"),
             .elements = "n"},
    .emit = emit_quantize,
};

/* ---- unpack ------------------------------------------------------------------------------------------------------- */

static void emit_unpack(ptx_fn *f, const kiln_variant *v)
{
    quant_emit_unpack(f, v, coder_of(v));
}

static const kiln_arg unpack_args[] = {
    QUANT_PACKED_IN, QUANT_SCALE_ARG(KILN_ARG_IN, "of each group"),
    QUANT_ZERO_ARG(KILN_ARG_IN, "of each group"),
    QUANT_OUT_ARG("(code - 8, or code - zero) * scale, rounded after each step"), QUANT_SIZE_ARGS};

/* clang-format off */
#define UNPACK_SYM QUANT_BY_TYPE(QUANT_BY_GROUP(2848, 2848, 4576, 4448), \
                                 QUANT_BY_GROUP(2720, 2656, 3808, 3552), \
                                 QUANT_BY_GROUP(4896, 4896, 4896, 4832), \
                                 QUANT_BY_GROUP(4896, 4896, 4896, 4832))
#define UNPACK_ASYM QUANT_BY_TYPE(QUANT_BY_GROUP(3616, 3616, 5984, 5728), \
                                  QUANT_BY_GROUP(3616, 3552, 4960, 4448), \
                                  QUANT_BY_GROUP(6176, 6176, 6176, 6112), \
                                  QUANT_BY_GROUP(6176, 6176, 6176, 6112))
/* clang-format on */

const kiln_family int4_unpack_family = {
    .name = "int4_unpack",
    .summary = "INT4 codes, scales and zeros back to a tensor",
    .source = SOURCE,
    .accuracy = QUANT_ACCURACY,
    .nonfinite = UNPACK_NONFINITE,
    .params = params,
    .args = unpack_args,
    QUANT_LAUNCH(QUANT_TILES),
    .cost = {.bytes_read = QUANT_PACKED_BYTES " + " NUMBERS_BYTES,
             .bytes_written = QUANT_TENSOR_BYTES,
             .thread_instructions =
                 QUANT_INSTRUCTIONS("select(mode == asym, " UNPACK_ASYM ", " UNPACK_SYM ")" QUANT_NARROWING),
             .elements = "n"},
    .emit = emit_unpack,
};
