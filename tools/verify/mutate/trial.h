/* Mutants, run: which of them the ordinary cases of their variants find. */
#ifndef VERIFY_MUTATE_TRIAL_H
#define VERIFY_MUTATE_TRIAL_H

#include "../../support/files.h"
#include "../options.h"
#include "draw.h"

typedef enum mutant_fate {
    MUTANT_INVALID, /* it does not load: another is drawn in its place */
    MUTANT_UNTRIED, /* it loads, and was not asked for */
    MUTANT_KILLED,
    MUTANT_LIVES,
    MUTANT_SAME_CODE /* it lives, and ptxas makes the same machine code of it */
} mutant_fate;

typedef struct trial_result {
    mutant_fate fate;
    bool has_crashed; /* killed by the death of the process that ran it */
    char detail[480]; /* by what it was killed */
} trial_result;

typedef struct trial {
    mutant mutant;
    uint64_t number; /* from 1 on, in the order in which they were drawn, those that do not load included */
    trial_result result;
} trial;

typedef struct trials {
    const subject *subjects;
    trial *list; /* by variant, and along its text; all have run */
    size_t count;
    uint64_t redrawn; /* that were invalid */
    char ptxas[128];  /* its version; empty: there is none */
} trials;

/* Draws and runs them, and prints a report. Returns the exit status. */
int mutants_run(device *d, const manifest *m, const manifest_variant *const *variants, size_t count,
                const options *o);

/* report.c */
void trials_report(const trials *t, const options *o);

/* False after a message on stderr. */
extern const out_form trials_form;
bool trials_write_json(const trials *t, const manifest *m, const device *d, const options *o);

/* Killed of those that count, in percent: 100 when none counts. */
typedef struct trial_tally {
    uint64_t drawn, killed, same_code, crashed;
} trial_tally;
double tally_net(trial_tally t); /* of those that ptxas does not set aside */
trial_tally trials_tally(const trials *t, const char *family,
                         mutation_kind kind); /* null, MUTATION_KINDS: all */

#endif
