/* The internals of an expression, for the files that parse, evaluate and print it. */
#ifndef EXPRESSION_NODE_H
#define EXPRESSION_NODE_H

#include <setjmp.h>

#include "expression.h"

/* clang-format off */
/* Precedence as in C, higher binds tighter. A truth value is 0 or 1. Text is the infix or prefix operator, or the name
 * before "(".
 *
 *  operation      text            operands  precedence  truth */
#define EXPRESSION_OPERATIONS(X)                                                                                       \
    X(LITERAL,     "",             0,        9,          0)                                                            \
    X(NAME,        "",             0,        9,          0)                                                            \
    X(IS_WORD,     " == ",         0,        4,          1)                                                            \
    X(IS_NOT_WORD, " != ",         0,        4,          1)                                                            \
    X(NOT,         "!",            1,        8,          1)                                                            \
    X(MULTIPLY,    " * ",          2,        7,          0)                                                            \
    X(DIVIDE,      " / ",          2,        7,          0)                                                            \
    X(REMAINDER,   " % ",          2,        7,          0)                                                            \
    X(ADD,         " + ",          2,        6,          0)                                                            \
    X(SUBTRACT,    " - ",          2,        6,          0)                                                            \
    X(LESS_EQUAL,  " <= ",         2,        5,          1)                                                            \
    X(GREATER_EQUAL, " >= ",       2,        5,          1)                                                            \
    X(LESS,        " < ",          2,        5,          1)                                                            \
    X(GREATER,     " > ",          2,        5,          1)                                                            \
    X(EQUAL,       " == ",         2,        4,          1)                                                            \
    X(NOT_EQUAL,   " != ",         2,        4,          1)                                                            \
    X(AND,         " && ",         2,        3,          1)                                                            \
    X(OR,          " || ",         2,        2,          1)                                                            \
    X(CEIL_DIV,    "ceil_div",     2,        9,          0)                                                            \
    X(MIN,         "min",          2,        9,          0)                                                            \
    X(MAX,         "max",          2,        9,          0)                                                            \
    X(SELECT,      "select",       3,        9,          0)                                                            \
    X(ALIGNED,     "aligned",      2,        9,          1)                                                            \
    X(GIVEN,       "given",        1,        9,          1)                                                            \
    X(NEGATIVE,    "negative",     1,        9,          1)                                                            \
    X(FINITE,      "finite",       1,        9,          1)
/* clang-format on */

typedef enum operation {
#define X(name, text, operands, precedence, truth) OPERATION_##name,
    EXPRESSION_OPERATIONS(X)
#undef X
        OPERATION_COUNT
} operation;

enum { HIGHEST_PRECEDENCE = 9 };

typedef struct operation_row {
    const char *text;
    int operands, precedence;
    bool is_truth;
} operation_row;

extern const operation_row expression_operations[OPERATION_COUNT];

/* Where a user's mistake jumps to: the caller of expression_try. */
typedef struct expression_trap {
    jmp_buf back;
    const char *why;
} expression_trap;

/* The source text, for error messages: family_error if there is no trap. */
typedef struct expression_source {
    const kiln_family *family;
    const char *text;
    expression_trap *trap;
} expression_source;

_Noreturn void expression_fail(const expression_source *source, const char *what);

struct expression {
    operation operation;
    const expression_source *source;
    const expression *operands[3];
    uint64_t value;   /* LITERAL */
    const char *name; /* NAME, IS_WORD, IS_NOT_WORD: of the parameter, argument or property */
    const char *word; /* IS_WORD, IS_NOT_WORD */
    name_kind kind;   /* NAME */
    size_t index;     /* of the parameter or argument in its family's list */
};

/* A number that counts as written where `from` is. */
const expression *expression_literal(arena *a, const expression *from, uint64_t value);

static inline bool expression_is_call(const expression *e)
{
    return e->operation >= OPERATION_CEIL_DIV;
}

static inline bool expression_is_truth(const expression *e)
{
    return expression_operations[e->operation].is_truth;
}

#endif
