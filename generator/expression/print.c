/* Prints the expression language itself, and C. */
#include <inttypes.h>

#include "family/family.h"
#include "node.h"
#include "support/diagnostics.h"

static const operation_row *row(const expression *e)
{
    return &expression_operations[e->operation];
}

/* ---- the language ----------------------------------------------------------------------------------------------- */

static void print(text *out, const expression *e, int precedence);

static void print_call(text *out, const expression *e)
{
    text_printf(out, "%s(", row(e)->text);
    for (int i = 0; i < row(e)->operands; i++) {
        text_add(out, i > 0 ? ", " : "");
        print(out, e->operands[i], 0);
    }
    text_add(out, ")");
}

static void print_bare(text *out, const expression *e)
{
    int precedence = row(e)->precedence;
    if (e->operation == OPERATION_LITERAL) {
        text_printf(out, "%" PRIu64, e->value);
    } else if (e->operation == OPERATION_NAME) {
        text_add(out, e->name);
    } else if (e->operation == OPERATION_IS_WORD || e->operation == OPERATION_IS_NOT_WORD) {
        text_printf(out, "%s%s%s", e->name, row(e)->text, e->word);
    } else if (expression_is_call(e)) {
        print_call(out, e);
    } else if (e->operation == OPERATION_NOT) {
        text_add(out, row(e)->text);
        print(out, e->operands[0], precedence);
    } else {
        print(out, e->operands[0], precedence);
        text_add(out, row(e)->text);
        print(out, e->operands[1], precedence + 1); /* operators group from the left */
    }
}

/* Prints parentheses if e binds less tightly than its context requires. */
static void print(text *out, const expression *e, int precedence)
{
    bool parentheses = row(e)->precedence < precedence;
    text_add(out, parentheses ? "(" : "");
    print_bare(out, e);
    text_add(out, parentheses ? ")" : "");
}

void expression_print(text *out, const expression *e)
{
    print(out, e, 0);
}

/* ---- C ---------------------------------------------------------------------------------------------------------- */

/* The type that a context requires. */
typedef enum c_place {
    C_ANY,    /* a number or a truth value */
    C_NUMBER, /* a uint64_t: truth values and narrow arguments are cast, literals get a suffix */
    C_BESIDE, /* the other operand is a uint64_t, which widens a plain literal */
    C_TRUTH   /* a condition */
} c_place;

typedef struct c_printer {
    text *out;
    const char *prefix, *device;
    bool is_double; /* numbers are doubles, quotients at least the integer quotients */
} c_printer;

static void print_c(const c_printer *p, const expression *e, c_place where, int precedence);

static bool is_wide(const kiln_arg *arg)
{
    return arg->kind != KILN_ARG_VALUE || (arg->type[0] == 'u' && arg->type[1] == '6');
}

/* The member of the argument struct. */
static void print_c_member(const c_printer *p, const expression *e)
{
    const kiln_family *family = e->source->family;
    const size_t group = arg_group_length(family, &family->args[e->index]);
    text_printf(p->out, "%s%.*s%s%s", p->prefix, (int)group, e->name, group > 0 ? "." : "",
                e->name + group + (group > 0));
}

static void print_c_name(const c_printer *p, const expression *e)
{
    const kiln_family *family = e->source->family;
    text_add(p->out, p->is_double ? "(double)" : "");
    if (e->kind == NAME_ARG) {
        const bool is_plain = p->is_double && family->args[e->index].type[0] == 'u';
        text_add(p->out, is_plain || is_wide(&family->args[e->index]) ? "" : "(uint64_t)");
        print_c_member(p, e);
    } else if (e->kind == NAME_DEVICE)
        text_printf(p->out, "(uint64_t)%s%s", p->device, e->name);
    else
        internal_error("family %s: expression \"%s\": '%s' is printed as C before it is bound", family->name,
                       e->source->text, e->name);
}

static void print_c_literal(const c_printer *p, uint64_t value, c_place where)
{
    bool plain = where == C_BESIDE && value <= INT32_MAX;
    if (p->is_double)
        text_printf(p->out, "%" PRIu64 ".0", value);
    else
        text_printf(p->out, plain ? "%" PRIu64 : "UINT64_C(%" PRIu64 ")", value);
}

/* Whether a divisor may be 0 through a family's mistake, which must not end the application: the result is then 0. */
static bool may_divide_by_zero(const expression *e)
{
    return (e->operation == OPERATION_DIVIDE || e->operation == OPERATION_REMAINDER) &&
           e->operands[1]->operation != OPERATION_LITERAL;
}

const expression_function expression_functions[] = {{"uint64_t", "ceil_div", "b ? a / b + (a % b != 0) : 0"},
                                                    {"uint64_t", "quotient", "b ? a / b : 0"},
                                                    {"uint64_t", "remainder_of", "b ? a % b : 0"},
                                                    {"uint64_t", "minimum", "a < b ? a : b"},
                                                    {"uint64_t", "maximum", "a > b ? a : b"},
                                                    {"double", "smaller", "a < b ? a : b"},
                                                    {"double", "larger", "a > b ? a : b"},
                                                    {NULL, NULL, NULL}};

static void print_c_call(const c_printer *p, const expression *e)
{
    static const char *const names[] = {[OPERATION_CEIL_DIV] = "ceil_div(",
                                        [OPERATION_MIN] = "minimum(",
                                        [OPERATION_MAX] = "maximum(",
                                        [OPERATION_DIVIDE] = "quotient(",
                                        [OPERATION_REMAINDER] = "remainder_of("};
    text_add(p->out,
             p->is_double ? e->operation == OPERATION_MAX ? "larger(" : "smaller(" : names[e->operation]);
    print_c(p, e->operands[0], C_BESIDE, 0); /* the function's prototype widens the argument */
    text_add(p->out, ", ");
    print_c(p, e->operands[1], C_BESIDE, 0);
    text_add(p->out, ")");
}

static void print_c_select(const c_printer *p, const expression *e)
{
    text_add(p->out, "(");
    print_c(p, e->operands[0], C_TRUTH, 0);
    text_add(p->out, " ? ");
    print_c(p, e->operands[1], C_NUMBER, 0);
    text_add(p->out, " : ");
    print_c(p, e->operands[2], C_NUMBER, 0);
    text_add(p->out, ")");
}

static void print_c_aligned(const c_printer *p, const expression *e)
{
    text_add(p->out, "(");
    print_c(p, e->operands[0], C_NUMBER, 7);
    text_add(p->out, " % ");
    print_c(p, e->operands[1], C_BESIDE, 8);
    text_add(p->out, " == 0)");
}

static void print_c_binary(const c_printer *p, const expression *e)
{
    bool logical = e->operation == OPERATION_AND || e->operation == OPERATION_OR;
    int precedence = row(e)->precedence;
    for (int i = 0; i < 2; i++) {
        const expression *operand = e->operands[i], *other = e->operands[1 - i];
        int asked = precedence + i;
        if (e->operation == OPERATION_OR && operand->operation == OPERATION_AND)
            asked = HIGHEST_PRECEDENCE; /* compilers warn of && within || */
        c_place beside = other->operation == OPERATION_LITERAL ? C_NUMBER : C_BESIDE;
        text_add(p->out, i > 0 ? row(e)->text : "");
        print_c(p, operand, logical ? C_TRUTH : beside, asked);
    }
}

/* "a / b + 1.0"; infinite or a NaN if b is 0. */
static void print_c_ceil_div(const c_printer *p, const expression *e)
{
    text_add(p->out, "(");
    print_c(p, e->operands[0], C_NUMBER, 7);
    text_add(p->out, " / ");
    print_c(p, e->operands[1], C_NUMBER, 8);
    text_add(p->out, " + 1.0)");
}

static void print_c_bare(const c_printer *p, const expression *e, c_place where)
{
    if (p->is_double && e->operation == OPERATION_CEIL_DIV) {
        print_c_ceil_div(p, e);
        return;
    }
    if (p->is_double && e->operation == OPERATION_REMAINDER) {
        print_c_call(p, e); /* the smaller operand is an upper bound */
        return;
    }
    if (p->is_double && e->operation == OPERATION_ALIGNED) {
        print_c_aligned(&(c_printer){p->out, p->prefix, p->device, false}, e);
        return;
    }
    if (!p->is_double && may_divide_by_zero(e)) {
        print_c_call(p, e);
        return;
    }
    switch (e->operation) {
    case OPERATION_LITERAL:
        print_c_literal(p, e->value, where);
        break;
    case OPERATION_NAME:
        print_c_name(p, e);
        break;
    case OPERATION_NOT:
        text_add(p->out, "!");
        print_c(p, e->operands[0], C_TRUTH, row(e)->precedence);
        break;
    case OPERATION_CEIL_DIV:
    case OPERATION_MIN:
    case OPERATION_MAX:
        print_c_call(p, e);
        break;
    case OPERATION_SELECT:
        print_c_select(p, e);
        break;
    case OPERATION_ALIGNED:
        print_c_aligned(p, e);
        break;
    case OPERATION_GIVEN:
        text_add(p->out, "(");
        print_c_member(p, e->operands[0]);
        text_add(p->out, " != 0)");
        break;
    case OPERATION_NEGATIVE: /* a NaN counts as negative */
        text_add(p->out, "!(");
        print_c_member(p, e->operands[0]);
        text_add(p->out, " >= 0)");
        break;
    case OPERATION_FINITE: /* x - x is 0; of a NaN or an infinity, a NaN */
        text_add(p->out, "(");
        print_c_member(p, e->operands[0]);
        text_add(p->out, " - ");
        print_c_member(p, e->operands[0]);
        text_add(p->out, " >= 0)");
        break;
    case OPERATION_IS_WORD:
    case OPERATION_IS_NOT_WORD:
        print_c_name(p, e);
        break; /* an internal error: words are bound first */
    default:
        print_c_binary(p, e);
        break;
    }
}

static void print_c(const c_printer *p, const expression *e, c_place where, int precedence)
{
    bool cast = expression_is_truth(e) && (where == C_NUMBER || where == C_BESIDE);
    bool compare = !expression_is_truth(e) && where == C_TRUTH;
    int own = compare ? 4 : cast ? 8 : row(e)->precedence;
    bool parentheses = own < precedence;
    text_add(p->out, parentheses ? "(" : "");
    text_add(p->out, !cast ? "" : p->is_double ? "(double)" : "(uint64_t)");
    bool inner = cast && row(e)->precedence < 8;
    text_add(p->out, inner ? "(" : "");
    if (compare && row(e)->precedence < 5)
        internal_error("a number that binds less tightly than a comparison");
    print_c_bare(p, e, compare ? C_NUMBER : where);
    text_add(p->out, inner ? ")" : "");
    text_add(p->out, compare ? " != 0" : "");
    text_add(p->out, parentheses ? ")" : "");
}

void expression_print_c(text *out, const expression *e, const char *prefix, const char *device)
{
    c_printer p = {out, prefix, device, false};
    print_c(&p, e, C_ANY, 0);
}

void expression_print_c_double(text *out, const expression *e, const char *prefix, const char *device)
{
    c_printer p = {out, prefix, device, true};
    print_c(&p, e, C_NUMBER, 0);
}
