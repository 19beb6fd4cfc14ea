/* NAME.c: texts, kernels, typed functions, index; or the index there, and the families in shards.
 *
 * Nothing here is an anonymous literal: a linker that collects sections never drops one, while it does drop a named
 * array that nothing refers to. So each text has a name, and only the index refers to all kernels. */
#include "write.h"

#include <inttypes.h>
#include <string.h>

#include <kiln/kiln.h>

#include "c_text.h"
#include "pointers.h"

static const char *const kind_names[] = {[TARGET_BASE] = "KILN_TARGET_BASE",
                                         [TARGET_ARCH] = "KILN_TARGET_ARCH",
                                         [TARGET_FAMILY] = "KILN_TARGET_FAMILY"};

/* ---- one variant ------------------------------------------------------------------------------------------------- */

static const char *image_name(arena *a, const bundle_variant *v, const image *i)
{
    return arena_format(a, "%s_%s%s", v->variant->entry, target_text(a, i->made_for),
                        i->cubin ? "_cubin" : "");
}

/* ELF wants its numbers aligned. */
static void write_data(arena *a, text *out, const bundle_variant *v, const image *i)
{
    text_printf(out, "\nstatic const char %s[]%s =", image_name(a, v, i),
                i->cubin ? " __attribute__((aligned(64)))" : "");
    if (i->cubin)
        c_add_literal_bytes(out, i->cubin, i->bytes);
    else
        text_splice_bytes(out, i->literal.data, i->literal.length);
    text_add(out, ";\n");
}

static void write_images(arena *a, text *out, const bundle_variant *v)
{
    const char *entry = v->variant->entry;
    for (size_t i = 0; i < v->image_count; i++)
        write_data(a, out, v, &v->images[i]);
    text_printf(out, "\nstatic const kiln_image %s_images[] = {\n", entry);
    for (size_t i = 0; i < v->image_count; i++) {
        const image *one = &v->images[i];
        const char *name = image_name(a, v, one);
        text_printf(out,
                    "    {.data = %s,\n"
                    "     .bytes = sizeof %s - 1,\n"
                    "     .hash_high = 0x%016" PRIx64 ",\n"
                    "     .hash_low = 0x%016" PRIx64 ",\n"
                    "     .min_driver = %u,\n"
                    "     .sm = %u,\n"
                    "     .kind = %s,\n"
                    "     .format = %s},\n",
                    name, name, one->hash_high, one->hash_low, (unsigned)one->min_driver,
                    (unsigned)one->made_for.sm, kind_names[one->made_for.kind],
                    one->cubin ? "KILN_IMAGE_CUBIN" : "KILN_IMAGE_PTX");
    }
    text_add(out, "};\n");
    text_printf(out,
                "\nstatic const kiln_module %s_module = {\n"
                "    .images = %s_images,\n"
                "    .image_count = %u,\n"
                "    .slot = %u,\n"
                "};\n",
                entry, entry, (unsigned)v->image_count, (unsigned)v->slot);
}

/* The name in the PTX: a kernel of external PTX has one of its own. */
static const char *symbol_of(const variant *v)
{
    return v->external ? v->external->symbol : v->entry;
}

/* Of a struct's number; 0 goes without saying. */
static void write_field(text *out, const char *name, uint32_t value)
{
    if (value != 0)
        text_printf(out, "    .%s = %u,\n", name, (unsigned)value);
}

static void write_kernel(text *out, const bundle_variant *v)
{
    const char *entry = v->variant->entry, *pointers = "";
    if (v->pointers.count > 0)
        pointers = arena_format(out->arena, "    .pointers = &%s,\n", v->pointers.name);
    text_printf(out,
                "\nconst kiln_kernel %s_kernel = {\n"
                "    .key = 0x%016" PRIx64 ",\n"
                "    .id = %s_id,\n"
                "    .entry = %s_entry,\n"
                "    .module = &%s_module,\n"
                "    .launch = launch_%s,\n"
                "    .run = run_%s,\n"
                "%s"
                "    .block = {%u, %u, %u},\n"
                "    .slot = %u,\n",
                v->function, v->variant->key, entry, entry, v->owner->variant->entry, entry, entry, pointers,
                (unsigned)v->block[0], (unsigned)v->block[1], (unsigned)v->block[2], (unsigned)v->slot);
    write_field(out, "max_shared_bytes", v->max_shared_bytes);
    write_field(out, "min_shared_bytes", v->min_shared_bytes);
    write_field(out, "static_shared_bytes", v->static_shared_bytes);
    write_field(out, "blocks_per_multiprocessor", v->variant->shape.blocks_per_multiprocessor);
    text_add(out, "};\n");
}

static void write_variant(arena *a, text *out, const bundle_variant *v)
{
    const char *entry = v->variant->entry;
    text_printf(out, "\n/* %s */\n\n", v->variant->id);
    c_add_text_constant(out, 0, arena_format(a, "%s_id", entry), v->variant->id);
    c_add_text_constant(out, 0, arena_format(a, "%s_entry", entry), symbol_of(v->variant));
    if (v->owner == v)
        write_images(a, out, v);
    write_variant_function(a, out, v);
    write_kernel(out, v);
}

/* ---- the bundle -------------------------------------------------------------------------------------------------- */

static void write_section(text *out, const char *title)
{
    text_printf(out, "\n/* ==== %s ", title);
    for (size_t column = strlen("/* ====  ") + strlen(title); column < C_COLUMNS - 3; column++)
        text_add(out, "=");
    text_add(out, " */\n\n");
}

static void write_family(arena *a, text *out, const bundle_family *f)
{
    const char *name = f->family->name;
    write_section(out, name);
    c_add_text_constant(out, 0, arena_format(a, "%s_name", name), name);
    pointers_write(a, out, f);
    write_family_check(a, out, f);
    write_call_function(a, out, f);
    for (size_t i = 0; i < f->variant_count; i++)
        write_variant(a, out, f->variants[i]);
    write_family_function(a, out, f);
    write_workspace_functions(a, out, f);
    write_calls(a, out, f);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Whether code calls a function, string literals aside. */
static bool calls(const char *code, const char *name)
{
    const size_t length = strlen(name);
    bool in_literal = false;
    for (const char *c = code; *c; c++) {
        if (in_literal && *c == '\\')
            c++;
        else if (*c == '"')
            in_literal = !in_literal;
        else if (!in_literal && *c == name[0] && strncmp(c, name, length) == 0 && c[length] == '(')
            return true;
    }
    return false;
}

/* What expressions call. A static function that nothing calls would be a warning. */
static void write_functions_called(text *out, const char *code)
{
    for (const expression_function *f = expression_functions; f->name; f++)
        if (calls(code, f->name))
            text_printf(out, "\nstatic uint64_t %s(uint64_t a, uint64_t b)\n{\n    return %s;\n}\n", f->name,
                        f->value);
}

static text begin_file(arena *a, const bundle_model *m)
{
    text out = text_new(a);
    text_printf(&out, "/* Generated by kiln %s; to remake it: %s */\n", KILN_VERSION, m->command);
    text_add(&out, "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n");
    return out;
}

static void end_file(text *out, const text *code)
{
    if (calls(code->data, "kiln_consider"))
        text_add(out, "#include <kiln/choose.h>\n");
    write_functions_called(out, code->data);
    text_add_text(out, code);
}

text write_source(arena *a, const bundle_model *m)
{
    text code = text_new(a);
    for (size_t i = 0; i < m->family_count && !m->plan->shards; i++)
        write_family(a, &code, &m->families[i]);
    write_section(&code, "the bundle");
    write_index(a, &code, m);

    text out = begin_file(a, m);
    text_printf(&out, "#include \"%s.h\"\n", m->name);
    end_file(&out, &code);
    return out;
}

/* Never NAME.h, which changes with every family. */
text write_shard(arena *a, const bundle_model *m, uint32_t shard)
{
    text code = text_new(a), out = begin_file(a, m);
    text_add(&out, "#include <kiln/kiln.h>\n");
    write_layout_check(&out);
    for (size_t i = 0; i < m->family_count; i++) {
        if (m->families[i].shard != shard)
            continue;
        write_declarations(a, &out, &m->families[i]);
        write_family(a, &code, &m->families[i]);
    }
    end_file(&out, &code);
    return out;
}
