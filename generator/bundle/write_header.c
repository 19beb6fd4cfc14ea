/* NAME.h, which deployers include and read. */
#include "write.h"

#include <inttypes.h>
#include <string.h>

#include <kiln/kiln.h>

#include "c_text.h"
#include "family/family.h"
#include "family/rule_text.h"
#include "family/word_number.h"
#include "support/words.h"

/* ---- a family ---------------------------------------------------------------------------------------------------- */

static void write_enum(arena *a, text *out, const bundle_family *f, const bundle_field *field)
{
    const kiln_param *param = field->param;
    text list = text_new(a);
    for (const char *w = param->words; *w; w += strcspn(w, " "), w += *w == ' ') {
        const char *word = arena_string(a, w, strcspn(w, " "));
        const uint32_t number = word_number(a, param, word);
        if (family_has_value(f, field->param_index, word))
            text_printf(&list, number > BESIDE_NUMBERS ? "%s%s = 0x%x" : "%s%s = %u",
                        list.length > 0 ? ", " : "", c_enumerator(a, f, param, word), (unsigned)number);
    }
    c_add_wrapped(out, "enum { ", list.data, " };\n");
}

static void write_enums(arena *a, text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->field_count; i++)
        if (f->fields[i].param && f->fields[i].param->type == KILN_PARAM_WORD)
            write_enum(a, out, f, &f->fields[i]);
}

/* The number of the bundle's variants for which a call can break it. */
static size_t count_breakable(arena *a, const bundle_family *f, const kiln_rule *rule)
{
    size_t count = 0;
    for (size_t i = 0; i < f->variant_count && family_asks_rule(a, f, rule); i++) {
        uint64_t value = 0;
        const expression *bound = bind_text(a, f->family, rule->condition, f->variants[i]->variant);
        count += !expression_is_constant(bound, &value) || value == 0;
    }
    return count;
}

static void add_rules(arena *a, text *out, const bundle_family *f)
{
    const char *last = "";
    for (const kiln_rule *rule = f->family->rules; rule && rule->condition; rule++) {
        const size_t count = count_breakable(a, f, rule);
        if (count == 0)
            continue;
        const char *said = count < f->variant_count ? rule_text(a, f->family, rule, f->common) : rule->text;
        const char *must = strstr(said, " must be ");
        if (must && *last && strcmp(must, last) == 0) { /* "m, n must be at most 65535" */
            out->length -= strlen(last);
            text_printf(out, ", %s", said);
        } else {
            text_printf(out, "%s%s", *last ? "; " : "\nRules, else KILN_ERROR_BAD_ARGUMENT: ", said);
        }
        last = must ? must : said;
    }
    text_add(out, *last ? "." : "");
}

/* Prints a short text; long ones are only in `kiln families`. */
static void add_prose(text *out, const char *title, const char *prose, const char **elsewhere)
{
    enum { SHORT = 160 };
    if (prose && strlen(prose) <= SHORT)
        text_printf(out, "\n%s: %s.", title, prose);
    else if (prose)
        *elsewhere = *elsewhere ? "Accuracy, and results for NaN and infinity" : title;
}

static const char *family_comment(arena *a, const bundle_family *f)
{
    const kiln_family *family = f->family;
    const char *elsewhere = NULL;
    text out = text_new(a);
    text_printf(&out, "%s: %s.", family->name, family->summary);
    if (family->source)
        text_printf(&out, " Source: %s.", family->source);
    add_prose(&out, "Accuracy", family->accuracy, &elsewhere);
    add_prose(&out, "NaN and infinity", family->nonfinite, &elsewhere);
    if (elsewhere)
        text_printf(&out, "\n%s: `kiln families %s`.", elsewhere, family->name);
    if (family->empty)
        text_printf(&out, "\nWhen %s there is nothing to do: KILN_OK without a launch.", family->empty);
    add_rules(a, &out, f);
    text_printf(&out, "\n%s\n%s", example_args(a, f),
                c_example_call(a, f->function, "&loader, stream, ", ""));
    return out.data;
}

static void add_declaration(text *out, const bundle_family *f, const char *function)
{
    c_add_prototype(out, function, f->args_struct, ");\n");
}

static void write_call(arena *a, text *out, const bundle_family *call, const char *family_function)
{
    text_add(out, "\n");
    c_add_comment(out, 0,
                  arena_format(a, "%s: %s. Otherwise like %s.\n%s\n%s", call->function, call->call->summary,
                               family_function, example_args(a, call),
                               c_example_call(a, call->function, "&loader, stream, ", "")));
    text_add(out, "\n");
    write_args_struct(a, out, call);
    text_add(out, "\n");
    add_declaration(out, call, call->function);
}

static void write_queries(arena *a, text *out, const bundle_family *f)
{
    const kiln_workspace *w = f->workspace;
    const struct {
        const char *name, *what;
        bool is_there;
    } queries[] = {
        {"pick", "Returns the kernel that it would launch.", true},
        {"candidates", "Why that one.", true},
        {"workspace",
         w ? arena_format(
                 a,
                 "Bytes of %s and %s for the variant that is picked if both are large enough; pointers need not be set.",
                 w->arg, w->counters)
           : "",
         w != NULL},
        {"workspace_max", "Bytes that are enough for every variant, at these and all smaller sizes.",
         w != NULL},
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        if (queries[i].is_there) {
            c_add_query_comment(out, f, queries[i].name, queries[i].what);
            c_add_query_prototype(out, f, queries[i].name, ");\n");
        }
}

static void write_contiguous_declaration(arena *a, text *out, const bundle_family *f)
{
    const char *function = arena_format(a, "%s_set_contiguous", f->function);
    c_add_call_comment(out, "Sets the strides of contiguous arrays.", function, "", "");
    text_printf(out, "void %s(%s *args);\n", function, f->args_struct);
}

void write_declarations(arena *a, text *out, const bundle_family *f)
{
    const bool has_own = strcmp(f->function, f->variants[0]->function) != 0;
    text_add(out, "\n");
    c_add_comment(out, 0, family_comment(a, f));
    text_add(out, "\n");
    write_enums(a, out, f);
    write_args_struct(a, out, f);
    if (has_own) {
        add_declaration(out, f, f->function);
        write_queries(a, out, f);
    }
    if (f->has_strides)
        write_contiguous_declaration(a, out, f);
    for (size_t i = 0; i < f->call_count; i++)
        write_call(a, out, &f->calls[i], f->function);
    for (size_t i = 0; i < f->variant_count; i++) {
        const bundle_variant *v = f->variants[i];
        const char *example =
            i == 0 && has_own ? c_example_call(a, v->function, "&loader, stream, ", "") : "";
        text_add(out, "\n");
        c_add_comment(out, 0, arena_format(a, "%s%s%s", v->variant->id, *example ? "\n" : "", example));
        text_printf(out, "\nextern const kiln_kernel %s_kernel;\n", v->function);
        add_declaration(out, f, v->function);
    }
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static const char how_functions_behave[] =
    "\nA function checks its arguments, loads its kernel on first use, and launches it on the stream; it does not wait for "
    "the kernel to end. `args` is read before it returns. Pointers are device addresses, aligned to an element's size or as "
    "a comment states; a pointer to an array without elements in this call may be null. Where arguments give strides, the "
    "shape is that of a contiguous array. Leave workspace and tile_counters 0, or make them as large as ..._workspace "
    "returns. Arrays that a kernel writes must not overlap its other arguments. With any status except KILN_OK nothing was "
    "launched: NULL_POINTER, BAD_ARGUMENT, MISALIGNED and GRID_TOO_LARGE for the arguments, NO_VARIANT, CLOSED, LAUNCH, and "
    "those of kiln_preload; kiln_last_error has the details. Several threads may call at once.\n"
    "\nA family's function picks one of its kernels, for the arguments and the device, and launches it; NO_VARIANT if the "
    "bundle has none. ..._pick makes the same checks and gives that kernel, or the status that the call would return; it "
    "loads and launches nothing. `*kernel` is null if there is nothing to do, and with any status except KILN_OK. "
    "..._candidates explains the pick: it lists each variant of the arguments' contract, in the configuration's order. It "
    "writes the first `capacity` of them to the list, which may be null if that is 0, and their number to count. To force "
    "another kernel, call its own function, or kernel->launch(loader, stream, &args).\n"
    "\nIn the function of a single variant 0 means the variant's own value of each parameter; another value is "
    "NO_VARIANT.\n"
    "\nA program that calls only functions of single variants, and is compiled with -ffunction-sections -fdata-sections and "
    "linked with -Wl,--gc-sections, contains only those kernels. A family's function links all kernels of the family, the "
    "index all kernels of the bundle.";

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
                "    (then the call in a family's comment)\n",
                m->name, m->upper_name, m->plan->is_compressed ? "&options" : "NULL");
    text_add(&out, how_functions_behave);
    return out.data;
}

/* One macro row per function: the expanded text would be most of a header. */
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
        if (f->has_strides)
            text_printf(out, "inline void %s_set_contiguous(%s &args) { %s_set_contiguous(&args); }\n",
                        f->function, f->args_struct, f->function);
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
