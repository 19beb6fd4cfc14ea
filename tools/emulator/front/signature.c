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
    *count = list.count;
    return list.items;
}

bool emu_parse_device_directive(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    if (emu_lex_accept(l, ".noreturn"))
        return true;
    if (!emu_lex_accept(l, ".abi_preserve") && !emu_lex_accept(l, ".abi_preserve_control"))
        return false;
    emu_parse_literal(p, "the directive");
    return true;
}

void emu_parse_prototype(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    size_t count;
    emu_lex_expect(l, ".callprototype");
    if (emu_lex_is(l, "("))
        emu_parse_parameters(p, EMU_RESULTS_OF_PROTOTYPE, &count);
    emu_lex_expect(l, "_");
    if (emu_lex_is(l, "("))
        emu_parse_parameters(p, EMU_PARAMETERS_OF_PROTOTYPE, &count);
    while (emu_parse_device_directive(p)) {
    }
    emu_lex_expect(l, ";");
}
