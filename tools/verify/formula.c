/* Parses and evaluates the expressions of a manifest. */
#include "formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

typedef enum node_kind {
    /* clang-format off */
    NODE_NUMBER, NODE_NAME,
    NODE_MULTIPLY, NODE_DIVIDE, NODE_REMAINDER, NODE_ADD, NODE_SUBTRACT,
    NODE_LESS, NODE_LESS_EQUAL, NODE_GREATER, NODE_GREATER_EQUAL, NODE_EQUAL, NODE_NOT_EQUAL,
    NODE_AND, NODE_OR, NODE_NOT,
    NODE_CEIL_DIV, NODE_MIN, NODE_MAX, NODE_SELECT, NODE_ALIGNED, NODE_GIVEN, NODE_NEGATIVE, NODE_FINITE
    /* clang-format on */
} node_kind;

typedef struct node {
    node_kind kind;
    uint64_t number;
    const char *name;
    size_t name_length;
    const struct node *operand[3];
} node;

struct formula {
    const char *text;
    const node *root;
};

/* Binary operators by precedence; a longer spelling precedes its prefixes. */
static const struct {
    const char *text;
    int level; /* 1: the lowest precedence */
    node_kind kind;
} OPERATORS[] = {
    /* clang-format off */
    {"||", 1, NODE_OR},
    {"&&", 2, NODE_AND},
    {"==", 3, NODE_EQUAL},      {"!=", 3, NODE_NOT_EQUAL},
    {"<=", 4, NODE_LESS_EQUAL}, {">=", 4, NODE_GREATER_EQUAL}, {"<", 4, NODE_LESS}, {">", 4, NODE_GREATER},
    {"+",  5, NODE_ADD},        {"-",  5, NODE_SUBTRACT},
    {"*",  6, NODE_MULTIPLY},   {"/",  6, NODE_DIVIDE},        {"%", 6, NODE_REMAINDER},
    /* clang-format on */
};
enum { OPERATOR_COUNT = sizeof OPERATORS / sizeof OPERATORS[0], UNARY_LEVEL = 7 };

static const struct {
    const char *name;
    int operands;
    node_kind kind;
} FUNCTIONS[] = {
    /* clang-format off */
    {"ceil_div", 2, NODE_CEIL_DIV},
    {"min",      2, NODE_MIN},
    {"max",      2, NODE_MAX},
    {"select",   3, NODE_SELECT},
    {"aligned",  2, NODE_ALIGNED},
    {"given",    1, NODE_GIVEN},
    {"negative", 1, NODE_NEGATIVE},
    {"finite",   1, NODE_FINITE},
    /* clang-format on */
};
enum { FUNCTION_COUNT = sizeof FUNCTIONS / sizeof FUNCTIONS[0] };

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

typedef struct parser {
    pool *memory;
    const char *text, *at;
    int depth;
    char *error;
    size_t error_bytes;
} parser;

static const node *parse_level(parser *p, int level);

static const node *syntax_error(parser *p, const char *why)
{
    snprintf(p->error, p->error_bytes, "'%s', character %d: %s", p->text, (int)(p->at - p->text) + 1, why);
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_spaces(parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

static bool accept(parser *p, char c)
{
    skip_spaces(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static node *new_node(parser *p, node_kind kind)
{
    node *n = pool_allocate(p->memory, sizeof *n);
    n->kind = kind;
    return n;
}

static int digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

static const node *parse_number(parser *p)
{
    node *n = new_node(p, NODE_NUMBER);
    unsigned base = 10;
    if (p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X')) {
        base = 16;
        p->at += 2;
    }
    const char *first = p->at;
    for (unsigned digit; (digit = (unsigned)digit_value(*p->at)) < base; p->at++) {
        if (n->number > (UINT64_MAX - digit) / base)
            return syntax_error(p, "the number does not fit in 64 bits");
        n->number = n->number * base + digit;
    }
    if (p->at == first || is_letter(*p->at))
        return syntax_error(p, "not a number");
    return n;
}

static const node *parse_call(parser *p, const char *name, size_t length)
{
    int f = 0;
    while (f < FUNCTION_COUNT &&
           (strlen(FUNCTIONS[f].name) != length || strncmp(FUNCTIONS[f].name, name, length) != 0))
        f++;
    if (f == FUNCTION_COUNT)
        return syntax_error(p, "no such function");
    node *n = new_node(p, FUNCTIONS[f].kind);
    for (int i = 0; i < FUNCTIONS[f].operands; i++) {
        if (i > 0 && !accept(p, ','))
            return syntax_error(p, "expected ','");
        if (!(n->operand[i] = parse_level(p, 1)))
            return NULL;
    }
    return accept(p, ')') ? n : syntax_error(p, "expected ')'");
}

static const node *parse_primary(parser *p)
{
    if (accept(p, '(')) {
        const node *inner = parse_level(p, 1);
        if (inner && !accept(p, ')'))
            return syntax_error(p, "expected ')'");
        return inner;
    }
    skip_spaces(p);
    if (is_digit(*p->at))
        return parse_number(p);
    if (!is_letter(*p->at))
        return syntax_error(p, "expected a number, a name or '('");
    const char *name = p->at;
    while (is_letter(*p->at) || is_digit(*p->at))
        p->at++;
    size_t length = (size_t)(p->at - name);
    if (accept(p, '('))
        return parse_call(p, name, length);
    node *n = new_node(p, NODE_NAME);
    n->name = name;
    n->name_length = length;
    return n;
}

static const node *parse_unary(parser *p)
{
    skip_spaces(p);
    if (p->at[0] != '!' || p->at[1] == '=')
        return parse_primary(p);
    p->at++;
    node *n = new_node(p, NODE_NOT);
    n->operand[0] = parse_level(p, UNARY_LEVEL);
    return n->operand[0] ? n : NULL;
}

static int find_operator(parser *p)
{
    skip_spaces(p);
    for (int i = 0; i < OPERATOR_COUNT; i++) {
        if (strncmp(p->at, OPERATORS[i].text, strlen(OPERATORS[i].text)) == 0)
            return i;
    }
    return -1;
}

/* Parses operators of precedence `level` or higher; operators of one level associate to the left. */
static const node *parse_level(parser *p, int level)
{
    if (++p->depth > MAX_DEPTH)
        return syntax_error(p, "nested too deeply");
    const node *left = parse_unary(p);
    for (int i; left && (i = find_operator(p)) >= 0 && OPERATORS[i].level >= level;) {
        node *n = new_node(p, OPERATORS[i].kind);
        p->at += strlen(OPERATORS[i].text);
        n->operand[0] = left;
        n->operand[1] = parse_level(p, OPERATORS[i].level + 1);
        left = n->operand[1] ? n : NULL;
    }
    p->depth--;
    return left;
}

formula *formula_parse(pool *memory, const char *text, char *error, size_t error_bytes)
{
    formula *f = pool_allocate(memory, sizeof *f);
    f->text = pool_copy(memory, text, strlen(text));
    parser p = {memory, f->text, f->text, 0, error, error_bytes};
    f->root = parse_level(&p, 1);
    if (!f->root)
        return NULL;
    skip_spaces(&p);
    if (*p.at) {
        syntax_error(&p, "expected an operator or the end");
        return NULL;
    }
    return f;
}

/* ---- evaluating ------------------------------------------------------------------------------------------------- */

typedef struct evaluation {
    const formula *formula;
    formula_lookup *lookup;
    const void *context;
    char *error;
    size_t error_bytes;
} evaluation;

static bool value_of(const evaluation *e, const node *n, formula_value *value);

static bool fail(const evaluation *e, const char *why)
{
    snprintf(e->error, e->error_bytes, "'%s': %s", e->formula->text, why);
    return false;
}

static bool number_of(const evaluation *e, const node *n, uint64_t *number)
{
    formula_value value;
    if (!value_of(e, n, &value))
        return false;
    if (value.word) {
        snprintf(e->error, e->error_bytes, "'%s': %.*s is no number", e->formula->text,
                 (int)value.word_length, value.word);
        return false;
    }
    if (value.is_float)
        return fail(e, "only negative() and finite() take a float");
    *number = value.number;
    return true;
}

/* Converts signed integers to 64 bits. */
static bool tell_of_float(const evaluation *e, const node *n, uint64_t *result)
{
    formula_value value;
    if (!value_of(e, n->operand[0], &value))
        return false;
    double real = value.is_float ? value.real : (double)(int64_t)value.number;
    *result = n->kind == NODE_FINITE ? isfinite(real) : !(real >= 0);
    return true;
}

static bool tell_of_pointer(const evaluation *e, const node *n, uint64_t *result)
{
    formula_value value;
    if (!value_of(e, n->operand[0], &value))
        return false;
    *result = !value.is_null;
    return true;
}

/* Compares two values. A word equals a word with the same letters, and never a number. */
static bool equal(const evaluation *e, const node *n, uint64_t *result)
{
    formula_value a, b;
    if (!value_of(e, n->operand[0], &a) || !value_of(e, n->operand[1], &b))
        return false;
    bool is_same = !a.word && !b.word && a.number == b.number;
    if (a.word && b.word)
        is_same = a.word_length == b.word_length && memcmp(a.word, b.word, a.word_length) == 0;
    *result = is_same;
    return true;
}

/* Evaluates operators that may skip an operand: the other side of && and ||, the other branch of select. */
static bool evaluate_lazily(const evaluation *e, const node *n, uint64_t *result)
{
    uint64_t condition;
    if (!number_of(e, n->operand[0], &condition))
        return false;
    if (n->kind == NODE_SELECT)
        return number_of(e, n->operand[condition ? 1 : 2], result);
    if ((n->kind == NODE_AND) == (condition != 0)) {
        if (!number_of(e, n->operand[1], &condition))
            return false;
    }
    *result = condition != 0;
    return true;
}

static bool evaluate_arithmetic(const evaluation *e, node_kind kind, uint64_t a, uint64_t b, uint64_t *result)
{
    switch (kind) {
    case NODE_MULTIPLY:
        if (a != 0 && b > UINT64_MAX / a)
            return fail(e, "the product passes 64 bits");
        *result = a * b;
        return true;
    case NODE_ADD:
        if (b > UINT64_MAX - a)
            return fail(e, "the sum passes 64 bits");
        *result = a + b;
        return true;
    case NODE_SUBTRACT:
        if (b > a)
            return fail(e, "the difference is below zero");
        *result = a - b;
        return true;
    default:
        break;
    }
    if (b == 0)
        return fail(e, "division by zero");
    if (kind == NODE_DIVIDE)
        *result = a / b;
    else if (kind == NODE_CEIL_DIV)
        *result = a / b + (a % b != 0);
    else if (kind == NODE_ALIGNED)
        *result = a % b == 0;
    else
        *result = a % b;
    return true;
}

static bool evaluate(const evaluation *e, const node *n, uint64_t *result)
{
    uint64_t a, b;
    switch (n->kind) {
    case NODE_EQUAL:
        return equal(e, n, result);
    case NODE_NOT_EQUAL:
        if (!equal(e, n, result))
            return false;
        *result = !*result;
        return true;
    case NODE_AND:
    case NODE_OR:
    case NODE_SELECT:
        return evaluate_lazily(e, n, result);
    case NODE_NOT:
        if (!number_of(e, n->operand[0], &a))
            return false;
        *result = !a;
        return true;
    case NODE_GIVEN:
        return tell_of_pointer(e, n, result);
    case NODE_NEGATIVE:
    case NODE_FINITE:
        return tell_of_float(e, n, result);
    default:
        break;
    }
    if (!number_of(e, n->operand[0], &a) || !number_of(e, n->operand[1], &b))
        return false;
    switch (n->kind) {
    case NODE_LESS:
        *result = a < b;
        return true;
    case NODE_LESS_EQUAL:
        *result = a <= b;
        return true;
    case NODE_GREATER:
        *result = a > b;
        return true;
    case NODE_GREATER_EQUAL:
        *result = a >= b;
        return true;
    case NODE_MIN:
        *result = a < b ? a : b;
        return true;
    case NODE_MAX:
        *result = a > b ? a : b;
        return true;
    default:
        return evaluate_arithmetic(e, n->kind, a, b, result);
    }
}

static bool value_of(const evaluation *e, const node *n, formula_value *value)
{
    *value = (formula_value){0};
    if (n->kind == NODE_NUMBER) {
        value->number = n->number;
        return true;
    }
    if (n->kind != NODE_NAME)
        return evaluate(e, n, &value->number);
    if (!e->lookup(e->context, n->name, n->name_length, value)) {
        value->word = n->name;
        value->word_length = n->name_length;
    }
    return true;
}

bool formula_evaluate(const formula *f, formula_lookup *lookup, const void *context, uint64_t *result,
                      char *error, size_t error_bytes)
{
    evaluation e = {f, lookup, context, error, error_bytes};
    return number_of(&e, f->root, result);
}

static bool is_name(const node *n, const char *name)
{
    return n->kind == NODE_NAME && strlen(name) == n->name_length &&
           memcmp(name, n->name, n->name_length) == 0;
}

static bool mentions(const node *n, const char *name)
{
    return n && (is_name(n, name) || mentions(n->operand[0], name) || mentions(n->operand[1], name) ||
                 mentions(n->operand[2], name));
}

static bool aligns(const node *n, const char *name)
{
    if (!n || n->kind == NODE_ALIGNED)
        return n && is_name(n->operand[0], name);
    return aligns(n->operand[0], name) || aligns(n->operand[1], name) || aligns(n->operand[2], name);
}

bool formula_mentions(const formula *f, const char *name)
{
    return mentions(f->root, name);
}

bool formula_aligns(const formula *f, const char *name)
{
    return aligns(f->root, name);
}

static bool has_bound(node_kind kind)
{
    return kind == NODE_REMAINDER || (kind >= NODE_LESS && kind <= NODE_NOT_EQUAL);
}

static void note_bounds(const evaluation *e, const node *n, const char *name,
                        void (*note)(void *to, uint64_t bound), void *to)
{
    uint64_t bound;
    for (int i = 0; n && i < 3; i++)
        note_bounds(e, n->operand[i], name, note, to);
    for (int i = 0; n && has_bound(n->kind) && i < 2; i++) {
        if (is_name(n->operand[i], name) && number_of(e, n->operand[1 - i], &bound))
            note(to, bound);
    }
}

void formula_note_bounds(const formula *f, const char *name, formula_lookup *lookup, const void *context,
                         void (*note)(void *to, uint64_t bound), void *to)
{
    const evaluation e = {f, lookup, context, NULL, 0};
    note_bounds(&e, f->root, name, note, to);
}

const char *formula_text(const formula *f)
{
    return f->text;
}
