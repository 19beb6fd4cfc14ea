/* The functions with fewer arguments than the family's own: they fill its argument struct and call it. */
#include <string.h>

#include "c_text.h"
#include "family/family.h"
#include "write.h"

/* An expression has 64 bits, more than most fields, so it is cast. */
static const char *printed_value(arena *a, const kiln_family *scope, const bundle_field *field,
                                 const char *value)
{
    const expression *e = bind_text(a, scope, value, NULL);
    const char *printed = c_expression(a, e, "a.");
    uint64_t constant;
    if (expression_is_constant(e, &constant) || strcmp(field->c_type, "uint64_t") == 0)
        return printed;
    return arena_format(a, "(%s)(%s)", field->c_type, printed);
}

/* The value of a field of the family's struct; null: 0. */
static const char *field_value(arena *a, const bundle_family *f, const bundle_field *field,
                               const kiln_call *call)
{
    if (!field->is_read)
        return NULL;
    if (field->param || arg_find(call->args, field->name))
        return arena_format(a, "a.%s", field->member);
    const kiln_family *scope = family_call_scope(a, f->family, call);
    const char *value = given_value(call->values, field->name);
    const kiln_arg *same = value ? arg_find(scope->args, value) : NULL;
    if (same && strcmp(same->type, field->arg->type) == 0)
        return arena_format(a, "a.%s", same->name);
    return value ? printed_value(a, scope, field, value) : NULL;
}

static void write_call(arena *a, text *out, const bundle_family *f, const bundle_family *call)
{
    text_add(out, "\n");
    c_add_prototype(out, call->function, call->args_struct, ")\n{\n");
    text_printf(out,
                "    if (!args)\n"
                "        return %s(loader, stream, NULL);\n"
                "    %s a = *args;\n",
                f->function, call->args_struct);
    write_defaults(a, out, call);
    text_printf(out, "    const %s all = {\n", f->args_struct);
    for (size_t i = 0; i < f->field_count; i++) {
        const char *value = field_value(a, f, &f->fields[i], call->call);
        if (value)
            text_printf(out, "        .%s = %s,\n", f->fields[i].member, value);
    }
    text_printf(out, "    };\n    return %s(loader, stream, &all);\n}\n", f->function);
}

void write_calls(arena *a, text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->call_count; i++)
        write_call(a, out, f, &f->calls[i]);
}
