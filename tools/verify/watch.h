/* Launches that other processes take in turn, and that end. */
#ifndef VERIFY_WATCH_H
#define VERIFY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* lock_path null: launches wait for nobody. seconds 0: a launch may take for ever. With has_lines a launch that takes longer
 * ends standard output with a line of JSON, else it is a message on stderr; the process ends with VERIFY_EXIT_HUNG. False
 * after a message. */
bool watch_open(const char *lock_path, uint64_t seconds, bool has_lines);

/* The launches that follow are of this variant. Flushes standard output. */
void watch_variant(const char *id);

/* Takes the lock, and begins to count, unless an earlier call has. */
void watch_begin(void);

/* The launch has ended, or there was none. */
void watch_end(void);

#endif
