/* What kind of work an instruction is, by its opcode and modifiers. */
#include "count.h"

#include <string.h>

const char *const emu_work_class_names[EMU_WORK_CLASSES] = {
    "integer", "float", "double", "half",  "conversion", "special", "move", "global",
    "shared",  "local", "const",  "param", "generic",    "control", "warp", "tensor",
};

/* Opcodes whose class does not depend on the type. All others go by type. */
static const struct {
    const char *opcodes;
    emu_work_class class;
} rows[] = {
    {" ex2 lg2 sin cos tanh rcp rsqrt sqrt ", EMU_IS_SPECIAL},
    {" mov selp slct cvta isspacep mapa getctarank createpolicy alloca stacksave stackrestore ", EMU_IS_MOVE},
    {" cvt szext ", EMU_IS_CONVERSION},
    {" bra brx call ret exit trap brkpt pmevent nanosleep bar barrier membar fence mbarrier griddepcontrol "
     "setmaxnreg ",
     EMU_IS_CONTROL},
    {" shfl vote match activemask redux elect movmatrix ", EMU_IS_WARP},
    {" mma wmma wgmma tcgen05 ", EMU_IS_TENSOR},
};

#define MEMORY                                                                                               \
    " ld ldu st atom red prefetch prefetchu applypriority discard cp ldmatrix stmatrix multimem "            \
    "tensormap "

static bool is_among(const char *words, emu_text word)
{
    for (const char *at = words; (at = memchr(at, ' ', strlen(at))) && at[1]; at++)
        if (strncmp(at + 1, word.at, word.size) == 0 && at[1 + word.size] == ' ')
            return true;
    return false;
}

static bool has(const emu_instruction *i, const char *word)
{
    for (int k = 0; k < i->modifier_count; k++)
        if (emu_text_is(i->modifiers[k], word))
            return true;
    return false;
}

static emu_work_class class_of_space(const emu_instruction *i)
{
    static const struct {
        const char *words;
        emu_work_class class;
    } spaces[] = {
        {" global ", EMU_IS_GLOBAL},
        {" shared shared::cta shared::cluster ", EMU_IS_SHARED},
        {" local ", EMU_IS_LOCAL},
        {" const ", EMU_IS_CONST},
        {" param param::entry param::func ", EMU_IS_PARAM},
    };
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++) /* global first: also copies from it */
        for (int k = 0; k < i->modifier_count; k++)
            if (is_among(spaces[s].words, i->modifiers[k]))
                return spaces[s].class;
    return emu_text_is(i->opcode, "cp") ? EMU_IS_CONTROL /* commit and wait */ : EMU_IS_GENERIC;
}

static emu_work_class class_of_type(const emu_instruction *i)
{
    for (int k = 0; k < i->modifier_count; k++) {
        emu_text m = i->modifiers[k];
        if (is_among(" f16 f16x2 bf16 bf16x2 ", m))
            return EMU_IS_HALF;
        if (is_among(" f32 f32x2 ", m))
            return EMU_IS_FLOAT;
        if (emu_text_is(m, "f64"))
            return EMU_IS_DOUBLE;
    }
    return EMU_IS_INTEGER;
}

emu_work_class emu_work_class_of(const emu_instruction *i)
{
    if (emu_text_is(i->opcode, "bar") && has(i, "warp"))
        return EMU_IS_WARP;
    if (emu_text_is(i->opcode, "wgmma") && !has(i, "mma_async"))
        return EMU_IS_CONTROL;
    if (has(i, "f64") && is_among(" rcp rsqrt sqrt ", i->opcode) && !has(i, "approx"))
        return EMU_IS_DOUBLE;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (is_among(rows[k].opcodes, i->opcode))
            return rows[k].class;
    return is_among(MEMORY, i->opcode) ? class_of_space(i) : class_of_type(i);
}

bool emu_is_branch(const emu_instruction *i)
{
    return is_among(" bra brx ", i->opcode);
}

bool emu_is_barrier(const emu_instruction *i)
{
    return is_among(" bar barrier ", i->opcode) && !has(i, "warp");
}

bool emu_is_atomic(const emu_instruction *i)
{
    return is_among(" atom red mbarrier ", i->opcode) || (emu_text_is(i->opcode, "cp") && has(i, "mbarrier"));
}

bool emu_is_test(const emu_instruction *i)
{
    return emu_text_is(i->opcode, "mbarrier") && (has(i, "test_wait") || has(i, "try_wait"));
}

bool emu_is_bulk_copy(const emu_instruction *i)
{
    return emu_text_is(i->opcode, "cp") && has(i, "bulk");
}

bool emu_is_group_wait(const emu_instruction *i)
{
    return emu_is_bulk_copy(i) && has(i, "wait_group");
}

static uint64_t number(const char **at, const char *end, char letter)
{
    uint64_t n = 0;
    if (*at == end || **at != letter)
        return 0;
    for (++*at; *at < end && **at >= '0' && **at <= '9'; ++*at)
        n = 10 * n + (uint64_t)(**at - '0');
    return n;
}

uint64_t emu_multiply_adds(const emu_instruction *i)
{
    if (emu_work_class_of(i) != EMU_IS_TENSOR)
        return 0;
    for (int k = 0; k < i->modifier_count; k++) {
        const char *at = i->modifiers[k].at, *end = at + i->modifiers[k].size;
        uint64_t m = number(&at, end, 'm'), n = number(&at, end, 'n'), depth = number(&at, end, 'k');
        if (m && n && depth && at == end)
            return m * n * depth * (m == 8 && depth == 4 && has(i, "f16") ? 4 : 1) /
                   (emu_text_is(i->opcode, "wgmma") ? 4 : 1); /* four warps share the product */
    }
    return 0;
}
