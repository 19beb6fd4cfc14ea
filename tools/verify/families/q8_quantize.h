#ifndef VERIFY_Q8_QUANTIZE_H
#define VERIFY_Q8_QUANTIZE_H

#include "families.h"

extern const family_row q8_quantize_row;

#endif
