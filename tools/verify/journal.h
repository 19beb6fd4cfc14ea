/* FILE.journal, next to the results FILE: the variants that have run, so that a killed run can resume. */
#ifndef VERIFY_JOURNAL_H
#define VERIFY_JOURNAL_H

#include "results.h"

typedef struct journal {
    FILE *out; /* null: there is no journal */
    char path[4096];
} journal;

/* Opens the journal; there is none without --json, or where FILE is not a plain file. With --resume, reads the
 * results of the journal, or of FILE if there is no journal. False after a message: another run is writing the
 * journal, it belongs to a different run, or it cannot be written. */
bool journal_open(journal *j, const options *o, run_results *all);

/* False after a message. */
bool journal_add(journal *j, const manifest_variant *v, const run_result *r);

/* Removes the journal if FILE was written; otherwise keeps it. */
void journal_close(journal *j, bool is_written);

#endif
