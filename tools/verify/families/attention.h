/* Scaled-dot-product attention: O = softmax(scale * Q * K^T) * V, with or without a causal mask. */
#ifndef VERIFY_ATTENTION_H
#define VERIFY_ATTENTION_H

#include "families.h"

extern const family_row attention_row;

#endif
