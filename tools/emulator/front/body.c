/* Function bodies: labels, instructions with their operands, debugging directives (ISA 4.3, 11.5). */
#include "parse.h"

#include <string.h>

#define MOST_ITEMS  256 /* limit of a list, such as the arguments of a call */
#define MOST_LABELS 65536

static emu_operand parse_operand(emu_parser *p, bool is_call);

static emu_operand *copy_operands(emu_parser *p, const emu_operand *items, size_t count)
{
    emu_operand *copy = emu_arena_alloc(&p->module->arena, count * sizeof *copy);
    if (count)
        memcpy(copy, items, count * sizeof *copy);
    return copy;
}

/* In braces and call arguments, ptxas accepts a register only without an offset; in call arguments also without .x. */
static void check_item(emu_parser *p, emu_operand_kind kind, const emu_operand *o)
{
    if (kind == EMU_OPERAND_ADDRESS || o->kind != EMU_OPERAND_NAME)
        return;
    if (o->has_offset)
        emu_fail(&p->lexer, "'%.*s' is in a list: expected ',' after it", EMU_TEXT(o->name));
    if (o->element && kind == EMU_OPERAND_LIST)
        emu_fail(&p->lexer, "an argument of a call is a register as a whole, not '%.*s.%c'",
                 EMU_TEXT(o->name), o->element);
}

static emu_operand parse_items(emu_parser *p, emu_operand_kind kind, const char *close, bool is_call)
{
    emu_lexer *l = &p->lexer;
    emu_operand list = {.kind = kind};
    const size_t first = p->open_items.count;
    emu_go_deeper(p);
    emu_lex_next(l);
    for (bool more = !emu_lex_is(l, close); more; more = emu_lex_accept(l, ",")) {
        if (list.count == MOST_ITEMS)
            emu_fail(l, "too many operands in one list");
        emu_operand item = parse_operand(p, is_call);
        check_item(p, kind, &item);
        *(emu_operand *)emu_list_add(&p->module->arena, &p->open_items, sizeof item) = item;
        list.count++;
    }
    emu_lex_expect(l, close);
    emu_come_back(p);
    if (list.count)
        list.items = copy_operands(p, (emu_operand *)p->open_items.items + first, list.count);
    p->open_items.count = first;
    return list;
}

static emu_operand parse_constant(emu_parser *p)
{
    emu_value v = emu_parse_expression(p);
    emu_operand o = {.kind = EMU_OPERAND_INT, .value = v.bits};
    if (v.kind == EMU_VALUE_DOUBLE)
        o.kind = EMU_OPERAND_DOUBLE;
    else if (v.kind == EMU_VALUE_SINGLE)
        o.kind = EMU_OPERAND_SINGLE;
    return o;
}

static char element_named(emu_text dot)
{
    static const char names[] = "xyzwrgba";
    if (dot.size != 2)
        return 0;
    for (int i = 0; i < 8; i++)
        if (dot.at[1] == names[i])
            return names[i % 4];
    return 0;
}

static emu_operand parse_name(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_operand o = {.kind = EMU_OPERAND_NAME, .name = l->token.text};
    if (emu_lex_is(l, "_"))
        o.kind = EMU_OPERAND_SINK;
    emu_lex_next(l);
    if (l->token.kind == EMU_DOT) {
        o.element = element_named(l->token.text);
        if (!o.element)
            emu_fail(l, "'%.*s' cannot follow a name", EMU_TEXT(l->token.text));
        emu_lex_next(l);
    }
    if (emu_lex_accept(l, "[")) {
        o.has_offset = o.is_index = true;
        o.value = emu_parse_integer(p, "an index");
        emu_lex_expect(l, "]");
        return o;
    }
    if (emu_lex_accept(l, "+")) {
        o.has_offset = true;
        o.value = emu_parse_integer(p, "an offset");
    }
    return o;
}

/* [name+4], [%rd1+-8], [64], and, for instructions that take coordinates, [name, {...}]. */
static emu_operand parse_address(emu_parser *p)
{
    emu_operand list = parse_items(p, EMU_OPERAND_ADDRESS, "]", false);
    if (list.count == 0)
        emu_fail(&p->lexer, "expected an address between the brackets");
    emu_operand *base = &list.items[0];
    if (base->is_negated || base->element)
        emu_fail(&p->lexer, "an address is a register, a variable or an integer, with '+' and an integer");
    if (base->kind == EMU_OPERAND_NAME) {
        list.value = base->value;
        base->value = 0;
    } else if (base->kind != EMU_OPERAND_INT) {
        emu_fail(&p->lexer, "an address is a register, a variable or an integer, with '+' and an integer");
    }
    return list;
}

static emu_operand parse_single(emu_parser *p, bool is_call)
{
    emu_lexer *l = &p->lexer;
    if (emu_lex_is(l, "{"))
        return parse_items(p, EMU_OPERAND_VECTOR, "}", is_call);
    if (emu_lex_is(l, "["))
        return parse_address(p);
    if (is_call && emu_lex_is(l, "("))
        return parse_items(p, EMU_OPERAND_LIST, ")", false);
    if (emu_lex_is(l, "!")) {
        emu_lexer before = *l;
        emu_lex_next(l);
        if (l->token.kind == EMU_WORD) {
            emu_operand o = parse_name(p);
            if (o.kind == EMU_OPERAND_SINK)
                emu_fail(l, "'!' is not allowed here");
            o.is_negated = true;
            return o;
        }
        *l = before;
    }
    if (l->token.kind == EMU_WORD && !emu_lex_is(l, "WARP_SZ"))
        return parse_name(p);
    return parse_constant(p);
}

static emu_operand parse_operand(emu_parser *p, bool is_call)
{
    emu_operand first = parse_single(p, is_call);
    if (!emu_lex_accept(&p->lexer, "|"))
        return first;
    emu_operand items[2] = {first, parse_single(p, is_call)};
    return (emu_operand){.kind = EMU_OPERAND_PAIR, .count = 2, .items = copy_operands(p, items, 2)};
}

static void parse_guard(emu_parser *p, emu_instruction *i)
{
    emu_lexer *l = &p->lexer;
    i->is_guarded = emu_lex_accept(l, "@");
    if (!i->is_guarded)
        return;
    i->guard_negated = emu_lex_accept(l, "!");
    i->guard = emu_lex_name(l, "a predicate register");
}

static void parse_instruction(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_arena *arena = &p->module->arena;
    emu_text modifiers[EMU_MAX_MODIFIERS];
    emu_operand operands[EMU_MAX_OPERANDS];
    emu_instruction i = {
        .line = l->token.line, .source = p->source, .scope = p->scope, .declared = p->module->symbol_count};
    parse_guard(p, &i);
    if (l->token.kind != EMU_WORD)
        emu_fail(l, "expected an instruction, found '%.*s'", EMU_TEXT(l->token.text));
    i.line = l->token.line;
    i.text = emu_lex_line_text(l, l->token.text.at);
    i.opcode = l->token.text;
    while (i.modifier_count < EMU_MAX_MODIFIERS && emu_lex_modifier(l, &modifiers[i.modifier_count]))
        i.modifier_count++;
    emu_lex_next(l);
    /* ptxas lets spaces stand before modifiers */
    for (; l->token.kind == EMU_DOT && i.modifier_count < EMU_MAX_MODIFIERS; emu_lex_next(l))
        modifiers[i.modifier_count++] = (emu_text){l->token.text.at + 1, l->token.text.size - 1};
    bool is_call = emu_text_is(i.opcode, "call");
    for (bool more = !emu_lex_is(l, ";"); more; more = emu_lex_accept(l, ",")) {
        if (i.operand_count == EMU_MAX_OPERANDS)
            emu_fail(l, "too many operands");
        operands[i.operand_count++] = parse_operand(p, is_call);
    }
    emu_lex_expect(l, ";");
    i.modifiers = emu_arena_alloc(arena, i.modifier_count * sizeof *modifiers);
    memcpy(i.modifiers, modifiers, i.modifier_count * sizeof *modifiers);
    i.operands = copy_operands(p, operands, i.operand_count);
    *(emu_instruction *)emu_list_add(arena, &p->instructions, sizeof i) = i;
}

static void parse_targets(emu_parser *p, emu_symbol *s, bool are_functions)
{
    emu_lexer *l = &p->lexer;
    emu_list list = {0};
    s->kind = EMU_SYMBOL_TARGETS;
    s->are_functions = are_functions;
    do {
        emu_text name = emu_lex_name(l, "a label");
        if (are_functions && !emu_find_function(p->module, name, UINT32_MAX))
            emu_fail(l, "'%.*s' is not a declared function", EMU_TEXT(name));
        if (are_functions || !emu_lex_accept(l, "<")) {
            *(emu_text *)emu_list_add(&p->module->arena, &list, sizeof name) = name;
            continue;
        }
        uint64_t count = emu_parse_literal(p, "the number of labels"); /* name<3>: name0, name1, name2 */
        emu_lex_expect(l, ">");
        if (count > MOST_LABELS)
            emu_fail(l, "'%.*s' asks for too many labels", EMU_TEXT(name));
        for (unsigned i = 0; i < count; i++)
            *(emu_text *)emu_list_add(&p->module->arena, &list, sizeof name) =
                emu_text_of(emu_arena_format(&p->module->arena, "%.*s%u", EMU_TEXT(name), i));
    } while (emu_lex_accept(l, ","));
    emu_lex_expect(l, ";");
    if (!are_functions)
        *(emu_symbol **)emu_list_add(&p->module->arena, &p->branch_targets, sizeof s) = s;
    s->targets = list.items;
    s->target_count = list.count;
}

static bool parse_label(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_lexer before = *l;
    emu_text name = l->token.text;
    emu_lex_next(l);
    if (!emu_lex_is(l, ":")) {
        *l = before;
        return false;
    }
    emu_symbol *s = emu_declare(p, p->scope, EMU_SYMBOL_LABEL, name);
    s->instruction = p->instructions.count;
    emu_lex_next(l);
    if (emu_lex_accept(l, ".branchtargets")) {
        parse_targets(p, s, false);
    } else if (emu_lex_accept(l, ".calltargets")) {
        parse_targets(p, s, true);
    } else if (emu_lex_is(l, ".callprototype")) {
        emu_parse_prototype(p, s);
    }
    return true;
}

static void parse_statement(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    if (emu_at_declaration(p)) {
        emu_parse_declaration(p);
    } else if (emu_lex_is(l, "{")) {
        emu_lex_next(l);
        emu_open_scope(p, p->function);
    } else if (emu_lex_is(l, "}")) {
        p->scope = p->scope->outer;
        if (p->scope->function)
            emu_lex_next(l); /* the function's own brace is left to the caller */
    } else if (!emu_parse_debug(p, EMU_DEBUG_BODY)) {
        if (l->token.kind == EMU_DOT)
            emu_fail(l, "'%.*s' is not a directive of function bodies", EMU_TEXT(l->token.text));
        if (l->token.kind != EMU_WORD || !parse_label(p))
            parse_instruction(p);
    }
}

/* After an error: skips to the end of the statement, so that the next one is parsed too. */
static void resynchronise(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    if (l->at > l->token.text.at && emu_lex_is(l, ";"))
        return;
    while (l->at < l->end && *l->at != ';' && *l->at != '}') {
        l->line += *l->at == '\n';
        l->at++;
    }
    l->token.kind = EMU_PUNCT;
    l->token.line = l->line;
    l->token.text = (emu_text){l->at, l->at < l->end};
    if (l->at < l->end)
        l->at++;
    else
        l->token.kind = EMU_END;
}

static void parse_statement_or_recover(emu_parser *p)
{
    jmp_buf *outer = p->lexer.recover;
    jmp_buf here;
    emu_log *log = p->lexer.log;
    if (setjmp(here) == 0) {
        p->lexer.recover = &here;
        parse_statement(p);
        p->lexer.recover = outer;
        return;
    }
    p->lexer.recover = outer;
    p->depth = 0;
    p->open_items.count = 0;
    if (emu_log_wrong(log) >= EMU_MAX_ERRORS)
        longjmp(*outer, 1);
    p->lexer.recover = &here; /* an unclosed comment or string before that ends the load */
    if (setjmp(here) != 0) {
        p->lexer.recover = outer;
        longjmp(*outer, 1);
    }
    resynchronise(p);
    if (emu_lex_is(&p->lexer, ";"))
        emu_lex_next(&p->lexer);
    p->lexer.recover = outer;
}

/* Targets may be declared after their list, but in a scope that encloses it. */
static void check_branch_targets(emu_parser *p)
{
    for (size_t i = 0; i < p->branch_targets.count; i++) {
        const emu_symbol *s = ((emu_symbol **)p->branch_targets.items)[i];
        for (size_t n = 0; n < s->target_count; n++) {
            uint32_t number;
            const emu_symbol *label = emu_find(p->module, s->scope, s->targets[n], UINT32_MAX, &number);
            if (!label || label->kind != EMU_SYMBOL_LABEL)
                emu_log_error(p->lexer.log, s->line, (emu_text){0}, "'%.*s' is not a label in scope",
                              EMU_TEXT(s->targets[n]));
        }
    }
}

void emu_parse_body(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    p->instructions = p->branch_targets = (emu_list){0};
    p->source = NULL;
    emu_lex_expect(l, "{");
    while (p->scope->function) {
        if (l->token.kind == EMU_END)
            emu_fail(l, "expected '}' at the end of function '%.*s'", EMU_TEXT(p->function->name));
        parse_statement_or_recover(p);
    }
    emu_lex_expect(l, "}");
    p->function->instructions = p->instructions.items;
    p->function->instruction_count = p->instructions.count;
    check_branch_targets(p);
}
