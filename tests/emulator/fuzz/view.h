/* A PTX text for the mutator: its statements and its declared names, each with a class. */
#ifndef EMU_FUZZ_VIEW_H
#define EMU_FUZZ_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct span {
    size_t at, size;
} span;

/* Classes: p h r f d F q are registers by width (f, F: float), ':' labels, S L G C P variables by state space. */
typedef struct name {
    span text;
    char class;
    unsigned count; /* from name<count>, else 0 */
} name;

enum { MOST_STATEMENTS = 4096, MOST_NAMES = 512 };

typedef struct view {
    const uint8_t *data;
    size_t bytes;
    span statements[MOST_STATEMENTS]; /* instructions, with guard and ';' */
    name names[MOST_NAMES];
    unsigned statement_count, name_count;
} view;

void view_text(view *v, const uint8_t *data, size_t bytes);
span view_word(const uint8_t *data, size_t end, size_t at); /* the next word from `at` on; size 0: none */
char view_class(const view *v, span word);                  /* 0: not a declared name */
/* Copies a random name of the class to `out`. Returns its size; 0: there is none. */
size_t view_random_name(const view *v, char class, unsigned *seed, char out[64]);
unsigned next_random(unsigned *seed);

#endif
