/* Layout of a program: functions in call order, shared and local variables, registers. */
#include "decoder.h"

#include <string.h>

/* Local memory per thread: the CUDA programming guide's limit. */
#define LOCAL_BYTES (512u << 10)

/* Limit of the registers of one warp. */
#define REGISTER_BYTES (1u << 30)

emu_place *emu_place_of(emu_decoder *d, uint32_t sequence)
{
    emu_place *place = &d->in->places[sequence];
    if (place->decoding != d->in->decoding)
        *place = (emu_place){.decoding = d->in->decoding};
    return place;
}

emu_function_code *emu_find_code(emu_decoder *d, const emu_function *f)
{
    return emu_place_of(d, f->sequence)->code;
}

/* Places the variable at or after `end`. Returns the new end; after an error, if that would exceed `most`, the old end. */
static uint32_t place_variable(emu_decoder *d, const emu_symbol *s, uint32_t end, uint32_t alignment,
                               uint32_t most)
{
    emu_place *place = emu_place_of(d, s->sequence);
    place->address = emu_align_up(end, alignment);
    place->has_address = true;
    if (place->address + s->bytes <= most)
        return (uint32_t)(place->address + s->bytes);
    emu_log_error(d->in->log, s->line, (emu_text){0},
                  "'%.*s' does not fit: the .%s variables take more than %u bytes", EMU_TEXT(s->name),
                  emu_space_names[s->space], most);
    return end;
}

static void layout_local(emu_decoder *d, const emu_symbol *s)
{
    emu_program *p = d->program;
    p->local_bytes = place_variable(d, s, p->local_bytes, s->alignment < 16 ? 16 : s->alignment, LOCAL_BYTES);
}

/* Here the limit is INT32_MAX; the device's limit is checked when the kernel is complete. */
static void layout_static_shared(emu_decoder *d, const emu_symbol *s)
{
    emu_program *p = d->program;
    uint32_t start = p->reserved_shared_bytes;
    p->static_shared_bytes =
        place_variable(d, s, start + p->static_shared_bytes, s->alignment, INT32_MAX) - start;
}

static void layout_variable(emu_decoder *d, const emu_symbol *s)
{
    if (emu_place_of(d, s->sequence)->has_address)
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

/* ---- functions: callees first ------------------------------------------------------------------------------------ */

/* Returns true if the function is laid out. Otherwise adds it to `waiting` and returns false. A function that is being laid
   out counts as laid out: it is recursive, which the decoder of `call` refuses. */
static bool is_laid_out(emu_decoder *d, const emu_function *f, emu_list *waiting)
{
    if (!f->is_defined || emu_find_code(d, f))
        return true;
    *(const emu_function **)emu_list_add(&d->program->arena, waiting, sizeof f) = f;
    return false;
}

/* Lays out the callees of a call through a register: any function with as many arguments and results. */
static bool layout_indirect_callees(emu_decoder *d, const emu_instruction *i, emu_list *waiting)
{
    emu_call call = emu_call_parts(i);
    bool done = true;
    if (!call.callee || emu_find_function(d->in->module, call.callee->name, i->declared))
        return true;
    for (const emu_function *f = d->in->module->functions; f; f = f->next)
        if (!f->is_entry && f->parameter_count == call.arguments->count &&
            f->result_count == call.results->count)
            done &= is_laid_out(d, f, waiting);
    return done;
}

static bool layout_operand(emu_decoder *d, const emu_instruction *i, const emu_operand *o, emu_list *waiting)
{
    uint32_t number;
    bool done = true;
    if (o->kind == EMU_OPERAND_NAME) {
        const emu_symbol *s = emu_find(d->in->module, i->scope, o->name, i->declared, &number);
        if (s && s->kind == EMU_SYMBOL_VARIABLE)
            layout_variable(d, s);
        else if (s && s->kind == EMU_SYMBOL_FUNCTION && emu_text_is(i->opcode, "call"))
            done = is_laid_out(d, s->function, waiting);
    }
    for (uint32_t n = 0; done && n < o->count; n++)
        done = layout_operand(d, i, &o->items[n], waiting);
    return done;
}

static bool layout_instruction(emu_decoder *d, const emu_instruction *i, emu_list *waiting)
{
    bool done = !emu_text_is(i->opcode, "call") || layout_indirect_callees(d, i, waiting);
    for (unsigned n = 0; done && n < i->operand_count; n++)
        done = layout_operand(d, i, &i->operands[n], waiting);
    return done;
}

static emu_function_code *begin_function(emu_decoder *d, const emu_function *f)
{
    emu_function_code *code = emu_arena_alloc(&d->program->arena, sizeof *code);
    emu_place_of(d, f->sequence)->code = code;
    code->function = f;
    code->return_slot = d->program->register_bytes;
    d->program->register_bytes += emu_slot_bytes(EMU_B64);
    layout_parameters(d, f->parameters, f->parameter_count);
    layout_parameters(d, f->results, f->result_count);
    if (d->in->only_kernel && f != d->in->kernel) {
        code->can_be_called = true;
        code->laid_out = f->instruction_count;
    }
    return code;
}

void emu_layout_functions(emu_decoder *d)
{
    emu_list waiting = {0}; /* a stack: the last one is laid out first */
    is_laid_out(d, d->in->kernel, &waiting);
    while (waiting.count) {
        const emu_function *f = ((const emu_function **)waiting.items)[waiting.count - 1];
        emu_function_code *code = emu_find_code(d, f);
        if (!code)
            code = begin_function(d, f);
        while (code->laid_out < f->instruction_count &&
               layout_instruction(d, &f->instructions[code->laid_out], &waiting))
            code->laid_out++;
        if (code->laid_out < f->instruction_count)
            continue;
        waiting.count--;
        if (!code->is_listed)
            *(emu_function_code **)emu_list_add(&d->program->arena, &d->functions, sizeof code) = code;
        code->is_listed = true;
    }
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
    else if (s->space == EMU_PARAM)
        *address = s->parameter_offset;
    else
        *address = emu_place_of(d, s->sequence)->address;
    return s->space != EMU_PARAM || s->scope->function == d->program->kernel;
}

uint32_t emu_slot(emu_decoder *d, const emu_symbol *s)
{
    emu_program *p = d->program;
    emu_place *place = emu_place_of(d, s->sequence);
    uint32_t bytes = emu_slot_bytes(s->type) * s->vector * s->count;
    if (!place->slot && bytes > REGISTER_BYTES - p->register_bytes) {
        emu_decode_unsupported(d, s->name, ", with this many registers,");
    } else if (!place->slot) {
        place->slot = p->register_bytes;
        p->register_bytes += bytes;
    }
    return place->slot;
}

uint32_t emu_temporary(emu_decoder *d)
{
    if (d->temporaries_used == d->temporary_count) {
        d->temporaries[d->temporary_count++] = d->program->register_bytes;
        d->program->register_bytes += emu_slot_bytes(EMU_B128);
    }
    return d->temporaries[d->temporaries_used++];
}
