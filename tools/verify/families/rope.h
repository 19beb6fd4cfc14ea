/* rope: reference, bound, inputs and sizes. */
#ifndef VERIFY_ROPE_H
#define VERIFY_ROPE_H

#include "families.h"

extern const family_row rope_row;

#endif
