/* cmocka, after the headers that it needs. */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <kiln/kiln.h>

/* Prints two status texts; cmocka's own message has only the numbers. */
#define assert_status(got, wanted) assert_string_equal(kiln_status_string(got), kiln_status_string(wanted))

#endif
