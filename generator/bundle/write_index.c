/* The bundle and its index: all kernels, by key, by family, and the numbers of words. */
#include "write.h"

#include <string.h>

#include <kiln/kiln.h>

#include "c_text.h"
#include "family/word_number.h"
#include "support/names.h"

static bool has_parameters(const kiln_family *f)
{
    return f->params && f->params[0].name;
}

typedef struct index_tables {
    text texts, families, kernels, selectors, words;
    name_table places; /* of words in `texts` */
    unsigned kernel_count, selector_count, word_count;
} index_tables;

/* The offset of a word in the texts, which hold each word once. */
static unsigned place_of(arena *a, index_tables *t, const char *word)
{
    const size_t before = names_add(a, &t->places, word, t->texts.length);
    if (before != NAME_NONE)
        return (unsigned)before;
    const unsigned behind = (unsigned)t->texts.length;
    text_add_bytes(&t->texts, word, strlen(word) + 1);
    return behind;
}

static void add_words(arena *a, index_tables *t, const bundle_family *f, const bundle_field *field)
{
    const char **values;
    const size_t count = family_values(a, f, field->param_index, &values);
    const bool has_words = field->param->type == KILN_PARAM_WORD;
    text_printf(&t->selectors, "    {%u, %u, %u, %u},\n", place_of(a, t, field->name),
                (unsigned)field->offset, t->word_count, has_words ? (unsigned)count : 0);
    t->selector_count++;
    for (size_t i = 0; has_words && i < count; i++, t->word_count++)
        text_printf(&t->words, "    {%u, %u},\n", place_of(a, t, values[i]),
                    (unsigned)word_number(a, field->param, values[i]));
}

/* Entry points for programs that have only the index: they take the family's arguments as void *. */
static void write_family_entries(text *out, const bundle_family *f)
{
    const char *name = f->family->name;
    arena *a = out->arena;
    text_add(out, "\n");
    c_add_wrapped(out, arena_format(a, "static kiln_status index_%s(", name),
                  "kiln_loader *loader, CUstream stream, const void *args", ")\n{\n");
    text_printf(out, "    return %s(loader, stream, args);\n}\n", f->function);
    if (!has_parameters(f->family))
        return;
    text_add(out, "\n");
    c_add_wrapped(out, arena_format(a, "static kiln_status index_%s_pick(", name),
                  "kiln_loader *loader, const void *args, const kiln_kernel **kernel", ")\n{\n");
    text_printf(out, "    return %s_pick(loader, args, kernel);\n}\n", f->function);
}

static void add_family(arena *a, index_tables *t, const bundle_model *m, const bundle_family *f)
{
    const unsigned first_kernel = t->kernel_count, first_selector = t->selector_count;
    for (size_t i = 0; i < f->variant_count; i++, t->kernel_count++)
        text_printf(&t->kernels, "%s%u,", t->kernel_count % 16 == 0 ? "\n    " : " ",
                    (unsigned)(f->variants[i] - m->variants));
    for (size_t i = 0; i < f->field_count; i++)
        if (f->fields[i].param)
            add_words(a, t, f, &f->fields[i]);
    const char *pick = has_parameters(f->family) ? arena_format(a, "index_%s_pick", f->family->name) : "NULL";
    text_printf(&t->families, "    {index_%s, %s, %u, %u, %u, %u, %u, %u},\n", f->family->name, pick,
                place_of(a, t, f->family->name), (unsigned)f->args_bytes, first_kernel,
                t->kernel_count - first_kernel, first_selector, t->selector_count - first_selector);
}

/* C has no empty array. */
static void write_table(text *out, const char *type, const char *name, const text *rows)
{
    text_printf(out, "static const %s %s[] = {%s%s};\n", type, name, rows->length > 0 ? "\n" : "{0}",
                rows->data);
}

static void write_families(arena *a, text *out, const bundle_model *m)
{
    index_tables t = {.texts = text_new(a),
                      .families = text_new(a),
                      .kernels = text_new(a),
                      .selectors = text_new(a),
                      .words = text_new(a)};
    for (size_t i = 0; i < m->family_count; i++) {
        write_family_entries(out, &m->families[i]);
        add_family(a, &t, m, &m->families[i]);
    }
    text_add(out, "\n/* Families by name, and the words of numbers in argument structs. */\n");
    text_add(out, "static const char texts[] =");
    unsigned count = 0;
    for (const char *s = t.texts.data; s < t.texts.data + t.texts.length; s += strlen(s) + 1)
        text_printf(out, "%s\"%s\\0\"", count++ % 8 == 0 ? "\n    " : " ", s);
    text_add(out, ";\n");
    write_table(out, "kiln_index_family", "families", &t.families);
    text_printf(out, "static const uint32_t family_kernels[] = {%s\n};\n", t.kernels.data);
    write_table(out, "kiln_selector", "selectors", &t.selectors);
    write_table(out, "kiln_word", "words", &t.words);
}

static void write_numbers(text *out, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%u,", i % 16 == 0 ? "\n    " : " ", (unsigned)numbers[i]);
}

void write_index(arena *a, text *out, const bundle_model *m, uint32_t manifest_crc)
{
    text_printf(out,
                "const kiln_bundle %s_bundle = {\n"
                "    .layout_version = %u,\n"
                "    .kernel_count = %s_KERNELS,\n"
                "    .module_count = %u,\n"
                "    .slot_count = %s_SLOTS,\n",
                m->name, (unsigned)KILN_LAYOUT_VERSION, m->upper_name, (unsigned)m->module_count,
                m->upper_name);
    if (m->plan->is_compressed)
        text_printf(out, "    .scratch_bytes = %s_SCRATCH_BYTES,\n", m->upper_name);
    text_printf(out, "    .name = \"%s\",\n};\n", m->name);
    text_printf(out, "const uint32_t %s_manifest_crc = 0x%08x;\n", m->name, (unsigned)manifest_crc);
    text_add(out, "\nstatic const kiln_kernel *const kernels[] = {\n");
    for (size_t i = 0; i < m->variant_count; i++)
        text_printf(out, "    &%s_kernel,\n", m->variants[i].function);
    text_add(out, "};\n");
    text_add(out, "\n/* A kernel's index, from 1, by key & mask; 0 is free. */\n");
    text_add(out, "static const uint32_t table[] = {");
    write_numbers(out, m->table, (size_t)m->table_mask + 1);
    text_add(out, "\n};\n");
    write_families(a, out, m);
    text_printf(out,
                "\nconst kiln_index %s_index = {\n"
                "    .bundle = &%s_bundle,\n"
                "    .kernels = kernels,\n"
                "    .table = table,\n"
                "    .table_mask = %u,\n"
                "    .family_count = %u,\n"
                "    .families = families,\n"
                "    .family_kernels = family_kernels,\n"
                "    .selectors = selectors,\n"
                "    .words = words,\n"
                "    .texts = texts,\n"
                "};\n",
                m->name, m->name, (unsigned)m->table_mask, (unsigned)m->family_count);
}
