/* Encodes a kernel's integer parameters for launch hooks, as index:name:type: "4:m:u32 5:n:u32 6:k:u32". Strides that
 * NAME_FAMILY_set_contiguous can fill are omitted, to keep a line of trace short: attention has 14. */
#include "sizes.h"

#include <string.h>

#include "c_text.h"
#include "family/dense.h"

static bool is_stride(arena *a, const variant *v, const char *name)
{
    for (const kiln_dense *row = v->family->dense; row && row->args; row++) {
        const dense_stride *strides;
        const size_t count = dense_strides(a, v->family, row, &strides);
        for (size_t i = 0; i < count; i++)
            if (strcmp(strides[i].arg, name) == 0)
                return true;
    }
    return false;
}

/* The types of integers are u, s or i, and their bits. */
static bool is_size(arena *a, const bundle_field *field, const variant *v)
{
    return field->arg->kind == KILN_ARG_VALUE && !field->elements &&
           strchr("usi", variant_arg_type(v, field->arg)[0]) && !is_stride(a, v, field->name);
}

static const char *sizes_of(arena *a, const bundle_family *f, const variant *v)
{
    text out = text_new(a);
    unsigned param = 0;
    for (size_t i = 0, count = variant_param_count(v); i < count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!variant_has_arg(v, field->arg))
            continue;
        if (is_size(a, field, v)) {
            const char *type = variant_arg_type(v, field->arg);
            text_printf(&out, "%s%u:%s:%c%s", out.length > 0 ? " " : "", param, field->name,
                        type[0] == 'u' ? 'u' : 's', type + 1);
        }
        param++;
    }
    return out.data;
}

void sizes_make(arena *a, bundle_family *f)
{
    f->sizes = arena_alloc(a, f->variant_count * sizeof *f->sizes);
    for (size_t i = 0; i < f->variant_count; i++) {
        arena *piece = arena_new();
        const char *own = sizes_of(piece, f, f->variants[i]->variant);
        size_t same = 0;
        while (same < f->size_count && strcmp(f->sizes[same], own) != 0)
            same++;
        if (same == f->size_count && *own)
            f->sizes[f->size_count++] = arena_format(a, "%s", own);
        f->variants[i]->sizes = *own ? (uint32_t)same + 1 : 0;
        arena_free(piece);
    }
}

void sizes_write(text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->size_count; i++) {
        text_add(out, "\n");
        c_add_text_constant(out, 0, arena_format(out->arena, "%s_sizes_%u", f->family->name, (unsigned)i + 1),
                            f->sizes[i]);
    }
}
