/* `kiln explain`: what dispatch would pick for a call, and why. */
#ifndef BUNDLE_EXPLAIN_H
#define BUNDLE_EXPLAIN_H

#include <kiln/kiln.h>

#include "plan/plan.h"
#include "support/diagnostics.h"

typedef struct explain_options {
    const char *command; /* as typed, for messages that complete it */
    uint32_t device_mhz; /* 0: unknown */
    bool is_contiguous;  /* omitted strides are those of contiguous arrays */
    bool is_long;        /* whole ids, and rules as written */
} explain_options;

/* Writes to `out` what the family's function would do on the device with these values: "name=value", of arguments and
 * contract parameters. Omitted parameters get the default or the only value, omitted sizes their usual value, the
 * workspace the size that the variants need, and other arguments 0; pointers are aligned. True: a variant is launched,
 * or there is nothing to do. Wrong or missing values are reported first, and then nothing is written. */
bool explain_call(text *out, const plan *p, const kiln_family *family, const kiln_device *device,
                  const char *const *values, size_t value_count, const explain_options *options,
                  diagnostics *d);

#endif
