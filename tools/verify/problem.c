/* A launch of a variant, seen from the host. */
#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool problem_open(problem *p, const manifest_variant *v, const kiln_device *device, char *error,
                  size_t error_bytes)
{
    *p = (problem){.variant = v, .device = device, .arg_count = v->arg_count};
    if (v->arg_count > MAX_ARGS) {
        snprintf(error, error_bytes, "%zu arguments; at most %d are supported", v->arg_count, MAX_ARGS);
        return false;
    }
    for (size_t i = 0; i < v->arg_count; i++)
        p->args[i].about = &v->args[i];
    return true;
}

void problem_close(problem *p)
{
    pool_free(&p->memory);
}

argument *problem_find(problem *p, const char *name)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        if (strcmp(p->args[i].about->name, name) == 0)
            return &p->args[i];
    }
    return NULL;
}

uint64_t problem_integer(problem *p, const char *name)
{
    const argument *a = problem_find(p, name);
    return a ? a->integer : 0;
}

uint64_t problem_parameter(const problem *p, const char *name)
{
    const char *text = manifest_param_value(p->variant, name);
    return text ? strtoull(text, NULL, 10) : 0;
}

bool problem_has_parameter(const problem *p, const char *name, const char *value)
{
    const char *text = manifest_param_value(p->variant, name);
    return text && strcmp(text, value) == 0;
}

bool problem_is_size(const argument *a)
{
    return manifest_is_integer(a->about);
}

/* ---- expressions ------------------------------------------------------------------------------------------------ */

static bool is_name(const char *candidate, const char *name, size_t length)
{
    return strlen(candidate) == length && memcmp(candidate, name, length) == 0;
}

static bool find_device_fact(const kiln_device *device, const char *name, size_t length, uint64_t *value)
{
    const struct {
        const char *name;
        uint32_t value;
    } facts[] = {{"sm", device->sm},
                 {"multiprocessors", device->multiprocessors},
                 {"max_shared_bytes", device->max_shared_bytes},
                 {"multiprocessor_shared_bytes", device->multiprocessor_shared_bytes},
                 {"multiprocessor_threads", device->multiprocessor_threads}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (is_name(facts[i].name, name, length)) {
            *value = facts[i].value;
            return true;
        }
    }
    return false;
}

/* Reads a parameter's value: a number if it is spelled like one, a truth value, or a word. */
static void read_value(const char *text, formula_value *value)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->number = text[0] == 't';
        return;
    }
    if (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0') {
        for (; *text; text++)
            value->number = value->number * 10 + (uint64_t)(*text - '0');
        return;
    }
    value->word = text;
    value->word_length = strlen(text);
}

static bool look_up(const void *context, const char *name, size_t length, formula_value *value)
{
    const problem *p = context;
    for (size_t i = 0; i < p->arg_count; i++) {
        if (is_name(p->args[i].about->name, name, length)) {
            const argument *a = &p->args[i];
            value->number = a->integer; /* for a pointer the address, which rules test for alignment */
            value->is_float = !manifest_is_pointer(a->about) && element_is_float(a->about->type);
            value->real = a->real;
            value->is_null = a->is_null;
            return true;
        }
    }
    for (size_t i = 0; i < p->variant->param_count; i++) {
        if (is_name(p->variant->params[i].name, name, length)) {
            read_value(p->variant->params[i].value, value);
            return true;
        }
    }
    return find_device_fact(p->device, name, length, &value->number);
}

bool problem_evaluate(const problem *p, const formula *f, uint64_t *value, char *error, size_t error_bytes)
{
    return formula_evaluate(f, look_up, p, value, error, error_bytes);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static bool measure_buffer(const problem *p, argument *a, char *error, size_t error_bytes)
{
    size_t element = element_bytes(a->about->type);
    a->count = a->about->dimension_count && !a->is_null ? 1 : 0;
    for (size_t i = 0; i < a->about->dimension_count; i++) {
        uint64_t extent;
        if (!problem_evaluate(p, a->about->shape[i], &extent, error, error_bytes))
            return false;
        if (extent != 0 && a->count > SIZE_MAX / 16 / extent) {
            snprintf(error, error_bytes, "%s is too large", a->about->name);
            return false;
        }
        a->count *= extent;
        a->extent[i] = extent;
    }
    a->bytes = (size_t)a->count * element;
    return true;
}

/* Returns PROBLEM_LEGAL if no rule is broken. */
static problem_status try_rules(const problem *p, const manifest_rule **broken, char *error,
                                size_t error_bytes)
{
    const manifest_variant *v = p->variant;
    uint64_t holds;
    for (size_t i = 0; i < v->rule_count; i++) {
        if (!problem_evaluate(p, v->rules[i].condition, &holds, error, error_bytes))
            return PROBLEM_BROKEN;
        if (!holds) {
            if (broken)
                *broken = &v->rules[i];
            return PROBLEM_ILLEGAL;
        }
    }
    return PROBLEM_LEGAL;
}

problem_status problem_measure(problem *p, const manifest_rule **broken, char *error, size_t error_bytes)
{
    const manifest_variant *v = p->variant;
    uint64_t holds;
    problem_status status = try_rules(p, broken, error, error_bytes);
    if (status != PROBLEM_LEGAL)
        return status;
    for (size_t i = 0; i < p->arg_count; i++) {
        if (manifest_is_pointer(p->args[i].about) && !measure_buffer(p, &p->args[i], error, error_bytes))
            return PROBLEM_BROKEN;
    }
    if (!v->empty)
        return PROBLEM_LEGAL;
    if (!problem_evaluate(p, v->empty, &holds, error, error_bytes))
        return PROBLEM_BROKEN;
    return holds ? PROBLEM_EMPTY : PROBLEM_LEGAL;
}

/* Returns whether the type can hold the value; a signed argument may be negative. */
static bool fits_type(const argument *a)
{
    const element_type type = a->about->type;
    const double value = element_is_signed(type) ? (double)(int64_t)a->integer : (double)a->integer;
    return number_decode(type, number_encode(type, value)) == value;
}

bool problem_fits_types(const problem *p)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        const argument *a = &p->args[i];
        if (problem_is_size(a) && !fits_type(a))
            return false;
    }
    return true;
}

void problem_note_bounds(const problem *p, const argument *a, void (*note)(void *to, uint64_t bound),
                         void *to)
{
    for (size_t i = 0; i < p->variant->rule_count; i++)
        formula_note_bounds(p->variant->rules[i].condition, a->about->name, look_up, p, note, to);
}

/* ---- addresses -------------------------------------------------------------------------------------------------- */

bool problem_has_alignment_rule(const problem *p, const argument *a)
{
    for (size_t i = 0; i < p->variant->rule_count; i++) {
        if (formula_aligns(p->variant->rules[i].condition, a->about->name))
            return true;
    }
    return false;
}

/* Lowers one pointer's alignment after another, each with the earlier ones at their minimum, so that all minima
 * together satisfy the rules. */
void problem_least_alignments(problem *p, uint64_t alignments[MAX_ARGS])
{
    problem_forget_addresses(p);
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        alignments[i] = a->about->alignment;
        if (!manifest_is_pointer(a->about) || !problem_has_alignment_rule(p, a))
            continue;
        a->integer = alignments[i];
        while (try_rules(p, NULL, NULL, 0) != PROBLEM_LEGAL && alignments[i] < MOST_ALIGNMENT)
            a->integer = alignments[i] *= 2;
    }
    problem_forget_addresses(p);
}

void problem_forget_addresses(problem *p)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        if (manifest_is_pointer(p->args[i].about))
            p->args[i].integer = 0;
    }
}

uint64_t problem_elements(const problem *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->arg_count; i++) {
        const manifest_arg *about = p->args[i].about;
        sum += manifest_is_pointer(about) && about->direction != DIRECTION_SCRATCH ? p->args[i].count : 0;
    }
    return sum;
}

void problem_allocate(problem *p)
{
    pool_free(&p->memory);
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        if (!manifest_is_pointer(a->about))
            continue;
        a->host = pool_allocate(&p->memory, a->bytes);
        a->expectation = EXPECT_NOTHING;
        a->expected_bits = NULL;
        a->expected_value = a->bound = NULL;
        a->is_said = a->is_gap = NULL;
    }
}

void expect_bits(problem *p, argument *a)
{
    a->expectation = EXPECT_BITS;
    a->expected_bits = pool_allocate(&p->memory, a->bytes);
}

void expect_values(problem *p, argument *a)
{
    a->expectation = EXPECT_VALUES;
    a->expected_value = pool_allocate(&p->memory, (size_t)a->count * sizeof(double));
    a->bound = pool_allocate(&p->memory, (size_t)a->count * sizeof(double));
}

void expect_gaps(problem *p, argument *a)
{
    a->is_gap = pool_allocate(&p->memory, (size_t)a->count);
    memset(a->is_gap, 1, (size_t)a->count);
}

void expect_last_bit(argument *a, uint64_t i, double value)
{
    const double last = number_decode(a->about->type, number_encode(a->about->type, value));
    const double expected = a->expected_value[i];
    if (last != expected && !(isnan(last) && isnan(expected)) && !(fabs(last - expected) <= a->bound[i]))
        return;
    a->expected_value[i] = last;
    a->bound[i] = 0;
}

void problem_describe(const problem *p, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < p->arg_count; i++) {
        const argument *a = &p->args[i];
        const char *gap = used ? " " : "";
        int written = 0;
        if (problem_is_size(a))
            written = snprintf(text + used, bytes - used, "%s%s=%llu", gap, a->about->name,
                               (unsigned long long)a->integer);
        else if (a->about->direction == DIRECTION_OPTIONAL_IN)
            written = snprintf(text + used, bytes - used, "%s%s=%s", gap, a->about->name,
                               a->is_null ? "null" : "given");
        else if (!manifest_is_pointer(a->about))
            written = snprintf(text + used, bytes - used, "%s%s=%.9g", gap, a->about->name, a->real);
        if (used + (size_t)written >= bytes) { /* names are long, so a size is written whole or not at all */
            text[used] = '\0';
            return;
        }
        used += (size_t)written;
    }
}
