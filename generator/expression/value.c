/* Evaluating and binding are one operation: substitute the known values, then fold. Evaluation requires that all are
 * known.
 *
 * A decided select, && or || skips its other operands, so a family may write select(group == any, group_size, group).
 * */
#include <string.h>

#include "node.h"
#include "support/words.h"

#define MISTAKE(e, what) expression_fail((e)->source, what)

static const char too_large[] = "a number above 2^64 - 1";

bool expression_is_constant(const expression *e, uint64_t *value)
{
    if (e->operation != OPERATION_LITERAL)
        return false;
    *value = e->value;
    return true;
}

static bool is_literal(const expression *e, uint64_t value)
{
    return e->operation == OPERATION_LITERAL && e->value == value;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static uint64_t number_of_one(const expression *e, const variant *v)
{
    const kiln_param *param = &v->family->params[e->index];
    const param_value *value = &v->values[e->index];
    if (param->type == KILN_PARAM_BOOL)
        return strcmp(value->text, "true") == 0;
    if (param->type == KILN_PARAM_WORD && !word_is_number(value->text))
        MISTAKE(e, "a word is used as a number");
    return value->number;
}

/* The first of the variants that v stands for, or v itself. */
static const variant *first_of(const variant *v)
{
    return v->alike && v->alike[0] ? v->alike[0] : v;
}

/* False if the variants that v stands for differ. */
static bool param_number(const expression *e, const variant *v, uint64_t *value)
{
    for (const variant *const *one = v->alike; one && *one; one++)
        if (strcmp((*one)->values[e->index].text, v->alike[0]->values[e->index].text) != 0)
            return false;
    *value = number_of_one(e, first_of(v));
    return true;
}

/* Thread blocks by registers: from the family's register count, its .minnctapersm, or the usual figure. */
static uint64_t blocks_in_registers(const variant *v, uint32_t blocks)
{
    enum { USUAL_REGISTERS = 64, ALL_REGISTERS = 65536 };
    const uint32_t threads = v->shape.block[0] * v->shape.block[1] * v->shape.block[2];
    if (v->shape.registers)
        return ALL_REGISTERS / (v->shape.registers * threads);
    return blocks ? blocks : 1 + ALL_REGISTERS / (USUAL_REGISTERS * threads);
}

static uint64_t shape_number(const expression *e, const variant *v)
{
    const kiln_shape *s = &v->shape;
    if (strcmp(e->name, "threads") == 0 || strcmp(e->name, "image_threads") == 0)
        return (uint64_t)s->block[0] * s->block[1] * s->block[2];
    if (strcmp(e->name, "shared_bytes") == 0)
        return s->shared_bytes;
    return blocks_in_registers(v, s->blocks_per_multiprocessor);
}

/* select(sm >= 80, 2, 1): by image, if images allow different numbers. */
static const expression *blocks_of_image(arena *a, const expression *e, const variant *v)
{
    const expression *result = expression_literal(a, e, blocks_in_registers(v, v->blocks[0].blocks));
    for (size_t i = 1; i < v->blocks_count; i++) {
        expression *sm = arena_alloc(a, sizeof *sm), *from = arena_alloc(a, sizeof *from),
                   *chosen = arena_alloc(a, sizeof *chosen);
        *sm =
            (expression){.operation = OPERATION_NAME, .source = e->source, .name = "sm", .kind = NAME_DEVICE};
        *from = (expression){.operation = OPERATION_GREATER_EQUAL,
                             .source = e->source,
                             .operands = {sm, expression_literal(a, e, v->blocks[i].from_sm)}};
        *chosen = (expression){
            .operation = OPERATION_SELECT,
            .source = e->source,
            .operands = {from, expression_literal(a, e, blocks_in_registers(v, v->blocks[i].blocks)),
                         result}};
        result = chosen;
    }
    return result;
}

/* False if the variants that v stands for differ. */
static bool given_number(const expression *e, const variant *v, uint64_t *value)
{
    *value = first_of(v)->shape.numbers[e->index];
    for (const variant *const *one = v->alike; one && *one; one++)
        if ((*one)->shape.numbers[e->index] != *value)
            return false;
    return true;
}

/* False if v does not determine it: arguments and device properties are known only at launch. */
static bool name_value(const expression *e, const variant *v, uint64_t *value)
{
    if (v && e->kind == NAME_NUMBER)
        return given_number(e, v, value);
    if (v && e->kind == NAME_PARAM)
        return param_number(e, v, value);
    if (v && e->kind == NAME_SHAPE && !v->alike) {
        *value = shape_number(e, v);
        return true;
    }
    return false;
}

static bool is_word_of_one(const expression *e, const variant *v)
{
    bool equal = strcmp(v->values[e->index].text, e->word) == 0;
    return equal == (e->operation == OPERATION_IS_WORD);
}

/* False if v is null or stands for variants that differ. */
static bool word_value(const expression *e, const variant *v, bool *value)
{
    for (const variant *const *one = v ? v->alike : NULL; one && *one; one++)
        if (is_word_of_one(e, *one) != is_word_of_one(e, v->alike[0]))
            return false;
    *value = v && is_word_of_one(e, first_of(v));
    return v != NULL;
}

/* ---- folding ---------------------------------------------------------------------------------------------------- */

/* Whether a product or a sum needs more than 64 bits. No other operation wraps. */
static bool wraps(const expression *e, uint64_t x, uint64_t y)
{
    if (e->operation == OPERATION_MULTIPLY)
        return x != 0 && y > UINT64_MAX / x;
    return e->operation == OPERATION_ADD && y > UINT64_MAX - x;
}

static uint64_t apply(const expression *e, uint64_t x, uint64_t y)
{
    bool divides = e->operation == OPERATION_DIVIDE || e->operation == OPERATION_REMAINDER ||
                   e->operation == OPERATION_CEIL_DIV;
    if (divides && y == 0)
        MISTAKE(e, "division by zero");
    switch (e->operation) {
    case OPERATION_NOT:
        return !x;
    case OPERATION_GIVEN:
        return x != 0;
    case OPERATION_MULTIPLY:
        return x * y;
    case OPERATION_DIVIDE:
        return x / y;
    case OPERATION_REMAINDER:
        return x % y;
    case OPERATION_CEIL_DIV:
        return x / y + (x % y != 0);
    case OPERATION_ADD:
        return x + y;
    case OPERATION_SUBTRACT:
        if (x < y)
            MISTAKE(e, "subtraction below zero");
        return x - y;
    case OPERATION_LESS_EQUAL:
        return x <= y;
    case OPERATION_GREATER_EQUAL:
        return x >= y;
    case OPERATION_LESS:
        return x < y;
    case OPERATION_GREATER:
        return x > y;
    case OPERATION_EQUAL:
        return x == y;
    case OPERATION_NOT_EQUAL:
        return x != y;
    case OPERATION_MIN:
        return x < y ? x : y;
    case OPERATION_MAX:
        return x > y ? x : y;
    default:
        MISTAKE(e, "cannot be evaluated");
    }
}

/* Operations that one known operand decides: {operation, which operand is known, its value, result}. Comparisons with
 * zero are included because compilers warn of those that an unsigned number decides. */
typedef enum settled { SETTLED_ZERO, SETTLED_ONE, SETTLED_OTHER_OPERAND } settled;
static const struct {
    operation operation;
    int operand;
    uint64_t value;
    settled settled;
} settling[] = {
    {OPERATION_MULTIPLY, 0, 0, SETTLED_ZERO},
    {OPERATION_MULTIPLY, 1, 0, SETTLED_ZERO},
    {OPERATION_MULTIPLY, 0, 1, SETTLED_OTHER_OPERAND},
    {OPERATION_MULTIPLY, 1, 1, SETTLED_OTHER_OPERAND},
    {OPERATION_DIVIDE, 1, 1, SETTLED_OTHER_OPERAND},
    {OPERATION_CEIL_DIV, 1, 1, SETTLED_OTHER_OPERAND},
    {OPERATION_REMAINDER, 1, 1, SETTLED_ZERO},
    {OPERATION_ADD, 0, 0, SETTLED_OTHER_OPERAND},
    {OPERATION_ADD, 1, 0, SETTLED_OTHER_OPERAND},
    {OPERATION_SUBTRACT, 1, 0, SETTLED_OTHER_OPERAND},
    {OPERATION_MIN, 0, 0, SETTLED_ZERO},
    {OPERATION_MIN, 1, 0, SETTLED_ZERO},
    {OPERATION_MAX, 0, 0, SETTLED_OTHER_OPERAND},
    {OPERATION_MAX, 1, 0, SETTLED_OTHER_OPERAND},
    {OPERATION_GREATER_EQUAL, 1, 0, SETTLED_ONE},
    {OPERATION_LESS_EQUAL, 0, 0, SETTLED_ONE},
    {OPERATION_LESS, 1, 0, SETTLED_ZERO},
    {OPERATION_GREATER, 0, 0, SETTLED_ZERO},
    {OPERATION_ALIGNED, 1, 1, SETTLED_ONE},
};

/* The largest value of an argument narrower than 64 bits; otherwise UINT64_MAX. */
static uint64_t largest(const expression *e)
{
    if (e->operation != OPERATION_NAME || e->kind != NAME_ARG)
        return UINT64_MAX;
    const char *type = e->source->family->args[e->index].type;
    return strcmp(type, "u8") == 0    ? UINT8_MAX
           : strcmp(type, "u16") == 0 ? UINT16_MAX
           : strcmp(type, "u32") == 0 ? UINT32_MAX
                                      : UINT64_MAX;
}

/* Folds comparisons that no value of an argument can change: compilers warn of them. */
static const expression *settle_comparison(arena *a, const expression *e)
{
    uint64_t limit;
    if (!expression_is_constant(e->operands[1], &limit))
        return e;
    const uint64_t most = largest(e->operands[0]);
    if (e->operation == OPERATION_LESS_EQUAL && most <= limit)
        return expression_literal(a, e, 1);
    if (e->operation == OPERATION_LESS && most < limit)
        return expression_literal(a, e, 1);
    if (e->operation == OPERATION_GREATER && most <= limit)
        return expression_literal(a, e, 0);
    if (e->operation == OPERATION_GREATER_EQUAL && most < limit)
        return expression_literal(a, e, 0);
    return e;
}

static const expression *settle(arena *a, const expression *e)
{
    for (size_t i = 0; i < sizeof settling / sizeof settling[0]; i++) {
        int known = settling[i].operand;
        if (e->operation != settling[i].operation || !is_literal(e->operands[known], settling[i].value))
            continue;
        if (settling[i].settled == SETTLED_OTHER_OPERAND)
            return e->operands[1 - known];
        return expression_literal(a, e, settling[i].settled == SETTLED_ONE);
    }
    return settle_comparison(a, e);
}

/* An operation with bound operands, folded. */
static const expression *fold(arena *a, const expression *e)
{
    int operands = expression_operations[e->operation].operands;
    uint64_t known[2] = {0, 0};
    int known_count = 0;
    for (int i = 0; i < operands && i < 2; i++)
        known_count += expression_is_constant(e->operands[i], &known[i]);
    bool divisor_is_zero = operands == 2 && is_literal(e->operands[1], 0);
    if (divisor_is_zero && (e->operation == OPERATION_DIVIDE || e->operation == OPERATION_REMAINDER ||
                            e->operation == OPERATION_CEIL_DIV || e->operation == OPERATION_ALIGNED))
        MISTAKE(e, "division by zero");
    if (known_count == operands && wraps(e, known[0], known[1]))
        MISTAKE(e, too_large);
    if (known_count == operands)
        return expression_literal(a, e, apply(e, known[0], known[1]));
    const expression *inner = e->operands[0];
    if (e->operation == OPERATION_NOT && inner->operation == OPERATION_NOT &&
        expression_is_truth(inner->operands[0]))
        return inner->operands[0];
    return operands == 2 ? settle(a, e) : e;
}

/* ---- binding ---------------------------------------------------------------------------------------------------- */

static const expression *with_operand(arena *a, const expression *e, int i, const expression *operand)
{
    if (e->operands[i] == operand)
        return e;
    expression *copy = arena_copy(a, e, sizeof *e);
    copy->operands[i] = operand;
    return copy;
}

/* && and ||: a known left operand may decide; a known right operand decides or is dropped. */
static const expression *bind_logical(arena *a, const expression *e, const variant *v)
{
    uint64_t deciding = e->operation == OPERATION_OR, value;
    const expression *left = expression_bind(a, e->operands[0], v);
    bool left_known = expression_is_constant(left, &value);
    if (left_known && (value != 0) == deciding)
        return expression_literal(a, e, deciding);
    const expression *right = expression_bind(a, e->operands[1], v);
    if (expression_is_constant(right, &value)) {
        if (left_known || (value != 0) == deciding)
            return expression_literal(a, e, value != 0);
        if (expression_is_truth(left))
            return left;
    }
    if (left_known && expression_is_truth(right))
        return right;
    return with_operand(a, with_operand(a, e, 0, left), 1, right);
}

static const expression *bind_select(arena *a, const expression *e, const variant *v)
{
    const expression *condition = expression_bind(a, e->operands[0], v);
    uint64_t value;
    if (expression_is_constant(condition, &value))
        return expression_bind(a, e->operands[value ? 1 : 2], v);
    e = with_operand(a, e, 0, condition);
    e = with_operand(a, e, 1, expression_bind(a, e->operands[1], v));
    return with_operand(a, e, 2, expression_bind(a, e->operands[2], v));
}

/* Whether the value is known already, found without a copy of the operands. `fold` reports mistakes. */
static bool is_known(const expression *e, const variant *v, uint64_t *value)
{
    uint64_t known[2] = {0, 0};
    bool is_so;
    if (expression_is_constant(e, value))
        return true;
    if (e->operation == OPERATION_NAME)
        return e->kind != NAME_SHAPE && name_value(e, v, value);
    if (e->operation == OPERATION_IS_WORD || e->operation == OPERATION_IS_NOT_WORD) {
        const bool is_found = word_value(e, v, &is_so);
        *value = is_found && is_so;
        return is_found;
    }
    if (e->operation != OPERATION_ADD && e->operation != OPERATION_MULTIPLY)
        return false;
    if (!is_known(e->operands[0], v, &known[0]) || !is_known(e->operands[1], v, &known[1]) ||
        wraps(e, known[0], known[1]))
        return false;
    *value = apply(e, known[0], known[1]);
    return true;
}

const expression *expression_bind(arena *a, const expression *e, const variant *v)
{
    uint64_t value;
    bool is_so;
    switch (e->operation) {
    case OPERATION_LITERAL:
        return e;
    case OPERATION_NAME:
        if (v && e->kind == NAME_SHAPE && v->blocks_count > 1 && strcmp(e->name, "image_blocks") == 0)
            return blocks_of_image(a, e, v);
        return name_value(e, v, &value) ? expression_literal(a, e, value) : e;
    case OPERATION_IS_WORD:
    case OPERATION_IS_NOT_WORD:
        return word_value(e, v, &is_so) ? expression_literal(a, e, is_so) : e;
    case OPERATION_AND:
    case OPERATION_OR:
        return bind_logical(a, e, v);
    case OPERATION_SELECT:
        return bind_select(a, e, v);
    default:
        break;
    }
    if (is_known(e, v, &value))
        return expression_literal(a, e, value);
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        e = with_operand(a, e, i, expression_bind(a, e->operands[i], v));
    return fold(a, e);
}

/* ---- evaluating ------------------------------------------------------------------------------------------------- */

/* The values of names: a variant's parameters and shape, or a call's arguments and device properties. */
typedef struct scope {
    const variant *variant;
    number_of_name *number;
    void *context;
    bool is_exact; /* a product or a sum that wraps is a mistake */
} scope;

static uint64_t evaluate(const expression *e, const scope *s)
{
    uint64_t value;
    bool is_so;
    const expression *const *operands = e->operands;
    switch (e->operation) {
    case OPERATION_LITERAL:
        return e->value;
    case OPERATION_NAME:
        if (s->number)
            return s->number(s->context, e->kind, e->name, e->index);
        if (!name_value(e, s->variant, &value))
            MISTAKE(e, "its value depends on more than parameters");
        return value;
    case OPERATION_IS_WORD:
    case OPERATION_IS_NOT_WORD:
        if (!word_value(e, s->variant, &is_so))
            MISTAKE(e, "its value depends on more than arguments");
        return is_so;
    case OPERATION_AND:
        return evaluate(operands[0], s) && evaluate(operands[1], s);
    case OPERATION_OR:
        return evaluate(operands[0], s) || evaluate(operands[1], s);
    case OPERATION_SELECT:
        return evaluate(operands[evaluate(operands[0], s) ? 1 : 2], s);
    case OPERATION_NEGATIVE:
    case OPERATION_FINITE:
        if (!s->number)
            MISTAKE(e, "cannot be evaluated");
        return e->operation == OPERATION_FINITE || (int64_t)evaluate(operands[0], s) < 0;
    case OPERATION_ALIGNED:
        value = evaluate(operands[1], s);
        return value == 0 || evaluate(operands[0], s) % value == 0;
    default:
        break;
    }
    value = evaluate(operands[0], s);
    const uint64_t other = operands[1] ? evaluate(operands[1], s) : 0;
    if (s->is_exact && wraps(e, value, other))
        MISTAKE(e, too_large);
    return apply(e, value, other);
}

uint64_t expression_value(const expression *e, const variant *v)
{
    return evaluate(e, &(scope){.variant = v});
}

uint64_t expression_value_of_call(const expression *e, number_of_name *number, void *context)
{
    return evaluate(e, &(scope){.number = number, .context = context});
}

uint64_t expression_exact_value_of_call(const expression *e, number_of_name *number, void *context)
{
    return evaluate(e, &(scope){.number = number, .context = context, .is_exact = true});
}
