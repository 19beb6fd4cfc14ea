/* Verifies one variant: all sizes, all inputs, and calls that must be refused. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "run.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/clock.h"
#include "compare.h"
#include "execute.h"
#include "reference.h"
#include "shipped.h"

/* In elements. A brief size above MOST_BRIEF takes one kind of input. Sizes above LARGE_ELEMENTS take fewer kinds.
 * Sizes up to SMALL_ELEMENTS also try other ways to call; this is large enough for dispatch to pick tensor cores. */
enum {
    MOST_BRIEF = 4096,
    LARGE_ELEMENTS = 16384,
    SMALL_ELEMENTS = 32768,
    POISON = 0xFF,
    OTHER_POISON = 0x5A
};

/* A size beyond the limit often shows mistakes that no other size shows, and a single input may miss them by
 * chance. */
enum { LEAST_INPUTS_BEYOND = 2 };

/* In bytes and operations. LAUNCH_COST is the fixed cost of a launch; with it, parts of the default bundle take
 * about equally long. MOST_COST caps the cost of one launch, so that sums do not overflow. */
enum { LAUNCH_COST = 1 << 11 };
#define MOST_COST (UINT64_C(1) << 40)

typedef struct runner {
    device *device;
    const manifest *manifest;
    const kiln_kernel *kernel;
    kiln_launch_function dispatch; /* the family's function; null: not in this program */
    const run_options *options;
    const family_row *row; /* null: no reference */
    problem problem;
    run_result *result;
    bool on_one_multiprocessor;
    bool has_varied;        /* other ways to call were tried */
    const char *only_input; /* the only kind that this size takes; null: any */
    size_t next_telling;    /* the next input for a large brief size; its elements differ */
    size_t next_input;      /* the next input for a size that takes only some */
    size_t share;           /* inputs that each size takes, so that all are taken; 0: not required */
    size_t
        next_small_input; /* the next of the inputs not meant for large sizes: a large size takes one of them */
    bool is_lost;         /* the context takes no more work */
    bool has_refused,
        has_refused_whole; /* calls that break a rule were tried; also at a size where no array is empty */
    uint64_t *weight;      /* not null: nothing runs, and the cost of what would run is added here */
} runner;

static void conclude(run_result *result, run_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void conclude(run_result *result, run_verdict verdict, const char *format, ...)
{
    va_list list;
    result->verdict = verdict;
    va_start(list, format);
    vsnprintf(result->detail, sizeof result->detail, format, list);
    va_end(list);
}

/* ---- one case --------------------------------------------------------------------------------------------------- */

typedef struct one_case {
    const input_pattern *pattern;
    bool is_empty, is_compared;
    const char *how; /* for messages */
} one_case;

static bool fail_case(runner *r, const one_case *c, const char *what)
{
    char sizes[SIZES_BYTES];
    problem_describe(&r->problem, sizes, sizeof sizes);
    conclude(r->result, RUN_WRONG, "%s%s, input \"%s\"%s%s, seed %llu:\n      %s", sizes,
             r->on_one_multiprocessor ? ", a grid for one multiprocessor" : "", c->pattern->name,
             c->how[0] ? ", " : "", c->how, (unsigned long long)r->options->seed, what);
    return false;
}

static bool execute_case(runner *r, const one_case *c, const execution *e, outcome *o)
{
    char error[2048];
    execute_status status = execute(r->device, &r->problem, e, c->is_empty, o, error, sizeof error);
    r->result->launches += !c->is_empty;
    if (status == EXECUTE_OK)
        return true;
    if (status == EXECUTE_LACKS) {
        conclude(r->result, RUN_SKIPPED, "%s", error);
        return false;
    }
    r->is_lost = status == EXECUTE_LOST;
    return fail_case(r, c, error);
}

static bool compare_case(runner *r, const one_case *c, const outcome *o)
{
    char message[2048] = "";
    comparison found = {0};
    if (!c->is_compared || c->is_empty)
        return true;
    compare_outcome(&r->problem, o, &found, message, sizeof message);
    r->result->elements += found.elements;
    r->result->has_bounds = r->result->has_bounds || found.has_bounds;
    if (found.worst_ratio > r->result->worst_ratio)
        r->result->worst_ratio = found.worst_ratio;
    if (found.wrong == 0)
        return true;
    char what[2400];
    snprintf(what, sizeof what, "%llu of %llu elements are wrong; the first:\n      %s",
             (unsigned long long)found.wrong, (unsigned long long)found.elements, message);
    return fail_case(r, c, what);
}

/* Executes in a way that must give the same bytes as `first`, or what the reference expects. */
static bool execute_again(runner *r, one_case c, const execution *e, const char *how, const outcome *first)
{
    char message[512];
    outcome o;
    c.how = how;
    bool fine = execute_case(r, &c, e, &o) && compare_case(r, &c, &o);
    if (fine && !c.is_empty && !compare_outcomes(&r->problem, first, &o, message, sizeof message))
        fine = fail_case(r, &c, message);
    outcome_free(&o);
    return fine;
}

/* Checks that the kernel picked by the family's function has this variant's value of every parameter that the
 * caller names. */
static bool check_pick(runner *r, const one_case *c, const kiln_kernel *picked)
{
    const manifest_variant *v = r->problem.variant,
                           *ran = picked ? manifest_find_variant(r->manifest, picked->id) : v;
    char what[512];
    for (size_t i = 0; i < v->param_count; i++) {
        if (!v->params[i].is_contract || (ran && strcmp(ran->params[i].value, v->params[i].value) == 0))
            continue;
        snprintf(what, sizeof what, "asked for %s=%s, the family's function launched %s", v->params[i].name,
                 v->params[i].value, picked->id);
        return fail_case(r, c, what);
    }
    return true;
}

/* Compares by the bounds of the variant that ran. */
static bool compare_picked(runner *r, const one_case *c, const kiln_kernel *picked, const outcome *o)
{
    const manifest_variant *asked = r->problem.variant,
                           *ran = picked ? manifest_find_variant(r->manifest, picked->id) : asked;
    char mistake[MISTAKE_BYTES];
    bool fine = true;
    if (ran && ran != asked && c->is_compared) {
        r->problem.variant = ran;
        fine = reference_expect(r->row, &r->problem, c->pattern, mistake) || fail_case(r, c, mistake);
    }
    fine = fine && compare_case(r, c, o);
    r->problem.variant = asked;
    return fine;
}

/* Calls through dispatch, which may pick another kernel that rounds differently: then only the reference can
 * judge. */
static bool run_dispatch(runner *r, one_case c, const outcome *first)
{
    const execution e = {.launch = r->dispatch, .kernel = r->kernel, .poison = POISON, .without_empty = true};
    char message[512], how[512];
    outcome o;
    c.how = "through the family's function";
    bool fine = execute_case(r, &c, &e, &o);
    const kiln_kernel *picked = fine && !c.is_empty ? launch_record_kernel(r->device) : NULL;
    if (picked && picked != r->kernel) {
        snprintf(how, sizeof how, "through the family's function, which launched %s", picked->id);
        c.how = how;
    }
    fine = fine && check_pick(r, &c, picked) && compare_picked(r, &c, picked, &o);
    if (fine && picked == r->kernel && !compare_outcomes(&r->problem, first, &o, message, sizeof message))
        fine = fail_case(r, &c, message);
    outcome_free(&o);
    return fine;
}

static bool has_optional(const problem *p)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        if (p->args[i].about->direction == DIRECTION_OPTIONAL_OUT)
            return true;
    }
    return false;
}

/* Tries ways to call that must not change the results, with the first pattern of each size that does not take
 * long. */
static bool run_variations(runner *r, const one_case *c, bool is_compared, const outcome *first)
{
    one_case dispatched = *c;
    dispatched.is_compared = is_compared;
    execution e = {
        .launch = r->kernel->launch, .kernel = r->kernel, .poison = POISON, .is_least_aligned = true};
    if (!execute_again(r, *c, &e, "pointers of the least alignment", first))
        return false;
    e.is_least_aligned = false;
    e.without_optional = true;
    if (has_optional(&r->problem) && !execute_again(r, *c, &e, "optional outputs null", first))
        return false;
    return !r->dispatch || run_dispatch(r, dispatched, first);
}

/* Returns whether the reference states the output for this input. */
static bool has_expectation(const runner *r, const input_pattern *pattern)
{
    return r->row && (!(pattern->flags & PATTERN_NONFINITE) || r->row->expects_nonfinite);
}

static bool has_empty_array(const problem *p)
{
    for (size_t i = 0; i < p->arg_count; i++)
        if (manifest_is_pointer(p->args[i].about) && p->args[i].bytes == 0)
            return true;
    return false;
}

/* Sizes come in pairs, and inputs repeat with their own period. The Thue-Morse sequence has no period, so that no
 * size or input always gets the same order. */
static block_order second_order(uint64_t number)
{
    return __builtin_popcountll(number) % 2 ? BLOCKS_REVERSE : BLOCKS_SHUFFLE;
}

typedef enum runs { ONCE, TWICE, IN_ALL_WAYS } runs;

/* The second run starts from other bytes or uninitialised memory, and with thread blocks in another order if the
 * device can choose: it shows elements that were not written, and results that depend on chance. Pointers to empty
 * arrays are null. */
static bool run_case(runner *r, const input_pattern *pattern, bool is_empty, runs how_often)
{
    char mistake[MISTAKE_BYTES];
    one_case c = {.pattern = pattern, .is_empty = is_empty, .how = ""};
    const bool is_compared = has_expectation(r, pattern);
    c.is_compared = is_compared;
    random_stream s = random_open(r->options->seed, r->problem.variant->family);
    s = random_fork(random_fork(s, problem_elements(&r->problem)), (uint64_t)pattern->number);
    problem_allocate(&r->problem);
    if (!reference_make(r->row, &r->problem, pattern, s, mistake) ||
        (c.is_compared && !is_empty && !reference_expect(r->row, &r->problem, pattern, mistake)))
        return fail_case(r, &c, mistake);
    execution e = {.launch = r->kernel->launch, .kernel = r->kernel, .poison = POISON};
    outcome first;
    r->result->cases++;
    bool fine = execute_case(r, &c, &e, &first) && compare_case(r, &c, &first);
    if (fine && how_often >= TWICE) {
        e.poison = OTHER_POISON;
        e.is_unpoisoned = r->device->is_emulated;
        e.order = second_order(r->result->cases);
        e.without_empty = true;
        c.is_compared = false;
        const char *how = has_empty_array(&r->problem) && !is_empty
                              ? "second run, arrays without elements null"
                              : "second run";
        fine = execute_again(r, c, &e, how, &first);
    }
    if (fine && how_often == IN_ALL_WAYS)
        fine = run_variations(r, &c, is_compared, &first);
    outcome_free(&first);
    return fine;
}

/* ---- the cost of a case -------------------------------------------------------------------------------------------- */

/* Returns the manifest's cost of a launch: bytes and operations. Without a stated cost, the bytes of its buffers. */
static uint64_t launch_cost(const problem *p)
{
    const manifest_variant *v = p->variant;
    const formula *const parts[] = {v->bytes_read, v->bytes_written, v->elements};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t cost;
        if (parts[i] && problem_evaluate(p, parts[i], &cost, NULL, 0))
            sum += cost < MOST_COST ? cost : MOST_COST;
    }
    for (size_t i = 0; sum == 0 && i < p->arg_count; i++)
        sum += p->args[i].bytes;
    return sum;
}

/* Adds the cost of two runs and three other ways to call. */
static void weigh_case(runner *r, bool is_empty, runs how_often)
{
    static const uint64_t launches_by[] = {[ONCE] = 1, [TWICE] = 2, [IN_ALL_WAYS] = 5};
    const uint64_t launches = launches_by[how_often];
    r->result->cases++;
    *r->weight += launches * (LAUNCH_COST + (is_empty ? 0 : launch_cost(&r->problem)));
}

/* ---- all cases --------------------------------------------------------------------------------------------------- */

/* Chooses the inputs for problems of this size; an empty problem has one. Large sizes take the inputs marked for
 * them, and one of the others in turn. */
static size_t choose_inputs(runner *r, bool is_empty, const input_pattern *chosen[MOST_INPUTS])
{
    const input_pattern *patterns = family_patterns(r->row);
    const bool are_few = problem_elements(&r->problem) > LARGE_ELEMENTS && !r->options->limits.is_full;
    size_t count = 0, others = 0, seen = 0;
    for (const input_pattern *p = patterns; p->name; p++)
        others += !(p->flags & PATTERN_LARGE);
    const char *only = r->options->input ? r->options->input : r->only_input;
    for (const input_pattern *p = patterns; p->name && count < (is_empty ? 1 : MOST_INPUTS); p++)
        if (only ? strcmp(p->name, only) == 0
                 : !are_few || (p->flags & PATTERN_LARGE) || seen++ == r->next_small_input % others)
            chosen[count++] = p;
    r->next_small_input += are_few;
    return count;
}

static bool has_input(const runner *r, const char *name)
{
    const input_pattern *p = family_patterns(r->row);
    while (p->name && strcmp(p->name, name) != 0)
        p++;
    return p->name;
}

/* Returns the first input from `at` on, cyclically, that has an expectation; `at` if there is none. */
static size_t next_expected(const runner *r, const input_pattern *const *inputs, size_t count, size_t at)
{
    for (size_t i = 0; i < count; i++) {
        if (has_expectation(r, inputs[(at + i) % count]))
            return (at + i) % count;
    }
    return at;
}

/* Returns the first input's number, which differs between variants and devices: an input that one misses at some
 * size, another tries. Multiples of the golden ratio keep devices apart. */
static size_t first_input(const runner *r)
{
    const random_stream s = random_open(0, r->problem.variant->id);
    const uint32_t share = (uint32_t)random_bits(s, 0) + r->device->loader.device.sm * UINT32_C(0x9e3779b9);
    return (size_t)((uint64_t)share * MOST_INPUTS >> 32);
}

/* Returns whether to try other ways to call: where that is cheap, and at one size in any case. */
static bool tries_variations(runner *r)
{
    const bool is_small = problem_elements(&r->problem) <= SMALL_ELEMENTS || r->options->limits.is_full;
    if (r->on_one_multiprocessor || (r->has_varied && !is_small))
        return false;
    r->has_varied = true;
    return true;
}

/* Takes the next inputs in turn. If the elements of each are all equal, which hides wrong indices, also takes the
 * next input whose elements differ. While nothing has been compared, the first input must have an expectation. */
static size_t take_inputs(runner *r, const input_pattern *const *inputs, size_t count, size_t wanted,
                          const input_pattern *taken[MOST_INPUTS])
{
    const bool is_first = r->result->elements == 0;
    size_t at = wanted == count ? 0
                : is_first      ? next_expected(r, inputs, count, r->next_input)
                                : r->next_input;
    unsigned flags = 0;
    for (size_t i = 0; i < wanted; i++) {
        taken[i] = inputs[at++ % count];
        flags |= taken[i]->flags;
    }
    r->next_input = wanted == count ? r->next_input + wanted : at;
    for (size_t i = 0; i < count - wanted && !(flags & PATTERN_RANDOM); i++) {
        taken[wanted] = inputs[at++ % count];
        flags |= taken[wanted]->flags;
        wanted += (flags & PATTERN_RANDOM) != 0;
    }
    return wanted;
}

/* Takes the next input whose elements differ, or any if there is none. */
static size_t take_telling(runner *r, const input_pattern *const *inputs, size_t count,
                           const input_pattern *taken[MOST_INPUTS])
{
    taken[0] = NULL;
    for (size_t i = 0; i < count && !(taken[0] && taken[0]->flags & PATTERN_RANDOM); i++)
        taken[0] = inputs[r->next_telling++ % count];
    return count > 0;
}

static bool run_size(runner *r, bool is_brief, void (*progress)(const char *, uint64_t))
{
    bool is_empty = problem_measure(&r->problem, NULL, NULL, 0) == PROBLEM_EMPTY;
    const input_pattern *inputs[MOST_INPUTS + 1], *taken[MOST_INPUTS + 1];
    size_t count = choose_inputs(r, is_empty, inputs);
    const uint64_t asked = r->options->inputs > r->share ? r->options->inputs : r->share;
    const bool is_beyond = problem_elements(&r->problem) > r->options->limits.max_elements;
    const uint64_t least = is_beyond ? LEAST_INPUTS_BEYOND : 1;
    const uint64_t wanted = r->on_one_multiprocessor ? 1 : asked > least ? asked : least;
    const size_t kept = r->next_input,
                 most = is_brief && problem_elements(&r->problem) > MOST_BRIEF && !r->options->limits.is_full
                            ? take_telling(r, inputs, count, taken)
                            : take_inputs(r, inputs, count, wanted < count ? (size_t)wanted : count, taken);
    const bool has_variations = !is_brief && tries_variations(r);
    if (is_empty)
        r->next_input = kept;
    for (size_t i = 0; i < most; i++) {
        const runs how_often = is_brief && r->row ? ONCE : i == 0 && has_variations ? IN_ALL_WAYS : TWICE;
        if (r->weight) {
            weigh_case(r, is_empty, how_often);
            continue;
        }
        if (progress)
            progress(r->problem.variant->id, r->result->cases);
        if (!run_case(r, taken[i], is_empty, how_often))
            return false;
    }
    return true;
}

static void note_ranges(runner *r)
{
    const bool is_first = r->result->sizes++ == 0;
    for (size_t i = 0; i < r->problem.arg_count; i++) {
        const argument *a = &r->problem.args[i];
        value_range *range = &r->result->ranges[i];
        if (is_first || number_is_less(a->about->type, a->integer, range->least))
            range->least = a->integer;
        if (is_first || number_is_less(a->about->type, range->most, a->integer))
            range->most = a->integer;
    }
}

static void take_most(void *to, uint64_t bound)
{
    uint64_t *most = to;
    *most = *most > bound ? *most : bound;
}

static void note_limits(runner *r)
{
    for (size_t i = 0; i < r->problem.arg_count; i++)
        if (problem_is_size(&r->problem.args[i]))
            problem_note_bounds(&r->problem, &r->problem.args[i], take_most, &r->result->limits[i]);
}

static void note_largest(runner *r)
{
    const uint64_t elements = problem_elements(&r->problem);
    if (elements <= r->result->largest_elements)
        return;
    r->result->largest_elements = elements;
    problem_describe(&r->problem, r->result->largest, sizeof r->result->largest);
}

/* Tries calls that must be refused: at the smallest size that launches, and at the smallest where no pointer may
 * be null. */
static bool check_refusals(runner *r)
{
    const bool is_whole = !has_empty_array(&r->problem);
    if (r->weight || r->has_refused_whole || (r->has_refused && !is_whole))
        return true;
    r->has_refused = true;
    r->has_refused_whole = is_whole;
    r->result->refusals +=
        run_refusals(r->device, &r->problem, r->kernel, r->result->detail, sizeof r->result->detail);
    if (r->result->detail[0] == '\0')
        return true;
    r->result->verdict = RUN_WRONG;
    return false;
}

/* The result of a search for sizes. */
typedef struct sizes_found {
    uint64_t launching;   /* sizes that were not empty */
    bool is_over_limit;   /* a size that was not empty had too many elements */
    const char *obstacle; /* why the last omitted size was omitted */
    char not_tried[512];  /* see size_plan */
} sizes_found;

static size_t count_launching(const size_plan *plan)
{
    size_t launching = 0;
    for (size_t i = 0; i < plan->count; i++) {
        size_plan_use(plan, i);
        launching += problem_measure(plan->problem, NULL, NULL, 0) == PROBLEM_LEGAL;
    }
    return launching;
}

/* Returns how many inputs each size takes: more if there are few sizes. */
static size_t share_of_inputs(const runner *r, size_t launching)
{
    size_t inputs = 0;
    for (const input_pattern *p = family_patterns(r->row); p->name; p++)
        inputs++;
    return r->options->may_add && launching ? (inputs + launching - 1) / launching : 0;
}

/* Runs the sizes within the limits. False: a result was wrong. */
static bool run_sizes_within(runner *r, const size_limits *limits, bool is_replacing,
                             void (*progress)(const char *, uint64_t), sizes_found *found)
{
    size_plan plan;
    bool fine = true;
    char mistake[MISTAKE_BYTES];
    r->next_input = r->next_small_input = first_input(r);
    size_plan_open(&plan, &r->problem, limits);
    plan.is_replacing = is_replacing;
    if (!reference_plan(r->row, &plan, r->options->seed, mistake)) {
        conclude(r->result, RUN_WRONG, "%s", mistake);
        fine = false;
    }
    size_plan_finish(&plan);
    const size_t launching = count_launching(&plan);
    const bool waits =
        launching == 0 && plan.is_over_limit; /* for a higher limit, under which some size is not empty */
    r->share = share_of_inputs(r, launching);
    for (size_t i = 0; fine && !waits && i < plan.count; i++) {
        size_plan_use(&plan, i);
        r->only_input = plan.rows[i].input;
        fine = run_size(r, plan.rows[i].is_brief, progress);
        bool launches = problem_measure(&r->problem, NULL, NULL, 0) == PROBLEM_LEGAL;
        found->launching += fine && launches;
        if (fine && launches) {
            note_ranges(r);
            note_largest(r);
            fine = check_refusals(r);
        }
    }
    found->is_over_limit = found->is_over_limit || plan.is_over_limit;
    if (plan.obstacle)
        found->obstacle = plan.obstacle;
    memcpy(found->not_tried, plan.not_tried, sizeof found->not_tried);
    if (!r->on_one_multiprocessor && found->launching) {
        r->result->excluded_pairs = plan.excluded_pairs;
        memcpy(r->result->excluded, plan.excluded, sizeof plan.excluded);
        note_limits(r);
    }
    size_plan_close(&plan);
    return fine;
}

/* Runs the sizes of plan_few as if on one multiprocessor. The launcher reads that number from the loader, and a
 * kernel accepts any grid. One input each: other sizes show dependence on inputs and on how the kernel is called. */
static bool run_few(runner *r, void (*progress)(const char *, uint64_t))
{
    kiln_device *facts = &r->device->loader.device;
    const uint32_t has = facts->multiprocessors;
    const family_row *row = r->row;
    size_limits limits = r->options->limits;
    sizes_found found = {0};
    if (!row || !row->plan_few)
        return true;
    family_row few = *row;
    few.plan = row->plan_few;
    limits.max_elements = UINT64_MAX;
    r->row = &few;
    r->on_one_multiprocessor = true;
    facts->multiprocessors = 1;
    bool fine = run_sizes_within(r, &limits, false, progress, &found);
    facts->multiprocessors = has;
    r->on_one_multiprocessor = false;
    r->row = row;
    return fine;
}

/* Doublings of the limit for kernels whose tiles exceed it: they take their smallest sizes. For a size that the
 * user asks for, the search goes further. */
enum { MOST_DOUBLINGS = 6, MOST_DOUBLINGS_ASKED = 14 };

static bool fail_sizes(runner *r, const sizes_found *found)
{
    char where[MOST_ASKED * 64];
    asked_describe(&r->options->limits.only, where, sizeof where);
    if (!where[0])
        conclude(r->result, RUN_WRONG, "no sizes were found that its rules allow");
    else if (found->is_over_limit)
        conclude(r->result, RUN_SKIPPED,
                 "too large: where %s all buffers together have more than %llu elements, %d times "
                 "--max-elements, which raises that limit",
                 where, (unsigned long long)r->options->limits.max_elements << MOST_DOUBLINGS_ASKED,
                 1 << MOST_DOUBLINGS_ASKED);
    else if (!found->obstacle || r->result->cases)
        conclude(r->result, RUN_SKIPPED, "where %s it has nothing to do", where);
    else
        conclude(r->result, RUN_SKIPPED, "not applicable where %s: %s", where, found->obstacle);
    return false;
}

static bool run_sizes(runner *r, void (*progress)(const char *, uint64_t))
{
    const asked_sizes *only = &r->options->limits.only;
    size_limits limits = r->options->limits;
    sizes_found found = {0};
    bool fine = true;
    for (size_t i = 0; i < only->count; i++) {
        const argument *a = problem_find(&r->problem, only->items[i].name);
        if (a && problem_is_size(a))
            continue;
        conclude(r->result, RUN_SKIPPED, "it has no size %s", only->items[i].name);
        return false;
    }
    if (r->options->input && !has_input(r, r->options->input)) {
        conclude(r->result, RUN_SKIPPED, "it has no input \"%s\"", r->options->input);
        return false;
    }
    for (int i = 0; fine && i <= (only->count ? MOST_DOUBLINGS_ASKED : MOST_DOUBLINGS); i++) {
        fine = run_sizes_within(r, &limits, false, progress, &found);
        if (fine && only->count && found.launching == 0)
            fine = run_sizes_within(r, &limits, true, progress, &found);
        if (found.launching) {
            fine = fine && run_few(r, progress);
            if (fine)
                snprintf(r->result->detail, sizeof r->result->detail, "%s", found.not_tried);
            return fine;
        }
        if (only->count && r->result->cases) /* all sizes were empty */
            break;
        limits.max_elements *= 2;
    }
    return fine && fail_sizes(r, &found);
}

/* ---- checks before a variant runs --------------------------------------------------------------------------------- */

/* Returns whether this program can make every argument: a known type, and a shape for every pointer. */
static bool check_arguments(const manifest_variant *v, run_result *result)
{
    if (v->why_not_launched) {
        conclude(result, RUN_SKIPPED, "%s", v->why_not_launched);
        return false;
    }
    if (v->struct_bytes > STRUCT_BYTES) {
        conclude(result, RUN_WRONG, "its argument struct has %llu bytes; at most %d are supported",
                 (unsigned long long)v->struct_bytes, STRUCT_BYTES);
        return false;
    }
    for (size_t i = 0; i < v->arg_count; i++) {
        const manifest_arg *a = &v->args[i];
        const bool is_null =
            !manifest_is_pointer(a) && strcmp(a->type_name, "address") == 0; /* its only possible value */
        if (is_null)
            continue;
        if (a->type == ELEMENT_NONE || (manifest_is_pointer(a) && a->dimension_count == 0)) {
            conclude(result, RUN_SKIPPED, "argument %s: %s", a->name,
                     a->type == ELEMENT_NONE ? "a type that this program cannot make" : "no shape is stated");
            return false;
        }
    }
    return true;
}

static bool check_reference(const manifest_variant *v, const family_row *row, run_result *result)
{
    char name[64];
    const char *names = row && row->args ? row->args : "";
    while (*names) {
        size_t length = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        if (!manifest_find_arg(v, name)) {
            char place[256] = "";
            if (row->file)
                snprintf(place, sizeof place, "%s:%d: ", row->file, row->line);
            conclude(result, RUN_WRONG,
                     "%sthe reference of %s asks for an argument \"%s\"; the manifest has none", place,
                     row->name, name);
            return false;
        }
        names += length + (names[length] == ' ');
    }
    return true;
}

static bool check_identity(const manifest_variant *v, const kiln_kernel *k, run_result *result)
{
    if (strcmp(k->id, v->id) == 0 && strcmp(k->entry, v->entry) == 0 && k->key == v->key &&
        memcmp(k->block, v->block, sizeof v->block) == 0)
        return true;
    conclude(result, RUN_WRONG, "the bundle's kernel %s (entry %s) is not what the manifest describes", k->id,
             k->entry);
    return false;
}

static bool is_usable(device *d, const problem *p, const kiln_kernel *kernel, run_result *result)
{
    const uint32_t has = d->loader.device.max_shared_bytes;
    uint64_t needs; /* all sizes are 0, the minimum; sizes that need too much are left out later */
    if (problem_evaluate(p, p->variant->shared_bytes, &needs, NULL, 0) &&
        needs + p->variant->static_shared_bytes > has) {
        conclude(result, RUN_SKIPPED,
                 "it needs %llu bytes of shared memory per thread block, the device has %u",
                 (unsigned long long)(needs + p->variant->static_shared_bytes), has);
        return false;
    }
    if (kiln_usable(&d->loader, kernel))
        return true;
    kiln_error none = {.status = KILN_ERROR_NO_IMAGE, .subject = kernel->id, .detail = ""};
    result->verdict = RUN_SKIPPED;
    kiln_describe_error(&d->loader, &none, kernel, result->detail, sizeof result->detail);
    return false;
}

/* Checks that a variant's cubin runs on the device if its PTX does. */
static bool check_shipped(const device *d, const kiln_kernel *kernel, const manifest *shipped,
                          run_result *result)
{
    kiln_module images;
    kiln_loader product = d->loader;
    product.device.ptx_only = 0;
    if (!shipped || (shipped_images(shipped, kernel->id, &images) && kiln_select(&product.device, &images)))
        return true;
    kiln_kernel ships = *kernel;
    ships.module = &images;
    const kiln_error none = {.status = KILN_ERROR_NO_IMAGE, .subject = kernel->id, .detail = ""};
    char why[1024];
    kiln_describe_error(&product, &none, &ships, why, sizeof why);
    conclude(result, RUN_WRONG, "ships no image for this device: %s", why);
    return false;
}

/* Returns whether the kernel is the manifest's, and this program and this device can run it; if not, the result
 * says why. A null row: there is no reference. */
static bool may_begin(device *d, const problem *p, const kiln_kernel *kernel, const family_row *row,
                      const manifest *shipped, run_result *result)
{
    return check_identity(p->variant, kernel, result) && check_arguments(p->variant, result) &&
           is_usable(d, p, kernel, result) && check_shipped(d, kernel, shipped, result) &&
           check_reference(p->variant, row, result);
}

/* ---- the variant ------------------------------------------------------------------------------------------------- */

/* Finds the family's function by name: it has external linkage, and the program exports its symbols. Its
 * parameters are the launcher's, except the struct's type. */
static kiln_launch_function find_dispatch(const char *name)
{
    void *program = dlopen(NULL, RTLD_NOW), *symbol = program ? dlsym(program, name) : NULL;
    kiln_launch_function function = NULL;
    if (program)
        dlclose(program);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* Rounds to the digits that results have, so that a ratio read from them is equal. */
static double round_ratio(double ratio)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", ratio);
    return strtod(text, NULL);
}

uint64_t run_weigh(device *d, const manifest *m, const manifest_variant *v, const kiln_kernel *kernel,
                   const run_options *options)
{
    run_result result = {.verdict = RUN_OK};
    uint64_t weight = 0;
    runner r = {.device = d,
                .manifest = m,
                .kernel = kernel,
                .options = options,
                .result = &result,
                .row = family_find(v->family),
                .weight = &weight};
    if (problem_open(&r.problem, v, &d->loader.device, result.detail, sizeof result.detail) &&
        may_begin(d, &r.problem, kernel, r.row, options->shipped, &result))
        run_sizes(&r, NULL);
    problem_close(&r.problem);
    return weight;
}

bool run_variant(device *d, const manifest *m, const manifest_variant *v, const kiln_kernel *kernel,
                 const run_options *options, void (*progress)(const char *variant, uint64_t cases),
                 run_result *result)
{
    runner r = {.device = d,
                .manifest = m,
                .kernel = kernel,
                .options = options,
                .result = result,
                .row = family_find(v->family),
                .dispatch = find_dispatch(v->family_function)};
    double start = seconds_now();
    *result = (run_result){.has_run = true, .verdict = r.row ? RUN_OK : RUN_EXECUTED};
    if (!problem_open(&r.problem, v, &d->loader.device, result->detail, sizeof result->detail))
        result->verdict = RUN_SKIPPED;
    else if (may_begin(d, &r.problem, kernel, r.row, options->shipped, result))
        run_sizes(&r, progress);
    if (result->verdict == RUN_OK &&
        result->elements == 0) /* the kernel writes nothing, or expect states nothing */
        conclude(result, RUN_EXECUTED, "its reference compared nothing");
    problem_close(&r.problem);
    result->seconds = seconds_now() - start;
    result->worst_ratio = round_ratio(result->worst_ratio);
    return !r.is_lost;
}

bool run_recover(device *d, run_result *result)
{
    char error[512];
    if (device_reopen(d, error, sizeof error) == DEVICE_OK)
        return true;
    size_t used = strlen(result->detail);
    snprintf(result->detail + used, sizeof result->detail - used, "\n      and the device is lost: %s",
             error);
    return false;
}
