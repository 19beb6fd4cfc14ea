/* Devices that estimates are made for where none is at hand. */
#ifndef TARGET_DEVICES_H
#define TARGET_DEVICES_H

#include <kiln/kiln.h>

#include "support/arena.h"

/* The one device that has these words in its name, in their order and in any case, or of a target the one that stands for
 * it; null when there is none, or several. */
const char *device_find(uint32_t sm, const char *name, kiln_device *out);

/* The clock of the device of this whole name; 0: none is known. */
uint32_t device_mhz(const char *name);

/* The names that `name` may stand for, or with null all, separated by ", ". */
const char *device_names(arena *a, const char *name);

#endif
