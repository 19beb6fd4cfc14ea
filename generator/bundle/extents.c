/* Rules bound single sizes, but the product of sizes may still exceed 64 bits. An array's bytes follow from its shape.
 * If the types and rules of a variant's arguments allow 2^63 bytes or more, its launch checks the arrays. In nearly
 * every call the arguments are far too small for that, which one comparison shows; otherwise the launch computes the
 * exact sizes in double, which does not wrap around. */
#include "extents.h"

#include <string.h>

#include "c_text.h"
#include "family/family.h"

/* An array that some call could make too large. */
typedef struct extent {
    const bundle_field *field;
    const expression **dimensions;
    size_t dimension_count;
    double element_bytes;
} extent;

typedef struct extents {
    extent *items;
    size_t count;
    bool *is_named; /* for each argument: the shapes name it */
} extents;

static const double too_many_bytes = 9223372036854775808.0; /* 2^63 */

static bool may_be_too_large(const extent *e, const double *most_of_args)
{
    double most = e->element_bytes;
    for (size_t i = 0; i < e->dimension_count; i++)
        most *= expression_most(e->dimensions[i], most_of_args);
    return most >= too_many_bytes;
}

static extent extent_of(arena *a, const variant *v, const bundle_field *field)
{
    const expression *const *parsed;
    extent e = {.field = field, .element_bytes = variant_element_bytes(a, v, field->arg)};
    e.dimension_count = expression_parse_list(a, v->family, field->arg->shape, &parsed);
    e.dimensions = arena_alloc(a, e.dimension_count * sizeof *e.dimensions);
    for (size_t i = 0; i < e.dimension_count; i++)
        e.dimensions[i] = expression_bind(a, parsed[i], v);
    return e;
}

/* External PTX may have any number of arguments. */
static size_t count_args(const bundle_family *f)
{
    size_t count = 0;
    while (f->family->args[count].name)
        count++;
    return count;
}

static extents extents_of(arena *a, const bundle_family *f, const variant *v, const double *most_of_args)
{
    extents all = {.items = arena_alloc(a, (f->field_count + 1) * sizeof *all.items),
                   .is_named = arena_alloc(a, (count_args(f) + 1) * sizeof *all.is_named)};
    for (size_t i = 0; i < f->field_count; i++) {
        const kiln_arg *arg = f->fields[i].arg;
        if (!arg || arg->kind == KILN_ARG_VALUE || !arg->shape || !variant_has_arg(v, arg))
            continue;
        const extent e = extent_of(a, v, &f->fields[i]);
        if (!may_be_too_large(&e, most_of_args))
            continue;
        for (size_t k = 0; k < e.dimension_count; k++)
            expression_mark_args(e.dimensions[k], all.is_named);
        all.items[all.count++] = e;
    }
    return all;
}

/* The most bits that each argument may have if every array is to be small enough. */
static unsigned safe_bits(arena *a, const extents *all, const double *most_of_args, size_t arg_count)
{
    double *most = arena_alloc(a, (arg_count + 1) * sizeof *most);
    for (unsigned bits = 63; bits > 0; bits--) {
        const double below = (double)(UINT64_C(1) << bits);
        bool are_safe = true;
        for (size_t i = 0; i < arg_count; i++)
            most[i] = all->is_named[i] && most_of_args[i] > below ? below : most_of_args[i];
        for (size_t i = 0; i < all->count; i++)
            are_safe = are_safe && !may_be_too_large(&all->items[i], most);
        if (are_safe)
            return bits;
    }
    return 0;
}

static const char *bytes_text(arena *a, const extent *e)
{
    text out = text_new(a);
    for (size_t i = 0; i < e->dimension_count; i++) {
        text_add(&out, i > 0 ? " * (" : "(");
        expression_print_c_double(&out, e->dimensions[i], "a->", "loader->device.");
        text_add(&out, ")");
    }
    text_printf(&out, " * %.1f", e->element_bytes);
    return out.data;
}

/* "a->m | a->n": if it has no bit from `bits` on, all arrays are small enough. */
static const char *large_arguments(arena *a, const bundle_family *f, const extents *all,
                                   const double *most_of_args, unsigned bits)
{
    text out = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const kiln_arg *arg = f->fields[i].arg;
        const size_t index = arg ? (size_t)(arg - f->family->args) : 0;
        if (!arg || !all->is_named[index] || most_of_args[index] < (double)(UINT64_C(1) << bits))
            continue;
        text_printf(&out, "%s%sa->%s", out.length > 0 ? " | " : "", arg->type[0] == 'u' ? "" : "(uint64_t)",
                    f->fields[i].member);
    }
    return out.data;
}

/* A statement with a condition that is broken at its spaces. */
static void add_condition(text *out, const char *head, const char *condition, const char *tail)
{
    const size_t start = strlen(head);
    size_t column = start;
    text_add(out, head);
    while (*condition) {
        const size_t length = strcspn(condition, " ");
        const size_t tail_length = condition[length] ? 0 : strcspn(tail, "\n");
        if (column > start && column + 1 + length + tail_length > C_COLUMNS) {
            text_printf(out, "\n%*s", (int)start, "");
            column = start;
        } else if (column > start) {
            text_add(out, " ");
            column++;
        }
        text_add_bytes(out, condition, length);
        column += length;
        condition += length + (condition[length] == ' ');
    }
    text_add(out, tail);
}

static extent_check check_of(arena *a, const bundle_family *f, const extents *all, const double *most_of_args)
{
    const unsigned bits = safe_bits(a, all, most_of_args, count_args(f));
    text out = text_new(a);
    for (size_t i = 0; i < all->count; i++) {
        const extent *e = &all->items[i];
        const char *head = "    if (!(";
        if (arg_may_be_null(e->field->arg))
            head = arena_format(a, "    if (a->%s != 0 && !(", e->field->member);
        add_condition(&out, head, bytes_text(a, e), " < 9223372036854775808.0)) {\n");
        c_add_text_constant(&out, 8, "detail",
                            arena_format(a, "%s would have 2^63 bytes or more", e->field->name));
        text_printf(&out,
                    "        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, %s_name, detail);\n    }\n",
                    f->family->name);
    }
    const char *large = large_arguments(a, f, all, most_of_args, bits);
    return (extent_check){large[0] != '\0' ? large : "1", large[0] != '\0' ? bits : 0, out.data};
}

static extent_check kept(arena *a, extent_check check)
{
    return (extent_check){arena_string(a, check.large, strlen(check.large)), check.bits,
                          arena_string(a, check.exact, strlen(check.exact))};
}

void extents_make(arena *a, bundle_family *f)
{
    arena *piece = arena_new();
    f->extent_checks = arena_alloc(a, (f->variant_count + 1) * sizeof *f->extent_checks);
    for (size_t i = 0; i < f->variant_count; i++, arena_clear(piece)) {
        bundle_variant *v = f->variants[i];
        double *most_of_args = arena_alloc(piece, (count_args(f) + 1) * sizeof *most_of_args);
        expression_most_of_args(piece, v->variant, most_of_args);
        const extents all = extents_of(piece, f, v->variant, most_of_args);
        if (all.count == 0)
            continue;
        const extent_check check = check_of(piece, f, &all, most_of_args);
        size_t same = 0;
        while (same < f->extent_check_count && strcmp(f->extent_checks[same].exact, check.exact) != 0)
            same++;
        if (same == f->extent_check_count)
            f->extent_checks[f->extent_check_count++] = kept(a, check);
        v->extent_check = (uint32_t)same + 1;
    }
    arena_free(piece);
}

/* The exact check is a separate function, so that ordinary calls do not pay for its setup. */
static void write_check(text *out, const bundle_family *f, const extent_check *check, unsigned number)
{
    arena *a = out->arena;
    const char *arguments = arena_format(a, "kiln_loader *loader, const %s *a", f->args_struct);
    text_add(out, "\n__attribute__((noinline)) ");
    c_add_wrapped(out, arena_format(a, "static kiln_status %s_bytes_%u(", f->family->name, number), arguments,
                  ")\n{\n");
    text_printf(out, "%s    return KILN_OK;\n}\n\n", check->exact);
    c_add_wrapped(out, arena_format(a, "static kiln_status %s_extents_%u(", f->family->name, number),
                  arguments, ")\n{\n");
    add_condition(out, "    const int is_large = (", check->large,
                  arena_format(a, ") >> %u != 0;\n", check->bits));
    text_printf(out, "    return is_large ? %s_bytes_%u(loader, a) : KILN_OK;\n}\n", f->family->name, number);
}

void extents_write(text *out, const bundle_family *f)
{
    if (f->extent_check_count > 0)
        text_add(out, "\n/* Arrays that would pass 2^63 bytes: addresses would wrap around. */");
    for (size_t i = 0; i < f->extent_check_count; i++)
        write_check(out, f, &f->extent_checks[i], (unsigned)i + 1);
}
