/* A kernel launch and its blocks, as the runner and the handlers see them. */
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include "limits.h"
#include "memory.h"
#include "observer.h"
#include "program.h"
#include "report.h"
#include "warp.h"

#include <pthread.h>

#define EMU_BARRIERS            16
#define EMU_MOST_CLUSTER_BLOCKS 16

typedef struct emu_launch {
    emu_program *program;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t threads;         /* per thread block */
    bool is_explicit_cluster; /* the launch or the kernel gives the cluster's size, even if it is 1 */
    uint32_t dynamic_shared_bytes;
    char *parameters;
    uint32_t parameter_bytes;
    char *const_bank; /* of the kernel's module */
    uint64_t const_bytes;
    unsigned multiprocessors, device_number, max_resident_blocks;
    uint32_t registers;    /* per thread, at entry; 0: not known, and setmaxnreg is ignored */
    unsigned shared_limit; /* per block, for %reserved_smem_offset_cap */
    uint64_t serial;
    bool is_exact;         /* accesses are checked to the byte of the allocation, not to its last page */
    uint8_t garbage;       /* what each byte of registers and local memory holds before it is written */
    bool races_of_same;    /* two writes of the same value are a race */
    bool fences_reads;     /* a bulk copy to bytes that loads have read needs a proxy fence */
    bool parts_warpgroups; /* wgmma.fence does not order a product after other threads' writes */
    bool parts_lanes;      /* a lane releases only what other lanes of its warp have executed for sure */
    bool is_ordered;       /* runs on one host thread, so that accesses have one order */
    emu_report report;
    emu_findings findings;
    emu_audience audience;
    unsigned observers;
    struct emu_race_grid *race; /* these four belong to observers */
    struct emu_read_only *read_only;
    struct emu_counts *counts;
    struct emu_reach *reach;
    bool is_dependent; /* programmatic stream serialization: it may begin while earlier launches still run */
    uint64_t overlap_from; /* the serial of the first launch that may still run; UINT64_MAX: none */
    bool lets_next_early;  /* kept by an observer: a thread let the next launch begin before it had waited */
    /* these belong to the runner */
    uint64_t block_count;
    uint64_t first_block, end_block; /* the blocks that run: first_block to end_block - 1 */
    uint32_t cluster_blocks;
    uint64_t first_cluster, end_cluster; /* the clusters that may have one of these blocks */
    uint64_t next_number;                /* how many blocks have begun */
    emu_order order;
    uint64_t step;            /* for EMU_SHUFFLE */
    uint64_t fault_cluster;   /* lowest one with a fault, UINT64_MAX: none; later ones need not go on */
    uint64_t most_jumps;      /* limit of a block's backward jumps; UINT64_MAX: none */
    uint64_t most_idle_jumps; /* limit of each warp's backward jumps without progress of the launch */
    uint64_t progress;        /* slices in which a block stored, released or finished something */
    unsigned workers_left;
    bool is_shared; /* runs on several host threads */
} emu_launch;

typedef struct emu_barrier {
    uint32_t arrived;      /* threads that have arrived, counted in whole warps */
    uint32_t expected;     /* threads that it waits for; 0: all that have not exited */
    bool is_used;          /* a warp has arrived since it last completed */
    uint64_t waiting;      /* warps that wait, one bit each */
    uint32_t true_count;   /* threads whose predicate is true in a reduction */
    uint32_t thread_count; /* threads that take part in the reduction */
} emu_barrier;

/* The last allocation that an instruction accessed, to avoid searches. */
typedef struct emu_recent {
    uint64_t base, end;
    emu_allocation *allocation;
} emu_recent;

#define EMU_RECENT 64

typedef struct emu_block {
    emu_launch *launch;
    uint64_t index; /* linear index in the grid */
    uint32_t id[3];
    struct emu_cluster *cluster;
    uint32_t rank; /* in the cluster */
    uint32_t
        shared_base; /* added to offsets in shared memory: addresses have the block's rank from bit 24 on */
    uint32_t shared_low, shared_high; /* addresses: after what the system reserves, and the end */
    emu_warp *warps;
    unsigned warp_count, live_warps;
    char *registers, *shared, *local;
    uint32_t shared_bytes; /* from address 0 to the end of the dynamic part */
    emu_barrier barriers[EMU_BARRIERS];
    uint32_t free_registers; /* in the pool of setmaxnreg */
    emu_recent recent[EMU_RECENT];
    uint64_t stores, seen_stores; /* stores and other progress */
    uint64_t seen_progress, idle_jumps, jumps;
    size_t register_room, shared_room, local_room, warp_room;
    struct emu_async *async;       /* async.h; NULL until the block copies asynchronously */
    struct emu_bulks *bulks;       /* bulk.h; NULL until the block issues a bulk copy or commits one */
    struct emu_products *products; /* wgmma.h, by warp; NULL until the block issues a product */
    struct emu_init *init;         /* these belong to observers */
    struct emu_race *race;
    struct emu_sync *sync;
    struct emu_tally *tally;
    struct emu_dependent *dependent;
    struct emu_wgmma_state *wgmma;
    struct emu_bulk_state *bulk;
} emu_block;

/* Blocks that run together on one host thread, and can access each other's shared memory. A launch without clusters has
   clusters of one block. */
typedef struct emu_cluster {
    emu_launch *launch;
    uint64_t index;    /* linear, among the clusters of the launch */
    emu_block *blocks; /* by rank */
    unsigned count;
    unsigned findings; /* number of the next finding */
    unsigned live_warps;
    /* barrier.cluster: a warp's arrivals and waits are counted, and so are the phases */
    uint32_t phases;                                       /* completed */
    uint32_t observed;                                     /* phases that a wait has seen complete */
    unsigned arrived;                                      /* live warps, in the current phase */
    uint64_t waiting_turns, waiting_stores, waiting_state; /* stuck.c */
} emu_cluster;

/* The rank from an address in shared memory; the rest is the offset. */
#define EMU_RANK_SHIFT 24

/* The block of the cluster whose shared memory holds the host address; NULL: none. */
static inline emu_block *emu_block_holding(const emu_block *b, uint64_t at)
{
    if (at - (uint64_t)(uintptr_t)b->shared < b->shared_bytes)
        return (emu_block *)(uintptr_t)b;
    for (unsigned rank = 0; b->cluster->count > 1 && rank < b->cluster->count; rank++) {
        emu_block *other = &b->cluster->blocks[rank];
        if (at - (uint64_t)(uintptr_t)other->shared < other->shared_bytes)
            return other;
    }
    return NULL;
}

/* Returns the live allocation at an address that the operation is about to access, or NULL. */
static inline emu_allocation *emu_allocation_at(const emu_block *b, const emu_op *op, uint64_t at)
{
    const emu_recent *r = &b->recent[op->at % EMU_RECENT];
    if (at >= r->base && at < r->end)
        return r->allocation;
    return emu_memory_contains(at) ? emu_memory_holding(at, 1) : NULL;
}

/* Runs the launch to its end. Returns CUDA_SUCCESS, or the error that the report explains. The results do not depend on the
   number of host threads (KILN_EMU_THREADS). */
CUresult emu_run_launch(emu_launch *launch);

/* Held by strong 16-byte accesses: the host has no atomic of this size. */
extern pthread_mutex_t emu_wide_lock;

/* cluster.c */
/* The linear index of a cluster's block and, in `id`, its index in each dimension. */
uint64_t emu_block_of_cluster(const emu_launch *launch, uint64_t cluster, uint32_t rank, uint32_t id[3]);
void emu_cluster_start(emu_cluster *cluster, emu_launch *launch, uint64_t index);
void emu_cluster_free(emu_cluster *cluster);
typedef enum emu_progress { EMU_CLUSTER_DONE, EMU_CLUSTER_UNFINISHED, EMU_CLUSTER_FAILED } emu_progress;
emu_progress emu_cluster_run(emu_cluster *cluster);

/* cluster_barrier.c */
/* Lets a warp whose lanes all wait at barrier.cluster arrive, or end its wait. Returns false if it has to keep waiting. */
bool emu_cluster_try(emu_warp *warp);
void emu_cluster_warp_exited(emu_warp *warp);

/* block.c: `id` and `rank` are set. */
void emu_block_start(emu_block *block, emu_cluster *cluster, uint64_t index);
void emu_block_free(emu_block *block);
/* Gives a turn to each warp that can run and to copies in flight. Returns how many warps could run. */
unsigned emu_block_turn(emu_block *block);
/* Returns true if the warps have only jumped back for too long. Called after a turn. */
bool emu_block_is_idle(emu_block *block);
/* stuck.c: returns true if the cluster can certainly make no more progress. Called after a turn of all blocks. */
bool emu_cluster_is_stuck(emu_cluster *cluster);

/* registers.c: sets the warp's registers per thread to op->imm, or lets it wait for them. */
void emu_set_registers(emu_warp *warp, const emu_op *op, uint32_t lanes, bool raises);

/* barrier.c: lets the warp arrive if all its lanes wait at the same barrier. Returns false if it has to keep waiting. */
bool emu_barrier_try(emu_warp *warp);
void emu_barrier_warp_exited(emu_block *block);

#endif
