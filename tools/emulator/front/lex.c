/* PTX text to tokens (ISA 4.1 to 4.5): see lex.h. */
#include "lex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_follow(char c)
{
    return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

static char peek(const emu_lexer *l, size_t ahead)
{
    return (size_t)(l->end - l->at) > ahead ? l->at[ahead] : '\0';
}

emu_text emu_lex_line_text(const emu_lexer *l, const char *at)
{
    enum { MOST = 200 };
    const char *from = at;
    /* ends at the latest at the newline before the source */
    while (from[-1] != '\n' && from[-1] != '\0' && at - from < MOST)
        from--;
    if (at - from == MOST) /* a long line: shows only the part around `at` */
        from = at - MOST / 2;
    const char *to = from;
    while (to < l->end && *to != '\n' && *to != '\0' && to - at < MOST)
        to++;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    if (to - from > MOST)
        to = from + MOST;
    return (emu_text){from, (size_t)(to - from)};
}

_Noreturn void emu_fail(emu_lexer *l, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    emu_log_error(l->log, l->token.line, emu_lex_line_text(l, l->token.text.at), "%s", message);
    longjmp(*l->recover, 1);
}

_Noreturn void emu_fail_unsupported(emu_lexer *l, const char *what)
{
    emu_log_unsupported(l->log, l->token.line, emu_lex_line_text(l, l->token.text.at), "%s", what);
    longjmp(*l->recover, 1);
}

void emu_lex_check_bytes(emu_lexer *l)
{
    uint32_t line = 1;
    for (const char *at = l->at; at < l->end; at++) {
        line += *at == '\n';
        if ((unsigned char)*at < 0x80)
            continue;
        l->token = (emu_token){.line = line, .text = {at, 1}};
        emu_fail(l, "byte 0x%02X is not ASCII; all PTX must be, comments included", (unsigned char)*at);
    }
}

static void skip_comment(emu_lexer *l)
{
    if (peek(l, 1) == '/') {
        while (l->at < l->end && *l->at != '\n')
            l->at++;
        return;
    }
    const char *from = l->at;
    l->at += 2;
    while (l->at < l->end && !(l->at[0] == '*' && peek(l, 1) == '/')) {
        l->line += *l->at == '\n';
        l->at++;
    }
    if (l->at == l->end) {
        l->token = (emu_token){.line = l->line, .text = {from, 2}};
        emu_fail(l, "this comment is never closed");
    }
    l->at += 2;
}

static void skip_space(emu_lexer *l)
{
    while (l->at < l->end) {
        char c = *l->at;
        if (c == '\n')
            l->line++;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f')
            l->at++;
        else if (c == '/' && (peek(l, 1) == '/' || peek(l, 1) == '*'))
            skip_comment(l);
        else
            return;
    }
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static void lex_radix(emu_lexer *l, int radix)
{
    uint64_t value = 0;
    const char *from = l->at;
    for (; hex_digit(peek(l, 0)) < radix; l->at++) {
        if (value > (UINT64_MAX - (uint64_t)hex_digit(*l->at)) / (uint64_t)radix)
            emu_fail(l, "this number does not fit 64 bits");
        value = value * (uint64_t)radix + (uint64_t)hex_digit(*l->at);
    }
    if (l->at == from && radix != 8)
        emu_fail(l, "digits expected after the number's prefix");
    l->token.kind = EMU_INT;
    l->token.value = value;
    l->token.is_unsigned = value > INT64_MAX;
    if (peek(l, 0) == 'U') {
        l->token.is_unsigned = true;
        l->at++;
    }
}

static void lex_exact_float(emu_lexer *l, int digits)
{
    l->at += 2;
    l->token.value = 0;
    for (int i = 0; i < digits; i++, l->at++) {
        if (hex_digit(peek(l, 0)) > 15)
            emu_fail(l, "expected %d hex digits after 0%c", digits, digits == 8 ? 'f' : 'd');
        l->token.value = l->token.value << 4 | (uint64_t)hex_digit(*l->at);
    }
    l->token.kind = digits == 8 ? EMU_SINGLE : EMU_DOUBLE;
}

static void lex_decimal_float(emu_lexer *l, size_t size)
{
    char text[128];
    if (size >= sizeof text)
        emu_fail(l, "this number is too long");
    memcpy(text, l->at, size);
    text[size] = '\0';
    errno = 0;
    double value = strtod(text, NULL); /* does not depend on the locale: the load runs in the C locale */
    if (errno == ERANGE)
        emu_fail(l, "%s is outside the range of normal doubles", text);
    memcpy(&l->token.value, &value, sizeof value);
    l->token.kind = EMU_DOUBLE;
    l->at += size;
}

/* The length of the literal at l->at if it has a fraction or an exponent; 0 if it is an integer. */
static size_t decimal_float_size(const emu_lexer *l)
{
    size_t n = 0;
    bool is_float = false;
    while (is_digit(peek(l, n)))
        n++;
    if (peek(l, n) == '.') {
        is_float = true;
        for (n++; is_digit(peek(l, n));)
            n++;
    }
    if (peek(l, n) == 'e' || peek(l, n) == 'E') {
        size_t e = n + 1;
        if (peek(l, e) == '+' || peek(l, e) == '-')
            e++;
        if (is_digit(peek(l, e))) {
            is_float = true;
            for (n = e; is_digit(peek(l, n));)
                n++;
        }
    }
    return is_float ? n : 0;
}

static void lex_number(emu_lexer *l)
{
    char second = peek(l, 1);
    size_t float_size = decimal_float_size(l);
    if (*l->at == '0' && (second == 'f' || second == 'F')) {
        lex_exact_float(l, 8);
    } else if (*l->at == '0' && (second == 'd' || second == 'D')) {
        lex_exact_float(l, 16);
    } else if (*l->at == '0' && (second == 'x' || second == 'X')) {
        l->at += 2;
        lex_radix(l, 16);
    } else if (*l->at == '0' && (second == 'b' || second == 'B')) {
        l->at += 2;
        lex_radix(l, 2);
    } else if (float_size) {
        lex_decimal_float(l, float_size);
    } else {
        lex_radix(l, *l->at == '0' ? 8 : 10);
    }
    if (is_follow(peek(l, 0)))
        emu_fail(l, "'%c' cannot follow a number", peek(l, 0));
}

static void lex_string(emu_lexer *l)
{
    const char *from = ++l->at;
    while (l->at < l->end && *l->at != '"' && *l->at != '\n')
        l->at += *l->at == '\\' && l->at + 1 < l->end ? 2 : 1;
    if (l->at >= l->end || *l->at != '"')
        emu_fail(l, "this string is never closed");
    l->token.kind = EMU_STRING;
    l->token.text = (emu_text){from, (size_t)(l->at - from)};
    l->at++;
}

static size_t dotted_size(const emu_lexer *l)
{
    size_t n = 1;
    while (is_follow(peek(l, n)) || (peek(l, n) == ':' && peek(l, n + 1) == ':' && is_follow(peek(l, n + 2))))
        n += peek(l, n) == ':' ? 2 : 1;
    return n;
}

bool emu_lex_modifier(emu_lexer *l, emu_text *modifier)
{
    if (peek(l, 0) != '.')
        return false;
    size_t size = dotted_size(l);
    *modifier = (emu_text){l->at + 1, size - 1};
    l->at += size;
    return true;
}

static size_t punct_size(const emu_lexer *l)
{
    static const char *const pairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (peek(l, 0) == pairs[i][0] && peek(l, 1) == pairs[i][1])
            return 2;
    return 1;
}

/* A directive or a modifier: .entry, .f32, or .1d of textures. */
static bool is_dotted(const emu_lexer *l)
{
    return peek(l, 0) == '.' && (is_letter(peek(l, 1)) || (is_digit(peek(l, 1)) && peek(l, 2) == 'd'));
}

void emu_lex_next(emu_lexer *l)
{
    skip_space(l);
    l->token = (emu_token){.line = l->line, .text = {l->at, 0}};
    char c = peek(l, 0);
    if (c == '\0') {
        l->token.kind = EMU_END;
        return;
    }
    const char *from = l->at;
    if (is_dotted(l)) {
        l->token.kind = EMU_DOT;
        l->at += dotted_size(l);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(l, 1)))) {
        lex_number(l);
    } else if (is_letter(c) || c == '_' || c == '$' || c == '%') {
        l->token.kind = EMU_WORD;
        for (l->at++; is_follow(peek(l, 0));)
            l->at++;
        if (c == '%' && l->at - from == 1)
            l->token.kind = EMU_PUNCT; /* remainder */
    } else if (c == '"') {
        lex_string(l);
        return;
    } else {
        l->token.kind = EMU_PUNCT;
        l->at += punct_size(l);
    }
    l->token.text = (emu_text){from, (size_t)(l->at - from)};
}

void emu_lex_start(emu_lexer *l, emu_text source, emu_log *log)
{
    *l = (emu_lexer){
        .at = source.at, .end = source.at + source.size, .line = 1, .log = log, .recover = l->recover};
    l->token = (emu_token){.line = 1, .text = {source.at, 0}};
}

bool emu_lex_is(const emu_lexer *l, const char *text)
{
    return l->token.kind != EMU_STRING && emu_text_is(l->token.text, text);
}

bool emu_lex_accept(emu_lexer *l, const char *text)
{
    if (!emu_lex_is(l, text))
        return false;
    emu_lex_next(l);
    return true;
}

static void fail_expected(emu_lexer *l, const char *what)
{
    if (l->token.kind == EMU_END)
        emu_fail(l, "expected %s, found the end of the text", what);
    emu_fail(l, "expected %s, found '%.*s'", what, EMU_TEXT(l->token.text));
}

void emu_lex_expect(emu_lexer *l, const char *text)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", text);
    if (!emu_lex_accept(l, text))
        fail_expected(l, quoted);
}

emu_text emu_lex_name(emu_lexer *l, const char *what)
{
    if (l->token.kind != EMU_WORD || emu_lex_is(l, "_") || emu_lex_is(l, "$") || emu_lex_is(l, "WARP_SZ"))
        fail_expected(l, what);
    emu_text name = l->token.text;
    emu_lex_next(l);
    return name;
}
