/* <kiln/author/ptx.h> under the name that it had before 0.2.0. */
#ifndef KILN_PTX_MOVED_H
#define KILN_PTX_MOVED_H

#include <kiln/author/ptx.h>

#endif
