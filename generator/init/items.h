/* Makes a configuration's items from a model's facts, and the calls of a program that tries them. */
#ifndef INIT_ITEMS_H
#define INIT_ITEMS_H

#include "model/facts.h"

/* "format: q4_k" of an item, "n: 4096" of a call. */
typedef struct init_word {
    const char *name, *value;
} init_word;

enum { INIT_MOST_WORDS = 16 };

/* A launch of the program; a line of the item's shapes. */
typedef struct init_call {
    const char *what; /* "blk.0.attn_q, attn_k, attn_v" */
    uint32_t times;   /* layers that launch it */
    const char *shape;
    init_word sizes[INIT_MOST_WORDS]; /* ended by a null name */
} init_call;

typedef struct init_item {
    const char *family, *comment;
    init_word params[INIT_MOST_WORDS];
    init_call *calls;
    size_t call_count, call_capacity;
    const char *refusal; /* why kiln rejects it; null: accepted */
} init_item;

typedef struct init_items {
    init_item *items;
    size_t count, capacity;
} init_items;

/* Makes a model's items; kiln may reject some. May add notes. */
void items_of_model(arena *a, model_facts *m, init_items *items);

/* The items of a project without a model. */
void items_of_example(arena *a, init_items *items);

/* An item as text: an element of `kernels`. */
void items_print(text *out, const init_item *item);

#endif
