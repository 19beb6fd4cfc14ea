/* Changes to one instruction of a PTX text that make it wrong, by kind. */
#ifndef VERIFY_MUTATE_H
#define VERIFY_MUTATE_H

#include "text.h"

typedef enum mutation_kind {
    MUTATE_OPERATION,
    MUTATE_COMPARISON,
    MUTATE_OPERAND,
    MUTATE_REGISTER,
    MUTATE_IMMEDIATE,
    MUTATE_ADDRESS,
    MUTATE_GUARD,
    MUTATE_DROP,
    MUTATE_BARRIER,
    MUTATE_FENCE,
    MUTATE_WAIT,
    MUTATE_LANES,
    MUTATE_ROUNDING,
    MUTATE_QUALIFIER,
    MUTATE_BRANCH,
    MUTATION_KINDS
} mutation_kind;

const char *mutation_name(mutation_kind kind);

/* A replacement of bytes of the text. */
typedef struct mutation {
    text_span span;
    char text[64];
} mutation;

/* Returns how many changes of a kind an instruction has. */
size_t mutation_count(const ptx_text *t, const ptx_function *f, const ptx_statement *s, mutation_kind kind);

/* Returns the wanted-th of them, from 0. */
mutation mutation_at(const ptx_text *t, const ptx_function *f, const ptx_statement *s, mutation_kind kind,
                     size_t wanted);

/* Returns the whole changed text, NUL-terminated. */
char *mutation_apply(const ptx_text *t, const mutation *m, pool *memory);

#endif
