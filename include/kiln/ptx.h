/* Moved in 0.2.0 to <kiln/author/ptx.h>. */
#ifndef KILN_PTX_MOVED_H
#define KILN_PTX_MOVED_H

#include <kiln/author/ptx.h>

#endif
