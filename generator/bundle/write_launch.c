/* The checks that a family makes before every launch, and each variant's typed function. */
#include <string.h>

#include "../family.h"
#include "c_text.h"
#include "write.h"

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static void write_failure(text *out, const bundle_family *f, const char *condition, const char *status,
                          const char *detail)
{
    c_add_wrapped(out, "    if (", condition, ") {\n");
    c_add_text_constant(out, 8, "detail", detail);
    text_printf(out, "        return kiln_fail(loader, %s, %s_name, detail);\n    }\n", status,
                f->family->name);
}

/* What a broken rule says; of a variant with the values that dispatch chose and the rule asks about. */
static const char *rule_detail(arena *a, const kiln_rule *rule, const expression *condition,
                               const kiln_variant *v)
{
    text out = text_new(a);
    for (size_t i = 0; v && i < family_param_count(v->family); i++) {
        const kiln_param *param = &v->family->params[i];
        if (param->role == KILN_ROLE_TUNING && expression_uses_param(condition, i))
            text_printf(&out, "%s%s=%s", out.length > 0 ? ", " : ", with ", param->name, v->values[i].text);
    }
    return arena_format(a, "%s%s", rule->text, out.data);
}

/* The rules that ask for parameters, with those of v put in; v null: the rules that ask for none. */
static void write_rules(arena *a, text *out, const bundle_family *f, const kiln_variant *v,
                        const char *prefix)
{
    const kiln_family *family = f->family;
    for (const kiln_rule *rule = family->rules; rule && rule->condition; rule++) {
        const expression *broken = expression_parse(a, family, arena_format(a, "!(%s)", rule->condition));
        if (expression_uses(broken, NAME_PARAM) != (v != NULL))
            continue;
        const char *detail = rule_detail(a, rule, broken, v);
        broken = expression_bind(a, broken, v);
        uint64_t value;
        const bool never = expression_is_constant(broken, &value) && value == 0;
        if (!never)
            write_failure(out, f, c_expression(a, broken, prefix), "KILN_ERROR_BAD_ARGUMENT", detail);
    }
}

/* v null: of what every variant has; the variant's own check has the pointers that only some have, and those of which a
 * parameter says whether they point at anything. */
static void write_null_check(arena *a, text *out, const bundle_family *f, const kiln_arg *arg,
                             const kiln_variant *v, const char *prefix)
{
    if (arg->kind == KILN_ARG_VALUE || arg->kind == KILN_ARG_OPTIONAL_OUT)
        return;
    const expression *missing = expression_missing(a, f->family, arg);
    if ((arg->when || expression_uses(missing, NAME_PARAM)) == (v != NULL))
        write_failure(out, f, c_expression(a, expression_bind(a, missing, v), prefix),
                      "KILN_ERROR_NULL_POINTER", arena_format(a, "%s is null", arg->name));
}

static void write_alignment_check(arena *a, text *out, const bundle_family *f, const kiln_arg *arg,
                                  uint32_t alignment, const char *prefix)
{
    if (arg->kind == KILN_ARG_VALUE || alignment <= 1)
        return;
    write_failure(out, f, arena_format(a, "%s%s %% %u != 0", prefix, arg->name, (unsigned)alignment),
                  "KILN_ERROR_MISALIGNED",
                  arena_format(a, "%s must be aligned to %u bytes", arg->name, (unsigned)alignment));
}

/* Of the pointers that every variant of the family has. */
static void write_common_pointer_checks(arena *a, text *out, const bundle_family *f, const char *prefix)
{
    for (const kiln_arg *arg = f->family->args; arg->name; arg++)
        write_null_check(a, out, f, arg, NULL, prefix);
    for (const kiln_arg *arg = f->family->args; arg->name; arg++)
        if (!arg->when)
            write_alignment_check(a, out, f, arg, arg->alignment, prefix);
}

/* Of the pointers that this variant has and others lack, in this bundle or in another, or that it wants aligned to more:
 * after the variant's rules, which say better why a workspace is missing than that its pointer is null. */
static void write_own_pointer_checks(arena *a, text *out, const bundle_family *f, const kiln_variant *v,
                                     const char *prefix)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->arg && variant_has_arg(a, v, field->arg))
            write_null_check(a, out, f, field->arg, v, prefix);
    }
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->arg || field->arg->kind == KILN_ARG_VALUE || !variant_has_arg(a, v, field->arg))
            continue;
        const uint32_t alignment = variant_arg_alignment(a, v, field->arg);
        if (field->arg->when || alignment > field->arg->alignment)
            write_alignment_check(a, out, f, field->arg, alignment, prefix);
    }
}

static void write_bool_checks(arena *a, text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->param && field->param->type == KILN_PARAM_BOOL)
            write_failure(out, f, arena_format(a, "a->%s > 1", field->name), "KILN_ERROR_BAD_ARGUMENT",
                          arena_format(a, "%s must be 0 or 1", field->name));
    }
}

void write_family_check(arena *a, text *out, const bundle_family *f)
{
    const kiln_family *family = f->family;
    text_printf(out,
                "\n/* What every variant asks of its arguments. */\n"
                "static kiln_status check_%s(kiln_loader *loader, const %s *a)\n"
                "{\n"
                "    const kiln_status status = kiln_begin(loader, a, %s_name);\n"
                "    if (status != KILN_OK)\n"
                "        return status;\n",
                family->name, f->args_struct, family->name);
    write_bool_checks(a, out, f);
    write_rules(a, out, f, NULL, "a->");
    if (family->empty)
        text_printf(out, "    if (%s)\n        return KILN_OK;\n",
                    c_expression(a, bind_text(a, family, family->empty, NULL), "a->"));
    write_common_pointer_checks(a, out, f, "a->");
    text_add(out, "    return KILN_OK;\n}\n");
}

/* ---- launch ------------------------------------------------------------------------------------------------------ */

/* The scalar types that a struct's double is narrowed to. */
static bool is_narrowed(const bundle_field *field, const kiln_variant *v)
{
    return field->arg->kind == KILN_ARG_VALUE && field->arg->type[0] == '$' &&
           strcmp(variant_arg_type(v, field->arg), "f64") != 0;
}

/* A double that is finite stays so. */
static void write_narrowing(arena *a, text *out, const bundle_family *f, const bundle_field *field)
{
    const char *name = field->name;
    text_printf(out, "    float %s_f32 = (float)a.%s;\n", name, name);
    write_failure(out, f,
                  arena_format(a, "a.%s - a.%s >= 0 && !(%s_f32 - %s_f32 >= 0)", name, name, name, name),
                  "KILN_ERROR_BAD_ARGUMENT", arena_format(a, "%s is beyond the range of f32", name));
}

/* What cuLaunchKernel takes: where each of the kernel's parameters lies. */
static void write_params(arena *a, text *out, const bundle_family *f, const kiln_variant *v)
{
    text list = text_new(a);
    for (size_t i = 0; i < f->field_count && f->fields[i].arg && i < variant_param_count(v); i++) {
        const bundle_field *field = &f->fields[i];
        if (!variant_has_arg(a, v, field->arg))
            continue;
        text_add(&list, list.length > 0 ? ", " : "");
        if (is_narrowed(field, v)) {
            if (strcmp(variant_arg_type(v, field->arg), "f32") != 0)
                family_error("%s: scalar %s is %s; only f32 and f64 can be passed", v->id, field->name,
                             variant_arg_type(v, field->arg));
            write_narrowing(a, out, f, field);
            text_printf(&list, "&%s_f32", field->name);
        } else {
            text_printf(&list, "&a.%s", field->name);
        }
    }
    if (list.length > 0)
        c_add_wrapped(out, "    void *params[] = {", list.data, "};\n");
}

/* A block that the caller gives stands behind the grid. */
static void write_grid(arena *a, text *out, const kiln_variant *v)
{
    text list = text_new(a);
    const bool has_block = v->external && v->external->block[0];
    for (int i = 0; i < (has_block ? 6 : 3); i++) {
        const char *value = i < 3 ? v->family->grid[i] : v->external->block[i - 3];
        text_printf(&list, "%s%s", i ? ", " : "",
                    c_expression(a, bind_text(a, v->family, value ? value : "1", v), "a."));
    }
    c_add_wrapped(out, has_block ? "    const uint64_t grid[6] = {" : "    const uint64_t grid[3] = {",
                  list.data, "};\n");
}

static bool takes_arguments(arena *a, const kiln_variant *v)
{
    for (size_t i = 0; v->family->args[i].name && i < variant_param_count(v); i++)
        if (variant_has_arg(a, v, &v->family->args[i]))
            return true;
    return false;
}

/* A selector that names another variant. 0 names none, of a bool too: it cannot be told from one that was left out. */
static void write_selector_check(arena *a, text *out, const bundle_family *f, const kiln_variant *v)
{
    text other = text_new(a), has = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->param)
            continue;
        const char *value = v->values[field->param_index].text;
        const bool is_bool = field->param->type == KILN_PARAM_BOOL, is_false = strcmp(value, "false") == 0;
        if (!is_bool)
            text_printf(&other, "%s(a.%s != 0 && a.%s != %s)", other.length > 0 ? " || " : "", field->name,
                        field->name, c_value(a, f, field->param, value));
        else if (is_false)
            text_printf(&other, "%sa.%s != 0", other.length > 0 ? " || " : "", field->name);
        text_printf(&has, "%s%s %s", has.length > 0 ? ", " : "this variant has ", field->name, value);
    }
    if (other.length > 0)
        write_failure(out, f, other.data, "KILN_ERROR_NO_VARIANT", has.data);
}

void write_variant_function(arena *a, text *out, const bundle_variant *bv)
{
    const kiln_variant *v = bv->variant;
    const kiln_family *family = v->family;
    const bundle_family *f = bv->family;
    text_add(out, "\n");
    c_add_prototype(out, bv->function, f->args_struct, ")\n{\n");
    text_printf(out,
                "    const kiln_status status = check_%s(loader, args);\n"
                "    if (status != KILN_OK)\n"
                "        return status;\n"
                "    %s a = *args;\n",
                family->name, f->args_struct);
    if (family->empty)
        text_printf(out, "    if (%s)\n        return KILN_OK;\n",
                    c_expression(a, bind_text(a, family, family->empty, v), "a."));
    write_selector_check(a, out, f, v);
    write_rules(a, out, f, v, "a.");
    write_own_pointer_checks(a, out, f, v, "a.");
    write_grid(a, out, v);
    write_params(a, out, f, v);
    const char *shared = family_shared_bytes(family);
    c_add_wrapped(out, "    return kiln_launch(",
                  arena_format(a, "loader, &%s_kernel, stream, grid, %s, %s", bv->function,
                               c_expression(a, bind_text(a, family, shared, v), "a."),
                               takes_arguments(a, v) ? "params" : "NULL"),
                  ");\n}\n");
    text_add(out, "\n");
    c_add_wrapped(out, arena_format(a, "static int launch_%s(", v->entry),
                  "kiln_loader *loader, CUstream stream, const void *args", ")\n{\n");
    text_printf(out, "    return (int)%s(loader, stream, args);\n}\n", bv->function);
}
