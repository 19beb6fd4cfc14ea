/* What kiln-verify prints: a table for people. */
#ifndef VERIFY_REPORT_H
#define VERIFY_REPORT_H

#include "results.h"

/* `json` and `junit` are where results will be written, or null: where one is standard output, the table goes to stderr. */
void report_begin(const run_results *all, size_t bundle_variants, const char *json, const char *junit);

/* After it, if the bundle that ships has cubins alone: how many, and which ptxas made them. */
void report_shipped(const manifest *cubins);

/* Prints a run's heading: the variants of its part, and those of an earlier run. */
void report_run(const run_results *all, size_t chosen, const options *o);

/* Prints the mistakes of a merged run. */
void report_merged(const run_results *all, size_t parts);

void report_variant(const manifest_variant *v, const run_result *r);

/* A line per family, one of all, and the targets that this device did not run; returns the exit status. */
int report_end(const run_results *all);

#endif
