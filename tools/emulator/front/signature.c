/* Signatures of functions and of prototypes: results, parameters, directives (ISA 5.1.6, 11.3). */
#include "parse.h"

emu_symbol **emu_parse_parameters(emu_parser *p, emu_list_kind kind, size_t *count)
{
    emu_lexer *l = &p->lexer;
    emu_list list = {0};
    emu_lex_expect(l, "(");
    for (bool more = !emu_lex_is(l, ")"); more; more = emu_lex_accept(l, ",")) {
        emu_scope *scope = p->scope;
        if (kind >= EMU_PARAMETERS_OF_PROTOTYPE) /* whose parameters may share a name */
            scope = emu_arena_alloc(&p->module->arena, sizeof *scope);
        emu_symbol *s = emu_parse_parameter(p, scope, kind >= EMU_PARAMETERS_OF_KERNEL);
        const bool may_lack_size = kind == EMU_PARAMETERS || kind == EMU_PARAMETERS_OF_PROTOTYPE;
        if (s->is_unsized && (!may_lack_size || emu_lex_is(l, ",")))
            emu_fail(l, "'%.*s' has no size; only the last parameter of a .func may have none",
                     EMU_TEXT(s->name));
        s->is_result = kind == EMU_RESULTS;
        *(emu_symbol **)emu_list_add(&p->module->arena, &list, sizeof s) = s;
    }
    emu_lex_expect(l, ")");
    for (size_t i = 0; list.count > 1 && i < list.count; i++)
        if ((kind == EMU_RESULTS || kind == EMU_RESULTS_OF_PROTOTYPE) &&
            ((emu_symbol **)list.items)[i]->space != EMU_REG)
            emu_fail(l, "several results must be in .reg");
    *count = list.count;
    return list.items;
}

static bool parse_preserve(emu_parser *p, const char *word, bool *is_given)
{
    emu_lexer *l = &p->lexer;
    if (!emu_lex_is(l, word))
        return false;
    if (p->module->version < 90 || p->module->target.number < 80)
        emu_fail(l, "'%s' needs .version 9.0 and .target sm_80", word);
    if (*is_given)
        emu_fail(l, "'%s' is given twice", word);
    *is_given = true;
    emu_lex_next(l);
    emu_parse_literal(p, word);
    return true;
}

void emu_parse_device_directives(emu_parser *p)
{
    bool has_preserve = false, has_control = false;
    emu_lex_accept(&p->lexer, ".noreturn");
    while (parse_preserve(p, ".abi_preserve", &has_preserve) ||
           parse_preserve(p, ".abi_preserve_control", &has_control)) {
    }
}

void emu_parse_prototype(emu_parser *p, emu_symbol *s)
{
    emu_lexer *l = &p->lexer;
    emu_function *f = emu_arena_alloc(&p->module->arena, sizeof *f);
    *f = (emu_function){.name = s->name, .line = s->line};
    s->kind = EMU_SYMBOL_PROTOTYPE;
    s->function = f;
    emu_lex_expect(l, ".callprototype");
    if (emu_lex_is(l, "("))
        f->results = emu_parse_parameters(p, EMU_RESULTS_OF_PROTOTYPE, &f->result_count);
    emu_lex_expect(l, "_");
    if (emu_lex_is(l, "("))
        f->parameters = emu_parse_parameters(p, EMU_PARAMETERS_OF_PROTOTYPE, &f->parameter_count);
    emu_parse_device_directives(p);
    emu_lex_expect(l, ";");
}
