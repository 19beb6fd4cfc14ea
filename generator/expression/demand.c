/* Prints what a call lacks to meet a condition, in numbers. */
#include <string.h>

#include "node.h"

typedef struct asked {
    arena *arena;
    const char *verb;
    number_of_name *number;
    void *context;
} asked;

static uint64_t value_of(const asked *q, const expression *e)
{
    return expression_value_of_call(e, q->number, q->context);
}

static bool is_arg(const expression *e)
{
    return e->operation == OPERATION_NAME && e->kind == NAME_ARG;
}

/* "k at least 64", "n a multiple of 8": the left argument of a comparison, and the value on its right. */
static const char *comparison(const asked *q, const expression *e)
{
    static const char *const words[OPERATION_COUNT] = {
        [OPERATION_GREATER_EQUAL] = "at least", [OPERATION_GREATER] = "above",
        [OPERATION_LESS_EQUAL] = "at most",     [OPERATION_LESS] = "below",
        [OPERATION_EQUAL] = "equal to",         [OPERATION_NOT_EQUAL] = "other than",
        [OPERATION_ALIGNED] = "aligned to",     [OPERATION_REMAINDER] = "a multiple of"};
    uint64_t zero;
    const expression *left = e->operands[0];
    if (e->operation == OPERATION_EQUAL && left->operation == OPERATION_REMAINDER &&
        expression_is_constant(e->operands[1], &zero) && zero == 0)
        return comparison(q, left);
    if (!words[e->operation] || !is_arg(left))
        return NULL;
    return arena_format(q->arena, "%s%s%s %llu%s", left->name, q->verb, words[e->operation],
                        (unsigned long long)value_of(q, e->operands[1]),
                        e->operation == OPERATION_ALIGNED ? " bytes" : "");
}

/* For &&, the first operand that does not hold, since later ones may rely on it; for ||, the operands that use
 * arguments. */
static const char *demand(const asked *q, const expression *e)
{
    if (e->operation == OPERATION_AND)
        return demand(q, e->operands[value_of(q, e->operands[0]) != 0]);
    if (e->operation != OPERATION_OR)
        return comparison(q, e);
    text out = text_new(q->arena);
    for (int i = 0; i < 2; i++) {
        if (!expression_uses(e->operands[i], NAME_ARG))
            continue;
        const char *of_one = demand(q, e->operands[i]);
        if (!of_one)
            return NULL;
        text_printf(&out, "%s%s", out.length ? " or " : "", of_one);
    }
    return out.length ? out.data : NULL;
}

const char *expression_demand(arena *a, const expression *e, const char *verb, number_of_name *number,
                              void *context)
{
    return demand(&(asked){a, verb, number, context}, e);
}
