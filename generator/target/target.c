/* The supported PTX targets: those of PTX ISA 9.0 from sm_75 up. */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/quote.h"
#include "support/words.h"

/* In order, each with the PTX version that introduced it (PTX ISA, .target). */
/* clang-format off */
#define TARGETS(FIRST, T) \
    FIRST(63, "sm_75") T(70, "sm_80") T(71, "sm_86") T(74, "sm_87") T(78, "sm_89") T(78, "sm_90") \
    T(80, "sm_90a") T(86, "sm_100") T(86, "sm_100a") T(88, "sm_100f") T(88, "sm_103") T(88, "sm_103a") \
    T(88, "sm_103f") T(90, "sm_110") T(90, "sm_110a") T(90, "sm_110f") T(87, "sm_120") T(87, "sm_120a") \
    T(88, "sm_120f") T(88, "sm_121") T(88, "sm_121a") T(88, "sm_121f")
#define NAME(version, name)     name
#define NEXT_NAME(version, name) " " name
#define ROW(version, name)      {name, version},
/* clang-format on */

const char target_names[] = TARGETS(NAME, NEXT_NAME);

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
    if (strncmp(word, "sm_101", 6) == 0 &&
        (word[6] == '\0' || strcmp(word + 6, "a") == 0 || strcmp(word + 6, "f") == 0))
        return arena_format(a, "; CUDA 13.0 renamed it to 'sm_110%s'", word + 6);
    const char *meant = arena_format(a, "sm_%s", word + strcspn(word, "0123456789")); /* by 80, compute_80 */
    if (words_contain(target_names, meant))
        return arena_format(a, "; did you mean '%s'?", meant);
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

const char *target_text(arena *a, target t)
{
    return target_print(t, arena_alloc(a, TARGET_NAME_BYTES));
}

uint16_t target_version(target t)
{
    static const struct {
        const char *name;
        uint16_t version;
    } rows[] = {TARGETS(ROW, ROW)};
    char name[TARGET_NAME_BYTES];
    target_print(t, name);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].version;
    return 0;
}

bool target_has(target t, uint32_t sm, target_range *alike)
{
    const bool has = t.sm >= sm;
    if (alike && has && sm > alike->from)
        alike->from = sm;
    if (alike && !has && sm < alike->below)
        alike->below = sm;
    return has;
}

uint32_t target_shared_bytes(target t)
{
    return t.sm < 80 ? 64 * 1024 : 99 * 1024;
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
