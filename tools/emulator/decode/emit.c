/* Shared by all parts of the decoder: logs errors, and appends operations to the program. */
#include "decoder.h"

#include <stdio.h>

void emu_decode_error(emu_decoder *d, const char *format, ...)
{
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    emu_log_error(d->in->log, d->instruction->line, d->instruction->text, "%s", message);
}

void emu_decode_unsupported(emu_decoder *d, emu_text name, const char *what)
{
    emu_log_unsupported(d->in->log, d->instruction->line, d->instruction->text, "'%.*s'%s is not emulated",
                        EMU_TEXT(name), what);
}

size_t emu_list_begin(emu_decoder *d)
{
    return d->lists.count;
}

void emu_list_push(emu_decoder *d, uint32_t arg)
{
    *(uint32_t *)emu_list_add(&d->program->arena, &d->lists, sizeof arg) = arg;
}

void emu_emit(emu_decoder *d, const emu_op *op, emu_uses uses)
{
    emu_arena *arena = &d->program->arena;
    emu_op *o = emu_list_add(arena, &d->ops, sizeof *o);
    *o = *op;
    o->guard = d->guard;
    o->at = (uint32_t)d->instructions.count - 1;
    uses.is_first = d->is_first;
    d->is_first = false;
    *(emu_uses *)emu_list_add(arena, &d->uses, sizeof uses) = uses;
}

void emu_copy_register(emu_decoder *d, emu_type type, uint32_t to, uint32_t from)
{
    const emu_micro *m = emu_micro_handlers();
    emu_op op = {.arg = {to, from}};
    op.run = type == EMU_PRED ? m->copy_predicate : m->copy[__builtin_ctz(emu_types[type].bytes)];
    emu_emit(d, &op, (emu_uses){.writes = 1, .args = 2});
}

bool emu_has_operands(emu_decoder *d, const emu_instruction *i, unsigned count)
{
    if (i->operand_count != count)
        emu_decode_error(d, "'%.*s' takes %u operands, %u are given", EMU_TEXT(i->opcode), count,
                         i->operand_count);
    return i->operand_count == count;
}
