#include "call.h"

#include <kiln/estimate.h>
#include <kiln/tuned.h>
#include <setjmp.h>
#include <string.h>

#include "family/family.h"
#include "target/target.h"

/* ---- terms ------------------------------------------------------------------------------------------------------- */

terms terms_of(arena *a, const kiln_family *family)
{
    const kiln_time *time = &family->time;
    const char *const sources[TERM_COUNT] = {
        [TERM_BLOCKS] = family_blocks(a, family),
        [TERM_RESIDENT] = "blocks_per_multiprocessor",
        [TERM_LENGTH] = time->length,
        [TERM_REPEATS] = time->repeats ? time->repeats : "1",
        [TERM_SIDE_TRIPS] = time->side_trips,
        [TERM_WAIT] = time->wait,
        [TERM_BLOCK_BYTES] = time->block_bytes,
        [TERM_BYTES] = family_bytes(a, family),
        [TERM_EXTRA] = time->extra,
    };
    terms t = {.family = family, .shared_bytes = expression_parse(a, family, family_shared_bytes(family))};
    while (family->rules && family->rules[t.rule_count].condition)
        t.rule_count++;
    t.rules = arena_alloc(a, (t.rule_count + 1) * sizeof *t.rules);
    bool *asks = arena_alloc(a, t.rule_count + 1), *asks_tuning = arena_alloc(a, t.rule_count + 1);
    for (size_t i = 0; i < t.rule_count; i++) {
        t.rules[i] = expression_parse(a, family, family->rules[i].condition);
        asks[i] = expression_uses(t.rules[i], NAME_PARAM);
        for (size_t k = 0; k < family_param_count(family); k++)
            asks_tuning[i] = asks_tuning[i] || (family->params[k].role == KILN_ROLE_TUNING &&
                                                expression_uses_param(t.rules[i], k));
    }
    t.asks = asks;
    t.asks_tuning = asks_tuning;
    for (size_t i = 0; i < TERM_COUNT; i++)
        t.time[i] = sources[i] ? expression_parse(a, family, sources[i]) : NULL;
    return t;
}

terms terms_bind(arena *a, const terms *t, const variant *v)
{
    terms bound = *t;
    bound.variant = v;
    bound.rules = arena_alloc(a, (t->rule_count + 1) * sizeof *bound.rules);
    for (size_t i = 0; i < t->rule_count; i++)
        bound.rules[i] = expression_bind(a, t->rules[i], v);
    for (size_t i = 0; i < TERM_COUNT; i++)
        bound.time[i] = t->time[i] ? expression_bind(a, t->time[i], v) : NULL;
    bound.shared_bytes = expression_bind(a, t->shared_bytes, v);
    const kiln_arg *args = v->family->args;
    size_t count = 0;
    while (args[count].name)
        count++;
    bound.alignments = arena_alloc(a, (count + 1) * sizeof *bound.alignments);
    for (size_t i = 0; i < count; i++)
        if (args[i].kind != KILN_ARG_VALUE && variant_has_arg(v, &args[i]))
            bound.alignments[i] = variant_arg_alignment(a, v, &args[i]);
    return bound;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static uint64_t device_number(const kiln_device *d, const char *name)
{
    const struct {
        const char *name;
        uint32_t value;
    } rows[] = {{"sm", d->sm},
                {"multiprocessors", d->multiprocessors},
                {"max_shared_bytes", d->max_shared_bytes},
                {"multiprocessor_shared_bytes", d->multiprocessor_shared_bytes},
                {"multiprocessor_threads", d->multiprocessor_threads}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].value;
    internal_error("no device fact %s", name);
}

static uint64_t number_of(void *context, name_kind kind, const char *name, size_t index)
{
    const call *c = context;
    return kind == NAME_ARG ? c->args[index] : device_number(c->device, name);
}

uint64_t call_number(const call *c, const expression *e)
{
    return e ? expression_value_of_call(e, number_of, (void *)c) : 0;
}

bool call_try_number(const call *c, const expression *e, uint64_t *value)
{
    jmp_buf failure;
    if (setjmp(failure) != 0) {
        family_errors_jump_to(NULL);
        return false;
    }
    family_errors_jump_to(&failure);
    *value = expression_exact_value_of_call(e, number_of, (void *)c);
    family_errors_jump_to(NULL);
    return true;
}

const kiln_rule *call_broken_rule(const call *c, const terms *t, bool of_params)
{
    for (size_t i = 0; i < t->rule_count; i++)
        if (t->asks[i] == of_params && !call_number(c, t->rules[i]))
            return &t->family->rules[i];
    return NULL;
}

const char *call_demand(arena *a, const call *c, const terms *t, const kiln_rule *broken, const char *verb)
{
    return expression_demand(a, t->rules[broken - t->family->rules], verb, number_of, (void *)c);
}

const kiln_arg *call_misaligned(const call *c, const terms *t)
{
    for (size_t i = 0; t->family->args[i].name; i++)
        if (t->alignments[i] && c->args[i] % t->alignments[i] != 0)
            return &t->family->args[i];
    return NULL;
}

/* Replaces a dimension that may wrap around with its bound, which does not. */
const kiln_arg *call_too_large(arena *a, const call *c, const variant *v)
{
    static const double too_many = 9223372036854775808.0; /* 2^63 */
    const size_t count = family_arg_count(c->family);
    double *most = arena_alloc(a, (count + 1) * sizeof *most);
    for (size_t i = 0; i < count; i++)
        most[i] = (double)c->args[i];
    for (const kiln_arg *arg = c->family->args; arg->name; arg++) {
        const expression *const *dims;
        if (!arg->shape || !c->args[arg - c->family->args] || !variant_has_arg(v, arg))
            continue;
        double bytes = variant_element_bytes(a, v, arg);
        const size_t dim_count = expression_parse_list(a, v->family, arg->shape, &dims);
        for (size_t i = 0; i < dim_count; i++) {
            const expression *dim = expression_bind(a, dims[i], v);
            const double bound = expression_most(dim, most);
            bytes *= bound < too_many ? (double)call_number(c, dim) : bound;
        }
        if (bytes >= too_many)
            return arg;
    }
    return NULL;
}

const kiln_arg *call_too_wide(const call *c, const variant *v)
{
    for (size_t i = 0; c->family->args[i].name; i++)
        if (arg_is_size(&c->family->args[i]) && c->args[i] > arg_largest(&c->family->args[i]) &&
            variant_has_arg(v, &c->family->args[i]))
            return &c->family->args[i];
    return NULL;
}

bool call_has_room(const call *c, const terms *t, uint32_t fixed)
{
    return call_number(c, t->shared_bytes) + fixed <= c->device->max_shared_bytes;
}

const kiln_value *family_usual(const kiln_family *family, const kiln_arg *arg)
{
    for (const kiln_value *v = family->usual; v && v->arg; v++)
        if (strcmp(v->arg, arg->name) == 0)
            return v;
    return NULL;
}

void call_put_usual(arena *a, const call *c, const variant *v, const bool *is_named, uint64_t *args)
{
    for (const kiln_value *usual = c->family->usual; usual && usual->arg; usual++) {
        const size_t i = (size_t)(arg_find(c->family->args, usual->arg) - c->family->args);
        if (!is_named[i])
            args[i] = call_number(c, expression_bind(a, expression_parse(a, c->family, usual->value), v));
    }
}

bool is_workspace_size(const kiln_family *family, const kiln_arg *arg)
{
    return family->workspace && family->workspace->size && strcmp(arg->name, family->workspace->size) == 0;
}

uint64_t call_workspace(arena *a, const call *c, const variant *v)
{
    const kiln_workspace *w = c->family->workspace;
    if (!w || !variant_has_arg(v, arg_find(c->family->args, w->arg)))
        return 0;
    return call_number(c, expression_bind(a, expression_parse(a, c->family, w->elements), v));
}

uint64_t call_cycles(const call *c, const terms *t, const kiln_code *code)
{
    uint64_t values[TERM_COUNT];
    for (size_t i = 0; i < TERM_COUNT; i++)
        values[i] = call_number(c, t->time[i]);
    return kiln_estimate(c->device, code,
                         &(kiln_work){.blocks = values[TERM_BLOCKS],
                                      .resident = values[TERM_RESIDENT],
                                      .length = values[TERM_LENGTH],
                                      .repeats = values[TERM_REPEATS],
                                      .side_trips = values[TERM_SIDE_TRIPS],
                                      .wait = values[TERM_WAIT],
                                      .block_bytes = values[TERM_BLOCK_BYTES],
                                      .bytes = values[TERM_BYTES],
                                      .extra = values[TERM_EXTRA]});
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

kernel_code kernel_code_of(arena *scratch, const plan *p, const variant *v)
{
    size_t last = p->target_count;
    while (last > 0 && !(v->runs_on >> (last - 1) & 1u))
        last--;
    if (last == 0)
        internal_error("%s runs on no target", v->id);
    const ptx_fn *kernel = build_kernel(scratch, v, p->targets[last - 1]);
    const kernel_code made = {code_of(ptx_count(kernel), &v->shape), ptx_shared_bytes(kernel),
                              ptx_min_driver(ptx_needs(kernel).version)};
    arena_clear(scratch);
    return made;
}

bool variant_serves(const plan *p, const variant *v, uint32_t sm)
{
    const target here = {(uint16_t)sm, TARGET_FAMILY};
    for (size_t i = 0; i < p->target_count; i++)
        if ((v->runs_on >> i & 1u) && target_serves(p->targets[i], here))
            return true;
    return false;
}

const tuned_shape *call_nearest_shape(arena *a, const call *c, const tuned_choice *tuned)
{
    const size_t columns = 2 + tuned->arg_count;
    uint64_t *rows = arena_alloc(a, (tuned->shape_count + 1) * columns * sizeof *rows),
             *sizes = arena_alloc(a, columns * sizeof *sizes);
    for (size_t k = 0; k < tuned->arg_count; k++)
        sizes[k] = c->args[tuned->args[k]];
    for (size_t i = 0; i < tuned->shape_count; i++) {
        const tuned_shape *s = tuned->shapes[i];
        rows[i * columns] = s->file->sm;
        rows[i * columns + 1] = s->file->multiprocessors;
        for (size_t k = 0; k < tuned->arg_count; k++)
            rows[i * columns + 2 + k] = s->sizes[tuned->args[k]];
    }
    const size_t nearest = kiln_nearest(c->device, rows, tuned->shape_count, sizes, tuned->arg_count);
    return nearest < tuned->shape_count ? tuned->shapes[nearest] : NULL;
}
