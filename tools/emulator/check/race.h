/* What the race check keeps: see race.c. */
#ifndef EMU_CHECK_RACE_H
#define EMU_CHECK_RACE_H

#include "watch.h"

enum { EMU_RACE_STRONG = 1, EMU_RACE_WIDE = 2 /* beyond the block */ };

#define EMU_RACE_WARPS 32
/* A warp has two clocks when copies arrive at mbarriers: its own, and that of the copies which did. */
#define EMU_RACE_CLOCKS (2 * EMU_RACE_WARPS)

typedef struct emu_race_record {
    uint64_t block;
    uint32_t time, step; /* 0: none; which access of the block */
    uint32_t lanes;
    uint32_t pending; /* lanes whose copy is on its way: ordered with nothing that comes */
    uint32_t at;
    uint8_t clock, bytes, flags;
} emu_race_record;

typedef struct emu_race_cell {
    uint64_t run; /* block run or launch that it belongs to */
    emu_race_record write, reads[2];
    uint32_t readers[2][4]; /* the lanes of each of the reads, by byte */
} emu_race_cell;

/* What a release left at an address. */
typedef struct emu_race_place {
    struct emu_race_place *next;
    uint64_t address, run;
    uint64_t block; /* `narrow` is about this one */
    uint32_t narrow[EMU_RACE_CLOCKS];
    uint32_t *wide; /* by block and clock of the grid */
} emu_race_place;

struct emu_race_grid {
    emu_arena arena;
    emu_race_place *places[4096];
    struct emu_read_only *read_only;
    uint64_t run;
    emu_race_cell *spare; /* those of a block that has ended, for the next one; NULL: none */
};

#define EMU_RACE_READS 16

struct emu_race {
    uint64_t run;
    uint32_t time, step;
    unsigned clocks;                                 /* of each block */
    uint32_t known[EMU_RACE_WARPS][EMU_RACE_CLOCKS]; /* by warp */
    struct {
        uint32_t lanes[EMU_LANES][EMU_LANES]; /* what each knows of each */
        uint32_t all[EMU_LANES];              /* and of all: the least of those */
        uint32_t fenced[EMU_LANES];           /* time of the last fence; 0: none */
        uint8_t fence_scope[EMU_LANES];
        emu_race_place *read[EMU_RACE_READS]; /* by strong reads since the last fence */
        unsigned read_count;
    } of[EMU_RACE_WARPS];
    uint32_t *grid; /* what the block knows of other blocks' clocks; NULL: nothing */
    emu_race_cell *shared;
};

static inline void emu_race_raise(uint32_t *to, uint32_t time)
{
    if (*to < time)
        *to = time;
}

/* The allocation that a global address lies in; NULL: it is no global address, or one of .const. */
emu_allocation *emu_race_allocation(const emu_block *block, const emu_op *op, uint64_t at);
emu_race_place *emu_race_place_of(emu_launch *launch, uint64_t at, uint64_t run);
void emu_race_acquire(emu_warp *warp, const emu_race_place *place, bool wide);
/* To be acquired by the next fence or barrier. */
void emu_race_remember(emu_warp *warp, emu_race_place *place);
void emu_race_release(emu_warp *warp, emu_race_place *place, uint32_t time, bool wide);
/* A relaxed write after a fence releases what came before that. */
void emu_race_release_fenced(emu_warp *warp, emu_race_place *place, uint32_t lane, bool wide);

/* race_async.c: the arrivals of a phase, of the mbarrier at the host address `at`. */
void emu_race_mbarrier(emu_warp *warp, const emu_plan *plan, uint32_t lane, uint64_t at);

/* read_only.c: a write, or a load of read-only data. */
void emu_read_only_access(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                          const uint64_t at[EMU_LANES]);
void emu_read_only_free(struct emu_race_grid *grid);

#endif
