/* What `kiln families --json` prints. */
#include <string.h>

#include "constraints.h"
#include "describe.h"
#include "expression/expression.h"
#include "family.h"
#include "support/json.h"

/* Adds an expression in its canonical form; null as null. */
static void add_expression(json *j, const kiln_family *family, const char *key, const char *source)
{
    json_key(j, key);
    if (!source) {
        json_null(j);
        return;
    }
    text canonical = text_new(j->out->arena);
    expression_print(&canonical, expression_parse(j->out->arena, family, source));
    json_string(j, canonical.data);
}

static void add_params(json *j, const kiln_family *family)
{
    static const char *const types[] = {
        [KILN_PARAM_WORD] = "word", [KILN_PARAM_INT] = "int", [KILN_PARAM_BOOL] = "bool"};
    json_key(j, "params");
    json_begin_array(j);
    size_t count = family_param_count(family);
    for (size_t i = 0; i < count; i++) {
        const kiln_param *param = &family->params[i];
        json_begin_object(j);
        json_string_member(j, "name", param->name);
        json_string_member(j, "type", types[param->type]);
        json_string_member(j, "role", param->role == KILN_ROLE_TUNING ? "tuning" : "contract");
        if (param->type == KILN_PARAM_INT && !param->words) {
            json_number_member(j, "min", param->min);
            json_number_member(j, "max", param->max);
            json_number_member(j, "step", param->step);
        } else {
            json_words_member(j, "values", param_values_text(j->out->arena, param));
        }
        json_string_member(j, "default", param->default_value);
        json_string_member(j, "summary", summary_text(j->out->arena, param->summary));
        json_end(j);
    }
    json_end(j);
}

static void add_shape(json *j, const kiln_family *family, const char *shape)
{
    json_key(j, "shape");
    if (!shape) {
        json_null(j);
        return;
    }
    const expression *const *list;
    size_t count = expression_parse_list(j->out->arena, family, shape, &list);
    json_begin_inline_array(j);
    for (size_t i = 0; i < count; i++) {
        text dimension = text_new(j->out->arena);
        expression_print(&dimension, list[i]);
        json_string(j, dimension.data);
    }
    json_end(j);
}

static void add_args(json *j, const kiln_family *family, const kiln_arg *args)
{
    json_key(j, "args");
    json_begin_array(j);
    for (const kiln_arg *arg = args; arg->name; arg++) {
        json_begin_object(j);
        json_string_member(j, "name", arg->name);
        json_string_member(j, "direction", arg_direction(arg->kind));
        if (arg->kind == KILN_ARG_CONSTANT)
            json_boolean_member(j, "constant", true);
        json_string_member(j, "type", arg->type);
        add_shape(j, family, arg->shape);
        if (arg->shape)
            json_number_member(j, "alignment", arg_alignment(arg));
        if (arg_variant_alignment(family, arg))
            add_expression(j, family, "variant_alignment", arg_variant_alignment(family, arg));
        add_expression(j, family, "when", arg->when);
        json_string_member(j, "summary", summary_text(j->out->arena, arg->summary));
        json_end(j);
    }
    json_end(j);
}

static void add_maps(json *j, const kiln_family *family)
{
    if (!family->maps)
        return;
    json_key(j, "maps");
    json_begin_array(j);
    for (const kiln_map *map = family->maps; map->name; map++) {
        json_begin_object(j);
        json_string_member(j, "name", map->name);
        json_string_member(j, "arg", map->arg);
        json_string_member(j, "strides", map->strides);
        json_string_member(j, "box", map->box);
        add_expression(j, family, "swizzle_bytes", map->swizzle_bytes);
        add_expression(j, family, "when", map->when);
        json_end(j);
    }
    json_end(j);
}

static void add_calls(json *j, const kiln_family *family)
{
    json_key(j, "calls");
    json_begin_array(j);
    for (const kiln_call *call = family->calls; call && call->name; call++) {
        const kiln_family *scope = family_call_scope(j->out->arena, family, call);
        json_begin_object(j);
        json_string_member(j, "name", call->name);
        json_string_member(j, "summary", call->summary);
        add_args(j, scope, call->args);
        json_key(j, "values");
        json_begin_object(j);
        for (const kiln_value *v = call->values; v && v->arg; v++)
            add_expression(j, scope, v->arg, v->value);
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

static void add_rules(json *j, const kiln_family *family, const char *key, const kiln_rule *rules)
{
    json_key(j, key);
    json_begin_array(j);
    for (const kiln_rule *r = rules; r && r->condition; r++) {
        json_begin_object(j);
        add_expression(j, family, "condition", r->condition);
        json_string_member(j, "text", r->text);
        json_end(j);
    }
    json_end(j);
}

static void add_dimensions(json *j, const kiln_family *family, const char *key,
                           const char *const dimension[3])
{
    json_key(j, key);
    json_begin_inline_array(j);
    for (int i = 0; i < 3; i++) {
        text canonical = text_new(j->out->arena);
        expression_print(&canonical,
                         expression_parse(j->out->arena, family, dimension[i] ? dimension[i] : "1"));
        json_string(j, canonical.data);
    }
    json_end(j);
}

static void add_launch(json *j, const kiln_family *family)
{
    json_key(j, "launch");
    json_begin_object(j);
    add_dimensions(j, family, "grid", family->grid);
    add_expression(j, family, "shared_bytes", family->shared_bytes);
    if (family->numbers)
        json_string_member(j, "numbers", family->numbers);
    add_expression(j, family, "empty", family->empty);
    json_end(j);
}

static void add_time(json *j, const kiln_family *family)
{
    json_key(j, "time");
    json_begin_object(j);
    add_expression(j, family, "length", family->time.length);
    add_expression(j, family, "repeats", family->time.repeats);
    add_expression(j, family, "side_trips", family->time.side_trips);
    add_expression(j, family, "wait", family->time.wait);
    add_expression(j, family, "block_bytes", family->time.block_bytes);
    add_expression(j, family, "extra", family->time.extra);
    json_end(j);
}

static void add_cost(json *j, const kiln_family *family)
{
    json_key(j, "cost");
    json_begin_object(j);
    add_expression(j, family, "bytes_read", family->cost.bytes_read);
    add_expression(j, family, "bytes_written", family->cost.bytes_written);
    add_expression(j, family, "elements", family->cost.elements);
    json_end(j);
}

static void add_constraints(json *j, const kiln_family *family)
{
    arena *a = j->out->arena;
    const constraints all = constraints_of(a, family);
    json_key(j, "constraints");
    json_begin_array(j);
    for (size_t i = 0; i < all.count; i++) {
        json_begin_object(j);
        json_string_member(j, "params", all.items[i].params);
        json_string_member(j, "text", all.items[i].text);
        json_end(j);
    }
    json_end(j);
}

static void add_bounds(json *j, const kiln_family *family)
{
    if (!family->bounds)
        return;
    json_key(j, "bounds");
    json_begin_array(j);
    for (const kiln_bound *bound = family->bounds; bound->where; bound++) {
        json_begin_object(j);
        json_string_member(j, "where", bound->where);
        json_string_member(j, "text", bound->text);
        json_end(j);
    }
    json_end(j);
}

void describe_json_words(json *j, const kiln_family *family)
{
    json_string_member(j, "name", family->name);
    json_string_member(j, "summary", family->summary);
    json_string_member(j, "source", family->source);
    if (family->accuracy)
        json_string_member(j, "accuracy", family->accuracy);
    add_bounds(j, family);
    if (family->nonfinite)
        json_string_member(j, "nonfinite", family->nonfinite);
}

static void add_family(json *j, const kiln_family *family)
{
    json_begin_object(j);
    describe_json_words(j, family);
    json_number_member(j, "min_sm", family->min_sm);
    add_params(j, family);
    add_args(j, family, family->args);
    add_maps(j, family);
    add_constraints(j, family);
    add_rules(j, family, "rules", family->rules);
    add_launch(j, family);
    add_time(j, family);
    add_calls(j, family);
    add_cost(j, family);
    json_end(j);
}

void describe_json(text *out, family_list families)
{
    json j = json_new(out);
    json_begin_array(&j);
    for (family_list f = families; *f; f++)
        add_family(&j, *f);
    json_end(&j);
    json_finish(&j);
}
