/* Runs the blocks of a cluster in turn. All their warps run on one host thread, so events have one order. */
#include "launch.h"

#include <stdlib.h>

/* Turns of all warps before the runner may run other clusters. */
#define TURNS_PER_SLICE 16

uint64_t emu_block_of_cluster(const emu_launch *l, uint64_t index, uint32_t rank, uint32_t id[3])
{
    uint64_t linear = 0, stride = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t clusters = l->grid[i] / l->cluster[i];
        id[i] = (uint32_t)(index % clusters) * l->cluster[i] + rank % l->cluster[i];
        linear += stride * id[i];
        stride *= l->grid[i];
        index /= clusters;
        rank /= l->cluster[i];
    }
    return linear;
}

void emu_cluster_start(emu_cluster *c, emu_launch *l, uint64_t index)
{
    emu_block *blocks = c->blocks ? c->blocks : emu_alloc(l->cluster_blocks * sizeof *blocks);
    *c = (emu_cluster){.launch = l, .index = index, .blocks = blocks, .count = l->cluster_blocks};
    for (uint32_t rank = 0; rank < c->count; rank++) {
        emu_block *b = &blocks[rank];
        b->rank = rank;
        emu_block_start(b, c, emu_block_of_cluster(l, index, rank, b->id));
        c->live_warps += b->warp_count;
    }
}

void emu_cluster_free(emu_cluster *c)
{
    for (unsigned rank = 0; rank < c->count; rank++)
        emu_block_free(&c->blocks[rank]);
    free(c->blocks);
    *c = (emu_cluster){0};
}

emu_progress emu_cluster_run(emu_cluster *c)
{
    emu_launch *l = c->launch;
    for (int turn = 0; turn < TURNS_PER_SLICE; turn++) {
        unsigned ran = 0;
        for (unsigned rank = 0; rank < c->count; rank++) {
            ran += emu_block_turn(&c->blocks[rank]);
            if (__atomic_load_n(&l->fault_cluster, __ATOMIC_RELAXED) <= c->index)
                return EMU_CLUSTER_FAILED;
        }
        if (c->live_warps == 0)
            return EMU_CLUSTER_DONE;
        for (unsigned rank = 0; rank < c->count; rank++)
            if (ran == 0 || emu_block_is_idle(&c->blocks[rank])) {
                emu_fault_deadlock(&c->blocks[rank]);
                return EMU_CLUSTER_FAILED;
            }
        if (emu_cluster_is_stuck(c)) {
            emu_fault_deadlock(&c->blocks[0]);
            return EMU_CLUSTER_FAILED;
        }
    }
    return EMU_CLUSTER_UNFINISHED;
}
