/* Implements kiln/reference.h and calls references. */
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "families/inputs.h"
#include "fill.h"

typedef enum call_phase { PHASE_PLAN, PHASE_MAKE, PHASE_EXPECT } call_phase;

struct reference_call {
    const family_row *row;
    problem *problem;
    call_phase phase;
    jmp_buf back;
    char *mistake;
};

/* ---- mistakes --------------------------------------------------------------------------------------------------- */

_Noreturn static void fail(const reference_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

_Noreturn static void fail(const reference_call *call, const char *format, ...)
{
    static const char *const names[] = {"plan", "make", "expect"};
    const family_row *row = call->row;
    va_list list;
    int used = row->file ? snprintf(call->mistake, MISTAKE_BYTES, "%s:%d: ", row->file, row->line) : 0;
    used = used < MISTAKE_BYTES ? used : MISTAKE_BYTES - 1;
    used += snprintf(call->mistake + used, (size_t)(MISTAKE_BYTES - used),
                     "%s of the reference of %s: ", names[call->phase], row->name);
    used = used < MISTAKE_BYTES ? used : MISTAKE_BYTES - 1;
    va_start(list, format);
    vsnprintf(call->mistake + used, (size_t)(MISTAKE_BYTES - used), format, list);
    va_end(list);
    longjmp(((reference_call *)call)->back, 1);
}

/* "a, x, y, n" */
static void list_arguments(const problem *p, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < p->arg_count && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", p->args[i].about->name);
}

static argument *get_argument(const problem *p, const char *name)
{
    char names[256];
    argument *a = problem_find(p->call->problem, name);
    if (a)
        return a;
    list_arguments(p, names, sizeof names);
    fail(p->call, "the kernel has no argument '%s'; it has %s", name, names);
}

/* ---- arguments and parameters of a problem ---------------------------------------------------------------------- */

bool kiln_has_argument(const kiln_problem *p, const char *name)
{
    return problem_find(p->call->problem, name) != NULL;
}

kiln_argument *kiln_get_argument(kiln_problem *p, const char *name)
{
    return get_argument(p, name);
}

uint64_t kiln_get_integer(const kiln_problem *p, const char *name)
{
    const argument *a = get_argument(p, name);
    if (!problem_is_size(a))
        fail(p->call, "'%s' is no integer scalar", name);
    return a->integer;
}

static argument *get_real(const problem *p, const char *name)
{
    argument *a = get_argument(p, name);
    if (manifest_is_pointer(a->about) || !element_is_float(a->about->type))
        fail(p->call, "'%s' is no scalar of a float type", name);
    return a;
}

double kiln_get_real(const kiln_problem *p, const char *name)
{
    return get_real(p, name)->real;
}

void kiln_set_real(kiln_problem *p, const char *name, double value)
{
    argument *a = get_real(p, name);
    if (p->call->phase != PHASE_MAKE)
        fail(p->call, "'%s' is set outside of make", name);
    a->real = number_decode(a->about->type, number_encode(a->about->type, value));
}

const char *kiln_get_param(const kiln_problem *p, const char *name)
{
    const char *value = manifest_param_value(p->variant, name);
    if (!value)
        fail(p->call, "%s has no parameter '%s'", p->variant->id, name);
    return value;
}

bool kiln_param_is(const kiln_problem *p, const char *name, const char *value)
{
    return strcmp(kiln_get_param(p, name), value) == 0;
}

uint64_t kiln_get_param_number(const kiln_problem *p, const char *name)
{
    const char *value = kiln_get_param(p, name);
    uint64_t number = 0;
    if (!*value || value[strspn(value, "0123456789")])
        fail(p->call, "the parameter '%s' is '%s', no number", name, value);
    for (; *value; value++)
        number = 10 * number + (uint64_t)(*value - '0');
    return number;
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

const char *kiln_get_type(const kiln_argument *a)
{
    return element_name(a->about->type);
}

static void need_buffer(const argument *a)
{
    if (!manifest_is_pointer(a->about))
        fail(a->call, "'%s' is a scalar, not a buffer", a->about->name);
}

static void need_element(const argument *a, uint64_t index)
{
    need_buffer(a);
    if (index >= a->count)
        fail(a->call, "'%s' has %llu elements, there is no [%llu]", a->about->name,
             (unsigned long long)a->count, (unsigned long long)index);
}

uint64_t kiln_get_count(const kiln_argument *a)
{
    need_buffer(a);
    return a->count;
}

size_t kiln_get_dimensions(const kiln_argument *a)
{
    need_buffer(a);
    return a->about->dimension_count;
}

uint64_t kiln_get_extent(const kiln_argument *a, size_t dimension)
{
    need_buffer(a);
    if (dimension >= a->about->dimension_count)
        fail(a->call, "'%s' has %zu dimensions, there is no dimension %zu", a->about->name,
             a->about->dimension_count, dimension);
    return a->extent[dimension];
}

static bool is_input(const argument *a)
{
    return manifest_is_input(a->about);
}

uint64_t kiln_get_bits(const kiln_argument *a, uint64_t index)
{
    need_element(a, index);
    if (!is_input(a))
        fail(a->call, "'%s' is no input: nothing is there to be read", a->about->name);
    return element_bits(a->about->type, a->host, index);
}

double kiln_get_value(const kiln_argument *a, uint64_t index)
{
    return number_decode(a->about->type, kiln_get_bits(a, index));
}

void kiln_set_bits(kiln_argument *a, uint64_t index, uint64_t bits)
{
    need_element(a, index);
    if (a->call->phase != PHASE_MAKE || !is_input(a))
        fail(a->call, is_input(a) ? "'%s' is set outside of make" : "'%s' is no input, which make could fill",
             a->about->name);
    element_set_bits(a->about->type, a->host, index, bits);
}

void kiln_set_value(kiln_argument *a, uint64_t index, double value)
{
    kiln_set_bits(a, index, number_encode(a->about->type, value));
}

static element_type float_type(const argument *a)
{
    if (!element_is_float(a->about->type))
        fail(a->call, "'%s' is of type %s, no float type", a->about->name, element_name(a->about->type));
    return a->about->type;
}

double kiln_get_unit(const kiln_argument *a)
{
    return number_unit(float_type(a));
}

double kiln_get_smallest(const kiln_argument *a)
{
    return number_smallest(float_type(a));
}

double kiln_get_largest(const kiln_argument *a)
{
    return number_largest(float_type(a));
}

double kiln_round(const kiln_argument *a, double value)
{
    const element_type type = float_type(a);
    return number_decode(type, number_encode(type, value));
}

/* ---- expectations ----------------------------------------------------------------------------------------------- */

static void begin_expectation(argument *a, expectation kind)
{
    const reference_call *call = a->call;
    if (call->phase != PHASE_EXPECT)
        fail(call, "'%s' gets an expectation outside of expect", a->about->name);
    if (!manifest_is_output(a->about))
        fail(call, "'%s' is no output", a->about->name);
    if (a->is_said && a->expectation != kind)
        fail(call, "'%s' has expectations of two kinds", a->about->name);
    if (a->is_said)
        return;
    a->is_said = pool_allocate(&call->problem->memory, (size_t)a->count + 1);
    if (kind == EXPECT_VALUES)
        expect_values(call->problem, a);
    else if (kind == EXPECT_BITS)
        expect_bits(call->problem, a);
}

void kiln_expect_value(kiln_argument *a, uint64_t index, double value, double bound)
{
    need_element(a, index);
    begin_expectation(a, EXPECT_VALUES);
    if (!(bound >= 0 && isfinite(bound)))
        fail(a->call, "the bound of %s[%llu] is %g", a->about->name, (unsigned long long)index, bound);
    a->expected_value[index] = value;
    a->bound[index] = bound;
    a->is_said[index] = 1;
}

void kiln_expect_bits(kiln_argument *a, uint64_t index, uint64_t bits)
{
    need_element(a, index);
    begin_expectation(a, EXPECT_BITS);
    element_set_bits(a->about->type, a->expected_bits, index, bits);
    a->is_said[index] = 1;
}

void kiln_expect_nothing(kiln_argument *a)
{
    need_buffer(a);
    begin_expectation(a, EXPECT_NOTHING);
    memset(a->is_said, 1, (size_t)a->count);
}

static void check_expectations(const reference_call *call)
{
    for (size_t i = 0; i < call->problem->arg_count; i++) {
        const argument *a = &call->problem->args[i];
        if (!manifest_is_output(a->about))
            continue;
        for (uint64_t index = 0; index < a->count; index++) {
            if (!a->is_said || !a->is_said[index])
                fail(call,
                     "no expectation for %s[%llu]; kiln_expect_nothing is for outputs that may be anything",
                     a->about->name, (unsigned long long)index);
        }
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

void kiln_fill(kiln_argument *a, kiln_fill_kind kind, kiln_random s)
{
    need_buffer(a);
    if (a->call->phase != PHASE_MAKE || !is_input(a))
        fail(a->call,
             is_input(a) ? "'%s' is filled outside of make" : "'%s' is no input, which make could fill",
             a->about->name);
    if (kind > KILN_FILL_NONFINITE)
        fail(a->call, "%u is no kiln_fill_kind", (unsigned)kind);
    if (element_is_float(a->about->type))
        inputs_fill(a, (input_kind)kind, s);
    else
        inputs_fill_bytes(a, s);
}

void kiln_fill_all(kiln_problem *p, const kiln_pattern *pattern, kiln_random s)
{
    if (p->call->phase != PHASE_MAKE)
        fail(p->call, "inputs are filled outside of make");
    if (pattern->number < 0 || pattern->number > KILN_FILL_NONFINITE)
        fail(p->call, "the pattern \"%s\" has the number %d, which is no kiln_fill_kind", pattern->name,
             pattern->number);
    generic_make(p, pattern, s);
}

kiln_random kiln_random_fork(kiln_random s, uint64_t number)
{
    return random_fork(s, number);
}

uint64_t kiln_random_bits(kiln_random s, uint64_t index)
{
    return random_bits(s, index);
}

uint64_t kiln_random_below(kiln_random s, uint64_t index, uint64_t limit)
{
    return limit ? random_below(s, index, limit) : 0;
}

double kiln_random_uniform(kiln_random s, uint64_t index)
{
    return random_uniform(s, index);
}

double kiln_random_normal(kiln_random s, uint64_t index)
{
    return random_normal(s, index);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

void kiln_set_size(kiln_size_plan *plan, const char *name, uint64_t value)
{
    argument *a = get_argument(plan->problem, name);
    if (!problem_is_size(a))
        fail(plan->problem->call, "'%s' is no integer scalar", name);
    a->integer = value;
}

/* Notes the scalars. They keep the values that the caller set. */
static void add(size_plan *plan, bool are_default)
{
    uint64_t kept[MAX_ARGS];
    for (size_t i = 0; i < plan->problem->arg_count; i++)
        kept[i] = plan->problem->args[i].integer;
    if (are_default)
        size_plan_fill(plan, plan->seed);
    else
        size_plan_add(plan);
    for (size_t i = 0; i < plan->problem->arg_count; i++)
        plan->problem->args[i].integer = kept[i];
}

void kiln_add_sizes(kiln_size_plan *plan)
{
    add(plan, false);
}

void kiln_add_default_sizes(kiln_size_plan *plan)
{
    add(plan, true);
}

const kiln_problem *kiln_get_problem(const kiln_size_plan *plan)
{
    return plan->problem;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* Clears the call's state; a reference may be user code, so nothing is carried over. */
static void begin_call(reference_call *call)
{
    call->problem->call = call;
    for (size_t i = 0; i < call->problem->arg_count; i++)
        call->problem->args[i].call = call;
}

bool reference_make(const family_row *row, problem *p, const input_pattern *pattern, random_stream s,
                    char mistake[MISTAKE_BYTES])
{
    reference_call call = {.row = row, .problem = p, .phase = PHASE_MAKE, .mistake = mistake};
    p->made_for = p->variant;
    if (!row || !row->make) {
        generic_make(p, pattern, s);
        return true;
    }
    if (setjmp(call.back))
        return false;
    begin_call(&call);
    row->make(p, pattern, s);
    return true;
}

/* Calls expect. Kiln's own families write expectations directly, and may leave an output out. */
bool reference_expect(const family_row *row, problem *p, const input_pattern *pattern,
                      char mistake[MISTAKE_BYTES])
{
    reference_call call = {.row = row, .problem = p, .phase = PHASE_EXPECT, .mistake = mistake};
    if (setjmp(call.back))
        return false;
    begin_call(&call);
    for (size_t i = 0; i < p->arg_count; i++)
        p->args[i].is_said = NULL;
    row->expect(p, pattern);
    if (row->file)
        check_expectations(&call);
    return true;
}

bool reference_plan(const family_row *row, size_plan *plan, uint64_t seed, char mistake[MISTAKE_BYTES])
{
    reference_call call = {.row = row, .problem = plan->problem, .phase = PHASE_PLAN, .mistake = mistake};
    plan->seed = seed;
    if (!row || !row->plan) {
        size_plan_fill(plan, seed);
        return true;
    }
    if (setjmp(call.back))
        return false;
    begin_call(&call);
    for (size_t i = 0; row->file && i < plan->problem->arg_count; i++)
        plan->problem->args[i].integer = 0;
    row->plan(plan);
    return true;
}
