/* NAME.c: texts, kernels, typed functions, index; with shards only the index.
 *
 * No text is an anonymous literal: a linker that collects sections never drops one, but it drops an unreferenced named
 * array. So each text has a name, and only the index refers to all kernels. */
#include "write.h"

#include <inttypes.h>
#include <string.h>

#include <kiln/kiln.h>

#include "c_text.h"
#include "extents.h"
#include "pointers.h"
#include "sizes.h"

static const char *const kind_names[] = {[TARGET_BASE] = "KILN_TARGET_BASE",
                                         [TARGET_ARCH] = "KILN_TARGET_ARCH",
                                         [TARGET_FAMILY] = "KILN_TARGET_FAMILY"};

/* ---- one variant ------------------------------------------------------------------------------------------------- */

static void write_images(arena *a, text *out, const bundle_variant *v, bool is_compressed)
{
    const char *entry = v->variant->entry;
    text_printf(out, "\nstatic const kiln_image %s_images[] = {\n", entry);
    for (size_t i = 0; i < v->image_count; i++) {
        const image *one = &v->images[i];
        const char *name = image_array(a, v->variant, one);
        text_printf(out,
                    "    {.data = %s,\n"
                    "     .bytes = sizeof %s - 1,\n"
                    "     .hash_high = 0x%016" PRIx64 ",\n"
                    "     .hash_low = 0x%016" PRIx64 ",\n"
                    "     .min_driver = %u,\n"
                    "     .sm = %u,\n"
                    "     .kind = %s,\n"
                    "     .format = %s",
                    name, name, one->stored_hash.high, one->stored_hash.low, (unsigned)one->min_driver,
                    (unsigned)one->made_for.sm, kind_names[one->made_for.kind],
                    one->is_cubin ? "KILN_IMAGE_CUBIN" : "KILN_IMAGE_PTX");
        if (is_compressed)
            text_printf(out, ",\n     .expanded_bytes = %zu,\n     .codec = kiln_zstd", one->bytes);
        text_add(out, "},\n");
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

/* A number in a struct; 0 is omitted. */
static void write_field(text *out, const char *name, uint32_t value)
{
    if (value != 0)
        text_printf(out, "    .%s = %u,\n", name, (unsigned)value);
}

static void write_kernel(text *out, const bundle_variant *v)
{
    const char *entry = v->variant->entry, *pointers = "", *sizes = "";
    if (v->pointers.count > 0)
        pointers = arena_format(out->arena, "    .pointers = &%s,\n", v->pointers.name);
    if (v->sizes > 0)
        sizes = arena_format(out->arena, "    .sizes = %s_sizes_%u,\n", v->family->family->name,
                             (unsigned)v->sizes);
    text_printf(out,
                "\nconst kiln_kernel %s_kernel = {\n"
                "    .key = 0x%016" PRIx64 ",\n"
                "    .id = %s_id,\n"
                "    .entry = %s_entry,\n"
                "    .module = &%s_module,\n"
                "    .launch = launch_%s,\n"
                "    .run = run_%s,\n"
                "%s%s"
                "    .block = {%u, %u, %u},\n"
                "    .slot = %u,\n",
                v->function, v->variant->key, entry, entry, v->owner->variant->entry, entry, entry, pointers,
                sizes, (unsigned)v->block[0], (unsigned)v->block[1], (unsigned)v->block[2],
                (unsigned)v->slot);
    write_field(out, "max_shared_bytes", v->max_shared_bytes);
    write_field(out, "min_shared_bytes", v->min_shared_bytes);
    write_field(out, "static_shared_bytes", v->static_shared_bytes);
    write_field(out, "blocks_per_multiprocessor", v->variant->shape.blocks_per_multiprocessor);
    if (v->is_dependent)
        text_add(out, "    .flags = KILN_KERNEL_DEPENDENT,\n");
    text_add(out, "};\n");
}

/* ---- the bundle -------------------------------------------------------------------------------------------------- */

static void write_section(text *out, const char *title)
{
    text_printf(out, "\n/* ==== %s ", title);
    for (size_t column = strlen("/* ====  ") + strlen(title); column < C_COLUMNS - 3; column++)
        text_add(out, "=");
    text_add(out, " */\n\n");
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* What the pieces use from the file's head. An unused static function would be a warning. */
typedef struct source {
    file_output *file;
    const plan *plan;
    bool is_compressed;
    bool chooses;    /* calls kiln/choose.h */
    bool encodes;    /* calls kiln/tensor_map.h */
    uint32_t called; /* bit i: expression_functions[i] */
} source;

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

static void end_piece(source *s)
{
    const char *code = s->file->text.data;
    s->chooses = s->chooses || calls(code, "kiln_consider") || calls(code, "kiln_consider_tuned");
    s->encodes = s->encodes || calls(code, "kiln_encode_map");
    for (size_t i = 0; expression_functions[i].name; i++)
        s->called |= (uint32_t)calls(code, expression_functions[i].name) << i;
    file_flush(s->file);
}

static void write_variant(source *s, const bundle_variant *v)
{
    text *out = &s->file->text;
    const char *entry = v->variant->entry;
    text_printf(out, "\n/* %s */\n\n", v->variant->id);
    c_add_text_constant(out, 0, arena_format(s->file->arena, "%s_id", entry), v->variant->id);
    c_add_text_constant(out, 0, arena_format(s->file->arena, "%s_entry", entry), v->variant->symbol);
    if (v->owner == v) {
        const bool is_external = v->variant->kind == VARIANT_EXTERNAL;
        if (is_external)
            text_printf(out, "/* SPDX-SnippetBegin */\n/* SPDX-License-Identifier: %s */\n",
                        external_license(v->variant->module));
        end_piece(s);
        for (size_t i = 0; i < v->image_count; i++)
            file_add(s->file, v->images[i].array);
        if (is_external)
            text_add(out, "\n/* SPDX-SnippetEnd */\n");
        write_images(s->file->arena, out, v, s->is_compressed);
    }
    write_variant_function(s->file->arena, out, v);
    write_kernel(out, v);
    end_piece(s);
}

static void write_family(source *s, const bundle_family *f)
{
    text *out = &s->file->text;
    const char *name = f->family->name;
    write_section(out, name);
    c_add_text_constant(out, 0, arena_format(s->file->arena, "%s_name", name), name);
    write_args_assertion(out, f);
    for (size_t i = 0; i < f->call_count; i++)
        write_args_assertion(out, &f->calls[i]);
    pointers_write(s->file->arena, out, f);
    extents_write(out, f);
    sizes_write(out, f);
    write_family_check(s->file->arena, out, f);
    write_call_function(s->file->arena, out, f);
    for (size_t i = 0; i < f->variant_count; i++)
        write_variant(s, f->variants[i]);
    write_family_function(s->file->arena, out, s->plan, f);
    write_workspace_functions(s->file->arena, out, f);
    write_calls(s->file->arena, out, f);
    write_contiguous_function(s->file->arena, out, f);
    end_piece(s);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void begin_front(text *out, const bundle_model *m)
{
    text_printf(out, "/* Generated by kiln %s; to remake it: %s */\n", KILN_VERSION, m->command);
    c_add_license(out, m->plan->license);
    text_add(out, "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n");
}

static void end_front(source *s)
{
    text *out = &s->file->text;
    if (s->is_compressed)
        text_add(out, "#include <kiln/zstd.h>\n");
    if (s->chooses)
        text_add(out, "#include <kiln/choose.h>\n");
    if (s->encodes)
        text_add(out, "#include <kiln/tensor_map.h>\n");
    write_assertion_macro(out);
    for (size_t i = 0; expression_functions[i].name; i++)
        if (s->called >> i & 1)
            text_printf(out, "\nstatic %s %s(%s a, %s b)\n{\n    return %s;\n}\n",
                        expression_functions[i].type, expression_functions[i].name,
                        expression_functions[i].type, expression_functions[i].type,
                        expression_functions[i].value);
    file_flush_to_front(s->file);
}

void write_source(file_output *f, const bundle_model *m, uint32_t manifest_crc)
{
    source s = {.file = f, .plan = m->plan, .is_compressed = m->plan->is_compressed};
    for (size_t i = 0; i < m->family_count && !m->plan->shards; i++)
        write_family(&s, &m->families[i]);
    write_section(&f->text, "the bundle");
    write_struct_assertions(&f->text);
    write_index(f->arena, &f->text, m, manifest_crc);
    end_piece(&s);

    begin_front(&f->text, m);
    text_printf(&f->text, "#include \"%s.h\"\n", m->name);
    end_front(&s);
}

/* Includes its own declarations, not NAME.h, which changes with every family. */
void write_shard(file_output *f, const bundle_model *m, uint32_t shard)
{
    source s = {.file = f, .plan = m->plan, .is_compressed = m->plan->is_compressed};
    for (size_t i = 0; i < m->family_count; i++)
        if (m->families[i].shard == shard)
            write_family(&s, &m->families[i]);

    begin_front(&f->text, m);
    text_add(&f->text, "#include <kiln/kiln.h>\n");
    write_layout_check(&f->text);
    for (size_t i = 0; i < m->family_count; i++)
        if (m->families[i].shard == shard)
            write_declarations(f->arena, &f->text, &m->families[i]);
    end_front(&s);
}
