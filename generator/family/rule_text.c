/* Prints rules for people. */
#include "rule_text.h"

#include "expression/node.h"

static bool is_of_params(const expression *e)
{
    return !expression_uses(e, NAME_ARG) && !expression_uses(e, NAME_DEVICE);
}

static operation opposite(operation o)
{
    static const operation pairs[][2] = {{OPERATION_IS_WORD, OPERATION_IS_NOT_WORD},
                                         {OPERATION_EQUAL, OPERATION_NOT_EQUAL},
                                         {OPERATION_LESS, OPERATION_GREATER_EQUAL},
                                         {OPERATION_GREATER, OPERATION_LESS_EQUAL}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int k = 0; k < 2; k++)
            if (pairs[i][k] == o)
                return pairs[i][1 - k];
    return OPERATION_COUNT;
}

static void print_negated(text *out, const expression *e)
{
    expression negated = *e;
    negated.operation = opposite(e->operation);
    if (e->operation == OPERATION_NOT)
        negated = *e->operands[0];
    else if (negated.operation == OPERATION_COUNT)
        negated = (expression){.operation = OPERATION_NOT, .operands = {e}};
    expression_print(out, &negated);
}

/* Moves alternatives over parameters alone into a "where": the rule applies only if they are false. */
static void add_where(text *out, const expression *e, const variant *common)
{
    uint64_t value;
    if (e->operation == OPERATION_OR) {
        add_where(out, e->operands[0], common);
        add_where(out, e->operands[1], common);
    } else if (is_of_params(e) && !expression_is_constant(expression_bind(out->arena, e, common), &value)) {
        text_add(out, out->length > 0 ? " && " : "");
        print_negated(out, e);
    }
}

const char *rule_text(arena *a, const kiln_family *family, const kiln_rule *rule, const variant *common)
{
    text where = text_new(a);
    const expression *condition = expression_parse(a, family, rule->condition);
    if (!is_of_params(condition))
        add_where(&where, condition, common);
    return where.length > 0 ? arena_format(a, "%s (where %s)", rule->text, where.data) : rule->text;
}
