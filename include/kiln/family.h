/* Moved in 0.2.0 to <kiln/author/family.h>. */
#ifndef KILN_FAMILY_MOVED_H
#define KILN_FAMILY_MOVED_H

#include <kiln/author/family.h>

#endif
