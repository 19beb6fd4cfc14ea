/* As much of the Itanium C++ ABI's mangling ("<encoding>", "<nested-name>") as leads to the name of a function. */
#include "mangled.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 1000 };

/* <source-name>: a length and as many characters. Null when none is here. */
static const char *take_source_name(arena *a, const char **at)
{
    size_t length = 0;
    const char *c = *at;
    for (; *c >= '0' && *c <= '9' && length < LONGEST; c++)
        length = 10 * length + (size_t)(*c - '0');
    if (length == 0 || strlen(c) < length)
        return NULL;
    *at = c + length;
    return arena_string(a, c, length);
}

/* <template-args>, I ... E: names count their characters, what else begins ends with an E of its own. */
static bool skip_template(arena *a, const char **at)
{
    int depth = 0;
    do {
        const char c = **at;
        if (c == '\0')
            return false;
        if (c >= '0' && c <= '9') {
            if (!take_source_name(a, at))
                return false;
            continue;
        }
        ++*at;
        if (c ==
            'L') { /* a literal: its type, its digits, E; of an enumeration or a function it is more involved */
            const size_t length = strcspn(*at, "E");
            if ((*at)[strspn(*at, "bijlmxyhstacn")] == 'E' || **at == '_' || (**at >= '0' && **at <= '9') ||
                **at == 'N')
                return false;
            *at += length + ((*at)[length] == 'E');
        }
        depth += c == 'I' || c == 'N' || c == 'J' || c == 'X' || c == 'F';
        depth -= c == 'E';
    } while (depth > 0);
    return true;
}

/* N, qualifiers, names with template arguments, E. */
static const char *nested_name(arena *a, const char *at)
{
    const char *name = NULL;
    at += strspn(at, "rVK");
    if (strncmp(at, "St", 2) == 0)
        at += 2;
    while (*at && *at != 'E') {
        at += *at == 'L'; /* of internal linkage */
        if (*at == 'I') {
            if (!skip_template(a, &at))
                return NULL;
        } else if (!(name = take_source_name(a, &at))) {
            return NULL;
        }
    }
    return *at == 'E' ? name : NULL;
}

const char *plain_name(arena *a, const char *symbol)
{
    if (strncmp(symbol, "_Z", 2) != 0)
        return symbol;
    const char *at = symbol + 2, *name;
    if (*at == 'N') {
        name = nested_name(a, at + 1);
    } else {
        at += *at == 'L';
        name = take_source_name(a, &at);
    }
    return name ? name : symbol;
}
