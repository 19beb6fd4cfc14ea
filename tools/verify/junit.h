/* The results as JUnit XML, for CI servers. */
#ifndef VERIFY_JUNIT_H
#define VERIFY_JUNIT_H

#include "../support/files.h"
#include "results.h"

/* A test suite per family and a test case per variant. False after a message. */
extern const out_form junit_form;
bool junit_write(const run_results *all, const char *path);

#endif
