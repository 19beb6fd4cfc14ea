/* Devices for estimates without the device at hand. */
#ifndef TARGET_DEVICES_H
#define TARGET_DEVICES_H

#include <kiln/kiln.h>

#include "support/arena.h"

/* Finds the one device with these words in its name, in order and in any case, or a target's representative device;
 * null if there is none, or several. */
const char *device_find(uint32_t sm, const char *name, kiln_device *out);

/* The clock of the device with this full name; 0: unknown. */
uint32_t device_mhz(const char *name);

/* The device names that `name` matches, or all if it is null, separated by ", ". */
const char *device_names(arena *a, const char *name);

#endif
