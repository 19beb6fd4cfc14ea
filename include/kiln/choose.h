/* Choosing the variant of a family that should take the least time for a call: what generated functions include. */
#ifndef KILN_CHOOSE_H
#define KILN_CHOOSE_H

#include <kiln/estimate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A choice under way. Zeros, but for the loader, to begin with. */
typedef struct kiln_choice {
    const kiln_loader *loader;
    const kiln_kernel *best, *fallback; /* fallback: whose launch says why nothing can be launched */
    uint64_t cycles;                    /* of the best */
    kiln_candidate *list;               /* what was considered, or null */
    size_t capacity, count;
    int fallback_is_usable;
} kiln_choice;

/* Takes the kernel when it is better than those before. is_sure: any device that the bundle is made for can run it. why_not:
 * which rule the call breaks, or null. A list is for devices too that the bundle is not made for. code null: nothing to choose from. Once per bundle, small rather than fast. */
__attribute__((noinline, unused)) static void kiln_consider(kiln_choice *c, const kiln_kernel *kernel,
                                                            int is_sure, const char *why_not,
                                                            const kiln_code *code, const kiln_work *work)
{
    static const char not_usable[] = "no image for this device and driver, or too little shared memory";
    const uint64_t cycles =
        code != NULL && why_not == NULL ? kiln_estimate(&c->loader->device, code, work) : 0;
    if (c->list == NULL && c->best != NULL && (why_not != NULL || cycles >= c->cycles))
        return;
    const int is_usable = (is_sure && c->list == NULL) || kiln_usable(c->loader, kernel);
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
    if (why_not == NULL && (c->best == NULL || cycles < c->cycles)) {
        c->best = kernel;
        c->cycles = cycles;
    }
}

#ifdef __cplusplus
}
#endif

#endif
