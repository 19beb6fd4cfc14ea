/* Verifies one variant: all sizes, all inputs, and what must be refused. */
#include "run.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "compare.h"
#include "families/families.h"

enum { LARGE_ELEMENTS = 16384, POISON = 0xFF, OTHER_POISON = 0x5A };

typedef struct runner {
    device *device;
    const manifest *manifest;
    const kiln_kernel *kernel;
    launch_function *dispatch; /* the family's function; null: not in this program */
    const run_options *options;
    const family_row *row; /* null: no reference */
    problem problem;
    run_result *result;
    bool on_one_multiprocessor;
    size_t turn;  /* of the inputs that the next size takes, where it does not take all */
    bool is_lost; /* the context takes no more work */
} runner;

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void conclude(runner *r, run_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void conclude(runner *r, run_verdict verdict, const char *format, ...)
{
    va_list list;
    r->result->verdict = verdict;
    va_start(list, format);
    vsnprintf(r->result->detail, sizeof r->result->detail, format, list);
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
    char sizes[256];
    problem_describe(&r->problem, sizes, sizeof sizes);
    conclude(r, RUN_WRONG, "%s%s, input \"%s\"%s%s, seed %llu:\n      %s", sizes,
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
        conclude(r, RUN_SKIPPED, "%s", error);
        return false;
    }
    r->is_lost = status == EXECUTE_LOST;
    return fail_case(r, c, error);
}

static bool compare_case(runner *r, const one_case *c, const outcome *o)
{
    char message[2048] = "";
    comparison found = {0, 0, 0};
    if (!c->is_compared || c->is_empty)
        return true;
    compare_outcome(&r->problem, o, &found, message, sizeof message);
    r->result->elements += found.elements;
    if (found.worst_ratio > r->result->worst_ratio)
        r->result->worst_ratio = found.worst_ratio;
    if (found.wrong == 0)
        return true;
    char what[2400];
    snprintf(what, sizeof what, "%llu of %llu elements are wrong; the first:\n      %s",
             (unsigned long long)found.wrong, (unsigned long long)found.elements, message);
    return fail_case(r, c, what);
}

/* Executes in a way that must give what `first` holds, byte by byte, or what the reference says. */
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

/* Whether an id, "family/param=value,...", has a parameter's value. */
static bool id_has(const char *id, const manifest_param *param)
{
    char wanted[128];
    int length = snprintf(wanted, sizeof wanted, "%s=%s", param->name, param->value);
    for (const char *at = strchr(id, '/'); at; at = strchr(at + 1, ',')) {
        if (strncmp(at + 1, wanted, (size_t)length) == 0 && (at[1 + length] == ',' || at[1 + length] == '\0'))
            return true;
    }
    return false;
}

/* The kernel that the family's function picked agrees with this variant in all that the caller names. */
static bool check_pick(runner *r, const one_case *c, const kiln_kernel *picked)
{
    const manifest_variant *v = r->problem.variant;
    char what[512];
    for (size_t i = 0; picked && i < v->param_count; i++) {
        if (!v->params[i].is_contract || id_has(picked->id, &v->params[i]))
            continue;
        snprintf(what, sizeof what, "asked for %s=%s, the family's function launched %s", v->params[i].name,
                 v->params[i].value, picked->id);
        return fail_case(r, c, what);
    }
    return true;
}

static const manifest_variant *find_variant(const manifest *m, const char *id)
{
    for (size_t i = 0; i < m->variant_count; i++) {
        if (strcmp(m->variants[i].id, id) == 0)
            return &m->variants[i];
    }
    return NULL;
}

/* By the bounds of the variant that ran. */
static bool compare_picked(runner *r, const one_case *c, const kiln_kernel *picked, const outcome *o)
{
    const manifest_variant *asked = r->problem.variant,
                           *ran = picked ? find_variant(r->manifest, picked->id) : asked;
    if (ran && ran != asked && c->is_compared) {
        r->problem.variant = ran;
        r->row->expect(&r->problem, c->pattern);
    }
    bool fine = compare_case(r, c, o);
    r->problem.variant = asked;
    return fine;
}

/* Another kernel than this may run, and round in its own way: then only the reference can judge. */
static bool run_dispatch(runner *r, one_case c, const outcome *first)
{
    const execution e = {.launch = r->dispatch, .kernel = r->kernel, .poison = POISON};
    char message[512];
    outcome o;
    c.how = "through the family's function";
    bool fine = execute_case(r, &c, &e, &o);
    const kiln_kernel *picked = fine && !c.is_empty ? launch_record_kernel(r->device) : NULL;
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

/* Ways to call that must not change the results, tried with the first pattern of every size. */
static bool run_variations(runner *r, const one_case *c, bool is_compared, const outcome *first)
{
    one_case dispatched = *c;
    dispatched.is_compared = is_compared;
    execution e = {.launch = r->kernel->launch, .kernel = r->kernel, .poison = POISON, .shift_elements = 1};
    if (!execute_again(r, *c, &e, "pointers of the least alignment", first))
        return false;
    e.shift_elements = 0;
    e.without_optional = true;
    if (has_optional(&r->problem) && !execute_again(r, *c, &e, "optional outputs null", first))
        return false;
    return !r->dispatch || run_dispatch(r, dispatched, first);
}

/* A second run starts from other bytes, or none, and its thread blocks from the last one where that can be asked for: so
 * it shows what was not written and what depends on chance. */
static bool run_case(runner *r, const input_pattern *pattern, bool is_empty, bool with_variations)
{
    one_case c = {.pattern = pattern, .is_empty = is_empty, .how = ""};
    bool is_compared = r->row && (!(pattern->flags & PATTERN_NONFINITE) || r->row->expects_nonfinite);
    c.is_compared = is_compared;
    random_stream s = random_open(r->options->seed, r->problem.variant->family);
    s = random_fork(random_fork(s, problem_elements(&r->problem)), (uint64_t)pattern->number);
    problem_allocate(&r->problem);
    (r->row ? r->row->make : generic_make)(&r->problem, pattern, s);
    if (c.is_compared && !is_empty)
        r->row->expect(&r->problem, pattern);
    execution e = {.launch = r->kernel->launch, .kernel = r->kernel, .poison = POISON};
    outcome first;
    r->result->cases++;
    bool fine = execute_case(r, &c, &e, &first) && compare_case(r, &c, &first);
    if (fine) {
        e.poison = OTHER_POISON;
        e.is_unpoisoned = e.is_reversed = r->device->is_emulated;
        c.is_compared = false;
        fine = execute_again(r, c, &e, "second run", &first);
    }
    if (fine && with_variations)
        fine = run_variations(r, &c, is_compared, &first);
    outcome_free(&first);
    return fine;
}

/* ---- all cases --------------------------------------------------------------------------------------------------- */

/* The inputs that are for problems of this size; a problem without work has one. */
static size_t choose_inputs(const runner *r, bool is_empty, const input_pattern *chosen[MOST_INPUTS])
{
    const input_pattern *patterns = r->row ? r->row->patterns : generic_patterns;
    bool is_large = problem_elements(&r->problem) > LARGE_ELEMENTS;
    size_t count = 0;
    for (const input_pattern *p = patterns; p->name && count < (is_empty ? 1 : MOST_INPUTS); p++)
        if (!is_large || r->options->limits.is_full || (p->flags & PATTERN_LARGE))
            chosen[count++] = p;
    return count;
}

static bool run_size(runner *r, void (*progress)(const char *, uint64_t))
{
    char error[256];
    bool is_empty = problem_measure(&r->problem, NULL, error, sizeof error) == PROBLEM_EMPTY;
    const input_pattern *inputs[MOST_INPUTS];
    size_t count = choose_inputs(r, is_empty, inputs);
    const uint64_t wanted = r->on_one_multiprocessor ? 1 : r->options->inputs;
    size_t taken = wanted < count ? (size_t)wanted : count;
    for (size_t i = 0; i < taken; i++) {
        if (progress)
            progress(r->problem.variant->id, r->result->cases);
        const bool with_variations = i == 0 && !r->on_one_multiprocessor;
        if (!run_case(r, inputs[(taken < count ? r->turn + i : i) % count], is_empty, with_variations))
            return false;
    }
    r->turn += is_empty ? 0 : taken;
    return true;
}

/* False: something was wrong. `launching`: the sizes that had work. */
static bool run_sizes_within(runner *r, const size_limits *limits, void (*progress)(const char *, uint64_t),
                             uint64_t *launching)
{
    size_plan plan;
    bool fine = true;
    char error[256];
    size_plan_open(&plan, &r->problem, limits);
    if (r->on_one_multiprocessor)
        r->row->plan_few(&plan);
    else if (r->row && r->row->plan)
        r->row->plan(&plan);
    else
        size_plan_fill(&plan, r->options->seed);
    size_plan_sort(&plan);
    for (size_t i = 0; fine && i < plan.count; i++) {
        size_plan_use(&plan, i);
        fine = run_size(r, progress);
        bool launches = problem_measure(&r->problem, NULL, error, sizeof error) == PROBLEM_LEGAL;
        if (fine && launches && (*launching)++ == 0) {
            r->result->refusals =
                run_refusals(r->device, &r->problem, r->kernel, r->result->detail, sizeof r->result->detail);
            fine = r->result->detail[0] == '\0';
            if (!fine)
                r->result->verdict = RUN_WRONG;
        }
    }
    size_plan_close(&plan);
    return fine;
}

/* The launcher takes the number of multiprocessors from the loader, and a kernel whatever grid it gets. One input each:
 * other sizes show what depends on inputs, and on how the kernel is called. */
static bool run_few(runner *r, void (*progress)(const char *, uint64_t), uint64_t *launching)
{
    kiln_device *facts = &r->device->loader.device;
    const uint32_t has = facts->multiprocessors;
    size_limits limits = r->options->limits;
    if (!r->row || !r->row->plan_few)
        return true;
    limits.max_elements = UINT64_MAX;
    r->on_one_multiprocessor = true;
    facts->multiprocessors = 1;
    bool fine = run_sizes_within(r, &limits, progress, launching);
    facts->multiprocessors = has;
    r->on_one_multiprocessor = false;
    return fine;
}

/* The tiles of some kernels are larger than the limit: those take the smallest sizes that they have. */
enum { MOST_DOUBLINGS = 6 };

static bool run_sizes(runner *r, void (*progress)(const char *, uint64_t))
{
    size_limits limits = r->options->limits;
    uint64_t launching = 0;
    bool fine = run_sizes_within(r, &limits, progress, &launching);
    for (int i = 0; fine && launching == 0 && i < MOST_DOUBLINGS; i++) {
        limits.max_elements *= 2;
        fine = run_sizes_within(r, &limits, progress, &launching);
    }
    fine = fine && run_few(r, progress, &launching);
    if (fine && launching == 0)
        conclude(r, RUN_WRONG, "no sizes were found that its rules allow%s%s",
                 r->options->limits.only.name[0] ? ", with that --size of " : "",
                 r->options->limits.only.name);
    return fine;
}

/* ---- before ------------------------------------------------------------------------------------------------------ */

/* Whether every argument is one that this program can make: a known type, and a shape for every pointer. */
static bool check_arguments(runner *r)
{
    const manifest_variant *v = r->problem.variant;
    if (v->why_not_launched) {
        conclude(r, RUN_SKIPPED, "%s", v->why_not_launched);
        return false;
    }
    if (v->struct_bytes > STRUCT_BYTES) {
        conclude(r, RUN_WRONG, "its argument struct has %llu bytes; at most %d are supported",
                 (unsigned long long)v->struct_bytes, STRUCT_BYTES);
        return false;
    }
    for (size_t i = 0; i < v->arg_count; i++) {
        const manifest_arg *a = &v->args[i];
        const bool is_null =
            !manifest_is_pointer(a) && strcmp(a->type_name, "address") == 0; /* all that it can be */
        if (is_null)
            continue;
        if (a->type == ELEMENT_NONE || (manifest_is_pointer(a) && a->dimension_count == 0)) {
            conclude(r, RUN_SKIPPED, "argument %s: %s", a->name,
                     a->type == ELEMENT_NONE ? "a type that this program cannot make" : "no shape is stated");
            return false;
        }
    }
    return true;
}

static bool check_reference(runner *r)
{
    char name[64];
    const char *names = r->row ? r->row->args : "";
    while (*names) {
        size_t length = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        if (!manifest_find_arg(r->problem.variant, name)) {
            conclude(r, RUN_WRONG, "the reference of %s asks for an argument \"%s\"; the manifest has none",
                     r->row->name, name);
            return false;
        }
        names += length + (names[length] == ' ');
    }
    return true;
}

static bool check_identity(runner *r)
{
    const manifest_variant *v = r->problem.variant;
    const kiln_kernel *k = r->kernel;
    if (strcmp(k->id, v->id) == 0 && strcmp(k->entry, v->entry) == 0 && k->key == v->key &&
        memcmp(k->block, v->block, sizeof v->block) == 0)
        return true;
    conclude(r, RUN_WRONG, "the bundle's kernel %s (entry %s) is not what the manifest describes", k->id,
             k->entry);
    return false;
}

static bool is_usable(runner *r)
{
    const uint32_t has = r->device->loader.device.max_shared_bytes;
    char error[256];
    uint64_t
        needs; /* of sizes that are all 0, the least there is; sizes that need too much are left out later */
    if (problem_evaluate(&r->problem, r->problem.variant->shared_bytes, &needs, error, sizeof error) &&
        needs > has) {
        conclude(r, RUN_SKIPPED, "it needs %llu bytes of shared memory per thread block, the device has %u",
                 (unsigned long long)needs, has);
        return false;
    }
    if (kiln_usable(&r->device->loader, r->kernel))
        return true;
    kiln_error none = {.status = KILN_ERROR_NO_IMAGE, .subject = r->kernel->id, .detail = ""};
    r->result->verdict = RUN_SKIPPED;
    kiln_describe_error(&r->device->loader, &none, r->kernel, r->result->detail, sizeof r->result->detail);
    return false;
}

/* The family's function has external linkage; the program exports its symbols so that its name finds it. Its parameters
 * are the launcher's, but for the struct's type. */
static launch_function *find_dispatch(const char *name)
{
    void *program = dlopen(NULL, RTLD_NOW), *symbol = program ? dlsym(program, name) : NULL;
    launch_function *function = NULL;
    if (program)
        dlclose(program);
    memcpy(&function, &symbol, sizeof function);
    return function;
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
    double start = now();
    *result = (run_result){.verdict = r.row ? RUN_OK : RUN_EXECUTED};
    if (!problem_open(&r.problem, v, &d->loader.device, result->detail, sizeof result->detail))
        result->verdict = RUN_SKIPPED;
    else if (check_identity(&r) && check_arguments(&r) && is_usable(&r) && check_reference(&r))
        run_sizes(&r, progress);
    problem_close(&r.problem);
    result->seconds = now() - start;
    char error[512];
    if (!r.is_lost || device_reopen(d, error, sizeof error) == DEVICE_OK)
        return true;
    size_t used = strlen(result->detail);
    snprintf(result->detail + used, sizeof result->detail - used, "\n      and the device is lost: %s",
             error);
    return false;
}
