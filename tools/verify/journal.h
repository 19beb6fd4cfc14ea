/* FILE.journal, beside the FILE that results will be in: the variants that have run, so that a run that is killed can go on. */
#ifndef VERIFY_JOURNAL_H
#define VERIFY_JOURNAL_H

#include "results.h"

typedef struct journal {
    FILE *out; /* null: none is kept */
    char path[4096];
} journal;

/* None is kept without --json, or where that is no plain file. With --resume the results that the journal has, or else
 * FILE, are read. False after a message: another run writes it, it is of another run, it cannot be written. */
bool journal_open(journal *j, const options *o, run_results *all);

/* False after a message. */
bool journal_add(journal *j, const manifest_variant *v, const run_result *r);

/* FILE is there, or is not: then the journal is kept. */
void journal_close(journal *j, bool is_written);

#endif
