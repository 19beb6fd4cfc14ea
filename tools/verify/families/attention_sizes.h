/* Chooses the sizes of attention. */
#ifndef VERIFY_ATTENTION_SIZES_H
#define VERIFY_ATTENTION_SIZES_H

#include "families.h"

void attention_plan(size_plan *plan);

#endif
