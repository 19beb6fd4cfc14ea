#include "candidates.h"

#include <string.h>

#include "family/constraints.h"
#include "family/family.h"
#include "family/shape.h"
#include "support/messages.h"
#include "target/target.h"

/* ---- enumeration -------------------------------------------------------------------------------------------------- */

static bool needs_workspace(const variant *v)
{
    for (const kiln_arg *arg = v->family->args; arg->name; arg++)
        if (workspace_has(v->family->workspace, arg) && variant_has_arg(v, arg))
            return true;
    return false;
}

static bool add_candidate(void *context, const variant *values)
{
    candidates *c = context;
    arena *a = c->arena;
    variant *v = arena_copy(a, values, sizeof *values);
    v->at = c->item->request.at;
    if (!c->item->has_workspace && needs_workspace(v))
        return true;
    variant_fill_shape(a, v, c->plan->targets, c->plan->target_count);
    if (v->runs_on == 0)
        return true;
    variant_name(a, v);
    candidate *added = arena_push(a, (void **)&c->items, &c->count, &c->capacity, sizeof *added);
    *added = (candidate){.variant = v, .bytes = PICK_NEVER};
    return true;
}

candidates candidates_of(arena *a, const plan *p, const shaped_item *item, const request *contract)
{
    candidates c = {.plan = p, .item = item, .name = contract_name(a, contract), .arena = a};
    constraints all = constraints_of(a, contract->family);
    constraints_visit_legal(a, &all, contract, add_candidate, &c);
    return c;
}

bool contract_has(const request *contract, const variant *v)
{
    bool is_of = v->family == contract->family;
    for (size_t i = 0; is_of && i < family_param_count(contract->family); i++)
        is_of = contract->family->params[i].role != KILN_ROLE_CONTRACT ||
                strcmp(v->values[i].text, contract->values[i].items[0].text) == 0;
    return is_of;
}

candidates candidates_among(arena *a, const plan *p, const shaped_item *item, const request *contract,
                            variant *const *variants, size_t count)
{
    candidates c = {.plan = p, .item = item, .name = contract_name(a, contract), .arena = a};
    const terms of_family = terms_of(a, contract->family);
    for (size_t i = 0; i < count; i++)
        if (contract_has(contract, variants[i]))
            *(candidate *)arena_push(a, (void **)&c.items, &c.count, &c.capacity,
                                     sizeof *c.items) = (candidate){
                .variant = variants[i], .terms = terms_bind(a, &of_family, variants[i]), .bytes = PICK_NEVER};
    return c;
}

const char *contract_name(arena *a, const request *contract)
{
    text out = text_new(a);
    const kiln_family *family = contract->family;
    text_add(&out, family->name);
    for (size_t i = 0; i < family_param_count(family); i++) {
        const kiln_param *param = &family->params[i];
        const char *value = contract->values[i].items[0].text;
        if (param->role == KILN_ROLE_CONTRACT && strcmp(value, param->default_value) != 0)
            text_printf(&out, " %s=%s", param->name, value);
    }
    return out.data;
}

const char *candidates_point_text(const candidates *c, size_t point)
{
    const size_t shapes = c->shape_count;
    const call_shape *s = c->shapes[point % shapes];
    return arena_format(c->arena, "%s on %s", call_shape_text(c->arena, c->item->request.family, s),
                        c->devices[point / shapes].name);
}

/* ---- what the kernels are ----------------------------------------------------------------------------------------- */

/* Keeps the candidates whose images the oldest driver loads. False after a diagnostic: it loads none. */
static bool count_kernels(candidates *c, diagnostics *d)
{
    arena *scratch = arena_new();
    const terms of_family = terms_of(c->arena, c->item->request.family);
    const uint32_t oldest = c->plan->max_driver;
    uint32_t least = UINT32_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        candidate one = c->items[i];
        one.terms = terms_bind(c->arena, &of_family, one.variant);
        one.code = kernel_code_of(scratch, c->plan, one.variant);
        least = one.code.min_driver < least ? one.code.min_driver : least;
        if (oldest == 0 || one.code.min_driver <= oldest)
            c->items[kept++] = one;
    }
    arena_free(scratch);
    c->count = kept;
    if (kept == 0)
        diagnose(d, c->plan->max_driver_at, message_over_driver, cuda_version_text(c->arena, oldest),
                 arena_format(c->arena, "%s (%s)", c->name, cuda_version_text(c->arena, least)));
    return kept > 0;
}

uint64_t candidate_bytes(void *context, size_t index)
{
    candidates *c = context;
    candidate *one = &c->items[index];
    if (one->bytes != PICK_NEVER)
        return one->bytes;
    return one->bytes = variant_bytes(c->plan, one->variant);
}

/* ---- the arguments of a call -------------------------------------------------------------------------------------- */

#define LARGE_WORKSPACE (UINT64_C(1) << 40) /* enough for any variant */
#define LARGEST_TRIED   (UINT64_C(1) << 40)

/* How the arguments of a shape get their values. */
typedef struct call_sizes {
    candidates *c;
    const kiln_family *family;
    size_t count;   /* of arguments */
    bool *mentions; /* [rule][argument] */
} call_sizes;

static call_sizes call_sizes_of(candidates *c)
{
    arena *a = c->arena;
    const kiln_family *family = c->item->request.family;
    call_sizes s = {.c = c, .family = family, .count = family_arg_count(family)};
    const terms *of_first = &c->items[0].terms;
    s.mentions = arena_alloc(a, (of_first->rule_count + 1) * (s.count + 1));
    for (size_t i = 0; i < of_first->rule_count; i++) {
        const expression *rule = expression_parse(a, family, family->rules[i].condition);
        expression_mark_args(rule, s.mentions + i * s.count);
    }
    return s;
}

/* Counts the broken rules about the argument that hold for every variant. */
static size_t broken_rules(const call_sizes *s, const call *asked, size_t arg)
{
    const terms *t = &s->c->items[0].terms;
    size_t broken = 0;
    for (size_t i = 0; i < t->rule_count; i++)
        broken += !t->asks_tuning[i] && s->mentions[i * s->count + arg] && !call_number(asked, t->rules[i]);
    return broken;
}

/* The smallest value that breaks no rule, by doubling and bisection, since rules give lower bounds. 0 if there is none.
 * */
static uint64_t least_size(const call_sizes *s, const call *asked, uint64_t *args, size_t arg)
{
    uint64_t low = 0, high = 1;
    args[arg] = 0;
    if (broken_rules(s, asked, arg) == 0)
        return 0;
    for (args[arg] = high; broken_rules(s, asked, arg) > 0; args[arg] = high *= 2) {
        if (high >= LARGEST_TRIED)
            return 0;
        low = high;
    }
    while (high - low > 1) {
        args[arg] = low + (high - low) / 2;
        if (broken_rules(s, asked, arg) > 0)
            low = args[arg];
        else
            high = args[arg];
    }
    return high;
}

/* Evaluates the shape's expressions. False: an expression subtracts below 0, divides by 0, or exceeds 64 bits. */
static bool put_in_expressions(const call_sizes *s, const call_shape *shape, const call *asked,
                               uint64_t *args)
{
    arena *a = s->c->arena;
    const variant *any = s->c->items[0].variant; /* expressions use only contract parameters */
    bool ok = true;
    for (size_t i = 0; i < shape->order_count && ok; i++) {
        const size_t arg = shape->order[i];
        const expression *e = expression_parse(a, s->family, shape->expressions[arg]);
        ok = call_try_number(asked, expression_bind(a, e, any), &args[arg]);
    }
    return ok;
}

static bool names(const call_shape *s, size_t arg)
{
    return s->sizes[arg] != SHAPE_ANY_SIZE || s->expressions[arg];
}

/* The shape's arguments. Omitted sizes get their usual value or the smallest that the rules allow; optional pointers
 * are null. Null: an expression cannot be evaluated. */
static uint64_t *args_of_shape(const call_sizes *s, const call_shape *shape, const kiln_device *device)
{
    uint64_t *args = arena_alloc(s->c->arena, (s->count + 1) * sizeof *args);
    bool *is_named = arena_alloc(s->c->arena, s->count + 1);
    const call asked = {s->family, device, args};
    for (size_t i = 0; i < s->count; i++) {
        const kiln_arg *arg = &s->family->args[i];
        is_named[i] = names(shape, i);
        if (arg->kind != KILN_ARG_VALUE)
            args[i] = arg_may_be_null(arg) ? 0 : MOST_ALIGNMENT;
        else if (shape->sizes[i] != SHAPE_ANY_SIZE)
            args[i] = shape->sizes[i];
        else if (is_workspace_size(s->family, arg) && s->c->item->has_workspace)
            args[i] = LARGE_WORKSPACE;
    }
    if (!put_in_expressions(s, shape, &asked, args))
        return NULL;
    call_put_usual(s->c->arena, &asked, s->c->items[0].variant, is_named, args);
    for (size_t i = 0; i < s->count; i++) {
        const kiln_arg *arg = &s->family->args[i];
        if (arg_is_size(arg) && !is_named[i] && !family_usual(s->family, arg) &&
            !is_workspace_size(s->family, arg))
            args[i] = least_size(s, &asked, args, i);
    }
    return args;
}

/* Whether the launch or the bytes of some candidate depend on the argument. */
static bool is_asked_for(const candidates *c, size_t arg)
{
    for (size_t i = 0; i < c->count; i++)
        if (expression_counts_with(c->items[i].terms.time[TERM_BLOCKS], arg) ||
            expression_counts_with(c->items[i].terms.time[TERM_BYTES], arg))
            return true;
    return false;
}

/* Whether each shape names every required size; a diagnostic for each missing size. */
static bool are_complete(const candidates *c, diagnostics *d)
{
    const kiln_family *family = c->item->request.family;
    bool ok = true;
    for (size_t i = 0; family->args[i].name; i++) {
        const kiln_arg *arg = &family->args[i];
        if (!arg_is_size(arg) || is_workspace_size(family, arg) || family_usual(family, arg) ||
            !is_asked_for(c, i))
            continue;
        for (size_t k = 0; k < c->item->shape_count; k++) {
            const call_shape *s = &c->item->shapes[k];
            const bool is_new = k == 0 || s->at.line != s[-1].at.line || s->at.column != s[-1].at.column;
            if (names(s, i) || !is_new)
                continue;
            diagnose(d, s->at, message_shape_missing, arg->name, family->name);
            ok = false;
        }
    }
    return ok;
}

static const char expression_fails[] =
    "an expression subtracts more than there is, divides by 0, or is above 2^64 - 1";

/* ---- times -------------------------------------------------------------------------------------------------------- */

/* Returns why the candidate cannot be launched; null: it can, and `cycles` is set. */
static const char *try_call(const candidates *c, const candidate *one, const call *asked, uint64_t *cycles)
{
    const kiln_rule *broken = call_broken_rule(asked, &one->terms, false);
    broken = broken ? broken : call_broken_rule(asked, &one->terms, true);
    if (broken)
        return broken->text;
    if (!variant_serves(c->plan, one->variant, asked->device->sm))
        return "no image for this device";
    const kiln_arg *wide = call_too_wide(asked, one->variant);
    if (wide)
        return arena_format(c->arena, "%s would be %llu, more than a %s holds", wide->name,
                            (unsigned long long)asked->args[wide - asked->family->args], wide->type);
    if (call_misaligned(asked, &one->terms))
        return "a pointer is not aligned";
    if (!call_has_room(asked, &one->terms, one->code.static_shared_bytes))
        return "the device has less shared memory than this call takes";
    *cycles = call_cycles(asked, &one->terms, &one->code.code);
    return NULL;
}

/* A rule that the call breaks for every candidate; null: there is none. */
static const kiln_rule *rule_against_all(const candidates *c, const call *asked)
{
    const kiln_rule *first = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const kiln_rule *broken = call_broken_rule(asked, &c->items[i].terms, false);
        broken = broken ? broken : call_broken_rule(asked, &c->items[i].terms, true);
        if (!broken)
            return NULL;
        first = first ? first : broken;
    }
    return first;
}

bool candidates_keep_rules(candidates *c, diagnostics *d)
{
    const call_sizes s = call_sizes_of(c);
    const named_device *on = &c->item->devices[0];
    bool ok = are_complete(c, d);
    for (size_t i = 0; i < c->item->shape_count && ok; i++) {
        const call_shape *shape = &c->item->shapes[i];
        const uint64_t *args = args_of_shape(&s, shape, &on->device);
        const call asked = {s.family, &on->device, args};
        const kiln_rule *broken = args ? rule_against_all(c, &asked) : NULL;
        if (shape->is_inner || (args && !broken))
            continue;
        diagnose(d, shape->at, message_shape_refused, c->name, call_shape_text(c->arena, s.family, shape),
                 on->name, args ? broken->text : expression_fails);
        ok = false;
    }
    return ok;
}

/* Fills in the times of a point: measured if near, else estimated. Returns why no variant serves it; null: one does. */
static const char *judge_point(candidates *c, const call_sizes *s, const tuned_choice *tuned, size_t point)
{
    const kiln_device *device = &c->devices[point / c->shape_count].device;
    const uint64_t *args = args_of_shape(s, c->shapes[point % c->shape_count], device);
    if (!args)
        return expression_fails;
    const call asked = {s->family, device, args};
    const tuned_shape *near = call_nearest_shape(c->arena, &asked, tuned);
    const char *why = NULL;
    bool is_served = false, is_measured = false;
    for (size_t i = 0; i < c->count; i++) {
        uint64_t *time = &c->times[i * c->point_count + point];
        *time = PICK_NEVER;
        const char *why_not = try_call(c, &c->items[i], &asked, time);
        is_served = is_served || !why_not;
        is_measured = is_measured || (!why_not && near && tuned_nanoseconds(near, c->items[i].variant));
        why = why ? why : why_not;
    }
    for (size_t i = 0; i < c->count && is_measured; i++) {
        uint64_t *time = &c->times[i * c->point_count + point];
        const uint32_t nanoseconds = tuned_nanoseconds(near, c->items[i].variant);
        *time = *time != PICK_NEVER && nanoseconds ? nanoseconds : PICK_NEVER;
    }
    return is_served ? NULL : why;
}

/* Finds the devices that some candidate runs on. False after diagnostics: the item names another one. */
static bool find_devices(candidates *c, diagnostics *d)
{
    bool ok = true;
    c->devices = arena_alloc(c->arena, (c->item->device_count + 1) * sizeof *c->devices);
    for (size_t i = 0; i < c->item->device_count; i++) {
        const named_device *device = &c->item->devices[i];
        bool is_served = false;
        for (size_t k = 0; k < c->count && !is_served; k++)
            is_served = variant_serves(c->plan, c->items[k].variant, device->device.sm);
        if (is_served)
            c->devices[c->device_count++] = *device;
        else if (c->item->names_devices)
            diagnose(d, c->item->request.at, message_choice_device, c->name, device->name,
                     (unsigned)device->device.sm);
        ok = ok && (is_served || !c->item->names_devices);
    }
    return ok;
}

/* Whether the place already has a diagnostic: a shape often fails on several devices, and so do others of its list or
 * range. */
static bool is_told(const place *told, size_t count, place at)
{
    for (size_t i = 0; i < count; i++)
        if (told[i].line == at.line && told[i].column == at.column)
            return true;
    return false;
}

/* Whether the family's rules forbid the shape for every variant. */
static bool is_forbidden(const call_sizes *s, const call_shape *shape, const kiln_device *device)
{
    const terms *t = &s->c->items[0].terms;
    const uint64_t *args = args_of_shape(s, shape, device);
    const call asked = {s->family, device, args};
    bool is_forbidden = !args;
    for (size_t i = 0; i < t->rule_count && !is_forbidden; i++)
        is_forbidden = !t->asks_tuning[i] && !call_number(&asked, t->rules[i]);
    return is_forbidden;
}

static void find_shapes(candidates *c, const call_sizes *s)
{
    c->shapes = arena_alloc(c->arena, (c->item->shape_count + 1) * sizeof *c->shapes);
    for (size_t i = 0; i < c->item->shape_count; i++) {
        const call_shape *shape = &c->item->shapes[i];
        if (!shape->is_inner || !is_forbidden(s, shape, &c->devices[0].device))
            c->shapes[c->shape_count++] = shape;
    }
}

static bool judge_points(candidates *c, diagnostics *d)
{
    const call_sizes s = call_sizes_of(c);
    const variant **variants = arena_alloc(c->arena, (c->count + 1) * sizeof *variants);
    for (size_t i = 0; i < c->count; i++)
        variants[i] = c->items[i].variant;
    const tuned_choice tuned = tuned_choice_of(c->arena, c->plan, variants, c->count);
    bool ok = true;
    if (c->device_count > 0)
        find_shapes(c, &s);
    c->point_count = c->shape_count * c->device_count;
    place *told = arena_alloc(c->arena, (c->point_count + 1) * sizeof *told);
    size_t told_count = 0;
    c->times = arena_alloc(c->arena, (c->count * c->point_count + 1) * sizeof *c->times);
    for (size_t i = 0; i < c->point_count; i++) {
        const call_shape *shape = c->shapes[i % c->shape_count];
        const char *why = judge_point(c, &s, &tuned, i);
        if (why && !is_told(told, told_count, shape->at))
            diagnose(d, shape->at, message_shape_refused, c->name, call_shape_text(c->arena, s.family, shape),
                     c->devices[i / c->shape_count].name, why);
        if (why)
            told[told_count++] = shape->at;
        ok = ok && !why;
    }
    return ok;
}

/* ---- workspaces --------------------------------------------------------------------------------------------------- */

bool candidate_needs_workspace(const candidates *c, size_t index)
{
    return needs_workspace(c->items[index].variant);
}

uint64_t candidate_workspace_bytes(candidates *c, size_t index)
{
    const kiln_family *family = c->item->request.family;
    const variant *v = c->items[index].variant;
    uint64_t most = 0, elements = 0;
    if (!candidate_needs_workspace(c, index))
        return 0;
    const call_sizes s = call_sizes_of(c);
    const kiln_arg *arg = arg_find(family->args, family->workspace->arg);
    const expression *e =
        expression_bind(c->arena, expression_parse(c->arena, family, family->workspace->elements), v);
    for (size_t i = 0; i < c->point_count; i++) {
        const kiln_device *device = &c->devices[i / c->shape_count].device;
        const call asked = {family, device, args_of_shape(&s, c->shapes[i % c->shape_count], device)};
        if (c->times[index * c->point_count + i] != PICK_NEVER && call_try_number(&asked, e, &elements) &&
            elements > most)
            most = elements;
    }
    return most * variant_element_bytes(c->arena, v, arg);
}

/* ---- coverage ----------------------------------------------------------------------------------------------------- */

static void add_demand(candidates *c, candidate *one, const expression *e)
{
    uint64_t value;
    size_t capacity = one->demand_count;
    if (!expression_is_constant(e, &value) || value == 0)
        *(const expression **)arena_push(c->arena, (void **)&one->demands, &one->demand_count, &capacity,
                                         sizeof e) = e;
}

/* Finds the variant's conditions on a call, beyond those of every variant. A given workspace counts as large enough,
 * since the bundle returns its size. */
static void find_demands(candidates *c, candidate *one)
{
    const kiln_family *family = c->item->request.family;
    arena *a = c->arena;
    for (size_t i = 0; i < one->terms.rule_count; i++) {
        bool *is_used = arena_alloc(a, family_arg_count(family) + 1), of_workspace = false;
        expression_mark_args(one->terms.rules[i], is_used);
        for (size_t k = 0; family->args[k].name; k++)
            of_workspace = of_workspace || (is_used[k] && is_workspace_size(family, &family->args[k]));
        if (one->terms.asks[i] && !of_workspace)
            add_demand(c, one, one->terms.rules[i]);
    }
    if (needs_workspace(one->variant))
        add_demand(c, one,
                   expression_bind(
                       a, expression_parse(a, family, arena_format(a, "%s > 0", family->workspace->size)),
                       one->variant));
    for (size_t k = 0; family->args[k].name; k++)
        if (one->terms.alignments[k] > arg_alignment(&family->args[k]))
            add_demand(c, one,
                       expression_parse(a, family,
                                        arena_format(a, "aligned(%s, %u)", family->args[k].name,
                                                     (unsigned)one->terms.alignments[k])));
    size_t lowest = 0;
    while (!(one->variant->runs_on >> lowest & 1u))
        lowest++;
    const uint32_t most = target_shared_bytes(c->plan->targets[lowest]);
    if (one->variant->shape.shared_bytes + one->code.static_shared_bytes > most && family->shared_bytes)
        add_demand(
            c, one,
            expression_bind(a,
                            expression_parse(a, family,
                                             arena_format(a, "(%s) <= %u", family->shared_bytes,
                                                          (unsigned)(most - one->code.static_shared_bytes))),
                            one->variant));
}

/* Whether x serves every call that y serves, on targets that run both. */
static bool covers(const candidate *x, const candidate *y)
{
    for (size_t i = 0; i < x->demand_count; i++) {
        bool follows = false;
        for (size_t k = 0; k < y->demand_count && !follows; k++)
            follows = expression_follows(x->demands[i], y->demands[k]);
        if (!follows)
            return false;
    }
    return true;
}

/* Lists one candidate of each kind: candidates of a kind serve the same calls. */
static size_t find_kinds(const candidates *c, size_t *kinds)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        size_t k = 0;
        while (k < count &&
               !(covers(&c->items[i], &c->items[kinds[k]]) && covers(&c->items[kinds[k]], &c->items[i])))
            k++;
        if (k == count)
            kinds[count++] = i;
    }
    return count;
}

static bool has_kind_on(const candidates *c, size_t kind, size_t target_index)
{
    for (size_t i = 0; i < c->count; i++)
        if ((c->items[i].variant->runs_on >> target_index & 1u) && covers(&c->items[i], &c->items[kind]) &&
            covers(&c->items[kind], &c->items[i]))
            return true;
    return false;
}

/* Makes a need for each listed target and each kind that has a candidate there; one per target if only the shapes count. */
static void find_needs(candidates *c)
{
    size_t *kinds = arena_alloc(c->arena, (c->count + 1) * sizeof *kinds), kind_count = 1;
    for (size_t i = 0; i < c->count; i++)
        find_demands(c, &c->items[i]);
    if (!c->item->only_shapes)
        kind_count = find_kinds(c, kinds);
    const size_t most = c->plan->target_count * kind_count;
    c->meets = arena_alloc(c->arena, c->count * most + 1);
    size_t *needs = arena_alloc(c->arena, (most + 1) * sizeof *needs);
    for (size_t n = 0; n < most; n++) {
        bool is_met = false;
        for (size_t i = 0; i < c->count && !is_met; i++)
            is_met = c->items[i].variant->runs_on >> n / kind_count & 1u;
        if (is_met && (c->item->only_shapes || has_kind_on(c, kinds[n % kind_count], n / kind_count)))
            needs[c->need_count++] = n;
    }
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->need_count; k++) {
            const bool runs = c->items[i].variant->runs_on >> needs[k] / kind_count & 1u;
            c->meets[i * c->need_count + k] =
                runs &&
                (c->item->only_shapes || covers(&c->items[i], &c->items[kinds[needs[k] % kind_count]]));
        }
}

/* Warns with the family's advice against the contract, once each, at the first shape for which it holds. */
static void advise(candidates *c, diagnostics *d)
{
    const call_sizes s = call_sizes_of(c);
    for (const kiln_rule *advice = s.family->advice; advice && advice->condition; advice++) {
        const expression *e = expression_bind(
            c->arena, expression_parse(c->arena, s.family, advice->condition), c->items[0].variant);
        for (size_t i = 0; i < c->shape_count; i++) {
            const call_shape *shape = c->shapes[i];
            const kiln_device *device = &c->devices[0].device;
            const call asked = {s.family, device, args_of_shape(&s, shape, device)};
            if (!call_number(&asked, e))
                continue;
            warn(d, shape->at, message_choice_slow, c->name, call_shape_text(c->arena, s.family, shape),
                 advice->text);
            break;
        }
    }
}

bool candidates_judge(candidates *c, diagnostics *d)
{
    if (!count_kernels(c, d) || !are_complete(c, d) || !find_devices(c, d) || !judge_points(c, d))
        return false;
    find_needs(c);
    advise(c, d);
    return true;
}
