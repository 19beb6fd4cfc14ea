/* What becomes of a score between the product and the softmax: a cap, ALiBi's distance, or an added mask. */
#ifndef KERNELS_ATTENTION_SCORE_H
#define KERNELS_ATTENTION_SCORE_H

#include "attention_keys.h"
#include "device/softmax.h"

/* Declares the parameters of the shaping, behind all others, and finds factor and q_end. With scale 0 Q is zeros and the scale
 * that of 1, so that a mask's -inf stays -inf. */
void attention_init_scores(attention *a, ptx_val scale);

/* Shapes a lane's scores of a tile. Afterwards `factor` makes powers of two of them. */
void attention_shape_scores(const attention *a, const attention_scores rows[], uint32_t count);

/* Adds the sinks' scores to the sums of rows; shrink[i], a variable, is what their sums of V have to be multiplied by
 * beside their share, with V's scale of the head. */
void attention_add_sinks(const attention *a, const ptx_val numbers[], softmax_row *const rows[],
                         ptx_val shrink[], uint32_t count);

#endif
