/* The families that a test has in place of the product's, as kiln_main takes them. */
#ifndef TESTS_TEST_FAMILIES_H
#define TESTS_TEST_FAMILIES_H

#include <kiln/author/family.h>

extern const kiln_family *const test_families[];

#endif
