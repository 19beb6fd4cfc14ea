/* Checks descriptors at startup, so that mistakes show before any configuration is read. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dense.h"
#include "expression/expression.h"
#include "family.h"
#include "support/words.h"
#include "word_number.h"

/* Types of pointer elements, of scalars, and of scalars whose type a parameter names, which are doubles in C. */
static const char pointer_types[] =
    "u8 i8 u16 i16 u32 i32 u64 i64 s8 s16 s32 s64 b8 b16 b32 b64 f16 bf16 f32 f64";
static const char scalar_types[] = "u16 i16 u32 i32 u64 i64 s16 s32 s64 f32 f64";
static const char chosen_scalar_types[] = "f32 f64";

/* Words that YAML, or a YAML 1.1 reader, gives another type. */
static const char ambiguous_words[] = "yes no on off y n true false null";

/* Names with another meaning in expressions and configurations. */
static const char reserved_names[] = "multiprocessors max_shared_bytes sm ceil_div min max "
                                     "select aligned given negative finite family ptx combinations";

enum { LONGEST_NAME = 40 };

#define CHECK(family, condition, ...)                                                                        \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail(family, __VA_ARGS__);                                                                       \
    } while (0)

__attribute__((format(printf, 2, 3), noreturn)) static void fail(const kiln_family *family,
                                                                 const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    family_error("family %s: %s", family->name, what);
}

/* ---- names and values ------------------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    if (name[0] < 'a' || name[0] > 'z' || strlen(name) > LONGEST_NAME)
        return false;
    for (const char *c = name; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && *c != '_')
            return false;
    return true;
}

bool family_reserves(const char *name)
{
    return words_contain(reserved_names, name) || c_headers_take(name);
}

/* Whether a name is free for a parameter or argument, in expressions and in generated C. */
static bool is_free_name(const char *name)
{
    return is_name(name) && !family_reserves(name) && !words_contain(c_keywords, name);
}

static void check_name(const kiln_family *family, const char *name, const char *what)
{
    CHECK(family, is_name(name),
          "'%s' is not a legal %s name: lower-case letters, digits and _, at most %d, and a letter first",
          name, what, LONGEST_NAME);
    CHECK(family, is_free_name(name),
          "'%s' is not a legal %s name: C, C++, their headers, kiln or its expressions use it", name, what);
}

static bool is_word(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = word[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return length <= LONGEST_NAME;
}

static void check_words(arena *a, const kiln_family *family, const kiln_param *param)
{
    CHECK(family, param->words && *param->words, "parameter '%s' has no words", param->name);
    CHECK(family, words_are_single_spaced(param->words), "parameter '%s': single spaces stand between words",
          param->name);
    text seen = text_new(a);
    const char *cursor = param->words;
    size_t length;
    for (const char *w; (w = words_next(&cursor, &length));) {
        const char *word = arena_string(a, w, length);
        CHECK(family, is_word(word, length), "parameter '%s': '%s' is not a legal word", param->name, word);
        CHECK(family, !words_contain(ambiguous_words, word),
              "parameter '%s': YAML takes '%s' for another thing", param->name, word);
        CHECK(family, !words_contain(seen.data, word), "parameter '%s' lists '%s' twice", param->name, word);
        CHECK(family, param->type == KILN_PARAM_WORD || word_is_number(word),
              "parameter '%s': '%s' is not an integer", param->name, word);
        text_printf(&seen, "%s ", word);
    }
}

static void check_numbers(arena *a, const kiln_family *family, const kiln_param *param)
{
    const size_t wanted = words_of_own_number(a, param);
    const char *cursor = param->numbers ? param->numbers : "", *words = param->words;
    size_t length, count = 0;
    for (const char *n; (n = words_next(&cursor, &length)); count++)
        CHECK(family, word_is_number(arena_string(a, n, length)) && n[0] != '0',
              "parameter '%s': '%.*s' is no number of a word", param->name, (int)length, n);
    CHECK(family, count == wanted, "parameter '%s': %u words take a number of their own, `numbers` has %u",
          param->name, (unsigned)wanted, (unsigned)count);
    for (const char *w; (w = words_next(&words, &length));) {
        const char *word = arena_string(a, w, length), *others = words;
        for (const char *o; (o = words_next(&others, &length));) {
            const char *other = arena_string(a, o, length);
            CHECK(family, word_number(a, param, word) != word_number(a, param, other),
                  "parameter '%s': '%s' and '%s' have the same number", param->name, word, other);
        }
    }
}

static void check_param(arena *a, const kiln_family *family, const kiln_param *param)
{
    size_t first = 0;
    check_name(family, param->name, "parameter");
    CHECK(family, (unsigned)param->type <= KILN_PARAM_BOOL && (unsigned)param->role <= KILN_ROLE_TUNING,
          "parameter '%s': the type or the role is not one of family.h's", param->name);
    family_find_param(family, param->name, &first);
    CHECK(family, param == &family->params[first], "parameter '%s' is declared twice", param->name);
    if (param->type == KILN_PARAM_WORD || (param->type == KILN_PARAM_INT && param->words))
        check_words(a, family, param);
    else if (param->type == KILN_PARAM_INT)
        CHECK(family, param->step > 0 && param->min <= param->max, "parameter '%s' has no values",
              param->name);
    CHECK(family, param->summary, "parameter '%s' has no summary", param->name);
    CHECK(family, param->default_value && param_has_value(param, param->default_value),
          "parameter '%s': the default '%s' is no legal value", param->name,
          param->default_value ? param->default_value : "");
    if (param->type == KILN_PARAM_WORD && param->role == KILN_ROLE_CONTRACT)
        check_numbers(a, family, param);
}

static void check_shape_numbers(arena *a, const kiln_family *family)
{
    size_t count = 0, length, index;
    const char *cursor = family->numbers ? family->numbers : "";
    CHECK(family, words_are_single_spaced(cursor), "the numbers \"%s\" are not separated by single spaces",
          cursor);
    for (const char *w; (w = words_next(&cursor, &length)); count++) {
        const char *name = arena_string(a, w, length);
        check_name(family, name, "number");
        CHECK(family, family_find_number(family, name, &index) && index == count,
              "number '%s' is declared twice", name);
        CHECK(family, !family_find_param(family, name, &index), "'%s' is a parameter and a number", name);
    }
    CHECK(family, count <= KILN_MAX_NUMBERS, "%zu numbers; the limit is %d", count, KILN_MAX_NUMBERS);
}

/* ---- expressions ------------------------------------------------------------------------------------------------ */

enum {
    PARAMS = 1 << NAME_PARAM | 1 << NAME_WORD,
    ARGS = 1 << NAME_ARG,
    DEVICE = 1 << NAME_DEVICE,
    SHAPE = 1 << NAME_SHAPE
};

static void check_uses(const kiln_family *family, const expression *e, const char *source, int allowed)
{
    static const char *const names[] = {"parameters", "arguments", "device facts", "words",
                                        "facts of the shape"};
    for (int kind = NAME_PARAM; kind <= NAME_SHAPE; kind++)
        CHECK(family, (allowed & 1 << kind) || !expression_uses(e, (name_kind)kind),
              "expression \"%s\" cannot use %s in its place", source, names[kind]);
}

static void check_expression(arena *a, const kiln_family *family, const char *source, int allowed)
{
    if (source)
        check_uses(family, expression_parse(a, family, source), source, allowed);
}

static void check_rules(arena *a, const kiln_family *family, const kiln_rule *rules, int allowed)
{
    for (const kiln_rule *r = rules; r && r->condition; r++) {
        check_expression(a, family, r->condition, allowed);
        CHECK(family, r->text, "the rule \"%s\" has no text", r->condition);
    }
}

static void check_expressions(arena *a, const kiln_family *f)
{
    check_rules(a, f, f->rules, ARGS | PARAMS);
    for (int i = 0; i < 3; i++) {
        check_expression(a, f, f->grid[i], ARGS | PARAMS | DEVICE | SHAPE);
    }
    const struct {
        const char *source;
        int allowed;
    } rows[] = {
        {f->empty, ARGS},
        {f->shared_bytes, ARGS | PARAMS | SHAPE},
        {f->cost.bytes_read, ARGS | PARAMS},
        {f->cost.bytes_written, ARGS | PARAMS},
        {f->cost.elements, ARGS | PARAMS},
        {f->time.length, ARGS | PARAMS | DEVICE | SHAPE},
        {f->time.repeats, ARGS | PARAMS | DEVICE | SHAPE},
        {f->time.side_trips, ARGS | PARAMS | DEVICE | SHAPE},
        {f->time.wait, ARGS | PARAMS | DEVICE | SHAPE},
        {f->time.block_bytes, ARGS | PARAMS | DEVICE | SHAPE},
        {f->time.extra, ARGS | PARAMS | DEVICE | SHAPE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_expression(a, f, rows[i].source, rows[i].allowed);
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

static void check_type_word(const kiln_family *family, const kiln_arg *arg, const char *type)
{
    const bool is_scalar = arg->kind == KILN_ARG_VALUE, is_chosen = arg->type[0] == '$';
    CHECK(family, words_contain(pointer_types, type), "argument '%s': '%s' is no type", arg->name, type);
    CHECK(family, !is_scalar || words_contain(is_chosen ? chosen_scalar_types : scalar_types, type),
          "argument '%s': no %s can be %s, only %s", arg->name,
          is_chosen ? "scalar whose type a parameter names" : "scalar", type,
          is_chosen ? "f32 and f64, as of \"$name:f64:f32\"" : scalar_types);
}

/* "$name" and "$name:word:other" must name a word parameter whose words are all types. */
static void check_type(arena *a, const kiln_family *family, const kiln_arg *arg)
{
    CHECK(family, arg->type && *arg->type, "argument '%s' has no type", arg->name);
    if (arg->type[0] != '$') {
        check_type_word(family, arg, arg->type);
        return;
    }
    const char *colon = strchr(arg->type, ':');
    CHECK(family, !colon || strchr(colon + 1, ':'), "argument '%s': the type '%s' is not $name:word:other",
          arg->name, arg->type);
    size_t index;
    const arg_type_choice choice = family_arg_type_choice(arg);
    const char *name = arena_string(a, arg->type + 1, choice.name_length);
    CHECK(family, family_find_param(family, name, &index), "argument '%s': no parameter '%s'", arg->name,
          name);
    const kiln_param *param = &family->params[index];
    CHECK(family, param->type == KILN_PARAM_WORD, "argument '%s': '%s' has no words", arg->name, param->name);
    CHECK(family, !choice.word || param_has_value(param, arena_string(a, choice.word, choice.word_length)),
          "argument '%s': in '%s' parameter '%s' never has that value", arg->name, arg->type, name);
    const char *cursor = param->words;
    size_t length;
    for (const char *w; (w = words_next(&cursor, &length));) {
        check_type_word(family, arg, arg_type_for(choice, arena_string(a, w, length)));
    }
}

static void check_arg(arena *a, const kiln_family *family, const kiln_arg *arg)
{
    size_t index;
    check_name(family, arg->name, "argument");
    CHECK(family, !family_find_param(family, arg->name, &index), "'%s' is a parameter and an argument",
          arg->name);
    CHECK(family, !family_find_number(family, arg->name, &index), "'%s' is a number and an argument",
          arg->name);
    for (const kiln_arg *other = family->args; other < arg; other++)
        CHECK(family, strcmp(other->name, arg->name) != 0, "argument '%s' is declared twice", arg->name);
    CHECK(family, !family->groups || !words_contain(family->groups, arg->name),
          "'%s' is a group and an argument", arg->name);
    const size_t group = arg_group_length(family, arg);
    bool is_behind = false; /* the first of its group */
    for (const kiln_arg *other = arg; group > 0 && other > family->args; other--) {
        const bool is_same = strncmp(other[-1].name, arg->name, group + 1) == 0;
        CHECK(family, !is_same || !is_behind, "argument '%s' is apart from its group", arg->name);
        is_behind = is_behind || !is_same;
    }
    if (group > 0)
        check_name(family, arg->name + group + 1, "member of a group");
    CHECK(family, (unsigned)arg->kind <= KILN_ARG_CONSTANT,
          "argument '%s': the kind is not one of family.h's", arg->name);
    check_type(a, family, arg);
    CHECK(family, arg->summary, "argument '%s' has no summary", arg->name);
    check_expression(a, family, arg->when, PARAMS);
    CHECK(family, (arg->kind == KILN_ARG_VALUE) == !arg->shape,
          "argument '%s': pointers have shapes, values none", arg->name);
    CHECK(family, arg->shape || !arg->alignment, "argument '%s': a value has no alignment", arg->name);
    if (!arg->shape)
        return;
    CHECK(family, !arg->alignment || is_alignment(arg->alignment),
          "argument '%s': the alignment %u is no power of two up to %d", arg->name, arg->alignment,
          MOST_ALIGNMENT);
    const expression *const *dimensions;
    size_t count = expression_parse_list(a, family, arg->shape, &dimensions);
    for (size_t i = 0; i < count; i++)
        check_uses(family, dimensions[i], arg->shape, ARGS | PARAMS);
}

static void check_alignments(arena *a, const kiln_family *family)
{
    for (const kiln_alignment *row = family->alignments; row && row->arg; row++) {
        const kiln_arg *arg = arg_find(family->args, row->arg);
        CHECK(family, arg && arg->kind != KILN_ARG_VALUE,
              "an alignment is given to '%s', which is no pointer", row->arg);
        CHECK(family, !arg->alignment,
              "argument '%s' has an alignment of its own, %u, beside that of its variants", row->arg,
              arg->alignment);
        CHECK(family, row->bytes, "the alignment of '%s' is null", row->arg);
        CHECK(family, arg_variant_alignment(family, arg) == row->bytes,
              "argument '%s' is given two alignments", row->arg);
        check_expression(a, family, row->bytes, PARAMS);
    }
}

/* ---- workspace -------------------------------------------------------------------------------------------------- */

static void check_grows(arena *a, const kiln_family *family, const char *source)
{
    CHECK(family, expression_only_grows(expression_parse(a, family, source)),
          "workspace: \"%s\" may fall where an argument grows", source);
}

static void check_workspace(arena *a, const kiln_family *family)
{
    const kiln_workspace *w = family->workspace;
    if (!w)
        return;
    CHECK(family, w->arg && w->counters && w->size && w->elements,
          "workspace: arg, counters, size or elements is missing");
    const char *const pointers[] = {w->arg, w->counters};
    for (int i = 0; i < 2; i++) {
        const kiln_arg *arg = arg_find(family->args, pointers[i]);
        CHECK(family, arg && arg->shape && arg->when,
              "workspace: '%s' is no pointer that only some variants have", pointers[i]);
    }
    const kiln_arg *size = arg_find(family->args, w->size);
    CHECK(family, size && size->kind == KILN_ARG_VALUE && strcmp(size->type, "u64") == 0,
          "workspace: '%s' is no u64 argument", w->size);
    check_grows(a, family, arg_find(family->args, w->counters)->shape);
    check_expression(a, family, w->elements, ARGS | PARAMS);
    check_grows(a, family, w->elements);
    if (w->counter_elements) {
        check_expression(a, family, w->counter_elements, ARGS | PARAMS);
        check_grows(a, family, w->counter_elements);
    }
}

/* ---- tensor maps ------------------------------------------------------------------------------------------------ */

static void check_list(arena *a, const kiln_family *family, const char *source, int allowed)
{
    const expression *const *list;
    const size_t count = source ? expression_parse_list(a, family, source, &list) : 0;
    for (size_t i = 0; i < count; i++)
        check_uses(family, list[i], source, allowed);
}

static void check_maps(arena *a, const kiln_family *family)
{
    for (const kiln_map *m = family->maps; m && m->name; m++) {
        size_t index;
        const kiln_arg *arg = m->arg ? arg_find(family->args, m->arg) : NULL;
        check_name(family, m->name, "tensor map");
        CHECK(family, !arg_find(family->args, m->name) && !family_find_param(family, m->name, &index),
              "'%s' is a tensor map, and an argument or a parameter", m->name);
        for (const kiln_map *other = family->maps; other < m; other++)
            CHECK(family, strcmp(other->name, m->name) != 0, "map '%s' is declared twice", m->name);
        CHECK(family, arg && arg->shape, "map '%s' is of '%s', which is no pointer", m->name,
              m->arg ? m->arg : "");
        CHECK(family, m->box, "map '%s' has no box", m->name);
        check_list(a, family, m->box, PARAMS);
        check_list(a, family, m->strides, ARGS | PARAMS);
        check_expression(a, family, m->swizzle_bytes, PARAMS);
        check_expression(a, family, m->when, PARAMS);
        const expression *const *sizes, *const *strides;
        const size_t count = expression_parse_list(a, family, arg->shape, &sizes);
        CHECK(family, !m->strides || expression_parse_list(a, family, m->strides, &strides) + 1 == count,
              "map '%s': \"%s\" are not the strides of \"%s\", without the last", m->name, m->strides,
              arg->shape);
    }
}

/* ---- dense arrays and the example ------------------------------------------------------------------------------- */

static bool is_unsigned_value(const kiln_arg *arg)
{
    return arg && arg->kind == KILN_ARG_VALUE && arg->type[0] == 'u';
}

static void check_dense_row(arena *a, const kiln_family *family, const kiln_dense *row)
{
    const char *cursor = row->args;
    const expression *const *dims;
    const dense_stride *strides;
    size_t length;
    for (const char *w; (w = words_next(&cursor, &length));) {
        const kiln_arg *arg = arg_find(family->args, arena_string(a, w, length));
        CHECK(family, arg && arg->kind != KILN_ARG_VALUE, "dense: '%.*s' is no pointer", (int)length, w);
    }
    check_expression(a, family, row->when, PARAMS);
    CHECK(family, row->dims && row->strides, "dense: \"%s\" has no dims or no strides", row->args);
    const size_t count = expression_parse_list(a, family, row->dims, &dims);
    for (size_t i = 0; i < count; i++)
        check_uses(family, dims[i], row->dims, ARGS | PARAMS);
    const size_t stride_count = dense_strides(a, family, row, &strides);
    CHECK(family, stride_count == 0 || stride_count + 1 == count || stride_count == count,
          "dense: \"%s\" are not the strides of \"%s\"", row->strides, row->dims);
    for (size_t i = 0; i < stride_count; i++)
        CHECK(family, is_unsigned_value(arg_find(family->args, strides[i].arg)),
              "dense: '%s' is not an unsigned argument", strides[i].arg);
}

static void check_dense(arena *a, const kiln_family *family)
{
    for (const kiln_dense *row = family->dense; row && row->args; row++)
        check_dense_row(a, family, row);
}

static void check_example(const kiln_family *family)
{
    for (const kiln_value *v = family->example; v && v->arg; v++) {
        const kiln_arg *arg = arg_find(family->args, v->arg);
        for (const kiln_call *call = family->calls; !arg && call && call->name; call++)
            arg = arg_find(call->args, v->arg);
        CHECK(family, arg && arg->kind == KILN_ARG_VALUE,
              "the example gives a value to '%s', which takes none", v->arg);
        CHECK(family, v->value, "the example's value of '%s' is null", v->arg);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static void check_call_values(arena *a, const kiln_family *family, const kiln_call *call)
{
    const kiln_family *scope = family_call_scope(a, family, call);
    for (const kiln_value *v = call->values; v && v->arg; v++) {
        const kiln_arg *arg = arg_find(family->args, v->arg);
        CHECK(family, arg && arg->kind == KILN_ARG_VALUE && arg->type[0] == 'u',
              "call '%s' gives a value to '%s', which is not an unsigned argument", call->name, v->arg);
        CHECK(family, v->value, "call '%s': the value of '%s' is null", call->name, v->arg);
        CHECK(family, !arg_find(call->args, v->arg), "call '%s' takes '%s' and gives it a value", call->name,
              v->arg);
        check_expression(a, scope, v->value, ARGS);
    }
}

/* Checks a call's arguments: those of the family must be identical; all others must be scalars, used only in values. */
static void check_call(arena *a, const kiln_family *family, const kiln_call *call)
{
    size_t count = 0, index;
    CHECK(family, is_name(call->name) && !strstr(call->name, "__"), "'%s' is no legal name of a call",
          call->name);
    CHECK(family, call->summary && call->args, "call '%s' has no summary or no arguments", call->name);
    for (const kiln_arg *arg = call->args; arg->name; arg++, count++) {
        CHECK(family, arg->type, "call '%s': '%s' has no type", call->name, arg->name);
        const kiln_arg *same = arg_find(family->args, arg->name);
        CHECK(family,
              is_free_name(arg->name) && !family_find_param(family, arg->name, &index) && arg->summary,
              "call '%s': '%s' is no legal argument or has no summary", call->name, arg->name);
        CHECK(family, arg_find(call->args, arg->name) == arg, "call '%s' takes '%s' twice", call->name,
              arg->name);
        CHECK(family,
              same ? same->kind == arg->kind && strcmp(same->type, arg->type) == 0
                   : arg->kind == KILN_ARG_VALUE && arg->type[0] == 'u',
              "call '%s': '%s' is neither the family's argument nor an unsigned one of its own", call->name,
              arg->name);
    }
    CHECK(family, count <= KILN_MAX_ARGS, "call '%s' has more than %d arguments", call->name, KILN_MAX_ARGS);
    for (const kiln_arg *arg = family->args; arg->name; arg++)
        CHECK(family,
              arg->kind == KILN_ARG_VALUE || arg_may_be_null(arg) || arg->when ||
                  arg_find(call->args, arg->name),
              "call '%s' leaves '%s' null", call->name, arg->name);
    check_call_values(a, family, call);
}

static void check_calls(arena *a, const kiln_family *family)
{
    for (const kiln_call *call = family->calls; call && call->name; call++)
        check_call(a, family, call);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static void check_usual(arena *a, const kiln_family *family)
{
    for (const kiln_value *v = family->usual; v && v->arg; v++) {
        const kiln_arg *arg = arg_find(family->args, v->arg);
        CHECK(family, arg && arg->kind == KILN_ARG_VALUE && arg->type[0] == 'u',
              "usual: '%s' is not an unsigned argument", v->arg);
        CHECK(family, v->value, "usual: the value of '%s' is null", v->arg);
        check_expression(a, family, v->value, ARGS | PARAMS);
    }
    check_rules(a, family, family->advice, ARGS | PARAMS);
}

/* ---- families --------------------------------------------------------------------------------------------------- */

void family_validate(const kiln_family *family)
{
    arena *a = arena_new();
    if (!family->name)
        family_error("a family has no name");
    CHECK(family, is_name(family->name) && !strstr(family->name, "__"), "not a legal family name");
    CHECK(family, family->summary && family->source, "no summary or no source");
    CHECK(family, family->emit, "no emit function");
    CHECK(family, family->min_sm >= 75, "min_sm is %u; the lowest target is sm_75", family->min_sm);
    size_t params = family_param_count(family), args = 0;
    CHECK(family, params <= KILN_MAX_PARAMS, "more than %d parameters", KILN_MAX_PARAMS);
    for (size_t i = 0; i < params; i++)
        check_param(a, family, &family->params[i]);
    check_shape_numbers(a, family);
    CHECK(family, family->args, "no arguments");
    while (family->args[args].name)
        args++;
    CHECK(family, args <= KILN_MAX_ARGS, "more than %d arguments", KILN_MAX_ARGS);
    for (size_t i = 0; i < args; i++)
        check_arg(a, family, &family->args[i]);
    check_alignments(a, family);
    check_expressions(a, family);
    check_workspace(a, family);
    check_calls(a, family);
    check_maps(a, family);
    check_dense(a, family);
    check_example(family);
    check_usual(a, family);
    for (const kiln_bound *b = family->bounds; b && b->where; b++)
        CHECK(family, b->text, "the bound of \"%s\" has no text", b->where);
    const kiln_arg *parts = family->workspace_parts ? arg_find(family->args, family->workspace_parts) : NULL;
    CHECK(family, !family->workspace_parts || is_unsigned_value(parts),
          "workspace_parts: '%s' is not an unsigned argument", family->workspace_parts);
    arena_free(a);
}

void families_validate(family_list families)
{
    for (family_list f = families; *f; f++) {
        family_validate(*f);
        CHECK(*f, family_find(families, (*f)->name) == *f, "two families have this name");
    }
}
