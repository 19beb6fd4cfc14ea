/* PTX modules: the header, functions with their directives, module-level variables (ISA 11). */
#include "parse.h"

#include <string.h>

static void parse_version(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_lex_expect(l, ".version");
    emu_text t = l->token.text;
    bool well_formed = l->token.kind == EMU_DOUBLE && (t.size == 3 || t.size == 4) && t.at[t.size - 2] == '.';
    if (!well_formed)
        emu_fail(l, "expected a version such as 8.0, found '%.*s'", EMU_TEXT(t));
    for (size_t i = 0; i < t.size; i++)
        if (t.at[i] != '.')
            p->module->version = 10 * p->module->version + (unsigned)(t.at[i] - '0');
    emu_lex_next(l);
}

static void parse_target_name(emu_parser *p)
{
    static const char *const platform_options[] = {"texmode_unified", "texmode_independent", "debug",
                                                   "map_f64_to_f32"};
    emu_lexer *l = &p->lexer;
    emu_text name = emu_lex_name(l, "a target such as sm_80");
    p->module->target.independent_samplers |= emu_text_is(name, "texmode_independent");
    for (size_t i = 0; i < sizeof platform_options / sizeof *platform_options; i++)
        if (emu_text_is(name, platform_options[i]))
            return;
    bool is_sm = name.size > 3 && memcmp(name.at, "sm_", 3) == 0;
    bool is_compute = name.size > 8 && memcmp(name.at, "compute_", 8) == 0;
    if (!is_sm && !is_compute)
        emu_fail(l, "expected a target such as sm_80, found '%.*s'", EMU_TEXT(name));
    unsigned number = 0;
    size_t i = is_sm ? 3 : 8;
    for (; i < name.size && name.at[i] >= '0' && name.at[i] <= '9'; i++)
        number = number * 10 + (unsigned)(name.at[i] - '0');
    char kind = i < name.size ? name.at[i++] : '\0';
    if (i != name.size || (kind && kind != 'a' && kind != 'f') || number < 10 || number > 999)
        emu_fail(l, "'%.*s' is not a target", EMU_TEXT(name));
    p->module->target.number = number;
    p->module->target.kind = kind;
    p->module->target.name = name;
}

static void parse_header(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    parse_version(p);
    emu_lex_expect(l, ".target");
    do
        parse_target_name(p);
    while (emu_lex_accept(l, ","));
    if (!p->module->target.number)
        emu_fail(l, ".target names no architecture");
    if (emu_lex_is(l, ".address_size") && p->module->version < 23)
        emu_fail(l, "'.address_size' needs .version 2.3");
    if (emu_lex_accept(l, ".address_size") && emu_parse_literal(p, ".address_size") != 64)
        emu_fail_unsupported(l, "only .address_size 64 is emulated");
}

static unsigned parse_positive(emu_parser *p, const char *what)
{
    uint64_t n = emu_parse_literal(p, what);
    if (n == 0 || n > UINT32_MAX)
        emu_fail(&p->lexer, "%s must be from 1 to 4294967295", what);
    return (unsigned)n;
}

static void parse_dimensions(emu_parser *p, unsigned dimensions[3])
{
    dimensions[0] = dimensions[1] = dimensions[2] = 1;
    int i = 0;
    do {
        if (i == 3)
            emu_fail(&p->lexer, "at most three dimensions");
        dimensions[i++] = parse_positive(p, "a block dimension");
    } while (emu_lex_accept(&p->lexer, ","));
}

/* The directives of clusters (ISA 11.7), where a 0 means that nothing is given. */
static bool parse_cluster_directive(emu_parser *p, emu_function *f)
{
    emu_lexer *l = &p->lexer;
    emu_text word = l->token.text;
    if (emu_lex_accept(l, ".maxclusterrank")) {
        f->max_cluster_blocks = (unsigned)emu_parse_literal(p, ".maxclusterrank");
    } else if (emu_lex_accept(l, ".reqnctapercluster")) {
        int i = 0;
        f->cluster[0] = f->cluster[1] = f->cluster[2] = 1;
        do {
            if (i == 3)
                emu_fail(l, "at most three dimensions");
            f->cluster[i++] = (unsigned)emu_parse_literal(p, "a cluster dimension");
        } while (emu_lex_accept(l, ","));
        if (!f->cluster[0] || !f->cluster[1] || !f->cluster[2])
            f->cluster[0] = f->cluster[1] = f->cluster[2] = 0;
    } else if (emu_lex_accept(l, ".explicitcluster")) {
        f->needs_cluster = true;
    } else if (emu_lex_is(l, ".blocksareclusters")) {
        emu_lacks(p, "'.blocksareclusters' is not emulated");
        emu_lex_next(l);
    } else {
        return false;
    }
    if (p->module->target.number < 90)
        emu_fail(l, "'%.*s' needs .target sm_90", EMU_TEXT(word));
    if (f->max_cluster_blocks && f->cluster[0])
        emu_fail(l, ".maxclusterrank and .reqnctapercluster exclude each other");
    return true;
}

static bool parse_kernel_directive(emu_parser *p, emu_function *f)
{
    emu_lexer *l = &p->lexer;
    if (emu_lex_accept(l, ".maxntid")) {
        parse_dimensions(p, f->max_threads);
        f->has_max_threads = true;
    } else if (emu_lex_accept(l, ".reqntid")) {
        parse_dimensions(p, f->required_threads);
        f->has_required_threads = true;
    } else if (emu_lex_accept(l, ".minnctapersm")) {
        f->min_blocks = parse_positive(p, ".minnctapersm");
    } else if (emu_lex_accept(l, ".maxnreg")) {
        f->max_registers = parse_positive(p, ".maxnreg");
    } else {
        return parse_cluster_directive(p, f);
    }
    if (f->has_max_threads && f->has_required_threads)
        emu_fail(l, ".maxntid and .reqntid exclude each other");
    return true;
}

/* ".maxntid 256" and similar directives, between a function's parameters and its body (ISA 11.4). */
static void parse_function_directives(emu_parser *p, emu_function *f)
{
    if (!f->is_entry)
        emu_parse_device_directives(p);
    while ((f->is_entry && parse_kernel_directive(p, f)) || emu_parse_debug(p, EMU_DEBUG_FUNCTION)) {
    }
}

static void layout_parameters(emu_parser *p, emu_function *f)
{
    uint64_t at = 0;
    for (size_t i = 0; i < f->parameter_count; i++) {
        emu_symbol *s = f->parameters[i];
        if (s->space == EMU_REG)
            emu_fail(&p->lexer, "a kernel's parameters live in .param");
        s->space = EMU_PARAM;
        s->is_entry_parameter = true;
        at = emu_align_up(at, s->alignment);
        s->parameter_offset = (uint32_t)at;
        at += s->bytes;
    }
    f->parameter_bytes = at;
    unsigned most = p->module->version < 81 ? 4352 : 32764;
    if (at > most)
        emu_fail(&p->lexer, "the parameters take %llu bytes; %u is the most at .version %u.%u",
                 (unsigned long long)at, most, p->module->version / 10, p->module->version % 10);
}

static emu_function *declare_function(emu_parser *p, emu_text name, bool is_entry)
{
    emu_module *m = p->module;
    emu_function *f = emu_find_function(m, name, UINT32_MAX);
    if (f && (f->is_entry != is_entry || f->is_defined))
        emu_fail(&p->lexer, "function '%.*s' is declared twice; first in line %u", EMU_TEXT(name), f->line);
    if (f)
        return f;
    emu_symbol *s = emu_declare(p, m->scope, EMU_SYMBOL_FUNCTION, name);
    f = emu_arena_alloc(&m->arena, sizeof *f);
    s->function = f;
    f->name = name;
    f->line = s->line;
    f->sequence = s->sequence;
    f->is_entry = is_entry;
    *m->last_function = f;
    m->last_function = &f->next;
    return f;
}

static bool are_alike(emu_symbol *const *a, size_t a_count, emu_symbol *const *b, size_t b_count)
{
    bool alike = a_count == b_count;
    for (size_t i = 0; alike && i < a_count; i++)
        alike = a[i]->space == b[i]->space && a[i]->type == b[i]->type && a[i]->bytes == b[i]->bytes &&
                a[i]->alignment == b[i]->alignment;
    return alike;
}

/* A later declaration repeats the first one's linkage, or leaves it out. */
static void declare_linkage(emu_parser *p, emu_function *f, bool is_first, emu_linkage linkage)
{
    if (is_first)
        f->linkage = linkage;
    else if (linkage != f->linkage && (linkage != EMU_STATIC || f->linkage == EMU_EXTERN))
        emu_fail(&p->lexer, "function '%.*s' was declared with another linkage in line %u", EMU_TEXT(f->name),
                 f->line);
}

static void parse_function(emu_parser *p, bool is_entry, emu_linkage linkage)
{
    emu_lexer *l = &p->lexer;
    emu_function parsed = {0};
    p->lacks = (emu_lack){0};
    emu_lex_next(l);
    if (!is_entry && emu_lex_accept(l, ".attribute"))
        emu_skip_attributes(p, false);
    emu_scope *scope = emu_open_scope(p, &parsed);
    if (emu_lex_is(l, "("))
        parsed.results = emu_parse_parameters(p, EMU_RESULTS, &parsed.result_count);
    if (is_entry && parsed.result_count)
        emu_fail(l, "a kernel returns nothing");
    emu_text name = emu_lex_name(l, "a function's name");
    emu_function *f = declare_function(p, name, is_entry);
    if (emu_lex_is(l, "("))
        parsed.parameters = emu_parse_parameters(p, is_entry ? EMU_PARAMETERS_OF_KERNEL : EMU_PARAMETERS,
                                                 &parsed.parameter_count);
    if (is_entry)
        layout_parameters(p, &parsed);
    if (f->scope &&
        !(are_alike(f->parameters, f->parameter_count, parsed.parameters, parsed.parameter_count) &&
          are_alike(f->results, f->result_count, parsed.results, parsed.result_count)))
        emu_fail(l, "function '%.*s' was declared with other parameters", EMU_TEXT(name));
    declare_linkage(p, f, !f->scope, linkage);
    f->scope = scope;
    scope->function = f;
    f->results = parsed.results;
    f->result_count = parsed.result_count;
    f->parameters = parsed.parameters;
    f->parameter_count = parsed.parameter_count;
    f->parameter_bytes = parsed.parameter_bytes;
    parse_function_directives(p, f);
    f->lacks = p->lacks;
    if (emu_lex_accept(l, ";")) {
        p->scope = scope->outer;
        return;
    }
    if (linkage == EMU_EXTERN)
        emu_fail(l, "an external function has no body");
    for (size_t i = 0; i < f->parameter_count; i++)
        emu_check_call_alignment(p, f->parameters[i]);
    for (size_t i = 0; i < f->result_count; i++)
        emu_check_call_alignment(p, f->results[i]);
    p->function = f;
    f->is_defined = true;
    emu_parse_body(p);
    p->function = NULL;
}

static emu_function *parse_function_name(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_text name = emu_lex_name(l, "a function's name");
    emu_function *f = emu_find_function(p->module, name, UINT32_MAX);
    if (!f || f->is_entry)
        emu_fail(l, "'%.*s' is not a declared function other than a kernel", EMU_TEXT(name));
    return f;
}

/* ".alias name, function;": from here on, the name, declared without a body, means the function (ISA 11.2.3). */
static void parse_alias(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    uint32_t number;
    emu_lex_expect(l, ".alias");
    emu_text name = l->token.text;
    emu_function *alias = parse_function_name(p);
    emu_lex_expect(l, ",");
    emu_function *f = parse_function_name(p);
    if (alias->is_defined || alias == f)
        emu_fail(l, "'%.*s' has a body already", EMU_TEXT(name));
    if (!are_alike(alias->parameters, alias->parameter_count, f->parameters, f->parameter_count) ||
        !are_alike(alias->results, alias->result_count, f->results, f->result_count))
        emu_fail(l, "'%.*s' and '%.*s' have different parameters", EMU_TEXT(name), EMU_TEXT(f->name));
    emu_find(p->module, p->module->scope, name, UINT32_MAX, &number)->function = f;
    alias->linkage = EMU_EXTERN; /* it needs no body */
    emu_lex_expect(l, ";");
}

static void parse_module_item(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    if (emu_parse_debug(p, EMU_DEBUG_MODULE))
        return;
    if (emu_lex_is(l, ".alias")) {
        parse_alias(p);
        return;
    }
    emu_lexer before = *l;
    const emu_linkage linkage = emu_accept_linkage(p);
    if (linkage != EMU_COMMON && (emu_lex_is(l, ".entry") || emu_lex_is(l, ".func"))) {
        parse_function(p, emu_lex_is(l, ".entry"), linkage);
        return;
    }
    if (!emu_at_declaration(p))
        emu_fail(l, "expected .entry, .func or a variable, found '%.*s'", EMU_TEXT(l->token.text));
    *l = before;
    emu_parse_declaration(p);
}

static void check_bodies(const emu_parser *p)
{
    for (const emu_function *f = p->module->functions; f; f = f->next)
        if (!f->is_defined && f->linkage != EMU_EXTERN)
            emu_log_error(p->lexer.log, f->line, (emu_text){0},
                          "function '%.*s' has no body, and is not .extern", EMU_TEXT(f->name));
}

bool emu_parse(emu_module *m, emu_text source, emu_log *log)
{
    emu_parser p = {.module = m};
    jmp_buf recover;
    m->source = source;
    m->last_function = &m->functions;
    emu_lex_start(&p.lexer, source, log);
    p.lexer.recover = &recover;
    if (setjmp(recover) != 0)
        return false;
    m->scope = emu_open_scope(&p, NULL);
    emu_lex_check_bytes(&p.lexer);
    emu_lex_next(&p.lexer);
    parse_header(&p);
    while (p.lexer.token.kind != EMU_END)
        parse_module_item(&p);
    check_bodies(&p);
    m->variables = p.variables.items;
    m->variable_count = p.variables.count;
    return log->errors == 0;
}
