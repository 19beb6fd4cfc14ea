/* A lock and a time limit for launches. */
#ifndef VERIFY_WATCH_H
#define VERIFY_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Opens the lock and sets the time limit. lock_path null: no lock. seconds 0: no time limit. A launch that takes
 * longer ends the process with VERIFY_EXIT_HUNG, after a line of JSON on standard output if has_lines, otherwise
 * after a message on stderr. False after a message. */
bool watch_open(const char *lock_path, uint64_t seconds, bool has_lines);

/* Names the variant of the launches that follow. Flushes standard output. */
void watch_variant(const char *id);

/* For programs with a text of their own: opens the text that is written when a launch takes longer than the time limit. Null if
 * there is no limit. */
FILE *watch_open_text(void);
void watch_close_text(FILE *text);

/* Takes the lock and starts the clock, unless an earlier call already did. */
void watch_begin(void);

/* Stops the clock and releases the lock. Call it when the launch has ended, or if there was none. */
void watch_end(void);

#endif
