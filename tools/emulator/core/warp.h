/* A warp in execution. Lanes at the same operation form a fragment; one fragment runs, the others are parked. The lowest
   program counter runs first, so that lanes reconverge as early as possible. A fragment that polls, or jumps back too often
   while others are parked, loses its turn, so that spinning lanes do not starve the lanes that they wait for. */
#ifndef EMU_WARP_H
#define EMU_WARP_H

#include "program.h"

#define EMU_ALL 0xffffffffu

struct emu_block;

typedef enum emu_wait {
    EMU_WAIT_NONE,
    EMU_WAIT_LANES,   /* for the other lanes in `members` to reach this operation */
    EMU_WAIT_WARP,    /* bar.warp.sync: for the other lanes in `members` to reach any bar.warp.sync */
    EMU_WAIT_BARRIER, /* for the other warps of the block: sync and red */
    EMU_WAIT_ARRIVE, /* for the rest of the warp: bar.arrive, which then goes on without waiting for the block */
    EMU_WAIT_CLUSTER_ARRIVE, /* the same, at the cluster's barrier */
    EMU_WAIT_CLUSTER,        /* for the cluster */
    EMU_WAIT_REGISTERS,      /* for registers in the block's pool */
    EMU_WAIT_WARPGROUP,      /* for the other warps of its warpgroup to commit their part of a product */
    EMU_WAIT_FENCE,          /* for the other warps of its warpgroup to reach wgmma.fence */
} emu_wait;

typedef struct emu_fragment {
    const emu_op *pc;
    uint32_t mask, members;
    uint32_t rank; /* number of turns lost; the lowest runs first */
    uint8_t wait;  /* emu_wait */
    uint8_t barrier;
    bool is_aligned;
    uint32_t barrier_threads; /* 0: all threads of the block */
    uint32_t predicate;       /* the predicate of a reduction */
} emu_fragment;

typedef enum emu_warp_state {
    EMU_WARP_READY,
    EMU_WARP_AT_BARRIER, /* has arrived, and waits for other warps */
    EMU_WARP_BLOCKED,    /* no lane can go on */
    EMU_WARP_DONE,
    EMU_WARP_FAULTED,
} emu_warp_state;

struct emu_warp {
    const emu_op *pc;   /* the next operation of the running fragment */
    const emu_op *stop; /* the scheduler runs at this operation and any later one */
    uint32_t active;    /* lanes of the running fragment */
    uint32_t alive;     /* lanes that have not exited */
    char *base[2];      /* registers; constants, minus 1 because their offsets are odd */
    struct emu_block *block;
    const struct emu_audience *audience; /* of the launch */
    uint32_t carry;                      /* CC.CF, by lane */
    uint32_t id;                         /* in the block */
    emu_warp_state state;
    bool yields; /* lets the other warps run */
    uint32_t rank;
    uint32_t jumps_back; /* in this turn */
    uint32_t polls; /* strong reads, failed compare-and-swaps and tests in this turn, as in loops that wait */
    uint32_t tests; /* polls that were tests of mbarriers */
    unsigned parked;
    emu_fragment fragments[EMU_LANES];
    uint64_t clock;
    uint32_t cluster_arrivals, cluster_waits; /* at the cluster's barrier; waits that are over */
    uint32_t registers;                       /* per thread */
    uint32_t
        tested[EMU_LANES]; /* 1 + the offset of the mbarrier whose test a lane has failed last; 0: none */
};

void emu_warp_start(emu_warp *warp, struct emu_block *block, uint32_t id, uint32_t lanes);
void emu_warp_begin_turn(emu_warp *warp);
/* Runs until the warp is blocked or done, its turn is over, or the launch is stopped. */
void emu_warp_run(emu_warp *warp);

/* Called by handlers, which return at once afterwards. */
void emu_jump(emu_warp *warp, const emu_op *op, uint32_t lanes, const emu_op *target);
/* The lanes leave the running fragment and continue at the target. */
void emu_send(emu_warp *warp, const emu_op *op, uint32_t lanes, const emu_op *target);
void emu_wait_at(emu_warp *warp, const emu_op *op, emu_fragment waiting);
void emu_exit_lanes(emu_warp *warp, uint32_t lanes);
void emu_yield(emu_warp *warp);
void emu_stop(emu_warp *warp); /* after a fault */

/* Lets the lanes that wait in this way continue after their operation. */
void emu_release(emu_warp *warp, emu_wait wait);

static inline void *emu_lanes(const emu_warp *w, uint32_t arg)
{
    return w->base[arg & 1] + arg;
}

/* Returns the lanes for which a predicate operand is true; bit 1 of the argument negates it. */
static inline uint32_t emu_predicate(const emu_warp *w, uint32_t arg)
{
    uint32_t mask = *(const uint32_t *)(w->base[arg & 1] + (arg & ~2u));
    return arg & 2 ? ~mask : mask;
}

static inline void emu_set_predicate(const emu_warp *w, uint32_t arg, uint32_t mask, uint32_t value)
{
    uint32_t *p = emu_lanes(w, arg);
    *p = (*p & ~mask) | (value & mask);
}

#endif
