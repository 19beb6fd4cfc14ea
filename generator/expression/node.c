/* The table of operations, and the handling of mistakes. */
#include "node.h"

#include "family/family.h"

const operation_row expression_operations[OPERATION_COUNT] = {
#define X(name, text, operands, precedence, truth) {text, operands, precedence, truth},
    EXPRESSION_OPERATIONS(X)
#undef X
};

void expression_fail(const expression_source *source, const char *what)
{
    if (source->trap) {
        source->trap->why = what;
        longjmp(source->trap->back, 1);
    }
    family_error("family %s: expression \"%s\": %s", source->family->name, source->text, what);
}

const expression *expression_literal(arena *a, const expression *from, uint64_t value)
{
    expression *e = arena_alloc(a, sizeof *e);
    e->operation = OPERATION_LITERAL;
    e->source = from->source;
    e->value = value;
    return e;
}
