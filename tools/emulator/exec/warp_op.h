/* Instructions that the whole warp executes together: .sync.aligned without a member mask. */
#ifndef EMU_WARP_OP_H
#define EMU_WARP_OP_H

#include "exec.h"

/* True when no lane is missing. Otherwise the lanes wait for the others, or, when some have exited, the launch fails. */
static inline bool emu_whole_warp(emu_warp *w, const emu_op *op, uint32_t mask)
{
    if (mask == EMU_ALL)
        return true;
    if (mask != w->alive) {
        emu_wait_at(w, op, (emu_fragment){.mask = mask, .members = EMU_ALL, .wait = EMU_WAIT_LANES});
        return false;
    }
    return !emu_is_misused(w, op, mask, EMU_PART_OF_WARP);
}

#endif
