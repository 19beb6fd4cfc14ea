/* What a row's pattern does not say: versions and targets that modifiers need, and words and operands that exclude each other.
   Each is a refusal of ptxas 13.0. */
#include "match.h"

#include "../support/targets.h"

#include <string.h>

/* Modifiers that need more than the row that they stand in. */
static const struct {
    const char *word;
    unsigned version, target;
} floors[] = {
    {"relu", 70, 80},
    {"NaN", 70, 80},
    {"xorsign", 72, 86},
    {"oob", 81, 90},
    {"L1::evict_normal", 74, 70},
    {"L1::evict_unchanged", 74, 70},
    {"L1::evict_first", 74, 70},
    {"L1::evict_last", 74, 70},
    {"L1::no_allocate", 74, 70},
    {"L2::evict_normal", 74, 80},
    {"param::entry", 83, 0},
    {"param::func", 83, 0},
    {"L2::64B", 74, 75},
    {"L2::128B", 74, 75},
    {"L2::256B", 74, 80},
    {"L2::cache_hint", 74, 80},
    {"v8", 81, 90},
    {"cluster", 78, 90},
    {"shared::cluster", 78, 90},
    {"shared::cta", 78, 30},
    {"relaxed", 60, 70},
    {"acquire", 60, 70},
    {"release", 60, 70},
    {"acq_rel", 60, 70},
    {"mmio", 82, 70},
};

static bool has_floor(const emu_decode_input *in, const emu_instruction *i, const char *what,
                      unsigned version, unsigned target)
{
    const emu_module *m = in->module;
    if (m->version < version)
        emu_log_error(in->log, i->line, i->text, "'%s' needs .version %u.%u", what, version / 10,
                      version % 10);
    else if (m->target.number < target)
        emu_log_error(in->log, i->line, i->text, "'%s' needs .target sm_%u", what, target);
    else
        return true;
    return false;
}

static bool is_target_of(const emu_decode_input *in, const emu_instruction *i, const emu_row *row)
{
    if (!has_floor(in, i, row->opcode, row->version, row->target))
        return false;
    for (size_t m = 0; m < i->modifier_count; m++)
        for (size_t f = 0; f < sizeof floors / sizeof *floors; f++)
            if (emu_text_is(i->modifiers[m], floors[f].word) &&
                !has_floor(in, i, floors[f].word, floors[f].version, floors[f].target))
                return false;
    if (!row->only || emu_target_in(in->module->target.number, in->module->target.kind, row->only))
        return true;
    emu_log_error(in->log, i->line, i->text, "this form of '%s' needs one of the targets %s", row->opcode,
                  row->only);
    return false;
}

/* The first modifier that begins like this; NULL: none. */
static const emu_text *find(const emu_instruction *i, const char *prefix)
{
    for (size_t m = 0; m < i->modifier_count; m++)
        if (i->modifiers[m].size >= strlen(prefix) && memcmp(i->modifiers[m].at, prefix, strlen(prefix)) == 0)
            return &i->modifiers[m];
    return NULL;
}

static bool is_one_of(const emu_instruction *i, const char *opcodes)
{
    char quoted[32];
    size_t size = i->opcode.size;
    if (size > sizeof quoted - 3)
        return false;
    quoted[0] = quoted[size + 1] = ' ';
    memcpy(quoted + 1, i->opcode.at, size);
    quoted[size + 2] = '\0';
    return strstr(opcodes, quoted) != NULL;
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

static const char *refusal_of_memory(const emu_instruction *i, const emu_mods *mods)
{
    bool is_global = mods->space == EMU_GLOBAL || mods->space == EMU_GENERIC;
    if (!is_one_of(i, " ld st atom red "))
        return NULL;
    if (!is_global && (find(i, "L1::") || find(i, "L2::")))
        return "a cache hint is for global memory";
    if (find(i, "L1::") && has_cache_operator(i))
        return "a cache operator excludes an eviction priority of L1";
    return NULL;
}

static const char *refusal_of_vector(const emu_instruction *i, const emu_mods *mods)
{
    if (mods->count == 1 || !is_one_of(i, " ldu mov "))
        return NULL;
    if (mods->type == EMU_PRED)
        return "predicates are moved one by one";
    return emu_types[mods->type].bytes * mods->count > 16 ? "a vector cannot be wider than 128 bits" : NULL;
}

static const char *refusal_of_barrier(const emu_instruction *i)
{
    bool arrives = is_one_of(i, " mbarrier ") && find(i, "arrive") && find(i, "shared::cluster");
    return arrives && i->operands[0].kind != EMU_OPERAND_SINK ? "with .shared::cluster the destination is '_'"
                                                              : NULL;
}

static const char *refusal_of_count(const emu_instruction *i)
{
    uint64_t n = i->operand_count ? i->operands[0].value : 0;
    return is_one_of(i, " setmaxnreg ") && (n < 24 || n > 256 || n % 8)
               ? "the number of registers is a multiple of 8 from 24 to 256"
               : NULL;
}

bool emu_is_allowed(const emu_decode_input *in, const emu_instruction *i, const emu_row *row,
                    const emu_mods *mods)
{
    if (!is_target_of(in, i, row))
        return false;
    const char *refusal = refusal_of_memory(i, mods);
    refusal = refusal ? refusal : refusal_of_vector(i, mods);
    refusal = refusal ? refusal : refusal_of_barrier(i);
    refusal = refusal ? refusal : refusal_of_count(i);
    if (refusal)
        emu_log_error(in->log, i->line, i->text, "%s", refusal);
    return !refusal;
}
