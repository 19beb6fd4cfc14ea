/* Exact checks of an access that the fast tests of exec/access.h could not accept. Each function returns false after a
   fault, and true if all lanes are right. emu_bounds_generic replaces generic addresses by host addresses. */
#ifndef EMU_BOUNDS_H
#define EMU_BOUNDS_H

#include "warp.h"

bool emu_bounds_global(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       const uint64_t at[EMU_LANES]);
/* `at` are offsets in a window of the block, whose valid offsets are low to high. */
bool emu_bounds_window(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       const uint64_t at[EMU_LANES], emu_space space, uint64_t low, uint64_t high);
/* .shared::cluster: the rank of the block and the offset in its shared memory. */
bool emu_bounds_cluster(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                        uint64_t at[EMU_LANES]);
bool emu_bounds_generic(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                        uint64_t at[EMU_LANES]);

#endif
