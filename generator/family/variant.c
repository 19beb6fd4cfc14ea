/* Names of variants, and the functions that a family's shape and emit call. */
#include "variant.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "family.h"
#include "ptx/builder.h"
#include "support/words.h"

void variant_name(arena *a, variant *v)
{
    text id = text_new(a), entry = text_new(a);
    text_add(&id, v->family->name);
    text_add(&entry, v->family->name);
    size_t count = family_param_count(v->family);
    char separator = '/';
    for (size_t i = 0; i < count; i++) {
        const kiln_param *param = &v->family->params[i];
        const char *value = v->values[i].text;
        if (param->is_later && strcmp(value, param->default_value) == 0)
            continue;
        text_printf(&id, "%c%s=%s", separator, param->name, value);
        separator = ',';
        if (param->type == KILN_PARAM_BOOL)
            text_printf(&entry, "_%s%s", strcmp(value, "true") == 0 ? "" : "no", param->name);
        else
            text_printf(&entry, "_%s", value);
    }
    v->id = id.data;
    v->key = XXH3_64bits(id.data, id.length);
    v->entry = v->symbol = entry.data;
}

/* ---- inside emit ------------------------------------------------------------------------------------------------ */

static const char *const type_names[] = {
    [KILN_PARAM_WORD] = "a word", [KILN_PARAM_INT] = "an integer", [KILN_PARAM_BOOL] = "a boolean"};

static const param_value *value_of(const kiln_variant *v, const char *param, const kiln_param **row)
{
    size_t index;
    if (!param || !family_find_param(v->variant->family, param, &index))
        family_error("family %s: emit asks for a parameter '%s' that it does not declare",
                     v->variant->family->name, param ? param : "");
    *row = &v->variant->family->params[index];
    return &v->variant->values[index];
}

_Noreturn static void wrong_type(const kiln_variant *v, const kiln_param *param, const char *asked)
{
    family_error("family %s: emit asks for %s, but '%s' is %s", v->variant->family->name, asked, param->name,
                 type_names[param->type]);
}

uint32_t kiln_int(const kiln_variant *v, const char *param)
{
    const kiln_param *row;
    const param_value *value = value_of(v, param, &row);
    if (row->type == KILN_PARAM_BOOL || !word_is_number(value->text))
        wrong_type(v, row, "an integer");
    return value->number;
}

bool kiln_bool(const kiln_variant *v, const char *param)
{
    const kiln_param *row;
    const param_value *value = value_of(v, param, &row);
    if (row->type != KILN_PARAM_BOOL)
        wrong_type(v, row, "a boolean");
    return strcmp(value->text, "true") == 0;
}

bool kiln_is(const kiln_variant *v, const char *param, const char *word)
{
    const kiln_param *row;
    const param_value *value = value_of(v, param, &row);
    if (row->type != KILN_PARAM_WORD)
        wrong_type(v, row, "a word");
    if (!word || !param_has_value(row, word))
        family_error("family %s: emit compares '%s' with '%s', which it never is", v->variant->family->name,
                     param, word ? word : "");
    return strcmp(value->text, word) == 0;
}

uint32_t kiln_word_index(const kiln_variant *v, const char *param)
{
    const kiln_param *row;
    const param_value *value = value_of(v, param, &row);
    if (row->type != KILN_PARAM_WORD)
        wrong_type(v, row, "a word");
    return (uint32_t)words_find(row->words, value->text);
}

ptx_type kiln_type(const kiln_variant *v, const char *param)
{
    const kiln_param *row;
    const param_value *value = value_of(v, param, &row);
    ptx_type type = row->type == KILN_PARAM_WORD ? ptx_type_named(value->text) : PTX_NONE;
    if (type == PTX_NONE)
        family_error("family %s: emit asks for a type, but '%s' is '%s'", v->variant->family->name, param,
                     value->text);
    return type;
}

void kiln_number(kiln_shape *s, const kiln_variant *v, const char *name, uint64_t value)
{
    size_t index;
    if (!name || !family_find_number(v->variant->family, name, &index))
        family_error("family %s: shape gives a number '%s' that it does not list", v->variant->family->name,
                     name ? name : "");
    s->numbers[index] = value;
}

bool kiln_has_sm(const kiln_variant *v, uint32_t sm)
{
    return target_has(v->target, sm, v->alike);
}
