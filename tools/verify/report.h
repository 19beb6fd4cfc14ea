/* What kiln-verify prints: a table for people, and JSON. */
#ifndef VERIFY_REPORT_H
#define VERIFY_REPORT_H

#include "options.h"

void report_begin(const manifest *m, const device *d, const options *o);
void report_progress(const char *variant, uint64_t cases); /* on a terminal alone */
void report_variant(const manifest_variant *v, const run_result *r);

/* A line per family, one of all, and the targets that this device did not run; returns the exit status. results[i] is of
 * variants[i]. */
int report_end(const device *d, const manifest_variant *const *variants, const run_result *results,
               size_t count);

/* False after a message on stderr. Null, or "-": no file is needed. */
bool report_may_write(const char *path);
bool report_write_json(const char *path, const manifest *m, const device *d, const options *o,
                       const manifest_variant *const *variants, const run_result *results, size_t count);

#endif
