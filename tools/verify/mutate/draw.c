/* Draws mutants. */
#include "draw.h"

#include <string.h>

/* ---- sites -------------------------------------------------------------------------------------------------------- */

static void mark_named(const ptx_text *t, const ptx_function *from, bool *is_reached)
{
    size_t at = from->body.at, end = at + from->body.length;
    text_span name;
    for (; ptx_text_next_name(t, at, end, &name); at = name.at + name.length)
        for (size_t i = 0; i < t->function_count; i++)
            if (!t->functions[i].is_entry && ptx_text_same(t, t->functions[i].name, name))
                is_reached[i] = true;
}

/* Marks functions that the kernel reaches. One pass per function suffices: no chain of calls is longer. */
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

bool subject_read(subject *s, const device *d, const manifest_variant *v, pool *memory)
{
    const kiln_kernel *kernel = kiln_find(d->index, v->key);
    const kiln_image *image = kernel ? kiln_select(&d->loader.device, kernel->module) : NULL;
    *s = (subject){.variant = v, .kernel = kernel, .image = image};
    if (!image || image->format != KILN_IMAGE_PTX)
        return false;
    const char *data = device_image_data(d, image);
    if (!data)
        return false;
    const size_t bytes = (size_t)(image->codec ? image->expanded_bytes : image->bytes);
    ptx_text_read(&s->text, pool_copy(memory, data, bytes), bytes, memory);
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

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

void draw_open(draw *d, const char *family, const subject *subjects, size_t count, uint64_t seed,
               uint64_t wanted, pool *memory)
{
    *d = (draw){.family = family, .subjects = subjects, .wanted = wanted, .memory = memory};
    d->stream = random_fork(random_open(seed, family), MUTATION_KINDS);
    d->own = pool_allocate(memory, (count + 1) * sizeof *d->own);
    for (size_t i = 0; i < count; i++)
        if (strcmp(subjects[i].variant->family, family) == 0)
            d->own[d->own_count++] = i;
}

static size_t draw_below(draw *d, size_t limit)
{
    return (size_t)random_below(d->stream, d->next++, limit);
}

/* Chooses one of the kinds with the fewest mutants so far. */
static mutation_kind choose_kind(draw *d)
{
    mutation_kind least[MUTATION_KINDS];
    size_t count = 0;
    for (mutation_kind kind = 0; kind < MUTATION_KINDS; kind++) {
        if (d->is_exhausted[kind])
            continue;
        if (count && d->counted_of[kind] < d->counted_of[least[0]])
            count = 0;
        if (count == 0 || d->counted_of[kind] == d->counted_of[least[0]])
            least[count++] = kind;
    }
    return count ? least[draw_below(d, count)] : MUTATION_KINDS;
}

static size_t sites_of(const subject *s, mutation_kind kind)
{
    return kind == MUTATION_KINDS ? s->site_count : s->site_count_of[kind];
}

/* Chooses a variant that has a site for the kind, or for any kind; false: there is none. */
static bool choose_subject(draw *d, mutation_kind kind, size_t *place)
{
    size_t count = 0;
    for (size_t i = 0; i < d->own_count; i++)
        count += sites_of(&d->subjects[d->own[i]], kind) > 0;
    size_t n = count ? draw_below(d, count) : 0;
    for (size_t i = 0; count && i < d->own_count; i++)
        if (sites_of(&d->subjects[d->own[i]], kind) && n-- == 0)
            *place = d->own[i];
    return count > 0;
}

static const mutation_site *choose_site(draw *d, const subject *s, mutation_kind kind)
{
    size_t n = draw_below(d, sites_of(s, kind));
    for (size_t i = 0;; i++)
        if ((kind == MUTATION_KINDS || s->sites[i].choices[kind]) && n-- == 0)
            return &s->sites[i];
}

static mutation_kind choose_kind_of(draw *d, const mutation_site *site)
{
    mutation_kind has[MUTATION_KINDS];
    size_t count = 0;
    for (mutation_kind kind = 0; kind < MUTATION_KINDS; kind++)
        if (site->choices[kind])
            has[count++] = kind;
    return has[draw_below(d, count)];
}

static bool is_drawn(const draw *d, const mutant *m)
{
    for (size_t i = 0; i < d->drawn_count; i++) {
        const mutant *other = &d->drawn[i];
        if (other->subject == m->subject && other->change.span.at == m->change.span.at &&
            other->change.span.length == m->change.span.length &&
            strcmp(other->change.text, m->change.text) == 0)
            return true;
    }
    return false;
}

/* Draws a mutant of a kind, or of any kind. */
static bool draw_mutant(draw *d, mutation_kind kind, mutant *m)
{
    if (!choose_subject(d, kind, &m->subject))
        return false;
    const subject *s = &d->subjects[m->subject];
    const mutation_site *site = choose_site(d, s, kind);
    m->kind = kind == MUTATION_KINDS ? choose_kind_of(d, site) : kind;
    m->statement = site->statement->whole;
    m->change = mutation_at(&s->text, site->function, site->statement, m->kind,
                            draw_below(d, site->choices[m->kind]));
    return true;
}

static void note(draw *d, const mutant *m)
{
    d->drawn = pool_grow(d->memory, d->drawn, d->drawn_count, sizeof *m);
    d->drawn[d->drawn_count++] = *m;
    d->counted++;
    d->counted_of[m->kind]++;
}

/* Draws a mutant that was not drawn before. */
static bool draw_new(draw *d, mutation_kind kind, mutant *m)
{
    enum { TRIES = 64 };
    for (int i = 0; i < TRIES && draw_mutant(d, kind, m); i++) {
        if (is_drawn(d, m))
            continue;
        note(d, m);
        return true;
    }
    return false;
}

bool draw_next(draw *d, mutant *m)
{
    enum { BY_KIND = 4, MOST_IN_VAIN = 50 }; /* by then, hardly any mutant of the family loads */
    if (d->counted == d->wanted || d->drawn_count > MOST_IN_VAIN * d->wanted)
        return false;
    if (d->drawn_count % BY_KIND && draw_new(d, MUTATION_KINDS, m))
        return true;
    for (mutation_kind kind; (kind = choose_kind(d)) != MUTATION_KINDS; d->is_exhausted[kind] = true)
        if (draw_new(d, kind, m))
            return true;
    return false;
}

void draw_again(draw *d, mutation_kind kind)
{
    d->counted--;
    d->counted_of[kind]--;
}
