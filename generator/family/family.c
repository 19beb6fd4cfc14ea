/* Families and their parameters. */
#include "family.h"

#include <stdlib.h>
#include <string.h>

#include "support/words.h"

const kiln_family *family_find(family_list families, const char *name)
{
    for (family_list f = families; *f; f++)
        if (strcmp((*f)->name, name) == 0)
            return *f;
    return NULL;
}

const char *family_names(arena *a, family_list families)
{
    text names = text_new(a);
    for (family_list f = families; *f; f++)
        text_printf(&names, "%s%s", names.length > 0 ? " " : "", (*f)->name);
    return names.data;
}

size_t family_param_count(const kiln_family *family)
{
    size_t count = 0;
    while (family->params && family->params[count].name)
        count++;
    return count;
}

bool family_find_param(const kiln_family *family, const char *name, size_t *index)
{
    size_t count = family_param_count(family);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(family->params[i].name, name) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

bool family_find_number(const kiln_family *family, const char *name, size_t *index)
{
    size_t length, i = 0;
    const char *cursor = family->numbers ? family->numbers : "";
    for (const char *w; (w = words_next(&cursor, &length)); i++) {
        if (strlen(name) == length && memcmp(w, name, length) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

const char *family_param_names(arena *a, const kiln_family *family)
{
    text names = text_new(a);
    size_t count = family_param_count(family);
    for (size_t i = 0; i < count; i++)
        text_printf(&names, "%s%s", i > 0 ? " " : "", family->params[i].name);
    return names.data;
}

/* ---- arguments and calls ------------------------------------------------------------------------------------------ */

const char *arg_direction(kiln_arg_kind kind)
{
    static const char *const names[] = {[KILN_ARG_VALUE] = "value",
                                        [KILN_ARG_IN] = "in",
                                        [KILN_ARG_OUT] = "out",
                                        [KILN_ARG_INOUT] = "inout",
                                        [KILN_ARG_OPTIONAL_IN] = "optional_in",
                                        [KILN_ARG_OPTIONAL_OUT] = "optional_out",
                                        [KILN_ARG_SCRATCH] = "scratch",
                                        [KILN_ARG_CONSTANT] = "in"};
    return names[kind];
}

uint64_t arg_largest(const kiln_arg *arg)
{
    const unsigned long bits = strtoul(arg->type + strcspn(arg->type, "0123456789"), NULL, 10);
    return bits > 0 && bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

bool arg_may_be_null(const kiln_arg *arg)
{
    return arg->kind == KILN_ARG_OPTIONAL_IN || arg->kind == KILN_ARG_OPTIONAL_OUT;
}

size_t arg_group_length(const kiln_family *family, const kiln_arg *arg)
{
    for (const char *w = family->groups ? family->groups : ""; *w; w += strcspn(w, " "), w += *w == ' ') {
        const size_t length = strcspn(w, " ");
        if (strncmp(arg->name, w, length) == 0 && arg->name[length] == '_')
            return length;
    }
    return 0;
}

const char *family_shared_bytes(const kiln_family *family)
{
    return family->shared_bytes ? family->shared_bytes : "shared_bytes";
}

const char *family_blocks(arena *a, const kiln_family *family)
{
    text out = text_new(a);
    for (int i = 0; i < 3; i++)
        if (family->grid[i])
            text_printf(&out, "%s(%s)", out.length ? " * " : "", family->grid[i]);
    return out.length ? out.data : "1";
}

const char *family_bytes(arena *a, const kiln_family *family)
{
    const kiln_cost *cost = &family->cost;
    if (!cost->bytes_read || !cost->bytes_written)
        return cost->bytes_read ? cost->bytes_read : cost->bytes_written;
    return arena_format(a, "(%s) + (%s)", cost->bytes_read, cost->bytes_written);
}

bool workspace_has(const kiln_workspace *w, const kiln_arg *arg)
{
    return w && (strcmp(arg->name, w->arg) == 0 || strcmp(arg->name, w->counters) == 0);
}

const kiln_arg *arg_find(const kiln_arg *args, const char *name)
{
    for (; args->name; args++)
        if (strcmp(args->name, name) == 0)
            return args;
    return NULL;
}

const char *arg_variant_alignment(const kiln_family *family, const kiln_arg *arg)
{
    for (const kiln_alignment *row = family->alignments; row && row->arg; row++)
        if (strcmp(row->arg, arg->name) == 0)
            return row->bytes;
    return NULL;
}

bool is_alignment(uint64_t bytes)
{
    return bytes > 0 && bytes <= MOST_ALIGNMENT && (bytes & (bytes - 1)) == 0;
}

uint32_t arg_alignment(const kiln_arg *arg)
{
    return arg->alignment ? arg->alignment : 1;
}

const char *given_value(const kiln_value *values, const char *arg)
{
    for (const kiln_value *v = values; v && v->arg; v++)
        if (strcmp(v->arg, arg) == 0)
            return v->value;
    return NULL;
}

const kiln_family *family_call_scope(arena *a, const kiln_family *family, const kiln_call *call)
{
    kiln_family *scope = arena_alloc(a, sizeof *scope);
    kiln_arg *args = arena_alloc(a, (KILN_MAX_ARGS + KILN_MAX_PARAMS + 1) * sizeof *args);
    size_t count = 0;
    for (const kiln_arg *arg = call->args; arg->name; arg++)
        args[count++] = *arg;
    for (size_t i = 0; i < family_param_count(family); i++) {
        const kiln_param *param = &family->params[i];
        if (param->role == KILN_ROLE_CONTRACT && param->type == KILN_PARAM_INT)
            args[count++] = (kiln_arg){.name = param->name, .type = "u32", .summary = param->summary};
    }
    args[count] = (kiln_arg){.name = NULL};
    *scope = (kiln_family){
        .name = arena_format(a, "%s_%s", family->name, call->name), .args = args, .groups = family->groups};
    return scope;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

bool param_has_value(const kiln_param *param, const char *value)
{
    if (param->type == KILN_PARAM_BOOL)
        return words_contain("true false", value);
    if (param->words)
        return words_contain(param->words, value);
    if (!word_is_number(value))
        return false;
    unsigned long number = strtoul(value, NULL, 10);
    return number >= param->min && number <= param->max && (number - param->min) % param->step == 0;
}

param_value param_value_of(arena *a, const kiln_param *param, const char *value)
{
    bool is_number = param->type != KILN_PARAM_BOOL && word_is_number(value);
    return (param_value){.text = arena_string(a, value, strlen(value)),
                         .number = is_number ? (uint32_t)strtoul(value, NULL, 10) : 0};
}

size_t param_value_place(const kiln_param *param, const param_value *value)
{
    const char *words = param->type == KILN_PARAM_BOOL ? "true false" : param->words;
    size_t index = 0, length;
    if (!words)
        return value->number;
    for (const char *w; (w = words_next(&words, &length)); index++)
        if (strlen(value->text) == length && memcmp(w, value->text, length) == 0)
            break;
    return index;
}

const char *param_values_text(arena *a, const kiln_param *param)
{
    if (param->type == KILN_PARAM_BOOL)
        return "true false";
    if (param->words)
        return param->words;
    if (param->step == 1)
        return arena_format(a, "%u..%u", param->min, param->max);
    return arena_format(a, "%u..%u in steps of %u", param->min, param->max, param->step);
}

const char *summary_line(arena *a, const char *summary)
{
    return arena_string(a, summary, strcspn(summary, "\n"));
}

const char *summary_text(arena *a, const char *summary)
{
    text out = text_new(a);
    for (; *summary; summary++)
        text_add_bytes(&out, *summary == '\n' ? "; " : summary, *summary == '\n' ? 2 : 1);
    return out.data;
}

/* ---- types of arguments ------------------------------------------------------------------------------------------ */

arg_type_choice family_arg_type_choice(const kiln_arg *arg)
{
    const char *name = arg->type + 1, *word = strchr(name, ':');
    if (!word)
        return (arg_type_choice){.name_length = strlen(name)};
    const char *other = strchr(word + 1, ':');
    if (!other)
        internal_error("argument %s: the type '%s' is not $name:word:other", arg->name, arg->type);
    return (arg_type_choice){.name_length = (size_t)(word - name),
                             .word = word + 1,
                             .word_length = (size_t)(other - word - 1),
                             .other = other + 1};
}

const char *arg_type_for(arg_type_choice choice, const char *value)
{
    bool is_value = !choice.word || (strlen(value) == choice.word_length &&
                                     memcmp(value, choice.word, choice.word_length) == 0);
    return is_value ? value : choice.other;
}
