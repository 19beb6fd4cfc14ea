/* `kiln explain`: what dispatch would pick for a call, and why. */
#ifndef BUNDLE_EXPLAIN_H
#define BUNDLE_EXPLAIN_H

#include <kiln/kiln.h>

#include "plan/plan.h"
#include "support/diagnostics.h"

/* Writes to `out` what the family's function would do on the device, were it called with these values: "name=value", of
 * arguments and of the parameters that a caller names, for which the default or the only value stands otherwise; what is no size
 * may be left out and is 0, pointers are aligned then. True: a variant is launched, or there is nothing to do. What is wrong
 * with the values is told first, and nothing is written then. */
bool explain_call(text *out, const plan *p, const kiln_family *family, const kiln_device *device,
                  const char *const *values, size_t value_count, diagnostics *d);

#endif
