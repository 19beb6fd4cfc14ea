#ifndef VERIFY_LINEAR_H
#define VERIFY_LINEAR_H

#include "families.h"

extern const family_row linear_row;

#endif
