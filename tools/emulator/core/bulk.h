/* Bulk copies, st.async and red.async in flight (ISA 9.7.9.12, 9.7.9.25.4, 9.7.9.27.1, 9.7.13.7). A copy lands as a whole,
   after a delay that is drawn from a fixed seed: time passes with each turn of the block's warps and each test of an mbarrier.
   The source is read and the destination written only then, or when a thread waits for the copy's group, so a kernel that does
   not wait sees the old contents. */
#ifndef EMU_BULK_H
#define EMU_BULK_H

#include "launch.h"

typedef enum emu_bulk_kind {
    EMU_BULK_LOAD,
    EMU_BULK_STORE,
    EMU_BULK_REDUCTION,
    EMU_BULK_KINDS
} emu_bulk_kind;

/* Bytes that are contiguous in both memories. A load's source may also be in shared memory of the issuing block. */
typedef struct emu_bulk_piece {
    uint64_t global; /* host address; 0: the source is `data` or, outside the tensor, the fill */
    uint32_t shared; /* offset in the holder's shared memory */
    uint32_t bytes;
} emu_bulk_piece;

typedef struct emu_bulk emu_bulk;
struct emu_bulk {
    const emu_op *op;
    emu_bulk_kind kind;
    emu_block *from;   /* the issuing block */
    emu_block *holder; /* has the shared bytes and the mbarrier; for loads, any block of the cluster */
    uint32_t thread;   /* in `from` */
    uint32_t bytes;    /* bytes that its mbarrier counts */
    uint32_t mbarrier; /* loads: offset in the holder's shared memory */
    uint32_t phase;    /* of the mbarrier at issue */
    uint32_t group;    /* stores and reductions: commits of the thread before it */
    uint32_t number;   /* in the holder's order of issue, from 1 */
    uint64_t due;
    bool is_read, is_landed; /* `data` holds the source of a store or reduction; the destination is written */
    bool is_known_read;      /* its thread has waited until the source was read */
    bool is_repeated;        /* a store of the same bytes as the previous lane's, by the same instruction */
    char *data;              /* owned; loads: the source, if it is not in memory */
    emu_bulk_piece *pieces;  /* owned */
    uint32_t piece_count;
    uint8_t fill;     /* value of each byte outside the tensor */
    emu_mods element; /* reductions: type and operation */
    /* Writes a piece to the destination. */
    void (*write)(const emu_bulk *bulk, char *to, const char *from, uint32_t bytes);
};

/* Sets the group, number and delay, and puts the copy in flight in its holder. Takes ownership of the pieces and the data. */
void emu_bulk_issue(emu_bulk *bulk);
void emu_bulk_commit(emu_block *block, uint32_t thread);
/* Completes these lanes' groups of a warp, except the last `pending` of each; with `reads`, only reads their sources. */
void emu_bulk_wait(emu_block *block, uint32_t warp, uint32_t lanes, uint32_t pending, bool reads);
/* Advances time by a tick and lands the copies that are due. */
void emu_bulk_tick(emu_block *block);
/* Ends the block: lands its stores and reductions. Loads are lost with the shared memory. */
void emu_bulk_end(emu_block *block);
/* Returns true if a copy is in flight: it lands even if no thread waits for its group. */
bool emu_bulk_is_any(const emu_block *block);
/* Returns the thread's oldest store or reduction whose source it has not waited for, or NULL. */
const emu_bulk *emu_bulk_unread(const emu_block *block, uint32_t thread);

void emu_bulk_free(emu_block *block);

#endif
