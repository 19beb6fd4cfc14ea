/* Upper bounds, in double: values above 64 bits need a bound too, and rounding does not matter. */
#include <stdlib.h>
#include <string.h>

#include "family/family.h"
#include "node.h"

static const double no_bound = 18446744073709551616.0; /* 2^64 */

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

/* ---- of an expression ---------------------------------------------------------------------------------------------- */

double expression_most(const expression *e, const double *most_of_args)
{
    double most[3] = {0};
    if (expression_is_truth(e))
        return 1;
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        most[i] = expression_most(e->operands[i], most_of_args);
    const double divisor = e->operands[1] && e->operands[1]->operation == OPERATION_LITERAL ? most[1] : 1;
    switch (e->operation) {
    case OPERATION_LITERAL:
        return (double)e->value;
    case OPERATION_NAME:
        return e->kind == NAME_ARG ? most_of_args[e->index] : 4294967295.0;
    case OPERATION_MULTIPLY:
        return most[0] * most[1];
    case OPERATION_ADD:
        return most[0] + most[1];
    case OPERATION_SUBTRACT:
        return most[0];
    case OPERATION_DIVIDE:
        return most[0] / larger(divisor, 1);
    case OPERATION_CEIL_DIV:
        return most[0] / larger(divisor, 1) + 1;
    case OPERATION_REMAINDER:
    case OPERATION_MIN:
        return smaller(most[0], most[1]);
    case OPERATION_MAX:
        return larger(most[0], most[1]);
    case OPERATION_SELECT:
        return larger(most[1], most[2]);
    default:
        return no_bound;
    }
}

/* ---- of arguments -------------------------------------------------------------------------------------------------- */

/* 2^bits - 1 of an integer. A signed one counts as unsigned, unless a rule excludes negative values. */
static double most_of_type(const kiln_arg *arg, bool is_negative_too)
{
    const char *digits = arg->type + strcspn(arg->type, "0123456789");
    const bool is_signed = arg->type[0] == 'i' || arg->type[0] == 's';
    if (is_negative_too ? arg->type[0] != 'u' : !is_signed)
        return no_bound;
    double most = is_signed ? 0.5 : 1;
    for (unsigned long bits = strtoul(digits, NULL, 10); bits > 0; bits--)
        most *= 2;
    return most < no_bound ? most - 1 : most;
}

/* Collects conditions of a conjunction that limit an argument by a number. */
static void narrow(const expression *e, double *most)
{
    if (e->operation == OPERATION_AND) {
        narrow(e->operands[0], most);
        narrow(e->operands[1], most);
    }
    if (e->operation == OPERATION_NOT && e->operands[0]->operation == OPERATION_NEGATIVE) {
        const size_t index = e->operands[0]->operands[0]->index;
        most[index] = smaller(most[index], most_of_type(&e->source->family->args[index], false));
    }
    if (e->operation != OPERATION_LESS && e->operation != OPERATION_LESS_EQUAL)
        return;
    const expression *name = e->operands[0], *number = e->operands[1];
    if (name->operation == OPERATION_NAME && name->kind == NAME_ARG && number->operation == OPERATION_LITERAL)
        most[name->index] = smaller(most[name->index], (double)number->value);
}

void expression_most_of_args(arena *a, const variant *v, double *most)
{
    const kiln_family *family = v->family;
    for (size_t i = 0; family->args[i].name; i++)
        most[i] = most_of_type(&family->args[i], true);
    for (const kiln_rule *rule = family->rules; rule && rule->condition; rule++)
        narrow(expression_bind(a, expression_parse(a, family, rule->condition), v), most);
}

void expression_mark_args(const expression *e, bool *is_used)
{
    if (e->operation == OPERATION_NAME && e->kind == NAME_ARG)
        is_used[e->index] = true;
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        expression_mark_args(e->operands[i], is_used);
}
