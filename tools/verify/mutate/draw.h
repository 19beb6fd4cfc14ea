/* Which mutants there are: drawn by a seed, for one family. First a variant is drawn, each as likely as the next, then an
 * instruction of it, then a kind that it has, then a change of that kind. One in four is of a kind that has the fewest yet,
 * so that rare instructions get their share. None is drawn twice. */
#ifndef VERIFY_MUTATE_DRAW_H
#define VERIFY_MUTATE_DRAW_H

#include "../random.h"
#include "subject.h"

typedef struct mutant {
    size_t subject; /* a place among the subjects */
    mutation_kind kind;
    text_span statement; /* what the change is in */
    mutation change;
} mutant;

typedef struct draw {
    const char *family;
    const subject *subjects; /* of all families */
    size_t *own;             /* places of the family's among them */
    size_t own_count;
    uint64_t wanted;  /* mutants that count */
    uint64_t counted; /* drawn, less those that draw_again took back */
    uint64_t counted_of[MUTATION_KINDS];
    bool is_exhausted[MUTATION_KINDS];
    random_stream stream;
    uint64_t next; /* of the stream */
    mutant *drawn;
    size_t drawn_count;
    pool *memory;
} draw;

void draw_open(draw *d, const char *family, const subject *subjects, size_t count, uint64_t seed,
               uint64_t wanted, pool *memory);

/* One more; false: enough are drawn, or no others are found. */
bool draw_next(draw *d, mutant *m);

/* One that was drawn does not count: it is no PTX. */
void draw_again(draw *d, mutation_kind kind);

#endif
