/* PTX text to tokens. */
#ifndef EMU_LEX_H
#define EMU_LEX_H

#include "../support/emu.h"

#include <setjmp.h>

typedef enum emu_token_kind {
    EMU_END,
    EMU_WORD,   /* name, opcode, %register, or _ */
    EMU_DOT,    /* .directive, with its dot and any ::parts */
    EMU_INT,    /* signed or, with is_unsigned, unsigned 64-bit */
    EMU_DOUBLE, /* bits of a double in value */
    EMU_SINGLE, /* 0f........: the bits of a float */
    EMU_STRING,
    EMU_PUNCT,
} emu_token_kind;

typedef struct emu_token {
    emu_token_kind kind;
    bool is_unsigned;
    uint32_t line;
    emu_text text;
    uint64_t value;
} emu_token;

typedef struct emu_lexer {
    const char *at, *end;
    uint32_t line;
    emu_token token; /* the current one */
    emu_log *log;
    jmp_buf *recover; /* where emu_fail jumps to */
} emu_lexer;

void emu_lex_start(emu_lexer *lexer, emu_text source, emu_log *log);
void emu_lex_next(emu_lexer *lexer);
void emu_lex_check_bytes(emu_lexer *lexer); /* Fails if the source has a byte that PTX does not allow. */

/* Reads a ".modifier" that follows the current token without a space; it may begin with a digit. */
bool emu_lex_modifier(emu_lexer *lexer, emu_text *modifier);

bool emu_lex_is(const emu_lexer *lexer, const char *text); /* the current token is this text, no string */
bool emu_lex_accept(emu_lexer *lexer, const char *text);   /* the same, and skips the token */
void emu_lex_expect(emu_lexer *lexer, const char *text);   /* the same, or fails */
emu_text emu_lex_name(emu_lexer *lexer, const char *what); /* reads a word, or fails with "expected <what>" */
emu_text emu_lex_line_text(const emu_lexer *lexer,
                           const char *at); /* the source line that contains `at`, trimmed */

/* Logs an error at the current token, and jumps to lexer->recover. */
_Noreturn void emu_fail(emu_lexer *lexer, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void emu_fail_unsupported(emu_lexer *lexer, const char *what);

#endif
