/* The families that have a reference, and defaults for families without one. */
#include "families.h"

#include <string.h>

#include "inputs.h"

#define ROW_ADDRESS(name) &name##_row,
static const family_row *const rows[] = {VERIFY_FAMILIES(ROW_ADDRESS)};

/* The linker's start and end of the section filled by KILN_REFERENCE; null if it is empty. */
extern const family_row *const __start_kiln_references[] __attribute__((weak));
extern const family_row *const __stop_kiln_references[] __attribute__((weak));

const family_row *family_registered(size_t i)
{
    const size_t count = (size_t)(__stop_kiln_references - __start_kiln_references);
    return i < count ? __start_kiln_references[i] : NULL;
}

const family_row *family_find_own(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    }
    return NULL;
}

const family_row *family_find(const char *name)
{
    const family_row *row;
    for (size_t i = 0; (row = family_registered(i)); i++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return family_find_own(name);
}

static const input_pattern default_patterns[] = {
    {"normal", PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"uniform", PATTERN_RANDOM | PATTERN_LARGE, INPUT_UNIFORM},
    {"huge-tiny", PATTERN_LARGE, INPUT_HUGE_TINY},
    {"equal", 0, INPUT_EQUAL},
    {"alternating", 0, INPUT_ALTERNATING},
    {"zero", 0, INPUT_ZERO},
    {"denormal", 0, INPUT_DENORMAL},
    {NULL, 0, 0},
};

const input_pattern *family_patterns(const family_row *row)
{
    if (!row)
        return generic_patterns;
    return row->patterns ? row->patterns : default_patterns;
}

const input_pattern generic_patterns[] = {
    {"normal", PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"uniform", PATTERN_RANDOM, INPUT_UNIFORM},
    {NULL, 0, 0},
};

/* Returns a different scalar for each number, so that swapped scalars show; seldom 1, since a forgotten factor of
 * 1 would not show. */
static double generic_scalar(size_t number, const input_pattern *pattern)
{
    return pattern->number % 4 == 3 ? 1 : 0.625 + 0.25 * (double)number;
}

void generic_make(problem *p, const input_pattern *pattern, random_stream s)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        bool is_float = element_is_float(a->about->type);
        if (!manifest_is_pointer(a->about))
            a->real = is_float ? generic_scalar(i, pattern) : 0;
        else if (is_float)
            inputs_fill(a, (input_kind)pattern->number, random_fork(s, i));
        else
            inputs_fill_bytes(a, random_fork(s, i));
    }
}
