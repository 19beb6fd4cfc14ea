/* mov, which takes nearly anything: registers, constants, addresses, vectors, and parts of a register. */
#include "decoder.h"

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
    out.list = (const uint32_t *)(uintptr_t)emu_list_begin(d);
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
    if (!emu_has_operands(d, i, 2))
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
