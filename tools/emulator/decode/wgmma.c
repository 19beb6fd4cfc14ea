/* Operands of wgmma.mma_async: see exec/wgmma.h. */
#include "../exec/wgmma.h"
#include "decoder.h"

#include <stdlib.h>
#include <string.h>

/* mma_async.sync.aligned.m64nNkK{.satfinite}.D.A.B; matching the row has checked the words. */
static emu_wgmma form_of(const emu_instruction *i)
{
    emu_wgmma f = {0};
    unsigned n = 4;
    f.n = (uint16_t)strtoul(i->modifiers[3].at + strlen("m64n"), NULL, 10);
    while (emu_type_named(i->modifiers[n]) == EMU_NONE) /* skips satfinite */
        n++;
    f.d = (uint8_t)emu_type_named(i->modifiers[n]);
    emu_element_named(i->modifiers[n + 1], &f.a);
    emu_element_named(i->modifiers[n + 2], &f.b);
    return f;
}

/* Decodes an immediate that must be `first` or the other number; returns true for the other one. */
static bool is_second(emu_decoder *d, const emu_operand *o, const char *what, int first, int second)
{
    int64_t value = (int64_t)o->value;
    if (o->kind != EMU_OPERAND_INT || (value != first && value != second))
        emu_decode_error(d, "%s must be %d or %d", what, first, second);
    return value == second;
}

/* d, a or a-desc, b-desc, scale-d{, scale-a, scale-b}{, trans-a}{, trans-b} */
bool emu_decode_wgmma(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    emu_wgmma f = form_of(i);
    const emu_operand *o = i->operands;
    unsigned errors = d->in->log->errors, bits = emu_element_bits(f.a);
    bool is_integer = f.d == EMU_S32;
    uint32_t slot;
    if (i->operand_count > 1 && (o[1].kind == EMU_OPERAND_VECTOR || emu_decode_vector(d, &o[1], &slot)))
        f.flags |= EMU_WGMMA_A_REGISTERS;
    bool has_a = f.flags & EMU_WGMMA_A_REGISTERS;
    if (!emu_has_operands(d, i, 4u + (is_integer ? 0 : 2) + (bits != 16 ? 0 : has_a ? 1 : 2)))
        return false;
    if (!is_integer) {
        f.flags |= is_second(d, &o[4], "imm-scale-a", 1, -1) ? EMU_WGMMA_A_NEGATED : 0;
        f.flags |= is_second(d, &o[5], "imm-scale-b", 1, -1) ? EMU_WGMMA_B_NEGATED : 0;
    }
    if (bits == 16) {
        if (!has_a)
            f.flags |= is_second(d, &o[6], "imm-trans-a", 0, 1) ? EMU_WGMMA_A_MN_MAJOR : 0;
        f.flags |= is_second(d, &o[has_a ? 6 : 7], "imm-trans-b", 0, 1) ? EMU_WGMMA_B_MN_MAJOR : 0;
    }
    if (o[3].kind == EMU_OPERAND_INT)
        is_second(d, &o[3], "scale-d", 0, 1);
    op->arg[0] = emu_decode_source(d, &o[3], EMU_PRED, EMU_NEGATABLE);
    op->arg[1] = emu_decode_source(d, &o[2], EMU_B64, 0);
    if (!has_a)
        op->arg[2] = emu_decode_source(d, &o[1], EMU_B64, 0);
    if (f.d == EMU_F16)
        emu_check_is_bits(d, &o[0]);
    if (has_a && bits >= 16)
        emu_check_is_bits(d, &o[1]);
    size_t begin = emu_list_begin(d);
    emu_type type = f.d == EMU_F16 ? EMU_B32 : (emu_type)f.d;
    unsigned results = emu_wgmma_d_registers(&f);
    op->list = (const uint32_t *)(uintptr_t)begin;
    emu_push_vector(d, &o[0], results, type, true);
    if (has_a)
        emu_push_vector(d, &o[1], EMU_WGMMA_A_FRAGMENTS, EMU_B32, false);
    emu_push_vector(d, &o[0], results, type, false);
    if (d->in->log->errors != errors)
        return false;
    op->mods.space = EMU_SHARED;
    memcpy(&op->imm, &f, sizeof f);
    d->program->has_products = true;
    emu_emit(d, op,
             (emu_uses){.args = has_a ? 2 : 3,
                        .list_size = (uint16_t)(emu_list_begin(d) - begin),
                        .list_writes = true,
                        .list_results = (uint16_t)results});
    return true;
}
