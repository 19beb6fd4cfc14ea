#include "explain.h"

#include <errno.h>
#include <kiln/estimate.h>
#include <kiln/tuned.h>
#include <stdlib.h>
#include <string.h>

#include "expression/expression.h"
#include "family/family.h"
#include "images.h"
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

typedef struct call {
    arena *arena;
    const kiln_family *family;
    const kiln_device *device;
    const given *given;
} call;

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
    return kind == NAME_ARG ? c->given->args[index] : device_number(c->device, name);
}

static uint64_t value_of(const call *c, const variant *v, const char *source)
{
    if (!source)
        return 0;
    const expression *e = expression_bind(c->arena, expression_parse(c->arena, c->family, source), v);
    return expression_value_of_call(c->arena, e, number_of, (void *)c);
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    const variant *variant;
    const char *why_not;
    uint64_t cycles;
    uint32_t nanoseconds; /* that were measured near the call; 0: none */
    size_t place;         /* in the configuration */
} candidate;

/* Whether the call gives every argument that this counts with. */
static bool is_known(const call *c, const expression *e)
{
    for (size_t i = 0; c->family->args[i].name; i++)
        if (!c->given->has_arg[i] && expression_counts_with(e, i))
            return false;
    return true;
}

/* "k_stride must be at least 128 (head_dim); pass k_stride=128", where all is known that the rule's text counts with. */
static const char *rule_text(const call *c, const variant *v, const char *rule)
{
    static const char least[] = " must be at least ";
    const char *at = strstr(rule, least), *source = at ? at + strlen(least) : "";
    uint64_t number;
    if (!at || expression_try(c->arena, v, source, false))
        return rule;
    const expression *e = expression_parse(c->arena, c->family, source);
    if (expression_is_constant(e, &number) || !is_known(c, e))
        return rule;
    const char *name = arena_string(c->arena, rule, (size_t)(at - rule));
    number = value_of(c, v, source);
    return arena_format(c->arena, "%s%s%llu (%s); pass %s=%llu", name, least, (unsigned long long)number,
                        source, name, (unsigned long long)number);
}

/* The rule that the call breaks, of those that ask for parameters or of those that do not. */
static const char *broken_rule(const call *c, const variant *v, bool of_params)
{
    for (const kiln_rule *rule = c->family->rules; rule && rule->condition; rule++) {
        const bool asks = expression_uses(expression_parse(c->arena, c->family, rule->condition), NAME_PARAM);
        if (asks == of_params && !value_of(c, v, rule->condition))
            return rule_text(c, v, rule->text);
    }
    return NULL;
}

static uint64_t blocks_of(const call *c, const variant *v)
{
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++)
        blocks *= c->family->grid[i] ? value_of(c, v, c->family->grid[i]) : 1;
    return blocks;
}

/* Of external PTX there is none: the first that can be launched is. */
static uint64_t estimate(const call *c, const plan *p, const variant *v)
{
    if (v->external)
        return 0;
    image *images;
    arena *scratch = arena_new();
    const size_t count = bake_images(c->arena, scratch, NULL, p, v, &images);
    const kiln_code code = code_of(images[count - 1].costs, &v->shape);
    arena_free(scratch);
    const kiln_time *time = &c->family->time;
    const kiln_work work = {.blocks = blocks_of(c, v),
                            .resident = value_of(c, v, "blocks_per_multiprocessor"),
                            .length = value_of(c, v, time->length),
                            .repeats = time->repeats ? value_of(c, v, time->repeats) : 1,
                            .side_trips = value_of(c, v, time->side_trips),
                            .wait = value_of(c, v, time->wait),
                            .block_bytes = value_of(c, v, time->block_bytes),
                            .bytes = value_of(c, v, c->family->cost.bytes_read) +
                                     value_of(c, v, c->family->cost.bytes_written),
                            .extra = value_of(c, v, time->extra)};
    return kiln_estimate(c->device, &code, &work);
}

static bool runs_here(const plan *p, const variant *v, uint32_t sm)
{
    const target here = {(uint16_t)sm, TARGET_FAMILY};
    for (size_t i = 0; i < p->target_count; i++)
        if ((v->runs_on >> i & 1u) && target_serves(p->targets[i], here))
            return true;
    return false;
}

/* A pointer that the variant wants aligned to more than it is. */
static const char *misaligned(const call *c, const variant *v)
{
    for (size_t i = 0; c->family->args[i].name; i++) {
        const kiln_arg *arg = &c->family->args[i];
        if (arg->kind == KILN_ARG_VALUE || !variant_has_arg(c->arena, v, arg))
            continue;
        const uint32_t alignment = variant_arg_alignment(c->arena, v, arg);
        if (c->given->args[i] % alignment != 0)
            return arena_format(c->arena, "%s must be aligned to %u bytes", arg->name, (unsigned)alignment);
    }
    return NULL;
}

static candidate consider(const call *c, const plan *p, const variant *v)
{
    candidate made = {.variant = v};
    if (!runs_here(p, v, c->device->sm))
        made.why_not = "no image for this device";
    if (!made.why_not)
        made.why_not = broken_rule(c, v, true);
    if (!made.why_not)
        made.why_not = misaligned(c, v);
    if (!made.why_not && value_of(c, v, family_shared_bytes(c->family)) > c->device->max_shared_bytes)
        made.why_not = "the device has less shared memory than this call takes";
    if (!made.why_not)
        made.cycles = estimate(c, p, v);
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

/* Marks the arguments that an expression counts with. */
static void mark_counted(const call *c, const expression *e, bool *counted)
{
    for (size_t i = 0; c->family->args[i].name; i++)
        if (!counted[i])
            counted[i] = expression_counts_with(e, i);
}

/* The arguments that the launch or the bytes of a variant with what the caller names depend on or, without an estimate, the
 * choice. */
static const bool *counted_args(const call *c, const plan *p)
{
    const kiln_family *f = c->family;
    const char *const sources[] = {f->grid[0], f->grid[1], f->grid[2], f->cost.bytes_read,
                                   f->cost.bytes_written};
    size_t count = 0;
    while (f->args[count].name)
        count++;
    bool *counted = arena_alloc(c->arena, (count + 1) * sizeof *counted);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        const expression *e = sources[i] ? expression_parse(c->arena, f, sources[i]) : NULL;
        for (size_t k = 0; e && k < p->variant_count; k++)
            if (p->variants[k]->family == f && has_contract(p->variants[k], c->given))
                mark_counted(c, expression_bind(c->arena, e, p->variants[k]), counted);
    }
    bool is_external = false;
    for (size_t k = 0; k < p->variant_count; k++)
        is_external = is_external || (p->variants[k]->family == f && p->variants[k]->external &&
                                      has_contract(p->variants[k], c->given));
    for (const kiln_rule *rule = f->rules; is_external && rule->condition; rule++)
        mark_counted(c, expression_parse(c->arena, f, rule->condition), counted);
    return counted;
}

/* Sizes that have to be given, and are not; else null. */
static const char *missing_sizes(const call *c, const plan *p)
{
    text names = text_new(c->arena), forms = text_new(c->arena);
    const bool *counted = counted_args(c, p);
    size_t count = 0;
    for (size_t i = 0; c->family->args[i].name; i++) {
        const kiln_arg *arg = &c->family->args[i];
        if (arg->kind != KILN_ARG_VALUE || c->given->has_arg[i] || !counted[i])
            continue;
        text_printf(&names, "%s%s", count++ ? ", " : "", arg->name);
        text_printf(&forms, " %s=...", arg->name);
    }
    return count
               ? arena_format(c->arena, "%s %s missing:%s", names.data, count > 1 ? "are" : "is", forms.data)
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

static bool has_variant(const call *c, const plan *p)
{
    for (size_t i = 0; i < p->variant_count; i++)
        if (p->variants[i]->family == c->family && has_contract(p->variants[i], c->given))
            return true;
    return false;
}

/* What is wrong with the call as a whole; null: nothing. */
static const char *check_call(const call *c, const plan *p, given *g)
{
    const variant *any = NULL;
    for (size_t i = 0; i < p->variant_count && !any; i++)
        any = p->variants[i]->family == c->family ? p->variants[i] : NULL;
    if (!any)
        return "the configuration does not have this family";
    const char *wrong = fill_contract(c->arena, p, c->family, g);
    if (!wrong && !has_variant(c, p))
        wrong = "the configuration has no variant with what the call names; `kiln list` shows what there is";
    wrong = wrong ? wrong : missing_sizes(c, p);
    return wrong ? wrong : broken_rule(c, any, false);
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

/* The nearest shape that some of the candidates were measured at; null: none is near, or on another device. */
static const tuned_shape *nearest_shape(const call *c, const plan *p, const candidate *all, size_t count)
{
    const variant **variants = arena_alloc(c->arena, count * sizeof *variants);
    for (size_t i = 0; i < count; i++)
        variants[i] = all[i].variant;
    const tuned_choice tuned = count > 1 ? tuned_choice_of(c->arena, p, variants, count) : (tuned_choice){0};
    const size_t columns = 2 + tuned.arg_count;
    uint64_t *rows = arena_alloc(c->arena, (tuned.shape_count + 1) * columns * sizeof *rows),
             *sizes = arena_alloc(c->arena, columns * sizeof *sizes);
    for (size_t k = 0; k < tuned.arg_count; k++)
        sizes[k] = c->given->args[tuned.args[k]];
    for (size_t i = 0; i < tuned.shape_count; i++) {
        const tuned_shape *s = tuned.shapes[i];
        rows[i * columns] = s->file->sm;
        rows[i * columns + 1] = s->file->multiprocessors;
        for (size_t k = 0; k < tuned.arg_count; k++)
            rows[i * columns + 2 + k] = s->sizes[tuned.args[k]];
    }
    const size_t nearest = kiln_nearest(c->device, rows, tuned.shape_count, sizes, tuned.arg_count);
    return nearest < tuned.shape_count ? tuned.shapes[nearest] : NULL;
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
    const call c = {a, family, device, &g};
    const char *wrong = check_call(&c, p, &g);
    if (!wrong && family->empty && value_of(&c, NULL, family->empty)) {
        text_add(out, "nothing to do: no launch\n");
        return true;
    }
    candidate *all = arena_alloc(a, p->variant_count * sizeof *all);
    for (size_t i = 0; i < p->variant_count && !wrong; i++)
        if (p->variants[i]->family == family && has_contract(p->variants[i], &g))
            all[count++] = consider(&c, p, p->variants[i]);
    if (wrong)
        diagnose(d, at, "%s: %s", family->name, wrong);
    return !wrong && explain_candidates(out, p, nearest_shape(&c, p, all, count), all, count);
}
