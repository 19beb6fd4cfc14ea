/* The results as JUnit XML, for CI servers. */
#ifndef VERIFY_JUNIT_H
#define VERIFY_JUNIT_H

#include "results.h"

/* A test suite per family and a test case per variant. False after a message. */
bool junit_write(const run_results *all, const char *path);

#endif
