/* NAME_FAMILY_set_contiguous: sets the strides that the bundle reads, for contiguous arrays. */
#include <string.h>

#include "c_text.h"
#include "family/dense.h"
#include "family/family.h"
#include "write.h"

static void note_params(const kiln_family *family, const expression *e, bool *is_asked)
{
    for (size_t i = 0; i < family_param_count(family); i++)
        is_asked[i] = is_asked[i] || expression_uses_param(e, i);
}

/* Marks the parameters that decide which `dense` rows apply and whether their strides are read. */
static void find_asked(arena *a, const kiln_family *family, bool *is_asked)
{
    for (const kiln_dense *row = family->dense; row->args; row++) {
        const expression *const *dims;
        const dense_stride *strides;
        const size_t dim_count = expression_parse_list(a, family, row->dims, &dims);
        const size_t stride_count = dense_strides(a, family, row, &strides);
        for (size_t i = 0; i < dim_count; i++)
            note_params(family, dims[i], is_asked);
        for (size_t i = 0; i <= stride_count; i++) {
            const char *when = i < stride_count ? arg_find(family->args, strides[i].arg)->when : row->when;
            if (when)
                note_params(family, expression_parse(a, family, when), is_asked);
        }
    }
}

static const bundle_field *find_field(const bundle_family *f, const char *name)
{
    for (size_t i = 0; i < f->field_count; i++)
        if (strcmp(f->fields[i].name, name) == 0)
            return &f->fields[i];
    internal_error("family %s has no argument %s", f->family->name, name);
}

static bool holds(arena *a, const bundle_family *f, const char *condition, const variant *v)
{
    return !condition || expression_value(expression_parse(a, f->family, condition), v) != 0;
}

/* "args->q_row_stride = (uint32_t)(a.q_heads * 128);" for each stride that the variant reads. */
static void write_strides(arena *a, text *out, const bundle_family *f, const variant *v, const char *indent)
{
    for (const kiln_dense *row = f->family->dense; row->args; row++) {
        const dense_stride *strides;
        const size_t count = holds(a, f, row->when, v) ? dense_strides(a, f->family, row, &strides) : 0;
        for (size_t i = 0; i < count; i++) {
            const bundle_field *field = find_field(f, strides[i].arg);
            if (!field->is_read || !holds(a, f, field->arg->when, v))
                continue;
            uint64_t constant;
            const expression *bound = bind_text(a, f->family, strides[i].value, v);
            const char *value = c_expression(a, bound, "a.");
            const bool is_wide =
                strcmp(field->c_type, "uint64_t") == 0 || expression_is_constant(bound, &constant);
            c_add_wrapped(out, arena_format(a, "%sargs->%s = ", indent, field->member),
                          is_wide ? value : arena_format(a, "(%s)(%s)", field->c_type, value), ";\n");
        }
    }
}

void write_contiguous_function(arena *a, text *out, const bundle_family *f)
{
    bool is_asked[KILN_MAX_PARAMS] = {false};
    const char **written = arena_alloc(a, f->variant_count * sizeof *written);
    text body = text_new(a);
    size_t count = 0;
    if (!f->has_strides)
        return;
    find_asked(a, f->family, is_asked);
    for (size_t i = 0; i < family_param_count(f->family); i++) {
        const char **values;
        is_asked[i] = is_asked[i] && family_values(a, f, i, &values) > 1;
    }
    for (size_t i = 0; i < f->variant_count; i++) {
        const variant *v = f->variants[i]->variant;
        const char *condition = choice_condition(a, f, v, is_asked);
        size_t k = 0;
        while (k < count && strcmp(written[k], condition) != 0)
            k++;
        if (k < count)
            continue;
        written[count++] = condition;
        if (*condition)
            c_add_wrapped(&body, "    if (", condition, ") {\n");
        write_strides(a, &body, f, v, *condition ? "        " : "    ");
        text_add(&body, *condition ? "    }\n" : "");
    }
    text_printf(out,
                "\nvoid %s_set_contiguous(%s *args)\n{\n    if (!args)\n        return;\n    %s a = *args;\n",
                f->function, f->args_struct, f->args_struct);
    write_defaults(a, out, f);
    text_add_bytes(out, body.data, body.length);
    text_add(out, "}\n");
}
