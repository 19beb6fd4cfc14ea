/* Resolves and checks a variant's tensor maps, and writes C that encodes them. */
#ifndef BUNDLE_MAPS_H
#define BUNDLE_MAPS_H

#include "model.h"

enum { MOST_DIMENSIONS = 5 };

/* One map. Dimensions are outermost first. */
typedef struct tensor_map {
    const kiln_map *row;
    const kiln_arg *arg;
    size_t dimensions;
    const expression *const *sizes; /* of the array, over arguments; bind them */
    uint64_t box[MOST_DIMENSIONS], swizzle_bytes;
} tensor_map;

/* Returns the number of maps. A map that cuTensorMapEncodeTiled would reject for every call is a family_error. */
size_t maps_of(arena *a, const variant *v, tensor_map maps[KILN_MAX_MAPS]);

/* Writes C that encodes the maps into `map_NAME`, or returns the failure. Adds cuLaunchKernel's params to `list`: "&map_x". */
void maps_write(arena *a, text *out, text *list, const bundle_variant *bv);

#endif
