/* Bulk copies as the decoder leaves them: an operation for each address. The first has the address in shared memory as argument
   0, the size as argument 1 and the coordinates in its list; the second the address in global memory, or that of the tensor
   map; the third, of loads, the mbarrier's. Prefetches and tensormap instructions have no address in shared memory: they begin
   with the second. Only the first does something. */
#ifndef EMU_EXEC_BULK_H
#define EMU_EXEC_BULK_H

#include "exec.h"

/* mods.mode of the operations. */
enum { EMU_BULK_FIRST, EMU_BULK_GLOBAL, EMU_BULK_MBARRIER };

#endif
