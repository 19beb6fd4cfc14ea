/* kiln-verify, for one bundle: the program behind every executable that kiln_add_verify makes. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include <stddef.h>

#include <kiln/kiln.h>

enum {
    VERIFY_EXIT_OK = 0,
    VERIFY_EXIT_WRONG =
        1, /* a kernel is wrong or was not compared, or bundle, manifest and references disagree */
    VERIFY_EXIT_USAGE = 2,
    VERIFY_EXIT_LOST = 4,      /* --queue: the context is lost; 3 is out of memory */
    VERIFY_EXIT_HUNG = 5,      /* a launch has not ended after --launch-seconds */
    VERIFY_EXIT_NO_DEVICE = 77 /* no driver, no device, or none that runs any of the variants asked for */
};

/* Defined by a bundle's program: how many of the inputs it tries at each size without --inputs and --full; 0: all. */
extern const unsigned kiln_verify_inputs;

/* Likewise: names of kernels that may run without being compared, separated by spaces. */
extern const char kiln_verify_uncompared[];

/* Likewise: the manifest of the bundle that ships, if it has cubins alone and `index` the PTX that they are made of; else null. */
extern const char *const kiln_verify_shipped;

/* The manifest is the text of NAME.json. Returns the exit status. */
int kiln_verify_main(int argc, char **argv, const kiln_index *index, const char *manifest,
                     size_t manifest_bytes);

#endif
