/* References: the registered ones (KILN_REFERENCE), and calls of their functions. */
#ifndef VERIFY_REFERENCE_H
#define VERIFY_REFERENCE_H

#include <kiln/reference.h>

#include "families/families.h"

/* A call of a function of a reference. If a function of kiln/reference.h detects a mistake, it leaves the call. */
typedef struct reference_call reference_call;

/* Fill the inputs, state the expected outputs, note the sizes. False after a mistake of the reference; `mistake`
 * describes it with its place. A null row is a kernel without a reference. */
enum { MISTAKE_BYTES = 512 };
bool reference_make(const family_row *row, problem *p, const input_pattern *pattern, random_stream s,
                    char mistake[MISTAKE_BYTES]);
bool reference_expect(const family_row *row, problem *p, const input_pattern *pattern,
                      char mistake[MISTAKE_BYTES]);
bool reference_plan(const family_row *row, size_plan *plan, uint64_t seed, char mistake[MISTAKE_BYTES]);

#endif
