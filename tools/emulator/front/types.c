/* The table of types and the register rules: see types.h. */
#include "types.h"

const emu_type_info emu_types[EMU_TYPES] = {
    [EMU_NONE] = {"none", 0, EMU_BITS},       [EMU_B8] = {"b8", 1, EMU_BITS},
    [EMU_B16] = {"b16", 2, EMU_BITS},         [EMU_B32] = {"b32", 4, EMU_BITS},
    [EMU_B64] = {"b64", 8, EMU_BITS},         [EMU_B128] = {"b128", 16, EMU_BITS},
    [EMU_U8] = {"u8", 1, EMU_UNSIGNED},       [EMU_U16] = {"u16", 2, EMU_UNSIGNED},
    [EMU_U32] = {"u32", 4, EMU_UNSIGNED},     [EMU_U64] = {"u64", 8, EMU_UNSIGNED},
    [EMU_S8] = {"s8", 1, EMU_SIGNED},         [EMU_S16] = {"s16", 2, EMU_SIGNED},
    [EMU_S32] = {"s32", 4, EMU_SIGNED},       [EMU_S64] = {"s64", 8, EMU_SIGNED},
    [EMU_F16] = {"f16", 2, EMU_FLOAT},        [EMU_BF16] = {"bf16", 2, EMU_FLOAT},
    [EMU_F32] = {"f32", 4, EMU_FLOAT},        [EMU_F64] = {"f64", 8, EMU_FLOAT},
    [EMU_F16X2] = {"f16x2", 4, EMU_PACKED},   [EMU_BF16X2] = {"bf16x2", 4, EMU_PACKED},
    [EMU_F32X2] = {"f32x2", 8, EMU_PACKED},   [EMU_U16X2] = {"u16x2", 4, EMU_PACKED},
    [EMU_S16X2] = {"s16x2", 4, EMU_PACKED},   [EMU_TF32] = {"tf32", 4, EMU_PACKED},
    [EMU_E4M3X2] = {"e4m3x2", 2, EMU_PACKED}, [EMU_E5M2X2] = {"e5m2x2", 2, EMU_PACKED},
    [EMU_E2M1X2] = {"e2m1x2", 1, EMU_PACKED}, [EMU_E2M3X2] = {"e2m3x2", 2, EMU_PACKED},
    [EMU_E3M2X2] = {"e3m2x2", 2, EMU_PACKED}, [EMU_UE8M0X2] = {"ue8m0x2", 2, EMU_PACKED},
    [EMU_PRED] = {"pred", 4, EMU_PREDICATE},
};

const char *const emu_space_names[EMU_SPACES] = {
    [EMU_GENERIC] = "generic",
    [EMU_REG] = "reg",
    [EMU_GLOBAL] = "global",
    [EMU_SHARED] = "shared",
    [EMU_SHARED_CLUSTER] = "shared::cluster",
    [EMU_LOCAL] = "local",
    [EMU_CONST] = "const",
    [EMU_PARAM] = "param",
    [EMU_PARAM_CALL] = "param",
};

emu_type emu_type_named(emu_text name)
{
    for (int t = EMU_B8; t < EMU_TYPES; t++)
        if (emu_text_is(name, emu_types[t].name))
            return (emu_type)t;
    return EMU_NONE;
}

emu_type emu_bits_type(unsigned bytes)
{
    for (int t = EMU_B8; t <= EMU_B128; t++)
        if (emu_types[t].bytes == bytes)
            return (emu_type)t;
    return EMU_NONE;
}

static bool is_integer(unsigned class)
{
    return class == EMU_UNSIGNED || class == EMU_SIGNED;
}

static bool classes_fit(emu_type reg, emu_type wanted)
{
    unsigned r = emu_types[reg].class, w = emu_types[wanted].class;
    if (r == EMU_PREDICATE || w == EMU_PREDICATE)
        return r == w;
    bool is_pair = reg == EMU_F16X2 && (wanted == EMU_U16X2 || wanted == EMU_S16X2); /* ptxas accepts these */
    return r == EMU_BITS || w == EMU_BITS || reg == wanted || is_pair || (is_integer(r) && is_integer(w));
}

bool emu_type_fits(emu_type reg, emu_type wanted)
{
    return emu_types[reg].bytes == emu_types[wanted].bytes && classes_fit(reg, wanted);
}

bool emu_type_fits_relaxed(emu_type reg, emu_type wanted)
{
    if (wanted == EMU_BF16 || wanted == EMU_BF16X2 || wanted == EMU_TF32)
        return emu_type_fits(reg, wanted);
    return emu_types[reg].bytes >= emu_types[wanted].bytes && classes_fit(reg, wanted);
}
