/* Cuts a PTX text into functions and statements, as far as changing a word requires. It accepts PTX from any
 * compiler, and leaves what it does not understand unchanged. */
#ifndef VERIFY_MUTATE_TEXT_H
#define VERIFY_MUTATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../support/pool.h"

typedef struct text_span {
    size_t at, length; /* in the text */
} text_span;

/* One instruction: "@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+8];" */
typedef struct ptx_statement {
    text_span whole; /* including its semicolon */
    text_span guard; /* "@!%p1"; length 0: none */
    text_span opcode;
    text_span *operands; /* separated by commas: "{%r1, %r2}" is one operand */
    size_t operand_count;
} ptx_statement;

/* ".reg .b32 %r<9>": %r0 to %r8. */
typedef struct ptx_registers {
    text_span name;
    text_span type;
    uint64_t count; /* 0: one register with this name */
} ptx_registers;

typedef struct ptx_function {
    text_span name;
    bool is_entry;
    text_span body;
    ptx_statement *statements;
    size_t statement_count;
    ptx_registers *registers;
    size_t register_count;
    text_span *labels;
    size_t label_count;
} ptx_function;

typedef struct ptx_text {
    const char *bytes;
    size_t length;
    ptx_function *functions; /* with a body */
    size_t function_count;
} ptx_text;

/* Reads a text. `bytes` must end with a NUL and stay valid; everything else lives in the pool. */
void ptx_text_read(ptx_text *t, const char *bytes, size_t length, pool *memory);

/* Finds the next word after `from` that could be a name ("%r1", "$L__BB0_2", "param_n"); false: none before `end`. */
bool ptx_text_next_name(const ptx_text *t, size_t from, size_t end, text_span *name);

/* Returns the declaration of a register; null: the name is not a register. */
const ptx_registers *ptx_text_register(const ptx_text *t, const ptx_function *f, text_span name);

bool ptx_text_is(const ptx_text *t, text_span span, const char *word);
bool ptx_text_same(const ptx_text *t, text_span a, text_span b);

/* Returns the line, counted from 1. */
size_t ptx_text_line(const ptx_text *t, size_t at);

#endif
