#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "external/external.h"
#include "family/shape.h"
#include "plan/lock.h"
#include "plan/variants.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/names.h"
#include "support/quote.h"
#include "target/target.h"

/* A contract of an item: a combination of values of its contract parameters. */
typedef struct contract {
    arena *arena; /* owns the members below */
    candidates candidates;
    pick_table table;
    picked picked;
} contract;

typedef struct chooser {
    arena *arena;
    plan *plan;
    diagnostics *d;
    const choose_options *options;
    contract **contracts;
    size_t contract_count, contract_capacity;
    variant **variants; /* the chosen variants, in the order of families and values */
    size_t count, capacity;
} chooser;

/* ---- variants ----------------------------------------------------------------------------------------------------- */

static size_t family_place(family_list families, const kiln_family *family)
{
    size_t i = 0;
    while (families[i] && families[i] != family)
        i++;
    return i;
}

static int compare_variants(family_list families, const variant *x, const variant *y)
{
    size_t of_x = family_place(families, x->family), of_y = family_place(families, y->family);
    for (size_t i = 0; of_x == of_y && i < family_param_count(x->family); i++) {
        of_x = param_value_place(&x->family->params[i], &x->values[i]);
        of_y = param_value_place(&y->family->params[i], &y->values[i]);
    }
    return of_x < of_y ? -1 : of_x > of_y;
}

static bool has_variant(variant *const *variants, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(variants[i]->id, id) == 0)
            return true;
    return false;
}

/* Adds a copy of the variant to the chosen variants, unless they or the plan have it. */
static void keep(chooser *ch, const variant *chosen)
{
    arena *a = ch->arena;
    variant *v = arena_alloc(a, sizeof *v);
    v->family = chosen->family;
    v->module = &external_none;
    v->at = chosen->at;
    memcpy(v->values, chosen->values, sizeof v->values);
    variant_fill_shape(a, v, ch->plan->targets, ch->plan->target_count);
    variant_name(a, v);
    if (has_variant(ch->plan->variants, ch->plan->variant_count, v->id) ||
        has_variant(ch->variants, ch->count, v->id))
        return;
    arena_push(a, (void **)&ch->variants, &ch->count, &ch->capacity, sizeof v);
    size_t i = ch->count - 1;
    for (; i > 0 && compare_variants(ch->plan->families, v, ch->variants[i - 1]) < 0; i--)
        ch->variants[i] = ch->variants[i - 1];
    ch->variants[i] = v;
}

/* ---- one contract ------------------------------------------------------------------------------------------------- */

/* "1.10", "1.105" */
static const char *ratio_text(arena *a, uint32_t thousandths)
{
    const bool has_third = thousandths % 10 != 0;
    return arena_format(a, "%u.%0*u", (unsigned)(thousandths / PICK_ONE), has_third ? 3 : 2,
                        (unsigned)(thousandths % PICK_ONE / (has_third ? 1 : 10)));
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

static uint64_t bytes_of(contract *chosen, const picked *p)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->count; i++)
        bytes += candidate_bytes(&chosen->candidates, p->items[i]);
    return bytes;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* "68 KB", "1.5 MB", "136 MB" */
static const char *amount_text(arena *a, uint64_t bytes)
{
    const unsigned long long kib = (bytes + 1023) / 1024, tenths = (kib * 10 + 1023) / 1024;
    if (kib < 1024)
        return arena_format(a, "%llu KB", kib);
    return tenths < 100 && tenths % 10 ? arena_format(a, "%llu.%llu MB", tenths / 10, tenths % 10)
                                       : arena_format(a, "%llu MB", (tenths + 9) / 10);
}

static uint64_t best_time(const contract *chosen, const bool *is_left_out, size_t point)
{
    const candidates *c = &chosen->candidates;
    uint64_t best = PICK_NEVER;
    for (size_t i = 0; i < chosen->picked.count; i++) {
        const uint64_t time = c->times[chosen->picked.items[i] * c->point_count + point];
        best = !is_left_out[i] && time < best ? time : best;
    }
    return best;
}

/* "; 1 of them serves only calls outside the shapes: only_these_shapes drops it, 68 KB": variants whose removal slows no
 * shape. */
static const char *spare_text(contract *chosen)
{
    candidates *c = &chosen->candidates;
    const picked *p = &chosen->picked;
    bool *is_spare = arena_alloc(c->arena, p->count + 1), *none = arena_alloc(c->arena, p->count + 1);
    uint64_t bytes = 0;
    unsigned count = 0;
    for (size_t i = 0; i < p->count && !c->item->only_shapes; i++) {
        is_spare[i] = true;
        for (size_t point = 0; point < c->point_count && is_spare[i]; point++)
            is_spare[i] = best_time(chosen, is_spare, point) == best_time(chosen, none, point);
        count += is_spare[i];
        bytes += is_spare[i] ? candidate_bytes(c, p->items[i]) : 0;
    }
    return count == 0
               ? ""
               : arena_format(c->arena,
                              "; %u of them serve%s only calls outside the shapes: only_these_shapes drops "
                              "%s, %s",
                              count, count == 1 ? "s" : "", count == 1 ? "it" : "them",
                              amount_text(c->arena, bytes));
}

/* "; a workspace of up to 16 MB, and without one at most 3.20 times the best time" */
static const char *workspace_text(contract *chosen)
{
    candidates *c = &chosen->candidates;
    const pick_table *t = &chosen->table;
    const picked *p = &chosen->picked;
    uint64_t bytes = 0;
    uint32_t worst = 0;
    bool serves_without = false;
    for (size_t i = 0; i < p->count; i++) {
        const uint64_t own = candidate_workspace_bytes(c, p->items[i]);
        bytes = own > bytes ? own : bytes;
        serves_without = serves_without || !candidate_needs_workspace(c, p->items[i]);
    }
    for (size_t point = 0; point < t->point_count && bytes > 0; point++) {
        uint64_t without = PICK_NEVER, best = PICK_NEVER;
        for (size_t i = 0; i < c->count; i++)
            best = c->times[i * c->point_count + point] < best ? c->times[i * c->point_count + point] : best;
        for (size_t i = 0; i < p->count; i++) {
            const uint64_t time = c->times[p->items[i] * c->point_count + point];
            without = !candidate_needs_workspace(c, p->items[i]) && time < without ? time : without;
        }
        const uint32_t ratio = pick_ratio(without, best);
        worst = ratio > worst ? ratio : worst;
    }
    if (bytes == 0)
        return "";
    const char *size =
        arena_format(c->arena, "; a workspace of up to %s, and without one ", amount_text(c->arena, bytes));
    return worst == UINT32_MAX || !serves_without
               ? arena_format(c->arena, "%s%scalls are refused", size, serves_without ? "some " : "")
               : arena_format(c->arena, "%sat most %s times the best time", size,
                              ratio_text(c->arena, worst));
}

static void summarise(const chooser *ch, contract *chosen)
{
    const candidates *c = &chosen->candidates;
    const picked *p = &chosen->picked;
    text_printf(
        ch->options->summary,
        "%s: %u of %u variants, %s; at most %s times the best time%s, %s on average, at %u shape%s on %u device%s; "
        "%s%s%s%s\n",
        c->name, (unsigned)p->count, (unsigned)c->count, amount_text(c->arena, bytes_of(chosen, p)),
        ratio_text(c->arena, p->worst), c->item->has_workspace ? "" : " without a workspace",
        ratio_text(c->arena, ratio_of_log2(p->mean)), (unsigned)c->shape_count, plural(c->shape_count),
        (unsigned)c->device_count, plural(c->device_count),
        c->item->only_shapes ? "serves these shapes only" : "serves every legal call", spare_text(chosen),
        workspace_text(chosen), p->is_partial ? "; not all sets were compared" : "");
}

/* The diagnostic for a failed choice. */
static void report(const chooser *ch, const candidates *c, const picked *p)
{
    const place at = c->item->request.at;
    const unsigned most = c->item->max_variants;
    if (p->status == PICK_TOO_SLOW)
        diagnose(ch->d, at, message_choice_over, c->name, ratio_text(c->arena, c->item->within), most,
                 plural(most), (unsigned)p->count, ratio_text(c->arena, p->worst),
                 candidates_point_text(c, p->worst_point));
    else if (p->status == PICK_UNCOVERED)
        diagnose(ch->d, at, message_choice_coverage, c->name, most, plural(most), (unsigned)p->count,
                 c->item->only_shapes ? "" : ", or only_these_shapes: true");
    else
        diagnose(ch->d, at, message_choice_undecided, c->name);
}

/* A candidate's best rank at any point; 0: the fastest. */
typedef struct standing {
    size_t candidate, rank, points; /* the number of points with that rank */
} standing;

typedef struct timed {
    uint64_t time;
    size_t candidate;
} timed;

static int compare_timed(const void *x, const void *y)
{
    const timed *a = x, *b = y;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->candidate < b->candidate ? -1 : 1;
}

static int compare_standings(const void *x, const void *y)
{
    const standing *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->points != b->points)
        return a->points > b->points ? -1 : 1;
    return a->candidate < b->candidate ? -1 : 1;
}

/* Keeps `count` candidates: first the fastest of each point, then the second of each point, and so on; within a rank,
 * first the candidates that have it at the most points. So even if an estimate is slightly wrong at a point, the
 * variant that is really fastest there is measured. */
static void keep_fastest(chooser *ch, const candidates *c, size_t count)
{
    arena *a = c->arena;
    standing *standings = arena_alloc(a, (c->count + 1) * sizeof *standings);
    timed *order = arena_alloc(a, (c->count + 1) * sizeof *order);
    for (size_t i = 0; i < c->count; i++)
        standings[i] = (standing){i, SIZE_MAX, 0};
    for (size_t p = 0; p < c->point_count; p++) {
        for (size_t i = 0; i < c->count; i++)
            order[i] = (timed){c->times[i * c->point_count + p], i};
        qsort(order, c->count, sizeof *order, compare_timed);
        for (size_t rank = 0; rank < c->count && order[rank].time != PICK_NEVER; rank++) {
            standing *s = &standings[order[rank].candidate];
            s->points = rank < s->rank ? 1 : s->points + (rank == s->rank);
            s->rank = rank < s->rank ? rank : s->rank;
        }
    }
    qsort(standings, c->count, sizeof *standings, compare_standings);
    for (size_t i = 0; i < count && i < c->count && standings[i].points > 0; i++)
        keep(ch, c->items[standings[i].candidate].variant);
}

/* Chooses at the smallest ratio that max_variants allows, for an item without `within`. */
static void take_nearest(const chooser *ch, contract *chosen)
{
    const candidates *c = &chosen->candidates;
    warn(ch->d, c->item->request.at, message_choice_nearest, c->name,
         ratio_text(c->arena, chosen->picked.worst), candidates_point_text(c, chosen->picked.worst_point),
         ratio_text(c->arena, c->item->within), (unsigned)c->item->max_variants,
         plural(c->item->max_variants));
    chosen->table.within = chosen->picked.worst;
    chosen->picked = pick(chosen->arena, &chosen->table);
}

static void choose_contract(chooser *ch, const shaped_item *item, const request *asked)
{
    arena *a = arena_new();
    contract *chosen = arena_alloc(a, sizeof *chosen);
    *(contract **)arena_push(ch->arena, (void **)&ch->contracts, &ch->contract_count, &ch->contract_capacity,
                             sizeof chosen) = chosen;
    *chosen = (contract){.arena = a, .candidates = candidates_of(a, ch->plan, item, asked)};
    candidates *c = &chosen->candidates;
    if (c->count == 0) {
        plan none = *ch->plan; /* only to collect diagnostics */
        request all = *asked;
        const int before = ch->d->count;
        none.variant_count = none.variant_capacity = 0;
        none.variants = NULL;
        all.is_legal_only = true;
        request_expand(ch->arena, &all, &none, ch->d);
        if (ch->d->count == before)
            diagnose(ch->d, item->request.at, message_choice_workspace, c->name);
        return;
    }
    if (!candidates_judge(c, ch->d))
        return;
    chosen->table = (pick_table){.candidate_count = c->count,
                                 .point_count = c->point_count,
                                 .need_count = c->need_count,
                                 .times = c->times,
                                 .meets = c->meets,
                                 .within = item->within,
                                 .most = item->max_variants,
                                 .bytes_of = candidate_bytes,
                                 .context = c};
    chosen->picked = pick(a, &chosen->table);
    if (chosen->picked.status == PICK_TOO_SLOW && !item->names_within)
        take_nearest(ch, chosen);
    if (chosen->picked.status != PICK_MADE)
        report(ch, c, &chosen->picked);
}

static size_t contract_count(const request *q)
{
    size_t count = 1;
    for (size_t i = 0; i < family_param_count(q->family); i++)
        if (q->family->params[i].role == KILN_ROLE_CONTRACT)
            count *= q->values[i].count;
    return count;
}

/* The contract of this number; the last parameter changes fastest. */
static request contract_at(const request *q, size_t number)
{
    request asked = *q;
    for (size_t i = family_param_count(q->family); i-- > 0;) {
        if (q->family->params[i].role != KILN_ROLE_CONTRACT)
            continue;
        asked.values[i].items += number % asked.values[i].count;
        number /= asked.values[i].count;
        asked.values[i].count = 1;
    }
    return asked;
}

/* ---- max_bytes ---------------------------------------------------------------------------------------------------- */

/* Bytes of the plan's own variants. */
static uint64_t plain_bytes(const plan *p, const kiln_family *family)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->variant_count; i++) {
        const variant *v = p->variants[i];
        if ((!family || v->family == family) && plan_image_owner(p, i, family) == i)
            bytes += variant_bytes(p, v);
    }
    return bytes;
}

/* Bytes of the chosen variants, without duplicates. */
static uint64_t chosen_bytes(const chooser *ch, const kiln_family *family)
{
    arena *a = arena_new();
    name_table seen = {0};
    uint64_t bytes = 0;
    for (size_t i = 0; i < ch->plan->variant_count; i++)
        names_add(a, &seen, ch->plan->variants[i]->id, i);
    for (size_t i = 0; i < ch->contract_count; i++) {
        contract *chosen = ch->contracts[i];
        for (size_t k = 0; k < chosen->picked.count; k++) {
            const variant *v = chosen->candidates.items[chosen->picked.items[k]].variant;
            if ((!family || v->family == family) && names_add(a, &seen, v->id, i) == NAME_NONE)
                bytes += candidate_bytes(&chosen->candidates, chosen->picked.items[k]);
        }
    }
    arena_free(a);
    return bytes;
}

/* Bytes that the contract saves with its smallest set. */
static uint64_t saved_bytes(contract *chosen, picked *least)
{
    if (chosen->table.is_least_bytes)
        return 0;
    pick_table table = chosen->table;
    table.is_least_bytes = true;
    *least = pick(chosen->arena, &table);
    return least->status == PICK_MADE ? bytes_of(chosen, &chosen->picked) - bytes_of(chosen, least) : 0;
}

/* Switches contracts to smaller sets, those that save most first, until the images are within the budget. */
static void keep_within(chooser *ch, const budget *b)
{
    const uint64_t plain = plain_bytes(ch->plan, b->family);
    uint64_t bytes = plain + chosen_bytes(ch, b->family);
    if (bytes <= b->max_bytes)
        return;
    picked *least = arena_alloc(ch->arena, ch->contract_count * sizeof *least);
    uint64_t *saved = arena_alloc(ch->arena, ch->contract_count * sizeof *saved);
    for (size_t i = 0; i < ch->contract_count; i++)
        if (!b->family || ch->contracts[i]->candidates.item->request.family == b->family)
            saved[i] = saved_bytes(ch->contracts[i], &least[i]);
    while (bytes > b->max_bytes) {
        uint64_t most = 0;
        for (size_t i = 0; i < ch->contract_count; i++)
            most = saved[i] > most ? saved[i] : most;
        for (size_t i = 0; i < ch->contract_count && most > 0; i++)
            if (saved[i] == most) {
                ch->contracts[i]->picked = least[i];
                ch->contracts[i]->table.is_least_bytes = true;
                saved[i] = 0;
            }
        bytes = plain + chosen_bytes(ch, b->family);
        if (most == 0) {
            diagnose(ch->d, b->at, message_choice_bytes, (unsigned long long)b->max_bytes,
                     b->family ? b->family->name : "the bundle", (unsigned long long)bytes);
            return;
        }
    }
}

/* ---- items -------------------------------------------------------------------------------------------------------- */

static bool has_contract(variant *const *variants, size_t count, const request *asked)
{
    for (size_t i = 0; i < count; i++) {
        if (contract_has(asked, variants[i]))
            return true;
    }
    return false;
}

/* "kernels.yaml --targets sm_90": the arguments with which `kiln choose` makes the plan's lock. */
static const char *choose_arguments(arena *a, const plan *p)
{
    return arena_format(a, "%s%s%s%s", quote_shell(a, p->config_path), p->target_option ? " --targets " : "",
                        p->target_option ? quote_shell(a, p->target_option) : "",
                        lock_path(a, p) ? "" : " --output FILE");
}

/* Whether the lock or an item without shapes has a variant for each contract of the items with shapes, and one that
 * meets the rules at each shape; else diagnostics. */
static bool serves_items(arena *a, const plan *p, const lock *l, diagnostics *d)
{
    bool ok = true;
    const size_t count = l->count + p->variant_count;
    variant **all = arena_alloc(a, (count + 1) * sizeof(variant *));
    for (size_t i = 0; i < count; i++)
        all[i] = i < l->count ? l->variants[i] : p->variants[i - l->count];
    for (size_t i = 0; i < p->shaped_count; i++) {
        const request *q = &p->shaped[i].request;
        for (size_t number = 0; number < contract_count(q); number++) {
            const request asked = contract_at(q, number);
            candidates c = candidates_among(a, p, &p->shaped[i], &asked, all, count);
            if (c.count == 0)
                diagnose(d, l->at, message_lock_lacks, contract_name(a, &asked), q->at.line, p->config_path,
                         choose_arguments(a, p));
            ok = c.count > 0 && candidates_keep_rules(&c, d) && ok;
        }
    }
    return ok;
}

/* Whether an item with shapes asks for the variant's contract. */
static bool is_asked_for(const plan *p, variant *v)
{
    for (size_t i = 0; i < p->shaped_count; i++)
        for (size_t number = 0; number < contract_count(&p->shaped[i].request); number++) {
            const request asked = contract_at(&p->shaped[i].request, number);
            if (has_contract(&v, 1, &asked))
                return true;
        }
    return false;
}

/* Appends the variants, except those that an item without shapes already has. */
static void append(arena *a, plan *p, variant *const *variants, size_t count)
{
    const size_t plain = p->variant_count;
    for (size_t i = 0; i < count; i++)
        if (!has_variant(p->variants, plain, variants[i]->id))
            *(variant **)arena_push(a, (void **)&p->variants, &p->variant_count, &p->variant_capacity,
                                    sizeof *variants) = variants[i];
}

static void take_lock(arena *a, plan *p, const char *path, diagnostics *d)
{
    lock l = {0};
    char hash[LOCK_HASH_BYTES];
    if (!lock_read(a, p, path, &l, d) || !serves_items(a, p, &l, d))
        return;
    lock_hash(a, p, hash);
    if (strcmp(hash, l.asked) != 0)
        warn(d, l.at, message_lock_stale, choose_arguments(a, p));
    if (l.is_edited)
        warn(d, l.at, message_lock_edited, choose_arguments(a, p));
    size_t count = 0;
    for (size_t i = 0; i < l.count; i++)
        if (is_asked_for(p, l.variants[i]))
            l.variants[count++] = l.variants[i];
    append(a, p, l.variants, count);
}

/* A diagnostic for each size that the item's shapes name and that no candidate reads in any contract. */
static void refuse_unread(const chooser *ch, const shaped_item *item, contract *const *contracts,
                          size_t count)
{
    const kiln_family *family = item->request.family;
    size_t variant_count = 0, capacity = 0;
    const variant **variants = NULL;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < contracts[i]->candidates.count; k++)
            *(const variant **)arena_push(ch->arena, (void **)&variants, &variant_count, &capacity,
                                          sizeof *variants) = contracts[i]->candidates.items[k].variant;
    if (variant_count == 0)
        return;
    *(const variant **)arena_push(ch->arena, (void **)&variants, &variant_count, &capacity,
                                  sizeof *variants) = NULL;
    for (const kiln_arg *arg = family->args; arg->name; arg++) {
        const size_t number = (size_t)(arg - family->args);
        for (size_t i = 0; i < item->shape_count; i++) {
            const call_shape *s = &item->shapes[i];
            const bool is_set =
                           s->expressions[number] || (s->sizes[number] && s->sizes[number] != SHAPE_ANY_SIZE),
                       is_new = i == 0 || s->at.line != s[-1].at.line || s->at.column != s[-1].at.column;
            if (is_set && is_new && arg_use_of(variants, arg) == ARG_REFUSED)
                diagnose(ch->d, s->at, message_shape_unread, arg->name, family->name);
        }
    }
}

static bool has_device(const plan *p, const tuned_file *file)
{
    for (size_t i = 0; i < p->shaped_count; i++)
        for (size_t k = 0; k < p->shaped[i].device_count; k++) {
            const kiln_device *device = &p->shaped[i].devices[k].device;
            if (device->sm == file->sm && device->multiprocessors == file->multiprocessors)
                return true;
        }
    return false;
}

static void choose_anew(chooser *ch)
{
    const plan *p = ch->plan;
    const int before = ch->d->count;
    for (size_t i = 0; i < p->tuned_count; i++)
        if (!has_device(p, p->tuned[i]))
            warn(ch->d, p->tuned[i]->at, message_tuned_no_device, (unsigned)p->tuned[i]->sm,
                 (unsigned)p->tuned[i]->multiprocessors);
    for (size_t i = 0; i < p->shaped_count; i++) {
        const size_t first = ch->contract_count;
        for (size_t number = 0; number < contract_count(&p->shaped[i].request); number++) {
            const request asked = contract_at(&p->shaped[i].request, number);
            choose_contract(ch, &p->shaped[i], &asked);
        }
        refuse_unread(ch, &p->shaped[i], ch->contracts + first, ch->contract_count - first);
    }
    for (size_t i = 0; i < p->budget_count && ch->d->count == before; i++)
        keep_within(ch, &p->budgets[i]);
    for (size_t i = 0; i < ch->contract_count; i++) {
        contract *chosen = ch->contracts[i];
        const bool is_made = ch->d->count == before;
        for (size_t k = 0; is_made && k < chosen->picked.count; k++)
            keep(ch, chosen->candidates.items[chosen->picked.items[k]].variant);
        if (is_made && ch->options->candidates > 0)
            keep_fastest(ch, &chosen->candidates, ch->options->candidates);
        if (is_made && ch->options->summary)
            summarise(ch, chosen);
        arena_free(chosen->arena);
    }
    append(ch->arena, ch->plan, ch->variants, ch->count);
}

void choose_variants(arena *a, plan *p, diagnostics *d, const void *context)
{
    const choose_options *options = context;
    const char *path = options->lock ? options->lock : lock_path(a, p);
    if (p->shaped_count == 0 && options->lock) {
        warn(d, (place){.file = "--lock (LOCK in CMake)"}, message_lock_unused);
    } else if (p->shaped_count > 0 && !options->ignores_lock && path &&
               (options->lock || file_exists(path))) {
        take_lock(a, p, path, d);
    } else if (p->shaped_count > 0) {
        const int before = d->count;
        chooser ch = {.arena = a, .plan = p, .d = d, .options = options};
        choose_anew(&ch);
        if (!options->ignores_lock && d->count == before)
            warn(d, p->shaped[0].request.at, message_lock_none, path ? path : "lock file",
                 choose_arguments(a, p));
    }
}
