/* A dimension's stride is the product of the dimensions inside it. */
#include "dense.h"

#include "expression/expression.h"
#include "support/words.h"

size_t dense_strides(arena *a, const kiln_family *family, const kiln_dense *row, const dense_stride **list)
{
    const expression *const *dims;
    const size_t dim_count = expression_parse_list(a, family, row->dims, &dims);
    dense_stride *strides = arena_alloc(a, dim_count * sizeof *strides);
    const char *cursor = row->strides;
    size_t count = 0, length;
    for (const char *w; (w = words_next(&cursor, &length)); count++) {
        text value = text_new(a);
        if (count == dim_count)
            family_error("family %s: dense \"%s\" has more strides than dimensions", family->name, row->dims);
        for (size_t i = count + 1; i < dim_count; i++) {
            text_add(&value, value.length > 0 ? " * (" : "(");
            expression_print(&value, dims[i]);
            text_add(&value, ")");
        }
        strides[count] = (dense_stride){arena_string(a, w, length), value.length > 0 ? value.data : "1"};
    }
    *list = strides;
    return count;
}

bool dense_applies(arena *a, const kiln_family *family, const kiln_dense *row, const variant *common)
{
    uint64_t value;
    return !row->when ||
           !expression_is_constant(expression_bind(a, expression_parse(a, family, row->when), common),
                                   &value) ||
           value != 0;
}

static void add_dims(arena *a, text *out, const kiln_family *family, const char *dims, const variant *common)
{
    const expression *const *list;
    const size_t count = expression_parse_list(a, family, dims, &list);
    const char *before = "[";
    for (size_t i = 0; i < count; i++) {
        uint64_t extent;
        const expression *dim = expression_bind(a, list[i], common);
        if (dim != list[i] && expression_is_constant(dim, &extent) && extent == 1 && count > 1)
            continue;
        text_add(out, before);
        expression_print(out, dim);
        before = ", ";
    }
    text_add(out, before[0] == '[' ? "[1]" : "]");
}

const char *dense_shape(arena *a, const kiln_family *family, const kiln_arg *arg, const variant *common)
{
    text out = text_new(a);
    for (const kiln_dense *row = family->dense; row && row->args; row++)
        if (words_contain(row->args, arg->name) && dense_applies(a, family, row, common)) {
            text_add(&out, out.length > 0 ? " or " : "");
            add_dims(a, &out, family, row->dims, common);
        }
    if (out.length == 0)
        add_dims(a, &out, family, arg->shape, common);
    return out.data;
}
