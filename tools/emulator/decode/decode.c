/* From parsed functions to a program: see core/program.h. Callees precede their callers in the flat array. The scheduler
   prefers the lowest program counter, so lanes in a callee run until they meet the lanes that wait after the call. */
#include "decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void decode_guard(emu_decoder *d, const emu_instruction *i)
{
    d->guard = 0;
    if (!i->is_guarded)
        return;
    emu_operand o = {.kind = EMU_OPERAND_NAME, .name = i->guard};
    uint32_t slot;
    const emu_symbol *s = emu_decode_register(d, &o, &slot);
    if (!s)
        emu_decode_error(d, "unknown predicate '%.*s'", EMU_TEXT(i->guard));
    else if (s->type != EMU_PRED)
        emu_decode_error(d, "the guard '%.*s' is not a predicate", EMU_TEXT(i->guard));
    else
        d->guard = slot | i->guard_negated;
}

static bool (*const forms[EMU_FORMS])(emu_decoder *d, const emu_instruction *i, emu_op *op) = {
    [EMU_FORM_MOV] = emu_decode_mov,       [EMU_FORM_BRA] = emu_decode_bra,
    [EMU_FORM_BRX] = emu_decode_brx,       [EMU_FORM_CALL] = emu_decode_call,
    [EMU_FORM_RET] = emu_decode_ret,       [EMU_FORM_MMA] = emu_decode_mma,
    [EMU_FORM_COPY] = emu_decode_copy,     [EMU_FORM_MATRIX] = emu_decode_matrix,
    [EMU_FORM_WGMMA] = emu_decode_wgmma,   [EMU_FORM_BULK] = emu_decode_bulk,
    [EMU_FORM_REMOTE] = emu_decode_remote, [EMU_FORM_MAP_COPY] = emu_decode_map_copy,
};

static void decode_instruction(emu_decoder *d, const emu_instruction *i)
{
    emu_arena *arena = &d->program->arena;
    *(const emu_instruction **)emu_list_add(arena, &d->instructions, sizeof i) = i;
    *(const emu_function_code **)emu_list_add(arena, &d->function_names, sizeof(emu_function_code *)) =
        d->code;
    d->instruction = i;
    d->is_first = true;
    d->temporaries_used = 0;
    emu_op op = {0};
    emu_text modifiers[EMU_MAX_MODIFIERS];
    emu_instruction ordered = *i;
    const emu_row *row = emu_match(d->in, i, &op.mods, modifiers);
    if (!row)
        return;
    ordered.modifiers = modifiers;
    decode_guard(d, i);
    op.run = row->by_type ? row->by_type[op.mods.type] : row->pick ? row->pick(&op.mods) : row->run;
    if (row->form != EMU_BY_PATTERN)
        forms[row->form](d, &ordered, &op);
    else if (!op.run)
        emu_decode_error(d, "'%s' does not have this combination of modifiers", row->opcode);
    else
        emu_decode_operands(d, row, i, &op);
}

/* Emits the return at a function's end. */
static void decode_end(emu_decoder *d)
{
    const emu_function *f = d->code->function;
    emu_instruction *ret = emu_arena_alloc(&d->program->arena, sizeof *ret);
    *ret =
        (emu_instruction){.opcode = emu_text_of("ret"), .line = f->line, .text = f->name, .scope = f->scope};
    decode_instruction(d, ret);
}

static void decode_function(emu_decoder *d, emu_function_code *code)
{
    const emu_function *f = code->function;
    d->code = code;
    if (f->lacks.what)
        emu_log_unsupported(d->in->log, f->lacks.line, f->lacks.text, "%s", f->lacks.what);
    code->start = d->ops.count;
    code->op_of_instruction =
        emu_arena_alloc(&d->program->arena, (f->instruction_count + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < f->instruction_count; i++) {
        code->op_of_instruction[i] = (uint32_t)d->ops.count;
        decode_instruction(d, &f->instructions[i]);
        if (emu_log_wrong(d->in->log) >= EMU_MAX_ERRORS)
            return;
    }
    code->op_of_instruction[f->instruction_count] = (uint32_t)d->ops.count;
    decode_end(d);
    code->can_be_called = true;
}

static size_t label_op(emu_decoder *d, const emu_symbol *label)
{
    const emu_function_code *code = emu_find_code(d, label->scope->function);
    return code->op_of_instruction[label->instruction];
}

static void finish_jumps(emu_decoder *d)
{
    emu_program *p = d->program;
    emu_fixup *fixups = d->fixups.items;
    for (size_t i = 0; i < d->fixups.count; i++) {
        const emu_function *f = fixups[i].function;
        const emu_symbol *label = fixups[i].label;
        size_t to = f ? emu_find_code(d, f)->start : label ? label_op(d, label) : fixups[i].to;
        p->ops[fixups[i].op].imm = (int64_t)(intptr_t)&p->ops[to];
    }
    emu_table_fixup *tables = d->table_fixups.items;
    for (size_t i = 0; i < d->table_fixups.count; i++)
        ((uint32_t *)d->lists.items)[tables[i].list_index] = (uint32_t)label_op(d, tables[i].label);
}

/* Turns indices into pointers. Until here op->list holds an index, since the list pool grows. */
static void finish_lists(emu_decoder *d)
{
    emu_program *p = d->program;
    for (size_t i = 0; i < p->op_count; i++)
        if (p->ops[i].list)
            p->ops[i].list = (const uint32_t *)d->lists.items + (uintptr_t)p->ops[i].list;
}

static void finish_instructions(emu_decoder *d)
{
    emu_program *p = d->program;
    const emu_function_code **code = d->function_names.items;
    p->instructions = d->instructions.items;
    p->instruction_count = d->instructions.count;
    p->functions = emu_arena_alloc(&p->arena, p->instruction_count * sizeof *p->functions);
    for (size_t i = 0; i < p->instruction_count; i++)
        p->sets_registers |= emu_text_is(p->instructions[i]->opcode, "setmaxnreg");
    for (size_t i = 0; i < p->instruction_count; i++)
        p->functions[i] = emu_arena_format(&p->arena, "%.*s", EMU_TEXT(code[i]->function->name));
}

static void finish(emu_decoder *d)
{
    emu_program *p = d->program;
    p->op_count = d->ops.count;
    p->uses = d->uses.items;
    p->ops = aligned_alloc(64, emu_align_up(p->op_count * sizeof(emu_op), 64));
    if (!p->ops)
        abort();
    memcpy(p->ops, d->ops.items, p->op_count * sizeof(emu_op));
    finish_lists(d);
    finish_jumps(d);
    finish_instructions(d);
    p->entry = &p->ops[emu_find_code(d, p->kernel)->start];
}

emu_program *emu_decode(const emu_decode_input *in)
{
    emu_program *p = emu_alloc(sizeof *p);
    emu_decoder d = {.in = in, .program = p};
    p->module = in->module;
    p->kernel = in->kernel;
    if (in->device_number >= 90) /* measured: from sm_90 on, ptxas places the first symbol at 0x400 */
        p->reserved_shared_bytes = 1024;
    p->register_bytes = EMU_SINK_BYTES;
    p->local_bytes = 16;  /* so that no variable has address 0 */
    emu_list_push(&d, 0); /* index 0 means no list */
    emu_layout_functions(&d);
    emu_layout_dynamic_shared(&d);
    emu_function_code **functions = d.functions.items;
    for (size_t i = 0; i < d.functions.count && emu_log_wrong(in->log) < EMU_MAX_ERRORS; i++)
        if (!functions[i]->can_be_called)
            decode_function(&d, functions[i]);
    if (in->log->errors || in->only_kernel) {
        emu_program_free(p);
        return NULL;
    }
    finish(&d);
    return p;
}

void emu_program_free(emu_program *p)
{
    if (!p)
        return;
    free(p->ops);
    free(p->constants);
    emu_arena_free(&p->arena);
    free(p);
}
