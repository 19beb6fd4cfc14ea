/* cp.async in flight (ISA 9.7.9.25.3), and what completes it. A copy reads its bytes when it is issued, and writes them to
   shared memory only when something waits for it, so a kernel that forgets to wait sees the old contents. */
#ifndef EMU_ASYNC_H
#define EMU_ASYNC_H

#include "launch.h"

/* The copy of one thread, or its cp.async.mbarrier.arrive. */
typedef struct emu_copy {
    uint32_t thread; /* its number in the block */
    uint32_t group;  /* how many groups the thread had committed before */
    uint32_t to;     /* offset in shared memory of the destination or the mbarrier */
    uint32_t at;     /* index of the instruction */
    uint8_t bytes;   /* 0: an arrival at the mbarrier */
    uint8_t read;    /* bytes that come from the source; the others are zero */
    uint8_t data[16];
    uint64_t from;      /* host address of the source */
    uint16_t unwritten; /* kept by an observer: bit k: byte k of the source was never written */
} emu_copy;

void emu_async_issue(emu_block *block, const emu_copy *copy);
void emu_async_commit(emu_block *block, uint32_t thread);
/* Completes all groups of these lanes of a warp, except the last `pending` ones; with `all` also copies that are not
   committed. */
void emu_async_wait(emu_block *block, uint32_t warp, uint32_t lanes, uint32_t pending, bool all);
/* Completes the arrivals at the mbarrier at this offset, and first the copies before them. */
void emu_async_arrive_at(emu_block *block, uint32_t mbarrier);

void emu_async_free(emu_block *block);

/* The fields of an mbarrier object's 64 bits. mbarrier.arrive returns the bits from before the arrival. */
typedef struct emu_mbarrier {
    uint32_t expected, pending; /* arrivals */
    int32_t transactions;
    uint32_t phase; /* modulo 4 */
    bool is_valid;
} emu_mbarrier;

emu_mbarrier emu_mbarrier_unpack(uint64_t bits);
/* Adds to the transaction count. Returns false, and adds nothing, if it would leave its range (ISA 9.7.13.15.2). */
bool emu_mbarrier_count(emu_mbarrier *m, int64_t transactions);
/* Begins the next phase if no arrival and no transaction is pending. */
void emu_mbarrier_advance(emu_block *block, uint32_t mbarrier, emu_mbarrier *m);
void emu_mbarrier_store(emu_block *block, uint32_t mbarrier, emu_mbarrier m);

#endif
