/* Runs mutants: finds out which of them the ordinary cases of their variants detect. */
#ifndef VERIFY_MUTATE_TRIAL_H
#define VERIFY_MUTATE_TRIAL_H

#include "../../support/files.h"
#include "../options.h"
#include "draw.h"

typedef enum mutant_fate {
    MUTANT_INVALID, /* it does not load: another is drawn instead */
    MUTANT_UNTRIED, /* it loads, but was not requested */
    MUTANT_KILLED,
    MUTANT_LIVES,
    MUTANT_SAME_CODE /* it survives, and ptxas compiles it to the same machine code */
} mutant_fate;

typedef struct trial_result {
    mutant_fate fate;
    bool has_crashed; /* the process that ran it died */
    char detail[480]; /* how it was detected */
} trial_result;

typedef struct trial {
    mutant mutant;
    uint64_t number; /* from 1 on, in drawing order, including those that do not load */
    trial_result result;
} trial;

typedef struct trials {
    const subject *subjects;
    trial *list; /* ordered by variant, then by place in its text; all have run */
    size_t count;
    uint64_t redrawn; /* invalid mutants, which were replaced */
    char ptxas[128];  /* its version; empty: there is no ptxas */
} trials;

/* Draws and runs mutants, and prints a report. Returns the exit status. */
int mutants_run(device *d, const manifest *m, const manifest_variant *const *variants, size_t count,
                const options *o);

/* report.c */
void trials_report(const trials *t, const options *o);

/* False after a message on stderr. */
extern const out_form trials_form;
bool trials_write_json(const trials *t, const manifest *m, const device *d, const options *o);

/* The score: killed mutants in percent of those that count; 100 if none counts. */
typedef struct trial_tally {
    uint64_t drawn, killed, same_code, crashed;
} trial_tally;
double tally_net(trial_tally t); /* without those that ptxas shows to be the same */
trial_tally trials_tally(const trials *t, const char *family,
                         mutation_kind kind); /* null, MUTATION_KINDS: all */

#endif
