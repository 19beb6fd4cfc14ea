/* Checks which kernels have a reference, which are excused from one, and whether both lists are correct. */
#include "uncompared.h"

#include <stdio.h>
#include <string.h>

#include "families/families.h"
#include "verify.h"

/* ---- the list of the build: names, separated by spaces ------------------------------------------------------------ */

/* Takes the next name from a list; false: no more. */
static bool next_name(const char **list, char *name, size_t bytes)
{
    *list += strspn(*list, " ");
    const size_t length = strcspn(*list, " ");
    snprintf(name, bytes, "%.*s", (int)length, *list);
    *list += length;
    return length > 0;
}

bool is_listed_as_uncompared(const char *family)
{
    char name[256];
    for (const char *list = kiln_verify_uncompared; next_name(&list, name, sizeof name);) {
        if (strcmp(name, family) == 0)
            return true;
    }
    return false;
}

/* ---- mistakes ----------------------------------------------------------------------------------------------------- */

static bool has_family(const manifest *m, const char *name)
{
    for (size_t i = 0; i < m->variant_count; i++) {
        if (strcmp(m->variants[i].family, name) == 0)
            return true;
    }
    return false;
}

/* Prints "; it has nf4_quantize, saxpy". */
static void print_families(const manifest *m)
{
    const char *before = "; it has ";
    for (size_t i = 0; i < m->variant_count; i++) {
        size_t first = 0;
        while (strcmp(m->variants[first].family, m->variants[i].family) != 0)
            first++;
        if (first != i)
            continue;
        fprintf(stderr, "%s%s", before, m->variants[i].family);
        before = ", ";
    }
    fputs("\n", stderr);
}

static int check_row(const manifest *m, size_t i)
{
    const family_row *row = family_registered(i), *other = NULL;
    for (size_t k = 0; k < i && !other; k++)
        other = strcmp(family_registered(k)->name, row->name) == 0 ? family_registered(k) : NULL;
    if (other) {
        fprintf(stderr, "%s:%d: error: a second reference of %s; the first is at %s:%d\n", row->file,
                row->line, row->name, other->file, other->line);
        return 1;
    }
    if (family_find_own(row->name)) {
        fprintf(stderr, "%s:%d: error: kiln has a reference of %s, its own family\n", row->file, row->line,
                row->name);
        return 1;
    }
    if (!row->expect || (row->patterns && !row->patterns->name)) {
        fprintf(stderr, "%s:%d: error: the reference of %s has no %s\n", row->file, row->line, row->name,
                row->expect ? "patterns: leave the member out for the usual ones" : "function expect");
        return 1;
    }
    if (has_family(m, row->name))
        return 0;
    fprintf(stderr, "%s:%d: error: the bundle %s has no family or kernel '%s'", row->file, row->line,
            m->bundle, row->name);
    print_families(m);
    return 1;
}

static int check_listed(const manifest *m, const char *name)
{
    const family_row *row = family_find(name);
    if (!has_family(m, name)) {
        fprintf(stderr,
                "kiln-verify: error: UNCOMPARED %s: the bundle %s has no family or kernel of that name", name,
                m->bundle);
        print_families(m);
        return 1;
    }
    if (!row)
        return 0;
    fprintf(stderr, "kiln-verify: error: UNCOMPARED %s: it is compared, with the reference ", name);
    if (row->file)
        fprintf(stderr, "at %s:%d\n", row->file, row->line);
    else
        fputs("that kiln has of it\n", stderr);
    return 1;
}

bool references_check(const manifest *m)
{
    int mistakes = 0;
    char name[256];
    for (size_t i = 0; family_registered(i); i++)
        mistakes += check_row(m, i);
    for (const char *list = kiln_verify_uncompared; next_name(&list, name, sizeof name);)
        mistakes += check_listed(m, name);
    return mistakes == 0;
}
