/* cp.async in flight (ISA 9.7.9.25.3) and what completes it. A copy's bytes are read when it is issued and reach shared
   memory only when something waits for them, so a kernel that forgets to wait sees what was there before. */
#ifndef EMU_ASYNC_H
#define EMU_ASYNC_H

#include "launch.h"

/* The copy of one thread, or its cp.async.mbarrier.arrive. */
typedef struct emu_copy {
    uint32_t thread; /* in the block */
    uint32_t group;  /* commits of the thread before it */
    uint32_t to;     /* offset in shared memory: of the destination, or of the mbarrier */
    uint32_t at;     /* index of the instruction */
    uint8_t bytes;   /* 0: arrives at the mbarrier */
    uint8_t read;    /* bytes from the source */
    uint8_t data[16];
    uint64_t from;      /* the source: host address */
    uint16_t unwritten; /* kept by an observer: bytes of the source that were never written */
} emu_copy;

void emu_async_issue(emu_block *block, const emu_copy *copy);
void emu_async_commit(emu_block *block, uint32_t thread);
/* Completes the groups of these lanes of a warp, of each but the last `pending`; `all`: also what is not committed. */
void emu_async_wait(emu_block *block, uint32_t warp, uint32_t lanes, uint32_t pending, bool all);
/* Completes what the mbarrier at this offset tracks: the copies before each arrival at it, then the arrival. */
void emu_async_arrive_at(emu_block *block, uint32_t mbarrier);

void emu_async_free(emu_block *block);

/* An mbarrier object in its 64 bits. The state that arrive gives is the object before it. */
typedef struct emu_mbarrier {
    uint32_t expected, pending; /* arrivals */
    int32_t transactions;
    uint32_t phase; /* modulo 4 */
    bool is_valid;
} emu_mbarrier;

emu_mbarrier emu_mbarrier_unpack(uint64_t bits);
/* Adds to the count of transactions; false, and nothing is added, where it would leave its range (ISA 9.7.13.15.2). */
bool emu_mbarrier_count(emu_mbarrier *m, int64_t transactions);
/* Starts the next phase when nothing is left to wait for. */
void emu_mbarrier_advance(emu_block *block, uint32_t mbarrier, emu_mbarrier *m);
void emu_mbarrier_store(emu_block *block, uint32_t mbarrier, emu_mbarrier m);

#endif
