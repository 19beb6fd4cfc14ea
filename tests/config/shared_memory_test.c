/* Families whose shared memory depends on the call state it twice: C code gives the maximum and the minimum, and an expression
 * gives the bytes of one call. For every variant of tests/full.yaml the expression stays within both, and reaches both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "expression/expression.h"
#include "family/family.h"
#include <kiln/author/families.h>

#include "plan/config.h"

/* A variant whose integer arguments are also parameters, so that the expressions can be evaluated for a call. Only arguments of
 * every variant count. */
typedef struct call {
    variant variant;
    kiln_family family;
    kiln_param params[KILN_MAX_PARAMS + 1];
    size_t first, count;          /* range of the arguments among the parameters */
    size_t args[KILN_MAX_PARAMS]; /* index in the family's arguments */
} call;

static void call_of(call *c, const variant *v)
{
    *c = (call){.variant = *v, .family = *v->family};
    c->variant.family = &c->family;
    c->family.params = c->params;
    c->first = family_param_count(v->family);
    memcpy(c->params, v->family->params, c->first * sizeof c->params[0]);
    for (const kiln_arg *arg = v->family->args; arg->name; arg++) {
        if (arg->kind != KILN_ARG_VALUE || arg->type[0] != 'u' || arg->when)
            continue;
        assert_true(c->first + c->count < KILN_MAX_PARAMS);
        c->args[c->count] = (size_t)(arg - v->family->args);
        c->params[c->first + c->count++] = (kiln_param){.name = arg->name, .type = KILN_PARAM_INT};
    }
}

static const expression *parse(arena *a, const call *c, const char *written)
{
    return expression_parse(a, &c->family, written);
}

/* Parses the rules over integers; skips rules about alignment and floats. */
static size_t parse_rules(arena *a, const call *c, const expression **rules)
{
    size_t count = 0;
    for (const kiln_rule *rule = c->family.rules; rule && rule->condition; rule++) {
        const expression *e = parse(a, c, rule->condition);
        assert_false(expression_uses(e, NAME_DEVICE));
        if (!expression_uses(e, NAME_ARG))
            rules[count++] = e;
    }
    return count;
}

static bool is_legal(const call *c, const expression *const *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!expression_value(rules[i], &c->variant))
            return false;
    return true;
}

/* All small values, then multiples of 16, then powers of two. */
static uint32_t next_value(uint32_t value)
{
    return value < 1024 ? value + 1 : value < 1 << 17 ? value + 16 : value << 1;
}

static void check(arena *a, const variant *v)
{
    enum { MOST_RULES = 32 };
    call c;
    const expression *rules[MOST_RULES];
    call_of(&c, v);
    const expression *bytes = parse(a, &c, c.family.shared_bytes);
    const expression *of_call = expression_parse(a, v->family, v->family->shared_bytes);
    const size_t rule_count = parse_rules(a, &c, rules);
    uint64_t least = UINT64_MAX, most = 0;
    size_t counted = 0;
    for (size_t i = c.first; i < c.first + c.count; i++)
        c.variant.values[i].number = 1;
    for (size_t i = c.first; i < c.first + c.count; i++) {
        if (!expression_counts_with(of_call, c.args[i - c.first]))
            continue;
        counted++;
        for (uint32_t value = 0, *number = &c.variant.values[i].number;; value = next_value(value)) {
            *number = value;
            if (is_legal(&c, rules, rule_count)) {
                const uint64_t asked = expression_value(bytes, &c.variant);
                least = asked < least ? asked : least;
                most = asked > most ? asked : most;
            }
            if (value == UINT32_C(1) << 31)
                break;
        }
    }
    assert_int_equal(counted, 1); /* several arguments must vary together */
    if (least != v->shape.least_shared_bytes || most != v->shape.shared_bytes)
        fail_msg("%s: calls ask for %llu to %llu bytes; the shape says %u to %u", v->id,
                 (unsigned long long)least, (unsigned long long)most, (unsigned)v->shape.least_shared_bytes,
                 (unsigned)v->shape.shared_bytes);
}

static void test_shape_and_text_agree(void **state)
{
    static const kiln_family *const families[] = {KILN_FAMILIES, NULL};
    (void)state;
    arena *a = arena_new();
    diagnostics d = {.out = stderr};
    const plan *p = config_read(a, families, FULL, NULL, &d);
    size_t checked = 0;
    assert_non_null(p);
    for (size_t i = 0; i < p->variant_count; i++) {
        if (!p->variants[i]->family->shared_bytes)
            continue;
        check(a, p->variants[i]);
        checked++;
    }
    print_message("%zu variants\n", checked);
    assert_true(checked > 0);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shape_and_text_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
