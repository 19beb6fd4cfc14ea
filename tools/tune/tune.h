/* The program behind every executable that kiln_add_tune makes. */
#ifndef TUNE_TUNE_H
#define TUNE_TUNE_H

#include <kiln/kiln.h>

/* The manifest is the text of NAME.json. Returns the exit status: verify.h, and 130 after an interruption. */
int kiln_tune_main(int argc, char **argv, const kiln_index *index, const char *manifest,
                   size_t manifest_bytes);

#endif
