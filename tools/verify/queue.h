/* --queue: runs variants whose ids come on standard input. */
#ifndef VERIFY_QUEUE_H
#define VERIFY_QUEUE_H

#include "results.h"

/* Writes a journal's lines to standard output: the facts of the run, then one flushed line per id. `running`
 * gets the current id. Returns the exit status: VERIFY_EXIT_LOST after the line of a variant that destroyed
 * the context. */
int queue_run(device *d, const kiln_index *index, const manifest *m, const run_results *all, const options *o,
              const char **running);

#endif
