/* Decides whether one condition implies another. */
#include <string.h>

#include "node.h"

static bool is_same(const expression *x, const expression *y)
{
    if (x == y)
        return true;
    if (x->operation != y->operation)
        return false;
    switch (x->operation) {
    case OPERATION_LITERAL:
        return x->value == y->value;
    case OPERATION_NAME:
        return x->kind == y->kind && strcmp(x->name, y->name) == 0;
    case OPERATION_IS_WORD:
    case OPERATION_IS_NOT_WORD:
        return strcmp(x->name, y->name) == 0 && strcmp(x->word, y->word) == 0;
    default:
        break;
    }
    for (int i = 0; i < expression_operations[x->operation].operands; i++)
        if (!is_same(x->operands[i], y->operands[i]))
            return false;
    return true;
}

/* Whether the form of the numbers shows that x <= y in every call. */
static bool is_at_most(const expression *x, const expression *y)
{
    uint64_t of_x, of_y;
    if (is_same(x, y))
        return true;
    if (expression_is_constant(x, &of_x) && expression_is_constant(y, &of_y))
        return of_x <= of_y;
    if (x->operation != y->operation)
        return false;
    const bool falls = x->operation == OPERATION_CEIL_DIV || x->operation == OPERATION_DIVIDE;
    const bool grows = x->operation == OPERATION_ADD || x->operation == OPERATION_MULTIPLY ||
                       x->operation == OPERATION_MIN || x->operation == OPERATION_MAX;
    return (falls || grows) && is_at_most(x->operands[0], y->operands[0]) &&
           is_at_most((grows ? x : y)->operands[1], (grows ? y : x)->operands[1]);
}

/* Whether e is like "a % 32 == 0" and from like "a % 64 == 0"; aligned() likewise. */
static bool divides(const expression *e, const expression *from)
{
    uint64_t own, other;
    return is_same(e->operands[0], from->operands[0]) && expression_is_constant(e->operands[1], &own) &&
           expression_is_constant(from->operands[1], &other) && own != 0 && other % own == 0;
}

static bool is_zero(const expression *e)
{
    uint64_t value;
    return expression_is_constant(e, &value) && value == 0;
}

bool expression_follows(const expression *e, const expression *from)
{
    uint64_t value;
    if (is_same(e, from) || (expression_is_constant(e, &value) && value != 0))
        return true;
    if (e->operation == OPERATION_AND)
        return expression_follows(e->operands[0], from) && expression_follows(e->operands[1], from);
    if (from->operation == OPERATION_AND)
        return expression_follows(e, from->operands[0]) || expression_follows(e, from->operands[1]);
    if (e->operation == OPERATION_OR &&
        (expression_follows(e->operands[0], from) || expression_follows(e->operands[1], from)))
        return true;
    if (e->operation != from->operation)
        return false;
    const expression *const *x = e->operands, *const *y = from->operands;
    switch (e->operation) {
    case OPERATION_LESS_EQUAL:
    case OPERATION_LESS:
        return is_at_most(x[0], y[0]) && is_at_most(y[1], x[1]);
    case OPERATION_GREATER_EQUAL:
    case OPERATION_GREATER:
        return is_at_most(y[0], x[0]) && is_at_most(x[1], y[1]);
    case OPERATION_EQUAL:
        return is_zero(x[1]) && is_zero(y[1]) && x[0]->operation == OPERATION_REMAINDER &&
               y[0]->operation == OPERATION_REMAINDER && divides(x[0], y[0]);
    case OPERATION_ALIGNED:
        return divides(e, from);
    default:
        return false;
    }
}
