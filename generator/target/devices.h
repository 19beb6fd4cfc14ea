/* Devices that estimates are made for where none is at hand. */
#ifndef TARGET_DEVICES_H
#define TARGET_DEVICES_H

#include <kiln/kiln.h>

#include "support/arena.h"

/* The device of this name, in any case and perhaps without its first words, or of a target the one that stands for it; null when there is none. */
const char *device_find(uint32_t sm, const char *name, kiln_device *out);

/* All names, separated by ", ". */
const char *device_names(arena *a);

#endif
