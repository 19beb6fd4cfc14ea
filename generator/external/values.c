/* The values that distinguish the variants of a kernel: parameters, which dispatch chooses by each variant's condition.
 * */
#include <string.h>

#include "build.h"
#include "expression/expression.h"
#include "family/family.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"

enum { LONGEST_VALUE = 40 };

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* A part of a C name: letters, digits, and single underscores between them. */
static bool is_value(const char *word)
{
    const size_t length = strlen(word);
    for (const char *c = word; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9') && *c != '_')
            return false;
    return length > 0 && length <= LONGEST_VALUE && !strstr(word, "__") && word[0] != '_' &&
           word[length - 1] != '_';
}

/* Numbers if all are, booleans if all are, else words. */
static kiln_param_type type_of_values(const external_build *m, size_t param)
{
    bool are_numbers = true, are_booleans = true;
    for (size_t i = 0; i < m->q->variant_count; i++) {
        const char *value = m->q->variants[i].values[param].text;
        are_numbers = are_numbers && word_is_number(value);
        are_booleans = are_booleans && words_contain("true false", value);
    }
    return are_numbers ? KILN_PARAM_INT : are_booleans ? KILN_PARAM_BOOL : KILN_PARAM_WORD;
}

static const char *words_of(const external_build *m, size_t param)
{
    text words = text_new(m->arena);
    for (size_t i = 0; i < m->q->variant_count; i++) {
        const char *value = m->q->variants[i].values[param].text;
        if (!words_contain(words.data, value))
            text_printf(&words, "%s%s", words.length > 0 ? " " : "", value);
    }
    return words.data;
}

static void check_values(external_build *m, size_t param)
{
    const external_text name = m->q->params[param];
    if (!external_is_free_name(name.text))
        diagnose(m->d, name.at, message_variant_param, quote_text(m->arena, name.text));
    for (size_t i = 0; i < m->q->variant_count; i++) {
        const external_text value = m->q->variants[i].values[param];
        if (!is_value(value.text))
            diagnose(m->d, value.at, message_variant_value, LONGEST_VALUE, quote_text(m->arena, name.text),
                     quote_text(m->arena, value.text));
    }
}

void external_take_values(external_build *m)
{
    const external_request *q = m->q;
    kiln_param *params = arena_alloc(m->arena, (q->param_count + 1) * sizeof *params);
    for (size_t k = 0; k < q->param_count; k++) {
        check_values(m, k);
        params[k] = (kiln_param){.name = q->params[k].text,
                                 .type = type_of_values(m, k),
                                 .role = KILN_ROLE_TUNING,
                                 .words = words_of(m, k),
                                 .default_value = q->variants[0].values[k].text,
                                 .summary = "told apart by the configuration"};
        for (size_t i = 0; i < q->variant_count; i++)
            m->variants[i].values[k] = param_value_of(m->arena, &params[k], q->variants[i].values[k].text);
    }
    m->family->params = params;
}

/* ---- what depends on them ---------------------------------------------------------------------------------------- */

/* Comparisons with each of the variant's values, joined. */
static const char *compared(const external_build *m, size_t i, const char *comparison, const char *join)
{
    text out = text_new(m->arena);
    for (size_t k = 0; k < m->q->param_count; k++)
        text_printf(&out, "%s%s %s %s", k > 0 ? join : "", m->q->params[k].text, comparison,
                    m->variants[i].values[k].text);
    return out.data;
}

const char *external_unless(external_build *m, size_t i)
{
    return m->q->param_count > 0 ? arena_format(m->arena, "%s || ", compared(m, i, "!=", " || ")) : "";
}

static bool are_same(const char *const *texts, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (strcmp(texts[i], texts[from]) != 0)
            return false;
    return true;
}

/* An expression that selects among the variants from..to - 1: by bisection, since expressions have a depth limit. */
static void add_choice(external_build *m, text *out, const char *const *texts, size_t from, size_t to)
{
    if (are_same(texts, from, to)) {
        text_add(out, texts[from]);
        return;
    }
    const size_t middle = from + (to - from) / 2;
    for (size_t i = from; i < middle; i++)
        text_printf(out, "%s%s", i > from ? " || " : "select(", compared(m, i, "==", " && "));
    text_add(out, ", ");
    add_choice(m, out, texts, from, middle);
    text_add(out, ", ");
    add_choice(m, out, texts, middle, to);
    text_add(out, ")");
}

const char *external_by_variant(external_build *m, const char *const *texts)
{
    text out = text_new(m->arena);
    add_choice(m, &out, texts, 0, m->q->variant_count);
    return out.data;
}

const char *external_with(external_build *m, size_t i, const char *source)
{
    text out = text_new(m->arena);
    for (size_t k = 0; k < m->q->param_count; k++)
        if (external_has_name(source, m->q->params[k].text))
            text_printf(&out, "%s%s=%s", out.length > 0 ? ", " : ", with ", m->q->params[k].text,
                        m->variants[i].values[k].text);
    return out.data;
}

bool external_is_number(const external_build *m, size_t i, const char *source, uint64_t *number)
{
    const variant *v = &m->variants[i];
    if (!source || expression_try(m->arena, v, source, false))
        return false;
    return expression_is_constant(expression_bind(m->arena, expression_parse(m->arena, m->family, source), v),
                                  number);
}
