/* Decoded bulk copies: one operation per address, of which only the first does work. Argument 0 of the first is the address in
   shared memory, argument 1 the size; its list has the coordinates. The second has the address in global memory or of the
   tensor map; the third, for loads only, that of the mbarrier. Prefetches and tensormap instructions have no address in shared
   memory, so they begin with the second. */
#ifndef EMU_EXEC_BULK_H
#define EMU_EXEC_BULK_H

#include "exec.h"

/* mods.mode of the operations. */
enum { EMU_BULK_FIRST, EMU_BULK_GLOBAL, EMU_BULK_MBARRIER };

#endif
