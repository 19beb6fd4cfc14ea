/* kiln_tune_main: the program that every executable of kiln_add_tune calls. */
#ifndef TUNE_TUNE_H
#define TUNE_TUNE_H

#include <kiln/kiln.h>

/* Runs the program. The manifest is the text of NAME.json. Returns the exit status: verify.h, and 130 after an
 * interruption. */
int kiln_tune_main(int argc, char **argv, const kiln_index *index, const char *manifest,
                   size_t manifest_bytes);

#endif
