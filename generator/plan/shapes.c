/* One grammar for the sizes of calls:
 *     m: 16                      a number
 *     m: [1, 16]                 each of these
 *     m: {from: 1, to: 512}      both ends, powers of two between them, and the edges of tiles
 *     q_row_stride: q_heads * head_dim   an expression over other sizes of the shape and contract parameters
 * Lists multiply. A measured shape has only numbers. */
#include "shapes.h"

#include <stdlib.h>
#include <string.h>

#include "config_reader.h"
#include "expression/expression.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"

enum { MOST_SHAPES = 2000, DIGITS = 18 };
#define LARGEST_SIZE UINT64_C(999999999999999999)

size_t family_arg_count(const kiln_family *family)
{
    size_t count = 0;
    while (family->args[count].name)
        count++;
    return count;
}

bool arg_is_size(const kiln_arg *arg)
{
    return arg->kind == KILN_ARG_VALUE && strchr("usib", arg->type[0]) && strcmp(arg->type, "bf16") != 0;
}

const char *family_size_names(arena *a, const kiln_family *family)
{
    text names = text_new(a);
    for (const kiln_arg *arg = family->args; arg->name; arg++)
        if (arg_is_size(arg))
            text_printf(&names, "%s%s", names.length ? " " : "", arg->name);
    return names.data;
}

const char *call_shape_text(arena *a, const kiln_family *family, const call_shape *s)
{
    text out = text_new(a);
    for (size_t i = 0; family->args[i].name; i++) {
        if (s->sizes[i] == SHAPE_ANY_SIZE && !s->expressions[i])
            continue;
        text_printf(&out, "%s%s=", out.length ? " " : "", family->args[i].name);
        if (s->expressions[i])
            text_add(&out, s->expressions[i]);
        else
            text_add_decimal(&out, s->sizes[i]);
    }
    return out.data;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

static bool is_number(const yaml_node *node)
{
    const size_t digits = node->kind == YAML_SCALAR ? strspn(node->text, "0123456789") : 0;
    return digits > 0 && !node->text[digits] && !node->quoted;
}

bool reader_number(const reader *r, const yaml_node *node, const char *key, uint64_t least, uint64_t most,
                   uint64_t *value)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, key, "a number"))
        return false;
    *value = strtoull(node->text, NULL, 10);
    if (is_number(node) && strlen(node->text) <= DIGITS && *value >= least && *value <= most)
        return true;
    diagnose(r->d, node->at, message_shape_number, (unsigned long long)least, (unsigned long long)most,
             quote_text(r->arena, key), reader_quote(r, node));
    return false;
}

/* The largest size of the argument that fits the parser's digits. */
static uint64_t largest_of(const kiln_arg *arg)
{
    const uint64_t largest = arg_largest(arg);
    return largest < LARGEST_SIZE ? largest : LARGEST_SIZE;
}

/* ---- the values of a size ----------------------------------------------------------------------------------------- */

typedef struct size_values {
    uint64_t *numbers; /* ascending from a range, else as listed */
    size_t count, capacity;
    bool is_range;          /* between the first and the last number */
    const char *expression; /* null: numbers */
    place at;
} size_values;

static void add_number(const reader *r, size_values *out, uint64_t number)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->numbers[i] == number)
            return;
    *(uint64_t *)arena_push(r->arena, (void **)&out->numbers, &out->count, &out->capacity, sizeof number) =
        number;
}

static int compare_numbers(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Adds t and t + 1 for each number t that a tuning parameter can have: t rows fill a tile, and t + 1 begin the next. */
static void add_tile_edges(const reader *r, const kiln_family *family, size_values *out, uint64_t from,
                           uint64_t to)
{
    for (const kiln_param *param = family->params; param && param->name; param++) {
        const char *words = param->words;
        size_t length;
        if (param->role != KILN_ROLE_TUNING || !words)
            continue;
        for (const char *w; (w = words_next(&words, &length));) {
            const uint64_t edge = strtoull(w, NULL, 10);
            if (edge >= from && edge <= to)
                add_number(r, out, edge);
            if (edge > 0 && edge + 1 >= from && edge + 1 <= to)
                add_number(r, out, edge + 1);
        }
    }
}

/* {from: 1, to: 512} */
static bool read_range(const reader *r, const kiln_family *family, const kiln_arg *arg, const yaml_node *map,
                       size_values *out)
{
    uint64_t from = 0, to = 0;
    const yaml_node *first = yaml_member(map, "from"), *last = yaml_member(map, "to");
    if (!reader_check_keys(r, map, "from to", "a range of sizes"))
        return false;
    if (!first || !last)
        diagnose(r->d, map->at, message_missing_key, first ? "to" : "from", "NUMBER");
    if (!first || !last || !reader_number(r, first, "from", 0, largest_of(arg), &from) ||
        !reader_number(r, last, "to", 0, largest_of(arg), &to))
        return false;
    if (from > to) {
        diagnose(r->d, map->at, message_shape_range, arg->name, (unsigned long long)from,
                 (unsigned long long)to);
        return false;
    }
    add_number(r, out, from);
    for (uint64_t power = 1; power <= to; power *= 2)
        if (power >= from)
            add_number(r, out, power);
    add_tile_edges(r, family, out, from, to);
    add_number(r, out, to);
    out->is_range = true;
    qsort(out->numbers, out->count, sizeof *out->numbers, compare_numbers);
    return true;
}

static bool read_expression(const reader *r, const variant *like, const kiln_arg *arg, const yaml_node *node,
                            size_values *out)
{
    const char *why = expression_try(r->arena, like, node->text, false);
    out->expression = node->text;
    out->at = node->at;
    for (size_t i = 0; !why && i < family_param_count(like->family); i++)
        if (like->family->params[i].role == KILN_ROLE_TUNING &&
            expression_uses_param(expression_parse(r->arena, like->family, node->text), i))
            why = arena_format(r->arena, "kiln chooses %s", like->family->params[i].name);
    if (why)
        diagnose(r->d, node->at, message_shape_expression, arg->name, reader_quote(r, node), why);
    return !why;
}

/* Orders the arguments that are expressions, each after the sizes that it uses. False after a diagnostic: an expression uses a
 * size that the shape does not name, or itself. */
static bool order_expressions(const reader *r, const kiln_family *family, const size_values *values,
                              const size_t **order, size_t *count)
{
    const size_t args = family_arg_count(family);
    size_t *ordered = arena_alloc(r->arena, (args + 1) * sizeof *ordered), done = 0, wanted = 0;
    bool *is_known = arena_alloc(r->arena, args + 1);
    for (size_t i = 0; i < args; i++) {
        is_known[i] = values[i].count > 0;
        wanted += values[i].expression != NULL;
    }
    for (size_t before = SIZE_MAX; done < wanted && done != before;) {
        before = done;
        for (size_t i = 0; i < args; i++) {
            if (!values[i].expression || is_known[i])
                continue;
            bool *is_used = arena_alloc(r->arena, args + 1), is_ready = true;
            expression_mark_args(expression_parse(r->arena, family, values[i].expression), is_used);
            for (size_t k = 0; k < args && is_ready; k++)
                is_ready = !is_used[k] || is_known[k];
            if (!is_ready)
                continue;
            is_known[i] = true;
            ordered[done++] = i;
        }
    }
    for (size_t i = 0; i < args && done < wanted; i++)
        if (values[i].expression && !is_known[i]) {
            diagnose(r->d, values[i].at, message_shape_order, family->args[i].name,
                     quote_text(r->arena, values[i].expression));
            return false;
        }
    *order = ordered;
    *count = done;
    return true;
}

static bool read_list(const reader *r, const kiln_arg *arg, const yaml_node *list, size_values *out)
{
    bool ok = reader_is_kind(r, list, YAML_LIST, arg->name, "a list of numbers");
    for (const yaml_node *node = ok ? list->first : NULL; node && out->count <= MOST_SHAPES;
         node = node->next) {
        uint64_t number = 0;
        const yaml_node *earlier = reader_earlier(list, node);
        const bool is_read = reader_number(r, node, arg->name, 0, largest_of(arg), &number);
        if (is_read && earlier)
            diagnose(r->d, node->at, message_value_twice, arg->name, node->text, earlier->at.line);
        ok = ok && is_read && !earlier;
        if (is_read)
            add_number(r, out, number);
    }
    return ok;
}

/* "n", "2 * n"; but not "-1", "1.5" or "0x10", which are malformed numbers. */
static bool is_expression(const yaml_node *node)
{
    const char first = node->text[0];
    const bool is_name = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '(';
    return !node->quoted && !yaml_is_null(node) && first != '-' && (is_name || strpbrk(node->text, "*+-/%"));
}

/* `like` null: only numbers are legal. */
static bool read_values(const reader *r, const kiln_family *family, const variant *like, const kiln_arg *arg,
                        const yaml_node *node, size_values *out)
{
    uint64_t number = 0;
    const bool is_list = node->kind == YAML_LIST && !node->refused,
               is_map = node->kind == YAML_MAP && !node->refused;
    if (like && is_list)
        return read_list(r, arg, node, out);
    if (like && is_map)
        return read_range(r, family, arg, node, out);
    if (like && node->kind == YAML_SCALAR && !node->refused && is_expression(node))
        return read_expression(r, like, arg, node, out);
    if (!reader_number(r, node, arg->name, 0, largest_of(arg), &number))
        return false;
    add_number(r, out, number);
    return true;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

static call_shape new_shape(arena *a, const kiln_family *family, place at)
{
    const size_t count = family_arg_count(family) + 1;
    call_shape s = {.at = at,
                    .sizes = arena_alloc(a, count * sizeof *s.sizes),
                    .expressions = arena_alloc(a, count * sizeof *s.expressions)};
    for (size_t i = 0; i < count; i++)
        s.sizes[i] = SHAPE_ANY_SIZE;
    return s;
}

/* Adds a shape for every combination; the last argument changes fastest. */
static void add_combinations(const reader *r, const kiln_family *family, place at, const size_values *values,
                             size_t combinations, const size_t *order, size_t order_count, shape_list *out)
{
    for (size_t number = 0; number < combinations; number++) {
        call_shape s = new_shape(r->arena, family, at);
        s.order = order;
        s.order_count = order_count;
        size_t left = number;
        for (size_t i = family_arg_count(family); i-- > 0;) {
            s.expressions[i] = values[i].expression;
            if (values[i].count == 0)
                continue;
            const size_t place_of = left % values[i].count;
            s.sizes[i] = values[i].numbers[place_of];
            s.is_inner = s.is_inner || (values[i].is_range && place_of > 0 && place_of + 1 < values[i].count);
            left /= values[i].count;
        }
        *(call_shape *)arena_push(r->arena, (void **)&out->items, &out->count, &out->capacity, sizeof s) = s;
    }
}

bool reader_read_shape(const reader *r, const kiln_family *family, const variant *like, const yaml_node *map,
                       shape_list *out)
{
    bool ok = reader_is_kind(r, map, YAML_MAP, "shape", "a mapping from sizes to numbers");
    size_t combinations = 1;
    size_values *values = arena_alloc(r->arena, (family_arg_count(family) + 1) * sizeof *values);
    for (const yaml_node *node = ok ? map->first : NULL; node; node = node->next) {
        const kiln_arg *arg = arg_find(family->args, node->key);
        if (!arg || !arg_is_size(arg)) {
            ok = false;
            diagnose(r->d, node->key_at, message_shape_size_unknown, family->name,
                     quote_text(r->arena, node->key),
                     suggest_text(r->arena, node->key, family_size_names(r->arena, family)));
            continue;
        }
        size_values *these = &values[arg - family->args];
        ok = read_values(r, family, like, arg, node, these) && ok;
        combinations *= these->count ? these->count : 1;
        if (combinations > MOST_SHAPES || out->count + combinations > MOST_SHAPES) {
            diagnose(r->d, map->at, message_shapes_too_many, MOST_SHAPES);
            return false;
        }
    }
    const size_t *order = NULL;
    size_t order_count = 0;
    ok = ok && order_expressions(r, family, values, &order, &order_count);
    if (ok)
        add_combinations(r, family, map->at, values, combinations, order, order_count, out);
    return ok;
}
