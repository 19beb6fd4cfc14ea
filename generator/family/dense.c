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
