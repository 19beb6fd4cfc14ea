/* A variant as something to change. */
#include "subject.h"

#include <string.h>

static void mark_named(const ptx_text *t, const ptx_function *from, bool *is_reached)
{
    size_t at = from->body.at, end = at + from->body.length;
    text_span name;
    for (; ptx_text_next_name(t, at, end, &name); at = name.at + name.length)
        for (size_t i = 0; i < t->function_count; i++)
            if (!t->functions[i].is_entry && ptx_text_same(t, t->functions[i].name, name))
                is_reached[i] = true;
}

/* As often as there are functions: a chain of calls is no longer. */
static void mark_reached(const ptx_text *t, bool *is_reached)
{
    for (size_t times = 0; times < t->function_count; times++)
        for (size_t i = 0; i < t->function_count; i++)
            if (is_reached[i])
                mark_named(t, &t->functions[i], is_reached);
}

static size_t count_statements(const ptx_text *t, const bool *is_reached)
{
    size_t count = 0;
    for (size_t i = 0; i < t->function_count; i++)
        count += is_reached[i] ? t->functions[i].statement_count : 0;
    return count;
}

static void add_site(subject *s, const ptx_function *f, const ptx_statement *statement)
{
    mutation_site *site = &s->sites[s->site_count];
    bool has_any = false;
    *site = (mutation_site){.function = f, .statement = statement};
    for (mutation_kind kind = 0; kind < MUTATION_KINDS; kind++) {
        site->choices[kind] = mutation_count(&s->text, f, statement, kind);
        s->site_count_of[kind] += site->choices[kind] > 0;
        has_any = has_any || site->choices[kind];
    }
    s->site_count += has_any;
}

bool subject_open(subject *s, const device *d, const manifest_variant *v, pool *memory)
{
    const kiln_kernel *kernel = kiln_find(d->index, v->key);
    const kiln_image *image = kernel ? kiln_select(&d->loader.device, kernel->module) : NULL;
    *s = (subject){.variant = v, .kernel = kernel, .image = image};
    if (!image || image->format != KILN_IMAGE_PTX)
        return false;
    ptx_text_read(&s->text, image->data, (size_t)image->bytes, memory);
    bool *is_reached = pool_allocate(memory, s->text.function_count + 1);
    for (size_t i = 0; i < s->text.function_count; i++)
        is_reached[i] =
            s->text.functions[i].is_entry && ptx_text_is(&s->text, s->text.functions[i].name, kernel->entry);
    mark_reached(&s->text, is_reached);
    s->sites = pool_allocate(memory, (count_statements(&s->text, is_reached) + 1) * sizeof *s->sites);
    for (size_t i = 0; i < s->text.function_count; i++) {
        const ptx_function *f = &s->text.functions[i];
        for (size_t k = 0; is_reached[i] && k < f->statement_count; k++)
            add_site(s, f, &f->statements[k]);
    }
    return true;
}
