/* Declarations: registers, variables with their initialisers, formal parameters (ISA 5.4, 5.1.6). */
#include "parse.h"

#include <string.h>

static uint32_t hash(const emu_scope *scope, emu_text name)
{
    uint32_t h = 2166136261u ^ (uint32_t)((uintptr_t)scope >> 4);
    for (size_t i = 0; i < name.size; i++)
        h = (h ^ (uint8_t)name.at[i]) * 16777619u;
    return (h ^ h >> 15) % EMU_BUCKETS;
}

static emu_symbol *find_here(const emu_module *m, const emu_scope *scope, emu_text name)
{
    for (emu_symbol *s = m->buckets[hash(scope, name)]; s; s = s->next)
        if (s->scope == scope && emu_text_same(s->name, name))
            return s;
    return NULL;
}

/* ptxas takes all trailing digits as the number, so a numbered prefix that ends in a digit is never found. */
static bool split_number(emu_text name, emu_text *prefix, uint32_t *number)
{
    size_t n = name.size;
    while (n > 0 && name.at[n - 1] >= '0' && name.at[n - 1] <= '9')
        n--;
    if (n == name.size || name.size - n > 9)
        return false;
    *prefix = (emu_text){name.at, n};
    *number = 0;
    for (; n < name.size; n++)
        *number = *number * 10 + (uint32_t)(name.at[n] - '0');
    return true;
}

emu_symbol *emu_find(const emu_module *m, const emu_scope *scope, emu_text name, uint32_t *number)
{
    emu_text prefix;
    uint32_t n = 0;
    bool numbered = split_number(name, &prefix, &n);
    *number = 0;
    for (; scope; scope = scope->outer) {
        emu_symbol *s = find_here(m, scope, name);
        if (s && !s->is_numbered)
            return s;
        s = numbered ? find_here(m, scope, prefix) : NULL;
        if (s && s->is_numbered && n < s->count) {
            *number = n;
            return s;
        }
    }
    return NULL;
}

void *emu_list_add(emu_arena *arena, emu_list *list, size_t item_bytes)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        void *items = emu_arena_alloc(arena, room * item_bytes);
        if (list->count)
            memcpy(items, list->items, list->count * item_bytes);
        list->items = items;
        list->room = room;
    }
    return (char *)list->items + item_bytes * list->count++;
}

emu_scope *emu_open_scope(emu_parser *p, emu_function *function)
{
    emu_scope *scope = emu_arena_alloc(&p->module->arena, sizeof *scope);
    scope->outer = p->scope;
    scope->function = function;
    p->scope = scope;
    return scope;
}

emu_symbol *emu_declare(emu_parser *p, emu_scope *scope, emu_symbol_kind kind, emu_text name)
{
    emu_module *m = p->module;
    emu_symbol *old = find_here(m, scope, name);
    if (old)
        emu_fail(&p->lexer, "'%.*s' is declared twice; first in line %u", EMU_TEXT(name), old->line);
    emu_symbol *s = emu_arena_alloc(&m->arena, sizeof *s);
    emu_symbol **bucket = &m->buckets[hash(scope, name)];
    *s = (emu_symbol){.next = *bucket,
                      .name = name,
                      .scope = scope,
                      .kind = kind,
                      .line = p->lexer.token.line,
                      .vector = 1,
                      .count = 1,
                      .sequence = m->symbol_count++};
    *bucket = s;
    return s;
}

static const struct {
    const char *text;
    emu_space space;
} spaces[] = {
    {".reg", EMU_REG},     {".global", EMU_GLOBAL}, {".shared", EMU_SHARED},
    {".local", EMU_LOCAL}, {".const", EMU_CONST},   {".param", EMU_PARAM_CALL},
};

static bool space_at(const emu_lexer *l, emu_space *space)
{
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (emu_lex_is(l, spaces[i].text)) {
            *space = spaces[i].space;
            return true;
        }
    return false;
}

bool emu_at_declaration(const emu_parser *p)
{
    emu_space space;
    return space_at(&p->lexer, &space);
}

static void skip_parentheses(emu_lexer *l)
{
    emu_lex_expect(l, "(");
    for (int depth = 1; depth;) {
        if (l->token.kind == EMU_END)
            emu_fail(l, "expected ')'");
        depth += emu_lex_is(l, "(") - emu_lex_is(l, ")");
        emu_lex_next(l);
    }
}

static uint32_t parse_alignment(emu_parser *p)
{
    uint64_t n = emu_parse_integer(p, ".align");
    if (n == 0 || n > 65536 || (n & (n - 1)))
        emu_fail(&p->lexer, "the alignment must be a power of two");
    return (uint32_t)n;
}

/* ".align 8 .v4 .f32": what comes between the state space and the first name. */
static emu_symbol parse_type(emu_parser *p, emu_space space)
{
    emu_lexer *l = &p->lexer;
    emu_symbol s = {.space = space, .vector = 1};
    for (; s.type == EMU_NONE; emu_lex_next(l)) {
        if (emu_lex_accept(l, ".align"))
            s.alignment = parse_alignment(p);
        if (emu_lex_accept(l, ".attribute"))
            skip_parentheses(l);
        if (l->token.kind != EMU_DOT)
            emu_fail(l, "expected a type, found '%.*s'", EMU_TEXT(l->token.text));
        if (emu_lex_is(l, ".v2") || emu_lex_is(l, ".v4")) {
            s.vector = (uint8_t)(l->token.text.at[2] - '0');
            continue;
        }
        s.type = emu_type_named((emu_text){l->token.text.at + 1, l->token.text.size - 1});
        if (s.type == EMU_NONE)
            emu_fail(l, "'%.*s' is not a type", EMU_TEXT(l->token.text));
    }
    if (s.type == EMU_PRED && space != EMU_REG)
        emu_fail(l, "predicates live in .reg only");
    if (s.vector * emu_types[s.type].bytes > 16)
        emu_fail(l, "a vector cannot be wider than 128 bits");
    return s;
}

static void parse_dimensions(emu_parser *p, emu_symbol *s, uint64_t *row_elements)
{
    emu_lexer *l = &p->lexer;
    uint64_t elements = 1;
    bool first = true;
    *row_elements = 1;
    while (emu_lex_accept(l, "[")) {
        uint64_t n = 0;
        if (!emu_lex_is(l, "]"))
            n = emu_parse_integer(p, "an array size");
        else if (!first)
            emu_fail(l, "only the first dimension may be left out");
        else
            s->is_unsized = true;
        emu_lex_expect(l, "]");
        if (!first)
            *row_elements *= n;
        if (!s->is_unsized || !first)
            elements *= n;
        if (elements > (uint64_t)1 << 40)
            emu_fail(l, "the array is too large");
        first = false;
    }
    s->bytes = s->is_unsized ? 0 : elements * emu_types[s->type].bytes * s->vector;
}

static emu_initial parse_initial_value(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_initial e = {.line = l->token.line};
    if (l->token.kind != EMU_WORD || emu_lex_is(l, "WARP_SZ")) {
        emu_value v = emu_parse_expression(p);
        e.value = v.bits;
        e.kind = v.kind == EMU_VALUE_DOUBLE   ? EMU_INITIAL_DOUBLE
                 : v.kind == EMU_VALUE_SINGLE ? EMU_INITIAL_SINGLE
                                              : EMU_INITIAL_INT;
        if (e.kind == EMU_INITIAL_INT && emu_lex_accept(l, "(")) { /* 0xff00(address or number) */
            emu_initial inner = parse_initial_value(p);
            emu_lex_expect(l, ")");
            inner.mask = e.value;
            return inner;
        }
        return e;
    }
    e.kind = EMU_INITIAL_ADDRESS;
    e.name = emu_lex_name(l, "a name");
    if (emu_text_is(e.name, "generic") && emu_lex_accept(l, "(")) {
        e.generic = true;
        e.name = emu_lex_name(l, "a variable's name");
        if (emu_lex_accept(l, "+"))
            e.value += emu_parse_integer(p, "an offset");
        emu_lex_expect(l, ")");
    }
    if (emu_lex_accept(l, "+"))
        e.value += emu_parse_integer(p, "an offset");
    return e;
}

static void parse_initial_list(emu_parser *p, emu_list *list, uint64_t *index, uint64_t row)
{
    emu_lexer *l = &p->lexer;
    if (!emu_lex_accept(l, "{")) {
        emu_initial e = parse_initial_value(p);
        e.index = (*index)++;
        *(emu_initial *)emu_list_add(&p->module->arena, list, sizeof e) = e;
        return;
    }
    while (!emu_lex_is(l, "}")) {
        uint64_t start = *index;
        bool nested = emu_lex_is(l, "{");
        parse_initial_list(p, list, index, row);
        if (nested && row > 1) /* a short row leaves the rest of itself zero */
            *index = start + (*index - start + row - 1) / row * row;
        if (!emu_lex_accept(l, ","))
            break;
    }
    emu_lex_expect(l, "}");
}

static void parse_initialiser(emu_parser *p, emu_symbol *s, uint64_t row_elements)
{
    emu_lexer *l = &p->lexer;
    if (s->space != EMU_GLOBAL && s->space != EMU_CONST)
        emu_fail(l, "only .global and .const variables take an initialiser");
    if (s->is_external)
        emu_fail(l, "an external variable takes no initialiser");
    emu_list list = {0};
    uint64_t elements = 0, element_bytes = emu_types[s->type].bytes;
    parse_initial_list(p, &list, &elements, row_elements * s->vector);
    s->initial = list.items;
    s->initial_count = list.count;
    if (s->is_unsized) {
        s->bytes = ((elements + row_elements - 1) / row_elements) * row_elements * element_bytes;
        s->is_unsized = false;
    } else if (elements * element_bytes > s->bytes) {
        emu_fail(l, "the initialiser of '%.*s' has more elements than the variable", EMU_TEXT(s->name));
    }
}

static void finish_variable(emu_parser *p, emu_symbol *s, const emu_symbol *type)
{
    s->space = type->space;
    s->type = type->type;
    s->vector = type->vector;
    s->is_external = type->is_external;
    uint32_t natural = (uint32_t)emu_types[s->type].bytes * s->vector;
    s->alignment = type->alignment ? type->alignment : natural;
    s->bytes = natural;
    if (s->space != EMU_REG)
        *(emu_symbol **)emu_list_add(&p->module->arena, &p->variables, sizeof s) = s;
}

static void parse_declarator(emu_parser *p, const emu_symbol *type)
{
    emu_lexer *l = &p->lexer;
    emu_text name = emu_lex_name(l, "a name");
    bool is_register = type->space == EMU_REG;
    emu_symbol *s = emu_declare(p, p->scope, is_register ? EMU_SYMBOL_REGISTER : EMU_SYMBOL_VARIABLE, name);
    uint64_t row_elements;
    finish_variable(p, s, type);
    if (emu_lex_accept(l, "<")) {
        uint64_t n = emu_parse_unary(p).bits;
        emu_lex_expect(l, ">");
        if (n > 1u << 20)
            emu_fail(l, "'%.*s' asks for too many names", EMU_TEXT(name));
        if (!is_register)
            emu_fail(l, "numbered names are supported for registers only");
        s->is_numbered = true;
        s->count = (uint32_t)n;
        return;
    }
    if (is_register)
        return;
    if (emu_lex_is(l, "[")) {
        parse_dimensions(p, s, &row_elements);
    } else {
        row_elements = 1;
    }
    if (emu_lex_accept(l, "="))
        parse_initialiser(p, s, row_elements);
    if (s->is_unsized && !s->is_external)
        emu_fail(l, "'%.*s' has no size", EMU_TEXT(name));
}

void emu_parse_declaration(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_symbol type = {0};
    emu_space space = EMU_GENERIC;
    bool is_external = false;
    for (; !space_at(l, &space); emu_lex_next(l)) {
        is_external |= emu_lex_is(l, ".extern");
        if (!emu_lex_is(l, ".extern") && !emu_lex_is(l, ".visible") && !emu_lex_is(l, ".weak") &&
            !emu_lex_is(l, ".common"))
            emu_fail(l, "expected a state space, found '%.*s'", EMU_TEXT(l->token.text));
    }
    if (!p->function && (space == EMU_REG || space == EMU_PARAM_CALL || space == EMU_LOCAL))
        emu_fail(l, "'%.*s' needs a function around it", EMU_TEXT(l->token.text));
    emu_lex_next(l);
    type = parse_type(p, space);
    type.is_external = is_external;
    do
        parse_declarator(p, &type);
    while (emu_lex_accept(l, ","));
    emu_lex_expect(l, ";");
}

static void skip_pointer_attribute(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_space space;
    if (!emu_lex_accept(l, ".ptr"))
        return;
    if (space_at(l, &space))
        emu_lex_next(l);
    if (emu_lex_accept(l, ".align"))
        parse_alignment(p);
}

emu_symbol *emu_parse_parameter(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_space space;
    if (!space_at(l, &space) || (space != EMU_REG && space != EMU_PARAM_CALL))
        emu_fail(l, "expected .param or .reg, found '%.*s'", EMU_TEXT(l->token.text));
    emu_lex_next(l);
    emu_symbol type = parse_type(p, space);
    skip_pointer_attribute(p);
    emu_text name = emu_lex_name(l, "a parameter's name");
    emu_symbol *s =
        emu_declare(p, p->scope, space == EMU_REG ? EMU_SYMBOL_REGISTER : EMU_SYMBOL_VARIABLE, name);
    uint64_t row_elements;
    finish_variable(p, s, &type);
    s->is_parameter = true;
    if (emu_lex_is(l, "["))
        parse_dimensions(p, s, &row_elements);
    return s;
}
