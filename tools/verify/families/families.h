/* What kiln-verify knows about a kernel family beyond the manifest: a reference, inputs that hurt, sizes that matter.
 *
 * One file per family, one row in families.c. Nothing here is shared with the generator: tables and formulas are
 * written again from the family's contract.
 */
#ifndef VERIFY_FAMILIES_H
#define VERIFY_FAMILIES_H

#include "../problem.h"
#include "../random.h"
#include "../sizes.h"

enum {
    PATTERN_RANDOM = KILN_PATTERN_RANDOM, /* random data: bounds hold with sqrt(L) for L */
    PATTERN_LARGE = KILN_PATTERN_LARGE,
    PATTERN_NONFINITE = KILN_PATTERN_NONFINITE
};

/* The same for kiln's own families and for those of others. */
typedef kiln_pattern input_pattern;
typedef kiln_reference family_row;

/* Kiln's own reference, or one of KILN_REFERENCE; null: none. */
const family_row *family_find(const char *name);

/* Those of KILN_REFERENCE: the i-th, null behind the last. */
const family_row *family_registered(size_t i);

/* Kiln's own; null: none. */
const family_row *family_find_own(const char *name);

/* A row's, or where it has none, or is null, those for a kernel of which nothing is known. */
const input_pattern *family_patterns(const family_row *row);

/* For a kernel without a reference: random values of each type. */
extern const input_pattern generic_patterns[];
void generic_make(problem *p, const input_pattern *pattern, random_stream s);

#endif
