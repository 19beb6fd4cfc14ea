/* Prints kiln-verify's table for people. */
#ifndef VERIFY_REPORT_H
#define VERIFY_REPORT_H

#include "results.h"

/* Prints the heading. `json` and `junit` are the paths of the results, or null: if one is standard output, the
 * table goes to stderr. */
void report_begin(const run_results *all, size_t bundle_variants, const char *json, const char *junit);

/* Prints, after report_begin, how many cubins the shipped bundle has and which ptxas made them, if it has only
 * cubins. */
void report_shipped(const manifest *cubins);

/* Prints a run's heading: the variants of its part, and those finished by an earlier run. */
void report_run(const run_results *all, size_t chosen, const options *o);

void report_merged(const run_results *all, size_t parts);

/* Prints that --own-images leaves no variant for the device `name`, to stderr. */
void report_no_own_image(const char *name);

void report_variant(const manifest_variant *v, const run_result *r);

/* Prints a line per family, a total, and the targets that this device did not run. Returns the exit status. */
int report_end(const run_results *all);

#endif
