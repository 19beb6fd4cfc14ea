/* setmaxnreg (ISA 9.7.19.5): all threads of a block begin with the same number of registers; its warps return registers to a
   pool or take them from it. The registers of ended warps do not return to the pool. */
#include "launch.h"

/* Sets the warp's registers per thread. Returns false, and changes nothing, if the pool has too few. */
static bool try_to_change(emu_warp *w, uint32_t count)
{
    emu_block *b = w->block;
    if (count > w->registers && (count - w->registers) * EMU_LANES > b->free_registers)
        return false;
    b->free_registers += (w->registers - count) * EMU_LANES;
    w->registers = count;
    b->stores++;
    return true;
}

/* Resumes waiting warps, in order, if the pool now has enough registers. */
static void serve(emu_block *b)
{
    for (unsigned n = 0; n < b->warp_count; n++) {
        emu_warp *w = &b->warps[n];
        if (w->parked == 1 && w->fragments[0].wait == EMU_WAIT_REGISTERS &&
            try_to_change(w, (uint32_t)w->fragments[0].pc->imm))
            emu_release(w, EMU_WAIT_REGISTERS);
    }
}

void emu_set_registers(emu_warp *w, const emu_op *op, uint32_t lanes, bool raises)
{
    uint32_t count = (uint32_t)op->imm;
    bool is_wrong = raises ? count < w->registers : count > w->registers;
    if (is_wrong && emu_is_misused(w, op, lanes, raises ? EMU_INC_LOWERS : EMU_DEC_RAISES))
        return;
    if (!try_to_change(w, count))
        emu_wait_at(w, op, (emu_fragment){.mask = lanes, .wait = EMU_WAIT_REGISTERS});
    else if (!raises)
        serve(w->block);
}
