/* Finds the measured times that apply to a call. Generated functions and `kiln explain` call this function.
 *
 * METRIC. A call is near a shape if each size that the shape names is within a factor of two of the shape's; 0 is near
 * only 0. The nearest shape counts: the one with the smallest sum of differences of log2, on a tie the first. Near a
 * shape only the variants that were measured there compete, by their times, unless none of them can serve the call;
 * elsewhere all compete by their estimates.
 */
#ifndef KILN_TUNED_H
#define KILN_TUNED_H

#include <stddef.h>
#include <stdint.h>

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A size that a shape does not name: any value matches. */
#define KILN_ANY_SIZE UINT64_MAX

#define KILN_FAR UINT64_MAX

/* Returns log2 in units of 1/64, interpolated linearly between powers of two. size is at least 1. */
static inline uint64_t kiln_log2(uint64_t size)
{
    const unsigned exponent = 63 - (unsigned)__builtin_clzll(size);
    const uint64_t behind = exponent < 6 ? size << (6 - exponent) : size >> (exponent - 6);
    return exponent * UINT64_C(64) + (behind & 63);
}

static inline uint64_t kiln_size_distance(uint64_t size, uint64_t measured)
{
    const uint64_t least = size < measured ? size : measured, most = size < measured ? measured : size;
    if (measured == KILN_ANY_SIZE || most == 0)
        return 0;
    if (most - least > least) /* always true if least is 0 */
        return KILN_FAR;
    return kiln_log2(most) - kiln_log2(least);
}

/* Returns the index of the shape nearest to these sizes, or `count` if no shape measured on such a device is near. A
 * shape is a row of 2 + size_count numbers: sm, multiprocessors, sizes. */
__attribute__((noinline, unused)) static size_t kiln_nearest(const kiln_device *device,
                                                             const uint64_t *shapes, size_t count,
                                                             const uint64_t *sizes, size_t size_count)
{
    size_t nearest = count;
    uint64_t least = KILN_FAR;
    for (size_t i = 0; i < count; i++) {
        const uint64_t *shape = shapes + i * (2 + size_count);
        uint64_t sum = shape[0] == device->sm && shape[1] == device->multiprocessors ? 0 : KILN_FAR;
        for (size_t k = 0; k < size_count && sum < least; k++) {
            const uint64_t distance = kiln_size_distance(sizes[k], shape[2 + k]);
            sum = distance == KILN_FAR ? KILN_FAR : sum + distance;
        }
        if (sum < least) {
            least = sum;
            nearest = i;
        }
    }
    return nearest;
}

#ifdef __cplusplus
}
#endif

#endif
