/* The condition that an array has elements: a pointer to an empty array may be null. Derived from the array's shape,
 * factor by factor, so that a product above 64 bits still counts as nonzero. */
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "support/words.h"

static const expression *join(arena *a, bool both, const expression *x, const expression *y);
static const expression *when_nonzero(arena *a, const expression *e, bool wanted);

/* ---- small conditions -------------------------------------------------------------------------------------------- */

static const expression *node(arena *a, const expression *from, operation o, const expression *left,
                              const expression *right)
{
    expression *e = arena_alloc(a, sizeof *e);
    e->operation = o;
    e->source = from->source;
    e->operands[0] = left;
    e->operands[1] = right;
    return e;
}

static bool is_same(arena *a, const expression *x, const expression *y)
{
    text of_x = text_new(a), of_y = text_new(a);
    expression_print(&of_x, x);
    expression_print(&of_y, y);
    return strcmp(of_x.data, of_y.data) == 0;
}

/* The operation with the negated result; itself if there is none. */
static operation opposite(operation o)
{
    static const operation pairs[][2] = {
        {OPERATION_LESS, OPERATION_GREATER_EQUAL},
        {OPERATION_GREATER, OPERATION_LESS_EQUAL},
        {OPERATION_EQUAL, OPERATION_NOT_EQUAL},
        {OPERATION_IS_WORD, OPERATION_IS_NOT_WORD},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int k = 0; k < 2; k++)
            if (o == pairs[i][k])
                return pairs[i][1 - k];
    return o;
}

/* Condition under which e is `wanted`, with ! only where it cannot be avoided. */
static const expression *when(arena *a, const expression *e, bool wanted)
{
    uint64_t zero = 1;
    if (!expression_is_truth(e))
        return when_nonzero(a, e, wanted);
    if (e->operation == OPERATION_NOT)
        return when(a, e->operands[0], !wanted);
    const bool is_equality = e->operation == OPERATION_EQUAL || e->operation == OPERATION_NOT_EQUAL;
    if (is_equality && expression_is_constant(e->operands[1], &zero) && zero == 0)
        return when_nonzero(a, e->operands[0], (e->operation == OPERATION_NOT_EQUAL) == wanted);
    if (e->operation == OPERATION_AND || e->operation == OPERATION_OR)
        return join(a, (e->operation == OPERATION_AND) == wanted, when(a, e->operands[0], wanted),
                    when(a, e->operands[1], wanted));
    if (wanted)
        return e;
    expression *other = arena_copy(a, e, sizeof *e);
    other->operation = opposite(e->operation);
    return other->operation == e->operation ? node(a, e, OPERATION_NOT, e, NULL) : other;
}

/* Joins two conditions by && or ||, simplified: compilers warn of n == 0 || n != 0. */
static const expression *join(arena *a, bool both, const expression *x, const expression *y)
{
    uint64_t value;
    if (expression_is_constant(x, &value))
        return (value != 0) == both ? y : x;
    if (expression_is_constant(y, &value))
        return (value != 0) == both ? x : y;
    if (is_same(a, x, y))
        return x;
    if (is_same(a, x, when(a, y, false)))
        return expression_literal(a, x, !both);
    return node(a, x, both ? OPERATION_AND : OPERATION_OR, x, y);
}

/* ---- a number that is 0 ------------------------------------------------------------------------------------------ */

/* Whether e can never be 0. For a parameter that may be 0, only the variant knows. */
static bool is_never_zero(const expression *e)
{
    if (e->operation != OPERATION_NAME || e->kind != NAME_PARAM)
        return false;
    const kiln_param *param = &e->source->family->params[e->index];
    if (param->type != KILN_PARAM_INT)
        return false;
    bool has_zero = !param->words && param->min == 0;
    for (const char *w = param->words; w && *w; w += strcspn(w, " "), w += *w == ' ')
        has_zero = has_zero || strtoul(w, NULL, 10) == 0;
    return !has_zero;
}

static const expression *when_chosen(arena *a, const expression *e, bool wanted)
{
    const expression *yes = when_nonzero(a, e->operands[1], wanted);
    const expression *no = when_nonzero(a, e->operands[2], wanted);
    uint64_t value;
    if (!expression_is_constant(yes, &value) && !expression_is_constant(no, &value))
        return node(a, e, wanted ? OPERATION_NOT_EQUAL : OPERATION_EQUAL, e, expression_literal(a, e, 0));
    return join(a, false, join(a, true, when(a, e->operands[0], true), yes),
                join(a, true, when(a, e->operands[0], false), no));
}

/* Condition under which a number is not 0; wanted false: under which it is. */
static const expression *when_nonzero(arena *a, const expression *e, bool wanted)
{
    uint64_t value;
    if (expression_is_constant(e, &value))
        return expression_literal(a, e, (value != 0) == wanted);
    if (is_never_zero(e))
        return expression_literal(a, e, wanted);
    if (expression_is_truth(e))
        return when(a, e, wanted);
    switch (e->operation) {
    case OPERATION_CEIL_DIV:
        return when_nonzero(a, e->operands[0], wanted);
    case OPERATION_DIVIDE:
        return node(a, e, wanted ? OPERATION_GREATER_EQUAL : OPERATION_LESS, e->operands[0], e->operands[1]);
    case OPERATION_MULTIPLY:
    case OPERATION_MIN:
    case OPERATION_ADD:
    case OPERATION_MAX: {
        const bool all = e->operation == OPERATION_MULTIPLY || e->operation == OPERATION_MIN;
        return join(a, all == wanted, when_nonzero(a, e->operands[0], wanted),
                    when_nonzero(a, e->operands[1], wanted));
    }
    case OPERATION_SELECT:
        return when_chosen(a, e, wanted);
    default:
        return node(a, e, wanted ? OPERATION_NOT_EQUAL : OPERATION_EQUAL, e, expression_literal(a, e, 0));
    }
}

/* ---- an array ----------------------------------------------------------------------------------------------------- */

/* `condition` without the parts that `known` implies; both may be joined by &&. */
static const expression *without(arena *a, const expression *condition, const expression *known)
{
    if (condition->operation == OPERATION_AND)
        return join(a, true, without(a, condition->operands[0], known),
                    without(a, condition->operands[1], known));
    if (known->operation == OPERATION_AND)
        return without(a, without(a, condition, known->operands[0]), known->operands[1]);
    return is_same(a, condition, known) ? expression_literal(a, condition, 1) : condition;
}

const expression *expression_has_elements(arena *a, const kiln_family *family, const kiln_arg *arg)
{
    const expression *const *dimensions;
    const size_t count = expression_parse_list(a, family, arg->shape, &dimensions);
    const expression *has_elements = when_nonzero(a, dimensions[0], true);
    for (size_t i = 1; i < count; i++)
        has_elements = join(a, true, has_elements, when_nonzero(a, dimensions[i], true));
    if (!family->empty)
        return has_elements;
    return without(a, has_elements, when(a, expression_parse(a, family, family->empty), false));
}
