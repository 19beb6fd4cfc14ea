/* <kiln/author/family.h> under the name that it had before 0.2.0. */
#ifndef KILN_FAMILY_MOVED_H
#define KILN_FAMILY_MOVED_H

#include <kiln/author/family.h>

#endif
