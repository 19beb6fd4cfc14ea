/* A kernel of external PTX becomes a family of its own: its parameters are the arguments, and what the PTX and the
 * configuration leave open of the launch follows them, for the caller to give. */
#include "build.h"

#include <string.h>

#include "expression/expression.h"
#include "family/family.h"
#include "mangled.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"

enum { LONGEST_NAME = 100 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool is_free_name(const char *name)
{
    if (strlen(name) > LONGEST_NAME || name[0] == '_' || (name[0] >= '0' && name[0] <= '9') || !*name ||
        strstr(name, "__") || words_contain(c_keywords, name) || family_reserves(name))
        return false;
    for (const char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_'))
            return false;
    return true;
}

static bool take_name(external_build *m, family_list families)
{
    const external_request *q = m->q;
    m->name = q->name.text ? q->name.text : plain_name(m->arena, q->entry->name);
    const place at = q->name.text ? q->name.at : q->at;
    if (!is_free_name(m->name) || strcmp(m->name, "kiln") == 0) /* there is a type kiln_module */
        diagnose(m->d, at, message_entry_name, quote_text(m->arena, m->name));
    else if (family_find(families, m->name))
        diagnose(m->d, at, message_entry_family, m->name);
    else
        return true;
    return false;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* The types that a struct's field can have, with the bytes of each. */
static uint32_t value_bytes(const char *type)
{
    static const struct {
        const char *types;
        uint32_t bytes;
    } rows[] = {{"u8 s8 i8", 1}, {"u16 s16 i16", 2}, {"u32 s32 i32 f32", 4}, {"u64 s64 i64 f64", 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (words_contain(rows[i].types, type))
            return rows[i].bytes;
    return 0;
}

/* b32 -> u32, f16 -> u16: what C has a type for. */
static const char *value_type(arena *a, const ptx_file_param *p)
{
    if (value_bytes(p->type))
        return p->type;
    return arena_format(a, "u%u", 8 * (unsigned)p->bytes);
}

static const char *default_arg_name(external_build *m, size_t i)
{
    const char *own = m->q->entry->params[i].name;
    const char *prefix = arena_format(m->arena, "%s_", m->q->entry->name);
    if (strncmp(own, prefix, strlen(prefix)) == 0)
        own += strlen(prefix);
    return is_free_name(own) ? own : arena_format(m->arena, "param_%u", (unsigned)i);
}

/* As the PTX has it. */
static void add_plain(external_build *m, const char *name, const ptx_file_param *p)
{
    const bool is_open = p->bytes == 8 && p->type[0] != 'f' && !p->is_array && !m->q->has_descriptions;
    if (p->is_array) {
        kiln_arg *arg = external_add_arg(m, name, "b8", "a struct of the kernel's");
        arg->shape = arena_format(m->arena, "%u", (unsigned)p->bytes);
        arg->alignment = p->alignment;
        external_cannot_launch(m, arena_format(m->arena, "%s is a struct", name));
    } else if (p->is_pointer) {
        external_add_arg(m, name, "address", NULL);
    } else {
        external_add_arg(m, name, value_type(m->arena, p), is_open ? "a number or an address" : NULL);
    }
    if (is_open)
        external_cannot_launch(m, m->q->has_args
                                      ? "the configuration says no more of its args than their names"
                                      : "the configuration gives no args");
}

/* What pointers may point at. */
#define ELEMENT_TYPES "u8 s8 b8 u16 s16 b16 f16 bf16 u32 s32 b32 f32 u64 s64 b64 f64"

typedef struct description {
    const char *direction, *type, *shape, *alignment; /* null: not said */
} description;

/* "in f32[n, k] aligned 16" or "u32" in its parts; false when it is neither. */
static bool read_description(arena *a, const char *about, description *out)
{
    const char *bracket = strchr(about, '['), *end = strrchr(about, ']');
    *out = (description){0};
    if (!bracket) {
        out->type = about;
        return strcspn(about, " ]") == strlen(about);
    }
    const char *space = memchr(about, ' ', (size_t)(bracket - about));
    if (!space || !end || end < bracket)
        return false;
    out->direction = arena_string(a, about, (size_t)(space - about));
    out->type = arena_string(a, space + 1, (size_t)(bracket - space - 1));
    out->shape = arena_string(a, bracket + 1, (size_t)(end - bracket - 1));
    static const char aligned[] = " aligned ";
    if (strncmp(end + 1, aligned, strlen(aligned)) == 0)
        out->alignment = end + 1 + strlen(aligned);
    return !end[1] || out->alignment;
}

static bool take_alignment(const char *digits, uint32_t *alignment)
{
    static const char powers[] = "1 2 4 8 16 32 64 128 256 512 1024";
    if (!words_contain(powers, digits))
        return false;
    for (*alignment = 0; *digits; digits++)
        *alignment = 10 * *alignment + (uint32_t)(*digits - '0');
    return true;
}

static const char *expected_description(const ptx_file_param *p)
{
    static const struct {
        uint32_t bytes;
        const char *expected;
    } rows[] = {{1, "u8 or s8"}, {2, "u16 or s16, which halves are passed as"}, {4, "u32, s32 or f32"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !p->is_array; i++)
        if (rows[i].bytes == p->bytes)
            return rows[i].expected;
    if (p->is_array)
        return "nothing: the caller fills its bytes";
    return "u64, s64, f64 or, a pointer, 'in f32[n]' (in, out, inout, optional_out, scratch; " ELEMENT_TYPES
           ")";
}

static void add_described(external_build *m, const char *name, const ptx_file_param *p, external_text about)
{
    description said;
    int kind = KILN_ARG_VALUE;
    const bool is_read = read_description(m->arena, about.text, &said);
    if (is_read && !said.direction && !p->is_array && value_bytes(said.type) == p->bytes) {
        external_add_arg(m, name, said.type, NULL);
        return;
    }
    for (int i = KILN_ARG_IN; said.direction && i <= KILN_ARG_SCRATCH; i++)
        kind = strcmp(said.direction, arg_direction((kiln_arg_kind)i)) == 0 ? i : kind;
    uint32_t alignment = 1;
    if (!is_read || kind == KILN_ARG_VALUE || !words_contain(ELEMENT_TYPES, said.type) || p->bytes != 8 ||
        p->is_array || p->type[0] == 'f' || (said.alignment && !take_alignment(said.alignment, &alignment))) {
        diagnose(m->d, about.at, message_entry_arg, name, (unsigned)p->bytes,
                 p->is_array ? "a struct" : p->type, expected_description(p),
                 quote_text(m->arena, about.text));
        return;
    }
    kiln_arg *arg = external_add_arg(m, name, said.type, NULL);
    arg->kind = (kiln_arg_kind)kind;
    arg->shape = said.shape;
    arg->alignment = p->is_pointer && p->alignment > alignment ? p->alignment : alignment;
}

static void take_args(external_build *m)
{
    const external_request *q = m->q;
    const size_t count = q->entry->param_count;
    if (q->has_args && q->arg_count != count) {
        diagnose(m->d, q->args_at, message_entry_args, q->entry->name, (unsigned)count,
                 (unsigned)q->arg_count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = q->has_args ? q->args[i].name.text : default_arg_name(m, i);
        if (q->has_args && !is_free_name(name))
            diagnose(m->d, q->args[i].name.at, message_entry_name, quote_text(m->arena, name));
        if (q->has_args && q->args[i].about.text)
            add_described(m, name, &q->entry->params[i], q->args[i].about);
        else
            add_plain(m, name, &q->entry->params[i]);
    }
    m->kernel->param_count = count;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void check_names(external_build *m)
{
    for (size_t i = 0; i < m->arg_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(m->args[i].name, m->args[k].name) == 0)
                diagnose(m->d, m->q->has_args ? m->q->args_at : m->q->at, message_entry_arg_twice,
                         m->args[i].name, m->q->entry->name,
                         i >= m->kernel->param_count ? ", once for the launch" : "");
}

/* A list in brackets ends an element at its comma, be that within ceil_div(n, 256). */
static bool is_torn(const char *source)
{
    int depth = 0;
    for (const char *c = source; *c && depth >= 0; c++)
        depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
    return depth != 0;
}

static void check_expression(external_build *m, const char *source, place at, bool is_list)
{
    const char *why = source ? expression_try(m->arena, m->family, source, is_list) : NULL;
    if (why)
        diagnose(m->d, at, message_entry_expression, quote_text(m->arena, source), why,
                 is_torn(source) ? "; in a list, what has a comma wants quotes" : "");
}

/* What the user wrote. All of it is tried, in the scope of the arguments. */
static void check_expressions(external_build *m)
{
    const external_request *q = m->q;
    for (size_t i = 0; i < q->arg_count; i++)
        if (m->args[i].kind != KILN_ARG_VALUE)
            check_expression(m, m->args[i].shape, q->args[i].about.at, true);
    for (size_t i = 0; i < q->rule_count; i++)
        check_expression(m, q->rules[i].text, q->rules[i].at, false);
    for (int i = 0; i < 3; i++)
        check_expression(m, q->grid[i].text, q->grid[i].at, false);
    check_expression(m, q->shared_bytes.text, q->shared_bytes.at, false);
}

static void check_grid(external_build *m)
{
    uint64_t blocks;
    for (int i = 0; i < 3; i++)
        if (external_is_number(m, m->q->grid[i].text, &blocks) && blocks == 0)
            diagnose(m->d, m->q->grid[i].at, message_entry_empty, "grid");
}

static bool counts_with(external_build *m, const char *source, size_t arg)
{
    const expression *const *list;
    const size_t count = source ? expression_parse_list(m->arena, m->family, source, &list) : 0;
    for (size_t i = 0; i < count; i++)
        if (expression_counts_with(list[i], arg))
            return true;
    return false;
}

static bool is_counted_with(external_build *m, size_t arg)
{
    bool found = counts_with(m, m->q->shared_bytes.text, arg);
    for (size_t i = 0; i < m->q->arg_count; i++)
        found = found || (m->args[i].kind != KILN_ARG_VALUE && counts_with(m, m->args[i].shape, arg));
    for (size_t i = 0; i < m->q->rule_count; i++)
        found = found || counts_with(m, m->q->rules[i].text, arg);
    for (int i = 0; i < 3; i++)
        found = found || counts_with(m, m->q->grid[i].text, arg);
    return found;
}

/* Expressions are unsigned: a signed argument that they count with must not be negative, which is said before all else. */
static void take_rules(external_build *m)
{
    for (size_t i = 0; i < m->kernel->param_count; i++)
        if (m->args[i].kind == KILN_ARG_VALUE && m->args[i].type[0] == 's' && is_counted_with(m, i))
            external_add_rule(m, arena_format(m->arena, "!negative(%s)", m->args[i].name),
                              arena_format(m->arena, "%s must be at least 0", m->args[i].name));
    for (size_t i = 0; i < m->q->rule_count; i++)
        external_add_rule(m, m->q->rules[i].text,
                          arena_format(m->arena, "%s must hold", m->q->rules[i].text));
}

/* A grid without thread blocks is nothing to do. */
static void take_empty(external_build *m)
{
    text empty = text_new(m->arena), printed = text_new(m->arena);
    for (int i = 0; i < 3 && m->q->grid[0].text; i++)
        if (expression_uses(expression_parse(m->arena, m->family, m->family->grid[i]), NAME_ARG))
            text_printf(&empty, "%s(%s) == 0", empty.length ? " || " : "", m->family->grid[i]);
    if (empty.length == 0)
        return;
    expression_print(&printed,
                     expression_parse(m->arena, m->family, empty.data)); /* without needless brackets */
    m->family->empty = printed.data;
}

variant *external_make(arena *a, const external_request *q, family_list families, size_t target_count,
                       diagnostics *d)
{
    const int before = d->count;
    external_build m = {.arena = a, .q = q, .d = d, .why_not_launched = text_new(a)};
    m.family = arena_alloc(a, sizeof *m.family);
    m.kernel = arena_alloc(a, sizeof *m.kernel);
    m.args = arena_alloc(a, (q->entry->param_count + EXTERNAL_LAUNCH_ARGS + 1) * sizeof *m.args);
    const size_t most_rules = q->entry->param_count + q->rule_count + EXTERNAL_LAUNCH_RULES;
    m.rules = arena_alloc(a, (most_rules + 1) * sizeof *m.rules);
    *m.kernel = (external_kernel){.module = q->module};
    if (!take_name(&m, families))
        return NULL;
    m.family->name = m.name;
    m.family->args = m.args;
    m.family->rules = m.rules;
    m.family->summary = arena_format(a, "the kernel %s of %s", q->entry->name, q->module->files[0]->asked);
    take_args(&m);
    external_take_grid(&m);
    external_take_block(&m);
    external_take_shared(&m);
    if (d->count == before)
        check_names(&m);
    if (d->count == before)
        check_expressions(&m);
    if (d->count == before)
        check_grid(&m);
    if (d->count != before)
        return NULL;
    take_rules(&m);
    take_empty(&m);
    m.kernel->why_not_launched = m.why_not_launched.length ? m.why_not_launched.data : NULL;

    variant *v = arena_alloc(a, sizeof *v);
    *v = (variant){.family = m.family, .at = q->at, .external = m.kernel, .shape = m.kernel->shape};
    v->runs_on = (UINT32_C(1) << target_count) - 1;
    variant_name(a, v);
    v->symbol = q->entry->name;
    return v;
}
