/* Resolves and checks a variant's tensor maps, and writes C that encodes them. */
#include "maps.h"

#include <inttypes.h>
#include <string.h>

#include "c_text.h"
#include "expression/expression.h"
#include "family/family.h"

enum { MOST_BOX = 256, ROW_BYTES = 16 };

/* CUtensorMapDataType: bits and signed integers of 8 and 16 bits are copied as unsigned ones. */
static const struct {
    const char *type;
    int number;
} data_types[] = {{"u8", 0},  {"i8", 0},  {"s8", 0},  {"b8", 0},  {"u16", 1}, {"i16", 1}, {"s16", 1},
                  {"b16", 1}, {"u32", 2}, {"b32", 2}, {"i32", 3}, {"s32", 3}, {"u64", 4}, {"b64", 4},
                  {"i64", 5}, {"s64", 5}, {"f16", 6}, {"f32", 7}, {"f64", 8}, {"bf16", 9}};

static int data_type(const char *type)
{
    for (size_t i = 0; i < sizeof data_types / sizeof *data_types; i++)
        if (strcmp(data_types[i].type, type) == 0)
            return data_types[i].number;
    internal_error("a tensor map of %s", type);
}

/* CUtensorMapSwizzle: 0, 32, 64 and 128 bytes. */
static int swizzle_number(uint64_t bytes)
{
    return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32;
}

static tensor_map resolve(arena *a, const variant *v, const kiln_map *row)
{
    const kiln_family *family = v->family;
    const expression *const *box;
    tensor_map m = {.row = row, .arg = arg_find(family->args, row->arg)};
    m.dimensions = expression_parse_list(a, family, m.arg->shape, &m.sizes);
    if (!variant_has_arg(v, m.arg))
        family_error("%s: map %s is of %s, which the variant lacks", v->id, row->name, row->arg);
    if (m.dimensions > MOST_DIMENSIONS || expression_parse_list(a, family, row->box, &box) != m.dimensions)
        family_error("%s: map %s: the box \"%s\" and the shape \"%s\" need the same 1 to 5 dimensions", v->id,
                     row->name, row->box, m.arg->shape);
    for (size_t i = 0; i < m.dimensions; i++) {
        m.box[i] = expression_value(box[i], v);
        if (m.box[i] < 1 || m.box[i] > MOST_BOX)
            family_error("%s: map %s: a box has 1 to 256 elements per dimension, not %" PRIu64, v->id,
                         row->name, m.box[i]);
    }
    if (row->swizzle_bytes)
        m.swizzle_bytes = expression_value(expression_parse(a, family, row->swizzle_bytes), v);
    if (m.swizzle_bytes != 0 && m.swizzle_bytes != 32 && m.swizzle_bytes != 64 && m.swizzle_bytes != 128)
        family_error("%s: map %s: a swizzle of %" PRIu64 " bytes, expected 0, 32, 64 or 128", v->id,
                     row->name, m.swizzle_bytes);
    const uint64_t row_bytes = m.box[m.dimensions - 1] * variant_element_bytes(a, v, m.arg);
    if (row_bytes % ROW_BYTES != 0 || (m.swizzle_bytes && row_bytes > m.swizzle_bytes))
        family_error("%s: map %s: a row of the box has %" PRIu64 " bytes, expected a multiple of 16%s", v->id,
                     row->name, row_bytes, m.swizzle_bytes ? " within the swizzle" : "");
    if (variant_arg_alignment(a, v, m.arg) < ROW_BYTES)
        family_error("%s: map %s: argument %s must be aligned to at least 16 bytes", v->id, row->name,
                     row->arg);
    return m;
}

size_t maps_of(arena *a, const variant *v, tensor_map maps[KILN_MAX_MAPS])
{
    size_t count = 0;
    for (const kiln_map *row = v->family->maps; row && row->name; row++) {
        if (!variant_has_map(v, row))
            continue;
        if (count == KILN_MAX_MAPS)
            family_error("%s: more than %d tensor maps", v->id, KILN_MAX_MAPS);
        maps[count++] = resolve(a, v, row);
    }
    return count;
}

/* ---- C ------------------------------------------------------------------------------------------------------------ */

/* `count` expressions, innermost first. */
static const char *innermost_first(arena *a, const expression *const *list, size_t count, const variant *v)
{
    text out = text_new(a);
    for (size_t i = count; i-- > 0;)
        text_printf(&out, "%s%s", out.length > 0 ? ", " : "",
                    c_expression(a, expression_bind(a, list[i], v), "a->"));
    return out.data;
}

static const bundle_field *field_of(const bundle_family *f, const kiln_arg *arg)
{
    const bundle_field *field = f->fields;
    while (field->arg != arg)
        field++;
    return field;
}

static void write_box(arena *a, text *out, const tensor_map *m, const variant *v)
{
    text box = text_new(a);
    for (size_t i = m->dimensions; i-- > 0;)
        text_printf(&box, "%s%" PRIu64, box.length > 0 ? ", " : "", m->box[i]);
    c_add_text_constant(
        out, 4, arena_format(a, "refused_%s", m->row->name),
        arena_format(a, "cuTensorMapEncodeTiled rejects the address or the sizes of %s", m->arg->name));
    c_add_wrapped(out, arena_format(a, "    static const kiln_box box_%s = {", m->row->name),
                  arena_format(a, "refused_%s, %d, %u, %zu, {%s}, %d", m->row->name,
                               data_type(variant_arg_type(v, m->arg)),
                               (unsigned)variant_element_bytes(a, v, m->arg), m->dimensions, box.data,
                               swizzle_number(m->swizzle_bytes)),
                  "};\n");
}

static void write_map(arena *a, text *out, const tensor_map *m, const bundle_variant *bv)
{
    const char *name = m->row->name, *strides = "NULL";
    const variant *v = bv->variant;
    write_box(a, out, m, v);
    c_add_wrapped(out, arena_format(a, "    const uint64_t sizes_%s[] = {", name),
                  innermost_first(a, m->sizes, m->dimensions, v), "};\n");
    if (m->row->strides && m->dimensions > 1) {
        const expression *const *list;
        const size_t count = expression_parse_list(a, v->family, m->row->strides, &list);
        strides = arena_format(a, "strides_%s", name);
        c_add_wrapped(out, arena_format(a, "    const uint64_t %s[] = {", strides),
                      innermost_first(a, list, count, v), "};\n");
    }
    text_printf(out, "    kiln_tensor_map map_%s;\n", name);
    c_add_wrapped(out, arena_format(a, "    const kiln_status encoded_%s = kiln_encode_map(", name),
                  arena_format(a, "loader, %s_name, &box_%s, a->%s, sizes_%s, %s, &map_%s", v->family->name,
                               name, field_of(bv->family, m->arg)->member, name, strides, name),
                  ");\n");
    text_printf(out, "    if (encoded_%s != KILN_OK)\n        return encoded_%s;\n", name, name);
}

void maps_write(arena *a, text *out, text *list, const bundle_variant *bv)
{
    tensor_map maps[KILN_MAX_MAPS];
    const size_t count = maps_of(a, bv->variant, maps);
    for (size_t i = 0; i < count; i++) {
        write_map(a, out, &maps[i], bv);
        text_printf(list, ", &map_%s", maps[i].row->name);
    }
}
