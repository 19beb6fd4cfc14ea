/* Each family's typed function, and the one that only tells which variant serves these arguments on this device.
 *
 * Variants that agree in the parameters that the caller names form a choice; within it the family's dispatch rows, in
 * order, pick. The last candidate of a choice does not ask whether the device can run it: when nothing can, its launch
 * says why. */
#include <string.h>

#include "../family.h"
#include "c_text.h"
#include "write.h"

/* ---- candidates -------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    const bundle_variant *variant;
    const expression *condition; /* null: holds always */
} candidate;

typedef struct candidates {
    candidate *items;
    size_t count, capacity;
} candidates;

/* Whether a variant has the values of "strategy=mma,tile=64". */
static bool has_values(const kiln_variant *v, const char *prefer)
{
    while (*prefer) {
        const size_t name_length = strcspn(prefer, "=");
        const char *value = prefer + name_length + 1;
        const size_t value_length = strcspn(value, ",");
        const kiln_param *params = v->family->params;
        size_t i = 0;
        while (params[i].name &&
               !(strlen(params[i].name) == name_length && memcmp(params[i].name, prefer, name_length) == 0))
            i++;
        if (!params[i].name || prefer[name_length] != '=')
            internal_error("family %s: dispatch prefers '%s', which names no parameter", v->family->name,
                           prefer);
        if (strlen(v->values[i].text) != value_length || memcmp(v->values[i].text, value, value_length) != 0)
            return false;
        prefer = value + value_length + (value[value_length] == ',');
    }
    return true;
}

/* Whether an earlier candidate, if the device can run it, always stands before this one. */
static bool is_listed_always(const candidates *list, const bundle_variant *v)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].variant == v && !list->items[i].condition)
            return true;
    return false;
}

static void add_row(arena *a, candidates *list, const kiln_dispatch *row, bundle_variant *const *choice,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const kiln_variant *v = choice[i]->variant;
        if (!has_values(v, row->prefer) || is_listed_always(list, choice[i]))
            continue;
        const expression *condition = bind_text(a, v->family, row->condition, v);
        uint64_t value;
        if (expression_is_constant(condition, &value)) {
            if (value == 0)
                continue;
            condition = NULL;
        }
        candidate *added = arena_push(a, (void **)&list->items, &list->count, &list->capacity, sizeof *added);
        *added = (candidate){choice[i], condition};
    }
}

static candidates candidates_of(arena *a, const kiln_family *family, bundle_variant *const *choice,
                                size_t count)
{
    static const kiln_dispatch any[] = {{"1", ""}, {0}};
    candidates list = {0};
    for (const kiln_dispatch *row = family->dispatch ? family->dispatch : any; row->condition; row++)
        add_row(a, &list, row, choice, count);
    return list;
}

/* Whether some listed target, or a driver that still takes the last candidate, cannot run this one. */
static bool may_be_unusable(const candidates *list, size_t i)
{
    const bundle_variant *v = list->items[i].variant, *last = list->items[list->count - 1].variant;
    return i + 1 < list->count && (!v->runs_everywhere || v->min_driver > last->min_driver);
}

/* What every device of a target and of the newer ones has for a thread block: CUDA programming guide, technical
 * specifications per compute capability. */
static uint32_t shared_bytes_everywhere(target t)
{
    return t.sm < 80 ? 64 * 1024 : 99 * 1024;
}

/* "61440 <= loader->device.max_shared_bytes" of a variant that some device has no room for, with this call's arguments;
 * else null. */
static const char *room_condition(arena *a, const bundle_variant *v)
{
    const uint32_t fixed = v->static_shared_bytes;
    if (v->max_shared_bytes + fixed <= shared_bytes_everywhere(v->owner->images[0].made_for))
        return NULL;
    const char *dynamic = family_shared_bytes(v->variant->family);
    const char *needs = arena_format(a, "%s + %u", dynamic, (unsigned)fixed);
    const char *fits = arena_format(a, "%s <= max_shared_bytes", fixed ? needs : dynamic);
    return c_expression(a, bind_text(a, v->variant->family, fits, v->variant), "a.");
}

/* The last one asks nothing of the device. Whether a device has room that does not depend on the call is told by
 * kiln_usable too. */
static const char *candidate_condition(arena *a, const candidates *list, size_t i)
{
    const candidate *c = &list->items[i];
    const char *asked = c->condition ? c_expression(a, c->condition, "a.") : "";
    const char *usable = may_be_unusable(list, i)
                             ? arena_format(a, "kiln_usable(loader, &%s_kernel)", c->variant->function)
                             : NULL;
    const bool is_fixed = c->variant->min_shared_bytes == c->variant->max_shared_bytes;
    const bool asks_room = i + 1 < list->count && !(usable && is_fixed);
    const char *room = asks_room ? room_condition(a, c->variant) : NULL;
    text out = text_new(a);
    const bool is_alternative = strstr(asked, " || ") && (room || usable);
    text_printf(&out, "%s%s%s", is_alternative ? "(" : "", asked, is_alternative ? ")" : "");
    if (room)
        text_printf(&out, "%s%s", out.length > 0 ? " && " : "", room);
    if (usable)
        text_printf(&out, "%s%s", out.length > 0 ? " && " : "", usable);
    return out.data;
}

/* Writes the chain; true when its end cannot be reached. */
static bool write_candidates(arena *a, text *out, const candidates *list, const char *indent)
{
    for (size_t i = 0; i < list->count; i++) {
        const candidate *c = &list->items[i];
        const char *condition = candidate_condition(a, list, i);
        if (condition[0])
            c_add_wrapped(out, arena_format(a, "%sif (", indent), condition, ")\n    ");
        text_printf(out, "%sreturn &%s_kernel;\n", indent, c->variant->function);
        if (!condition[0])
            return true;
    }
    return false;
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static bool same_choice(const bundle_family *f, const bundle_variant *x, const bundle_variant *y)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->param && strcmp(x->variant->values[field->param_index].text,
                                   y->variant->values[field->param_index].text) != 0)
            return false;
    }
    return true;
}

/* The variants that agree with the first of those left, in order; they are taken out of `left`. */
static size_t take_choice(const bundle_family *f, bundle_variant **left, size_t *left_count,
                          bundle_variant **choice)
{
    size_t count = 0, kept = 0;
    bundle_variant *first = left[0];
    for (size_t i = 0; i < *left_count; i++) {
        if (same_choice(f, first, left[i]))
            choice[count++] = left[i];
        else
            left[kept++] = left[i];
    }
    *left_count = kept;
    return count;
}

const char *choice_condition(arena *a, const bundle_family *f, const kiln_variant *v)
{
    text out = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->param)
            continue;
        const char *value = v->values[field->param_index].text;
        text_add(&out, out.length > 0 ? " && " : "");
        if (field->param->type == KILN_PARAM_BOOL)
            text_printf(&out, "%sa.%s", strcmp(value, "true") == 0 ? "" : "!", field->name);
        else
            text_printf(&out, "a.%s == %s", field->name, c_value(a, f, field->param, value));
    }
    return out.data;
}

/* Writes all choices; true when the function's end cannot be reached. */
static bool write_choices(arena *a, text *out, const bundle_family *f)
{
    bundle_variant **left = arena_copy(a, f->variants, f->variant_count * sizeof *left);
    bundle_variant **choice = arena_alloc(a, f->variant_count * sizeof *choice);
    size_t left_count = f->variant_count;
    bool always_ends = false;
    while (left_count > 0) {
        const size_t count = take_choice(f, left, &left_count, choice);
        const candidates list = candidates_of(a, f->family, choice, count);
        const char *condition = choice_condition(a, f, choice[0]->variant);
        if (list.count == 0)
            continue;
        if (condition[0] == '\0') {
            always_ends = write_candidates(a, out, &list, "    ");
            continue;
        }
        const bool is_one = list.count == 1 && !list.items[0].condition;
        c_add_wrapped(out, "    if (", condition, is_one ? ")\n" : ") {\n");
        write_candidates(a, out, &list, "        ");
        text_add(out, is_one ? "" : "    }\n");
    }
    return always_ends;
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

static bool names_params(const bundle_family *f)
{
    return f->field_count > 0 && f->fields[f->field_count - 1].param;
}

static bool conditions_use_arguments(arena *a, const kiln_family *family)
{
    for (const kiln_dispatch *row = family->dispatch; row && row->condition; row++)
        if (expression_uses(expression_parse(a, family, row->condition), NAME_ARG))
            return true;
    return false;
}

static size_t count_choices(arena *a, const bundle_family *f)
{
    bundle_variant **left = arena_copy(a, f->variants, f->variant_count * sizeof *left);
    bundle_variant **choice = arena_alloc(a, f->variant_count * sizeof *choice);
    size_t left_count = f->variant_count, count = 0;
    for (; left_count > 0; count++)
        take_choice(f, left, &left_count, choice);
    return count;
}

const char *what_there_is(arena *a, const bundle_family *f)
{
    size_t combinations = 1;
    text out = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        if (!f->fields[i].param)
            continue;
        const char **values;
        const size_t count = family_values(a, f, f->fields[i].param_index, &values);
        combinations *= count;
        text_printf(&out, "%s%s", out.length > 0 ? ", " : "the bundle has ", f->fields[i].name);
        for (size_t k = 0; k < count; k++)
            text_printf(&out, " %s", values[k]);
    }
    if (count_choices(a, f) < combinations)
        text_add(&out, "; not each with each");
    return out.length > 0 ? out.data : "no variant of the bundle serves these arguments";
}

void write_defaults(arena *a, text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->when_zero)
            text_printf(out, "    if (a.%s == 0)\n        a.%s = %s;\n", field->name, field->name,
                        c_value(a, f, field->param, field->when_zero));
    }
}

/* choose_FAMILY; true when it never returns null. */
static bool write_choose_function(arena *a, text *out, const bundle_family *f)
{
    text body = text_new(a);
    write_defaults(a, &body, f);
    const bool always_ends = write_choices(a, &body, f);
    text_add(&body, always_ends ? "}\n" : "    return NULL;\n}\n");

    text_add(out, "\n/* Which variant serves these arguments on this device. */\n");
    c_add_wrapped(out, arena_format(a, "static const kiln_kernel *choose_%s(", f->family->name),
                  arena_format(a, "const kiln_loader *loader, %s a", f->args_struct), ")\n{\n");
    if (!strstr(body.data, "loader->") && !strstr(body.data, "(loader,"))
        text_add(out, "    (void)loader;\n");
    if (!names_params(f) && !conditions_use_arguments(a, f->family))
        text_add(out, "    (void)a;\n");
    text_add_bytes(out, body.data, body.length);
    return always_ends;
}

static void write_pick_function(arena *a, text *out, const bundle_family *f, bool never_fails)
{
    const kiln_family *family = f->family;
    text_add(out, "\n");
    c_add_pick_prototype(out, f, ")\n{\n");
    text_printf(out,
                "    if (!kernel)\n"
                "        return kiln_begin(loader, NULL, %s_name);\n"
                "    *kernel = NULL;\n",
                family->name);
    write_call_of_check(a, out, f, "check", "args");
    text_printf(out, "    *kernel = choose_%s(loader, *args);\n", family->name);
    if (!never_fails) {
        text_add(out, "    if (!*kernel) {\n");
        c_add_text_constant(out, 8, "detail", what_there_is(a, f));
        text_printf(out, "        return kiln_fail(loader, KILN_ERROR_NO_VARIANT, %s_name, detail);\n    }\n",
                    family->name);
    }
    text_add(out, "    return KILN_OK;\n}\n");
}

void write_family_function(arena *a, text *out, const bundle_family *f)
{
    if (strcmp(f->function, f->variants[0]->function) == 0)
        return; /* no parameters: the variant's function is the family's */
    write_pick_function(a, out, f, write_choose_function(a, out, f));
    text_add(out, "\n");
    c_add_prototype(out, f->function, f->args_struct, ")\n{\n");
    text_printf(out,
                "    const kiln_kernel *kernel;\n"
                "    const kiln_status status = %s_pick(loader, args, &kernel);\n"
                "    return kernel ? kernel->run(loader, stream, args) : status;\n"
                "}\n",
                f->function);
}
