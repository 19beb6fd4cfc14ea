/* Makes a family of a kernel of external PTX and its variants: its parameters are the arguments, followed by the launch
 * geometry that neither the PTX nor the configuration gives, for the caller to give. */
#include "build.h"

#include <string.h>

#include "expression/expression.h"
#include "family/family.h"
#include "mangled.h"
#include "support/messages.h"
#include "support/names.h"
#include "support/quote.h"
#include "support/words.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool take_name(external_build *m, family_list families)
{
    const external_request *q = m->q;
    m->name = q->name.text ? q->name.text : plain_name(m->arena, m->entry->name);
    const place at = q->name.text ? q->name.at : q->at;
    if (!external_is_free_name(m->name) || strcmp(m->name, "kiln") == 0) /* the type kiln_module exists */
        diagnose(m->d, at, message_entry_name, quote_text(m->arena, m->name));
    else if (family_find(families, m->name))
        diagnose(m->d, at, message_entry_family, m->name);
    else
        return true;
    return false;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* The bytes of a type that a struct's field can have. */
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

/* b32 -> u32, f16 -> u16: a type that C has. */
static const char *value_type(arena *a, const ptx_file_param *p)
{
    if (value_bytes(p->type))
        return p->type;
    return arena_format(a, "u%u", 8 * (unsigned)p->bytes);
}

static const char *default_arg_name(external_build *m, size_t i)
{
    const char *own = m->entry->params[i].name;
    const char *prefix = arena_format(m->arena, "%s_", m->entry->name);
    if (strncmp(own, prefix, strlen(prefix)) == 0)
        own += strlen(prefix);
    return external_is_free_name(own) ? own : arena_format(m->arena, "param_%u", (unsigned)i);
}

/* Adds it as the PTX declares it. */
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

/* Types of pointer elements. */
#define ELEMENT_TYPES "u8 s8 b8 u16 s16 b16 f16 bf16 u32 s32 b32 f32 u64 s64 b64 f64"

typedef struct description {
    const char *direction, *type, *shape, *alignment; /* null: not given */
} description;

/* Parses "in f32[n, k] aligned 16" or "u32"; false if it is neither. */
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
    return "u64, s64, f64 or, a pointer, 'in f32[n]' (in, out, inout, optional_in, optional_out, scratch; " ELEMENT_TYPES
           ")";
}

/* Takes the configuration's alignment, or the largest that .ptr promises in every variant's PTX. */
static void take_arg_alignment(external_build *m, kiln_arg *arg, size_t param, uint32_t said)
{
    const char *texts[EXTERNAL_VARIANTS_MOST];
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t i = 0; i < m->q->variant_count; i++) {
        const ptx_file_param *p = &m->q->variants[i].entry->params[param];
        const uint32_t own = p->is_pointer && p->alignment > said ? p->alignment : said;
        least = own < least ? own : least;
        most = own > most ? own : most;
        texts[i] = arena_format(m->arena, "%u", (unsigned)own);
    }
    if (least == most || most > MOST_ALIGNMENT)
        arg->alignment = most;
    else
        m->alignments[m->alignment_count++] = (kiln_alignment){arg->name, external_by_variant(m, texts)};
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
        p->is_array || p->type[0] == 'f') {
        diagnose(m->d, about.at, message_entry_arg, name, (unsigned)p->bytes,
                 p->is_array ? "a struct" : p->type, expected_description(p),
                 quote_text(m->arena, about.text));
        return;
    }
    if (said.alignment && !take_alignment(said.alignment, &alignment)) {
        diagnose(m->d, about.at, message_entry_alignment, name, quote_text(m->arena, said.alignment));
        return;
    }
    kiln_arg *arg = external_add_arg(m, name, said.type, NULL);
    arg->kind = (kiln_arg_kind)kind;
    arg->shape = said.shape;
    take_arg_alignment(m, arg, (size_t)(p - m->entry->params), alignment);
}

static void take_args(external_build *m)
{
    const external_request *q = m->q;
    const size_t count = m->entry->param_count;
    if (q->has_args && q->arg_count != count) {
        diagnose(m->d, q->args_at, message_entry_args, m->entry->name, (unsigned)count,
                 (unsigned)q->arg_count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = q->has_args ? q->args[i].name.text : default_arg_name(m, i);
        if (q->has_args && !external_is_free_name(name))
            diagnose(m->d, q->args[i].name.at, message_entry_name, quote_text(m->arena, name));
        if (q->has_args && q->args[i].about.text)
            add_described(m, name, &m->entry->params[i], q->args[i].about);
        else
            add_plain(m, name, &m->entry->params[i]);
    }
    m->param_count = count;
    size_t pointers = 0;
    for (size_t i = 0; i < count; i++)
        pointers += m->args[i].kind != KILN_ARG_VALUE;
    if (pointers > EXTERNAL_POINTERS_MOST)
        diagnose(m->d, q->args_at, message_entry_pointers, EXTERNAL_POINTERS_MOST, m->entry->name, pointers);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void check_names(external_build *m)
{
    size_t index;
    name_table names = {0};
    for (size_t i = 0; i < m->arg_count; i++) {
        if (names_add(m->arena, &names, m->args[i].name, i) != NAME_NONE)
            diagnose(m->d, m->q->has_args ? m->q->args_at : m->q->at, message_entry_arg_twice,
                     m->args[i].name, m->entry->name, i >= m->param_count ? ", once for the launch" : "");
        if (family_find_param(m->family, m->args[i].name, &index))
            diagnose(m->d, m->q->params[index].at, message_entry_arg_twice, m->args[i].name, m->entry->name,
                     ", once in 'values'");
    }
}

/* Checks that all variants have the same signature. */
static void check_alike(external_build *m)
{
    for (size_t i = 1; i < m->q->variant_count; i++) {
        const ptx_file_entry *other = m->q->variants[i].entry;
        const char *differs = external_param_difference(m->arena, m->entry, other);
        if (differs)
            diagnose(m->d, other->at, message_ptx_differs,
                     arena_format(m->arena, "the parameters of %s", m->entry->name),
                     m->q->variants[0].module->files[0]->path, differs);
    }
}

/* A list in brackets splits an element at its comma, even within ceil_div(n, 256). */
static bool is_torn(const char *source)
{
    int depth = 0;
    for (const char *c = source; *c && depth >= 0; c++)
        depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
    return depth != 0;
}

static void check_expression(external_build *m, size_t i, const char *source, place at, bool is_list)
{
    const char *why = source ? expression_try(m->arena, &m->variants[i], source, is_list) : NULL;
    if (why)
        diagnose(m->d, at, message_entry_expression, quote_text(m->arena, source), why,
                 is_torn(source) ? "; in a list, text with a comma needs quotes"
                                 : external_with(m, i, source));
}

/* Checks the user's expressions, in the scope of the arguments and of a variant's values. */
static void check_expressions(external_build *m, size_t v)
{
    const external_request *q = m->q;
    const external_variant *own = &q->variants[v];
    for (size_t i = 0; i < q->arg_count; i++)
        if (m->args[i].kind != KILN_ARG_VALUE)
            check_expression(m, v, m->args[i].shape, q->args[i].about.at, true);
    for (size_t i = 0; i < q->rule_count; i++)
        check_expression(m, v, q->rules[i].text, q->rules[i].at, false);
    check_expression(m, v, own->when.text, own->when.at, false);
    for (int i = 0; i < 3; i++)
        check_expression(m, v, own->launch.grid[i].text, own->launch.grid[i].at, false);
    check_expression(m, v, own->launch.shared_bytes.text, own->launch.shared_bytes.at, false);
}

static void check_grid(external_build *m, size_t v)
{
    const external_text *grid = m->q->variants[v].launch.grid;
    uint64_t blocks;
    for (int i = 0; i < 3; i++)
        if (external_is_number(m, v, grid[i].text, &blocks) && blocks == 0)
            diagnose(m->d, grid[i].at, message_entry_empty, "grid");
}

static void note_counted(external_build *m, const char *source, bool *args)
{
    const expression *const *list;
    const size_t count = source ? expression_parse_list(m->arena, m->family, source, &list) : 0;
    for (size_t i = 0; i < count; i++)
        expression_note_counted(list[i], args);
}

/* For each argument: whether the expressions depend on its number. */
static const bool *counted_args(external_build *m)
{
    bool *args = arena_alloc(m->arena, (m->arg_count + 1) * sizeof *args);
    note_counted(m, m->family->shared_bytes, args);
    for (size_t i = 0; i < m->param_count; i++)
        if (m->args[i].kind != KILN_ARG_VALUE)
            note_counted(m, m->args[i].shape, args);
    for (size_t i = 0; i < m->q->rule_count; i++)
        note_counted(m, m->q->rules[i].text, args);
    for (size_t i = 0; i < m->q->variant_count; i++)
        note_counted(m, m->q->variants[i].when.text, args);
    for (int i = 0; i < 3; i++)
        note_counted(m, m->family->grid[i], args);
    return args;
}

/* Expressions are unsigned: first a rule rejects negative values of the signed arguments that they calculate with. A
 * variant's own condition is a rule that the other variants always meet. */
static void take_rules(external_build *m)
{
    const external_request *q = m->q;
    const bool *is_counted = counted_args(m);
    for (size_t i = 0; i < m->param_count; i++)
        if (m->args[i].kind == KILN_ARG_VALUE && m->args[i].type[0] == 's' && is_counted[i])
            external_add_rule(m, arena_format(m->arena, "!negative(%s)", m->args[i].name),
                              arena_format(m->arena, "%s must be at least 0", m->args[i].name));
    for (size_t i = 0; i < q->rule_count; i++)
        external_add_rule(m, q->rules[i].text, arena_format(m->arena, "%s must hold", q->rules[i].text));
    for (size_t i = 0; i < q->variant_count; i++) {
        const char *when = q->variants[i].when.text;
        if (when)
            external_add_rule(m, arena_format(m->arena, "%s(%s)", external_unless(m, i), when),
                              arena_format(m->arena, "%s must hold", when));
    }
}

/* A condition over arguments under which a variant's grid has no thread blocks; empty: never. */
static const char *empty_grid(external_build *m, size_t v)
{
    text empty = text_new(m->arena);
    for (int i = 0; i < 3 && m->q->variants[v].launch.grid[0].text; i++) {
        const expression *blocks = expression_parse(m->arena, m->family, m->family->grid[i]);
        blocks = expression_bind(m->arena, blocks, &m->variants[v]);
        if (!expression_uses(blocks, NAME_ARG))
            continue;
        text_add(&empty, empty.length ? " || (" : "(");
        expression_print(&empty, blocks);
        text_add(&empty, ") == 0");
    }
    return empty.data;
}

/* A launch is empty if every variant's grid is. */
static void take_empty(external_build *m)
{
    text empty = text_new(m->arena), printed = text_new(m->arena);
    for (size_t i = 0; i < m->q->variant_count; i++) {
        const char *own = empty_grid(m, i);
        if (!*own)
            return;
        own = arena_format(m->arena, "(%s)", own);
        if (!strstr(empty.data, own))
            text_printf(&empty, "%s%s", i > 0 ? " && " : "", own);
    }
    expression_print(&printed,
                     expression_parse(m->arena, m->family, empty.data)); /* without needless brackets */
    m->family->empty = printed.data;
}

/* One of several variants may be for some targets only. */
static void take_targets(external_build *m, variant *v, const external_module *module, const target *targets,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (external_file_for(module, targets[i]))
            v->runs_on |= UINT32_C(1) << i;
    if (v->runs_on == 0 && count > 0)
        diagnose(m->d, v->at, message_variant_without_target, v->id, "",
                 arena_format(m->arena, "is for %s", target_text(m->arena, module->files[0]->made_for)));
}

/* Whether a variant runs wherever another one does: on all of its targets, without a newer driver, in the same shared
 * memory. */
static bool runs_wherever(const external_build *m, size_t v, size_t other, const target *targets)
{
    const external_variant *a = &m->q->variants[v], *b = &m->q->variants[other];
    const char *shared = a->launch.shared_bytes.text, *of_other = b->launch.shared_bytes.text;
    if ((m->variants[other].runs_on & ~m->variants[v].runs_on) != 0)
        return false;
    for (uint32_t i = 0, on = m->variants[other].runs_on; on >> i; i++)
        if ((on >> i & 1) && external_file_for(a->module, targets[i])->version >
                                 external_file_for(b->module, targets[i])->version)
            return false;
    return !shared || (of_other && strcmp(shared, of_other) == 0);
}

/* Rejects variants after one without a condition, which takes every call. */
static void check_reached(const external_build *m, size_t v, const target *targets)
{
    for (size_t i = 0; i < v && m->variants[v].runs_on; i++)
        if (!m->q->variants[i].when.text && runs_wherever(m, i, v, targets)) {
            warn(m->d, m->q->variants[v].at, message_variant_unreached, m->variants[v].id, m->variants[i].id);
            return;
        }
}

static const char *summary_of(const external_build *m)
{
    const char *first = arena_format(m->arena, "the kernel %s of %s", m->entry->name,
                                     m->q->variants[0].module->files[0]->asked);
    const size_t others = m->q->variant_count - 1;
    return others == 0 ? first
                       : arena_format(m->arena, "%s, or %u other%s like it", first, (unsigned)others,
                                      others > 1 ? "s" : "");
}

static external_build begin(arena *a, const external_request *q, diagnostics *d)
{
    external_build m = {.arena = a, .q = q, .d = d, .why_not_launched = text_new(a)};
    m.entry = q->variants[0].entry;
    m.family = arena_alloc(a, sizeof *m.family);
    m.args = arena_alloc(a, (m.entry->param_count + EXTERNAL_LAUNCH_ARGS + 1) * sizeof *m.args);
    m.alignments = arena_alloc(a, (m.entry->param_count + 1) * sizeof *m.alignments);
    const size_t most_rules = m.entry->param_count + q->rule_count + q->variant_count + EXTERNAL_LAUNCH_RULES;
    m.rules = arena_alloc(a, (most_rules + 1) * sizeof *m.rules);
    m.variants = arena_alloc(a, q->variant_count * sizeof *m.variants);
    for (size_t i = 0; i < q->variant_count; i++)
        m.variants[i] = (variant){.kind = VARIANT_EXTERNAL,
                                  .family = m.family,
                                  .at = q->variants[i].at,
                                  .module = q->variants[i].module};
    return m;
}

variant *external_make(arena *a, const external_request *q, family_list families, const target *targets,
                       size_t target_count, diagnostics *d)
{
    const int before = d->count;
    external_build m = begin(a, q, d);
    check_alike(&m);
    external_take_values(&m);
    if (!take_name(&m, families) || d->count != before)
        return NULL;
    *m.family = (kiln_family){.name = m.name,
                              .args = m.args,
                              .params = m.family->params,
                              .rules = m.rules,
                              .alignments = m.alignments,
                              .summary = summary_of(&m)};
    take_args(&m);
    external_take_grid(&m);
    external_take_block(&m);
    external_take_shared(&m);
    if (d->count == before)
        check_names(&m);
    for (size_t i = 0; i < q->variant_count && d->count == before; i++) {
        check_expressions(&m, i);
        if (d->count == before)
            check_grid(&m, i);
    }
    if (d->count != before)
        return NULL;
    take_rules(&m);
    take_empty(&m);
    for (size_t i = 0; i < q->variant_count; i++) {
        const external_variant *own = &q->variants[i];
        m.variants[i].launch_args = m.arg_count - m.param_count;
        m.variants[i].why_not_launched = m.why_not_launched.length ? m.why_not_launched.data : NULL;
        variant_name(a, &m.variants[i]);
        m.variants[i].symbol = own->entry->name;
        take_targets(&m, &m.variants[i], own->module, targets, target_count);
        check_reached(&m, i, targets);
    }
    return d->count == before ? m.variants : NULL;
}
