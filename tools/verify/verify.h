/* kiln_verify_main: the program for one bundle, which every executable of kiln_add_verify calls. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include <stddef.h>

#include <kiln/kiln.h>

enum {
    VERIFY_EXIT_OK = 0,
    VERIFY_EXIT_WRONG =
        1, /* a kernel is wrong or was not compared, or bundle, manifest and references disagree */
    VERIFY_EXIT_USAGE = 2,
    VERIFY_EXIT_LOST = 4,      /* --queue: the context is lost; 3 means out of memory */
    VERIFY_EXIT_HUNG = 5,      /* a launch has not ended after --launch-seconds */
    VERIFY_EXIT_NO_DEVICE = 77 /* no driver, no device, or no requested variant runs on the device */
};

/* Defined by a bundle's program: how many inputs it tries at each size without --inputs and --full; 0: all. */
extern const unsigned kiln_verify_inputs;

/* Likewise: names of kernels that may run without being compared, separated by spaces. */
extern const char kiln_verify_uncompared[];

/* Likewise: the shipped bundle's manifest if it has only cubins and `index` has the PTX that they were compiled
 * from; otherwise null. */
extern const char *const kiln_verify_shipped;

/* Runs the program. The manifest is the text of NAME.json. Returns the exit status. */
int kiln_verify_main(int argc, char **argv, const kiln_index *index, const char *manifest,
                     size_t manifest_bytes);

#endif
