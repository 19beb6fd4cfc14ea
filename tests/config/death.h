/* Tests code that must end the process. */
#ifndef TEST_DEATH_H
#define TEST_DEATH_H

/* Asserts that do_it(argument) exits with status 3 after printing "kiln: internal error: " ("kiln: error: " for a mistake in
 * a family) and exactly this text. */
void assert_internal_error(void (*do_it)(const void *argument), const void *argument, const char *expected);
void assert_family_error(void (*do_it)(const void *argument), const void *argument, const char *expected);

#endif
