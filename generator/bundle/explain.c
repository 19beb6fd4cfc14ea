#include "explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "expression/expression.h"
#include "family/family.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/target.h"

/* ---- what is given ----------------------------------------------------------------------------------------------- */

typedef struct given {
    uint64_t *args; /* of all that the family has */
    bool *has_arg;
    const char *params[KILN_MAX_PARAMS]; /* of contract parameters; null: the default */
} given;

/* Null where it could be read. */
static const char *read_number(arena *a, const kiln_arg *arg, const char *word, uint64_t *number)
{
    char *end = NULL;
    const bool is_real = arg->kind == KILN_ARG_VALUE && (arg->type[0] == 'f' || arg->type[0] == '$');
    const bool is_narrow = arg->kind == KILN_ARG_VALUE && strstr(arg->type, "32");
    const double real = is_real ? strtod(word, &end) : 0;
    errno = 0;
    *number = is_real ? 0 : strtoull(word, &end, 0);
    const bool is_read = *word >= '0' && *word <= '9' && *end == '\0' && errno == 0;
    if (!is_read || !(real < 1e300) || (is_narrow && *number > UINT32_MAX))
        return arena_format(a, "expected a number of at least 0%s for %s, found '%s'",
                            is_narrow && !is_real ? ", of 32 bits," : "", arg->name, quote_text(a, word));
    return NULL;
}

static const char *read_value(arena *a, const kiln_family *family, const char *value, given *g)
{
    const char *equals = strchr(value, '=');
    if (!equals)
        return arena_format(a, "expected name=value, found '%s'", quote_text(a, value));
    const char *name = arena_string(a, value, (size_t)(equals - value));
    for (size_t i = 0; family->args[i].name; i++)
        if (strcmp(family->args[i].name, name) == 0) {
            if (g->has_arg[i])
                return arena_format(a, "%s is given twice", name);
            g->has_arg[i] = true;
            return read_number(a, &family->args[i], equals + 1, &g->args[i]);
        }
    size_t index;
    text names = text_new(a);
    for (size_t i = 0; family->args[i].name; i++)
        text_printf(&names, "%s%s", i ? " " : "", family->args[i].name);
    for (size_t i = 0; i < family_param_count(family); i++)
        if (family->params[i].role == KILN_ROLE_CONTRACT)
            text_printf(&names, " %s", family->params[i].name);
    if (!family_find_param(family, name, &index) || family->params[index].role != KILN_ROLE_CONTRACT)
        return arena_format(a, "there is no argument and no contract parameter '%s'%s", quote_text(a, name),
                            suggest_text(a, name, names.data));
    if (!param_has_value(&family->params[index], equals + 1))
        return arena_format(a, "%s is never '%s'; it is %s", name, quote_text(a, equals + 1),
                            param_values_text(a, &family->params[index]));
    if (g->params[index])
        return arena_format(a, "%s is given twice", name);
    g->params[index] = param_value_of(a, &family->params[index], equals + 1).text;
    return NULL;
}

/* ---- expressions of a call --------------------------------------------------------------------------------------- */

/* The call that is explained. */
typedef struct question {
    arena *arena;
    const plan *plan;
    const given *given;
    call call;
    terms terms; /* of the family */
} question;

static uint64_t value_of(const question *q, const variant *v, const char *source)
{
    const expression *e = expression_parse(q->arena, q->call.family, source);
    return call_number(&q->call, expression_bind(q->arena, e, v));
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    const variant *variant;
    const char *why_not;
    uint64_t cycles;
    uint32_t nanoseconds; /* that were measured near the call; 0: none */
    size_t place;         /* in the configuration */
} candidate;

static const char no_room[] = "the device has less shared memory than this call takes";

/* Whether the call gives every argument that this counts with. */
static bool is_known(const question *q, const expression *e)
{
    for (size_t i = 0; q->call.family->args[i].name; i++)
        if (!q->given->has_arg[i] && expression_counts_with(e, i))
            return false;
    return true;
}

/* "k_stride must be at least 128 (head_dim); pass k_stride=128", where all is known that the rule's text counts with. */
static const char *rule_text(const question *q, const variant *v, const char *rule)
{
    static const char least[] = " must be at least ";
    const char *at = strstr(rule, least), *source = at ? at + strlen(least) : "";
    uint64_t number;
    if (!at || expression_try(q->arena, v, source, false))
        return rule;
    const expression *e = expression_parse(q->arena, q->call.family, source);
    if (expression_is_constant(e, &number) || !is_known(q, e))
        return rule;
    const char *name = arena_string(q->arena, rule, (size_t)(at - rule));
    number = value_of(q, v, source);
    return arena_format(q->arena, "%s%s%llu (%s); pass %s=%llu", name, least, (unsigned long long)number,
                        source, name, (unsigned long long)number);
}

static candidate consider(const question *q, const variant *v)
{
    arena *a = q->arena;
    candidate made = {.variant = v};
    const terms t = terms_bind(a, &q->terms, v);
    const kiln_rule *broken = call_broken_rule(&q->call, &t, true);
    const kiln_arg *misaligned = call_misaligned(&q->call, &t);
    if (!variant_serves(q->plan, v, q->call.device->sm))
        made.why_not = "no image for this device";
    else if (broken)
        made.why_not = rule_text(q, v, broken->text);
    else if (misaligned)
        made.why_not = arena_format(a, "%s must be aligned to %u bytes", misaligned->name,
                                    (unsigned)t.alignments[misaligned - v->family->args]);
    else if (v->external) /* there is no estimate: the first that can be launched is */
        made.why_not = call_has_room(&q->call, &t, 0) ? NULL : no_room;
    else {
        arena *scratch = arena_new();
        const kernel_code code = kernel_code_of(scratch, q->plan, v);
        arena_free(scratch);
        if (call_has_room(&q->call, &t, code.static_shared_bytes))
            made.cycles = call_cycles(&q->call, &t, &code.code);
        else
            made.why_not = no_room;
    }
    return made;
}

/* Puts in what stands for a parameter that is not given: the default, or the only value that there is. Returns what is wrong. */
static const char *fill_contract(arena *a, const plan *p, const kiln_family *family, given *g)
{
    for (size_t i = 0; i < family_param_count(family); i++) {
        const kiln_param *param = &family->params[i];
        text values = text_new(a);
        if (g->params[i] || param->role != KILN_ROLE_CONTRACT)
            continue;
        for (size_t k = 0; k < p->variant_count; k++) {
            const variant *v = p->variants[k];
            if (v->family != family || words_contain(values.data, v->values[i].text))
                continue;
            text_printf(&values, "%s%s", values.length ? " " : "", v->values[i].text);
        }
        const bool has_default = words_contain(values.data, param->default_value);
        if (!has_default && strchr(values.data, ' '))
            return arena_format(a, "%s is missing; the configuration has %s", param->name,
                                list_text(a, values.data));
        g->params[i] = has_default ? param->default_value : values.data;
    }
    return NULL;
}

/* Whether a variant has what the caller names, or what stands for it. */
static bool has_contract(const variant *v, const given *g)
{
    for (size_t i = 0; i < family_param_count(v->family); i++) {
        const kiln_param *param = &v->family->params[i];
        const char *wanted = g->params[i];
        if (param->role == KILN_ROLE_CONTRACT && (!wanted || strcmp(v->values[i].text, wanted) != 0))
            return false;
    }
    return true;
}

/* Whether a variant's launch, its bytes or, without an estimate, the choice depend on an argument. */
static bool counts_with(const question *q, const variant *v, size_t index)
{
    const kiln_family *f = q->call.family;
    const char *const sources[] = {f->grid[0], f->grid[1], f->grid[2], f->cost.bytes_read,
                                   f->cost.bytes_written};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (sources[i] && expression_counts_with(
                              expression_bind(q->arena, expression_parse(q->arena, f, sources[i]), v), index))
            return true;
    for (const kiln_rule *rule = f->rules; v->external && rule->condition; rule++)
        if (expression_counts_with(expression_parse(q->arena, f, rule->condition), index))
            return true;
    return false;
}

/* Whether it makes a difference to a variant that has what the caller names. */
static bool counts(const question *q, size_t index)
{
    for (size_t k = 0; k < q->plan->variant_count; k++) {
        const variant *v = q->plan->variants[k];
        if (v->family == q->call.family && has_contract(v, q->given) && counts_with(q, v, index))
            return true;
    }
    return false;
}

/* Sizes that have to be given, and are not; else null. */
static const char *missing_sizes(const question *q)
{
    text names = text_new(q->arena), forms = text_new(q->arena);
    size_t count = 0;
    for (size_t i = 0; q->call.family->args[i].name; i++) {
        const kiln_arg *arg = &q->call.family->args[i];
        if (arg->kind != KILN_ARG_VALUE || q->given->has_arg[i] || !counts(q, i))
            continue;
        text_printf(&names, "%s%s", count++ ? ", " : "", arg->name);
        text_printf(&forms, " %s=...", arg->name);
    }
    return count
               ? arena_format(q->arena, "%s %s missing:%s", names.data, count > 1 ? "are" : "is", forms.data)
               : NULL;
}

static int compare(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (!a->why_not != !b->why_not)
        return a->why_not ? 1 : -1;
    if (!a->nanoseconds != !b->nanoseconds)
        return a->nanoseconds ? -1 : 1;
    if (a->nanoseconds != b->nanoseconds)
        return a->nanoseconds < b->nanoseconds ? -1 : 1;
    if (a->cycles != b->cycles)
        return a->cycles < b->cycles ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

static bool has_variant(const question *q)
{
    for (size_t i = 0; i < q->plan->variant_count; i++)
        if (q->plan->variants[i]->family == q->call.family && has_contract(q->plan->variants[i], q->given))
            return true;
    return false;
}

/* What is wrong with the call as a whole; null: nothing. */
static const char *check_call(const question *q, given *g)
{
    const plan *p = q->plan;
    const variant *any = NULL;
    for (size_t i = 0; i < p->variant_count && !any; i++)
        any = p->variants[i]->family == q->call.family ? p->variants[i] : NULL;
    if (!any)
        return "the configuration does not have this family";
    const char *wrong = fill_contract(q->arena, p, q->call.family, g);
    if (!wrong && !has_variant(q))
        wrong = "the configuration has no variant with what the call names; `kiln list` shows what there is";
    wrong = wrong ? wrong : missing_sizes(q);
    const kiln_rule *broken = wrong ? NULL : call_broken_rule(&q->call, &q->terms, false);
    return broken ? rule_text(q, any, broken->text) : wrong;
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static const tuned_shape *nearest_shape(const question *q, const candidate *all, size_t count)
{
    const variant **variants = arena_alloc(q->arena, count * sizeof *variants);
    for (size_t i = 0; i < count; i++)
        variants[i] = all[i].variant;
    const tuned_choice tuned =
        count > 1 ? tuned_choice_of(q->arena, q->plan, variants, count) : (tuned_choice){0};
    return call_nearest_shape(q->arena, &q->call, &tuned);
}

/* "m=1 n=4096 k=4096" */
static const char *shape_text(arena *a, const tuned_shape *s)
{
    text out = text_new(a);
    for (size_t i = 0; s->family->args[i].name; i++)
        if (s->sizes[i] != TUNED_ANY_SIZE)
            text_printf(&out, "%s%s=%s", out.length ? " " : "", s->family->args[i].name,
                        arena_format(a, "%llu", (unsigned long long)s->sizes[i]));
    return out.data;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static const char *estimates_heading(arena *a, const plan *p, const candidate *first, const tuned_shape *near)
{
    const char *kind =
        first->variant->external ? "no estimates, the configuration's order" : "estimated cycles";
    if (near)
        return arena_format(a, "%s, as of those measured at %s (%s) none can be launched", kind,
                            shape_text(a, near), near->file->asked);
    for (size_t i = 0; i < p->tuned_shape_count; i++)
        if (p->tuned_shapes[i].family == first->variant->family)
            return arena_format(a, "%s, as nothing was measured near this call on such a device", kind);
    return kind;
}

static void add_candidate(text *out, const candidate *one)
{
    if (one->why_not)
        text_printf(out, "%12s  %s: %s\n", "-", one->variant->id, one->why_not);
    else if (one->nanoseconds)
        text_printf(out, "%12u  %s\n", (unsigned)one->nanoseconds, one->variant->id);
    else if (one->variant->external)
        text_printf(out, "%14s%s\n", "", one->variant->id);
    else
        text_printf(out, "%12llu  %s\n", (unsigned long long)one->cycles, one->variant->id);
}

static bool explain_candidates(text *out, const plan *p, const tuned_shape *near, candidate *all,
                               size_t count)
{
    arena *a = out->arena;
    for (size_t i = 0; i < count; i++) {
        all[i].place = i;
        if (near && !all[i].why_not)
            all[i].nanoseconds = tuned_nanoseconds(near, all[i].variant);
    }
    qsort(all, count, sizeof *all, compare);
    const bool is_measured = near && all[0].nanoseconds > 0;
    text_printf(out, "%s; %s\n",
                is_measured ? arena_format(a, "measured nanoseconds at %s (%s)", shape_text(a, near),
                                           near->file->asked)
                            : estimates_heading(a, p, &all[0], near),
                all[0].why_not ? "none can be launched" : "the first is launched");
    for (size_t i = 0; i < count; i++) {
        if (is_measured && i > 0 && all[i - 1].nanoseconds && !all[i].nanoseconds && !all[i].why_not)
            text_printf(out, "not measured there, so not launched%s\n",
                        all[i].variant->external ? "" : "; estimated cycles");
        add_candidate(out, &all[i]);
    }
    return !all[0].why_not;
}

bool explain_call(text *out, const plan *p, const kiln_family *family, const kiln_device *device,
                  const char *const *values, size_t value_count, diagnostics *d)
{
    const place at = {.file = "kiln"};
    arena *a = out->arena;
    size_t arg_count = 0, count = 0;
    const int errors = d->count;
    while (family->args[arg_count].name)
        arg_count++;
    given g = {.args = arena_alloc(a, (arg_count + 1) * sizeof *g.args),
               .has_arg = arena_alloc(a, (arg_count + 1) * sizeof *g.has_arg)};
    for (size_t i = 0; i < arg_count; i++)
        g.args[i] = family->args[i].kind == KILN_ARG_VALUE ? 0 : MOST_ALIGNMENT;
    for (size_t i = 0; i < value_count; i++) {
        const char *wrong = read_value(a, family, values[i], &g);
        if (wrong)
            diagnose(d, at, "%s: %s", family->name, wrong);
    }
    if (d->count > errors)
        return false;
    const question q = {a, p, &g, {family, device, g.args}, terms_of(a, family)};
    const char *wrong = check_call(&q, &g);
    if (!wrong && family->empty && value_of(&q, NULL, family->empty)) {
        text_add(out, "nothing to do: no launch\n");
        return true;
    }
    candidate *all = arena_alloc(a, p->variant_count * sizeof *all);
    for (size_t i = 0; i < p->variant_count && !wrong; i++)
        if (p->variants[i]->family == family && has_contract(p->variants[i], &g))
            all[count++] = consider(&q, p->variants[i]);
    if (wrong)
        diagnose(d, at, "%s: %s", family->name, wrong);
    return !wrong && explain_candidates(out, p, nearest_shape(&q, all, count), all, count);
}
