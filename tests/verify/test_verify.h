/* cmocka, after the headers that it needs. */
#ifndef TEST_VERIFY_H
#define TEST_VERIFY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#endif
