/* Helpers for building a family of external PTX. */
#include "build.h"

#include <string.h>

#include "family/family.h"
#include "support/words.h"

enum { LONGEST_NAME = 100 };

bool external_is_free_name(const char *name)
{
    if (strlen(name) > LONGEST_NAME || name[0] == '_' || (name[0] >= '0' && name[0] <= '9') || !*name ||
        strstr(name, "__") || words_contain(c_keywords, name) || family_reserves(name))
        return false;
    for (const char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_'))
            return false;
    return true;
}

bool external_has_name(const char *shape, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (const char *c = shape + strcspn(shape, letters); *c; c += strcspn(c, letters)) {
        const size_t length = strspn(c, letters);
        if (strncmp(c, name, length) == 0 && name[length] == '\0')
            return true;
        c += length;
    }
    return false;
}

kiln_arg *external_add_arg(external_build *m, const char *name, const char *type, const char *summary)
{
    kiln_arg *arg = &m->args[m->arg_count++];
    *arg = (kiln_arg){.name = name, .kind = KILN_ARG_VALUE, .type = type, .summary = summary};
    return arg;
}

void external_add_rule(external_build *m, const char *condition, const char *words)
{
    m->rules[m->rule_count++] = (kiln_rule){condition, words};
}

void external_cannot_launch(external_build *m, const char *why)
{
    if (m->why_not_launched.length == 0)
        text_add(&m->why_not_launched, why);
}
