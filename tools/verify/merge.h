/* kiln-verify merge: the results of a run's parts become those of the run. */
#ifndef VERIFY_MERGE_H
#define VERIFY_MERGE_H

#include "manifest.h"

/* argv[0] is "merge". Returns the exit status. */
int merge_main(int argc, char **argv, const manifest *m, pool *memory);

#endif
