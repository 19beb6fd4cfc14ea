/* Control flow, fences, and instructions that only take time (ISA 9.7.12, 9.7.13.4, 9.7.19). */
#include "exec.h"

static const emu_op *target_of(const emu_op *op)
{
    return (const emu_op *)(intptr_t)op->imm;
}

HANDLER_CALLS(branch, emu_jump, target_of(op))

/* bra.uni promises that all active lanes agree. */
HANDLER(branch_uniform)
{
    if (mask == w->active || !emu_is_misused(w, op, mask, EMU_PARTED_UNIFORM))
        emu_jump(w, op, mask, target_of(op));
}

HANDLER(branch_indexed)
{
    const uint32_t *index = LANES_OF(const uint32_t, 0);
    const emu_op *ops = w->block->launch->program->ops;
    bool is_together = mask == w->active;
    for (unsigned groups = 0; mask; groups++) {
        uint32_t n = index[__builtin_ctz(mask)], group = 0;
        ACTIVE_LANES(mask) group |= (uint32_t)(index[i] == n) << i;
        mask &= ~group;
        if (n >= (uint64_t)op->imm) {
            emu_fault(w, op, group, CUDA_ERROR_LAUNCH_FAILED,
                      "branches by index %u, but the list has %lld targets", n, (long long)op->imm);
            return;
        }
        emu_send(w, op, group, ops + op->list[n]);
        if (is_together && groups == 1)
            EMU_TELL(w->audience, part, w, op);
    }
}

/* Each lane's return address is in the callee's return slot, since functions do not recurse. */
HANDLER(call)
{
    uint64_t *back = LANES_OF(uint64_t, 0);
    ACTIVE_LANES(mask) back[i] = (uint64_t)(uintptr_t)(op + 1);
    emu_jump(w, op, mask, target_of(op));
}

/* The list has four words per function: its address, its first operation, its return slot, and the operation to return to. */
HANDLER(call_indirect)
{
    const uint64_t *to = LANES_OF(const uint64_t, 0);
    const emu_op *ops = w->block->launch->program->ops;
    for (const uint32_t *f = op->list, *end = f + 4 * op->imm; f < end; f += 4) {
        uint64_t *back = emu_lanes(w, f[2]);
        uint32_t group = 0;
        ACTIVE_LANES(mask) group |= (uint32_t)(to[i] == f[0]) << i;
        ACTIVE_LANES(group) back[i] = (uint64_t)(uintptr_t)(ops + f[3]);
        mask &= ~group;
        if (group)
            emu_send(w, op, group, ops + f[1]);
    }
    if (mask)
        emu_fault(w, op, mask, CUDA_ERROR_LAUNCH_FAILED,
                  "calls 0x%llx, which is no function with these arguments",
                  (unsigned long long)to[__builtin_ctz(mask)]);
}

HANDLER(ret)
{
    const uint64_t *back = LANES_OF(const uint64_t, 0);
    while (mask) {
        uint64_t to = back[__builtin_ctz(mask)];
        uint32_t group = 0;
        ACTIVE_LANES(mask) group |= (uint32_t)(back[i] == to) << i;
        mask &= ~group;
        emu_send(w, op, group, (const emu_op *)(uintptr_t)to);
    }
}

HANDLER(exit_)
{
    EMU_TELL(w->audience, exit, w, op, mask);
    emu_exit_lanes(w, mask);
}

HANDLER_CALLS(trap, emu_fault, CUDA_ERROR_LAUNCH_FAILED, "executes trap")
HANDLER_CALLS(fail_assertion, emu_fault, CUDA_ERROR_ASSERT, "fails an assertion")

HANDLER(fence)
{
    EMU_TELL(w->audience, fence, w, op, mask);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Sleeping lets other warps run. */
HANDLER(sleep_)
{
    (void)op, (void)mask;
    emu_yield(w);
}

/* Does nothing: grids run one after another. A check reports kernels that depend on this. */
HANDLER(grid_wait)
{
    EMU_TELL(w->audience, grid_wait, w, op, mask);
}

HANDLER(grid_next)
{
    EMU_TELL(w->audience, grid_next, w, op, mask);
}

static char *local_at(const emu_warp *w, const emu_op *op, uint32_t lane)
{
    uint64_t thread = (uint64_t)w->id * EMU_LANES + lane;
    return w->block->local + thread * w->block->launch->program->local_bytes + op->imm;
}

HANDLER(load_local)
{
    char *d = LANES_OF(char, 0);
    unsigned bytes = op->mods.count;
    ACTIVE_LANES(mask) memcpy(d + (size_t)i * bytes, local_at(w, op, i), bytes);
}

HANDLER(store_local)
{
    const char *s = LANES_OF(const char, 0);
    unsigned bytes = op->mods.count;
    ACTIVE_LANES(mask) memcpy(local_at(w, op, i), s + (size_t)i * bytes, bytes);
}

extern const emu_control EMU_LEVEL_NAME(emu_control);
const emu_control EMU_LEVEL_NAME(emu_control) = {
    .branch = branch,
    .branch_uniform = branch_uniform,
    .branch_indexed = branch_indexed,
    .call = call,
    .call_indirect = call_indirect,
    .fail_assertion = fail_assertion,
    .ret = ret,
    .exit = exit_,
    .load_local = load_local,
    .store_local = store_local,
};

static const emu_row rows[] = {
    {"bra", "uni?", "", .form = EMU_FORM_BRA},
    {"brx", "idx uni?", "", 60, 30, .form = EMU_FORM_BRX},
    {"call", "uni?", "", .form = EMU_FORM_CALL},
    {"ret", "uni?", "", .form = EMU_FORM_RET},
    {"exit", "", "", .form = EMU_FORM_RET},
    {"trap", "", "", .run = trap},
    {"brkpt", "", "", .run = nothing},
    {"pmevent", "", "#event", .run = nothing},
    {"pmevent", "mask", "#events", .run = nothing},
    {"nanosleep", "t:u32", "t", 62, 70, .run = sleep_},
    {"membar", "cta|gl|sys", "", .run = fence},
    {"membar", "proxy alias", "", 75, 60, .run = fence},
    {"fence", "sc|acq_rel|acquire|release? @scope", "", 60, 70, .run = fence},
    {"fence", "proxy alias", "", 75, 70, .run = fence},
    {"fence", "proxy async global|shared::cta|shared::cluster?", "", 80, 90, .run = fence},
    {"fence", "mbarrier_init release cluster", "", 80, 90, .run = fence},
    {"fence", "acquire sync_restrict::shared::cluster cluster", "", 86, 90, .run = fence},
    {"fence", "release sync_restrict::shared::cta cluster", "", 86, 90, .run = fence},
    {"fence", "proxy async::generic acquire sync_restrict::shared::cluster cluster", "", 86, 90,
     .run = fence},
    {"fence", "proxy async::generic release sync_restrict::shared::cta cluster", "", 86, 90, .run = fence},
    {"griddepcontrol", "wait", "", 78, 90, .run = grid_wait},
    {"griddepcontrol", "launch_dependents", "", 78, 90, .run = grid_next},
};

EXPORT_ROWS(emu_rows_control);
