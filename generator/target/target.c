/* The PTX targets that can be asked for: those of PTX ISA 9.0 from sm_75 up. */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/quote.h"
#include "support/words.h"

const char target_names[] =
    "sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103 sm_103a sm_103f "
    "sm_110 sm_110a sm_110f sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f";

bool target_parse(const char *name, target *out)
{
    if (!words_contain(target_names, name))
        return false;
    *out = (target){0, TARGET_BASE};
    const char *c = name + strlen("sm_");
    for (; *c >= '0' && *c <= '9'; c++)
        out->sm = (uint16_t)(out->sm * 10 + (*c - '0'));
    if (*c)
        out->kind = *c == 'a' ? TARGET_ARCH : TARGET_FAMILY;
    return true;
}

const char *target_suggest_text(arena *a, const char *word)
{
    enum { OLDEST = 75, NEWEST = 121 };
    const char *digits = strncmp(word, "sm_", 3) == 0 ? word + 3 : "";
    const size_t length = strspn(digits, "0123456789");
    const unsigned long number = strtoul(digits, NULL, 10);
    if (length == 0 || strlen(digits + length) > 1 || (number >= OLDEST && number <= NEWEST))
        return suggest_text(a, word, target_names);
    return arena_format(
        a, number < OLDEST ? "; the oldest is sm_%d" : "; the newest is sm_%d, which newer devices run too",
        number < OLDEST ? OLDEST : NEWEST);
}

const char *target_print(target t, char name[TARGET_NAME_BYTES])
{
    static const char *const suffixes[] = {[TARGET_BASE] = "", [TARGET_ARCH] = "a", [TARGET_FAMILY] = "f"};
    snprintf(name, TARGET_NAME_BYTES, "sm_%u%s", (unsigned)t.sm, suffixes[t.kind]);
    return name;
}

int target_compare(target a, target b)
{
    if (a.sm != b.sm)
        return a.sm < b.sm ? -1 : 1;
    return a.kind == b.kind ? 0 : a.kind < b.kind ? -1 : 1;
}

bool target_serves(target has, target wanted)
{
    if (has.kind == TARGET_BASE)
        return has.sm <= wanted.sm;
    if (has.kind == TARGET_ARCH)
        return target_compare(has, wanted) == 0;
    return wanted.kind != TARGET_BASE && has.sm <= wanted.sm && has.sm / 10 == wanted.sm / 10;
}

bool target_is_preferred(target x, target y)
{
    if ((x.kind == TARGET_BASE) != (y.kind == TARGET_BASE))
        return y.kind == TARGET_BASE;
    return x.sm != y.sm ? x.sm > y.sm : x.kind == TARGET_ARCH && y.kind == TARGET_FAMILY;
}
