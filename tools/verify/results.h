/* A run's results, written as JSON and read again, so that the results of parts can be merged. */
#ifndef VERIFY_RESULTS_H
#define VERIFY_RESULTS_H

#include "../support/files.h"
#include "options.h"

/* Facts about a run. All but the last two are equal in all its parts. */
typedef enum run_fact {
    FACT_BUNDLE,
    FACT_GENERATOR,
    FACT_MANIFEST,
    FACT_VERIFIER,
    FACT_DEVICE,
    FACT_SM,
    FACT_MULTIPROCESSORS,
    FACT_DRIVER_VERSION,
    FACT_EMULATED,
    FACT_CHECKS,
    FACT_ORDER,
    FACT_SEED,
    FACT_INPUTS,
    FACT_OPTIONS,
    FACT_VARIANTS, /* of the whole run, in all parts */
    FACT_PART,
    FACT_PART_VARIANTS,
    RUN_FACTS
} run_fact;

enum { MOST_TARGETS = 64, TARGET_BYTES = 16 };

/* "sm_100f", in ascending order. */
typedef struct target_list {
    char names[MOST_TARGETS][TARGET_BYTES];
    size_t count;
} target_list;

typedef struct run_results {
    pool *memory;
    const manifest *manifest;
    const char *facts[RUN_FACTS];
    const manifest_variant **variants; /* by id, ascending */
    run_result *results;               /* of each */
    size_t count;
    bool lacks_times;    /* the seconds are unknown or not wanted */
    target_list not_run; /* targets whose images an emulated device did not run */
} run_results;

/* Opens results of these variants, none of which has run, and sets the facts that are known without a device. */
void results_open(run_results *all, pool *memory, const manifest *m, const manifest_variant *const *variants,
                  size_t count);

/* Sets the other facts, for a run with this many variants in all parts, and the targets. */
void results_describe(run_results *all, const device *d, const options *o, size_t chosen);

/* Returns the fact's name in the results: "manifest_xxh3_128". */
const char *results_fact_name(run_fact fact);

/* Leaves out the variants that have not run. */
void results_drop_missing(run_results *all);

/* False after a message. */
extern const out_form results_form;
bool results_write(const run_results *all, const char *path);

/* A journal has one line of the facts, and one of each result. */
void results_write_facts(FILE *out, const run_results *all);
void results_write_line(FILE *out, const manifest_variant *v, const run_result *r);

/* A text written by results_write, or a journal. */
typedef struct results_text {
    const char *path; /* for messages */
    const char *text;
    size_t length;
    bool is_journal;
    const char *whose; /* for messages: the origin of the facts in `all`, such as "this run's" */
    const char *part;  /* results_read sets this and the following */
    uint64_t stated;   /* variants that the part had when it was written */
    size_t found;      /* variants in the text */
} results_text;

/* Adds the text's results. Facts that `all` already has must be equal, except that the part's may be missing; the
 * text sets the others. False, with a message and a place. */
bool results_read(run_results *all, results_text *from, char *error, size_t error_bytes);

/* Returns the place of this variant's result; null: it is not part of the run. */
run_result *results_slot(const run_results *all, const char *id);

/* ---- by family --------------------------------------------------------------------------------------------------- */

typedef struct family_tally {
    size_t variants, right, executed;
    uint64_t elements;
    bool has_bounds;
    double worst_ratio;
    const char *worst; /* the variant with the largest ratio, or the family's name if all results are exact */
    const run_result *largest; /* the result with the largest size; null: none ran */
} family_tally;

family_tally results_tally(const run_results *all, const char *family);

/* Returns whether the i-th variant is the first of its family. */
bool results_is_new_family(const run_results *all, size_t i);

/* Returns the next family, from the *i-th variant on, that ran without being compared, and sets *i to its variant;
 * null: no more. */
const char *results_next_uncompared(const run_results *all, size_t *i);

extern const char *const run_verdicts[];

#endif
