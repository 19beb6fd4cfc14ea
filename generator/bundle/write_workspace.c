/* Functions that return a call's workspace size: for the variant that would be picked with a large enough workspace,
 * and enough for every variant at every smaller size.
 *
 * A variant that is best with an unlimited workspace is also best with the size that it needs. Needs are monotonic in
 * the arguments (the family is checked for it), so the maximum at the largest sizes is enough. */
#include <string.h>

#include "c_text.h"
#include "family/family.h"
#include "write.h"

/* The need of one variant with a workspace. */
static void write_need(arena *a, text *out, const bundle_family *f, const bundle_variant *bv)
{
    const kiln_workspace *w = f->workspace;
    const variant *v = bv->variant;
    const kiln_arg *arg = arg_find(v->family->args, w->arg),
                   *counters = arg_find(v->family->args, w->counters);
    const char *counter_bytes =
        arena_format(a, "(%s) * %u", w->counter_elements ? w->counter_elements : counters->shape,
                     (unsigned)variant_element_bytes(a, v, counters));
    const char *condition = choice_condition(a, f, v, NULL);
    text_printf(out, "    if (kernel ? kernel == &%s_kernel\n", bv->function);
    c_add_wrapped(out, "               : ", condition[0] ? condition : "1", ") {\n");
    text_printf(out, "        a.%s = %s;\n", w->size,
                c_expression(a, bind_text(a, v->family, w->elements, v), "a."));
    text_printf(out, "        *workspace_bytes = maximum(*workspace_bytes, a.%s * %u);\n", w->size,
                (unsigned)variant_element_bytes(a, v, arg));
    c_add_wrapped(out, "        *counter_bytes = maximum(*counter_bytes, ",
                  c_expression(a, bind_text(a, v->family, counter_bytes, v), "a."), ");\n    }\n");
}

/* Writes need_FAMILY: the workspace that a kernel needs, or for a null kernel the largest need of any kernel with the contract. */
static void write_need_function(arena *a, text *out, const bundle_family *f)
{
    text_add(
        out,
        "\n/* Raises the bytes to this kernel's need; null: to the largest need in the caller's contract. */\n");
    c_add_wrapped(
        out, arena_format(a, "static void need_%s(", f->family->name),
        arena_format(a,
                     "const kiln_kernel *kernel, const %s *args, uint64_t *workspace_bytes, uint64_t "
                     "*counter_bytes",
                     f->args_struct),
        ")\n{\n");
    text_printf(out, "    %s a = *args;\n", f->args_struct);
    write_defaults(a, out, f);
    size_t count = 0;
    for (size_t i = 0; i < f->variant_count; i++) {
        const variant *v = f->variants[i]->variant;
        if (!variant_has_arg(v, arg_find(v->family->args, f->workspace->arg)))
            continue;
        write_need(a, out, f, f->variants[i]);
        count++;
    }
    if (count == 0)
        text_add(out, "    (void)kernel, (void)a, (void)workspace_bytes, (void)counter_bytes;\n");
    text_add(out, "}\n");
}

/* Begins a function that chooses a kernel with an unlimited workspace. */
static void begin_function(arena *a, text *out, const bundle_family *f)
{
    write_check_of_result(out, f, "!workspace_bytes || !counter_bytes",
                          "workspace_bytes or counter_bytes is null");
    text_add(out, "    *workspace_bytes = *counter_bytes = 0;\n");
    write_call_of_check(a, out, f, "rules", "args");
    text_printf(out,
                "    %s a = *args;\n"
                "    a.%s = UINT64_MAX >> 8; /* as much as an array may have */\n"
                "    const kiln_kernel *kernel;\n"
                "    status = choose_%s(loader, &a, &kernel);\n"
                "    if (status != KILN_OK)\n"
                "        return status;\n",
                f->args_struct, f->workspace->size, f->family->name);
}

/* Pointers may still be null; the alignment of others may decide. */
static void write_addresses(text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const kiln_arg *arg = f->fields[i].arg;
        if (arg && (arg->kind == KILN_ARG_IN || arg->kind == KILN_ARG_OUT || arg->kind == KILN_ARG_CONSTANT ||
                    arg->kind == KILN_ARG_INOUT))
            text_printf(out, "    a.%s += a.%s == 0 ? %u : 0;\n", f->fields[i].member, f->fields[i].member,
                        MOST_ALIGNMENT);
    }
}

/* Reports the error that a launch with enough workspace would give. */
static void write_function(arena *a, text *out, const bundle_family *f)
{
    const kiln_workspace *w = f->workspace;
    text_add(out, "\n");
    c_add_query_prototype(out, f, "workspace", ")\n{\n");
    begin_function(a, out, f);
    text_printf(out, "    a.%s = a.%s = %u; /* some address */\n", w->arg, w->counters, MOST_ALIGNMENT);
    write_addresses(out, f);
    text_printf(out,
                "    status = kernel->run(loader, KILN_NO_LAUNCH, &a);\n"
                "    if (status == KILN_OK)\n"
                "        need_%s(kernel, &a, workspace_bytes, counter_bytes);\n"
                "    return status;\n}\n",
                f->family->name);
}

static void write_max_function(arena *a, text *out, const bundle_family *f)
{
    text_add(out, "\n");
    c_add_query_prototype(out, f, "workspace_max", ")\n{\n");
    begin_function(a, out, f);
    text_printf(out, "    need_%s(NULL, &a, workspace_bytes, counter_bytes);\n    return status;\n}\n",
                f->family->name);
}

void write_workspace_functions(arena *a, text *out, const bundle_family *f)
{
    if (!f->workspace)
        return;
    write_need_function(a, out, f);
    write_function(a, out, f);
    write_max_function(a, out, f);
}
