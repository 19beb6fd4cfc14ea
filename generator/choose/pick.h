/* The smallest set of candidates that is fast enough at every point: a covering problem over a table of times. */
#ifndef CHOOSE_PICK_H
#define CHOOSE_PICK_H

#include "support/arena.h"

/* The time of a candidate that cannot be launched at a point. */
#define PICK_NEVER UINT64_MAX

/* A ratio in thousandths: 1100 is 1.10. */
enum { PICK_ONE = 1000, PICK_MOST = 64 };

typedef struct pick_table {
    size_t candidate_count, point_count, need_count;
    const uint64_t *times; /* [candidate][point]; some candidate has a time at each point */
    const bool *meets;     /* [candidate][need]; a set has to meet each need, by some candidate */
    uint32_t within;       /* the set must reach this ratio to a point's best time */
    uint32_t most;         /* candidates in a set, at most PICK_MOST */
    bool is_least_bytes;   /* prefers the fewest bytes, then the order below */
    /* Bytes of a candidate, called only to break ties. */
    uint64_t (*bytes_of)(void *context, size_t candidate);
    void *context;
} pick_table;

typedef enum pick_status {
    PICK_MADE,
    PICK_TOO_SLOW, /* no set of at most `most` is within the ratio; items: a smallest set at the best ratio */
    PICK_UNCOVERED, /* no set of at most `most` meets the needs; `count` is the least size */
    PICK_UNDECIDED  /* gave up: too many sets to compare */
} pick_status;

typedef struct picked {
    pick_status status;
    size_t items[PICK_MOST]; /* ascending */
    size_t count;
    bool is_partial; /* not all sets of this size could be compared */
    uint32_t worst;  /* the largest ratio, rounded up, and its point; UINT32_MAX: larger */
    size_t worst_point;
    uint64_t mean; /* geometric mean of the ratios: its log2, in units of 1/65536 */
} picked;

/* Picks a set that meets every need and is within the ratio at every point: the fewest candidates, then the least geometric mean
 * of times, then the fewest bytes, then the lowest candidates in order. Integers only, so that every build agrees. */
picked pick(arena *a, const pick_table *t);

/* time / best, at least 1, rounded up; UINT32_MAX: too large, or a time that is PICK_NEVER. */
uint32_t pick_ratio(uint64_t time, uint64_t best);

/* log2 of a ratio of at least 1, in units of 1/65536. */
uint64_t pick_log2(uint64_t time, uint64_t best);

#endif
