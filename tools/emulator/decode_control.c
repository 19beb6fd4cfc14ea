/* Instructions whose operands are labels, functions or lists of them; and mov, which takes nearly anything. */
#include "decode.h"

#include <string.h>

static bool is_plain_name(const emu_operand *o)
{
    return o->kind == EMU_OPERAND_NAME && !o->has_offset && !o->is_index && !o->is_negated && !o->element;
}

static size_t place_in_function(const emu_decoder *d)
{
    return (size_t)(d->instruction - d->placed->function->instructions);
}

/* A list of targets or a prototype, unlike a label, is declared before it is used. */
static const emu_symbol *find_label(emu_decoder *d, const emu_operand *o, emu_symbol_kind kind)
{
    uint32_t number;
    const emu_symbol *s = NULL;
    if (is_plain_name(o))
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

static void add_fixup(emu_decoder *d, const emu_function *f, const emu_symbol *label)
{
    emu_fixup *fixup = emu_list_add(&d->program->arena, &d->fixups, sizeof *fixup);
    *fixup = (emu_fixup){.op = d->ops.count, .function = f, .label = label};
}

bool emu_decode_bra(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    if (!has_operands(d, i, 1, 1))
        return false;
    const emu_symbol *label = find_label(d, &i->operands[0], EMU_SYMBOL_LABEL);
    if (!label)
        return false;
    op->run = op->mods.flags & EMU_UNIFORM ? emu_control_handlers()->branch_uniform
                                           : emu_control_handlers()->branch;
    add_fixup(d, NULL, label);
    emu_emit(d, op, (emu_uses){0});
    return true;
}

bool emu_decode_brx(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    if (!has_operands(d, i, 2, 2))
        return false;
    op->arg[0] = emu_decode_source(d, &i->operands[0], EMU_U32, 0);
    const emu_symbol *targets = find_label(d, &i->operands[1], EMU_SYMBOL_TARGETS);
    if (!targets)
        return false;
    op->list = (const uint32_t *)(uintptr_t)(emu_list_begin(d) + 1);
    op->imm = (int64_t)targets->target_count;
    for (size_t n = 0; n < targets->target_count; n++) {
        emu_operand name = {.kind = EMU_OPERAND_NAME, .name = targets->targets[n]};
        const emu_symbol *label = find_label(d, &name, EMU_SYMBOL_LABEL);
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

/* Call parameters live in the thread's local memory. */
static void emit_local(emu_decoder *d, emu_handler *run, uint32_t arg, uint64_t offset, unsigned bytes,
                       bool writes)
{
    emu_op op = {.run = run, .arg = {arg}, .imm = (int64_t)offset};
    op.mods.count = (uint8_t)bytes;
    emu_emit(d, &op, (emu_uses){.writes = writes, .args = 1});
}

static void copy_local(emu_decoder *d, uint64_t to, uint64_t from, uint64_t bytes)
{
    const emu_control *m = emu_control_handlers();
    uint32_t through = emu_temporary(d);
    for (unsigned piece = 8; piece; piece /= 2)
        for (; bytes >= piece; bytes -= piece, to += piece, from += piece) {
            emit_local(d, m->load_local, through, from, piece, true);
            emit_local(d, m->store_local, through, to, piece, false);
        }
    d->temporaries_used--;
}

static void copy_register(emu_decoder *d, emu_type type, uint32_t to, uint32_t from)
{
    const emu_micro *m = emu_micro_handlers();
    emu_op op = {.arg = {to, from}};
    op.run = type == EMU_PRED ? m->copy_predicate : m->copy[__builtin_ctz(emu_types[type].bytes)];
    emu_emit(d, &op, (emu_uses){.writes = 1, .args = 2});
}

static void pass_argument(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual)
{
    const emu_symbol *variable = actual->kind == EMU_OPERAND_NAME ? emu_find_variable(d, actual) : NULL;
    uint64_t to = d->addresses[formal->sequence];
    if (variable && variable->space == EMU_PARAM_CALL && formal->space != EMU_REG) {
        if (variable->bytes != formal->bytes)
            emu_decode_error(d, "'%.*s' has %llu bytes, the parameter has %llu", EMU_TEXT(actual->name),
                             (unsigned long long)variable->bytes, (unsigned long long)formal->bytes);
        copy_local(d, to, d->addresses[variable->sequence], formal->bytes);
        return;
    }
    uint32_t source = emu_decode_source(d, actual, formal->type, 0);
    if (formal->space == EMU_REG)
        copy_register(d, formal->type, emu_slot(d, formal), source);
    else
        emit_local(d, emu_control_handlers()->store_local, source, to, emu_types[formal->type].bytes, false);
}

static void take_result(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual)
{
    const emu_symbol *variable = actual->kind == EMU_OPERAND_NAME ? emu_find_variable(d, actual) : NULL;
    uint64_t from = d->addresses[formal->sequence];
    if (variable && variable->space == EMU_PARAM_CALL && formal->space != EMU_REG) {
        if (variable->bytes < formal->bytes)
            emu_decode_error(d, "'%.*s' is smaller than the result", EMU_TEXT(actual->name));
        copy_local(d, d->addresses[variable->sequence], from, formal->bytes);
        return;
    }
    emu_destination to = emu_decode_destination(d, actual, formal->type, 0, true);
    if (formal->space == EMU_REG)
        copy_register(d, formal->type, to.arg, emu_slot(d, formal));
    else
        emit_local(d, emu_control_handlers()->load_local, to.arg, from, emu_types[formal->type].bytes, true);
}

emu_call emu_call_parts(const emu_instruction *i)
{
    static const emu_operand none = {.kind = EMU_OPERAND_LIST};
    emu_call call = {.results = &none, .arguments = &none};
    const emu_operand *o = i->operands, *end = o + i->operand_count;
    if (o < end && o->kind == EMU_OPERAND_LIST)
        call.results = o++;
    if (o < end && o->kind == EMU_OPERAND_NAME)
        call.callee = o++;
    if (call.callee && o < end && o->kind == EMU_OPERAND_LIST)
        call.arguments = o++;
    call.prototype = o < end ? o : NULL;
    return call;
}

static void pass_arguments(emu_decoder *d, const emu_function *f, const emu_call *call)
{
    for (uint32_t k = 0; k < call->arguments->count; k++)
        pass_argument(d, f->parameters[k], &call->arguments->items[k]);
}

static bool is_guard(emu_decoder *d, const emu_operand *o)
{
    uint32_t slot;
    return d->guard && emu_decode_register(d, o, &slot) && slot == (d->guard & ~1u);
}

/* Every copy has the call's guard, so a result that goes to the guard comes last. */
static void take_results(emu_decoder *d, const emu_function *f, const emu_call *call)
{
    const emu_operand *to = call->results->items;
    for (int last = 0; last < 2; last++)
        for (uint32_t k = 0; k < call->results->count; k++)
            if (is_guard(d, &to[k]) == last)
                take_result(d, f->results[k], &to[k]);
}

/* What ptxas and the driver have a body for. */
static bool is_of_device_runtime(const emu_function *f)
{
    static const char *const names[] = {"vprintf", "malloc", "free"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (emu_text_is(f->name, names[i]))
            return true;
    return false;
}

static bool decode_direct_call(emu_decoder *d, const emu_function *f, const emu_call *call, emu_op *op)
{
    emu_placed *placed = emu_find_placed(d, f);
    if (!f->is_defined && emu_text_is(f->name, "__assertfail")) { /* where assert() leads */
        op->run = emu_control_handlers()->fail_assertion;
        emu_emit(d, op, (emu_uses){0});
        return true;
    }
    if (placed && (!placed->op_of_instruction || placed == d->placed)) {
        emu_decode_unsupported(d, f->name, ", called by itself (recursion),");
        return false;
    }
    if (!placed && is_of_device_runtime(f)) {
        emu_decode_unsupported(d, f->name, ", a function of the device runtime,");
        return false;
    }
    if (!placed) {
        emu_decode_error(d, "function '%.*s' has no body", EMU_TEXT(f->name));
        return false;
    }
    if (call->results->count != f->result_count || call->arguments->count != f->parameter_count) {
        emu_decode_error(d, "'%.*s' takes %zu arguments and gives %zu results", EMU_TEXT(f->name),
                         f->parameter_count, f->result_count);
        return false;
    }
    pass_arguments(d, f, call);
    op->run = emu_control_handlers()->call;
    op->arg[0] = placed->return_slot;
    add_fixup(d, f, NULL);
    emu_emit(d, op, (emu_uses){0});
    take_results(d, f, call);
    return true;
}

static bool can_hold(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual)
{
    uint32_t slot;
    if (formal->space == EMU_REG || actual->kind != EMU_OPERAND_NAME)
        return formal->space != EMU_REG;
    const emu_symbol *variable = emu_find_variable(d, actual), *reg = emu_decode_register(d, actual, &slot);
    return variable ? variable->bytes == formal->bytes : reg && emu_type_fits(reg->type, formal->type);
}

static bool may_be_called(emu_decoder *d, const emu_placed *placed, const emu_call *call)
{
    const emu_function *f = placed->function;
    bool fits = !f->is_entry && placed != d->placed && placed->op_of_instruction &&
                f->parameter_count == call->arguments->count && f->result_count == call->results->count;
    for (uint32_t k = 0; fits && k < call->arguments->count; k++)
        fits = can_hold(d, f->parameters[k], &call->arguments->items[k]);
    for (uint32_t k = 0; fits && k < call->results->count; k++)
        fits = can_hold(d, f->results[k], &call->results->items[k]);
    return fits;
}

/* Every function that may be meant is given the arguments, since their parameters have places of their own; the call sends
   each lane to its function, which returns to the operations that take that function's results. */
static bool decode_indirect_call(emu_decoder *d, const emu_call *call, emu_op *op)
{
    emu_placed **all = d->functions.items;
    size_t first = emu_list_begin(d);
    op->arg[0] = emu_decode_source(d, call->callee, EMU_U64, 0);
    for (size_t n = 0; n < d->functions.count; n++)
        if (may_be_called(d, all[n], call)) {
            pass_arguments(d, all[n]->function, call);
            emu_list_push(d, (uint32_t)emu_function_address(all[n]->function));
            emu_list_push(d, (uint32_t)all[n]->start);
            emu_list_push(d, all[n]->return_slot);
            emu_list_push(d, 0);
            op->imm++;
        }
    op->run = emu_control_handlers()->call_indirect;
    op->list = (const uint32_t *)(uintptr_t)(first + 1);
    emu_emit(d, op, (emu_uses){.args = 1});
    size_t first_jump = d->fixups.count;
    for (size_t n = 0, k = 0; n < d->functions.count; n++)
        if (may_be_called(d, all[n], call)) {
            ((uint32_t *)d->lists.items)[first + 4 * k++ + 3] = (uint32_t)d->ops.count;
            take_results(d, all[n]->function, call);
            add_fixup(d, NULL, NULL);
            emu_emit(d, &(emu_op){.run = emu_control_handlers()->branch}, (emu_uses){0});
        }
    for (size_t n = first_jump; n < d->fixups.count; n++)
        ((emu_fixup *)d->fixups.items)[n].to = d->ops.count;
    return true;
}

static bool is_prototype(emu_decoder *d, const emu_operand *o)
{
    uint32_t number;
    const emu_symbol *s = emu_find(d->in->module, d->instruction->scope, o->name, &number);
    return s && s->kind == EMU_SYMBOL_PROTOTYPE;
}

bool emu_decode_call(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    emu_call call = emu_call_parts(i);
    if (!call.callee) {
        emu_decode_error(d, "expected the function to call");
        return false;
    }
    if (!is_plain_name(call.callee)) {
        emu_decode_error(d, "expected the function to call by its name alone");
        return false;
    }
    const emu_function *f = emu_find_function(d->in->module, call.callee->name);
    if (f && !call.prototype)
        return decode_direct_call(d, f, &call, op);
    if (!call.prototype) {
        emu_decode_error(
            d, "'%.*s' is not a function; a call through a register names its prototype or its targets",
            EMU_TEXT(call.callee->name));
        return false;
    }
    emu_symbol_kind kind = is_prototype(d, call.prototype) ? EMU_SYMBOL_PROTOTYPE : EMU_SYMBOL_TARGETS;
    return find_label(d, call.prototype, kind) && decode_indirect_call(d, &call, op);
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
    copy_register(d, type, destination.arg, source);
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
            copy_register(d, type, kept, source[k]);
            source[k] = kept;
        }
    for (unsigned k = 0; k < count; k++)
        if (destination[k].arg != EMU_SINK)
            copy_register(d, type, destination[k].arg, source[k]);
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
