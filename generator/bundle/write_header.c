/* NAME.h: what a deployer includes and reads. */
#include "write.h"

#include <inttypes.h>
#include <string.h>

#include <kiln/kiln.h>

#include "c_text.h"
#include "family/family.h"
#include "family/rule_text.h"
#include "family/word_number.h"
#include "support/words.h"

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* "$type" is the type that the parameter names: its only value in this bundle, or the parameter's own name. */
static const char *type_text(arena *a, const bundle_family *f, const kiln_arg *arg)
{
    if (arg->type[0] != '$')
        return arg->type;
    const arg_type_choice choice = family_arg_type_choice(arg);
    const char *name = arena_string(a, arg->type + 1, choice.name_length);
    size_t index;
    if (!family_find_param(f->family, name, &index))
        return name;
    const char **values;
    size_t count = family_values(a, f, index, &values);
    bool is_one = true;
    for (size_t i = 1; i < count; i++)
        is_one &= strcmp(arg_type_for(choice, values[i]), arg_type_for(choice, values[0])) == 0;
    if (is_one)
        return arg_type_for(choice, values[0]);
    return choice.word ? arena_format(a, "%.*s or %s", (int)choice.word_length, choice.word, choice.other)
                       : name;
}

static void add_alignment(arena *a, text *out, const bundle_family *f, const kiln_arg *arg)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t i = 0; i < f->variant_count; i++) {
        const variant *v = f->variants[i]->variant;
        const uint32_t bytes = variant_has_arg(a, v, arg) ? variant_arg_alignment(a, v, arg) : 0;
        least = bytes && bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    const char *own = arg_variant_alignment(f->family, arg);
    if (most > least && own) {
        text_printf(out, ", aligned to %s bytes, %u to %u", own, (unsigned)least, (unsigned)most);
        return;
    }
    if (most > 1)
        text_printf(out, ", aligned to %u bytes", (unsigned)least);
    if (most > least)
        text_printf(out, ", or %u where its elements have as many", (unsigned)most);
}

/* Memory whose size a function tells better than the expression that it evaluates. */
static bool is_of_workspace(const bundle_family *f, const kiln_arg *arg)
{
    const kiln_workspace *w = f->workspace;
    return w && (strcmp(arg->name, w->arg) == 0 || strcmp(arg->name, w->counters) == 0);
}

static const char *arg_comment(arena *a, const bundle_family *f, const kiln_arg *arg)
{
    static const char *const directions[] = {
        [KILN_ARG_IN] = "in, ",
        [KILN_ARG_OUT] = "out, ",
        [KILN_ARG_INOUT] = "in and out, ",
        [KILN_ARG_OPTIONAL_IN] = "in, may be null, ",
        [KILN_ARG_OPTIONAL_OUT] = "out, may be null, ",
        [KILN_ARG_SCRATCH] = "scratch, ",
        [KILN_ARG_CONSTANT] = "in, constant, ",
    };
    text out = text_new(a);
    if (arg->kind == KILN_ARG_VALUE && arg->shape) {
        text_printf(&out, "%s bytes", arg->shape);
    } else if (arg->kind == KILN_ARG_VALUE) {
        text_printf(&out, "%s%s", type_text(a, f, arg), arg->type[0] == '$' ? ", passed as double" : "");
    } else {
        text_printf(&out, "%s%s", directions[arg->kind], type_text(a, f, arg));
        if (is_of_workspace(f, arg))
            text_printf(&out, ", as many as %s_workspace says", f->function);
        else if (arg->shape)
            text_printf(&out, "[%s]", arg->shape);
        add_alignment(a, &out, f, arg);
    }
    if (arg->when)
        text_printf(&out, ", only when %s", arg->when);
    if (arg->summary)
        text_printf(&out, ": %s", arg->summary);
    return out.data;
}

static const char *param_comment(arena *a, const bundle_family *f, const bundle_field *field)
{
    text out = text_new(a);
    const kiln_param *param = field->param;
    text_add(&out, param->summary ? param->summary : param->name);
    if (param->type == KILN_PARAM_BOOL) {
        text_add(&out, "; 0 or 1");
    } else {
        if (param->type == KILN_PARAM_WORD)
            text_printf(&out, "; %s%s_...%s", f->enum_prefix, upper_case(a, param->name),
                        words_have_number(param->words) ? ", a number for itself" : "");
        text_printf(&out, "; 0 is %s", field->when_zero ? field->when_zero : "none of them");
    }
    return out.data;
}

/* ---- a family ---------------------------------------------------------------------------------------------------- */

static void write_enum(arena *a, text *out, const bundle_family *f, const bundle_field *field)
{
    const kiln_param *param = field->param;
    text_add(out, "\nenum {\n");
    for (const char *w = param->words; *w; w += strcspn(w, " "), w += *w == ' ') {
        const char *word = arena_string(a, w, strcspn(w, " "));
        const uint32_t number = word_number(a, param, word);
        if (family_has_value(f, field->param_index, word))
            text_printf(out, number > BESIDE_NUMBERS ? "    %s = 0x%x,\n" : "    %s = %u,\n",
                        c_enumerator(a, f, param, word), (unsigned)number);
    }
    text_add(out, "};\n");
}

static void write_enums(arena *a, text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->field_count; i++)
        if (f->fields[i].param && f->fields[i].param->type == KILN_PARAM_WORD)
            write_enum(a, out, f, &f->fields[i]);
}

/* "uint32_t n", "unsigned char range[24] __attribute__((aligned(8)))" */
static const char *declarator(arena *a, const bundle_field *field)
{
    const char *name = field->group_length > 0 ? field->member + field->group_length + 1 : field->name;
    if (field->elements)
        return arena_format(a, "%s %s[%u] __attribute__((aligned(%u)))", field->c_type, name,
                            (unsigned)field->elements, (unsigned)field->alignment);
    return arena_format(a, "%s %s", field->c_type, name);
}

/* The group of a field; "" of none, and behind the last. */
static const char *group_of(arena *a, const bundle_family *f, size_t i)
{
    return i < f->field_count ? arena_string(a, f->fields[i].name, f->fields[i].group_length) : "";
}

static void write_struct(arena *a, text *out, const bundle_family *f)
{
    size_t widest = 0;
    for (size_t i = 0; i < f->field_count; i++) {
        const size_t width = strlen(declarator(a, &f->fields[i])) + (f->fields[i].group_length > 0 ? 4 : 0);
        widest = width > widest ? width : widest;
    }
    const int column = 4 + (int)widest + (int)strlen("; ");
    text_printf(out, "\ntypedef struct %s {\n", f->args_struct);
    if (f->field_count == 0) /* C has no empty struct */
        text_add(out, "    char nothing;\n");
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        const char *group = group_of(a, f, i), *indent = *group ? "        " : "    ";
        if (*group && (i == 0 || strcmp(group_of(a, f, i - 1), group) != 0))
            text_add(out, "    struct {\n");
        const char *declared = arena_format(a, "%s%s;", indent, declarator(a, field));
        text_printf(out, "%s%*s", declared, column - (int)strlen(declared), "");
        c_add_comment(out, column, field->arg ? arg_comment(a, f, field->arg) : param_comment(a, f, field));
        text_add(out, "\n");
        if (*group && strcmp(group_of(a, f, i + 1), group) != 0)
            text_printf(out, "    } %s;\n", group);
    }
    text_printf(out, "} %s;\n", f->args_struct);
}

/* How many of the bundle's variants a call can break it for. */
static size_t count_breakable(arena *a, const bundle_family *f, const kiln_rule *rule)
{
    size_t count = 0;
    for (size_t i = 0; i < f->variant_count; i++) {
        uint64_t value = 0;
        const expression *bound = bind_text(a, f->family, rule->condition, f->variants[i]->variant);
        count += !expression_is_constant(bound, &value) || value == 0;
    }
    return count;
}

static const char *family_comment(arena *a, const bundle_family *f)
{
    const kiln_family *family = f->family;
    text out = text_new(a);
    text_printf(&out, "%s: %s.", family->name, family->summary);
    if (family->source)
        text_printf(&out, "\nSource: %s.", family->source);
    if (family->accuracy)
        text_printf(&out, "\nAccuracy: %s.", family->accuracy);
    if (family->nonfinite)
        text_printf(&out, "\nNaN and infinity: %s.", family->nonfinite);
    if (family->empty)
        text_printf(&out, "\nWhen %s there is nothing to do: KILN_OK without a launch.", family->empty);
    const char *title = "\nRules, else KILN_ERROR_BAD_ARGUMENT:";
    for (const kiln_rule *rule = family->rules; rule && rule->condition; rule++) {
        const size_t count = count_breakable(a, f, rule);
        if (count == 0)
            continue;
        text_printf(&out, "%s\n  - %s", title,
                    count < f->variant_count ? rule_text(a, family, rule) : rule->text);
        title = "";
    }
    return out.data;
}

static void add_declaration(text *out, const bundle_family *f, const char *function)
{
    c_add_prototype(out, function, f->args_struct, ");\n");
}

static void write_call(arena *a, text *out, const bundle_family *call, const char *family_function)
{
    text_add(out, "\n");
    c_add_comment(
        out, 0,
        arena_format(a, "%s: %s. Else like %s.", call->function, call->call->summary, family_function));
    write_struct(a, out, call);
    text_add(out, "\n");
    add_declaration(out, call, call->function);
}

static void write_workspace_declarations(arena *a, text *out, const bundle_family *f)
{
    const kiln_workspace *w = f->workspace;
    text_add(out, "\n");
    c_add_comment(
        out, 0,
        arena_format(
            a,
            "The bytes of %s and %s that the variant takes which is picked when there are as many; 0 "
            "and 0: none. Neither they nor any pointer need be in `args` yet. %s is the bytes over "
            "those of an element.",
            w->arg, w->counters, w->size));
    text_add(out, "\n");
    c_add_query_prototype(out, f, "workspace", ");\n");
    text_add(out, "\n");
    c_add_comment(
        out, 0,
        "Those that are enough for any variant that has what `args` names, at these sizes and at all that are "
        "not larger in any.");
    text_add(out, "\n");
    c_add_query_prototype(out, f, "workspace_max", ");\n");
}

void write_declarations(arena *a, text *out, const bundle_family *f)
{
    const bool has_own = strcmp(f->function, f->variants[0]->function) != 0;
    text_add(out, "\n");
    c_add_comment(out, 0, family_comment(a, f));
    text_add(out, "\n");
    write_enums(a, out, f);
    write_struct(a, out, f);
    if (has_own) {
        text_add(out, "\n");
        add_declaration(out, f, f->function);
        c_add_query_prototype(out, f, "pick", ");\n");
        c_add_query_prototype(out, f, "candidates", ");\n");
    }
    if (f->workspace)
        write_workspace_declarations(a, out, f);
    for (size_t i = 0; i < f->call_count; i++)
        write_call(a, out, &f->calls[i], f->function);
    for (size_t i = 0; i < f->variant_count; i++) {
        const bundle_variant *v = f->variants[i];
        text_add(out, "\n");
        c_add_comment(out, 0, v->variant->id);
        text_printf(out, "\nextern const kiln_kernel %s_kernel;\n", v->function);
        add_declaration(out, f, v->function);
    }
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static const char how_functions_behave[] =
    "\nA function checks its arguments, loads its kernel when it is used first, and launches it on the "
    "stream; it does not wait for the kernel to end. `args` is read before it returns. Pointers are device "
    "addresses; one to an array that has no elements in this call may be null. What a kernel writes must not "
    "overlap anything else that it is given. With any status but "
    "KILN_OK nothing was launched: NULL_POINTER, BAD_ARGUMENT, MISALIGNED "
    "and GRID_TOO_LARGE for the arguments, NO_VARIANT, CLOSED, LAUNCH, and those of kiln_preload; "
    "kiln_last_error has the details. Several threads may call at once.\n"
    "\nA family's function picks one of its kernels, for the arguments and the device, and launches that; NO_VARIANT "
    "when the bundle has none. The function named ..._pick checks the same and tells which one, or the status that the "
    "call would return, and loads and launches nothing: `*kernel` is null when there is nothing to do, and with any "
    "status but KILN_OK. ..._candidates tells why: each variant that has what the arguments name, in the configuration's "
    "order. The first `capacity` are written to the list, which may be null where that is 0; count gets how many there "
    "are. Another kernel is forced by its own function, or by kernel->launch(loader, stream, &args).\n"
    "\nIn the function of a single variant 0 stands for the variant's own value of each parameter; another "
    "value is NO_VARIANT.\n"
    "\nA program that calls functions of single variants only, and is compiled with -ffunction-sections "
    "-fdata-sections and linked with -Wl,--gc-sections, carries those kernels only. A family's function "
    "carries all of the family, the index all of the bundle.";

static const char *file_comment(arena *a, const bundle_model *m)
{
    text out = text_new(a);
    text_printf(&out, "Generated by kiln %s; to remake it: %s\n", KILN_VERSION, m->command);
    text_printf(&out, "\nBundle %s: %u kernel%s for", m->name, (unsigned)m->variant_count,
                m->variant_count == 1 ? "" : "s");
    for (size_t i = 0; i < m->plan->target_count; i++)
        text_printf(&out, " %s", target_text(a, m->plan->targets[i]));
    text_printf(&out, ". A driver of CUDA %s or newer loads all of them.\n",
                cuda_version_text(a, m->min_driver));
    const bundle_family *f = &m->families[0];
    text_printf(&out,
                "\n    static kiln_driver driver;  (all storage is the caller's)\n"
                "    static kiln_loader loader;\n"
                "    static kiln_slot slots[%s_SLOTS];\n",
                m->upper_name);
    if (m->plan->is_compressed)
        text_printf(&out,
                    "    static _Alignas(16) char scratch[%s_SCRATCH_BYTES];\n"
                    "    kiln_options options = {.scratch = scratch, .scratch_bytes = sizeof scratch};\n",
                    m->upper_name);
    text_printf(&out,
                "    kiln_driver_load(&driver, NULL, NULL);\n"
                "    kiln_open(&loader, &driver, &%s_bundle, slots, %s_SLOTS, %s);\n"
                "    %s args = {...};\n"
                "    kiln_status status = %s(&loader, stream, &args);\n",
                m->name, m->upper_name, m->plan->is_compressed ? "&options" : "NULL", f->args_struct,
                f->function);
    text_add(&out, how_functions_behave);
    return out.data;
}

/* One row per function: the same text a hundred times is most of a header. */
static void write_overloads(file_output *file, const bundle_model *m)
{
    text *out = &file->text;
    text_add(
        out,
        "\n#ifdef __cplusplus\n} /* extern \"C\" */\n\n"
        "/* The same functions with `const args &`. */\n"
        "#define KILN_CALL(function, args_type) \\\n"
        "    inline kiln_status function(kiln_loader *loader, CUstream stream, const args_type &args) \\\n"
        "    { \\\n"
        "        return function(loader, stream, &args); \\\n"
        "    }\n");
    c_add_query_macros(out);
    for (size_t i = 0; i < m->family_count; i++) {
        const bundle_family *f = &m->families[i];
        if (strcmp(f->function, f->variants[0]->function) != 0) {
            text_printf(out, "KILN_CALL(%s, %s)\n", f->function, f->args_struct);
            c_add_query_overload(out, f, "pick");
            c_add_query_overload(out, f, "candidates");
        }
        if (f->workspace) {
            c_add_query_overload(out, f, "workspace");
            c_add_query_overload(out, f, "workspace_max");
        }
        for (size_t k = 0; k < f->call_count; k++)
            text_printf(out, "KILN_CALL(%s, %s)\n", f->calls[k].function, f->calls[k].args_struct);
        for (size_t k = 0; k < f->variant_count; k++)
            text_printf(out, "KILN_CALL(%s, %s)\n", f->variants[k]->function, f->args_struct);
        file_flush(file);
    }
    text_add(out, "#undef KILN_CALL\n");
    c_add_query_undefs(out);
    text_add(out, "#endif\n");
}

void write_layout_check(text *out)
{
    text_printf(
        out,
        "\n#if KILN_LAYOUT_VERSION != %u\n"
        "#error \"these kiln headers are of another layout: generate the bundle again with their kiln\"\n"
        "#endif\n",
        (unsigned)KILN_LAYOUT_VERSION);
}

void write_header(file_output *file, const bundle_model *m)
{
    text *out = &file->text;
    c_add_comment(out, 0, file_comment(file->arena, m));
    text_add(out, "\n");
    c_add_license(out, m->plan->license);
    text_printf(out, "#ifndef %s_GENERATED_H\n#define %s_GENERATED_H\n\n#include <kiln/kiln.h>\n",
                m->upper_name, m->upper_name);
    write_layout_check(out);
    text_printf(out, "\n#define %s_KERNELS %u /* in the index */\n", m->upper_name,
                (unsigned)m->variant_count);
    text_printf(out, "#define %s_SLOTS   %u /* kiln_slot that a loader needs */\n", m->upper_name,
                (unsigned)m->slot_count);
    if (m->plan->is_compressed)
        text_printf(out,
                    "#define %s_SCRATCH_BYTES %" PRIu64
                    " /* of kiln_options.scratch, where images are expanded */\n",
                    m->upper_name, m->scratch_bytes);
    text_add(out, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    text_printf(out, "extern const kiln_bundle %s_bundle; /* for kiln_open */\n", m->name);
    text_printf(out, "extern const kiln_index %s_index;   /* all kernels, to find, enumerate or preload */\n",
                m->name);
    text_printf(out, "extern const uint32_t %s_manifest_crc; /* CRC-32 of %s.json, for readers of both */\n",
                m->name, m->name);
    for (size_t i = 0; i < m->family_count; i++) {
        file_flush(file);
        write_declarations(file->arena, out, &m->families[i]);
    }
    write_overloads(file, m);
    text_add(out, "\n#endif\n");
    file_flush(file);
}
