/* A kernel from elsewhere becomes a family of its own: its parameters are the arguments, and what the PTX and the
 * configuration leave open of the launch follows them, for the caller to give. */
#include "foreign.h"

#include <string.h>

#include "expression.h"
#include "family.h"
#include "found.h"
#include "mangled.h"
#include "messages.h"
#include "support/words.h"
#include "targets.h"
#include "variants.h"

enum {
    LONGEST_NAME = 100,
    SHARED_BYTES_WITHOUT_OPTIN = 48 * 1024, /* CUDA programming guide: more is asked for per kernel ... */
    MOST_SHARED_BYTES = 227 * 1024,         /* ... up to this on 9.0 and 10.x, the most of any */
    DEEPEST_BLOCK = 64,                     /* along z, on every device */
    MOST_THREADS = 1024,                    /* of a block, on every device */
    GEOMETRY_ARGS = 7,                      /* grid, block, shared_bytes */
    GEOMETRY_RULES = 3
};

typedef struct maker {
    arena *arena;
    const foreign_request *q;
    diagnostics *d;
    const char *name;
    kiln_family *family;
    kiln_arg *args;
    size_t arg_count;
    kiln_rule *rules;
    size_t rule_count;
    foreign_kernel *kernel;
    text why_not_launched;
} maker;

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

static bool take_name(maker *m)
{
    const foreign_request *q = m->q;
    m->name = q->name.text ? q->name.text : plain_name(m->arena, q->entry->name);
    const place at = q->name.text ? q->name.at : q->at;
    if (!is_free_name(m->name) || strcmp(m->name, "kiln") == 0) /* there is a type kiln_module */
        diagnose(m->d, at, message_entry_name, found_text(m->arena, m->name));
    else if (family_find(m->name))
        diagnose(m->d, at, message_entry_family, m->name);
    else
        return true;
    return false;
}

/* Two of one file are told apart better by their own names than by line. */
static bool is_new(const maker *m, const plan *p)
{
    for (size_t i = 0; i < p->variant_count; i++) {
        const kiln_variant *v = p->variants[i];
        if (!v->foreign || strcmp(v->family->name, m->name) != 0)
            continue;
        diagnose(m->d, m->q->at, message_entry_twice, m->name, v->foreign->symbol, m->q->entry->name);
        return false;
    }
    return true;
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

static void cannot_launch(maker *m, const char *why)
{
    if (m->why_not_launched.length == 0)
        text_add(&m->why_not_launched, why);
}

static kiln_arg *add_arg(maker *m, const char *name, const char *type, const char *summary)
{
    kiln_arg *arg = &m->args[m->arg_count++];
    *arg = (kiln_arg){.name = name, .kind = KILN_ARG_VALUE, .type = type, .summary = summary};
    return arg;
}

static const char *default_arg_name(maker *m, size_t i)
{
    const char *own = m->q->entry->params[i].name;
    const char *prefix = arena_format(m->arena, "%s_", m->q->entry->name);
    if (strncmp(own, prefix, strlen(prefix)) == 0)
        own += strlen(prefix);
    return is_free_name(own) ? own : arena_format(m->arena, "param_%u", (unsigned)i);
}

/* As the PTX has it. */
static void add_plain(maker *m, const char *name, const ptx_file_param *p)
{
    const bool is_open = p->bytes == 8 && p->type[0] != 'f' && !p->is_array && !m->q->has_descriptions;
    if (p->is_array) {
        kiln_arg *arg = add_arg(m, name, "b8", "a struct of the kernel's");
        arg->shape = arena_format(m->arena, "%u", (unsigned)p->bytes);
        arg->alignment = p->alignment;
        cannot_launch(m, arena_format(m->arena, "%s is a struct", name));
    } else if (p->is_pointer) {
        add_arg(m, name, "address", NULL);
    } else {
        add_arg(m, name, value_type(m->arena, p), is_open ? "a number or an address" : NULL);
    }
    if (is_open)
        cannot_launch(m, m->q->has_args ? "the configuration says no more of its args than their names"
                                        : "the configuration gives no args");
}

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
    return "u64, s64, f64 or, a pointer, 'in f32[n]' (in, out, inout, optional_out, scratch)";
}

static void add_described(maker *m, const char *name, const ptx_file_param *p, foreign_text about)
{
    static const char *const directions[] = {[KILN_ARG_IN] = "in",
                                             [KILN_ARG_OUT] = "out",
                                             [KILN_ARG_INOUT] = "inout",
                                             [KILN_ARG_OPTIONAL_OUT] = "optional_out",
                                             [KILN_ARG_SCRATCH] = "scratch"};
    static const char types[] = "u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 f64";
    description said;
    int kind = KILN_ARG_VALUE;
    const bool is_read = read_description(m->arena, about.text, &said);
    if (is_read && !said.direction && !p->is_array && value_bytes(said.type) == p->bytes) {
        add_arg(m, name, said.type, NULL);
        return;
    }
    for (int i = KILN_ARG_IN; said.direction && i <= KILN_ARG_SCRATCH; i++)
        kind = strcmp(said.direction, directions[i]) == 0 ? i : kind;
    uint32_t alignment = 1;
    if (!is_read || kind == KILN_ARG_VALUE || !words_contain(types, said.type) || p->bytes != 8 ||
        p->is_array || p->type[0] == 'f' || (said.alignment && !take_alignment(said.alignment, &alignment))) {
        diagnose(m->d, about.at, message_entry_arg, name, (unsigned)p->bytes,
                 p->is_array ? "a struct" : p->type, expected_description(p),
                 found_text(m->arena, about.text));
        return;
    }
    kiln_arg *arg = add_arg(m, name, said.type, NULL);
    arg->kind = (kiln_arg_kind)kind;
    arg->shape = said.shape;
    arg->alignment = p->is_pointer && p->alignment > alignment ? p->alignment : alignment;
}

static void take_args(maker *m)
{
    const foreign_request *q = m->q;
    const size_t count = q->entry->param_count;
    if (q->has_args && q->arg_count != count) {
        diagnose(m->d, q->args_at, message_entry_args, q->entry->name, (unsigned)count,
                 (unsigned)q->arg_count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = q->has_args ? q->args[i].name.text : default_arg_name(m, i);
        if (q->has_args && !is_free_name(name))
            diagnose(m->d, q->args[i].name.at, message_entry_name, found_text(m->arena, name));
        if (q->has_args && q->args[i].about.text)
            add_described(m, name, &q->entry->params[i], q->args[i].about);
        else
            add_plain(m, name, &q->entry->params[i]);
    }
    m->kernel->param_count = count;
}

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

static const char *text_of(foreign_text t, const char *otherwise)
{
    return t.text ? t.text : otherwise;
}

static void add_rule(maker *m, const char *condition, const char *words)
{
    m->rules[m->rule_count++] = (kiln_rule){condition, words};
}

/* As a whole name: grid_x is not in "my_grid_x". */
static bool has_name(const char *shape, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (const char *c = shape + strcspn(shape, letters); *c; c += strcspn(c, letters)) {
        const size_t length = strspn(c, letters);
        if (strncmp(c, name, length) == 0 && name[length] == '\0')
            return true;
        c += length;
    }
    return false;
}

static bool is_in_shapes(const maker *m, const char *name)
{
    for (size_t i = 0; i < m->kernel->param_count; i++)
        if (m->args[i].kind != KILN_ARG_VALUE && has_name(m->args[i].shape, name))
            return true;
    return false;
}

/* The caller gives it: the dimensions that shapes name, which say what the kernel does with them; else all three. */
static void leave_grid(maker *m)
{
    static const char *const names[] = {"grid_x", "grid_y", "grid_z"};
    const bool are_named =
        is_in_shapes(m, "grid_x") || is_in_shapes(m, "grid_y") || is_in_shapes(m, "grid_z");
    for (int i = 0; i < 3; i++) {
        if (are_named && !is_in_shapes(m, names[i]))
            continue;
        add_arg(m, names[i], "u32", i == 0 ? "thread blocks" : "thread blocks; 0 is 1");
        m->family->grid[i] = i == 0 ? names[i] : arena_format(m->arena, "max(%s, 1)", names[i]);
    }
    if (m->family->grid[0])
        add_rule(m, "grid_x >= 1", "grid_x must be at least 1");
    if (!are_named)
        cannot_launch(m, "the configuration gives no grid, and no shape has grid_x");
}

static void take_grid(maker *m)
{
    const foreign_request *q = m->q;
    if (!q->grid[0].text) {
        leave_grid(m);
        return;
    }
    for (int i = 0; i < 3; i++)
        m->family->grid[i] = text_of(q->grid[i], "1");
}

static void set_block(maker *m, const uint32_t threads[3])
{
    for (int i = 0; i < 3; i++)
        m->family->block[i] = arena_format(m->arena, "%u", (unsigned)threads[i]);
}

/* The caller gives it; a block of 0 is the most that the PTX allows, where it says so. */
static void leave_block(maker *m, const uint32_t *most)
{
    arena *a = m->arena;
    static const uint32_t none[3] = {0};
    const uint32_t threads = most[0] ? most[0] * most[1] * most[2] : MOST_THREADS;
    set_block(m, none);
    add_arg(m, "block_x", "u32",
            most[0] ? arena_format(a, "threads; 0 is %u x %u x %u", (unsigned)most[0], (unsigned)most[1],
                                   (unsigned)most[2])
                    : "threads");
    add_arg(m, "block_y", "u32", "0 is 1");
    add_arg(m, "block_z", "u32", "0 is 1");
    for (int i = 0; i < 3; i++) {
        const char *given = i == 0 ? "block_x" : arena_format(a, "max(block_%c, 1)", "xyz"[i]);
        m->kernel->block[i] =
            most[0] ? arena_format(a, "select(block_x == 0, %u, %s)", (unsigned)most[i], given) : given;
    }
    add_rule(m,
             arena_format(a,
                          "max(block_x, max(block_y, block_z)) <= %u && block_z <= 64 && "
                          "block_x * max(block_y, 1) * max(block_z, 1) <= %u",
                          (unsigned)MOST_THREADS, (unsigned)threads),
             arena_format(a, "block_x * block_y * block_z must be at most %u%s", (unsigned)threads,
                          most[0] ? ", the kernel's .maxntid" : ""));
    if (!most[0])
        add_rule(m, "block_x >= 1", "block_x must be at least 1");
    cannot_launch(m, "the configuration gives no block");
}

static void take_block(maker *m)
{
    const foreign_request *q = m->q;
    const ptx_file_entry *e = q->entry;
    const uint32_t *most = e->maxntid, *asked = q->block;
    const uint64_t threads = (uint64_t)asked[0] * asked[1] * asked[2];
    const char *limit = NULL;
    if (e->reqntid[0] && asked[0] && memcmp(asked, e->reqntid, sizeof e->reqntid) != 0)
        limit = arena_format(m->arena, "%u x %u x %u, its .reqntid", (unsigned)e->reqntid[0],
                             (unsigned)e->reqntid[1], (unsigned)e->reqntid[2]);
    else if (most[0] && threads > most[0] * most[1] * most[2])
        limit = arena_format(m->arena, "at most %u, its .maxntid", (unsigned)(most[0] * most[1] * most[2]));
    else if (threads > MOST_THREADS || asked[2] > DEEPEST_BLOCK)
        limit = arena_format(m->arena, "at most %u, %u of them along z", (unsigned)MOST_THREADS,
                             (unsigned)DEEPEST_BLOCK);
    if (limit)
        diagnose(m->d, q->block_at, message_entry_block, e->name, limit);
    if (e->reqntid[0])
        set_block(m, e->reqntid);
    else if (asked[0])
        set_block(m, asked);
    else
        leave_block(m, most);
}

/* A number of bytes is its own maximum; else the configuration's, else what every launch may use. */
static uint32_t most_shared_bytes(maker *m)
{
    const foreign_request *q = m->q;
    uint64_t bytes = 0;
    const bool is_number =
        q->shared_bytes.text && !expression_try(m->arena, m->family, q->shared_bytes.text, false) &&
        expression_is_constant(
            expression_bind(m->arena, expression_parse(m->arena, m->family, q->shared_bytes.text), NULL),
            &bytes);
    const uint32_t said = q->max_shared_bytes ? q->max_shared_bytes : MOST_SHARED_BYTES;
    if (is_number && bytes > said)
        diagnose(m->d, q->shared_bytes.at, message_entry_too_large, (unsigned)said, "shared_bytes",
                 found_text(m->arena, q->shared_bytes.text));
    if (q->max_shared_bytes > MOST_SHARED_BYTES)
        diagnose(m->d, q->max_shared_at, message_entry_too_large, (unsigned)MOST_SHARED_BYTES,
                 "max_shared_bytes", arena_format(m->arena, "%u", (unsigned)q->max_shared_bytes));
    if (q->max_shared_bytes)
        return q->max_shared_bytes;
    return is_number ? (uint32_t)bytes : SHARED_BYTES_WITHOUT_OPTIN;
}

static void take_shared(maker *m)
{
    const foreign_request *q = m->q;
    if (!q->entry->has_dynamic_shared) {
        if (q->shared_bytes.text || q->max_shared_bytes)
            diagnose(m->d, q->shared_bytes.text ? q->shared_bytes.at : q->at, message_entry_shared,
                     q->entry->name);
        return;
    }
    const uint32_t most = most_shared_bytes(m);
    if (!q->shared_bytes.text) {
        add_arg(m, "shared_bytes", "u32",
                arena_format(m->arena, "of dynamic shared memory, at most %u", (unsigned)most));
        cannot_launch(m, "the configuration gives no shared_bytes");
    }
    m->family->shared_bytes = text_of(q->shared_bytes, "shared_bytes");
    m->family->max_shared_bytes = arena_format(m->arena, "%u", (unsigned)most);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void check_names(maker *m)
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

static void check_expression(maker *m, const char *source, place at, bool is_list)
{
    const char *why = source ? expression_try(m->arena, m->family, source, is_list) : NULL;
    if (why)
        diagnose(m->d, at, message_entry_expression, found_text(m->arena, source), why,
                 is_torn(source) ? "; in a list, what has a comma wants quotes" : "");
}

/* What the user wrote. All of it is tried, in the scope of the arguments. */
static void check_expressions(maker *m)
{
    const foreign_request *q = m->q;
    for (size_t i = 0; i < q->arg_count; i++)
        if (m->args[i].kind != KILN_ARG_VALUE)
            check_expression(m, m->args[i].shape, q->args[i].about.at, true);
    for (size_t i = 0; i < q->rule_count; i++)
        check_expression(m, q->rules[i].text, q->rules[i].at, false);
    for (int i = 0; i < 3; i++)
        check_expression(m, q->grid[i].text, q->grid[i].at, false);
    check_expression(m, q->shared_bytes.text, q->shared_bytes.at, false);
}

static void check_grid(maker *m)
{
    uint64_t blocks;
    for (int i = 0; i < 3 && m->q->grid[i].text; i++)
        if (expression_is_constant(
                expression_bind(m->arena, expression_parse(m->arena, m->family, m->q->grid[i].text), NULL),
                &blocks) &&
            blocks == 0)
            diagnose(m->d, m->q->grid[i].at, message_entry_empty, "grid");
}

static void take_rules(maker *m)
{
    for (size_t i = 0; i < m->q->rule_count; i++)
        add_rule(m, m->q->rules[i].text, arena_format(m->arena, "%s must hold", m->q->rules[i].text));
}

/* A grid without thread blocks is nothing to do. */
static void take_empty(maker *m)
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

static void add_variant(maker *m, plan *p, size_t *capacity)
{
    kiln_variant *v = arena_alloc(m->arena, sizeof *v);
    *v = (kiln_variant){.family = m->family, .at = m->q->at, .foreign = m->kernel};
    v->runs_on = (UINT32_C(1) << p->target_count) - 1;
    variant_name(m->arena, v);
    *(kiln_variant **)arena_push(m->arena, (void **)&p->variants, &p->variant_count, capacity, sizeof v) = v;
}

void foreign_add(arena *a, const foreign_request *q, plan *p, size_t *capacity, diagnostics *d)
{
    const int before = d->count;
    maker m = {.arena = a, .q = q, .d = d, .why_not_launched = text_new(a)};
    m.family = arena_alloc(a, sizeof *m.family);
    m.kernel = arena_alloc(a, sizeof *m.kernel);
    m.args = arena_alloc(a, (q->entry->param_count + GEOMETRY_ARGS + 1) * sizeof *m.args);
    m.rules = arena_alloc(a, (q->rule_count + GEOMETRY_RULES + 1) * sizeof *m.rules);
    *m.kernel = (foreign_kernel){.module = q->module, .symbol = q->entry->name};
    if (!take_name(&m) || !is_new(&m, p))
        return;
    m.family->name = m.name;
    m.family->args = m.args;
    m.family->rules = m.rules;
    m.family->summary = arena_format(a, "the kernel %s of %s", q->entry->name, q->module->files[0]->asked);
    take_args(&m);
    take_grid(&m);
    take_block(&m);
    take_shared(&m);
    take_rules(&m);
    if (d->count == before)
        check_names(&m);
    if (d->count == before)
        check_expressions(&m);
    if (d->count == before)
        check_grid(&m);
    if (d->count != before)
        return;
    take_empty(&m);
    m.kernel->why_not_launched = m.why_not_launched.length ? m.why_not_launched.data : NULL;
    add_variant(&m, p, capacity);
}
