/* Layout of a program: its functions in call order, shared and local variables, registers. */
#include "decoder.h"

#include <string.h>

emu_function_code *emu_find_code(emu_decoder *d, const emu_function *f)
{
    emu_function_code **all = d->functions.items;
    for (size_t i = 0; i < d->functions.count; i++)
        if (all[i]->function == f)
            return all[i];
    return NULL;
}

static void layout_local(emu_decoder *d, const emu_symbol *s)
{
    emu_program *p = d->program;
    uint64_t at = emu_align_up(p->local_bytes, s->alignment < 16 ? 16 : s->alignment);
    d->addresses[s->sequence] = at;
    d->has_address[s->sequence] = true;
    p->local_bytes = (uint32_t)(at + s->bytes);
}

static void layout_static_shared(emu_decoder *d, const emu_symbol *s)
{
    emu_program *p = d->program;
    uint32_t start = p->reserved_shared_bytes;
    uint64_t at = emu_align_up(start + p->static_shared_bytes, s->alignment);
    d->addresses[s->sequence] = at;
    d->has_address[s->sequence] = true;
    p->static_shared_bytes = (uint32_t)(at + s->bytes - start);
}

static void layout_variable(emu_decoder *d, const emu_symbol *s)
{
    if (d->has_address[s->sequence])
        return;
    if (s->space == EMU_SHARED && s->is_unsized) {
        if (d->dynamic_shared_alignment < s->alignment)
            d->dynamic_shared_alignment = s->alignment;
    } else if (s->space == EMU_SHARED) {
        layout_static_shared(d, s);
    } else if (s->space == EMU_LOCAL || s->space == EMU_PARAM_CALL) {
        layout_local(d, s);
    }
}

static void layout_operand(emu_decoder *d, const emu_instruction *i, const emu_operand *o)
{
    uint32_t number;
    if (o->kind == EMU_OPERAND_NAME) {
        const emu_symbol *s = emu_find(d->in->module, i->scope, o->name, &number);
        if (s && s->kind == EMU_SYMBOL_VARIABLE)
            layout_variable(d, s);
        else if (s && s->kind == EMU_SYMBOL_FUNCTION && emu_text_is(i->opcode, "call"))
            emu_layout_function(d, s->function);
    }
    for (uint32_t n = 0; n < o->count; n++)
        layout_operand(d, i, &o->items[n]);
}

static void layout_parameters(emu_decoder *d, emu_symbol **symbols, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (symbols[i]->kind == EMU_SYMBOL_VARIABLE)
            layout_variable(d, symbols[i]);
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

/* A call through a register may lead to any function that takes as many arguments. */
static void layout_indirect_callees(emu_decoder *d, const emu_instruction *i)
{
    emu_call call = emu_call_parts(i);
    if (!call.callee || emu_find_function(d->in->module, call.callee->name))
        return;
    for (const emu_function *f = d->in->module->functions; f; f = f->next)
        if (!f->is_entry && f->parameter_count == call.arguments->count &&
            f->result_count == call.results->count)
            emu_layout_function(d, f);
}

void emu_layout_function(emu_decoder *d, const emu_function *f)
{
    emu_arena *arena = &d->program->arena;
    emu_function_code *code = emu_find_code(d, f);
    if (code || !f->is_defined)
        return;
    for (emu_function_code *outer = d->code; outer; outer = outer->caller)
        if (outer->function == f)
            return; /* recursion: the decoder of call refuses it */
    code = emu_arena_alloc(arena, sizeof *code);
    code->caller = d->code;
    d->code = code;
    code->function = f;
    code->return_slot = d->program->register_bytes;
    d->program->register_bytes += emu_slot_bytes(EMU_B64);
    layout_parameters(d, f->parameters, f->parameter_count);
    layout_parameters(d, f->results, f->result_count);
    for (size_t i = 0; i < f->instruction_count; i++) {
        if (emu_text_is(f->instructions[i].opcode, "call"))
            layout_indirect_callees(d, &f->instructions[i]);
        for (unsigned n = 0; n < f->instructions[i].operand_count; n++)
            layout_operand(d, &f->instructions[i], &f->instructions[i].operands[n]);
    }
    d->code = code->caller;
    *(emu_function_code **)emu_list_add(arena, &d->functions, sizeof code) = code;
}

void emu_layout_dynamic_shared(emu_decoder *d)
{
    emu_program *p = d->program;
    uint32_t alignment = d->dynamic_shared_alignment < 16 ? 16 : d->dynamic_shared_alignment;
    uint32_t end = p->reserved_shared_bytes + p->static_shared_bytes;
    p->dynamic_shared_start = (uint32_t)emu_align_up(end, alignment);
}

bool emu_variable_address(emu_decoder *d, const emu_symbol *s, uint64_t *address)
{
    if (s->space == EMU_GLOBAL || s->space == EMU_CONST)
        *address = d->in->variable_addresses[s->sequence];
    else if (s->space == EMU_SHARED && s->is_unsized)
        *address = d->program->dynamic_shared_start;
    else if (s->space == EMU_PARAM) {
        *address = 0;
        for (size_t i = 0; d->program->kernel->parameters[i] != s; i++)
            *address = emu_align_up(*address, d->program->kernel->parameters[i]->alignment) +
                       d->program->kernel->parameters[i]->bytes;
        *address = emu_align_up(*address, s->alignment);
    } else
        *address = d->addresses[s->sequence];
    return s->space != EMU_PARAM || s->scope->function == d->program->kernel;
}

uint32_t emu_slot(emu_decoder *d, const emu_symbol *s)
{
    emu_program *p = d->program;
    if (!d->slots[s->sequence]) {
        d->slots[s->sequence] = p->register_bytes;
        p->register_bytes += emu_slot_bytes(s->type) * s->vector * s->count;
    }
    return d->slots[s->sequence];
}

uint32_t emu_temporary(emu_decoder *d)
{
    if (d->temporaries_used == d->temporary_count) {
        d->temporaries[d->temporary_count++] = d->program->register_bytes;
        d->program->register_bytes += emu_slot_bytes(EMU_B128);
    }
    return d->temporaries[d->temporaries_used++];
}
