/* barrier.cluster (ISA 9.7.13.3). A warp arrives as a whole, as at the barriers of a block. */
#include "launch.h"

/* Returns true if the warp has arrived in the current phase. */
static bool has_arrived(const emu_warp *w)
{
    return w->cluster_arrivals > w->block->cluster->phases;
}

static bool is_waiting(const emu_warp *w)
{
    return w->state == EMU_WARP_AT_BARRIER && w->fragments[0].wait == EMU_WAIT_CLUSTER;
}

static void end_wait(emu_warp *w)
{
    emu_cluster *c = w->block->cluster;
    w->cluster_waits = w->cluster_arrivals;
    if (c->observed < w->cluster_waits)
        c->observed = w->cluster_waits;
    EMU_TELL(w->audience, cluster_wait, w);
    emu_release(w, EMU_WAIT_CLUSTER);
}

/* The barrier does not wait for exited threads. */
static void complete_if_all_have_arrived(emu_cluster *c)
{
    if (c->arrived == 0 || c->arrived < c->live_warps)
        return;
    c->arrived = 0;
    c->phases++;
    EMU_TELL(&c->launch->audience, cluster_complete, c);
    for (unsigned rank = 0; rank < c->count; rank++) {
        emu_block *b = &c->blocks[rank];
        b->stores++;
        for (unsigned n = 0; n < b->warp_count; n++)
            if (is_waiting(&b->warps[n]))
                end_wait(&b->warps[n]);
    }
}

static void arrive(emu_warp *w)
{
    emu_cluster *c = w->block->cluster;
    const emu_fragment *f = &w->fragments[0];
    if (w->cluster_arrivals > c->observed) {
        emu_fault(w, f->pc, f->mask, CUDA_ERROR_LAUNCH_FAILED,
                  "arrives at the cluster's barrier a second time without having waited for it to complete");
        return;
    }
    EMU_TELL(w->audience, cluster_arrive, w);
    if (w->state == EMU_WARP_FAULTED)
        return;
    w->cluster_arrivals = c->phases + 1;
    c->arrived++;
    emu_release(w, EMU_WAIT_CLUSTER_ARRIVE);
    complete_if_all_have_arrived(c);
}

static void wait_for_phase(emu_warp *w)
{
    const emu_fragment *f = &w->fragments[0];
    if (w->cluster_arrivals == w->cluster_waits)
        emu_fault(w, f->pc, f->mask, CUDA_ERROR_LAUNCH_FAILED,
                  "waits at the cluster's barrier without having arrived there since its last wait");
    else if (has_arrived(w))
        w->state = EMU_WARP_AT_BARRIER;
    else
        end_wait(w);
}

/* Returns the wait that all live lanes have in common, or EMU_WAIT_NONE. */
static emu_wait common_wait(const emu_warp *w)
{
    uint32_t mask = 0;
    for (unsigned i = 0; i < w->parked; i++) {
        if (w->fragments[i].wait != w->fragments[0].wait)
            return EMU_WAIT_NONE;
        mask |= w->fragments[i].mask;
    }
    return mask && mask == w->alive ? (emu_wait)w->fragments[0].wait : EMU_WAIT_NONE;
}

bool emu_cluster_try(emu_warp *w)
{
    switch (common_wait(w)) {
    case EMU_WAIT_CLUSTER_ARRIVE:
        arrive(w);
        break;
    case EMU_WAIT_CLUSTER:
        wait_for_phase(w);
        break;
    default:
        break;
    }
    return w->state == EMU_WARP_READY;
}

void emu_cluster_warp_exited(emu_warp *w)
{
    emu_cluster *c = w->block->cluster;
    c->live_warps--;
    if (has_arrived(w))
        c->arrived--;
    complete_if_all_have_arrived(c);
}
