/* bar and barrier (ISA 9.7.13.1, 9.7.13.3). The lanes wait; core/barrier.c and core/cluster.c decide when they go on. */
#include "exec.h"

enum { NO_REDUCTION, POPC, AND, OR };

static inline bool agree(const uint32_t *values, uint32_t mask)
{
    uint32_t first = values[__builtin_ctz(mask)], differ = 0;
    ACTIVE_LANES(mask) differ |= values[i] ^ first;
    return differ == 0;
}

static void arrive(emu_warp *w, const emu_op *op, uint32_t mask, unsigned first_arg, emu_wait wait,
                   bool aligned, uint32_t predicate)
{
    const uint32_t *id = LANES_OF(const uint32_t, first_arg),
                   *threads = LANES_OF(const uint32_t, first_arg + 1);
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    const char *wrong = NULL;
    if (!agree(id, mask) || !agree(threads, mask))
        wrong = "and other lanes name different barriers or thread counts";
    else if (id[lane] >= EMU_BARRIERS)
        wrong = "names a barrier that is not one of 0 to 15";
    else if (threads[lane] % EMU_LANES || threads[lane] > EMU_LANES * w->block->warp_count)
        wrong = "gives the barrier a thread count that is not a multiple of 32 within the block";
    else if (wait == EMU_WAIT_ARRIVE && threads[lane] == 0)
        wrong = "arrives at a barrier without a thread count";
    if (wrong) {
        emu_fault(w, op, mask, CUDA_ERROR_LAUNCH_FAILED, "%s", wrong);
        return;
    }
    emu_wait_at(w, op,
                (emu_fragment){.mask = mask,
                               .wait = (uint8_t)wait,
                               .barrier = (uint8_t)id[lane],
                               .barrier_threads = threads[lane],
                               .is_aligned = aligned,
                               .predicate = predicate});
}

HANDLER_CALLS(bar_sync, arrive, 0, EMU_WAIT_BARRIER, true, 0)
HANDLER_CALLS(bar_arrive, arrive, 0, EMU_WAIT_ARRIVE, true, 0)
HANDLER_CALLS(barrier_sync, arrive, 0, EMU_WAIT_BARRIER, (op->mods.flags & EMU_ALIGNED) != 0, 0)
HANDLER_CALLS(barrier_arrive, arrive, 0, EMU_WAIT_ARRIVE, (op->mods.flags & EMU_ALIGNED) != 0, 0)

/* d, a, b, c: without a thread count, the row has the predicate in its place. */
HANDLER_CALLS(bar_red, arrive, 1, EMU_WAIT_BARRIER, true, emu_predicate(w, op->arg[3]))
HANDLER_CALLS(barrier_red, arrive, 1, EMU_WAIT_BARRIER, (op->mods.flags & EMU_ALIGNED) != 0,
              emu_predicate(w, op->arg[3]))

static void at_cluster(emu_warp *w, const emu_op *op, uint32_t mask, emu_wait wait)
{
    bool is_aligned = op->mods.flags & EMU_ALIGNED;
    emu_wait_at(w, op, (emu_fragment){.mask = mask, .wait = (uint8_t)wait, .is_aligned = is_aligned});
}

HANDLER_CALLS(cluster_arrive, at_cluster, EMU_WAIT_CLUSTER_ARRIVE)
HANDLER_CALLS(cluster_wait, at_cluster, EMU_WAIT_CLUSTER)

#define POPC_MODE  " m:-|popc t:u32"
#define LOGIC_MODE " m:-|-|and|or t:pred"

static const emu_row rows[] = {
    {"bar", "cta? sync", "barrier threads?", .run = bar_sync},
    {"bar", "cta? arrive", "barrier arriving", .run = bar_arrive},
    {"bar", "cta? red" POPC_MODE, "=t barrier zero !p", .run = bar_red},
    {"bar", "cta? red" POPC_MODE, "=t barrier threads !p", .run = bar_red},
    {"bar", "cta? red" LOGIC_MODE, "=t barrier zero !p", .run = bar_red},
    {"bar", "cta? red" LOGIC_MODE, "=t barrier threads !p", .run = bar_red},
    {"barrier", "cta? sync aligned?", "barrier threads?", 60, 30, .run = barrier_sync},
    {"barrier", "cta? arrive aligned?", "barrier arriving", 60, 30, .run = barrier_arrive},
    {"barrier", "cta? red m:-|popc aligned? t:u32", "=t barrier zero !p", 60, 30, .run = barrier_red},
    {"barrier", "cta? red m:-|popc aligned? t:u32", "=t barrier threads !p", 60, 30, .run = barrier_red},
    {"barrier", "cta? red m:-|-|and|or aligned? t:pred", "=t barrier zero !p", 60, 30, .run = barrier_red},
    {"barrier", "cta? red m:-|-|and|or aligned? t:pred", "=t barrier threads !p", 60, 30, .run = barrier_red},
    {"barrier", "cluster arrive aligned?", "", 78, 90, .run = cluster_arrive},
    {"barrier", "cluster arrive release|relaxed aligned?", "", 80, 90, .run = cluster_arrive},
    {"barrier", "cluster wait aligned?", "", 78, 90, .run = cluster_wait},
    {"barrier", "cluster wait acquire aligned?", "", 80, 90, .run = cluster_wait},
};

EXPORT_ROWS(emu_rows_barrier);
