/* Requirements of a launch's pointers: not null if the array has elements, and aligned.
 *
 * Requirements of every variant are checked before one is chosen. A variant's further requirements, for pointers that
 * others lack or a larger alignment, are checked after its rules, whose message about a missing workspace is better
 * than that about a null pointer. */
#include "pointers.h"

#include <string.h>

#include "c_text.h"
#include "family/family.h"

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Only some variants have it, or a parameter decides whether it may be null. */
static bool is_own(const kiln_arg *arg, const expression *has_elements)
{
    return arg->when || expression_uses(has_elements, NAME_PARAM);
}

static const expression *required(arena *a, const bundle_field *field, const variant *v)
{
    if (!field->has_elements || is_own(field->arg, field->has_elements) != (v != NULL))
        return NULL;
    return expression_bind(a, field->has_elements, v);
}

static uint32_t alignment_of(arena *a, const kiln_arg *arg, const variant *v)
{
    const uint32_t common = arg->when || arg->alignment == 0 ? 1 : arg->alignment;
    if (!v)
        return common;
    const uint32_t own = variant_arg_alignment(a, v, arg);
    return own > common ? own : 1;
}

static pointer_table make_table(arena *a, const bundle_family *f, const variant *v)
{
    pointer_table table = {.rows = arena_alloc(a, (f->field_count + 1) * sizeof *table.rows)};
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->arg || field->arg->kind == KILN_ARG_VALUE || (v && !variant_has_arg(v, field->arg)))
            continue;
        const pointer_check row = {field, alignment_of(a, field->arg, v), required(a, field, v)};
        if (row.alignment > 1 || row.is_required)
            table.rows[table.count++] = row;
    }
    return table;
}

/* Whether one C table serves both. The call has the condition under which pointers are required. */
static bool is_same(const pointer_table *x, const pointer_table *y)
{
    for (size_t i = 0; i < x->count && i < y->count; i++)
        if (x->rows[i].field != y->rows[i].field || x->rows[i].alignment != y->rows[i].alignment ||
            !x->rows[i].is_required != !y->rows[i].is_required)
            return false;
    return x->count == y->count;
}

void pointers_make(arena *a, bundle_family *f)
{
    for (size_t i = 0; i < f->field_count; i++) {
        bundle_field *field = &f->fields[i];
        if (field->arg && field->arg->kind != KILN_ARG_VALUE && !arg_may_be_null(field->arg))
            field->has_elements = expression_has_elements(a, f->family, field->arg);
    }
    f->pointers = arena_alloc(a, (f->variant_count + 1) * sizeof *f->pointers);
    f->pointers[0] = make_table(a, f, NULL);
    f->pointers[0].name = arena_format(a, "%s_pointers", f->family->name);
    f->pointer_table_count = 1;
    for (size_t i = 0; i < f->variant_count; i++) {
        pointer_table own = make_table(a, f, f->variants[i]->variant);
        size_t same = 1;
        while (same < f->pointer_table_count && !is_same(&f->pointers[same], &own))
            same++;
        own.name = arena_format(a, "%s_pointers_%u", f->family->name, (unsigned)same);
        if (same == f->pointer_table_count)
            f->pointers[f->pointer_table_count++] = own;
        own.name = f->pointers[same].name;
        f->variants[i]->pointers = own;
    }
}

/* ---- as C -------------------------------------------------------------------------------------------------------- */

static void write_table(arena *a, text *out, const bundle_family *f, const pointer_table *table)
{
    text texts = text_new(a), rows = text_new(a);
    for (size_t i = 0; i < table->count; i++) {
        const pointer_check *row = &table->rows[i];
        const char *name = row->field->name;
        const size_t is_null = texts.length;
        if (row->is_required)
            text_printf(&texts, "%s is null%c", name, '\0');
        const size_t misaligned = texts.length;
        if (row->alignment > 1)
            text_printf(&texts, "%s must be aligned to %u bytes%c", name, (unsigned)row->alignment, '\0');
        text_printf(&rows, "    {offsetof(%s, %s), %u, %u, %u},\n", f->args_struct, row->field->member,
                    (unsigned)row->alignment, (unsigned)is_null, (unsigned)misaligned);
    }
    text_printf(out, "\nstatic const char %s_texts[] =", table->name);
    for (const char *s = texts.data; s < texts.data + texts.length; s += strlen(s) + 1) {
        text_add(out, "\n    \"");
        c_add_escaped(out, s, strlen(s) + 1);
        text_add(out, "\"");
    }
    text_printf(out,
                ";\nstatic const kiln_pointer %s_rows[] = {\n%s};\n"
                "static const kiln_pointers %s = {%s_texts, %s_rows, %u};\n",
                table->name, rows.data, table->name, table->name, table->name, (unsigned)table->count);
}

void pointers_write(arena *a, text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->pointer_table_count; i++)
        if (f->pointers[i].count > 0)
            write_table(a, out, f, &f->pointers[i]);
}

/* "0x8u | (a->k != 0 ? 0x3u : 0)": a bit for each required pointer, pointers of one condition together. */
static const char *required_bits(arena *a, const pointer_table *table)
{
    uint32_t always = 0, said = 0;
    text out = text_new(a);
    for (size_t i = 0; i < table->count; i++) {
        uint64_t value;
        const expression *e = table->rows[i].is_required;
        if (e && expression_is_constant(e, &value))
            always |= (uint32_t)(value != 0) << i;
        if (!e || said >> i & 1u || expression_is_constant(e, &value))
            continue;
        const char *condition = c_expression(a, e, "a->");
        uint32_t bits = 0;
        for (size_t k = i; k < table->count; k++)
            if (table->rows[k].is_required &&
                strcmp(c_expression(a, table->rows[k].is_required, "a->"), condition) == 0)
                bits |= 1u << k;
        said |= bits;
        text_printf(&out, " | (%s ? 0x%xu : 0)", condition, (unsigned)bits);
    }
    if (always || out.length == 0)
        return arena_format(a, "0x%xu%s", (unsigned)always, out.data);
    return out.data + strlen(" | ");
}

void pointers_write_check(arena *a, text *out, const bundle_family *f, const pointer_table *table,
                          const char *head)
{
    c_add_wrapped(
        out, arena_format(a, "    %skiln_check_pointers(", head),
        arena_format(a, "loader, %s_name, &%s, a, %s", f->family->name, table->name, required_bits(a, table)),
        ");\n");
}
