/* mbarrier objects as operands. */
#ifndef EMU_EXEC_MBARRIER_H
#define EMU_EXEC_MBARRIER_H

#include "../core/async.h"
#include "access.h"

static inline uint32_t thread_of(const emu_warp *w, uint32_t lane)
{
    return w->id * EMU_LANES + lane;
}

static inline uint32_t offset_in(const emu_block *holder, uint64_t at)
{
    return (uint32_t)(at - (uint64_t)(uintptr_t)holder->shared);
}

static inline uint32_t offset_of(const emu_warp *w, uint64_t at)
{
    return offset_in(w->block, at);
}

/* Finds the host addresses of the lanes' mbarrier objects. Only some operations can use those of other blocks. */
static inline bool mbarriers_uncounted(emu_warp *w, const emu_op *op, unsigned arg, uint32_t mask,
                                       bool in_cluster, uint64_t at[EMU_LANES])
{
    if (!access_uncounted(w, op, op->arg[arg], mask, 8, true, at))
        return false;
    uint32_t outside = 0, remote = 0;
    ACTIVE_LANES(mask)
    {
        const emu_block *holder = emu_block_holding(w->block, at[i]);
        outside |= (uint32_t)(holder == NULL) << i;
        remote |= (uint32_t)(holder != w->block) << i;
    }
    if (outside)
        emu_fault(w, op, outside, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "names an mbarrier object that is not in shared memory");
    else if (remote && !in_cluster)
        emu_fault(
            w, op, remote, CUDA_ERROR_INVALID_ADDRESS_SPACE,
            "names another block's mbarrier object: only arrive without a result, expect_tx and complete_tx may do so");
    return w->state != EMU_WARP_FAULTED;
}

static inline bool mbarriers_of(emu_warp *w, const emu_op *op, unsigned arg, uint32_t mask, bool in_cluster,
                                uint64_t at[EMU_LANES])
{
    if (!mbarriers_uncounted(w, op, arg, mask, in_cluster, at))
        return false;
    EMU_TELL(w->audience, request, w, op, mask, 8, true, at, NULL);
    return true;
}

static inline bool load_mbarrier(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t at, uint64_t *bits,
                                 emu_mbarrier *m)
{
    memcpy(bits, (const void *)(uintptr_t)at, sizeof *bits);
    *m = emu_mbarrier_unpack(*bits);
    if (!m->is_valid)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_LAUNCH_FAILED,
                  "uses an mbarrier object that is not initialised");
    return m->is_valid;
}

#endif
