/* Positions of a lane's values in a product on tensor cores: the table of kiln/author/ptx_matrix.h, for shapes of 16 rows. */
#ifndef DEVICE_FRAGMENT_H
#define DEVICE_FRAGMENT_H

#include <kiln/author/ptx.h>

enum { FRAGMENT_LANES = 4 /* t */ };

/* Lane 4 * g + t of a warp; U32. */
typedef struct fragment_lane {
    ptx_val g, t;
} fragment_lane;

static inline fragment_lane fragment_find_lane(ptx_fn *f, ptx_val lane)
{
    fragment_lane of;
    of.g = ptx_shr(f, lane, 2);
    of.t = ptx_and(f, lane, FRAGMENT_LANES - 1);
    return of;
}

/* The register of A with row g, or g + 8, and the low or the high half of the elements along k. */
static inline uint32_t fragment_a(uint32_t is_lower_row, uint32_t is_high_half)
{
    return is_lower_row + 2 * is_high_half;
}

#endif
