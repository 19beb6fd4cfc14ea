/* Long texts over several lines. */
#include "wrap.h"

#include <stdbool.h>
#include <string.h>

enum { WIDTH = 120 };

static void add(wrapper *w, const char *s, size_t length)
{
    text_add_bytes(w->out, s, length);
    w->column += length;
}

static void begin_line(wrapper *w, size_t indent)
{
    text_add(w->out, "\n");
    w->column = 0;
    wrap_move(w, indent);
}

void wrap_move(wrapper *w, size_t column)
{
    if (w->column > column)
        begin_line(w, 0);
    while (w->column < column)
        add(w, " ", 1);
}

void wrap_prose(wrapper *w, const char *prose)
{
    size_t indent = w->column;
    while (*prose) {
        size_t length = strcspn(prose, " ");
        if (w->column > indent && w->column + 1 + length > WIDTH)
            begin_line(w, indent);
        else if (w->column > indent)
            add(w, " ", 1);
        add(w, prose, length);
        prose += length + strspn(prose + length, " ");
    }
}

/* ---- expressions ------------------------------------------------------------------------------------------------ */

/* Separators of a row bind alike, loosest first. A comma stays at the end of its line, an operator starts the next. */
static const char *const separators[][7] = {
    {", "},         {" || "},
    {" && "},       {" == ", " != ", " <= ", " >= ", " < ", " > "},
    {" + ", " - "}, {" * ", " / ", " % "},
};
enum { LEVELS = sizeof separators / sizeof separators[0], COMMA = 0 };

/* A part of an expression, and the length of what must follow it on its last line. */
typedef struct part {
    const char *at;
    size_t length, after;
} part;

static bool starts_separator(const char *at, size_t length, size_t level)
{
    for (const char *const *s = separators[level]; *s; s++)
        if (strlen(*s) <= length && memcmp(at, *s, strlen(*s)) == 0)
            return true;
    return false;
}

static bool opens(char c)
{
    return c == '(' || c == '[';
}

static bool closes(char c)
{
    return c == ')' || c == ']';
}

/* The length of the first piece, split at separators of this level, without the space after it. */
static size_t piece_length(part p, size_t level)
{
    size_t depth = 0;
    for (size_t i = 0; i < p.length; i++) {
        depth += opens(p.at[i]);
        depth -= closes(p.at[i]);
        if (depth == 0 && starts_separator(p.at + i, p.length - i, level))
            return i + (level == COMMA);
    }
    return p.length;
}

static void lay_out(wrapper *w, part p, size_t indent);

/* Fills lines with pieces; a piece that does not fit gets its own lines, indented deeper than an operator of this
 * level. */
static void lay_out_pieces(wrapper *w, part p, size_t level, size_t indent)
{
    size_t deeper = level == COMMA ? indent : indent + 2;
    for (bool is_first = true, is_broken = false; p.length > 0; is_first = false) {
        size_t length = piece_length(p, level);
        part piece = {p.at, length, length == p.length ? p.after : 0};
        if (!is_first && !is_broken && w->column + 1 + length + piece.after <= WIDTH)
            add(w, " ", 1);
        else if (!is_first)
            begin_line(w, indent);
        is_broken = w->column + length + piece.after > WIDTH;
        if (is_broken && !is_first && level != COMMA) {
            size_t sign = strcspn(piece.at, " ") + 1;
            add(w, piece.at, sign);
            piece.at += sign;
            piece.length -= sign;
            deeper = w->column;
        }
        lay_out(w, piece, deeper);
        length += length < p.length; /* the space */
        p.at += length;
        p.length -= length;
    }
}

/* "name(...)", with anything that follows it. */
static void lay_out_call(wrapper *w, part p)
{
    size_t open = 0, depth = 1;
    while (open < p.length && !opens(p.at[open]))
        open++;
    size_t close = open + 1;
    while (close < p.length && (depth = depth + opens(p.at[close]) - closes(p.at[close])) > 0)
        close++;
    if (close >= p.length) {
        add(w, p.at, p.length);
        return;
    }
    add(w, p.at, open + 1);
    lay_out(w, (part){p.at + open + 1, close - open - 1, p.length - close + p.after}, w->column);
    add(w, p.at + close, p.length - close);
}

/* Lays out from here; later lines start at `indent`. */
static void lay_out(wrapper *w, part p, size_t indent)
{
    size_t level = 0;
    if (w->column + p.length + p.after <= WIDTH) {
        add(w, p.at, p.length);
        return;
    }
    while (level < LEVELS && piece_length(p, level) == p.length)
        level++;
    if (level < LEVELS)
        lay_out_pieces(w, p, level, indent);
    else
        lay_out_call(w, p);
}

void wrap_expression(wrapper *w, const char *expression)
{
    lay_out(w, (part){expression, strlen(expression), 0}, w->column);
}
