/* Counter-based random numbers: a pure function of seed, stream and index, so any single element of any input can
 * be recomputed on any machine. */
#ifndef VERIFY_RANDOM_H
#define VERIFY_RANDOM_H

#include <stdint.h>

#include <kiln/reference.h>

typedef kiln_random random_stream;

/* Opens a stream; streams with different names are independent. */
random_stream random_open(uint64_t seed, const char *name);
random_stream random_fork(random_stream s, uint64_t number);

uint64_t random_bits(random_stream s, uint64_t index);
double random_uniform(random_stream s, uint64_t index);                 /* in [0, 1), 53 bits */
double random_normal(random_stream s, uint64_t index);                  /* mean 0, deviation 1 */
uint64_t random_below(random_stream s, uint64_t index, uint64_t limit); /* in [0, limit); limit > 0 */

#endif
