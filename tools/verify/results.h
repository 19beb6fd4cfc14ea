/* What a run found, and its form as JSON: written, and read again, so that parts of a run become one. */
#ifndef VERIFY_RESULTS_H
#define VERIFY_RESULTS_H

#include "../support/files.h"
#include "options.h"

/* What results of one run have in common; its parts, all but the last two. */
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
    FACT_VARIANTS, /* of the run, in all parts */
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
    bool lacks_times;    /* no seconds are known, or wanted */
    target_list not_run; /* targets whose images an emulated device did not run */
} run_results;

/* Results of these variants, which have not run yet; the facts that a bundle's program knows without a device are set. */
void results_open(run_results *all, pool *memory, const manifest *m, const manifest_variant *const *variants,
                  size_t count);

/* The other facts, of a run with this many variants in all parts, and the targets. */
void results_describe(run_results *all, const device *d, const options *o, size_t chosen);

/* Its name in the results: "manifest_xxh3_128". */
const char *results_fact_name(run_fact fact);

/* Leaves out the variants that have not run. */
void results_drop_missing(run_results *all);

/* False after a message. */
extern const out_form results_form;
bool results_write(const run_results *all, const char *path);

/* A journal has one line of the facts, and one of each result. */
void results_write_facts(FILE *out, const run_results *all);
void results_write_line(FILE *out, const manifest_variant *v, const run_result *r);

/* A text that results_write made, or a journal's. */
typedef struct results_text {
    const char *path; /* for messages */
    const char *text;
    size_t length;
    bool is_journal;
    const char *whose; /* the facts are that are there before: "this run's" */
    const char *part;  /* from here on set by results_read */
    uint64_t stated;   /* variants that the part had when it was written */
    size_t found;      /* variants that are there */
} results_text;

/* Adds its results. Facts that are there, of which those of the part may be none, have to be the same; the others are taken from it.
 * False, and a message with a place. */
bool results_read(run_results *all, results_text *from, char *error, size_t error_bytes);

/* Where the result of this variant stands; null: it is none of the run. */
run_result *results_slot(const run_results *all, const char *id);

/* ---- by family --------------------------------------------------------------------------------------------------- */

typedef struct family_tally {
    size_t variants, right, executed;
    uint64_t elements;
    bool has_bounds;
    double worst_ratio;
    const char *worst;         /* the id of the variant that it is of, or the family's name: all is exact */
    const run_result *largest; /* with the largest size; null: none ran */
} family_tally;

family_tally results_tally(const run_results *all, const char *family);

/* No variant before the i-th is of its family. */
bool results_is_new_family(const run_results *all, size_t i);

/* The families that ran without being compared: the next from the *i-th variant on, whose place is left in *i; null: no
 * more. */
const char *results_next_uncompared(const run_results *all, size_t *i);

extern const char *const run_verdicts[];

#endif
