/* Instructions whose operands are labels, functions or lists of them; and mov, which takes nearly anything. */
#include "decoder.h"

#include <string.h>

bool emu_is_plain_name(const emu_operand *o)
{
    return o->kind == EMU_OPERAND_NAME && !o->has_offset && !o->is_index && !o->is_negated && !o->element;
}

static size_t place_in_function(const emu_decoder *d)
{
    return (size_t)(d->instruction - d->placed->function->instructions);
}

/* A list of targets or a prototype, unlike a label, is declared before it is used. */
const emu_symbol *emu_find_label(emu_decoder *d, const emu_operand *o, emu_symbol_kind kind)
{
    uint32_t number;
    const emu_symbol *s = NULL;
    if (emu_is_plain_name(o))
        s = emu_find(d->in->module, d->instruction->scope, o->name, &number);
    if (s && s->kind == kind && (kind == EMU_SYMBOL_LABEL || s->instruction <= place_in_function(d)))
        return s;
    emu_decode_error(d, "'%.*s' is not a label that can be seen here", EMU_TEXT(o->name));
    return NULL;
}

static bool has_operands(emu_decoder *d, const emu_instruction *i, unsigned least, unsigned most)
{
    if (i->operand_count >= least && i->operand_count <= most)
        return true;
    emu_decode_error(d, "'%.*s' takes %u operands, %u are given", EMU_TEXT(i->opcode), least,
                     i->operand_count);
    return false;
}

void emu_add_fixup(emu_decoder *d, const emu_function *f, const emu_symbol *label)
{
    emu_fixup *fixup = emu_list_add(&d->program->arena, &d->fixups, sizeof *fixup);
    *fixup = (emu_fixup){.op = d->ops.count, .function = f, .label = label};
}

bool emu_decode_bra(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    if (!has_operands(d, i, 1, 1))
        return false;
    const emu_symbol *label = emu_find_label(d, &i->operands[0], EMU_SYMBOL_LABEL);
    if (!label)
        return false;
    op->run = op->mods.flags & EMU_UNIFORM ? emu_control_handlers()->branch_uniform
                                           : emu_control_handlers()->branch;
    emu_add_fixup(d, NULL, label);
    emu_emit(d, op, (emu_uses){0});
    return true;
}

bool emu_decode_brx(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    if (!has_operands(d, i, 2, 2))
        return false;
    op->arg[0] = emu_decode_source(d, &i->operands[0], EMU_U32, 0);
    const emu_symbol *targets = emu_find_label(d, &i->operands[1], EMU_SYMBOL_TARGETS);
    if (!targets)
        return false;
    op->list = (const uint32_t *)(uintptr_t)(emu_list_begin(d) + 1);
    op->imm = (int64_t)targets->target_count;
    for (size_t n = 0; n < targets->target_count; n++) {
        emu_operand name = {.kind = EMU_OPERAND_NAME, .name = targets->targets[n]};
        const emu_symbol *label = emu_find_label(d, &name, EMU_SYMBOL_LABEL);
        if (!label)
            return false;
        emu_table_fixup *fixup = emu_list_add(&d->program->arena, &d->table_fixups, sizeof *fixup);
        *fixup = (emu_table_fixup){emu_list_begin(d), label};
        emu_list_push(d, 0);
    }
    op->run = emu_control_handlers()->branch_indexed;
    emu_emit(d, op, (emu_uses){.args = 1});
    return true;
}

bool emu_decode_ret(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    if (!has_operands(d, i, 0, 0))
        return false;
    bool leaves_kernel = d->placed->function->is_entry || emu_text_is(i->opcode, "exit");
    op->run = leaves_kernel ? emu_control_handlers()->exit : emu_control_handlers()->ret;
    op->arg[0] = d->placed->return_slot;
    emu_emit(d, op, (emu_uses){0});
    return true;
}

/* {a, b} to one register, or one register to {a, b}: through byte positions in the wider one. */
static bool decode_pack(emu_decoder *d, const emu_operand *vector, const emu_operand *scalar, bool packs,
                        const emu_op *op)
{
    emu_type type = (emu_type)op->mods.type;
    unsigned count = vector->count, bytes = count ? emu_types[type].bytes / count : 0;
    emu_type part = emu_bits_type(bytes);
    emu_operand elements[8];
    emu_destination to[8];
    bool is_bits = emu_types[type].class == EMU_BITS;
    if (!is_bits || (count != 2 && count != 4) || part == EMU_NONE ||
        bytes * count != emu_types[type].bytes) {
        emu_decode_error(d, "cannot %s %u elements as .%s", packs ? "pack" : "unpack", count,
                         emu_types[type].name);
        return false;
    }
    unsigned errors = d->in->log->errors;
    if (!emu_decode_elements(d, vector, count, elements))
        return false;
    emu_op out = *op;
    out.imm = bytes;
    if (packs)
        to[0] = emu_decode_destination(d, scalar, type, 0, false);
    else
        out.arg[0] = emu_decode_source(d, scalar, type, 0);
    uint32_t args[8];
    for (unsigned k = 0; k < count; k++) {
        if (packs) {
            args[k] = emu_decode_source(d, &elements[k], part, 0);
        } else {
            to[k] = emu_decode_destination(d, &elements[k], part, 0, true);
            args[k] = to[k].arg;
        }
    }
    if (d->in->log->errors != errors)
        return false;
    out.list = (const uint32_t *)(uintptr_t)(emu_list_begin(d) + 1);
    for (unsigned k = 0; k < count; k++)
        emu_list_push(d, args[k]);
    if (packs)
        out.arg[0] = to[0].arg;
    out.mods.count = (uint8_t)count;
    out.mods.mode = packs;
    emu_emit(d, &out,
             (emu_uses){.writes = packs,
                        .args = 1,
                        .list_size = (uint16_t)count,
                        .list_writes = !packs,
                        .list_results = (uint16_t)(packs ? 0 : count)});
    return true;
}

static bool decode_scalar_mov(emu_decoder *d, const emu_operand *to, const emu_operand *from, emu_type type)
{
    unsigned errors = d->in->log->errors;
    unsigned allow = EMU_SPECIAL | (type == EMU_PRED ? EMU_NEGATABLE : EMU_ADDRESS_OF);
    uint32_t source = emu_decode_source(d, from, type, allow);
    emu_destination destination = emu_decode_destination(d, to, type, 0, false);
    if (d->in->log->errors != errors)
        return false;
    emu_copy_register(d, type, destination.arg, source);
    return true;
}

static bool is_written_before(const emu_destination *to, unsigned n, uint32_t source)
{
    for (unsigned k = 0; k < n; k++)
        if (to[k].arg == source && source != EMU_SINK)
            return true;
    return false;
}

/* The elements move at once: what an earlier copy would overwrite goes through a temporary. */
static bool decode_vector_mov(emu_decoder *d, const emu_operand *to, const emu_operand *from, unsigned count,
                              emu_type type)
{
    unsigned errors = d->in->log->errors;
    emu_operand a[4], b[4];
    emu_destination destination[4];
    uint32_t source[4];
    if (!emu_decode_elements(d, to, count, a) || !emu_decode_elements(d, from, count, b))
        return false;
    for (unsigned k = 0; k < count; k++) {
        source[k] = emu_decode_source(d, &b[k], type, EMU_SPECIAL | EMU_ADDRESS_OF);
        destination[k] = emu_decode_destination(d, &a[k], type, 0, true);
    }
    if (d->in->log->errors != errors)
        return false;
    for (unsigned k = 0; k < count; k++)
        if (is_written_before(destination, k, source[k])) {
            uint32_t kept = emu_temporary(d);
            emu_copy_register(d, type, kept, source[k]);
            source[k] = kept;
        }
    for (unsigned k = 0; k < count; k++)
        if (destination[k].arg != EMU_SINK)
            emu_copy_register(d, type, destination[k].arg, source[k]);
    return true;
}

bool emu_decode_mov(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    if (!has_operands(d, i, 2, 2))
        return false;
    const emu_operand *to = &i->operands[0], *from = &i->operands[1];
    emu_type type = (emu_type)op->mods.type;
    if (op->mods.count > 1)
        return decode_vector_mov(d, to, from, op->mods.count, type);
    if (from->kind == EMU_OPERAND_VECTOR)
        return decode_pack(d, from, to, true, op);
    if (to->kind == EMU_OPERAND_VECTOR)
        return decode_pack(d, to, from, false, op);
    return decode_scalar_mov(d, to, from, type);
}
