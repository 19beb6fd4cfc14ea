/* The checks that a family makes before every launch, and each variant's typed function. */
#include <string.h>

#include "c_text.h"
#include "family/family.h"
#include "maps.h"
#include "pointers.h"
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

/* A broken rule's message; for a variant, with the tuning values that the rule uses and its text does not have. */
static const char *rule_detail(arena *a, const kiln_rule *rule, const expression *condition, const variant *v)
{
    text out = text_new(a);
    for (size_t i = 0; v && i < family_param_count(v->family); i++) {
        const kiln_param *param = &v->family->params[i];
        const char *named = arena_format(a, "%s %s", param->name, v->values[i].text); /* "strategy tiles" */
        if (param->role == KILN_ROLE_TUNING && expression_uses_param(condition, i) &&
            !strstr(rule->text, named))
            text_printf(&out, "%s%s=%s", out.length > 0 ? ", " : ", with ", param->name, v->values[i].text);
    }
    return arena_format(a, "%s%s", rule->text, out.data);
}

/* The rules that use parameters, with v's substituted; v null: the rules that use none. */
static void write_rules(arena *a, text *out, const bundle_family *f, const variant *v)
{
    const kiln_family *family = f->family;
    for (const kiln_rule *rule = family->rules; rule && rule->condition; rule++) {
        const expression *broken = expression_parse(a, family, arena_format(a, "!(%s)", rule->condition));
        if (expression_uses(broken, NAME_PARAM) != (v != NULL) || !family_asks_rule(a, f, rule))
            continue;
        const char *detail = rule_detail(a, rule, broken, v);
        broken = expression_bind(a, broken, v);
        uint64_t value;
        const bool never = expression_is_constant(broken, &value) && value == 0;
        if (!never)
            write_failure(out, f, c_expression(a, broken, "a->"), "KILN_ERROR_BAD_ARGUMENT", detail);
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

/* unread_FAMILY: names a member that is set though no variant of the bundle reads it. False: all are read. */
static bool write_unread_function(text *out, const bundle_family *f)
{
    arena *a = out->arena;
    text constants = text_new(a), chain = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->is_read || field->is_ignored || field->elements)
            continue;
        c_add_text_constant(&constants, 4, arena_format(a, "%s_is_set", field->name),
                            arena_format(a, "%s must be 0: this bundle does not read it", field->member));
        text_printf(&chain, "a->%s != 0 ? %s_is_set\n           : ", field->member, field->name);
    }
    if (chain.length == 0)
        return false;
    text_printf(out,
                "\n/* The message about a set member that no variant reads, or null. */\n"
                "static const char *unread_%s(const %s *a)\n{\n%s    return %sNULL;\n}\n",
                f->family->name, f->args_struct, constants.data, chain.data);
    return true;
}

static void begin_check(text *out, const bundle_family *f, const char *check)
{
    c_add_wrapped(out, arena_format(out->arena, "static kiln_status %s_%s(", check, f->family->name),
                  arena_format(out->arena, "kiln_loader *loader, const %s *a", f->args_struct), ")\n{\n");
}

/* A workspace's size is computed before pointers are known, so its family has the rules in a separate function. */
void write_family_check(arena *a, text *out, const bundle_family *f)
{
    const kiln_family *family = f->family;
    const bool has_two = f->workspace != NULL;
    const char *empty =
        family->empty ? c_expression(a, bind_text(a, family, family->empty, NULL), "a->") : NULL;
    const bool has_unread = write_unread_function(out, f);
    text_add(out, "\n/* The checks that every variant makes. */\n");
    begin_check(out, f, has_two ? "rules" : "check");
    text_printf(out,
                "    const kiln_status status = kiln_begin(loader, a, %s_name);\n"
                "    if (status != KILN_OK)\n"
                "        return status;\n",
                family->name);
    if (has_unread)
        text_printf(out,
                    "    const char *unread = unread_%s(a);\n"
                    "    if (unread)\n"
                    "        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, %s_name, unread);\n",
                    family->name, family->name);
    write_bool_checks(a, out, f);
    write_rules(a, out, f, NULL);
    if (has_two) {
        text_add(out, "    return KILN_OK;\n}\n\n");
        begin_check(out, f, "check");
        write_call_of_check(a, out, f, "rules", "a");
    } else if (empty) {
        text_printf(out, "    if (%s)\n        return KILN_OK;\n", empty);
    }
    if (f->pointers[0].count > 0)
        pointers_write_check(a, out, f, &f->pointers[0], "return ");
    else
        text_add(out, "    return KILN_OK;\n");
    text_add(out, "}\n");
}

void write_call_of_check(arena *a, text *out, const bundle_family *f, const char *check, const char *args)
{
    const kiln_family *family = f->family;
    const char *empty = "";
    if (family->empty) {
        const char *prefix = arena_format(a, "%s->", args);
        empty = c_expression(a, bind_text(a, family, family->empty, NULL), prefix);
        empty = arena_format(a, strstr(empty, "&&") ? " || (%s)" : " || %s", empty); /* -Wparentheses */
    }
    text_printf(out, "    kiln_status status = %s_%s(loader, %s);\n", check, family->name, args);
    c_add_wrapped(out, "    if (", arena_format(a, "status != KILN_OK%s", empty),
                  ")\n        return status;\n");
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

/* The scalar types that a struct's double is narrowed to. */
static bool is_narrowed(const bundle_field *field, const variant *v)
{
    return field->arg->kind == KILN_ARG_VALUE && field->arg->type[0] == '$' &&
           strcmp(variant_arg_type(v, field->arg), "f64") != 0;
}

/* A finite double must stay finite. */
static void write_narrowing(arena *a, text *out, const bundle_family *f, const bundle_field *field)
{
    const char *name = field->name, *member = field->member;
    text_printf(out, "    float %s_f32 = (float)a->%s;\n", name, member);
    write_failure(
        out, f, arena_format(a, "a->%s - a->%s >= 0 && !(%s_f32 - %s_f32 >= 0)", member, member, name, name),
        "KILN_ERROR_BAD_ARGUMENT", arena_format(a, "%s is beyond the range of f32", name));
}

/* cuLaunchKernel's params: the address of each of the kernel's parameters. */
static void write_params(arena *a, text *out, const bundle_variant *bv)
{
    const bundle_family *f = bv->family;
    const variant *v = bv->variant;
    text list = text_new(a);
    for (size_t i = 0, count = variant_param_count(v); i < count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!variant_has_arg(v, field->arg))
            continue;
        text_add(&list, list.length > 0 ? ", " : "");
        if (is_narrowed(field, v)) {
            if (strcmp(variant_arg_type(v, field->arg), "f32") != 0)
                family_error("%s: scalar %s is %s; only f32 and f64 can be passed", v->id, field->name,
                             variant_arg_type(v, field->arg));
            write_narrowing(a, out, f, field);
            text_printf(&list, "&%s_f32", field->name);
        } else {
            text_printf(&list, "&a->%s", field->member);
        }
    }
    maps_write(a, out, &list, bv);
    if (list.length > 0)
        c_add_wrapped(out, "    const void *const params[] = {", list.data, "};\n");
}

/* If the caller gives block dimensions, they follow the grid's. */
static void write_grid(arena *a, text *out, const variant *v)
{
    text list = text_new(a);
    const bool has_block = v->given_block[0];
    for (int i = 0; i < (has_block ? 6 : 3); i++) {
        const char *value = i < 3 ? v->family->grid[i] : v->given_block[i - 3];
        text_printf(&list, "%s%s", i ? ", " : "",
                    c_expression(a, bind_text(a, v->family, value ? value : "1", v), "a->"));
    }
    c_add_wrapped(out, has_block ? "    const uint64_t grid[6] = {" : "    const uint64_t grid[3] = {",
                  list.data, "};\n");
}

static bool takes_arguments(const variant *v)
{
    for (size_t i = 0, count = variant_param_count(v); i < count; i++)
        if (variant_has_arg(v, &v->family->args[i]))
            return true;
    return false;
}

/* run_ENTRY: the variant's own checks, and the launch. check_FAMILY has already checked the argument struct. */
static void write_run_function(arena *a, text *out, const bundle_variant *bv)
{
    const variant *v = bv->variant;
    const bundle_family *f = bv->family;
    const char *shared = c_expression(a, bind_text(a, v->family, family_shared_bytes(v->family), v), "a->");
    text body = text_new(a);
    write_rules(a, &body, f, v);
    if (bv->extent_check > 0) {
        text_printf(&body,
                    "    kiln_status status = %s_extents_%u(loader, a);\n"
                    "    if (status != KILN_OK)\n        return status;\n",
                    f->family->name, (unsigned)bv->extent_check);
    }
    if (bv->pointers.count > 0) {
        pointers_write_check(a, &body, f, &bv->pointers,
                             bv->extent_check > 0 ? "status = " : "const kiln_status status = ");
        text_add(&body, "    if (status != KILN_OK)\n        return status;\n");
    }
    write_grid(a, &body, v);
    write_params(a, &body, bv);
    c_add_wrapped(&body, "    return kiln_launch(",
                  arena_format(a, "loader, &%s_kernel, stream, grid, %s, %s", bv->function, shared,
                               takes_arguments(v) ? "params" : "NULL"),
                  ");\n}\n");

    text_add(out, "\n");
    c_add_wrapped(out, arena_format(a, "static kiln_status run_%s(", v->entry),
                  "kiln_loader *loader, CUstream stream, const void *args", ")\n{\n");
    if (strstr(body.data, "a->"))
        text_printf(out, "    const %s *a = args;\n", f->args_struct);
    else
        text_add(out, "    (void)args;\n");
    text_add_bytes(out, body.data, body.length);
}

/* ---- the variant's function -------------------------------------------------------------------------------------- */

/* call_FAMILY: checks, and runs one kernel, unless the caller names values of another variant. 0 names nothing, for a
 * bool too: false and unset are the same. */
void write_call_function(arena *a, text *out, const bundle_family *f)
{
    text values = text_new(a), other = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->param)
            continue;
        text_printf(&values, ", uint32_t its_%s", field->name);
        text_printf(&other, "%s(a->%s != 0 && a->%s != its_%s)", other.length > 0 ? " || " : "", field->name,
                    field->name, field->name);
    }
    if (values.length == 0)
        return;
    text_add(out, "\n/* Launches one variant; the numbers and the text are its contract. */\n");
    c_add_wrapped(out, arena_format(a, "static kiln_status call_%s(", f->family->name),
                  arena_format(a,
                               "kiln_loader *loader, CUstream stream, const %s *a, const kiln_kernel "
                               "*kernel%s, const char *has",
                               f->args_struct, values.data),
                  ")\n{\n");
    write_call_of_check(a, out, f, "check", "a");
    c_add_wrapped(out, "    if (", other.data, ")\n");
    text_printf(out,
                "        return kiln_fail(loader, KILN_ERROR_NO_VARIANT, %s_name, has);\n"
                "    return kernel->run(loader, stream, a);\n}\n",
                f->family->name);
}

/* Writes the variant's function through call_FAMILY; false: the family has none. */
static bool write_call(arena *a, text *out, const bundle_variant *bv)
{
    const bundle_family *f = bv->family;
    text values = text_new(a), has = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->param)
            continue;
        const char *value = bv->variant->values[field->param_index].text;
        const bool is_bool = field->param->type == KILN_PARAM_BOOL;
        text_printf(&has, "%s%s %s", has.length > 0 ? ", " : "this variant has ", field->name, value);
        text_printf(&values, "%s, ",
                    is_bool ? (value[0] == 't' ? "1" : "0") : c_value(a, f, field->param, value));
    }
    if (has.length == 0)
        return false;
    c_add_text_constant(out, 4, "has", has.data);
    c_add_wrapped(out, arena_format(a, "    return call_%s(", f->family->name),
                  arena_format(a, "loader, stream, a, &%s_kernel, %shas", bv->function, values.data),
                  ");\n}\n\n");
    return true;
}

/* Its typed function, and an untyped one for programs without the type of its arguments. */
void write_variant_function(arena *a, text *out, const bundle_variant *bv)
{
    const variant *v = bv->variant;
    const bundle_family *f = bv->family;
    write_run_function(a, out, bv);
    text_add(out, "\n");
    c_add_wrapped(out, arena_format(a, "kiln_status %s(", bv->function),
                  arena_format(a, "kiln_loader *loader, CUstream stream, const %s *a", f->args_struct),
                  ")\n{\n");
    if (!write_call(a, out, bv)) {
        write_call_of_check(a, out, f, "check", "a");
        text_printf(out, "    return run_%s(loader, stream, a);\n}\n\n", v->entry);
    }
    c_add_wrapped(out, arena_format(a, "static kiln_status launch_%s(", v->entry),
                  "kiln_loader *loader, CUstream stream, const void *args", ")\n{\n");
    text_printf(out, "    return %s(loader, stream, args);\n}\n", bv->function);
}
