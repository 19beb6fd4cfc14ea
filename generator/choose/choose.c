#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "family/constraints.h"
#include "family/shape.h"
#include "plan/lock.h"
#include "plan/variants.h"
#include "support/files.h"
#include "support/messages.h"
#include "target/target.h"

/* ---- the order of variants ---------------------------------------------------------------------------------------- */

static size_t family_place(family_list families, const kiln_family *family)
{
    size_t i = 0;
    while (families[i] && families[i] != family)
        i++;
    return i;
}

/* Where a value stands among those that the parameter can have. */
static size_t value_place(const kiln_param *param, const param_value *value)
{
    const char *found = NULL;
    const size_t length = strlen(value->text);
    if (!param->words)
        return value->number;
    for (const char *w = param->words; (w = strstr(w, value->text)) && !found; w += length)
        if ((w == param->words || w[-1] == ' ') && (w[length] == ' ' || !w[length]))
            found = w;
    return found ? (size_t)(found - param->words) : SIZE_MAX;
}

static family_list sorted_families;

static int compare_variants(const void *x, const void *y)
{
    const variant *a = *(variant *const *)x, *b = *(variant *const *)y;
    const size_t of_a = family_place(sorted_families, a->family),
                 of_b = family_place(sorted_families, b->family);
    if (of_a != of_b)
        return of_a < of_b ? -1 : 1;
    for (size_t i = 0; a->family->params && a->family->params[i].name; i++) {
        const size_t at_a = value_place(&a->family->params[i], &a->values[i]),
                     at_b = value_place(&a->family->params[i], &b->values[i]);
        if (at_a != at_b)
            return at_a < at_b ? -1 : 1;
    }
    return 0;
}

/* ---- one contract ------------------------------------------------------------------------------------------------- */

typedef struct chooser {
    arena *arena;
    plan *plan;
    diagnostics *d;
    const choose_options *options;
    variant **variants;
    size_t count, capacity;
    uint64_t bytes;
} chooser;

static const char *ratio_text(arena *a, uint32_t thousandths)
{
    return arena_format(a, "%u.%02u", (unsigned)(thousandths / PICK_ONE),
                        (unsigned)(thousandths % PICK_ONE / 10));
}

/* 2^(log2 / 65536) in thousandths. */
static uint32_t ratio_of_log2(uint64_t log2)
{
    uint32_t low = PICK_ONE, high = 100 * PICK_ONE;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (pick_log2(middle, PICK_ONE) > log2)
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* As one of the plan's, unless that has it already. */
static void keep(chooser *ch, const variant *chosen)
{
    arena *a = ch->arena;
    variant *v = arena_alloc(a, sizeof *v);
    v->family = chosen->family;
    v->at = chosen->at;
    memcpy(v->values, chosen->values, sizeof v->values);
    variant_fill_shape(a, v, ch->plan->targets, ch->plan->target_count);
    variant_name(a, v);
    for (size_t i = 0; i < ch->plan->variant_count; i++)
        if (strcmp(ch->plan->variants[i]->id, v->id) == 0)
            return;
    for (size_t i = 0; i < ch->count; i++)
        if (strcmp(ch->variants[i]->id, v->id) == 0)
            return;
    *(variant **)arena_push(a, (void **)&ch->variants, &ch->count, &ch->capacity, sizeof v) = v;
}

static void summarise(const chooser *ch, const candidates *c, const picked *p)
{
    uint64_t bytes = 0;
    if (!ch->options->summary)
        return;
    for (size_t i = 0; i < p->count; i++)
        bytes += candidate_bytes((void *)c, p->items[i]);
    text_printf(
        ch->options->summary,
        "%s: %u of %u variants, %u KB; %s of the best at most, %s in the mean, at %u shape%s on %u device%s; %s\n",
        candidates_name(c), (unsigned)p->count, (unsigned)c->count, (unsigned)((bytes + 1023) / 1024),
        ratio_text(c->arena, p->worst), ratio_text(c->arena, ratio_of_log2(p->mean)),
        (unsigned)c->item->shape_count, c->item->shape_count == 1 ? "" : "s", (unsigned)c->item->device_count,
        c->item->device_count == 1 ? "" : "s",
        c->item->only_shapes ? "only these shapes are served" : "every legal call is served");
}

/* The diagnostic for a choice that was not made. */
static void report(const chooser *ch, const candidates *c, const picked *p)
{
    const place at = c->item->request.at;
    const char *name = candidates_name(c);
    const unsigned most = c->item->max_variants;
    if (p->status == PICK_TOO_SLOW)
        diagnose(ch->d, at, message_choice_over, name, ratio_text(c->arena, c->item->within), most,
                 (unsigned)p->count, ratio_text(c->arena, p->worst),
                 candidates_point_text(c, p->worst_point));
    else if (p->status == PICK_UNCOVERED)
        diagnose(ch->d, at, message_choice_coverage, name, most, (unsigned)p->count);
    else
        diagnose(ch->d, at, message_choice_undecided, name);
}

/* So many candidates, the best first: each next one is the best at some point where those before it are slowest. */
static void take_best(chooser *ch, const candidates *c, size_t count)
{
    bool *is_taken = arena_alloc(c->arena, c->count + 1);
    for (size_t n = 0; n < count && n < c->count; n++) {
        size_t best = c->count;
        uint64_t least = PICK_NEVER;
        for (size_t i = 0; i < c->count; i++) {
            if (is_taken[i])
                continue;
            for (size_t p = n % (c->point_count ? c->point_count : 1); p < c->point_count;
                 p += c->point_count) {
                const uint64_t time = c->times[i * c->point_count + p];
                if (time < least || best == c->count) {
                    least = time;
                    best = i;
                }
            }
        }
        if (best == c->count)
            break;
        is_taken[best] = true;
        keep(ch, c->items[best].variant);
    }
}

static void choose_contract(chooser *ch, const shaped_item *item, const request *contract)
{
    arena *a = arena_new();
    candidates c = candidates_of(a, ch->plan, item, contract);
    if (c.count == 0) {
        plan none = *ch->plan; /* for its diagnostics */
        request all = *contract;
        none.variant_count = none.variant_capacity = 0;
        none.variants = NULL;
        request_expand(ch->arena, &all, &none, ch->d);
    } else if (candidates_judge(&c, ch->d)) {
        const pick_table table = {.candidate_count = c.count,
                                  .point_count = c.point_count,
                                  .need_count = c.need_count,
                                  .times = c.times,
                                  .meets = c.meets,
                                  .within = item->within,
                                  .most = item->max_variants,
                                  .bytes_of = candidate_bytes,
                                  .context = &c};
        const picked p = pick(a, &table);
        if (p.status != PICK_MADE)
            report(ch, &c, &p);
        else
            summarise(ch, &c, &p);
        for (size_t i = 0; i < p.count && p.status == PICK_MADE; i++)
            keep(ch, c.items[p.items[i]].variant);
        if (ch->options->candidates > 0 && p.status == PICK_MADE)
            take_best(ch, &c, ch->options->candidates);
    }
    arena_free(a);
}

/* ---- items -------------------------------------------------------------------------------------------------------- */

/* Each combination of the contract's values. */
static void choose_item(chooser *ch, const shaped_item *item)
{
    const kiln_family *family = item->request.family;
    const size_t params = family_param_count(family);
    size_t contracts = 1;
    for (size_t i = 0; i < params; i++)
        if (family->params[i].role == KILN_ROLE_CONTRACT)
            contracts *= item->request.values[i].count;
    for (size_t number = 0; number < contracts; number++) {
        request contract = item->request;
        size_t left = number;
        for (size_t i = params; i-- > 0;) {
            if (family->params[i].role != KILN_ROLE_CONTRACT)
                continue;
            contract.values[i].items += left % contract.values[i].count;
            left /= contract.values[i].count;
            contract.values[i].count = 1;
        }
        choose_contract(ch, item, &contract);
    }
}

static void append(arena *a, plan *p, variant *const *variants, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *(variant **)arena_push(a, (void **)&p->variants, &p->variant_count, &p->variant_capacity,
                                sizeof *variants) = variants[i];
}

/* Whether the lock has a variant of each contract that the items ask for; else a diagnostic for each item that it lacks. */
static bool serves_items(arena *a, const plan *p, const lock *l, diagnostics *d)
{
    bool ok = true;
    const char *config = p->config_path;
    for (size_t i = 0; i < p->shaped_count; i++) {
        bool has_family = false;
        for (size_t k = 0; k < l->count; k++)
            has_family = has_family || l->variants[k]->family == p->shaped[i].request.family;
        if (!has_family)
            diagnose(d, l->at, message_lock_lacks, p->shaped[i].request.at.line, config, config);
        ok = ok && has_family;
    }
    (void)a;
    return ok;
}

/* Variants that an item without shapes has too are that item's. */
static void take_lock(arena *a, plan *p, const char *path, diagnostics *d)
{
    lock l = {0};
    char hash[LOCK_HASH_BYTES];
    if (!lock_read(a, p, path, &l, d) || !serves_items(a, p, &l, d))
        return;
    lock_hash(a, p, hash);
    if (strcmp(hash, l.asked) != 0)
        warn(d, l.at, message_lock_stale, p->config_path);
    size_t count = 0;
    for (size_t i = 0; i < l.count; i++) {
        bool is_new = true;
        for (size_t k = 0; k < p->variant_count && is_new; k++)
            is_new = strcmp(p->variants[k]->id, l.variants[i]->id) != 0;
        if (is_new)
            l.variants[count++] = l.variants[i];
    }
    append(a, p, l.variants, count);
}

void choose_variants(arena *a, plan *p, diagnostics *d, const void *context)
{
    const choose_options *options = context;
    const char *path = options->lock ? options->lock : lock_path(a, p);
    if (!options->ignores_lock && path && (options->lock || file_exists(path))) {
        take_lock(a, p, path, d);
        return;
    }
    if (!options->ignores_lock)
        warn(d, p->shaped[0].request.at, message_lock_none, path ? path : "lock file", p->config_path);
    chooser ch = {.arena = a, .plan = p, .d = d, .options = options};
    for (size_t i = 0; i < p->shaped_count; i++)
        choose_item(&ch, &p->shaped[i]);
    sorted_families = p->families;
    if (ch.count > 0)
        qsort(ch.variants, ch.count, sizeof *ch.variants, compare_variants);
    append(a, p, ch.variants, ch.count);
}
