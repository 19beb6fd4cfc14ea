/* Layouts of attention in which sequences have lengths of their own. They are on the device, so that a captured graph serves
 * sequences that grow: q_length and k_length are only the most, by which grid and parts are made. */
#ifndef KERNELS_ATTENTION_LAYOUT_H
#define KERNELS_ATTENTION_LAYOUT_H

#include "attention.h"

/* Takes the layout's arguments, and finds this thread block's sequence: its lengths, and where its rows are. */
void attention_find_sequence(attention *a);

/* Finds the sequence's rows of O, after the loop over the keys, which would keep registers for them. */
void attention_find_queries_again(attention *a);

#endif
