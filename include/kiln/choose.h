/* Chooses a family's fastest variant for a call, by estimates and measured times. Included by generated code. */
#ifndef KILN_CHOOSE_H
#define KILN_CHOOSE_H

#include <kiln/estimate.h>
#include <kiln/tuned.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state of a choice. Zero it, then set the loader and the limit. */
typedef struct kiln_choice {
    const kiln_loader *loader;
    const kiln_kernel *best, *fallback; /* fallback: its launch reports why nothing can be launched */
    uint64_t limit;       /* cycles of the best so far, else KILN_NO_LIMIT; only less is better */
    kiln_candidate *list; /* the variants considered, or null; with a list the limit does not apply */
    size_t capacity, count;
    int fallback_rank; /* 2: the device can run it; 1: it cannot, but the call meets its rules; 0: neither */
} kiln_choice;

#define KILN_NO_LIMIT  UINT64_MAX
#define KILN_RULED_OUT (UINT64_MAX - 1) /* cycles of a variant that is taken only while there is no best */

/* Returns whether a device can run a kernel that has an image for this target and every newer one. Otherwise another
 * image may fit: ask kiln_usable. */
KILN_INLINE int kiln_is_sure(const kiln_device *device, uint32_t sm, uint32_t min_driver,
                             uint32_t shared_bytes)
{
    return device->sm >= sm && device->driver_version >= min_driver &&
           device->max_shared_bytes >= shared_bytes;
}

/* Takes the kernel if it is better than the previous ones. One copy per bundle, for size rather than speed. */
__attribute__((noinline, unused)) static void kiln_take(kiln_choice *c, const kiln_kernel *kernel,
                                                        int is_sure, const char *why_not, uint64_t cycles)
{
    static const char not_usable[] = "no image for this device and driver, or too little shared memory";
    const int is_usable = is_sure || kiln_usable(c->loader, kernel);
    const int rank = is_usable ? 2 : why_not == NULL;
    if (c->fallback == NULL || rank > c->fallback_rank) {
        c->fallback = kernel;
        c->fallback_rank = rank;
    }
    if (why_not == NULL && !is_usable)
        why_not = not_usable;
    if (c->count < c->capacity) {
        c->list[c->count].kernel = kernel;
        c->list[c->count].cycles = why_not == NULL ? cycles : 0;
        c->list[c->count].why_not = why_not;
    }
    c->count++;
    if (why_not == NULL && c->list == NULL) {
        c->best = kernel;
        c->limit = cycles;
    }
}

/* Considers one variant. `device` is a local copy of the loader's, so that compilers know that calls do not change it.
 * why_not: the rule that the call breaks, or null. If code is null there is no estimate, and the first usable variant
 * wins. Inline, because most of an estimate is constant. */
KILN_INLINE void kiln_consider(kiln_choice *c, const kiln_device *device, const kiln_kernel *kernel,
                               int is_sure, const char *why_not, const kiln_code *code, const kiln_work *work)
{
    uint64_t cycles = KILN_RULED_OUT;
    if (why_not == NULL)
        cycles = code != NULL ? kiln_estimate(device, code, work) : 0;
    if (cycles < c->limit)
        kiln_take(c, kernel, is_sure, why_not, cycles);
}

/* Orders all estimates after all measured times. Lists use the opposite bit: KILN_MEASURED (kiln.h). */
__attribute__((noinline, unused)) static void
kiln_take_tuned(kiln_choice *c, const kiln_kernel *kernel, int is_sure, const char *why_not, uint64_t order)
{
    const size_t at = c->count;
    kiln_take(c, kernel, is_sure, why_not, order);
    if (at < c->capacity && c->list[at].why_not == NULL)
        c->list[at].cycles ^= KILN_MEASURED;
}

/* Considers a variant with a measured time. nanoseconds: at the nearest shape; 0: not measured there, or no shape is
 * near. */
KILN_INLINE void kiln_consider_tuned(kiln_choice *c, const kiln_device *device, const kiln_kernel *kernel,
                                     int is_sure, const char *why_not, uint32_t nanoseconds,
                                     const kiln_code *code, const kiln_work *work)
{
    uint64_t order = KILN_RULED_OUT;
    if (why_not == NULL && nanoseconds != 0)
        order = nanoseconds;
    else if (why_not == NULL)
        order = KILN_MEASURED | (code != NULL ? kiln_estimate(device, code, work) : 0);
    if (order < c->limit)
        kiln_take_tuned(c, kernel, is_sure, why_not, order);
}

/* Finds the choice that differs from `asked` in the fewest numbers; on a tie, the first. Returns the index of the first
 * number that differs. `choices` has `count` choices of `numbers` numbers each. */
__attribute__((noinline, unused)) static size_t
kiln_first_difference(const uint32_t *asked, const uint32_t *choices, size_t count, size_t numbers)
{
    size_t fewest = numbers + 1, first = 0;
    for (size_t i = 0; i < count; i++) {
        size_t differences = 0, at = 0;
        for (size_t k = numbers; k-- > 0;) {
            if (choices[i * numbers + k] != asked[k]) {
                differences++;
                at = k;
            }
        }
        if (differences < fewest) {
            fewest = differences;
            first = at;
        }
    }
    return first;
}

#ifdef __cplusplus
}
#endif

#endif
