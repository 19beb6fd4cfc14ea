/* The part of the Itanium C++ ABI's mangling ("<encoding>", "<name>", "<type>", "<template-args>") that leads to the
 * name of a function. Among expressions in template arguments it knows addresses and names; a symbol with others is not
 * demangled. */
#include "mangled.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 1000, DEEPEST = 100 };

typedef struct reader {
    arena *arena;
    const char *at;
    int depth;
} reader;

static bool skip_type(reader *r);
static bool skip_template(reader *r);
static bool skip_nested(reader *r, const char **name);

static bool accept(reader *r, const char *letters)
{
    const size_t length = strlen(letters);
    if (strncmp(r->at, letters, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* <source-name>: a length and that many characters; ABI tags may follow. Null if there is none here. */
static const char *take_source_name(reader *r)
{
    size_t length = 0;
    const char *c = r->at;
    for (; is_digit(*c) && length < LONGEST; c++)
        length = 10 * length + (size_t)(*c - '0');
    if (length == 0 || strlen(c) < length)
        return NULL;
    r->at = c + length;
    const char *name = arena_string(r->arena, c, length);
    while (accept(r, "B"))
        if (!take_source_name(r))
            return NULL;
    return name;
}

/* A sequence number and its end: "_", "0_", "1A_". */
static bool skip_sequence(reader *r)
{
    while (is_digit(*r->at) || (*r->at >= 'A' && *r->at <= 'Z'))
        r->at++;
    return accept(r, "_");
}

/* <substitution>, after its S: std's abbreviations, and earlier components. */
static bool skip_substitution(reader *r)
{
    if (*r->at && strchr("tabsiod", *r->at)) {
        r->at++;
        return true;
    }
    return skip_sequence(r);
}

/* Closures, after "Ul", and unnamed types, after "Ut". */
static bool skip_unnamed(reader *r, bool is_closure)
{
    while (is_closure && !accept(r, "E"))
        if (!skip_type(r))
            return false;
    return skip_sequence(r);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* After N, up to its E. The last name is the function's or type's own; a substitution may replace it. */
static bool skip_nested(reader *r, const char **name)
{
    r->at += strspn(r->at, "rVKRO");
    for (*name = NULL; !accept(r, "E");) {
        accept(r, "L"); /* internal linkage */
        bool is_skipped;
        if (accept(r, "I"))
            is_skipped = skip_template(r);
        else if (accept(r, "S"))
            is_skipped = skip_substitution(r);
        else if (accept(r, "T"))
            is_skipped = skip_sequence(r);
        else if (accept(r, "Ul") || accept(r, "Ut"))
            is_skipped = skip_unnamed(r, r->at[-1] == 'l');
        else
            is_skipped = (*name = take_source_name(r)) != NULL;
        if (!is_skipped)
            return false;
    }
    return true;
}

/* A function or variable, and the types of a function's parameters, up to but not including an E. */
static bool skip_encoding(reader *r)
{
    const char *name;
    if (accept(r, "N")) {
        if (!skip_nested(r, &name))
            return false;
    } else {
        accept(r, "L");
        if (!take_source_name(r) || (accept(r, "I") && !skip_template(r)))
            return false;
    }
    while (*r->at != 'E')
        if (!skip_type(r))
            return false;
    return true;
}

/* After Z: an entity within a function. */
static bool skip_local(reader *r)
{
    const char *name;
    if (!skip_encoding(r) || !accept(r, "E"))
        return false;
    if (accept(r, "Ul") || accept(r, "Ut"))
        return skip_unnamed(r, r->at[-1] == 'l');
    if (!(accept(r, "N") ? skip_nested(r, &name) : take_source_name(r) != NULL))
        return false;
    if (accept(r, "__"))
        return skip_sequence(r);
    if (accept(r, "_"))
        r->at += is_digit(*r->at);
    return true;
}

/* ---- types and template arguments --------------------------------------------------------------------------------- */

/* After D. */
static bool skip_long_type(reader *r)
{
    if (accept(r, "p"))
        return skip_type(r);
    if (accept(r, "v") || accept(r, "F")) { /* a vector and its length; a float and its bits */
        const bool is_vector = r->at[-1] == 'v';
        return skip_sequence(r) && (!is_vector || skip_type(r));
    }
    if (accept(r, "o")) /* a function that does not throw */
        return skip_type(r);
    return *r->at && strchr("defhisuacn", *r->at++);
}

static bool skip_types(reader *r) /* up to and including E */
{
    while (!accept(r, "E"))
        if (!skip_type(r))
            return false;
    return true;
}

static bool skip_plain_type(reader *r)
{
    const char c = *r->at, *name;
    if (is_digit(c))
        return take_source_name(r) != NULL;
    if (!c)
        return false;
    r->at++;
    switch (c) {
    case 'N':
        return skip_nested(r, &name);
    case 'Z':
        return skip_local(r);
    case 'S':
        return skip_substitution(r) && (r->at[-1] != 't' || take_source_name(r));
    case 'T':
        return skip_sequence(r);
    case 'F':
        accept(r, "Y");
        return skip_types(r);
    case 'A':
        return skip_sequence(r) && skip_type(r);
    case 'M':
        return skip_type(r) && skip_type(r);
    case 'D':
        return skip_long_type(r);
    case 'U':
        return take_source_name(r) && skip_type(r);
    case 'u':
        return take_source_name(r);
    default:
        return strchr("vwbcahstijlmxynofdegz", c);
    }
}

static bool skip_type(reader *r)
{
    if (++r->depth > DEEPEST)
        return false;
    r->at += strspn(r->at, "rVKPROCG");
    const bool is_skipped = skip_plain_type(r) && (!accept(r, "I") || skip_template(r));
    r->depth--;
    return is_skipped;
}

/* After L: a type and its digits, or a name, and E. */
static bool skip_literal(reader *r)
{
    if (accept(r, "_Z"))
        return skip_encoding(r) && accept(r, "E");
    if (!skip_type(r))
        return false;
    r->at += strspn(r->at, "n0123456789abcdef_");
    return accept(r, "E");
}

/* After X: the address of an entity, an entity, or a parameter. */
static bool skip_expression(reader *r)
{
    accept(r, "ad");
    if (accept(r, "L"))
        return skip_literal(r) && accept(r, "E");
    return skip_type(r) && accept(r, "E");
}

static bool skip_argument(reader *r)
{
    if (accept(r, "L"))
        return skip_literal(r);
    if (accept(r, "X"))
        return skip_expression(r);
    if (accept(r, "J") || accept(r, "I")) /* a pack, also in older compilers' form */
        return skip_template(r);
    return skip_type(r);
}

/* <template-args>, after their I. */
static bool skip_template(reader *r)
{
    if (++r->depth > DEEPEST)
        return false;
    while (!accept(r, "E"))
        if (!skip_argument(r))
            return false;
    r->depth--;
    return true;
}

const char *plain_name(arena *a, const char *symbol)
{
    reader r = {.arena = a, .at = symbol};
    if (!accept(&r, "_Z"))
        return symbol;
    const char *name = NULL;
    if (accept(&r, "N")) {
        name = skip_nested(&r, &name) ? name : NULL;
    } else {
        if (!accept(&r, "St"))
            accept(&r, "L");
        name = take_source_name(&r);
        if (name && accept(&r, "I") && !skip_template(&r))
            name = NULL;
    }
    return name ? name : symbol;
}
