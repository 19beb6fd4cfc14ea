/* Operands without a pattern: of mov, the matrix instructions and cp.async. Those of control flow are in control.c. */
#include "../exec/mma.h"
#include "../exec/special.h"
#include "decoder.h"

#include <stdlib.h>
#include <string.h>

/* ---- mov: registers, constants, addresses, vectors, parts of a register --------------------------------------------- */

/* The number of elements of a vector in braces or a vector register; 0: neither. */
static unsigned count_elements(emu_decoder *d, const emu_operand *o)
{
    uint32_t slot;
    const emu_symbol *s = emu_decode_vector(d, o, &slot);
    return o->kind == EMU_OPERAND_VECTOR ? o->count : s ? s->vector : 0;
}

/* Packs {a, b} to one register, or unpacks it, by byte positions in the register. A vector register counts as its
   elements. */
static bool decode_pack(emu_decoder *d, const emu_operand *vector, unsigned count, const emu_operand *scalar,
                        bool packs, const emu_op *op)
{
    emu_type type = (emu_type)op->mods.type;
    unsigned bytes = count ? emu_types[type].bytes / count : 0;
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
        out.arg[0] = emu_decode_source(d, scalar, type, EMU_SPECIAL | EMU_ADDRESS_OF);
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

/* "mov.v4.u32 v, %tid" moves %tid.x, %tid.y, %tid.z and %tid.w, which is 0. */
static bool decode_moved_elements(emu_decoder *d, const emu_operand *from, unsigned count,
                                  emu_operand *elements)
{
    static const char names[] = "xyzw";
    uint32_t number;
    emu_special unused;
    if (count != 4 || from->kind != EMU_OPERAND_NAME || from->element ||
        emu_find_name(d, from->name, &number) || !emu_special_named(from->name, 'x', &unused))
        return emu_decode_elements(d, from, count, elements);
    for (unsigned k = 0; k < count; k++) {
        elements[k] = *from;
        elements[k].element = names[k];
    }
    return true;
}

/* The elements move at once: a source that an earlier copy overwrites goes through a temporary. */
static bool decode_vector_mov(emu_decoder *d, const emu_operand *to, const emu_operand *from, unsigned count,
                              emu_type type)
{
    unsigned errors = d->in->log->errors;
    emu_operand a[4], b[4];
    emu_destination destination[4];
    uint32_t source[4];
    if (!emu_decode_elements(d, to, count, a) || !decode_moved_elements(d, from, count, b))
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
    const unsigned to_count = count_elements(d, to), from_count = count_elements(d, from);
    if (from->kind == EMU_OPERAND_VECTOR || from_count)
        return decode_pack(d, from, from_count, to, true, op);
    if (to->kind == EMU_OPERAND_VECTOR || to_count)
        return decode_pack(d, to, to_count, from, false, op);
    return decode_scalar_mov(d, to, from, type);
}

/* ---- matrix instructions: vectors of different lengths, also of one element ----------------------------------------- */

static const char *const element_names[EMU_ELEMENTS] = {
    [EMU_EL_F16] = "f16",   [EMU_EL_BF16] = "bf16", [EMU_EL_TF32] = "tf32", [EMU_EL_E4M3] = "e4m3",
    [EMU_EL_E5M2] = "e5m2", [EMU_EL_E3M2] = "e3m2", [EMU_EL_E2M3] = "e2m3", [EMU_EL_E2M1] = "e2m1",
    [EMU_EL_F64] = "f64",   [EMU_EL_S8] = "s8",     [EMU_EL_U8] = "u8",     [EMU_EL_S4] = "s4",
    [EMU_EL_U4] = "u4",     [EMU_EL_B1] = "b1",
};

bool emu_element_named(emu_text name, uint8_t *element)
{
    for (unsigned e = 0; e < EMU_ELEMENTS; e++)
        if (element_names[e] && emu_text_is(name, element_names[e])) {
            *element = (uint8_t)e;
            return true;
        }
    return false;
}

/* Chunks of k with a scale each; without .scale_vec the kind decides. */
static unsigned chunks_of(const emu_instruction *i)
{
    static const char vector[] = "scale_vec::";
    if (!emu_has_modifier(i, "block_scale"))
        return 0;
    for (size_t n = 0; n < i->modifier_count; n++)
        if (i->modifiers[n].size > sizeof vector &&
            memcmp(i->modifiers[n].at, vector, sizeof vector - 1) == 0)
            return (unsigned)(i->modifiers[n].at[sizeof vector - 1] - '0');
    return emu_has_modifier(i, "kind::mxf4") ? 2 : 1;
}

/* sync.aligned.SHAPE.LAYOUT.LAYOUT{.more}.D.A.B.C{.more}; matching the row has checked the words. */
static emu_mma form_of(const emu_instruction *i)
{
    emu_mma f = {0};
    unsigned n = 5;
    f.m = i->modifiers[2].at[1] == '8' ? 8 : 16;
    f.k = (uint16_t)strtoul(i->modifiers[2].at + (f.m == 8 ? 5 : 6), NULL, 10);
    f.flags |= emu_text_is(i->modifiers[3], "col") ? EMU_MMA_A_COL : 0;
    f.flags |= emu_text_is(i->modifiers[4], "row") ? EMU_MMA_B_ROW : 0;
    while (emu_type_named(i->modifiers[n]) == EMU_NONE) /* skips satfinite, rounding and kind */
        n++;
    emu_element_named(i->modifiers[n + 1], &f.a);
    emu_element_named(i->modifiers[n + 2], &f.b);
    f.d = (uint8_t)emu_type_named(i->modifiers[n]);
    f.c = (uint8_t)emu_type_named(i->modifiers[n + 3]);
    if (n + 4u < i->modifier_count && emu_text_is(i->modifiers[n + 4], "and"))
        f.flags |= EMU_MMA_AND;
    if (n + 4u < i->modifier_count && emu_text_is(i->modifiers[n + 4], "ue4m3"))
        f.flags |= EMU_MMA_UE4M3;
    f.chunks = chunks_of(i) & 7;
    if (f.chunks && f.k == 64)
        f.a = f.b = EMU_EL_E2M1_PACKED;
    return f;
}

void emu_push_vector(emu_decoder *d, const emu_operand *o, unsigned count, emu_type type, bool is_result)
{
    emu_operand elements[128];
    uint32_t args[128];
    if (!emu_decode_elements(d, o, count, elements))
        return;
    for (unsigned n = 0; n < count; n++)
        args[n] = is_result ? emu_decode_destination(d, &elements[n], type, 0, false).arg
                            : emu_decode_source(d, &elements[n], type, 0);
    for (unsigned n = 0; n < count; n++)
        emu_list_push(d, args[n]);
}

/* ptxas accepts constants in A or B, but not an operand that has only constants. */
static void check_has_register(emu_decoder *d, const emu_operand *o)
{
    for (unsigned n = 0; n < o->count; n++)
        if (o->items[n].kind == EMU_OPERAND_NAME)
            return;
    if (o->kind == EMU_OPERAND_VECTOR)
        emu_decode_error(d, "this operand of '%.*s' needs a register", EMU_TEXT(d->instruction->opcode));
}

void emu_check_is_bits(emu_decoder *d, const emu_operand *o)
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

/* Scales of A or B, {byte-id, thread-id}. ptxas takes registers as selectors, and a vector of one as the scales. */
static void decode_scales(emu_decoder *d, const emu_operand o[2], const emu_mma *f, unsigned threads,
                          uint32_t args[3])
{
    const emu_operand *data = o[0].kind == EMU_OPERAND_VECTOR && o[0].count == 1 ? &o[0].items[0] : &o[0];
    emu_operand selector[2];
    if (data->kind != EMU_OPERAND_NAME)
        emu_decode_error(d, "scales are a register of 32 bits");
    args[0] = emu_decode_source(d, data, EMU_B32, 0);
    if (!emu_decode_elements(d, &o[1], 2, selector))
        return;
    const char *bytes = f->chunks == 1 ? "0 to 3" : f->chunks == 2 ? "0 or 2" : "0";
    uint64_t byte = selector[0].value, thread = selector[1].value;
    if (selector[0].kind == EMU_OPERAND_INT && (byte > 4u - f->chunks || byte % f->chunks != 0))
        emu_decode_error(d, "the first byte of the scales is %s here", bytes);
    if (selector[1].kind == EMU_OPERAND_INT && thread >= threads)
        emu_decode_error(d, "the threads with the scales are 0 to %u here", threads - 1);
    args[1] = emu_decode_source(d, &selector[0], EMU_U16, 0);
    args[2] = emu_decode_source(d, &selector[1], EMU_U16, 0);
}

bool emu_decode_mma(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    emu_mma f = form_of(i);
    unsigned errors = d->in->log->errors;
    if (!emu_has_operands(d, i, f.chunks ? 8 : 4))
        return false;
    if (f.d != f.c && !(emu_mma_is_quad(&f) && f.d == EMU_F32)) {
        emu_decode_error(d, "the types of D and C must be the same here");
        return false;
    }
    unsigned results = emu_mma_c_registers(&f, f.d);
    emu_type factor = f.a == EMU_EL_F64 ? EMU_F64 : EMU_B32;
    if (f.a == EMU_EL_F16 || f.a == EMU_EL_BF16 || f.a == EMU_EL_TF32) {
        emu_check_is_bits(d, &i->operands[1]);
        emu_check_is_bits(d, &i->operands[2]);
    }
    if (f.a >= EMU_EL_S8) {
        check_has_register(d, &i->operands[1]);
        check_has_register(d, &i->operands[2]);
    }
    if (f.d == EMU_F16)
        emu_check_is_bits(d, &i->operands[0]);
    if (f.c == EMU_F16)
        emu_check_is_bits(d, &i->operands[3]);
    size_t begin = emu_list_begin(d);
    op->list = (const uint32_t *)(uintptr_t)begin;
    emu_push_vector(d, &i->operands[0], results, register_type(f.d), true);
    emu_push_vector(d, &i->operands[1], emu_mma_a_registers(&f), factor, false);
    emu_push_vector(d, &i->operands[2], emu_mma_b_registers(&f), factor, false);
    emu_push_vector(d, &i->operands[3], emu_mma_c_registers(&f, f.c), register_type(f.c), false);
    if (f.chunks) {
        decode_scales(d, &i->operands[4], &f, 2, &op->arg[0]);
        decode_scales(d, &i->operands[6], &f, 4, &op->arg[3]);
    }
    if (d->in->log->errors != errors)
        return false;
    memcpy(&op->imm, &f, sizeof f);
    emu_emit(d, op,
             (emu_uses){.args = f.chunks ? 6 : 0,
                        .list_size = (uint16_t)(emu_list_begin(d) - begin),
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
    emu_push_vector(d, &i->operands[!loads], count, EMU_B32, loads);
    if (d->in->log->errors != errors)
        return false;
    emu_emit(d, op,
             (emu_uses){.args = 1,
                        .list_size = (uint16_t)count,
                        .list_writes = loads,
                        .list_results = (uint16_t)(loads ? count : 0)});
    return true;
}

/* ---- cp.async ------------------------------------------------------------------------------------------------------ */

/* [dst], [src], bytes{, src-size or ignore-src}{, cache-policy}. Argument 0 is the destination's address, argument 1 the
   size or predicate; mods.count is the number of bytes, mods.mode what argument 1 is (0: nothing, 1: size, 2: predicate). A
   second operation, with mods.mode 3, has the source's address. */
bool emu_decode_copy(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    unsigned errors = d->in->log->errors, n = i->operand_count;
    const emu_operand *o = i->operands;
    bool hinted = op->mods.flags & EMU_CACHE_HINT, l1 = emu_text_is(i->modifiers[1], "ca");
    if (n < 3u + hinted || n > 4u + hinted) {
        emu_decode_error(d, "'cp.async' takes [dst], [src], a size, and perhaps a source size%s",
                         hinted ? "; then the cache policy" : "");
        return false;
    }
    if (hinted)
        emu_decode_source(d, &o[n - 1], EMU_B64, 0);
    bool fits =
        o[2].kind == EMU_OPERAND_INT && (o[2].value == 16 || (l1 && (o[2].value == 4 || o[2].value == 8)));
    if (!fits) {
        emu_decode_error(d, l1 ? "cp.async.ca copies 4, 8 or 16 bytes" : "cp.async.cg copies 16 bytes");
        return false;
    }
    op->mods.count = (uint8_t)o[2].value;
    emu_op source = {.run = op->run, .mods = {.space = EMU_GLOBAL, .count = op->mods.count, .mode = 3}};
    op->mods.space = EMU_SHARED;
    op->arg[0] = emu_decode_address(d, &o[0], op);
    source.arg[0] = emu_decode_address(d, &o[1], &source);
    op->mods.mode = 0;
    if (n - hinted == 4) {
        uint32_t slot;
        const emu_symbol *s = emu_decode_register(d, &o[3], &slot);
        op->mods.mode = s && s->type == EMU_PRED ? 2 : 1;
        op->arg[1] = op->mods.mode == 2 ? emu_decode_source(d, &o[3], EMU_PRED, EMU_NEGATABLE)
                                        : emu_decode_source(d, &o[3], EMU_U32, 0);
        if (o[3].kind == EMU_OPERAND_INT && o[3].value > o[2].value)
            emu_decode_error(d, "cp.async reads at most as many bytes as it writes");
        if (op->mods.mode == 2 && d->in->module->version < 75)
            emu_decode_error(d, "the operand ignore-src needs .version 7.5");
    }
    if (d->in->log->errors != errors)
        return false;
    emu_emit(d, op, (emu_uses){.args = (uint8_t)(op->mods.mode ? 2 : 1)});
    emu_emit(d, &source, (emu_uses){.args = 1});
    return true;
}
