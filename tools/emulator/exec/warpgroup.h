/* Shared by wgmma and setmaxnreg, which all four warps of a warpgroup execute. */
#ifndef EMU_WARPGROUP_H
#define EMU_WARPGROUP_H

#include "../core/wgmma.h"
#include "exec.h"

/* Returns true if all lanes of the warp are active, and its warpgroup is complete. */
static inline bool is_in_warpgroup(emu_warp *w, const emu_op *op, uint32_t mask)
{
    uint32_t end = (w->id / EMU_WARPGROUP_WARPS + 1) * EMU_WARPGROUP_WARPS * EMU_LANES;
    if (w->block->launch->threads >= end)
        return is_whole_warp(w, op, mask);
    emu_fault(
        w, op, mask, CUDA_ERROR_LAUNCH_FAILED,
        "executes this in a warpgroup that is not complete: its four warps are the threads %u to %u, and "
        "the block has %u",
        end - EMU_WARPGROUP_WARPS * EMU_LANES, end - 1, w->block->launch->threads);
    return false;
}

#endif
