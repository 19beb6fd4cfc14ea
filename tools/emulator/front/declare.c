/* Declarations: registers, variables with their initialisers, formal parameters (ISA 5.4, 5.1.6). */
#include "parse.h"

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
    return space_at(&p->lexer, &space) || emu_lex_is(&p->lexer, ".align");
}

void emu_skip_attributes(emu_parser *p, bool may_be_managed)
{
    emu_lexer *l = &p->lexer;
    emu_lex_expect(l, "(");
    do {
        if (may_be_managed && emu_lex_accept(l, ".managed"))
            continue;
        emu_lex_expect(l, ".unified");
        emu_lex_expect(l, "(");
        emu_parse_literal(p, ".unified");
        emu_lex_expect(l, ",");
        emu_parse_literal(p, ".unified");
        emu_lex_expect(l, ")");
    } while (emu_lex_accept(l, ","));
    emu_lex_expect(l, ")");
}

static uint32_t parse_alignment(emu_parser *p)
{
    uint64_t n = emu_parse_literal(p, ".align");
    if (n == 0 || n > UINT32_C(1) << 31 || (n & (n - 1)))
        emu_fail(&p->lexer, "the alignment must be a power of two up to 2147483648");
    return (uint32_t)n;
}

void emu_check_call_alignment(emu_parser *p, const emu_symbol *s)
{
    if (s->space == EMU_PARAM_CALL && s->alignment > 128)
        emu_fail(&p->lexer, "a call parameter must be aligned to at most 128 bytes");
}

/* ".align 8" before the state space, which ptxas also accepts; 0: none. */
static uint32_t parse_alignments(emu_parser *p)
{
    uint32_t alignment = 0;
    while (emu_lex_accept(&p->lexer, ".align"))
        alignment = parse_alignment(p);
    return alignment;
}

/* True for types that only instructions have: their registers have bit types (ISA 5.2.3). */
static bool is_of_instructions(emu_type type)
{
    return type == EMU_BF16 || (type > EMU_F16X2 && type < EMU_PRED);
}

void emu_lacks(emu_parser *p, const char *what)
{
    emu_token t = p->lexer.token;
    if (!p->lacks.what)
        p->lacks = (emu_lack){what, t.line, emu_lex_line_text(&p->lexer, t.text.at)};
}

/* Parses .texref and similar types. No emulated instruction reads such variables, and kernels with such parameters are refused. */
static emu_type opaque_type(emu_parser *p, emu_space space)
{
    emu_lexer *l = &p->lexer;
    if (space != EMU_GLOBAL && (space != EMU_PARAM_CALL || p->function))
        emu_fail(l, "'%.*s' is a type of .global and of parameters", EMU_TEXT(l->token.text));
    if (emu_lex_is(l, ".samplerref") && !p->module->target.independent_samplers)
        emu_fail(l, "'.samplerref' needs .target texmode_independent");
    if (space != EMU_GLOBAL)
        emu_lacks(p, "parameters for textures are not emulated");
    return EMU_B64;
}

/* ".align 8 .v4 .f32": the tokens between the state space and the first name. */
static emu_symbol parse_type(emu_parser *p, emu_space space, uint32_t alignment)
{
    emu_lexer *l = &p->lexer;
    emu_symbol s = {.space = space, .vector = 1, .alignment = alignment};
    for (; s.type == EMU_NONE; emu_lex_next(l)) {
        while (emu_lex_is(l, ".align") || emu_lex_is(l, ".attribute")) {
            if (emu_lex_accept(l, ".align"))
                s.alignment = parse_alignment(p);
            else if (emu_lex_accept(l, ".attribute"))
                emu_skip_attributes(p, space == EMU_GLOBAL);
        }
        if (l->token.kind != EMU_DOT)
            emu_fail(l, "expected a type, found '%.*s'", EMU_TEXT(l->token.text));
        if (s.vector == 1 && (emu_lex_is(l, ".v2") || emu_lex_is(l, ".v4"))) {
            s.vector = (uint8_t)(l->token.text.at[2] - '0');
            continue;
        }
        s.type = emu_type_named((emu_text){l->token.text.at + 1, l->token.text.size - 1});
        if (emu_lex_is(l, ".texref") || emu_lex_is(l, ".surfref") || emu_lex_is(l, ".samplerref"))
            s.type = opaque_type(p, space), s.is_opaque = true;
        if (s.type == EMU_NONE)
            emu_fail(l, "'%.*s' is not a type", EMU_TEXT(l->token.text));
        if (is_of_instructions(s.type) || (s.type == EMU_F16X2 && space == EMU_PARAM_CALL))
            emu_fail(l, "'%.*s' is a type of instructions, not of .%s", EMU_TEXT(l->token.text),
                     emu_space_names[space]);
    }
    if (s.type == EMU_PRED && (space != EMU_REG || s.vector > 1))
        emu_fail(l, "predicates live in .reg only, one by one");
    if (s.vector * emu_types[s.type].bytes > 16)
        emu_fail(l, "a vector cannot be wider than 128 bits");
    return s;
}

/* The nesting of an initialiser: the dimensions of an array, outermost first, and the elements of a vector. */
typedef struct emu_shape {
    uint64_t extents[16]; /* 0: taken from the initialiser */
    unsigned count;
} emu_shape;

/* The largest number of elements of an array, so that no size overflows. */
static uint64_t most_elements(const emu_symbol *s)
{
    const uint64_t bytes = s->space == EMU_GLOBAL ? UINT64_C(1) << 40 : INT32_MAX;
    return bytes / 64; /* a vector has at most four elements of 128 bits */
}

static void parse_dimensions(emu_parser *p, emu_symbol *s, emu_shape *shape)
{
    emu_lexer *l = &p->lexer;
    uint64_t elements = 1, most = most_elements(s);
    shape->count = 0;
    for (; emu_lex_accept(l, "["); emu_lex_expect(l, "]")) {
        uint64_t n = emu_lex_is(l, "]") ? 0 : emu_parse_literal(p, "an array size");
        if (n == 0 && shape->count)
            emu_fail(l, "only the first dimension may be left out");
        if (shape->count == sizeof shape->extents / sizeof *shape->extents - 1)
            emu_fail(l, "too many dimensions");
        s->is_unsized |= n == 0;
        if (n > most / elements)
            emu_fail(l, "the array is too large");
        elements *= n ? n : 1;
        shape->extents[shape->count++] = n;
    }
    s->is_array = shape->count > 0;
    s->dimensions = (uint8_t)shape->count;
    if (s->vector > 1 && !s->is_array && s->space == EMU_PARAM_CALL)
        emu_fail(l, "'%.*s' is a vector: .param has them in arrays only", EMU_TEXT(s->name));
    s->bytes = s->is_unsized ? 0 : elements * emu_types[s->type].bytes * s->vector;
    if (s->vector > 1)
        shape->extents[shape->count++] = s->vector;
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
            emu_go_deeper(p);
            emu_initial inner = parse_initial_value(p);
            emu_come_back(p);
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

/* Braces nest as deep as the variable has dimensions. A short row is padded with zeros, except in a vector. Returns the
   number of values or rows. */
static uint64_t parse_initial_list(emu_parser *p, emu_symbol *s, emu_list *list, const emu_shape *shape,
                                   unsigned depth, uint64_t index)
{
    emu_lexer *l = &p->lexer;
    if (depth == shape->count) {
        if (emu_lex_is(l, "{"))
            emu_fail(l, "expected a value of '%.*s', found '{'", EMU_TEXT(s->name));
        emu_initial e = parse_initial_value(p);
        e.index = index;
        *(emu_initial *)emu_list_add(&p->module->arena, list, sizeof e) = e;
        return 1;
    }
    uint64_t stride = 1, n = 0, extent = shape->extents[depth];
    for (unsigned inner = depth + 1; inner < shape->count; inner++)
        stride *= shape->extents[inner];
    emu_lex_expect(l, "{");
    for (bool more = !emu_lex_is(l, "}"); more; more = emu_lex_accept(l, ",")) {
        if (extent && n == extent)
            emu_fail(l, "the initialiser of '%.*s' has more elements than the variable", EMU_TEXT(s->name));
        parse_initial_list(p, s, list, shape, depth + 1, index + n++ * stride);
    }
    if (s->vector > 1 && depth + 1 == shape->count && n != s->vector)
        emu_fail(l, "a vector of '%.*s' takes %u values", EMU_TEXT(s->name), s->vector);
    emu_lex_expect(l, "}");
    return n;
}

/* Its names may refer to the first `declared` symbols of the module. */
static void parse_initialiser(emu_parser *p, emu_symbol *s, const emu_shape *shape, uint32_t declared)
{
    emu_lexer *l = &p->lexer;
    if (s->space != EMU_GLOBAL && s->space != EMU_CONST)
        emu_fail(l, "only .global and .const variables take an initialiser");
    if (s->linkage == EMU_EXTERN)
        emu_fail(l, "an external variable takes no initialiser");
    if (s->type == EMU_F16 || s->type == EMU_F16X2)
        emu_fail(l, "a variable of type .%s takes no initialiser", emu_types[s->type].name);
    if (s->is_opaque) { /* { filter_mode = nearest } */
        while (!emu_lex_is(l, ";") && l->token.kind != EMU_END)
            emu_lex_next(l);
        return;
    }
    emu_list list = {0};
    uint64_t rows = parse_initial_list(p, s, &list, shape, 0, 0);
    s->initial = list.items;
    s->initial_count = list.count;
    for (size_t i = 0; i < s->initial_count; i++)
        s->initial[i].declared = declared;
    if (!s->is_unsized)
        return;
    if (rows == 0)
        emu_fail(l, "'%.*s' has no size", EMU_TEXT(s->name));
    uint64_t row_elements = 1;
    for (unsigned i = 1; i < shape->count; i++)
        row_elements *= shape->extents[i];
    if (rows > most_elements(s) / row_elements)
        emu_fail(l, "the array is too large");
    s->bytes = rows * row_elements * emu_types[s->type].bytes;
    s->is_unsized = false;
}

static void set_type(emu_symbol *s, const emu_symbol *type)
{
    s->space = type->space;
    s->type = type->type;
    s->vector = type->vector;
    s->linkage = type->linkage;
    s->is_opaque = type->is_opaque;
    uint32_t natural = (uint32_t)emu_types[s->type].bytes * s->vector;
    s->alignment = type->alignment ? type->alignment : natural;
    s->bytes = natural;
}

static void finish_variable(emu_parser *p, emu_symbol *s, const emu_symbol *type)
{
    set_type(s, type);
    if (s->space != EMU_REG)
        *(emu_symbol **)emu_list_add(&p->module->arena, &p->variables, sizeof s) = s;
}

/* name<count>. Registers are one symbol, since there may be a million of them; variables are `count` symbols. */
static void declare_numbered(emu_parser *p, const emu_symbol *type, emu_text name)
{
    emu_lexer *l = &p->lexer;
    uint64_t count = emu_parse_literal(p, "the number of names");
    emu_lex_expect(l, ">");
    if (count > 1u << 20)
        emu_fail(l, "'%.*s' asks for too many names", EMU_TEXT(name));
    if (type->space == EMU_REG) {
        finish_variable(p, emu_declare_numbered(p, p->scope, name, (uint32_t)count), type);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        emu_text numbered = emu_text_of(emu_arena_format(&p->module->arena, "%.*s%u", EMU_TEXT(name), i));
        finish_variable(p, emu_declare(p, p->scope, EMU_SYMBOL_VARIABLE, numbered), type);
    }
}

/* Returns the module's variable that a declaration repeats; null: none. Both must have a linkage directive, one of them .extern. */
static emu_symbol *repeated(const emu_parser *p, const emu_symbol *type, emu_text name)
{
    uint32_t number;
    emu_symbol *s = p->function ? NULL : emu_find(p->module, p->scope, name, UINT32_MAX, &number);
    bool is_same = s && s->kind == EMU_SYMBOL_VARIABLE && s->space == type->space && s->type == type->type &&
                   s->vector == type->vector;
    return is_same && (s->linkage == EMU_EXTERN || type->linkage == EMU_EXTERN) && s->linkage != EMU_STATIC &&
                   type->linkage != EMU_STATIC
               ? s
               : NULL;
}

/* Adds what a repeated declaration says to the variable, to which earlier uses of the name refer, too. Some declarations of an array may
   lack its size. */
static void repeat_declaration(emu_parser *p, emu_symbol *s, const emu_symbol *type)
{
    emu_symbol again = {.name = s->name};
    emu_shape shape;
    set_type(&again, type);
    parse_dimensions(p, &again, &shape);
    if (emu_lex_accept(&p->lexer, "="))
        parse_initialiser(p, &again, &shape, p->module->symbol_count);
    if (s->dimensions != again.dimensions || (!s->is_unsized && !again.is_unsized && s->bytes != again.bytes))
        emu_fail(&p->lexer, "'%.*s' was declared with another size in line %u", EMU_TEXT(s->name), s->line);
    if (s->is_unsized)
        s->bytes = again.bytes, s->is_unsized = again.is_unsized;
    if (s->alignment < again.alignment)
        s->alignment = again.alignment;
    if (s->linkage == EMU_EXTERN)
        s->linkage = again.linkage;
    if (again.initial)
        s->initial = again.initial, s->initial_count = again.initial_count;
}

static void parse_declarator(emu_parser *p, const emu_symbol *type)
{
    emu_lexer *l = &p->lexer;
    emu_text name = emu_lex_name(l, "a name");
    bool is_register = type->space == EMU_REG;
    if (emu_lex_accept(l, "<")) {
        declare_numbered(p, type, name);
        return;
    }
    emu_symbol *first = repeated(p, type, name);
    if (first) {
        repeat_declaration(p, first, type);
        return;
    }
    emu_symbol *s = emu_declare(p, p->scope, is_register ? EMU_SYMBOL_REGISTER : EMU_SYMBOL_VARIABLE, name);
    emu_shape shape;
    finish_variable(p, s, type);
    if (is_register)
        return;
    parse_dimensions(p, s, &shape);
    if (emu_lex_accept(l, "="))
        parse_initialiser(p, s, &shape, s->sequence);
    if (s->is_unsized && s->linkage != EMU_EXTERN)
        emu_fail(l, "'%.*s' has no size", EMU_TEXT(name));
}

emu_linkage emu_accept_linkage(emu_parser *p)
{
    static const char *const words[] = {
        [EMU_VISIBLE] = ".visible", [EMU_WEAK] = ".weak", [EMU_COMMON] = ".common", [EMU_EXTERN] = ".extern"};
    for (emu_linkage linkage = EMU_VISIBLE; linkage <= EMU_EXTERN; linkage++)
        if (emu_lex_accept(&p->lexer, words[linkage]))
            return linkage;
    return EMU_STATIC;
}

void emu_parse_declaration(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_symbol type = {0};
    emu_space space = EMU_GENERIC;
    const emu_linkage linkage = emu_accept_linkage(p);
    uint32_t alignment = parse_alignments(p);
    if (!space_at(l, &space))
        emu_fail(l, "expected a state space, found '%.*s'", EMU_TEXT(l->token.text));
    if (!p->function && (space == EMU_REG || space == EMU_PARAM_CALL || space == EMU_LOCAL))
        emu_fail(l, "'%.*s' is allowed only inside a function", EMU_TEXT(l->token.text));
    if (linkage == EMU_COMMON && space != EMU_GLOBAL)
        emu_fail(l, "only .global variables can be .common");
    emu_lex_next(l);
    type = parse_type(p, space, alignment);
    if (space == EMU_PARAM_CALL)
        emu_check_call_alignment(p, &type);
    type.linkage = linkage;
    /* ptxas accepts an empty declaration */
    for (bool more = !emu_lex_is(l, ";"); more; more = emu_lex_accept(l, ","))
        parse_declarator(p, &type);
    emu_lex_expect(l, ";");
}

static void skip_pointer_attribute(emu_parser *p, bool is_allowed)
{
    emu_lexer *l = &p->lexer;
    emu_space space;
    if (!is_allowed && emu_lex_is(l, ".ptr"))
        emu_fail(l, "'.ptr' is for the parameters of kernels");
    if (emu_lex_accept(l, ".ptr") && space_at(l, &space) && space != EMU_REG && space != EMU_PARAM_CALL)
        emu_lex_next(l);
    if (is_allowed && emu_lex_accept(l, ".align"))
        parse_alignment(p);
}

emu_symbol *emu_parse_parameter(emu_parser *p, emu_scope *scope, bool may_be_unnamed)
{
    emu_lexer *l = &p->lexer;
    emu_space space;
    uint32_t alignment = parse_alignments(p);
    if (!space_at(l, &space) || (space != EMU_REG && space != EMU_PARAM_CALL))
        emu_fail(l, "expected .param or .reg, found '%.*s'", EMU_TEXT(l->token.text));
    emu_lex_next(l);
    emu_symbol type = parse_type(p, space, alignment);
    skip_pointer_attribute(p, may_be_unnamed);
    emu_text name = l->token.text;
    if (!may_be_unnamed || !emu_lex_accept(l, "_"))
        name = emu_lex_name(l, "a parameter's name");
    emu_symbol *s = emu_declare(p, scope, space == EMU_REG ? EMU_SYMBOL_REGISTER : EMU_SYMBOL_VARIABLE, name);
    emu_shape shape;
    finish_variable(p, s, &type);
    s->is_parameter = true;
    parse_dimensions(p, s, &shape);
    return s;
}
