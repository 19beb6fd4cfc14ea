/* Why ptxas refuses instructions that match the pattern of their row. */
#include "../core/tensor_map.h"
#include "operations.h"

#include <string.h>

bool emu_has_modifier(const emu_instruction *i, const char *prefix)
{
    const size_t size = strlen(prefix);
    for (size_t m = 0; m < i->modifier_count; m++)
        if (i->modifiers[m].size >= size && memcmp(i->modifiers[m].at, prefix, size) == 0)
            return true;
    return size == 0;
}

static bool has_cache_operator(const emu_instruction *i)
{
    static const char *const operators[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt"};
    for (size_t m = 0; m < i->modifier_count; m++)
        for (size_t o = 0; o < sizeof operators / sizeof *operators; o++)
            if (emu_text_is(i->modifiers[m], operators[o]))
                return true;
    return false;
}

const char *emu_refuse_hint(const emu_instruction *i, const emu_mods *mods)
{
    const bool is_global = mods->space == EMU_GLOBAL || mods->space == EMU_GENERIC;
    if (!is_global && (emu_has_modifier(i, "L1::") || emu_has_modifier(i, "L2::")))
        return "a cache hint is for global memory";
    return emu_has_modifier(i, "L1::") && has_cache_operator(i)
               ? "a cache operator excludes an eviction priority of L1"
               : NULL;
}

const char *emu_refuse_vector(const emu_instruction *i, const emu_mods *mods)
{
    (void)i;
    if (mods->count > 1 && mods->type == EMU_PRED)
        return "predicates are moved one by one";
    return mods->count > 1 && emu_types[mods->type].bytes * mods->count > 16
               ? "a vector cannot be wider than 128 bits"
               : NULL;
}

const char *emu_refuse_token(const emu_instruction *i, const emu_mods *mods)
{
    (void)mods;
    return emu_has_modifier(i, "shared::cluster") && i->operands[0].kind != EMU_OPERAND_SINK
               ? "with .shared::cluster the destination is '_'"
               : NULL;
}

const char *emu_refuse_count(const emu_instruction *i, const emu_mods *mods)
{
    (void)mods;
    const uint64_t n = i->operand_count ? i->operands[0].value : 0;
    return n < 24 || n > 256 || n % 8 ? "the number of registers is a multiple of 8 from 24 to 256" : NULL;
}

/* Checks operands that must be constants: the ordinal of a dimension, and the value of a field of codes. */
const char *emu_refuse_map_field(const emu_instruction *i, const emu_mods *mods)
{
    const bool is_code = mods->mode >= EMU_MAP_TYPE;
    const bool has_ordinal = mods->mode >= EMU_MAP_BOX && mods->mode <= EMU_MAP_STEP;
    if (i->operand_count < 2 || (!is_code && !has_ordinal))
        return NULL;
    if (i->operands[1].kind != EMU_OPERAND_INT)
        return is_code ? "the new value of this field is a number" : "the ordinal is a number";
    const uint64_t most = has_ordinal                        ? (mods->mode == EMU_MAP_STRIDE ? 3 : 4)
                          : mods->mode == EMU_MAP_TYPE       ? 15
                          : mods->mode == EMU_MAP_INTERLEAVE ? 2
                          : mods->mode == EMU_MAP_SWIZZLE    ? 4
                          : mods->mode == EMU_MAP_ATOMICITY  ? 3
                                                             : 1;
    return i->operands[1].value > most ? "this number is not one of the field's" : NULL;
}
