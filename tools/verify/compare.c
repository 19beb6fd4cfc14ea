/* Compares a kernel's output with its family's reference, element by element. */
#include "compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages --------------------------------------------------------------------------------------------------- */

typedef struct message {
    char *text;
    size_t bytes, used;
} message;

static void say(message *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(message *m, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int written = vsnprintf(m->text + m->used, m->bytes - m->used, format, list);
    va_end(list);
    if (written > 0)
        m->used = m->used + (size_t)written < m->bytes ? m->used + (size_t)written : m->bytes - 1;
}

static void say_element(message *m, element_type type, uint64_t bits)
{
    if (element_is_float(type))
        say(m, "%.9g (0x%0*" PRIx64 ")", number_decode(type, bits), 2 * (int)element_bytes(type), bits);
    else
        say(m, "0x%0*" PRIx64, 2 * (int)element_bytes(type), bits);
}

/* Prints the input elements at the same relative position. In families that process their data in order, these are
 * the elements that the output was computed from. */
static void say_surroundings(message *m, const argument *in, uint64_t index, uint64_t count)
{
    enum { AROUND = 3 };
    uint64_t centre = count ? (uint64_t)((double)index / (double)count * (double)in->count) : 0;
    uint64_t first = centre > AROUND ? centre - AROUND : 0;
    say(m, "\n      input %s[%" PRIu64 "...]:", in->about->name, first);
    for (uint64_t i = first; i < in->count && i <= centre + AROUND; i++) {
        uint64_t bits = element_bits(in->about->type, in->host, i);
        if (element_is_float(in->about->type))
            say(m, " %.9g", number_decode(in->about->type, bits));
        else
            say(m, " 0x%0*" PRIx64, 2 * (int)element_bytes(in->about->type), bits);
    }
}

static void describe(const problem *p, const argument *out, uint64_t index, const void *got, message *m)
{
    element_type type = out->about->type;
    say(m, "%s[%" PRIu64 "] is ", out->about->name, index);
    say_element(m, type, element_bits(type, got, index));
    say(m, "; expected ");
    if (out->expectation == EXPECT_BITS)
        say_element(m, type, element_bits(type, out->expected_bits, index));
    else
        say(m, "%.17g within %.3g", out->expected_value[index], out->bound[index]);
    for (size_t i = 0; i < p->arg_count; i++) {
        const argument *a = &p->args[i];
        if (manifest_is_input(a->about))
            say_surroundings(m, a, index, out->count);
    }
}

/* ---- comparing -------------------------------------------------------------------------------------------------- */

/* Compares bits, except that all NaNs are equal: no contract says which NaN a kernel returns. */
static bool same_bits(element_type type, uint64_t a, uint64_t b)
{
    return a == b ||
           (element_is_float(type) && isnan(number_decode(type, a)) && isnan(number_decode(type, b)));
}

/* Returns the distance to a finite number; an infinity counts as the smallest number that rounds to it. */
static double error_of(element_type type, double value, double expected)
{
    if (!isinf(value))
        return fabs(value - expected);
    double least = number_largest(type) * (1 + number_unit(type));
    return fmax(least - copysign(1, value) * expected, 0);
}

/* Returns the error divided by its bound: 0 when exact, above 1 when wrong. */
static double ratio_of(const argument *out, uint64_t index, const void *got)
{
    element_type type = out->about->type;
    if (out->expectation == EXPECT_BITS)
        return same_bits(type, element_bits(type, got, index), element_bits(type, out->expected_bits, index))
                   ? 0
                   : INFINITY;
    double value = element_get(type, got, index), expected = out->expected_value[index];
    if (value == expected || (isnan(value) && isnan(expected)))
        return 0;
    if (isinf(out->bound[index])) /* a NaN or either infinity */
        return isfinite(value) ? INFINITY : 0;
    if (isnan(value) || isnan(expected) || isinf(expected))
        return INFINITY;
    double error = error_of(type, value, expected);
    return out->bound[index] > 0 ? error / out->bound[index] : INFINITY;
}

/* Returns the norm over finite numbers; the others have been compared one by one. */
static double norm_of_errors(const argument *out, const void *got)
{
    double sum = 0;
    for (uint64_t index = 0; index < out->count; index++) {
        double value = element_get(out->about->type, got, index), expected = out->expected_value[index];
        if (isfinite(value) && isfinite(expected))
            sum += (value - expected) * (value - expected);
    }
    return sqrt(sum);
}

static void compare_norm(const argument *out, const void *got, comparison *c, message *m)
{
    double norm = norm_of_errors(out, got), ratio = norm / out->norm_bound;
    if (ratio > c->worst_ratio)
        c->worst_ratio = ratio;
    if (ratio <= 1 || c->wrong)
        return;
    c->wrong = 1;
    say(m, "%s: the errors' norm is %.3g, expected at most %.3g", out->about->name, norm, out->norm_bound);
}

void compare_outcome(const problem *p, const outcome *o, comparison *c, char *text, size_t bytes)
{
    message m = {text, bytes, 0};
    for (size_t i = 0; i < p->arg_count; i++) {
        const argument *out = &p->args[i];
        if (!o->outputs[i] || out->expectation == EXPECT_NOTHING)
            continue;
        for (uint64_t index = 0; index < out->count; index++) {
            double ratio = ratio_of(out, index, o->outputs[i]);
            c->elements++;
            c->has_bounds = c->has_bounds || (out->expectation == EXPECT_VALUES && out->bound[index] > 0);
            if (!(ratio <= 1) && c->wrong++ == 0)
                describe(p, out, index, o->outputs[i], &m);
            if (ratio > c->worst_ratio)
                c->worst_ratio = ratio;
        }
        if (out->norm_bound > 0)
            compare_norm(out, o->outputs[i], c, &m);
    }
}

bool compare_outcomes(const problem *p, const outcome *a, const outcome *b, char *text, size_t bytes)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        size_t at = 0;
        if (!a->outputs[i] || !b->outputs[i])
            continue;
        while (at < p->args[i].bytes && a->outputs[i][at] == b->outputs[i][at])
            at++;
        if (at == p->args[i].bytes)
            continue;
        snprintf(text, bytes,
                 "two runs differ: %s, byte %zu, 0x%02x and 0x%02x (not written, or not deterministic)",
                 p->args[i].about->name, at, a->outputs[i][at], b->outputs[i][at]);
        return false;
    }
    return true;
}
