/* Operands of the matrix instructions: vectors of different lengths in one instruction, and vectors of one element. */
#include "../exec/mma.h"
#include "decoder.h"

#include <stdlib.h>

static const char *const element_names[EMU_ELEMENTS] = {
    [EMU_EL_F16] = "f16",   [EMU_EL_BF16] = "bf16", [EMU_EL_TF32] = "tf32", [EMU_EL_E4M3] = "e4m3",
    [EMU_EL_E5M2] = "e5m2", [EMU_EL_E3M2] = "e3m2", [EMU_EL_E2M3] = "e2m3", [EMU_EL_E2M1] = "e2m1",
    [EMU_EL_F64] = "f64",   [EMU_EL_S8] = "s8",     [EMU_EL_U8] = "u8",     [EMU_EL_S4] = "s4",
    [EMU_EL_U4] = "u4",     [EMU_EL_B1] = "b1",
};

static bool element_named(emu_text name, uint8_t *element)
{
    for (unsigned e = 0; e < EMU_ELEMENTS; e++)
        if (emu_text_is(name, element_names[e])) {
            *element = (uint8_t)e;
            return true;
        }
    return false;
}

/* sync.aligned.SHAPE.LAYOUT.LAYOUT{.more}.D.A.B.C{.more}; the row has checked the words. */
static emu_mma form_of(const emu_instruction *i)
{
    emu_mma f = {0};
    unsigned n = 5;
    f.m = i->modifiers[2].at[1] == '8' ? 8 : 16;
    f.k = (uint16_t)strtoul(i->modifiers[2].at + (f.m == 8 ? 5 : 6), NULL, 10);
    f.flags |= emu_text_is(i->modifiers[3], "col") ? EMU_MMA_A_COL : 0;
    f.flags |= emu_text_is(i->modifiers[4], "row") ? EMU_MMA_B_ROW : 0;
    while (emu_type_named(i->modifiers[n]) == EMU_NONE) /* satfinite, a rounding, a kind */
        n++;
    element_named(i->modifiers[n + 1], &f.a);
    element_named(i->modifiers[n + 2], &f.b);
    f.d = (uint8_t)emu_type_named(i->modifiers[n]);
    f.c = (uint8_t)emu_type_named(i->modifiers[n + 3]);
    if (n + 4u < i->modifier_count && emu_text_is(i->modifiers[n + 4], "and"))
        f.flags |= EMU_MMA_AND;
    return f;
}

static void push_vector(emu_decoder *d, const emu_operand *o, unsigned count, emu_type type, bool is_result)
{
    emu_operand elements[8];
    uint32_t args[8];
    if (!emu_decode_elements(d, o, count, elements))
        return;
    for (unsigned n = 0; n < count; n++)
        args[n] = is_result ? emu_decode_destination(d, &elements[n], type, 0, false).arg
                            : emu_decode_source(d, &elements[n], type, 0);
    for (unsigned n = 0; n < count; n++)
        emu_list_push(d, args[n]);
}

/* Halves and the like are kept in registers of bit type: among the elements is one of those. */
static void check_is_bits(emu_decoder *d, const emu_operand *o)
{
    for (unsigned n = 0; n < o->count; n++) {
        uint32_t slot;
        const emu_symbol *s = emu_decode_register(d, &o->items[n], &slot);
        if (s && (emu_types[s->type].class == EMU_BITS || emu_types[s->type].class == EMU_PACKED))
            return;
    }
    emu_decode_error(d, "this operand of '%.*s' needs registers of type .b32",
                     EMU_TEXT(d->instruction->opcode));
}

static emu_type register_type(unsigned type)
{
    return type == EMU_F16 ? EMU_B32 : (emu_type)type;
}

bool emu_decode_mma(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    emu_mma f = form_of(i);
    unsigned errors = d->in->log->errors;
    if (!emu_has_operands(d, i, 4))
        return false;
    if (f.d != f.c && !(emu_mma_is_quad(&f) && f.d == EMU_F32)) {
        emu_decode_error(d, "the types of D and C must be the same here");
        return false;
    }
    unsigned results = emu_mma_c_registers(&f, f.d);
    emu_type factor = f.a == EMU_EL_F64 ? EMU_F64 : EMU_B32;
    if (f.a == EMU_EL_F16 || f.a == EMU_EL_BF16 || f.a == EMU_EL_TF32) {
        check_is_bits(d, &i->operands[1]);
        check_is_bits(d, &i->operands[2]);
    }
    if (f.d == EMU_F16)
        check_is_bits(d, &i->operands[0]);
    if (f.c == EMU_F16)
        check_is_bits(d, &i->operands[3]);
    size_t begin = emu_list_begin(d);
    op->list = (const uint32_t *)(uintptr_t)begin;
    push_vector(d, &i->operands[0], results, register_type(f.d), true);
    push_vector(d, &i->operands[1], emu_mma_a_registers(&f), factor, false);
    push_vector(d, &i->operands[2], emu_mma_b_registers(&f), factor, false);
    push_vector(d, &i->operands[3], emu_mma_c_registers(&f, f.c), register_type(f.c), false);
    if (d->in->log->errors != errors)
        return false;
    memcpy(&op->imm, &f, sizeof f);
    emu_emit(d, op,
             (emu_uses){.list_size = (uint16_t)(emu_list_begin(d) - begin),
                        .list_writes = true,
                        .list_results = (uint16_t)results});
    return true;
}

/* ldmatrix r, [p] and stmatrix [p], r: argument 0 is the address, mods.count the number of registers. */
bool emu_decode_matrix(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    bool loads = emu_text_is(i->opcode, "ldmatrix");
    unsigned errors = d->in->log->errors, count = op->mods.count;
    if (!emu_has_operands(d, i, 2))
        return false;
    op->arg[0] = emu_decode_address(d, &i->operands[loads], op);
    if (i->operands[!loads].kind != EMU_OPERAND_VECTOR && count == 1) {
        emu_decode_error(d, "expected a vector of 1 element");
        return false;
    }
    op->list = (const uint32_t *)(uintptr_t)emu_list_begin(d);
    push_vector(d, &i->operands[!loads], count, EMU_B32, loads);
    if (d->in->log->errors != errors)
        return false;
    emu_emit(d, op,
             (emu_uses){.args = 1,
                        .list_size = (uint16_t)count,
                        .list_writes = loads,
                        .list_results = (uint16_t)(loads ? count : 0)});
    return true;
}
