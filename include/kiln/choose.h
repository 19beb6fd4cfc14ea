/* Choosing the variant of a family that should take the least time for a call: what generated functions include. */
#ifndef KILN_CHOOSE_H
#define KILN_CHOOSE_H

#include <kiln/estimate.h>
#include <kiln/tuned.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A choice under way. Zeros, but for the loader and the limit, to begin with. */
typedef struct kiln_choice {
    const kiln_loader *loader;
    const kiln_kernel *best, *fallback; /* fallback: whose launch says why nothing can be launched */
    uint64_t limit;       /* what takes as many cycles is no better: those of the best, else KILN_NO_LIMIT */
    kiln_candidate *list; /* what was considered, or null; then the limit goes for none */
    size_t capacity, count;
    int fallback_is_usable;
} kiln_choice;

#define KILN_NO_LIMIT  UINT64_MAX
#define KILN_RULED_OUT (UINT64_MAX - 1) /* cycles: looked at only while there is no best */

/* Whether a device can run a kernel that has an image for this target and every newer one. One that cannot may have another
 * image of it: kiln_usable tells. */
KILN_INLINE int kiln_is_sure(const kiln_device *device, uint32_t sm, uint32_t min_driver,
                             uint32_t shared_bytes)
{
    return device->sm >= sm && device->driver_version >= min_driver &&
           device->max_shared_bytes >= shared_bytes;
}

/* Takes the kernel when it is better than those before. Once per bundle, small rather than fast. */
__attribute__((noinline, unused)) static void kiln_take(kiln_choice *c, const kiln_kernel *kernel,
                                                        int is_sure, const char *why_not, uint64_t cycles)
{
    static const char not_usable[] = "no image for this device and driver, or too little shared memory";
    const int is_usable = is_sure || kiln_usable(c->loader, kernel);
    if (c->fallback == NULL || (is_usable && !c->fallback_is_usable)) {
        c->fallback = kernel;
        c->fallback_is_usable = is_usable;
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

/* `device` is a local copy of the loader's, so that compilers know that no call changes it. why_not: which rule the call breaks,
 * or null. code null: no estimate, the first is taken. Inline, as most of an estimate is known when it is compiled. */
KILN_INLINE void kiln_consider(kiln_choice *c, const kiln_device *device, const kiln_kernel *kernel,
                               int is_sure, const char *why_not, const kiln_code *code, const kiln_work *work)
{
    uint64_t cycles = KILN_RULED_OUT;
    if (why_not == NULL)
        cycles = code != NULL ? kiln_estimate(device, code, work) : 0;
    if (cycles < c->limit)
        kiln_take(c, kernel, is_sure, why_not, cycles);
}

/* Behind all times that were measured come all estimates. A list has it the other way round: KILN_MEASURED (kiln.h). */
__attribute__((noinline, unused)) static void
kiln_take_tuned(kiln_choice *c, const kiln_kernel *kernel, int is_sure, const char *why_not, uint64_t order)
{
    const size_t at = c->count;
    kiln_take(c, kernel, is_sure, why_not, order);
    if (at < c->capacity && c->list[at].why_not == NULL)
        c->list[at].cycles ^= KILN_MEASURED;
}

/* Likewise where variants were measured. nanoseconds: at the nearest shape; 0: it was not measured there, or none is near. */
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

/* Finds the choice that differs from `asked` in the fewest numbers, the first of equals, and returns the
 * index of the first number in which it differs. `choices` has `count` choices of `numbers` numbers each. */
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
