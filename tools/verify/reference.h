/* References: those that are compiled into the program with KILN_REFERENCE, and calls of a reference's functions. */
#ifndef VERIFY_REFERENCE_H
#define VERIFY_REFERENCE_H

#include <kiln/reference.h>

#include "families/families.h"

/* A call of one of a reference's functions. A mistake that one of kiln/reference.h's finds leaves it. */
typedef struct reference_call reference_call;

/* Fills the inputs, states what comes out, notes the sizes. False after a mistake of the reference, which `mistake` then
 * tells with its place. A null row is a kernel without a reference. */
enum { MISTAKE_BYTES = 512 };
bool reference_make(const family_row *row, problem *p, const input_pattern *pattern, random_stream s,
                    char mistake[MISTAKE_BYTES]);
bool reference_expect(const family_row *row, problem *p, const input_pattern *pattern,
                      char mistake[MISTAKE_BYTES]);
bool reference_plan(const family_row *row, size_plan *plan, uint64_t seed, char mistake[MISTAKE_BYTES]);

#endif
