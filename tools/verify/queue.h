/* Variants by id from standard input, each run as it comes. */
#ifndef VERIFY_QUEUE_H
#define VERIFY_QUEUE_H

#include "results.h"

/* Writes to standard output what a journal has: a line of the facts, then a line per id, flushed. `running` gets the id.
 * Returns the exit status; VERIFY_EXIT_LOST after the line of a variant that the context did not survive. */
int queue_run(device *d, const kiln_index *index, const manifest *m, const run_results *all, const options *o,
              const char **running);

#endif
