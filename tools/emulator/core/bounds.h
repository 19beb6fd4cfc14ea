/* An access that the fast tests of exec/access.h could not prove right. Lanes outside their allocation and the like become a
   fault (false); true: all lanes are fine. The addresses of a generic access become host addresses. */
#ifndef EMU_BOUNDS_H
#define EMU_BOUNDS_H

#include "warp.h"

bool emu_bounds_global(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       const uint64_t at[EMU_LANES]);
/* Offsets in a window of the block, which reaches from low to high. */
bool emu_bounds_window(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       const uint64_t at[EMU_LANES], emu_space space, uint64_t low, uint64_t high);
/* .shared::cluster: the rank of the block and the offset in its shared memory. */
bool emu_bounds_cluster(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                        uint64_t at[EMU_LANES]);
bool emu_bounds_generic(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                        uint64_t at[EMU_LANES]);

#endif
