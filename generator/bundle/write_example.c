/* Writes the example call in a family's comment in NAME.h: statements that are both C and C++, then the lines that differ. A test
 * compiles and runs them. */
#include <inttypes.h>
#include <string.h>

#include "c_text.h"
#include "family/family.h"
#include "write.h"

/* "1 / sqrt(128)": C with the variant's values in place of parameters. */
static const char *with_values(arena *a, const variant *v, const char *value)
{
    text out = text_new(a);
    for (size_t length; *value; value += length) {
        size_t index;
        length = strspn(value, "abcdefghijklmnopqrstuvwxyz_0123456789");
        length = length ? length : 1;
        const char *word = arena_string(a, value, length);
        text_add(&out, family_find_param(v->family, word, &index) ? v->values[index].text : word);
    }
    return out.data;
}

static const char *value_of(arena *a, const bundle_family *f, const bundle_field *field, const variant *v)
{
    const char *value = given_value(f->family->example, field->name);
    uint64_t number;
    if (!value)
        return f->family->example ? NULL : field->name;
    if (strcmp(field->c_type, "float") == 0 || strcmp(field->c_type, "double") == 0)
        return with_values(a, v, value);
    if (!expression_is_constant(bind_text(a, v->family, value, v), &number))
        family_error("family %s: the example's %s is \"%s\", no number", f->family->name, field->name, value);
    return arena_format(a, "%" PRIu64, number);
}

/* Omits workspace arguments if some variant needs none. */
static bool has_optional_workspace(const bundle_family *f, const kiln_arg *arg)
{
    const kiln_workspace *w = f->workspace;
    return workspace_has(w, arg) || (w && strcmp(arg->name, w->size) == 0);
}

static const char *arg_value(arena *a, const bundle_family *f, const bundle_field *field, const variant *v)
{
    const kiln_arg *arg = field->arg;
    if (!variant_has_arg(v, arg) || arg_may_be_null(arg))
        return NULL;
    if (has_optional_workspace(f, arg))
        return needs_workspace(f) ? field->name : NULL;
    return arg->kind == KILN_ARG_VALUE && !field->elements ? value_of(a, f, field, v) : field->name;
}

static const char *param_value_text(arena *a, const bundle_family *f, const bundle_field *field,
                                    const variant *v)
{
    const char *value = v->values[field->param_index].text;
    if (field->param->type == KILN_PARAM_BOOL)
        return strcmp(value, "true") == 0 ? "1" : NULL;
    return strcmp(value, "0") == 0 ? NULL : c_value(a, f, field->param, value);
}

/* Appends to the current line if there is room. */
static void add_statement(text *out, size_t *line, const char *statement)
{
    const size_t length = strlen(statement) + 1;
    const bool fits = *line + 1 + length <= C_COLUMNS - 6;
    text_printf(out, "%s%s;", fits ? " " : "\n", statement);
    *line = fits ? *line + 1 + length : length;
}

const char *example_args(arena *a, const bundle_family *f)
{
    const variant *v = f->variants[0]->variant;
    for (size_t i = f->variant_count; i > 0; i--)
        if (!f->call || call_can_serve(f->variants[i - 1]->variant, f->call))
            v = f->variants[i - 1]->variant;
    text out = text_new(a);
    size_t line = strlen("Both:");
    text_printf(&out, "%s\nBoth:",
                c_in_both(a, arena_format(a, "%s args = {0};", f->args_struct),
                          arena_format(a, "%s args = {};", f->args_struct)));
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->elements)
            continue;
        const char *value = field->arg ? arg_value(a, f, field, v) : param_value_text(a, f, field, v);
        if (value)
            add_statement(&out, &line, arena_format(a, "args.%s = %s", field->member, value));
    }
    if (f->has_strides)
        add_statement(&out, &line, arena_format(a, "%s_set_contiguous(&args)", f->function));
    return out.data;
}
