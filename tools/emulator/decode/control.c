/* Instructions whose operands are labels or functions: branches, calls, returns. */
#include "decoder.h"

static bool is_plain_name(const emu_operand *o)
{
    return o->kind == EMU_OPERAND_NAME && !o->has_offset && !o->is_index && !o->is_negated && !o->element;
}

/* Finds a label, a target list or a prototype. Only labels may be used before they are declared. */
static const emu_symbol *find_label(emu_decoder *d, const emu_operand *o, emu_symbol_kind kind)
{
    uint32_t number;
    const emu_symbol *s = is_plain_name(o) ? emu_find_name(d, o->name, &number) : NULL;
    if (is_plain_name(o) && kind == EMU_SYMBOL_LABEL && (!s || s->kind == EMU_SYMBOL_LABEL))
        s = emu_find(d->in->module, d->instruction->scope, o->name, UINT32_MAX, &number);
    if (s && s->kind == kind)
        return s;
    emu_decode_error(d, "'%.*s' is not a label in scope", EMU_TEXT(o->name));
    return NULL;
}

/* Records the target of the next operation, a function's start or a label, to be filled in later. */
static void add_fixup(emu_decoder *d, const emu_function *f, const emu_symbol *label)
{
    emu_fixup *fixup = emu_list_add(&d->program->arena, &d->fixups, sizeof *fixup);
    *fixup = (emu_fixup){.op = d->ops.count, .function = f, .label = label};
}

bool emu_decode_bra(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    if (!emu_has_operands(d, i, 1))
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
    if (!emu_has_operands(d, i, 2))
        return false;
    op->arg[0] = emu_decode_source(d, &i->operands[0], EMU_U32, 0);
    const emu_symbol *targets = find_label(d, &i->operands[1], EMU_SYMBOL_TARGETS);
    if (!targets)
        return false;
    op->list = (const uint32_t *)(uintptr_t)emu_list_begin(d);
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
    if (!emu_has_operands(d, i, 0))
        return false;
    bool leaves_kernel = d->code->function->is_entry || emu_text_is(i->opcode, "exit");
    op->run = leaves_kernel ? emu_control_handlers()->exit : emu_control_handlers()->ret;
    op->arg[0] = d->code->return_slot;
    emu_emit(d, op, (emu_uses){0});
    return true;
}

/* ---- calls: arguments and results, by registers or through the thread's local memory --------------------------------- */

/* Accesses a call parameter in the thread's local memory. */
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

static const emu_symbol *call_variable(emu_decoder *d, const emu_operand *actual)
{
    const emu_symbol *s = actual->kind == EMU_OPERAND_NAME ? emu_find_variable(d, actual) : NULL;
    return s && s->space == EMU_PARAM_CALL ? s : NULL;
}

/* Follows ptxas: an array matches an array, and a scalar a scalar, of equal size and in .param of equal alignment; a vector
   matches any object of equal size. Types may differ. */
static bool is_as_large(const emu_symbol *formal, const emu_symbol *actual)
{
    uint64_t bytes = (uint64_t)emu_types[actual->type].bytes * actual->vector;
    if (actual->kind == EMU_SYMBOL_VARIABLE)
        return actual->bytes == formal->bytes && actual->is_array == formal->is_array &&
               formal->vector == 1 && (formal->space == EMU_REG || actual->alignment == formal->alignment);
    if (formal->vector > 1)
        return formal->vector == actual->vector &&
               emu_types[formal->type].bytes == emu_types[actual->type].bytes;
    return !formal->is_array && emu_types[formal->type].bytes == bytes;
}

static bool log_size(emu_decoder *d, const emu_symbol *formal, const emu_symbol *actual)
{
    bool fits = is_as_large(formal, actual);
    if (!fits)
        emu_decode_error(d, "'%.*s' is not of the size, alignment and kind of the parameter '%.*s'",
                         EMU_TEXT(actual->name), EMU_TEXT(formal->name));
    return fits;
}

/* Temporary local memory, to convert registers of one size to registers of another. */
static uint64_t scratch(emu_decoder *d)
{
    if (!d->scratch) {
        d->scratch = emu_align_up(d->program->local_bytes, 16);
        d->program->local_bytes = (uint32_t)d->scratch + 16;
    }
    return d->scratch;
}

/* Copies all elements of a register to or from local memory. */
static void move_elements(emu_decoder *d, const emu_symbol *s, uint32_t slot, uint64_t at, bool stores)
{
    const emu_control *m = emu_control_handlers();
    unsigned bytes = emu_types[s->type].bytes;
    for (unsigned k = 0; k < s->vector; k++)
        emit_local(d, stores ? m->store_local : m->load_local, slot + k * emu_slot_bytes(s->type),
                   at + k * bytes, bytes, !stores);
}

/* Copies between a formal parameter and the vector register that is passed for it. */
static void move_vector(emu_decoder *d, const emu_symbol *formal, const emu_symbol *s, uint32_t slot,
                        bool is_result)
{
    if (!log_size(d, formal, s))
        return;
    uint64_t at = formal->space == EMU_REG ? scratch(d) : emu_place_of(d, formal->sequence)->address;
    if (!is_result)
        move_elements(d, s, slot, at, true);
    if (formal->space == EMU_REG)
        move_elements(d, formal, emu_slot(d, formal), at, is_result);
    if (is_result)
        move_elements(d, s, slot, at, false);
}

/* Passes a vector register or a variable, or moves the result to it. Returns false if the operand is neither. */
static bool move_whole(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual, bool is_result)
{
    uint32_t slot;
    const emu_symbol *variable = call_variable(d, actual), *vector = emu_decode_vector(d, actual, &slot);
    if (vector) {
        move_vector(d, formal, vector, slot, is_result);
    } else if (variable && log_size(d, formal, variable)) {
        uint64_t at = emu_place_of(d, variable->sequence)->address,
                 parameter = emu_place_of(d, formal->sequence)->address;
        if (formal->space == EMU_REG)
            move_elements(d, formal, emu_slot(d, formal), at, is_result);
        else
            copy_local(d, is_result ? at : parameter, is_result ? parameter : at, formal->bytes);
    }
    return vector || variable;
}

static void pass_argument(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual)
{
    if (move_whole(d, formal, actual, false))
        return;
    if (formal->vector > 1 || formal->type == EMU_PRED) {
        emu_decode_error(d,
                         formal->vector > 1 ? "the parameter '%.*s' takes a vector register"
                                            : "the parameter '%.*s' is a predicate, which cannot be passed",
                         EMU_TEXT(formal->name));
        return;
    }
    uint32_t source = emu_decode_source(d, actual, formal->type, 0);
    if (formal->space == EMU_REG)
        emu_copy_register(d, formal->type, emu_slot(d, formal), source);
    else
        emit_local(d, emu_control_handlers()->store_local, source, emu_place_of(d, formal->sequence)->address,
                   emu_types[formal->type].bytes, false);
}

static void take_result(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual)
{
    if (move_whole(d, formal, actual, true) || actual->kind == EMU_OPERAND_SINK)
        return;
    if (formal->vector > 1) {
        emu_decode_error(d, "the result '%.*s' goes to a vector register", EMU_TEXT(formal->name));
        return;
    }
    emu_destination to = emu_decode_destination(d, actual, formal->type, 0, true);
    if (formal->space == EMU_REG)
        emu_copy_register(d, formal->type, to.arg, emu_slot(d, formal));
    else
        emit_local(d, emu_control_handlers()->load_local, to.arg, emu_place_of(d, formal->sequence)->address,
                   emu_types[formal->type].bytes, true);
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

/* Every copy has the call's guard, so the result that overwrites the guard comes last. */
static void take_results(emu_decoder *d, const emu_function *f, const emu_call *call)
{
    const emu_operand *to = call->results->items;
    for (int last = 0; last < 2; last++)
        for (uint32_t k = 0; k < call->results->count; k++)
            if (is_guard(d, &to[k]) == last)
                take_result(d, f->results[k], &to[k]);
}

/* Functions that ptxas or the driver provides. */
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
    emu_function_code *code = emu_find_code(d, f);
    if (!f->is_defined && emu_text_is(f->name, "__assertfail")) { /* called by a failing assert() */
        op->run = emu_control_handlers()->fail_assertion;
        emu_emit(d, op, (emu_uses){0});
        return true;
    }
    if (f->is_entry) {
        emu_decode_error(d, "'%.*s' is a kernel, which cannot be called", EMU_TEXT(f->name));
        return false;
    }
    if (code && !code->can_be_called) {
        emu_decode_unsupported(d, f->name, ", called by itself (recursion),");
        return false;
    }
    if (!code && is_of_device_runtime(f)) {
        emu_decode_unsupported(d, f->name, ", a function of the device runtime,");
        return false;
    }
    if (!code) {
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
    op->arg[0] = code->return_slot;
    add_fixup(d, f, NULL);
    emu_emit(d, op, (emu_uses){0});
    take_results(d, f, call);
    return true;
}

static void check_actual(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual, bool is_result)
{
    uint32_t slot;
    const emu_symbol *variable = call_variable(d, actual), *vector = emu_decode_vector(d, actual, &slot);
    if (variable || vector)
        log_size(d, formal, variable ? variable : vector);
    else if (formal->vector > 1)
        emu_decode_error(d, "the parameter '%.*s' takes a vector register", EMU_TEXT(formal->name));
    else if (is_result)
        emu_decode_destination(d, actual, formal->type, 0, true);
    else
        emu_decode_source(d, actual, formal->type, 0);
}

/* Checks a call through a register against its prototype, or against one of its targets. */
static bool check_signature(emu_decoder *d, const emu_function *f, const emu_call *call)
{
    unsigned errors = d->in->log->errors;
    if (call->results->count != f->result_count || call->arguments->count != f->parameter_count) {
        emu_decode_error(d, "'%.*s' has %zu parameters and %zu results", EMU_TEXT(f->name),
                         f->parameter_count, f->result_count);
        return false;
    }
    if (f->result_count > 1)
        emu_decode_error(d, "a call through a register has at most one result");
    for (size_t k = 0; k < f->parameter_count; k++)
        check_actual(d, f->parameters[k], &call->arguments->items[k], false);
    for (size_t k = 0; k < f->result_count; k++)
        check_actual(d, f->results[k], &call->results->items[k], true);
    return d->in->log->errors == errors;
}

static bool can_hold_constant(const emu_symbol *formal, const emu_operand *actual)
{
    unsigned class = emu_types[formal->type].class;
    bool is_float = actual->kind == EMU_OPERAND_DOUBLE || actual->kind == EMU_OPERAND_SINGLE;
    return !formal->is_array &&
           (is_float ? formal->type == EMU_F32 || formal->type == EMU_F64 : class != EMU_FLOAT);
}

static bool can_hold(emu_decoder *d, const emu_symbol *formal, const emu_operand *actual)
{
    uint32_t slot;
    if (formal->space == EMU_REG)
        return false;
    if (actual->kind == EMU_OPERAND_SINK)
        return true;
    if (actual->kind != EMU_OPERAND_NAME)
        return can_hold_constant(formal, actual);
    const emu_symbol *variable = call_variable(d, actual), *vector = emu_decode_vector(d, actual, &slot);
    if (variable || vector)
        return is_as_large(formal, variable ? variable : vector);
    const emu_symbol *reg = emu_decode_register(d, actual, &slot);
    return reg && emu_type_fits(reg->type, formal->type);
}

static bool is_target(emu_decoder *d, const emu_symbol *allowed, const emu_function *f)
{
    for (size_t n = 0; n < allowed->target_count; n++)
        if (emu_find_function(d->in->module, allowed->targets[n], UINT32_MAX) == f)
            return true;
    return allowed->kind == EMU_SYMBOL_PROTOTYPE;
}

static bool may_be_called(emu_decoder *d, const emu_function_code *code, const emu_call *call,
                          const emu_symbol *allowed)
{
    const emu_function *f = code->function;
    bool fits = !f->is_entry && code->can_be_called && f->parameter_count == call->arguments->count &&
                f->result_count == call->results->count && is_target(d, allowed, f);
    for (uint32_t k = 0; fits && k < call->arguments->count; k++)
        fits = can_hold(d, f->parameters[k], &call->arguments->items[k]);
    for (uint32_t k = 0; fits && k < call->results->count; k++)
        fits = can_hold(d, f->results[k], &call->results->items[k]);
    return fits;
}

/* Passes the arguments to every function that may be called, since each has parameters of its own. The call sends each lane
   to its function, which returns to the operations that take that function's results. */
static bool decode_indirect_call(emu_decoder *d, const emu_call *call, const emu_symbol *allowed, emu_op *op)
{
    emu_function_code **all = d->functions.items;
    size_t first = emu_list_begin(d);
    op->arg[0] = emu_decode_source(d, call->callee, EMU_U64, 0);
    for (size_t n = 0; n < d->functions.count; n++)
        if (may_be_called(d, all[n], call, allowed)) {
            pass_arguments(d, all[n]->function, call);
            emu_list_push(d, (uint32_t)emu_function_address(all[n]->function));
            emu_list_push(d, (uint32_t)all[n]->start);
            emu_list_push(d, all[n]->return_slot);
            emu_list_push(d, 0);
            op->imm++;
        }
    op->run = emu_control_handlers()->call_indirect;
    op->list = (const uint32_t *)(uintptr_t)first;
    emu_emit(d, op, (emu_uses){.args = 1});
    size_t first_jump = d->fixups.count;
    for (size_t n = 0, k = 0; n < d->functions.count; n++)
        if (may_be_called(d, all[n], call, allowed)) {
            ((uint32_t *)d->lists.items)[first + 4 * k++ + 3] = (uint32_t)d->ops.count;
            take_results(d, all[n]->function, call);
            add_fixup(d, NULL, NULL);
            emu_emit(d, &(emu_op){.run = emu_control_handlers()->branch}, (emu_uses){0});
        }
    for (size_t n = first_jump; n < d->fixups.count; n++)
        ((emu_fixup *)d->fixups.items)[n].to = d->ops.count;
    return true;
}

/* Returns the prototype or the list of targets of a call through a register, after checking the call; null after an error. */
static const emu_symbol *find_allowed(emu_decoder *d, const emu_call *call)
{
    uint32_t number;
    const emu_symbol *s =
        is_plain_name(call->prototype) ? emu_find_name(d, call->prototype->name, &number) : NULL;
    const bool is_prototype = s && s->kind == EMU_SYMBOL_PROTOTYPE;
    if (!s || (!is_prototype && !s->are_functions)) {
        emu_decode_error(d, "'%.*s' is not a .callprototype or .calltargets in scope",
                         EMU_TEXT(call->prototype->name));
        return NULL;
    }
    if (is_prototype)
        return check_signature(d, s->function, call) ? s : NULL;
    for (size_t n = 0; n < s->target_count; n++)
        if (!check_signature(d, emu_find_function(d->in->module, s->targets[n], UINT32_MAX), call))
            return NULL;
    return s;
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
    const emu_function *f = emu_find_function(d->in->module, call.callee->name, i->declared);
    if (f && !call.prototype)
        return decode_direct_call(d, f, &call, op);
    if (!call.prototype && emu_find_function(d->in->module, call.callee->name, UINT32_MAX)) {
        emu_decode_error(d, "the function '%.*s' is declared after this call", EMU_TEXT(call.callee->name));
        return false;
    }
    if (!call.prototype) {
        emu_decode_error(
            d, "'%.*s' is not a function; a call through a register names its prototype or its targets",
            EMU_TEXT(call.callee->name));
        return false;
    }
    const emu_symbol *allowed = find_allowed(d, &call);
    return allowed && decode_indirect_call(d, &call, allowed, op);
}
