#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gguf.h"
#include "project_texts.h" /* the build makes it from project.in; @WORD@ in a line is replaced */

/* ---- texts -------------------------------------------------------------------------------------------------------- */

static const char *upper_case(arena *a, const char *name)
{
    char *copy = arena_string(a, name, strlen(name));
    for (char *c = copy; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return copy;
}

/* Adds the lines; `rows` replaces @ROWS@. */
static void add_lines(text *out, const char *const *lines, const program_options *options, const char *rows)
{
    const struct {
        const char *word, *value;
    } words[] = {
        {"@NAME@", options->name},
        {"@UPPER@", upper_case(out->arena, options->name)},
        {"@ZERO@", options->is_cxx ? "{}" : "{0}"},
        {"@LANGUAGE@", options->is_cxx ? "CXX" : "C"},
        {"@SUFFIX@", options->is_cxx ? "cpp" : "c"},
        {"@STANDARD@", options->is_cxx ? "cxx_std_20" : "c_std_11"},
        {"@ROWS@", rows},
    };
    const char *at = NULL;
    for (; *lines; lines++)
        for (at = *lines; *at;) {
            size_t i = 0;
            while (i < sizeof words / sizeof words[0] &&
                   strncmp(at, words[i].word, strlen(words[i].word)) != 0)
                i++;
            if (i < sizeof words / sizeof words[0]) {
                text_add(out, words[i].value);
                at += strlen(words[i].word);
            } else {
                text_add_char(out, *at++);
            }
        }
}

void program_print_cmake(text *out, const program_options *options)
{
    add_lines(out, init_text_cmake, options, "");
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    arena *arena;
    const model_facts *m;
    const program_options *options;
} writer;

static const char *param_of(const init_item *item, const char *name)
{
    for (const init_word *w = item->params; w->name; w++)
        if (strcmp(w->name, name) == 0)
            return w->value;
    return "";
}

/* "APPKERNELS_LINEAR_FORMAT_Q4_K", "1" */
static const char *constant(const writer *w, const char *family, const char *param, const char *value)
{
    const bool is_true = strcmp(value, "true") == 0;
    if (is_true || strcmp(value, "false") == 0)
        return is_true ? "1" : "0";
    if (*value >= '0' && *value <= '9')
        return value;
    return upper_case(w->arena,
                      arena_format(w->arena, "%s_%s_%s_%s", w->options->name, family, param, value));
}

/* A number of the model as a C literal. */
static const char *real_text(const writer *w, double value)
{
    char number[40];
    snprintf(number, sizeof number, "%.9g", value);
    return arena_format(w->arena, "%s", number);
}

/* "256, 144, 0, ": a block's elements and bytes, and its first byte where that is an exponent (MXFP4); 0: random. */
static const char *block_text(const writer *w, const init_item *item)
{
    const gguf_type *type = gguf_find_type(param_of(item, "format"));
    return arena_format(w->arena, "%u, %u, %s, ", (unsigned)type->block_values, (unsigned)type->block_bytes,
                        strcmp(type->name, "MXFP4") == 0 ? "120" : "0");
}

/* 'f': f32, 'h': f16, 'c': codes */
static char letter_of(const char *type)
{
    if (strcmp(type, "f32") == 0)
        return 'f';
    return strcmp(type, "s8") == 0 ? 'c' : 'h';
}

static const char *reads_text(const writer *w, const init_item *item)
{
    const char *epilogue = param_of(item, "epilogue");
    return arena_format(w->arena, "\"%s%s%s%s\", ", strcmp(param_of(item, "norm"), "rms") == 0 ? "n" : "",
                        strncmp(epilogue, "bias", 4) == 0 ? "b" : "", strstr(epilogue, "residual") ? "r" : "",
                        strstr(epilogue, "glu") ? "g" : "");
}

/* The text between `times` and the arguments. */
static const char *linear_text(const writer *w, const init_item *item)
{
    return arena_format(w->arena, "%s%s'%c', '%c', ", block_text(w, item), reads_text(w, item),
                        letter_of(param_of(item, "x")), letter_of(param_of(item, "y")));
}

static const char *fp4_text(const writer *w, const init_item *item)
{
    return arena_format(w->arena, "%s'%c', ", reads_text(w, item), letter_of(param_of(item, "y")));
}

static const char *q8_text(const writer *w, const init_item *item)
{
    return arena_format(w->arena, "%s'%c', ", reads_text(w, item), letter_of(param_of(item, "type")));
}

static const char *rope_text(const writer *w, const init_item *item)
{
    (void)item;
    return arena_format(w->arena, "%s, ", real_text(w, w->m->rope_base > 0 ? w->m->rope_base : 10000));
}

static const char *attention_text(const writer *w, const init_item *item)
{
    const char *head_dim_v = param_of(item, "head_dim_v");
    const model_facts *m = w->m;
    const double query_scalar = m->scale > 0          ? 1
                                : m->query_scalar > 0 ? m->query_scalar
                                                      : (double)m->head_dim;
    return arena_format(
        w->arena, "%s, %s, %s, %s, ", strcmp(head_dim_v, "0") == 0 ? param_of(item, "head_dim") : head_dim_v,
        real_text(w, m->softcap), real_text(w, m->scale > 0 ? m->scale : 1), real_text(w, query_scalar));
}

static const char *nf4_text(const writer *w, const init_item *item)
{
    return arena_format(w->arena, "%s, ", strcmp(param_of(item, "scale_type"), "nested") == 0 ? "1" : "0");
}

/* In the order of a model's first launches. */
static const struct section {
    const char *family;
    const char *const *lines;
    const char *(*text_of)(const writer *, const init_item *);
} sections[] = {
    {"gguf_rows", init_text_gguf_rows, block_text},     {"q8_quantize", init_text_q8_quantize, q8_text},
    {"linear", init_text_linear, linear_text},          {"nf4_gemm", init_text_nf4_gemm, nf4_text},
    {"fp4_gemm", init_text_fp4_gemm, fp4_text},         {"rope", init_text_rope, rope_text},
    {"attention", init_text_attention, attention_text},
};

static void add_row(const writer *w, text *rows, const struct section *s, const init_item *item,
                    const init_call *call)
{
    const char *separator = "";
    text_printf(rows, "    {\"%s\", %u, %s{", call->what, (unsigned)call->times, s->text_of(w, item));
    for (const init_word *size = call->sizes; size->name; size++, separator = ", ")
        text_printf(rows, "%s.%s = %s", separator, size->name, size->value);
    if (strcmp(s->family, "rope") == 0) {
        text_add(rows, ", .rotary_dim = ");
        text_add_decimal(rows, w->m->rotary_dim);
    }
    if (strcmp(param_of(item, "norm"), "rms") == 0)
        text_printf(rows, ", .eps = (float)%s", real_text(w, w->m->eps > 0 ? w->m->eps : 1e-5));
    for (const init_word *p = item->params; p->name; p++)
        text_printf(rows, ",\n      .%s = %s", p->name, constant(w, s->family, p->name, p->value));
    text_add(rows, "}},\n");
}

/* The rows of a family's calls; empty if kiln accepts none of its items. */
static const char *rows_of(const writer *w, const struct section *s, const init_items *items)
{
    text rows = text_new(w->arena);
    for (size_t i = 0; i < items->count; i++) {
        const init_item *item = &items->items[i];
        for (size_t k = 0; k < item->call_count && !item->refusal && strcmp(item->family, s->family) == 0;
             k++)
            add_row(w, &rows, s, item, &item->calls[k]);
    }
    return rows.data;
}

void program_print(text *out, const init_items *items, const model_facts *m, const program_options *options)
{
    const writer w = {out->arena, m, options};
    text calls = text_new(out->arena);
    text_printf(
        out, "/* %s\n * Written by `kiln init`; it is yours to change. */\n",
        m ? "One call for each kernel and size that the model launches, on random weights."
          : "Quantises a matrix to NF4, multiplies by it, and compares the product with one made here.");
    add_lines(out, init_text_begin, options, "");
    add_lines(out, m ? init_text_model : init_text_nf4, options, "");
    for (size_t i = 0; m && i < sizeof sections / sizeof sections[0]; i++) {
        const char *rows = rows_of(&w, &sections[i], items), *family = sections[i].family;
        if (!*rows)
            continue;
        add_lines(out, sections[i].lines, options, rows);
        text_printf(&calls,
                    "    for (size_t i = 0; i < sizeof %s_calls / sizeof %s_calls[0]; i++, calls++)\n"
                    "        run_%s(&%s_calls[i]);\n",
                    family, family, family, family);
    }
    if (m)
        text_printf(out,
                    "\nint main(int argc, char **argv)\n{\n    int calls = 0;\n"
                    "    takes_all = argc > 1 && strcmp(argv[1], \"all\") == 0;\n    open_device();\n%s"
                    "    kiln_close(&loader);\n    printf(\"%%d calls, %%d wrong\\n\", calls, failures);\n"
                    "    return failures > 0;\n}\n",
                    calls.data);
}
