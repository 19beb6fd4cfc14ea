/* Barriers and warp-level operations whose rules on participation are broken (ISA 9.7.13). */
#include "check.h"

#include "../core/launch.h"
#include "watch.h"

enum { LAUNCH_FAILED = 719 };

void emu_report_members(emu_warp *w, const emu_op *op, uint32_t outside)
{
    emu_fault(w, op, outside, LAUNCH_FAILED, "executes this without being in its own member mask");
}

void emu_report_inactive_source(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    emu_fault(w, op, lanes, LAUNCH_FAILED, "takes a value from a lane that does not take part");
}

void emu_report_barrier_misuse(emu_warp *w, const emu_op *op, uint32_t lanes, const char *what)
{
    emu_fault(w, op, lanes, LAUNCH_FAILED, "%s", what);
}

void emu_report_divergent_barrier(emu_warp *w)
{
    const emu_program *p = w->block->launch->program;
    const emu_fragment *f = &w->fragments[0], *g = &w->fragments[1];
    char source[EMU_SOURCE_BYTES];
    emu_fault(w, f->pc, f->mask, LAUNCH_FAILED,
              "waits at an aligned barrier while lanes 0x%08x of its warp wait at another one, in line %u%s",
              g->mask, p->instructions[g->pc->at]->line, emu_source_of(p, g->pc->at, source));
}

void emu_report_exited(emu_warp *w, const emu_op *op, uint32_t lanes, unsigned count, uint32_t first,
                       bool of_block)
{
    char thread[96];
    emu_watch_thread(w, w->block->index, first, thread, sizeof thread);
    emu_note(w, op, lanes, EMU_NOBODY,
             "is at an aligned barrier that %u thread%s of its %s skip%s by ending, first %s", count,
             count == 1 ? "" : "s", of_block ? "block" : "warp", count == 1 ? "s" : "", thread);
}
