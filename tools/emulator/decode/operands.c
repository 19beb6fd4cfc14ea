/* Operands: registers, constants, addresses, and the patterns of the operation table (see exec/operations.h). */
#include "../exec/special.h"
#include "decoder.h"

#include <stdlib.h>
#include <string.h>

typedef struct constant {
    struct constant *next;
    unsigned bytes;
    uint64_t value;
    uint32_t offset;
} constant;

uint32_t emu_decode_constant(emu_decoder *d, unsigned bytes, uint64_t value)
{
    emu_program *p = d->program;
    if (bytes < 8)
        value &= (UINT64_C(1) << 8 * bytes) - 1;
    constant **bucket = &d->constant_buckets[(value ^ value >> 8 ^ value >> 24 ^ bytes) & 255];
    for (constant *c = *bucket; c; c = c->next)
        if (c->value == value && c->bytes == bytes)
            return c->offset | 1;
    constant *c = emu_arena_alloc(&p->arena, sizeof *c);
    uint32_t slot_bytes = EMU_LANES * bytes < 64 ? 64 : EMU_LANES * bytes;
    *c = (constant){*bucket, bytes, value, p->constant_bytes};
    *bucket = c;
    if (d->constant_room - p->constant_bytes < slot_bytes) {
        d->constant_room = 2 * d->constant_room + 1024;
        char *grown = aligned_alloc(64, d->constant_room);
        if (!grown)
            abort();
        if (p->constants)
            memcpy(grown, p->constants, p->constant_bytes);
        free(p->constants);
        p->constants = grown;
    }
    for (int lane = 0; lane < EMU_LANES; lane++)
        memcpy(p->constants + c->offset + (size_t)lane * bytes, &value, bytes);
    p->constant_bytes += slot_bytes;
    return c->offset | 1;
}

const emu_symbol *emu_find_name(const emu_decoder *d, emu_text name, uint32_t *number)
{
    return emu_find(d->in->module, d->instruction->scope, name, d->instruction->declared, number);
}

const emu_symbol *emu_decode_register(emu_decoder *d, const emu_operand *o, uint32_t *slot)
{
    uint32_t number;
    if (o->kind != EMU_OPERAND_NAME)
        return NULL;
    const emu_symbol *s = emu_find_name(d, o->name, &number);
    if (!s || s->kind != EMU_SYMBOL_REGISTER)
        return NULL;
    uint32_t bytes = emu_slot_bytes(s->type);
    uint32_t element = o->element ? (uint32_t)(o->element == 'w' ? 3 : o->element - 'x') : 0;
    if (element >= s->vector)
        return NULL;
    *slot = emu_slot(d, s) + number * s->vector * bytes + element * bytes;
    return s;
}

const emu_symbol *emu_decode_vector(emu_decoder *d, const emu_operand *o, uint32_t *slot)
{
    const emu_symbol *s = emu_decode_register(d, o, slot);
    return s && s->vector > 1 && !o->element ? s : NULL;
}

const emu_symbol *emu_find_variable(emu_decoder *d, const emu_operand *o)
{
    uint32_t number;
    const emu_symbol *s = emu_find_name(d, o->name, &number);
    return s && s->kind == EMU_SYMBOL_VARIABLE ? s : NULL;
}

static uint64_t byte_offset(emu_decoder *d, const emu_operand *o, const emu_symbol *variable)
{
    if (o->is_index && !variable->is_array)
        emu_decode_error(d, "'%.*s' is not an array", EMU_TEXT(o->name));
    return o->is_index ? o->value * emu_types[variable->type].bytes * variable->vector : o->value;
}

static void log_mismatch(emu_decoder *d, const emu_operand *o, const char *found, emu_type wanted)
{
    if (o->has_offset) {
        emu_decode_error(d, "'%.*s' with '%s' cannot be an operand of type .%s here", EMU_TEXT(o->name),
                         o->is_index ? "[]" : "+", emu_types[wanted].name);
        return;
    }
    emu_decode_error(d, "'%.*s' is %s; expected .%s", EMU_TEXT(o->name), found, emu_types[wanted].name);
}

/* Copies the low bits of a wider register to a slot of the type's size. */
static uint32_t chop(emu_decoder *d, uint32_t slot, emu_type reg, emu_type wanted)
{
    unsigned from = (unsigned)__builtin_ctz(emu_types[reg].bytes);
    unsigned to = (unsigned)__builtin_ctz(emu_types[wanted].bytes);
    emu_op op = {.run = emu_micro_handlers()->chop[from][to], .arg = {emu_temporary(d), slot}};
    emu_emit(d, &op, (emu_uses){.writes = 1, .args = 2});
    return op.arg[0];
}

/* Follows ptxas: "%r1+4" is allowed for an integer register in most places; the sum is as wide as the register. */
static bool takes_offset(const emu_decoder *d, const emu_operand *o, const emu_symbol *s)
{
    unsigned class = emu_types[s->type].class, bytes = emu_types[s->type].bytes;
    bool is_integer = class == EMU_BITS || class == EMU_UNSIGNED || class == EMU_SIGNED;
    return is_integer && bytes >= 2 && bytes <= 8 && s->vector == 1 && !o->is_index && !o->is_negated &&
           !emu_text_is(d->instruction->opcode, "brx");
}

static uint32_t add_offset(emu_decoder *d, const emu_operand *o, const emu_symbol *s, uint32_t slot)
{
    unsigned bytes = emu_types[s->type].bytes;
    emu_op op = {.run = emu_micro_handlers()->add[__builtin_ctz(bytes)],
                 .arg = {emu_temporary(d), slot, emu_decode_constant(d, bytes, o->value)}};
    emu_emit(d, &op, (emu_uses){.writes = 1, .args = 3});
    return op.arg[0];
}

static uint32_t decode_register_source(emu_decoder *d, const emu_operand *o, const emu_symbol *s,
                                       uint32_t slot, emu_type type, unsigned allow)
{
    char found[32] = ".";
    strcat(found, emu_types[s->type].name);
    bool fits = emu_type_fits(s->type, type);
    bool wider = !fits && (allow & EMU_RELAXED_WIDTH) && emu_type_fits_relaxed(s->type, type);
    bool has_offset = o->has_offset && takes_offset(d, o, s);
    if ((!fits && !wider) || (o->has_offset && !has_offset) || (s->vector > 1 && !o->element)) {
        log_mismatch(d, o, s->vector > 1 && !o->element ? "a vector" : found, type);
        return EMU_SINK;
    }
    if (s->vector == 1 && o->element) {
        emu_decode_error(d, "'%.*s' is not a vector: it has no .%c", EMU_TEXT(o->name), o->element);
        return EMU_SINK;
    }
    if (o->is_negated && (!(allow & EMU_NEGATABLE) || s->type != EMU_PRED)) {
        emu_decode_error(d, "'!' is not allowed here");
        return EMU_SINK;
    }
    if (has_offset)
        slot = add_offset(d, o, s, slot);
    return wider ? chop(d, slot, s->type, type) : slot | (o->is_negated ? 2u : 0u);
}

static uint32_t decode_special(emu_decoder *d, const emu_operand *o, emu_type type)
{
    emu_special special;
    if (o->has_offset || o->is_negated) {
        emu_decode_error(d, "'%.*s' must be used directly, without '!' or '+'", EMU_TEXT(o->name));
        return EMU_SINK;
    }
    if (emu_special_is_refused(o->name)) {
        emu_decode_unsupported(d, o->name, "");
        return EMU_SINK;
    }
    if (!emu_special_named(o->name, o->element, &special)) {
        emu_decode_error(d, "'%.*s' is not declared", EMU_TEXT(o->name));
        return EMU_SINK;
    }
    emu_type own = emu_special_type(special);
    if (special == EMU_GRIDID &&
        emu_types[type].bytes == 4) /* it once was .u32, and can still be read as such */
        own = EMU_U32;
    if (!emu_type_fits(own, type) && !(own == EMU_U32 && emu_types[type].bytes == 2)) {
        log_mismatch(d, o, own == EMU_U64 ? ".u64" : own == EMU_PRED ? ".pred" : ".u32", type);
        return EMU_SINK;
    }
    emu_op op = {.run = emu_micro_handlers()->special, .imm = special, .arg = {emu_temporary(d)}};
    op.mods.type = (uint8_t)type;
    emu_emit(d, &op, (emu_uses){.writes = 1, .args = 1});
    return op.arg[0];
}

/* Logs the errors of ptxas for addresses: global ones do not fit 32 bits, and call parameters have none. */
static void check_address_type(emu_decoder *d, const emu_symbol *v, emu_type type)
{
    if (emu_types[type].class == EMU_FLOAT)
        emu_decode_error(d, "the address of '%.*s' cannot be of type .%s", EMU_TEXT(v->name),
                         emu_types[type].name);
    else if (v->space == EMU_GLOBAL && emu_types[type].bytes == 4)
        emu_decode_error(d, "the address of '%.*s' takes 64 bits", EMU_TEXT(v->name));
    else if (v->space == EMU_PARAM_CALL && !v->is_parameter)
        emu_decode_error(d, "the address of the call parameter '%.*s' cannot be taken", EMU_TEXT(v->name));
}

/* An address in shared memory has the rank of the block in its cluster, which only the launch knows. */
static uint32_t shared_address(emu_decoder *d, emu_type type, uint64_t offset)
{
    emu_op op = {.run = emu_micro_handlers()->shared_address,
                 .arg = {emu_temporary(d), emu_decode_constant(d, emu_types[type].bytes, offset)}};
    op.mods.type = (uint8_t)type;
    emu_emit(d, &op, (emu_uses){.writes = 1, .args = 2});
    return op.arg[0];
}

static uint32_t decode_name(emu_decoder *d, const emu_operand *o, emu_type type, unsigned allow)
{
    uint32_t slot;
    uint64_t address;
    const emu_symbol *s = emu_decode_register(d, o, &slot);
    if (s)
        return decode_register_source(d, o, s, slot, type, allow);
    const emu_function *f =
        allow & EMU_ADDRESS_OF ? emu_find_function(d->in->module, o->name, d->instruction->declared) : NULL;
    if (o->is_negated && (f || emu_find_variable(d, o)))
        emu_decode_error(d, "'!' is not allowed here");
    if (f && o->has_offset)
        emu_decode_error(d, "nothing can be added to the address of the function '%.*s'", EMU_TEXT(o->name));
    if (f)
        return emu_decode_constant(d, emu_types[type].bytes, emu_function_address(f));
    const emu_symbol *v = emu_find_variable(d, o);
    if (v && (allow & EMU_ADDRESS_OF) && emu_variable_address(d, v, &address)) {
        check_address_type(d, v, type);
        if (v->space == EMU_SHARED)
            return shared_address(d, type, address + byte_offset(d, o, v));
        return emu_decode_constant(d, emu_types[type].bytes, address + byte_offset(d, o, v));
    }
    if (v) {
        emu_decode_error(d, "the variable '%.*s' cannot be an operand here", EMU_TEXT(o->name));
        return EMU_SINK;
    }
    if (allow & EMU_SPECIAL)
        return decode_special(d, o, type);
    emu_special special;
    if (emu_special_named(o->name, o->element, &special))
        emu_decode_error(d, "the special register '%.*s' can be an operand of mov and cvt only",
                         EMU_TEXT(o->name));
    else
        emu_decode_error(d, "'%.*s' is not declared", EMU_TEXT(o->name));
    return EMU_SINK;
}

static uint64_t double_bits_as(uint64_t bits, emu_type type, bool single)
{
    float f;
    double v;
    if (single) {
        memcpy(&f, &bits, sizeof f);
        v = (double)f;
    } else {
        memcpy(&v, &bits, sizeof v);
        f = (float)v;
    }
    if (emu_types[type].bytes == 8)
        memcpy(&bits, &v, sizeof v);
    else if (!single) {
        bits = 0;
        memcpy(&bits, &f, sizeof f);
    }
    return bits;
}

static uint32_t decode_float(emu_decoder *d, const emu_operand *o, emu_type type)
{
    bool single = o->kind == EMU_OPERAND_SINGLE;
    bool fits = type == EMU_F32 || type == EMU_F64 || type == (single ? EMU_B32 : EMU_B64);
    if (!fits) {
        emu_decode_error(d, "a floating-point constant cannot be of type .%s", emu_types[type].name);
        return EMU_SINK;
    }
    return emu_decode_constant(d, emu_types[type].bytes, double_bits_as(o->value, type, single));
}

static uint32_t decode_integer(emu_decoder *d, const emu_operand *o, emu_type type)
{
    unsigned class = emu_types[type].class;
    if (type == EMU_PRED)
        return emu_decode_constant(d, 4, o->value ? UINT32_MAX : 0);
    if (class == EMU_FLOAT || class == EMU_PACKED || type == EMU_B128) {
        emu_decode_error(d, "an integer constant cannot be of type .%s", emu_types[type].name);
        return EMU_SINK;
    }
    return emu_decode_constant(d, emu_types[type].bytes, o->value);
}

uint32_t emu_decode_source(emu_decoder *d, const emu_operand *o, emu_type type, unsigned allow)
{
    switch (o->kind) {
    case EMU_OPERAND_NAME:
        return decode_name(d, o, type, allow);
    case EMU_OPERAND_INT:
        return decode_integer(d, o, type);
    case EMU_OPERAND_DOUBLE:
    case EMU_OPERAND_SINGLE:
        return decode_float(d, o, type);
    default:
        emu_decode_error(d, "expected a register or a constant of type .%s", emu_types[type].name);
    }
    return EMU_SINK;
}

emu_destination emu_decode_destination(emu_decoder *d, const emu_operand *o, emu_type type, unsigned allow,
                                       bool sink_allowed)
{
    emu_destination to = {EMU_SINK, EMU_SINK, type, type};
    if (o->kind == EMU_OPERAND_SINK && sink_allowed)
        return to;
    uint32_t slot;
    const emu_symbol *s = emu_decode_register(d, o, &slot);
    if (!s) {
        if (o->kind == EMU_OPERAND_NAME)
            emu_decode_error(d, "'%.*s' is not a declared register", EMU_TEXT(o->name));
        else
            emu_decode_error(d, "expected a register of type .%s as the destination", emu_types[type].name);
        return to;
    }
    if (o->has_offset) {
        emu_decode_error(d, "'%.*s' is the destination: expected a register alone", EMU_TEXT(o->name));
        return to;
    }
    uint32_t checked = decode_register_source(d, o, s, slot, s->type, 0);
    bool fits = emu_type_fits(s->type, type);
    bool wider = !fits && (allow & EMU_RELAXED_WIDTH) && emu_type_fits_relaxed(s->type, type);
    if (checked != slot || fits) {
        to.arg = to.slot = slot;
        return to;
    }
    if (!wider) {
        char found[32] = ".";
        strcat(found, emu_types[s->type].name);
        log_mismatch(d, o, found, type);
        return to;
    }
    to.arg = emu_temporary(d);
    to.slot = slot;
    to.reg_type = s->type;
    return to;
}

void emu_finish_destination(emu_decoder *d, const emu_destination *to)
{
    if (to->arg == to->slot)
        return;
    emu_type type = emu_types[to->type].class == EMU_FLOAT || emu_types[to->type].class == EMU_PACKED
                        ? emu_bits_type(emu_types[to->type].bytes)
                        : to->type;
    unsigned size = (unsigned)__builtin_ctz(emu_types[to->reg_type].bytes);
    emu_op op = {.run = emu_micro_handlers()->extend[type][size - 1], .arg = {to->slot, to->arg}};
    op.mods.type = (uint8_t)type;
    emu_emit(d, &op, (emu_uses){.writes = 1, .args = 2});
}

/* An address register of 32 bits (or 16, which ptxas accepts) is zero-extended. */
static uint32_t address_register(emu_decoder *d, const emu_operand *o, const emu_symbol *s, uint32_t slot,
                                 emu_op *op)
{
    unsigned bytes = emu_types[s->type].bytes, class = emu_types[s->type].class;
    bool windowed = op->mods.space == EMU_SHARED || op->mods.space == EMU_SHARED_CLUSTER ||
                    op->mods.space == EMU_LOCAL || op->mods.space == EMU_CONST ||
                    op->mods.space == EMU_PARAM || op->mods.space == EMU_PARAM_CALL;
    if (class == EMU_FLOAT || class == EMU_PACKED || class == EMU_PREDICATE || (bytes != 8 && !windowed) ||
        bytes < 2) {
        emu_decode_error(d, "'%.*s' cannot hold this address: expected %s", EMU_TEXT(o->name),
                         windowed ? "an integer register of 32 or 64 bits" : "a 64-bit integer register");
        return EMU_SINK;
    }
    if (bytes == 8)
        return slot;
    emu_type unsigned_type = bytes == 4 ? EMU_U32 : EMU_U16;
    emu_op extend = {.run = emu_micro_handlers()->extend[unsigned_type][2], .arg = {emu_temporary(d), slot}};
    emu_emit(d, &extend, (emu_uses){.writes = 1, .args = 2});
    op->mods.flags |= EMU_ADDRESS_32;
    return extend.arg[0];
}

/* A generic access cannot name a .const or .param variable, though the variable's address can be made generic. */
static bool spaces_agree(emu_op *op, emu_space variable)
{
    bool has_generic = variable == EMU_GLOBAL || variable == EMU_SHARED || variable == EMU_LOCAL;
    if ((op->mods.space == EMU_GENERIC && has_generic) ||
        (op->mods.space == EMU_PARAM && variable == EMU_PARAM_CALL))
        op->mods.space = (uint8_t)variable;
    return op->mods.space == variable || (op->mods.space == EMU_SHARED_CLUSTER && variable == EMU_SHARED);
}

/* Formal parameters are only read, and results only written (ISA 5.1.6). */
static void check_direction(emu_decoder *d, const emu_symbol *v)
{
    const bool writes = emu_text_is(d->instruction->opcode, "st");
    if (v->is_parameter && v->is_result != writes)
        emu_decode_error(d,
                         writes ? "'%.*s' is a parameter: it cannot be written"
                                : "'%.*s' is a result: it cannot be read",
                         EMU_TEXT(v->name));
}

uint32_t emu_decode_address(emu_decoder *d, const emu_operand *o, emu_op *op)
{
    bool is_element = o->kind == EMU_OPERAND_NAME && o->is_index;
    if (!is_element && (o->kind != EMU_OPERAND_ADDRESS || o->count != 1)) {
        emu_decode_error(d, "expected an address in brackets");
        return EMU_SINK;
    }
    const emu_operand *base = is_element ? o : &o->items[0];
    op->imm = is_element ? 0 : (int64_t)o->value;
    if (base->is_index && !is_element)
        emu_decode_error(d, "brackets cannot hold brackets: expected [%.*s+...] or %.*s[...]",
                         EMU_TEXT(base->name), EMU_TEXT(base->name));
    if (base->kind == EMU_OPERAND_INT && op->mods.space != EMU_LOCAL)
        emu_decode_error(d, "only an access to .local can have a constant as its address");
    if (base->kind == EMU_OPERAND_INT)
        return emu_decode_constant(d, 8, base->value);
    uint32_t slot;
    const emu_symbol *s = emu_decode_register(d, base, &slot);
    bool in_device_function = !d->code->function->is_entry;
    if (s && is_element)
        emu_decode_error(d, "'%.*s' is not an array", EMU_TEXT(base->name));
    if (s && op->mods.space == EMU_PARAM && in_device_function)
        op->mods.space = EMU_PARAM_CALL;
    if (s)
        return address_register(d, base, s, slot, op);
    const emu_symbol *v = emu_find_variable(d, base);
    uint64_t address;
    if (!v || !emu_variable_address(d, v, &address)) {
        emu_decode_error(d, "'%.*s' is not declared", EMU_TEXT(base->name));
        return EMU_SINK;
    }
    if (!spaces_agree(op, v->space)) {
        emu_decode_error(d, "'%.*s' is in .%s, the instruction accesses .%s", EMU_TEXT(base->name),
                         emu_space_names[v->space], emu_space_names[op->mods.space]);
        return EMU_SINK;
    }
    check_direction(d, v);
    return emu_decode_constant(d, 8, address + (is_element ? byte_offset(d, o, v) : 0));
}

typedef enum element_kind { ELEMENT_ANY, ELEMENT_INTEGER, ELEMENT_FLOAT } element_kind;

static element_kind kind_of_element(emu_decoder *d, const emu_operand *o, unsigned *bytes)
{
    uint32_t slot;
    const emu_symbol *s = emu_decode_register(d, o, &slot);
    if (o->kind == EMU_OPERAND_INT)
        return ELEMENT_INTEGER;
    if (o->kind == EMU_OPERAND_SINGLE || o->kind == EMU_OPERAND_DOUBLE)
        return ELEMENT_FLOAT;
    if (!s)
        return ELEMENT_ANY; /* decoding the element will report the error */
    *bytes = emu_types[s->type].bytes;
    unsigned class = emu_types[s->type].class;
    return class == EMU_FLOAT                             ? ELEMENT_FLOAT
           : class == EMU_UNSIGNED || class == EMU_SIGNED ? ELEMENT_INTEGER
                                                          : ELEMENT_ANY;
}

/* Elements in braces have one width, and are either integers or floats; registers of bit type fit both. */
static void check_elements_alike(emu_decoder *d, const emu_operand *elements, unsigned count)
{
    unsigned width = 0, sinks = 0;
    bool has[3] = {false};
    for (unsigned i = 0; i < count; i++) {
        unsigned bytes = 0;
        sinks += elements[i].kind == EMU_OPERAND_SINK;
        has[kind_of_element(d, &elements[i], &bytes)] = true;
        if (bytes && width && bytes != width) {
            emu_decode_error(d, "the elements of a vector must be of one width; '%.*s' is not",
                             EMU_TEXT(elements[i].name));
            return;
        }
        width = bytes ? bytes : width;
    }
    if (sinks == count)
        emu_decode_error(d, "a vector needs an element other than '_'");
    if (has[ELEMENT_INTEGER] && has[ELEMENT_FLOAT])
        emu_decode_error(d, "a vector cannot hold integers and floats");
}

bool emu_decode_elements(emu_decoder *d, const emu_operand *o, unsigned count, emu_operand *elements)
{
    static const char names[] = "xyzw";
    uint32_t slot;
    const emu_symbol *s = emu_decode_vector(d, o, &slot);
    if (s && s->vector == count) {
        for (unsigned i = 0; i < count; i++) {
            elements[i] = *o;
            elements[i].element = names[i];
        }
        return true;
    }
    if (o->kind != EMU_OPERAND_VECTOR || o->count != count) {
        emu_decode_error(d, "expected a vector of %u elements", count);
        return false;
    }
    memcpy(elements, o->items, count * sizeof *elements);
    check_elements_alike(d, elements, count);
    return true;
}
