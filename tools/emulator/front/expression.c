/* Constant expressions (ISA 4.5.4 to 4.5.6): 64-bit integers, signed or unsigned, or doubles. */
#include "parse.h"

#include <string.h>

static double as_double(emu_value v)
{
    double d;
    memcpy(&d, &v.bits, sizeof d);
    return d;
}

static emu_value of_double(double d)
{
    emu_value v = {EMU_VALUE_DOUBLE, 0};
    memcpy(&v.bits, &d, sizeof d);
    return v;
}

static emu_value of_signed(uint64_t bits)
{
    return (emu_value){EMU_VALUE_SIGNED, bits};
}

static bool is_integer(emu_value v)
{
    return v.kind == EMU_VALUE_SIGNED || v.kind == EMU_VALUE_UNSIGNED;
}

static emu_value want_integer(emu_parser *p, emu_value v)
{
    if (!is_integer(v))
        emu_fail(&p->lexer, "expected an integer in this constant expression");
    return v;
}

static emu_value parse_primary(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_token t = l->token;
    emu_value v = {EMU_VALUE_SIGNED, t.value};
    if (t.kind == EMU_INT)
        v.kind = t.is_unsigned ? EMU_VALUE_UNSIGNED : EMU_VALUE_SIGNED;
    else if (t.kind == EMU_DOUBLE)
        v.kind = EMU_VALUE_DOUBLE;
    else if (t.kind == EMU_SINGLE)
        v.kind = EMU_VALUE_SINGLE;
    else if (emu_lex_is(l, "WARP_SZ"))
        v.bits = 32;
    else
        emu_fail(l, "expected a constant, found '%.*s'", EMU_TEXT(t.text));
    emu_lex_next(l);
    return v;
}

static emu_value negate(emu_parser *p, emu_value v)
{
    if (v.kind == EMU_VALUE_SINGLE)
        emu_fail(&p->lexer, "a 0f constant cannot be part of an expression");
    if (v.kind == EMU_VALUE_DOUBLE)
        return of_double(-as_double(v));
    v.bits = 0 - v.bits;
    return v;
}

void emu_go_deeper(emu_parser *p)
{
    if (p->depth == EMU_MAX_DEPTH)
        emu_fail(&p->lexer, "this is nested more than %d deep", EMU_MAX_DEPTH);
    p->depth++;
}

void emu_come_back(emu_parser *p)
{
    p->depth--;
}

static emu_value parse_unary(emu_parser *p);

static emu_value parse_cast(emu_parser *p, bool to_signed)
{
    emu_lex_next(&p->lexer);
    emu_lex_expect(&p->lexer, ")");
    emu_value v = want_integer(p, parse_unary(p));
    v.kind = to_signed ? EMU_VALUE_SIGNED : EMU_VALUE_UNSIGNED;
    return v;
}

static emu_value parse_parenthesis(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    if (emu_lex_is(l, ".s64") || emu_lex_is(l, ".u64"))
        return parse_cast(p, emu_lex_is(l, ".s64"));
    emu_value v = emu_parse_expression(p);
    emu_lex_expect(l, ")");
    return v;
}

static emu_value parse_unary(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_value v;
    emu_go_deeper(p);
    if (emu_lex_accept(l, "+"))
        v = parse_unary(p);
    else if (emu_lex_accept(l, "-"))
        v = negate(p, parse_unary(p));
    else if (emu_lex_accept(l, "!"))
        v = of_signed(!want_integer(p, parse_unary(p)).bits);
    else if (emu_lex_accept(l, "~"))
        v = (emu_value){EMU_VALUE_UNSIGNED, ~want_integer(p, parse_unary(p)).bits};
    else if (emu_lex_accept(l, "("))
        v = parse_parenthesis(p);
    else
        v = parse_primary(p);
    emu_come_back(p);
    return v;
}

typedef struct operator_row {
    const char *text;
    int precedence;
} operator_row;

static const operator_row operators[] = {
    {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {">", 7},
    {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};

static const operator_row *binary_operator(const emu_lexer *l)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (l->token.kind == EMU_PUNCT && emu_text_is(l->token.text, operators[i].text))
            return &operators[i];
    return NULL;
}

static emu_value apply_double(emu_parser *p, const char *op, double a, double b)
{
    switch (op[0]) {
    case '+':
        return of_double(a + b);
    case '-':
        return of_double(a - b);
    case '*':
        return of_double(a * b);
    case '/':
        return of_double(a / b);
    case '<':
        return of_signed(op[1] ? a <= b : a < b);
    case '>':
        return of_signed(op[1] ? a >= b : a > b);
    case '=':
        return of_signed(a == b);
    case '!':
        return of_signed(a != b);
    default:
        emu_fail(&p->lexer, "'%s' takes integers only", op);
    }
}

static uint64_t shift(bool left, emu_value a, uint64_t by)
{
    bool negative = a.kind == EMU_VALUE_SIGNED && (int64_t)a.bits < 0;
    if (by >= 64)
        return !left && negative ? UINT64_MAX : 0;
    if (left)
        return a.bits << by;
    return a.bits >> by | (negative && by ? UINT64_MAX << (64 - by) : 0);
}

static uint64_t divide(bool is_unsigned, uint64_t a, uint64_t b)
{
    if (is_unsigned)
        return a / b;
    return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static emu_value apply_integer(emu_parser *p, const char *op, emu_value a, emu_value b)
{
    bool is_unsigned = a.kind == EMU_VALUE_UNSIGNED || b.kind == EMU_VALUE_UNSIGNED;
    emu_value v = {is_unsigned ? EMU_VALUE_UNSIGNED : EMU_VALUE_SIGNED, 0};
    bool less = is_unsigned ? a.bits < b.bits : (int64_t)a.bits < (int64_t)b.bits;
    if ((op[0] == '/' || op[0] == '%') && b.bits == 0)
        emu_fail(&p->lexer, "division by zero in a constant expression");
    switch (op[0]) {
    case '+':
        v.bits = a.bits + b.bits;
        return v;
    case '-':
        v.bits = a.bits - b.bits;
        return v;
    case '*':
        v.bits = a.bits * b.bits;
        return v;
    case '/':
        v.bits = divide(is_unsigned, a.bits, b.bits);
        return v;
    case '%':
        return of_signed(a.bits % b.bits);
    case '^':
        v.bits = a.bits ^ b.bits;
        return v;
    case '=':
        return of_signed(a.bits == b.bits);
    case '!':
        return of_signed(a.bits != b.bits);
    case '&':
        if (op[1])
            return of_signed(a.bits && b.bits);
        v.bits = a.bits & b.bits;
        return v;
    case '|':
        if (op[1])
            return of_signed(a.bits || b.bits);
        v.bits = a.bits | b.bits;
        return v;
    case '<':
        if (op[1] == '<')
            return (emu_value){a.kind, shift(true, a, b.bits)};
        return of_signed(op[1] ? less || a.bits == b.bits : less);
    default:
        if (op[1] == '>')
            return (emu_value){a.kind, shift(false, a, b.bits)};
        return of_signed(op[1] ? !less : !less && a.bits != b.bits);
    }
}

static emu_value apply(emu_parser *p, const char *op, emu_value a, emu_value b)
{
    if (is_integer(a) && is_integer(b))
        return apply_integer(p, op, a, b);
    if (a.kind == EMU_VALUE_DOUBLE && b.kind == EMU_VALUE_DOUBLE)
        return apply_double(p, op, as_double(a), as_double(b));
    emu_fail(&p->lexer, "'%s' between an integer and a float; a constant expression has one kind", op);
}

static emu_value parse_binary(emu_parser *p, int lowest)
{
    emu_value left = parse_unary(p);
    for (const operator_row *op; (op = binary_operator(&p->lexer)) && op->precedence >= lowest;) {
        emu_lex_next(&p->lexer);
        emu_value right = parse_binary(p, op->precedence + 1);
        left = apply(p, op->text, left, right);
    }
    return left;
}

emu_value emu_parse_expression(emu_parser *p)
{
    emu_value condition = parse_binary(p, 1);
    if (!emu_lex_accept(&p->lexer, "?"))
        return condition;
    want_integer(p, condition);
    emu_go_deeper(p);
    emu_value yes = emu_parse_expression(p);
    emu_lex_expect(&p->lexer, ":");
    emu_value no = emu_parse_expression(p);
    emu_come_back(p);
    if (is_integer(yes) != is_integer(no))
        emu_fail(&p->lexer, "both values of '?:' must be integers, or both floats");
    emu_value v = condition.bits ? yes : no;
    if (yes.kind == EMU_VALUE_UNSIGNED || no.kind == EMU_VALUE_UNSIGNED)
        v.kind = EMU_VALUE_UNSIGNED;
    return v;
}

uint64_t emu_parse_integer(emu_parser *p, const char *what)
{
    emu_value v = emu_parse_expression(p);
    if (!is_integer(v))
        emu_fail(&p->lexer, "expected an integer for %s", what);
    return v.bits;
}

uint64_t emu_parse_literal(emu_parser *p, const char *what)
{
    emu_lexer *l = &p->lexer;
    emu_token t = l->token;
    bool is_warp_size = emu_lex_is(l, "WARP_SZ");
    if (t.kind != EMU_INT && !is_warp_size)
        emu_fail(l, "expected an integer for %s, found '%.*s'", what, EMU_TEXT(t.text));
    emu_lex_next(l);
    return is_warp_size ? 32 : t.value;
}
