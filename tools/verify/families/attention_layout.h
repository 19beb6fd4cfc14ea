/* Where the rows of attention's sequences lie and how many each has: from the contract of `layout`. */
#ifndef VERIFY_ATTENTION_LAYOUT_H
#define VERIFY_ATTENTION_LAYOUT_H

#include "attention_problem.h"

typedef struct attention_sequence {
    uint64_t batch, q_length, k_length;
    uint64_t q_first, k_first; /* rows of earlier sequences, if offsets count them */
} attention_sequence;

attention_sequence attention_sequence_of(problem *p, uint64_t batch);

/* Returns elements between rows ("_row_stride"), heads or batches of q, k, v, out or scale. */
uint64_t attention_stride(problem *p, const char *matrix, const char *suffix);

/* Return the first element of query i's row in "q" or "out", of key j's row in "k" or "v", and its index in
 * "scale"; and the query's index in lse. */
uint64_t attention_query_at(problem *p, const attention_sequence *s, const char *matrix, uint64_t head,
                            uint64_t i);
uint64_t attention_key_at(problem *p, const attention_sequence *s, const char *matrix, uint64_t head,
                          uint64_t j);
uint64_t attention_log_at(problem *p, const attention_sequence *s, uint64_t head, uint64_t i);

enum { ATTENTION_MANY_PAGES = 66000 }; /* more pages than 16 bits can number */

/* How a layout's arrays give the lengths of sequences. */
typedef enum attention_lengths {
    LENGTHS_ALL,        /* not at all: each has q_length and k_length rows */
    LENGTHS_BY_OFFSETS, /* by offsets of queries and of keys */
    LENGTHS_IN_PART,    /* by offsets; some rows at the end of a sequence's keys are unused */
    LENGTHS_IN_SLOTS,   /* by the number of used rows among k_length */
    LENGTHS_NONE        /* all offsets of keys are 0, in a layout that has offsets */
} attention_lengths;

/* Sets the layout's scalars and null arrays according to the lengths. */
void attention_plan_layout(problem *p, attention_lengths how);

/* Return the rows of a head in one array: of Q and O, of K and V. */
uint64_t attention_query_rows(problem *p);
uint64_t attention_key_rows(problem *p);

/* Fills the layout's arrays: lengths around the edges of tiles, 0, 1, and more than k_length. */
void attention_make_layout(problem *p);

/* Sets each element of K and V, or each scale, outside of all sequences' rows to NaN. */
void attention_poison(problem *p);

#endif
