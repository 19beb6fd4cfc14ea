/* `kiln explain`: what dispatch would pick for a call, and why. */
#ifndef BUNDLE_EXPLAIN_H
#define BUNDLE_EXPLAIN_H

#include <kiln/kiln.h>

#include "plan/plan.h"
#include "support/diagnostics.h"

typedef struct explain_options {
    const char *command; /* as it was typed, for messages that complete it */
    uint32_t device_mhz; /* 0: not known */
    bool is_contiguous;  /* strides that are not given are those of dense tensors */
    bool is_long;        /* whole ids, and rules as they are written */
} explain_options;

/* Writes to `out` what the family's function would do on the device, were it called with these values: "name=value", of
 * arguments and of the parameters that a caller names, for which the default or the only value stands otherwise. Sizes that have a
 * usual value have that where they are not given, the workspace is as large as the variants ask for, and what is no size is 0;
 * pointers are aligned. True: a variant is launched, or there is nothing to do. What is wrong with the values, or missing, is told
 * first, and nothing is written then. */
bool explain_call(text *out, const plan *p, const kiln_family *family, const kiln_device *device,
                  const char *const *values, size_t value_count, const explain_options *options,
                  diagnostics *d);

#endif
