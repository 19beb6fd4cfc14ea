/* Constraints on combinations, and their diagnostics. */
#include "constraints.h"

#include <string.h>

#include "family.h"
#include "shape.h"
#include "support/messages.h"
#include "support/words.h"

enum { SHOWN = 3, MOST_TRIED = 1000 /* combinations of a request that the search for advice tries */ };

void kiln_require(kiln_shape *s, bool holds, const char *params, const char *sentence)
{
    constraints *c = s->constraints;
    if (!c)
        return;
    constraint *one = arena_push(c->arena, (void **)&c->items, &c->count, &c->capacity, sizeof *one);
    *one = (constraint){.params = params, .text = sentence, .holds = holds};
}

void kiln_require_shared_bytes(kiln_shape *s, uint32_t bytes, uint32_t most, const char *params,
                               const char *what)
{
    constraints *c = s->constraints;
    if (!c)
        return;
    kiln_require(
        s, bytes <= most, params,
        arena_format(c->arena, "%s may take at most %u bytes of shared memory", what, (unsigned)most));
    c->items[c->count - 1].bytes = bytes;
    c->items[c->count - 1].most = most;
}

static constraints ask(arena *a, const variant *v)
{
    constraints noted = {.arena = a};
    shape_ask(v, oldest_target, NULL, &noted);
    return noted;
}

constraints constraints_of(arena *a, const kiln_family *family)
{
    variant v = {.family = family};
    for (size_t i = 0; i < family_param_count(family); i++)
        v.values[i] = param_value_of(a, &family->params[i], family->params[i].default_value);
    return ask(a, &v);
}

static constraint *first_broken(arena *a, const constraints *known, const variant *v)
{
    const constraints asked = ask(a, v);
    if (asked.count != known->count)
        family_error("family %s: shape has %u constraints for %s and %u else; kiln_require is called for "
                     "every variant",
                     v->family->name, (unsigned)asked.count, v->id ? v->id : "some variant",
                     (unsigned)known->count);
    for (size_t i = 0; i < asked.count; i++)
        if (!asked.items[i].holds)
            return &known->items[i];
    return NULL;
}

static void record(arena *a, constraint *broken, const variant *v)
{
    const variant **slot =
        arena_push(a, (void **)&broken->broken_by, &broken->count, &broken->capacity, sizeof *slot);
    *slot = v;
}

bool constraints_break(arena *a, constraints *c, const variant *v)
{
    constraint *broken = first_broken(a, c, v);
    if (broken)
        record(a, broken, v);
    return broken;
}

/* ---- legal combinations ------------------------------------------------------------------------------------------- */

/* Parameters get their values in order; a constraint is decided once the last parameter that it depends on has a value.
 * */
typedef struct legal_walk {
    arena *arena, *scratch;
    constraints *known;
    const request *request;
    size_t count;       /* number of parameters */
    const size_t *last; /* by constraint: the index of its last parameter */
    visit_variant *visit;
    void *context;
} legal_walk;

static size_t last_param(const kiln_family *family, const char *params)
{
    size_t last = 0;
    for (size_t i = 0; i < family_param_count(family); i++)
        if (words_contain(params, family->params[i].name))
            last = i;
    return last;
}

/* Whether the constraints that parameter `index` decides hold, whatever the later parameters are. Records the values at
 * the first one that they break. */
static bool is_legal_so_far(const legal_walk *w, const variant *v, size_t index)
{
    constraint *broken = NULL;
    const constraints asked = ask(w->scratch, v);
    for (size_t i = 0; i < asked.count && i < w->known->count && !broken; i++)
        if (w->last[i] == index && !asked.items[i].holds)
            broken = &w->known->items[i];
    arena_clear(w->scratch);
    if (broken && broken->count < MOST_TRIED)
        record(w->arena, broken, arena_copy(w->arena, v, sizeof *v));
    return !broken;
}

static bool decides(const legal_walk *w, size_t index)
{
    for (size_t i = 0; i < w->known->count; i++)
        if (w->last[i] == index)
            return true;
    return false;
}

static bool walk(const legal_walk *w, variant *v, size_t index)
{
    if (index == w->count)
        return w->visit(w->context, v);
    const bool is_asked = decides(w, index);
    bool goes_on = true;
    for (size_t i = 0; i < w->request->values[index].count && goes_on; i++) {
        v->values[index] = w->request->values[index].items[i];
        if (!is_asked || is_legal_so_far(w, v, index))
            goes_on = walk(w, v, index + 1);
    }
    return goes_on;
}

void constraints_visit_legal(arena *a, constraints *c, const request *r, visit_variant *visit, void *context)
{
    size_t *last = arena_alloc(a, (c->count + 1) * sizeof *last);
    for (size_t i = 0; i < c->count; i++)
        last[i] = last_param(r->family, c->items[i].params);
    const legal_walk w = {a, arena_new(), c, r, family_param_count(r->family), last, visit, context};
    variant v = {.family = r->family};
    for (size_t i = 0; i < w.count; i++)
        v.values[i] = r->values[i].items[0];
    walk(&w, &v, 0);
    arena_free(w.scratch);
}

/* ---- values of variants that break one --------------------------------------------------------------------------- */

/* "rows=4 (default), batch=3": the values of the constraint's parameters. */
static const char *values_text(arena *a, const constraint *r, const request *q, const variant *v)
{
    text out = text_new(a);
    for (size_t i = 0; i < family_param_count(q->family); i++)
        if (words_contain(r->params, q->family->params[i].name))
            text_printf(&out, "%s%s=%s%s", out.length > 0 ? ", " : "", q->family->params[i].name,
                        v->values[i].text, q->values[i].is_default ? " (default)" : "");
    return out.data;
}

/* The first few different values, and the number of variants that have them. */
static const char *quote_values(arena *a, const constraint *r, const request *q, size_t variants)
{
    const char *shown[SHOWN];
    size_t count = 0;
    text out = text_new(a);
    for (size_t i = 0; i < r->count; i++) {
        const char *values = values_text(a, r, q, r->broken_by[i]);
        size_t k = 0;
        while (k < count && strcmp(shown[k], values) != 0)
            k++;
        if (k < count)
            continue;
        if (count == SHOWN) {
            text_add(&out, "; ...");
            break;
        }
        text_printf(&out, "%s%s", count > 0 ? "; " : "", values);
        shown[count++] = values;
    }
    if (variants > 1)
        text_printf(&out, " in %u of %u variants", (unsigned)r->count, (unsigned)variants);
    return out.data;
}

/* ---- what to write instead --------------------------------------------------------------------------------------- */

/* New values for some of a request's defaults. */
typedef struct change {
    size_t param;
    const char *value;
} change;

static bool serves(arena *a, const constraints *r, const request *q, size_t variants, const change *changes,
                   size_t count)
{
    for (size_t i = 0; i < variants; i++) {
        variant v = {.family = q->family};
        request_values(q, i, &v);
        for (size_t k = 0; k < count; k++)
            v.values[changes[k].param] =
                param_value_of(a, &q->family->params[changes[k].param], changes[k].value);
        if (first_broken(a, r, &v))
            return false;
    }
    return true;
}

/* The values to try for a parameter left at its default; none for a requested value or a range. To save shared
 * memory, only tuning parameters change. */
static const char *choices(arena *a, const constraint *broken, const request *q, size_t param)
{
    const kiln_param *p = &q->family->params[param];
    const bool is_range = p->type == KILN_PARAM_INT && !p->words,
               is_fixed = broken->most > 0 && p->role == KILN_ROLE_CONTRACT;
    return q->values[param].is_default && !is_range && !is_fixed ? param_values_text(a, p) : "";
}

/* "write 'tile: 64' (or 128)": all values of one parameter that make the request legal. */
static const char *advise_one(arena *a, const constraints *r, const constraint *broken, const request *q,
                              size_t variants, size_t param)
{
    text out = text_new(a);
    const char *cursor = choices(a, broken, q, param);
    size_t length, count = 0;
    for (const char *w; (w = words_next(&cursor, &length));) {
        const change c = {param, arena_string(a, w, length)};
        if (!serves(a, r, q, variants, &c, 1))
            continue;
        if (count++ == 0)
            text_printf(&out, "; write '%s: %s'", q->family->params[param].name, c.value);
        else
            text_printf(&out, "%s%s", count == 2 ? " (or " : ", ", c.value);
    }
    text_add(&out, count > 1 ? ")" : "");
    return out.data;
}

/* The first values of two parameters that make the request legal. */
static const char *advise_two(arena *a, const constraints *r, const constraint *broken, const request *q,
                              size_t variants, size_t first, size_t second)
{
    const char *cursor = choices(a, broken, q, first);
    size_t length;
    for (const char *w; (w = words_next(&cursor, &length));) {
        change c[2] = {{first, arena_string(a, w, length)}, {second, NULL}};
        const char *other = choices(a, broken, q, second);
        for (const char *o; (o = words_next(&other, &length));) {
            c[1].value = arena_string(a, o, length);
            if (serves(a, r, q, variants, c, 2))
                return arena_format(a, "; write '%s: %s' and '%s: %s'", q->family->params[first].name,
                                    c[0].value, q->family->params[second].name, c[1].value);
        }
    }
    return "";
}

static const char *advice(arena *a, const constraints *r, const constraint *broken, const request *q,
                          size_t variants, size_t broken_by)
{
    const char *advised = "";
    size_t params = family_param_count(q->family);
    if (variants <= MOST_TRIED) {
        for (size_t i = 0; i < params && !*advised; i++)
            if (words_contain(broken->params, q->family->params[i].name))
                advised = advise_one(a, r, broken, q, variants, i);
        for (size_t i = 0; i < params && !*advised; i++)
            for (size_t k = i + 1; k < params && !*advised; k++)
                advised = advise_two(a, r, broken, q, variants, i, k);
    }
    if (*advised || broken_by == variants || q->is_legal_only)
        return advised;
    return "; give values that go together an item of their own, or write 'combinations: legal'";
}

/* States the constraint; for shared memory also the bytes that the first variant needs. */
static const char *broken_text(arena *a, const constraints *r, size_t i)
{
    const constraint *broken = &r->items[i];
    if (broken->most == 0)
        return broken->text;
    const constraints asked = ask(a, broken->broken_by[0]);
    return arena_format(a, "%s, and take %u%s", broken->text, (unsigned)asked.items[i].bytes,
                        broken->count > 1 ? " in the first" : "");
}

/* Returns whether every combination breaks the constraint, because each of its parameters has only one value. */
static bool is_certain(const constraint *broken, const request *q)
{
    for (size_t i = 0; i < family_param_count(q->family); i++)
        if (words_contain(broken->params, q->family->params[i].name) && q->values[i].count > 1)
            return false;
    return broken->count > 0;
}

/* If only legal combinations were wanted, and some constraints are certain to be broken, reports only those. */
void constraints_report(arena *a, const constraints *r, const request *q, diagnostics *d)
{
    const size_t variants = request_count(q), told_of = q->is_legal_only ? 1 : variants;
    size_t broken_by = 0, certain = 0;
    for (size_t i = 0; i < r->count; i++) {
        broken_by += r->items[i].count;
        certain += q->is_legal_only && is_certain(&r->items[i], q);
    }
    for (size_t i = 0; i < r->count; i++) {
        const constraint *broken = &r->items[i];
        if (broken->count > 0 && (certain == 0 || is_certain(broken, q)))
            diagnose(d, q->at, message_constraint, q->family->name, quote_values(a, broken, q, told_of),
                     broken_text(a, r, i), advice(a, r, broken, q, variants, broken_by));
    }
}
