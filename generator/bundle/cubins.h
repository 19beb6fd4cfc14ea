/* Cubins: made from PTX at build time by the ptxas on the PATH, of the CUDA toolkit. */
#ifndef BUNDLE_CUBINS_H
#define BUNDLE_CUBINS_H

#include "images.h"

/* ptxas, and a folder for its files until assembler_close. */
typedef struct assembler {
    spool *spool; /* has the PTX */
    char *folder;
    const char *version; /* "13.0, V13.0.88" */
    uint32_t min_driver; /* oldest driver that loads its cubins: that of its own CUDA release */
    size_t at_once;      /* most parallel runs; at first one per processor */
    bool is_timed;       /* the cubins are discarded */
} assembler;

/* A run of ptxas. */
typedef struct assembly {
    const variant *variant;
    const image *ptx;
    target target;
    image cubin;
    uint64_t microseconds; /* of processor time, including ptxas' start */
} assembly;

/* False after a diagnostic at `at`, with the purpose: no ptxas, or no folder. */
bool assembler_open(assembler *s, arena *a, spool *ptx, const char *purpose, place at, diagnostics *d);
void assembler_close(assembler *s);

/* Does all of the work. False after a diagnostic. */
bool assemble(const assembler *s, arena *a, assembly *work, size_t count, diagnostics *d);

/* Makes a cubin for each listed target that the variant runs on, from `count` PTX images in ascending order: from the
 * image that this target would select. `cubins` has room for TARGETS_MOST. Returns their number; 0 after a diagnostic.
 * */
size_t assemble_variant(const assembler *s, arena *a, const plan *p, const variant *v, const image *images,
                        size_t count, image *cubins, diagnostics *d);

#endif
