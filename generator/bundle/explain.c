/* `kiln explain`: reads the call, fills in omitted values, judges each variant, and sorts them as dispatch does. */
#include "explain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "expression/expression.h"
#include "family/dense.h"
#include "family/family.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/target.h"

/* Where an argument's value comes from. */
typedef enum origin { ORIGIN_NONE, ORIGIN_GIVEN, ORIGIN_USUAL, ORIGIN_DENSE, ORIGIN_WORKSPACE } origin;

typedef struct candidate {
    const variant *variant;
    const char *why_not;
    uint64_t cycles;
    uint32_t nanoseconds; /* measured near the call; 0: none */
    size_t place;         /* index in the configuration */
} candidate;

/* The call that is explained. */
typedef struct question {
    arena *arena;
    const plan *plan;
    const explain_options *options;
    call call;
    uint64_t *args; /* the call's */
    origin *origins;
    const char *params[KILN_MAX_PARAMS]; /* of the contract; null: not given */
    terms terms;                         /* of the family */
    bool has_estimates;                  /* not of external PTX */
    candidate *candidates;
    size_t count;
} question;

/* ---- what is given ----------------------------------------------------------------------------------------------- */

/* Reads a float's sign: 1, 0, or -1 in two's complement. Returns what is wrong; null: nothing. */
static const char *read_sign(arena *a, const kiln_arg *arg, const char *word, uint64_t *sign)
{
    char *end;
    const bool is_f32 = strcmp(arg->type, "f32") == 0;
    const double real = is_f32 ? (double)strtof(word, &end) : strtod(word, &end);
    *sign = real < 0 ? UINT64_MAX : real > 0;
    const char first = word[*word == '-'];
    if (first >= '0' && first <= '9' && *end == '\0' && isfinite(real))
        return NULL;
    return arena_format(a, "expected a finite %s for %s, found '%s'", is_f32 ? "f32" : "number", arg->name,
                        quote_text(a, word));
}

/* Returns what is wrong; null: nothing. */
static const char *read_number(arena *a, const kiln_arg *arg, const char *word, uint64_t *number)
{
    if (arg->kind == KILN_ARG_VALUE && (arg->type[0] == 'f' || arg->type[0] == '$'))
        return read_sign(a, arg, word, number);
    char *end;
    const uint64_t most = arg_is_size(arg) ? arg_largest(arg) : UINT64_MAX;
    errno = 0;
    *number = strtoull(word, &end, strncmp(word, "0x", 2) == 0 ? 16 : 10); /* a leading 0 is not octal */
    if (*word >= '0' && *word <= '9' && *end == '\0' && errno == 0 && *number <= most)
        return NULL;
    return arena_format(a, "expected a number from 0 to %s for %s, found '%s'",
                        most < UINT64_MAX ? arena_format(a, "%llu", (unsigned long long)most) : "2^64 - 1",
                        arg->name, quote_text(a, word));
}

/* Converts true and false to the numbers of calls in C. */
static const char *bool_word(const char *word)
{
    return strcmp(word, "0") == 0 ? "false" : strcmp(word, "1") == 0 ? "true" : word;
}

static const char *read_value(question *q, const char *value)
{
    arena *a = q->arena;
    const kiln_family *family = q->call.family;
    const char *equals = strchr(value, '=');
    if (!equals)
        return arena_format(a, "expected name=value, found '%s'", quote_text(a, value));
    const char *name = arena_string(a, value, (size_t)(equals - value));
    for (size_t i = 0; family->args[i].name; i++)
        if (strcmp(family->args[i].name, name) == 0) {
            if (q->origins[i])
                return arena_format(a, "%s is given twice", name);
            q->origins[i] = ORIGIN_GIVEN;
            return read_number(a, &family->args[i], equals + 1, &q->args[i]);
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
    const kiln_param *param = &family->params[index];
    const char *word = param->type == KILN_PARAM_BOOL ? bool_word(equals + 1) : equals + 1;
    if (!param_has_value(param, word))
        return arena_format(a, "%s is never '%s'; it is %s", name, quote_text(a, word),
                            param_values_text(a, param));
    if (q->params[index])
        return arena_format(a, "%s is given twice", name);
    q->params[index] = param_value_of(a, param, word).text;
    return NULL;
}

/* ---- missing values ---------------------------------------------------------------------------------------------- */

/* Sizes and contract parameters that a call must name but does not, and words that name them. */
typedef struct missing {
    text names, words;
    size_t count;
} missing;

static void add_missing(missing *m, const char *name, const char *choices, const char *value)
{
    text_printf(&m->names, "%s%s%s", m->count++ ? ", " : "", name, choices);
    text_printf(&m->words, " %s=%s", name, value);
}

/* Whether a variant is of the family and has the values that the caller names, or their defaults. */
static bool is_candidate(const question *q, const variant *v)
{
    for (size_t i = 0; v->family == q->call.family && i < family_param_count(v->family); i++)
        if (q->params[i] && strcmp(v->values[i].text, q->params[i]) != 0)
            return false;
    return v->family == q->call.family;
}

/* The parameter's values among the family's variants, as words. */
static const char *planned_values(const question *q, size_t param)
{
    text values = text_new(q->arena);
    for (size_t k = 0; k < q->plan->variant_count; k++) {
        const variant *v = q->plan->variants[k];
        if (v->family == q->call.family && !words_contain(values.data, v->values[param].text))
            text_printf(&values, "%s%s", values.length ? " " : "", v->values[param].text);
    }
    return values.data;
}

static void find_candidates(question *q)
{
    q->count = 0;
    for (size_t i = 0; i < q->plan->variant_count; i++)
        if (is_candidate(q, q->plan->variants[i]))
            q->candidates[q->count++] = (candidate){.variant = q->plan->variants[i]};
    q->has_estimates = q->count > 0 && q->candidates[0].variant->kind == VARIANT_EMITTED;
}

/* Omitted contract parameters get the default, or the only available value; otherwise they are missing, and get the
 * first variant's value. */
static void fill_contract(question *q, missing *m)
{
    const kiln_family *family = q->call.family;
    for (size_t i = 0; i < family_param_count(family); i++) {
        const char *values = planned_values(q, i), *usual = family->params[i].default_value;
        if (q->params[i] || family->params[i].role != KILN_ROLE_CONTRACT)
            continue;
        if (words_contain(values, usual))
            q->params[i] = usual;
        else if (!strchr(values, ' '))
            q->params[i] = values;
    }
    find_candidates(q);
    for (size_t i = 0; q->count > 0 && i < family_param_count(family); i++) {
        if (q->params[i] || family->params[i].role != KILN_ROLE_CONTRACT)
            continue;
        q->params[i] = q->candidates[0].variant->values[i].text;
        add_missing(m, family->params[i].name,
                    arena_format(q->arena, " (%s)", list_text(q->arena, planned_values(q, i))), q->params[i]);
    }
    find_candidates(q);
}

/* "type=f16 causal=true": the contract parameters in which the family's variants differ. */
static const char *contract_text(const question *q, const variant *v)
{
    text out = text_new(q->arena);
    for (size_t i = 0; i < family_param_count(q->call.family); i++) {
        const char *values = planned_values(q, i), *asked = q->params[i];
        if (q->call.family->params[i].role == KILN_ROLE_CONTRACT && asked && strcmp(values, asked) != 0)
            text_printf(&out, "%s%s=%s", out.length ? " " : "", q->call.family->params[i].name,
                        v ? v->values[i].text : asked);
    }
    return out.data;
}

/* The available contracts, if no variant has the requested one. */
static const char *other_contracts(const question *q)
{
    enum { SHOWN = 8 };
    text out = text_new(q->arena);
    const char *shown[SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < q->plan->variant_count && count < SHOWN; i++) {
        const variant *v = q->plan->variants[i];
        bool is_new = v->family == q->call.family;
        const char *contract = is_new ? contract_text(q, v) : "";
        for (size_t k = 0; k < count; k++)
            is_new = is_new && strcmp(shown[k], contract) != 0;
        if (!is_new)
            continue;
        text_printf(&out, "%s%s", count ? ", " : "", contract);
        shown[count++] = contract;
    }
    return arena_format(q->arena, "no variant has %s; there are %s%s", contract_text(q, NULL), out.data,
                        count == SHOWN ? ", ... (kiln list)" : "");
}

/* Whether some candidate has the argument. */
static bool has_arg(const question *q, const kiln_arg *arg)
{
    for (size_t i = 0; i < q->count; i++)
        if (variant_has_arg(q->candidates[i].variant, arg))
            return true;
    return false;
}

/* Whether an argument changes the variant's grid or bytes or, if there are no estimates, which variant is chosen. */
static bool counts_with(const question *q, const variant *v, size_t index)
{
    const terms t = terms_bind(q->arena, &q->terms, v);
    bool does = expression_counts_with(t.time[TERM_BLOCKS], index) ||
                (t.time[TERM_BYTES] && expression_counts_with(t.time[TERM_BYTES], index));
    for (size_t i = 0; !q->has_estimates && i < t.rule_count; i++)
        does = does || expression_counts_with(q->terms.rules[i], index);
    return does;
}

static bool counts(const question *q, size_t index)
{
    for (size_t i = 0; i < q->count; i++)
        if (counts_with(q, q->candidates[i].variant, index))
            return true;
    return false;
}

static uint64_t value_of(const question *q, const char *source)
{
    const expression *e = expression_parse(q->arena, q->call.family, source);
    return call_number(&q->call, expression_bind(q->arena, e, q->candidates[0].variant));
}

/* The value of a stride in a contiguous array; null: the argument is not a stride. */
static const char *dense_value(const question *q, const kiln_arg *arg)
{
    const char *value = NULL;
    for (const kiln_dense *row = q->call.family->dense; row && row->args; row++) {
        const dense_stride *strides;
        if (row->when && !value_of(q, row->when))
            continue;
        const size_t count = dense_strides(q->arena, q->call.family, row, &strides);
        for (size_t i = 0; i < count; i++)
            if (strcmp(strides[i].arg, arg->name) == 0)
                value = strides[i].value;
    }
    return value;
}

/* Whether it is a stride that the call omits, and --contiguous would set. */
static bool is_open_stride(const question *q, const kiln_arg *arg)
{
    return q->origins[arg - q->call.family->args] == ORIGIN_NONE && has_arg(q, arg) && dense_value(q, arg);
}

/* The value in the family's example, or one that meets most divisibility rules. */
static const char *plausible_value(const question *q, const kiln_arg *arg)
{
    for (const kiln_value *v = q->call.family->example; v && v->arg; v++)
        if (arg_is_size(arg) && strcmp(v->arg, arg->name) == 0)
            return arena_format(q->arena, "%llu", (unsigned long long)value_of(q, v->value));
    return "4096";
}

static void find_missing_sizes(const question *q, missing *m)
{
    bool has_open_stride = false;
    for (const kiln_arg *arg = q->call.family->args; arg->name; arg++) {
        const size_t i = (size_t)(arg - q->call.family->args);
        const bool is_open = is_open_stride(q, arg);
        has_open_stride = has_open_stride || is_open;
        if (arg->kind == KILN_ARG_VALUE && q->origins[i] == ORIGIN_NONE && !is_open && counts(q, i))
            add_missing(m, arg->name, "", plausible_value(q, arg));
    }
    if (has_open_stride)
        text_add(&m->words, " --contiguous");
}

/* Records which sizes are not the call's own. */
static void find_origins(question *q)
{
    for (const kiln_arg *arg = q->call.family->args; arg->name; arg++) {
        origin *o = &q->origins[arg - q->call.family->args];
        if (*o != ORIGIN_NONE)
            continue;
        if (family_usual(q->call.family, arg))
            *o = ORIGIN_USUAL;
        else if (is_workspace_size(q->call.family, arg))
            *o = ORIGIN_WORKSPACE;
        else if (q->options->is_contiguous && is_open_stride(q, arg))
            *o = ORIGIN_DENSE;
    }
}

static void fill_sizes(const question *q)
{
    const size_t count = family_arg_count(q->call.family);
    bool *is_named = arena_alloc(q->arena, count + 1);
    for (size_t i = 0; i < count; i++)
        is_named[i] = q->origins[i] != ORIGIN_USUAL;
    call_put_usual(q->arena, &q->call, q->candidates[0].variant, is_named, q->args);
    for (size_t i = 0; i < count; i++)
        if (q->origins[i] == ORIGIN_DENSE)
            q->args[i] = value_of(q, dense_value(q, &q->call.family->args[i]));
}

/* Sets the workspace to the largest size that a variant needs. */
static void fill_workspace(const question *q)
{
    for (size_t i = 0; q->call.family->args[i].name; i++)
        for (size_t k = 0; q->origins[i] == ORIGIN_WORKSPACE && k < q->count; k++) {
            const uint64_t size = call_workspace(q->arena, &q->call, q->candidates[k].variant);
            q->args[i] = size > q->args[i] ? size : q->args[i];
        }
}

/* " splits=4 pages_size=16": the nonzero values filled in from that origin. */
static const char *filled_text(const question *q, origin from)
{
    text out = text_new(q->arena);
    for (size_t i = 0; q->call.family->args[i].name; i++)
        if (q->origins[i] == from && q->args[i] && has_arg(q, &q->call.family->args[i]))
            text_printf(&out, " %s=%s", q->call.family->args[i].name,
                        arena_format(q->arena, "%llu", (unsigned long long)q->args[i]));
    return out.data;
}

static void add_filled(text *out, const question *q)
{
    static const struct {
        origin from;
        const char *name;
    } rows[] = {{ORIGIN_USUAL, "as usual"},
                {ORIGIN_DENSE, "contiguous"},
                {ORIGIN_WORKSPACE, "as large as the variants need"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *values = filled_text(q, rows[i].from);
        if (*values)
            text_printf(out, "%s:%s\n", rows[i].name, values);
    }
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* Returns the broken condition with the call's numbers, or else the rule's text. */
static const char *rule_text(const question *q, const terms *t, const kiln_rule *broken, const char *verb)
{
    const char *demand = q->options->is_long ? NULL : call_demand(q->arena, &q->call, t, broken, verb);
    return demand ? demand : broken->text;
}

/* "runs on sm_80 sm_90" */
static const char *targets_text(const question *q, const variant *v)
{
    char name[TARGET_NAME_BYTES];
    text out = text_new(q->arena);
    text_add(&out, "runs on");
    for (size_t i = 0; i < q->plan->target_count; i++)
        if (v->runs_on >> i & 1u)
            text_printf(&out, " %s", target_print(q->plan->targets[i], name));
    return out.data;
}

/* The reason that it is not launched, whatever its code is; null: none. */
static const char *why_not_text(const question *q, const terms *t)
{
    const kiln_rule *broken = call_broken_rule(&q->call, t, true);
    const kiln_arg *found;
    if (!variant_serves(q->plan, t->variant, q->call.device->sm))
        return targets_text(q, t->variant);
    if (broken)
        return rule_text(q, t, broken, " ");
    if ((found = call_misaligned(&q->call, t)))
        return arena_format(q->arena, "%s%s aligned to %u bytes", found->name,
                            q->options->is_long ? " must be" : "",
                            (unsigned)t->alignments[found - q->call.family->args]);
    if ((found = call_too_large(q->arena, &q->call, t->variant)))
        return arena_format(q->arena, "%s would have 2^63 bytes or more", found->name);
    return NULL;
}

/* External PTX has no estimate: its first launchable variant is picked. */
static void judge(const question *q, candidate *one)
{
    const terms t = terms_bind(q->arena, &q->terms, one->variant);
    kernel_code code = {.static_shared_bytes = 0};
    one->why_not = why_not_text(q, &t);
    if (one->why_not)
        return;
    if (q->has_estimates) {
        arena *scratch = arena_new();
        code = kernel_code_of(scratch, q->plan, one->variant);
        arena_free(scratch);
        one->cycles = call_cycles(&q->call, &t, &code.code);
    }
    if (!call_has_room(&q->call, &t, code.static_shared_bytes))
        one->why_not = arena_format(
            q->arena, "%llu KB of shared memory, of %u",
            (unsigned long long)(call_number(&q->call, t.shared_bytes) + code.static_shared_bytes + 1023) /
                1024,
            (unsigned)q->call.device->max_shared_bytes / 1024);
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

/* ---- the call as a whole ------------------------------------------------------------------------------------------ */

/* A rule that the call breaks for every variant; for a stride, with the option that sets it. */
static const char *broken_text(const question *q)
{
    const terms t = terms_bind(q->arena, &q->terms, q->candidates[0].variant);
    size_t i = 0;
    while (i < t.rule_count && (t.asks_tuning[i] || call_number(&q->call, t.rules[i])))
        i++;
    if (i == t.rule_count)
        return NULL;
    const kiln_rule *broken = &q->call.family->rules[i];
    const char *hint = "";
    bool *is_used = arena_alloc(q->arena, family_arg_count(q->call.family) + 1);
    expression_mark_args(t.rules[i], is_used);
    for (size_t k = 0; q->call.family->args[k].name; k++)
        if (is_used[k] && is_open_stride(q, &q->call.family->args[k]))
            hint = arena_format(q->arena, "; for dense tensors:\n%s --contiguous", q->options->command);
    return arena_format(q->arena, "%s%s", rule_text(q, &t, broken, " must be "), hint);
}

/* An argument that the call sets and that the bundle rejects; null: none. */
static const kiln_arg *refused_arg(const question *q)
{
    const variant **variants = arena_alloc(q->arena, (q->plan->variant_count + 1) * sizeof *variants);
    size_t count = 0;
    for (size_t i = 0; i < q->plan->variant_count; i++)
        if (q->plan->variants[i]->family == q->call.family)
            variants[count++] = q->plan->variants[i];
    for (const kiln_arg *arg = q->call.family->args; arg->name; arg++) {
        const size_t i = (size_t)(arg - q->call.family->args);
        if (q->origins[i] == ORIGIN_GIVEN && q->args[i] && arg_use_of(variants, arg) == ARG_REFUSED)
            return arg;
    }
    return NULL;
}

/* Fills in omitted values. Returns what is wrong with the call; null: nothing. */
static const char *complete(question *q)
{
    missing m = {text_new(q->arena), text_new(q->arena), 0};
    bool has_family = false;
    for (size_t i = 0; i < q->plan->variant_count; i++)
        has_family = has_family || q->plan->variants[i]->family == q->call.family;
    if (!has_family)
        return "the configuration does not have this family";
    if (q->options->is_contiguous && !q->call.family->dense)
        return "the family has no strides for --contiguous";
    const kiln_arg *found = refused_arg(q);
    if (found)
        return arena_format(q->arena, "%s must be 0: this bundle does not read it", found->name);
    fill_contract(q, &m);
    if (q->count == 0)
        return other_contracts(q);
    find_origins(q);
    find_missing_sizes(q, &m);
    if (m.count > 0)
        return arena_format(q->arena, "%s %s missing, as in\n%s%s", m.names.data, m.count > 1 ? "are" : "is",
                            q->options->command, m.words.data);
    fill_sizes(q);
    if ((found = call_too_wide(&q->call, q->candidates[0].variant)))
        return arena_format(q->arena, "%s would be %llu, more than a %s holds", found->name,
                            (unsigned long long)q->args[found - q->call.family->args], found->type);
    const char *broken = broken_text(q);
    if (!broken)
        fill_workspace(q);
    return broken;
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static const tuned_shape *nearest_shape(const question *q)
{
    const variant **variants = arena_alloc(q->arena, (q->count + 1) * sizeof *variants);
    for (size_t i = 0; i < q->count; i++)
        variants[i] = q->candidates[i].variant;
    const tuned_choice tuned = tuned_choice_of(q->arena, q->plan, variants, q->count);
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

/* A heading for the numbers. */
static const char *kind_text(const question *q, const tuned_shape *near, bool is_measured)
{
    arena *a = q->arena;
    const plan *p = q->plan;
    const char *kind = q->has_estimates ? "estimated cycles, without what each launch costs"
                                        : "no estimates, the configuration's order";
    if (is_measured)
        return arena_format(a, "measured nanoseconds at %s (%s)", shape_text(a, near), near->file->asked);
    if (near)
        return arena_format(a, "%s, since no variant measured at %s (%s) can be launched", kind,
                            shape_text(a, near), near->file->asked);
    for (size_t i = 0; i < p->tuned_shape_count; i++)
        if (p->tuned_shapes[i].family == q->call.family)
            return arena_format(a, "%s, since nothing was measured near this call on such a device", kind);
    return kind;
}

/* ": 7.18 us, an estimate"; empty if there is none. */
static const char *time_text(const question *q, const candidate *one)
{
    const uint32_t mhz = q->options->device_mhz;
    const uint64_t nanoseconds = one->nanoseconds ? one->nanoseconds : mhz ? one->cycles * 1000 / mhz : 0;
    const char *how = one->nanoseconds ? "measured" : "an estimate";
    if (!one->nanoseconds && !q->has_estimates)
        return "";
    if (!one->nanoseconds && !mhz)
        return arena_format(q->arena, ": %llu cycles, %s", (unsigned long long)one->cycles, how);
    return arena_format(q->arena, ": %llu.%02u us, %s", (unsigned long long)(nanoseconds / 1000),
                        (unsigned)(nanoseconds % 1000 / 10), how);
}

/* The column widths of the parameters in which candidates differ; 0: they do not differ. */
static void find_widths(const question *q, size_t *widths)
{
    for (size_t i = 0; i < family_param_count(q->call.family); i++) {
        const char *first = q->candidates[0].variant->values[i].text;
        bool differs = false;
        widths[i] = strlen(q->call.family->params[i].name);
        for (size_t k = 0; k < q->count; k++) {
            const char *value = q->candidates[k].variant->values[i].text;
            differs = differs || strcmp(value, first) != 0;
            widths[i] = strlen(value) > widths[i] ? strlen(value) : widths[i];
        }
        widths[i] = differs ? widths[i] : 0;
    }
}

/* The variant in the columns, or its id; a null variant: the names of the columns. */
static void add_variant(text *out, const question *q, const size_t *widths, const variant *v,
                        const char *after)
{
    const char *gap = "";
    size_t spaces = 0;
    for (size_t i = 0; widths && i < family_param_count(q->call.family); i++) {
        const char *word = v ? v->values[i].text : q->call.family->params[i].name;
        if (!widths[i])
            continue;
        text_printf(out, "%s%*s%s", gap, (int)spaces, "", word);
        spaces = widths[i] - strlen(word);
        gap = "  ";
    }
    if (!widths)
        text_printf(out, "%s%s", v->id, *after ? ": " : "");
    else if (*after)
        text_printf(out, "%*s  ", (int)spaces, "");
    text_printf(out, "%s\n", after);
}

static void add_candidate(text *out, const question *q, const size_t *widths, const candidate *one)
{
    const uint64_t number = one->nanoseconds ? one->nanoseconds : one->cycles;
    const char *numbered = one->why_not ? "-"
                           : !q->has_estimates && !one->nanoseconds
                               ? ""
                               : arena_format(q->arena, "%llu", (unsigned long long)number);
    text_printf(out, "%12s  ", numbered);
    add_variant(out, q, widths, one->variant, one->why_not ? one->why_not : "");
}

/* "a=f16,acc=f32": the values that all candidates share. */
static void add_common(text *out, const question *q, const size_t *widths)
{
    const char *before = "all: ";
    for (size_t i = 0; i < family_param_count(q->call.family); i++) {
        if (widths[i])
            continue;
        text_printf(out, "%s%s=%s", before, q->call.family->params[i].name,
                    q->candidates[0].variant->values[i].text);
        before = ",";
    }
    if (*before == ',')
        text_add(out, "\n");
}

static bool add_answer(text *out, const question *q)
{
    const tuned_shape *near = nearest_shape(q);
    candidate *all = q->candidates;
    for (size_t i = 0; i < q->count; i++) {
        judge(q, &all[i]);
        all[i].place = i;
        if (near && !all[i].why_not)
            all[i].nanoseconds = tuned_nanoseconds(near, all[i].variant);
    }
    qsort(all, q->count, sizeof *all, compare);
    const bool is_measured = near && all[0].nanoseconds > 0, is_launched = !all[0].why_not;
    text_printf(out, "%s; %s%s\n", kind_text(q, near, is_measured),
                is_launched ? "the first is launched" : "none can be launched",
                is_launched ? time_text(q, &all[0]) : "");
    add_filled(out, q);
    size_t widths[KILN_MAX_PARAMS];
    const bool has_columns = !q->options->is_long && q->count > 1;
    if (has_columns) {
        find_widths(q, widths);
        add_common(out, q, widths);
        text_printf(out, "%12s  ", "");
        add_variant(out, q, widths, NULL, "");
    }
    for (size_t i = 0; i < q->count; i++) {
        if (is_measured && i > 0 && all[i - 1].nanoseconds && !all[i].nanoseconds && !all[i].why_not)
            text_printf(out, "not measured there, so not launched%s\n",
                        q->has_estimates ? "; estimated cycles" : "");
        add_candidate(out, q, has_columns ? widths : NULL, &all[i]);
    }
    return is_launched;
}

bool explain_call(text *out, const plan *p, const kiln_family *family, const kiln_device *device,
                  const char *const *values, size_t value_count, const explain_options *options,
                  diagnostics *d)
{
    const place at = {.file = "kiln"};
    arena *a = out->arena;
    const size_t arg_count = family_arg_count(family);
    const int errors = d->count;
    uint64_t *args = arena_alloc(a, (arg_count + 1) * sizeof *args);
    question q = {.arena = a,
                  .plan = p,
                  .options = options,
                  .call = {family, device, args},
                  .args = args,
                  .origins = arena_alloc(a, (arg_count + 1) * sizeof *q.origins),
                  .terms = terms_of(a, family),
                  .candidates = arena_alloc(a, (p->variant_count + 1) * sizeof *q.candidates)};
    for (size_t i = 0; i < arg_count; i++)
        args[i] =
            family->args[i].kind == KILN_ARG_VALUE || arg_may_be_null(&family->args[i]) ? 0 : MOST_ALIGNMENT;
    for (size_t i = 0; i < value_count; i++) {
        const char *wrong = read_value(&q, values[i]);
        if (wrong)
            diagnose(d, at, "%s: %s", family->name, wrong);
    }
    if (d->count > errors)
        return false;
    const char *wrong = complete(&q);
    if (wrong)
        diagnose(d, at, "%s: %s", family->name, wrong);
    else if (family->empty && value_of(&q, family->empty))
        text_add(out, "nothing to do: no launch\n");
    else
        return add_answer(out, &q);
    return !wrong;
}
