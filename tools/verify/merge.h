/* kiln-verify merge: joins the results of a run's parts. */
#ifndef VERIFY_MERGE_H
#define VERIFY_MERGE_H

#include "manifest.h"

/* Runs `kiln-verify merge`; argv[0] is "merge". Returns the exit status. */
int merge_main(int argc, char **argv, const manifest *m, pool *memory);

#endif
