/* Cubins: what ptxas of the CUDA toolkit on the PATH makes of PTX at build time. */
#ifndef BUNDLE_CUBINS_H
#define BUNDLE_CUBINS_H

#include "images.h"

/* ptxas, and a folder for its files until assembler_close. */
typedef struct assembler {
    spool *spool; /* has the PTX */
    char *folder;
    const char *version; /* "13.0, V13.0.88" */
    uint32_t min_driver; /* that loads its cubins: its own CUDA's first */
    size_t at_once;      /* how many may run side by side; at first one per processor */
    bool is_timed;       /* the cubins are not wanted */
} assembler;

/* A run of ptxas. */
typedef struct assembly {
    const variant *variant;
    const image *ptx;
    target target;
    image cubin;
    uint64_t microseconds; /* of processor time, its start with it */
} assembly;

/* False after a diagnostic at `at`, with the purpose: there is no ptxas, or no folder. */
bool assembler_open(assembler *s, arena *a, spool *ptx, const char *purpose, place at, diagnostics *d);
void assembler_close(assembler *s);

/* Does all of the work. False after a diagnostic. */
bool assemble(const assembler *s, arena *a, assembly *work, size_t count, diagnostics *d);

/* Makes of a variant's PTX images, `count` of them in ascending order, a cubin for each listed target that the variant runs
 * on, of the PTX that this target would take. There is room for TARGETS_MOST. Returns how many; 0 after a diagnostic. */
size_t assemble_variant(const assembler *s, arena *a, const plan *p, const variant *v, const image *images,
                        size_t count, image *cubins, diagnostics *d);

#endif
