/* Where the rows of attention's sequences are, and how many each has: from the contract of `layout`. */
#ifndef VERIFY_ATTENTION_LAYOUT_H
#define VERIFY_ATTENTION_LAYOUT_H

#include "attention_problem.h"

typedef struct attention_sequence {
    uint64_t batch, q_length, k_length;
    uint64_t q_first, k_first; /* rows before its own, where offsets count them */
} attention_sequence;

attention_sequence attention_sequence_of(problem *p, uint64_t batch);

/* Elements from row to row of q, k, v or out, or of scale: "_row_stride"; so of heads and batches. */
uint64_t attention_stride(problem *p, const char *matrix, const char *suffix);

/* The element at which the row of query i begins in "q" or "out", that of key j in "k" or "v", and its
 * place in "scale"; the query's place in lse. */
uint64_t attention_query_at(problem *p, const attention_sequence *s, const char *matrix, uint64_t head,
                            uint64_t i);
uint64_t attention_key_at(problem *p, const attention_sequence *s, const char *matrix, uint64_t head,
                          uint64_t j);
uint64_t attention_log_at(problem *p, const attention_sequence *s, uint64_t head, uint64_t i);

enum { ATTENTION_MANY_PAGES = 66000 }; /* more than 16 bits can number */

/* What a layout's arrays say of its sequences. */
typedef enum attention_lengths {
    LENGTHS_ALL,        /* nothing: each has q_length and k_length rows */
    LENGTHS_BY_OFFSETS, /* of queries and of keys */
    LENGTHS_IN_PART,    /* the same, and that some rows behind a sequence's keys are not in use */
    LENGTHS_IN_SLOTS,   /* how many of k_length rows are in use */
    LENGTHS_NONE        /* offsets of keys that are all 0, in a layout that has them */
} attention_lengths;

/* Sets the scalars of the layout, and which of its arrays are null, by the lengths. */
void attention_plan_layout(problem *p, attention_lengths how);

/* Rows of a head that one array holds: of Q and O, of K and V. */
uint64_t attention_query_rows(problem *p);
uint64_t attention_key_rows(problem *p);

/* Fills the layout's arrays: lengths around the edges of tiles, 0, 1, and more than k_length. */
void attention_make_layout(problem *p);

/* Makes each element of K and V, or each scale, a NaN that is in no row of a sequence. */
void attention_poison(problem *p);

#endif
