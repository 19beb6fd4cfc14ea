/* A test's own families, in place of the product's, for kiln_main. */
#ifndef TESTS_TEST_FAMILIES_H
#define TESTS_TEST_FAMILIES_H

#include <kiln/author/family.h>

extern const kiln_family *const test_families[];

#endif
