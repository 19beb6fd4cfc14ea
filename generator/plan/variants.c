/* Expands a configuration's requests to variants with names. */
#include "variants.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "expression/expression.h"
#include "external/external.h"
#include "family/constraints.h"
#include "family/family.h"
#include "family/shape.h"
#include "support/messages.h"
#include "support/words.h"
#include "target/target.h"

/* ---- expansion -------------------------------------------------------------------------------------------------- */

void request_fill_defaults(arena *a, request *r)
{
    size_t count = family_param_count(r->family);
    for (size_t i = 0; i < count; i++) {
        if (r->values[i].count > 0)
            continue;
        r->values[i].is_default = true;
        const kiln_param *param = &r->family->params[i];
        param_value value = param_value_of(a, param, param->default_value);
        r->values[i].items = arena_copy(a, &value, sizeof value);
        r->values[i].count = 1;
    }
}

size_t plan_image_owner(const plan *p, size_t i, const kiln_family *family)
{
    const variant *v = p->variants[i];
    size_t k = v->kind == VARIANT_EXTERNAL ? 0 : i;
    while (k < i && (p->variants[k]->module != v->module || (family && p->variants[k]->family != family)))
        k++;
    return k;
}

/* ---- variants that run nowhere ----------------------------------------------------------------------------------- */

/* Variants of a request that need the same unlisted target. */
typedef struct stranded {
    uint32_t lowest_sm;
    const variant *first;
    size_t count;
} stranded;

typedef struct stranded_list {
    stranded *items;
    size_t count, capacity;
} stranded_list;

static void add_stranded(arena *a, stranded_list *list, uint32_t lowest_sm, const variant *v)
{
    size_t i = 0;
    while (i < list->count && list->items[i].lowest_sm != lowest_sm)
        i++;
    if (i == list->count) {
        stranded *added = arena_push(a, (void **)&list->items, &list->count, &list->capacity, sizeof *added);
        *added = (stranded){.lowest_sm = lowest_sm, .first = v};
    }
    list->items[i].count++;
}

/* "runs on sm_80, sm_90": the lowest target alone is not enough if a variant needs kinds of targets, such as sm_90a and
 * sm_100f, or more shared memory than some newer ones have. */
static const char *targets_text(arena *a, const variant *v)
{
    text names = text_new(a);
    const char *cursor = target_names;
    size_t length;
    for (const char *w; (w = words_next(&cursor, &length));) {
        const char *name = arena_string(a, w, length);
        target t;
        if (target_parse(name, &t) && variant_runs_on(v, t))
            text_printf(&names, "%s%s", names.length > 0 ? ", " : "runs on ", name);
    }
    return names.length > 0 ? names.data : "runs on no target";
}

/* Shared memory per thread block on every target; on every target from sm_80 on: CUDA programming guide, technical
 * specifications. */
enum { SHARED_OF_ALL = 65536, SHARED_OF_NEWER = 101376 };

/* Why a variant does not run on other targets. */
static const char *needs_text(arena *a, const variant *v)
{
    const kiln_shape *shape = &v->shape;
    const uint32_t shared = shape->least_shared_bytes,
                   least_sm = shared > SHARED_OF_ALL && shape->min_sm < 80 ? 80 : shape->min_sm;
    const char *what = shape->is_specific || shape->max_sm || shared > SHARED_OF_NEWER
                           ? targets_text(a, v)
                           : arena_format(a, "needs sm_%u or newer", (unsigned)least_sm);
    return shared > SHARED_OF_ALL
               ? arena_format(a, "%s: it takes %u bytes of shared memory", what, (unsigned)shared)
               : what;
}

static void report_stranded(arena *a, const stranded_list *list, diagnostics *d)
{
    for (size_t i = 0; i < list->count; i++) {
        const stranded *s = &list->items[i];
        const char *others = s->count > 1 ? arena_format(a, " (and %u more)", (unsigned)(s->count - 1)) : "";
        diagnose(d, s->first->at, message_variant_without_target, s->first->id, others,
                 needs_text(a, s->first));
    }
}

/* One request, whose variants go into a plan. */
typedef struct expansion {
    arena *arena;
    const request *request;
    plan *plan;
    stranded_list nowhere;
    size_t taken, room;
} expansion;

static bool take(void *context, const variant *values)
{
    expansion *e = context;
    if (e->taken++ >= e->room)
        return false;
    variant *v = arena_copy(e->arena, values, sizeof *values);
    plan *p = e->plan;
    v->module = &external_none;
    v->at = e->request->at;
    variant_name(e->arena, v);
    variant_fill_shape(e->arena, v, p->targets, p->target_count);
    if (v->runs_on == 0 && p->target_count > 0 && !e->request->takes_stranded)
        add_stranded(e->arena, &e->nowhere, v->shape.min_sm, v);
    variant **slot =
        arena_push(e->arena, (void **)&p->variants, &p->variant_count, &p->variant_capacity, sizeof *slot);
    *slot = v;
    return true;
}

/* Takes each combination that breaks no constraint, and records the others. */
static void take_all(expansion *e, constraints *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        variant *v = arena_alloc(e->arena, sizeof *v);
        v->family = e->request->family;
        request_values(e->request, i, v);
        if (!constraints_break(e->arena, all, v))
            take(e, v);
    }
}

void request_expand(arena *a, request *r, plan *p, diagnostics *d)
{
    request_fill_defaults(a, r);
    constraints all = constraints_of(a, r->family);
    expansion e = {.arena = a, .request = r, .plan = p, .room = MOST_VARIANTS - p->variant_count};
    const size_t count = request_count(r);
    if (count > MOST_COMBINATIONS) {
        diagnose(d, r->at, message_too_many_combinations, MOST_COMBINATIONS);
        return;
    }
    if (r->is_legal_only)
        constraints_visit_legal(a, &all, r, take, &e);
    else if (count > e.room)
        e.taken = count;
    else
        take_all(&e, &all, count);
    if (e.taken > e.room) {
        diagnose(d, r->at, message_too_many_variants, MOST_VARIANTS);
        return;
    }
    if (!r->is_legal_only || e.taken == 0)
        constraints_report(a, &all, r, d);
    report_stranded(a, &e.nowhere, d);
}

/* ---- checks of the whole ---------------------------------------------------------------------------------------- */

/* Open addressing over hashes, to find an earlier variant of the same hash. */
typedef struct variant_table {
    const variant **slots;
    size_t mask;
} variant_table;

static variant_table new_table(arena *a, size_t count)
{
    size_t slots = 16;
    while (slots < count * 2)
        slots *= 2;
    variant_table table = {.mask = slots - 1};
    table.slots = arena_alloc(a, slots * sizeof table.slots[0]);
    return table;
}

static bool same_key(const variant *x, const variant *y)
{
    return x->key == y->key;
}

static bool same_entry(const variant *x, const variant *y)
{
    return strcmp(x->entry, y->entry) == 0;
}

/* The earlier variant that is the same, or null after adding this one. */
static const variant *find_or_add(variant_table *table, const variant *v, uint64_t hash,
                                  bool (*same)(const variant *, const variant *))
{
    size_t i = (size_t)hash & table->mask;
    for (; table->slots[i]; i = (i + 1) & table->mask)
        if (same(table->slots[i], v))
            return table->slots[i];
    table->slots[i] = v;
    return NULL;
}

static void check_names(arena *a, const plan *p, diagnostics *d)
{
    variant_table keys = new_table(a, p->variant_count), entries = new_table(a, p->variant_count);
    for (size_t i = 0; i < p->variant_count; i++) {
        const variant *v = p->variants[i];
        const variant *other = find_or_add(&keys, v, v->key, same_key);
        if (other && strcmp(other->id, v->id) == 0) {
            diagnose(d, v->at, message_variant_twice, v->id, other->at.line);
            continue;
        }
        if (other)
            diagnose(d, v->at, message_key_collision, (unsigned long long)v->key, other->id, v->id);
        other = find_or_add(&entries, v, XXH3_64bits(v->entry, strlen(v->entry)), same_entry);
        if (other)
            diagnose(d, v->at, message_entry_collision, v->entry, other->id, v->id);
    }
}

/* Targets that some variant of the family runs on. */
static uint32_t served_targets(const plan *p, const kiln_family *family)
{
    uint32_t served = 0;
    for (size_t i = 0; i < p->variant_count; i++)
        if (p->variants[i]->family == family)
            served |= p->variants[i]->runs_on;
    return served;
}

static const variant *first_variant(const plan *p, const kiln_family *family)
{
    size_t i = 0;
    while (p->variants[i]->family != family)
        i++;
    return p->variants[i];
}

/* The first value of a parameter for which a variant runs on a target; null: none can be listed. */
static const char *value_that_runs(arena *a, constraints *all, const variant *v, size_t param, target t)
{
    const kiln_param *row = &v->family->params[param];
    const bool is_range = row->type == KILN_PARAM_INT && !row->words;
    const char *values = is_range ? "" : param_values_text(a, row);
    size_t length;
    for (const char *w; (w = words_next(&values, &length));) {
        variant *other = arena_copy(a, v, sizeof *v);
        other->values[param] = param_value_of(a, row, arena_string(a, w, length));
        other->runs_on = 0;
        if (constraints_break(a, all, other))
            continue;
        variant_fill_shape(a, other, &t, 1);
        if (other->runs_on)
            return other->values[param].text;
    }
    return NULL;
}

/* The first variant's values that exclude a target, and what to write instead. */
static void report_unserved(arena *a, const plan *p, const kiln_family *family, target t, place at,
                            diagnostics *d)
{
    const variant *v = first_variant(p, family);
    constraints all = constraints_of(a, family);
    text needy = text_new(a), instead = text_new(a);
    for (size_t i = 0; i < family_param_count(family); i++) {
        const char *name = family->params[i].name, *value = value_that_runs(a, &all, v, i, t);
        if (!value)
            continue;
        text_printf(&needy, "%s%s=%s", needy.length > 0 ? " with " : "", name, v->values[i].text);
        text_printf(&instead, "%s'%s: %s'", instead.length > 0 ? " or " : ", or add a variant with ", name,
                    value);
    }
    diagnose(d, at, message_target_without_variant, family->name, target_text(a, t),
             needy.length > 0 ? needy.data : v->id, needs_text(a, v), instead.data);
}

static void check_targets(arena *a, const plan *p, const place *places, diagnostics *d)
{
    for (family_list f = p->families; *f; f++) {
        uint32_t served = served_targets(p, *f);
        if (served == 0)
            continue; /* not requested, or already reported for each variant */
        for (size_t i = 0; i < p->target_count; i++)
            if (!(served >> i & 1))
                report_unserved(a, p, *f, p->targets[i], places[i], d);
    }
}

void plan_check(arena *a, const plan *p, const place *places, diagnostics *d)
{
    bool complete = d->count == 0;
    check_names(a, p, d);
    if (complete) /* otherwise a reported mistake explains it */
        check_targets(a, p, places, d);
}
