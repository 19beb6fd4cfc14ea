/* Bulk copies, and st.async and red.async, in flight (ISA 9.7.9.12, 9.7.9.25.4, 9.7.9.27.1, 9.7.13.7). A copy lands as a whole, some time after its issue: time passes with
   each turn of the block's warps and each test of an mbarrier, and the delay of each copy is drawn from a fixed seed.
   The source is read and the destination written only then, or when a thread waits for the copy's group, so a kernel that
   does not wait sees what was there before. */
#ifndef EMU_BULK_H
#define EMU_BULK_H

#include "launch.h"

typedef enum emu_bulk_kind {
    EMU_BULK_LOAD,
    EMU_BULK_STORE,
    EMU_BULK_REDUCTION,
    EMU_BULK_KINDS
} emu_bulk_kind;

/* Bytes that lie together in both memories. */
typedef struct emu_bulk_piece {
    uint64_t
        global; /* host address, of a load also in the shared memory of the block that issued it; 0: the source is
                        `data` or, outside of the tensor, the fill */
    uint32_t shared; /* offset in the holder's shared memory */
    uint32_t bytes;
} emu_bulk_piece;

typedef struct emu_bulk emu_bulk;
struct emu_bulk {
    const emu_op *op;
    emu_bulk_kind kind;
    emu_block *from; /* that issued it */
    emu_block
        *holder; /* of the shared bytes and the mbarrier: `from`, or of a load another block of its cluster */
    uint32_t thread;   /* in `from` */
    uint32_t bytes;    /* what its mbarrier counts */
    uint32_t mbarrier; /* of a load: offset in the holder's shared memory */
    uint32_t phase;    /* the mbarrier's at the issue */
    uint32_t group;    /* of a store or reduction: commits of the thread before it */
    uint32_t number;   /* among the block's, from 1 */
    uint64_t due;
    bool is_read,
        is_landed;          /* of a store or reduction: `data` holds the source; its destination is written */
    bool is_known_read;     /* its thread has waited for the reading */
    bool is_repeated;       /* a store of the same bytes as the previous lane's, by the same instruction */
    char *data;             /* owned; of a load: the source, if it is none in memory */
    emu_bulk_piece *pieces; /* owned */
    uint32_t piece_count;
    uint8_t fill;     /* each byte outside of the tensor */
    emu_mods element; /* of a reduction */
    /* Writes a piece to the destination. */
    void (*write)(const emu_bulk *bulk, char *to, const char *from, uint32_t bytes);
};

/* Completes the group, the number and the delay; takes the pieces and the data. The holder's time decides when it lands. */
void emu_bulk_issue(emu_bulk *bulk);
void emu_bulk_commit(emu_block *block, uint32_t thread);
/* Completes the groups of these lanes of a warp, of each but the last `pending`; `reads`: only reads their sources. */
void emu_bulk_wait(emu_block *block, uint32_t warp, uint32_t lanes, uint32_t pending, bool reads);
/* Time passes: what is due lands. */
void emu_bulk_tick(emu_block *block);
/* All threads have ended: stores and reductions land, loads are lost with the shared memory. */
void emu_bulk_end(emu_block *block);
/* Will something land without a wait for its group? */
bool emu_bulk_is_any(const emu_block *block);
/* The oldest store or reduction of the thread for whose reading it has not waited; NULL: none. */
const emu_bulk *emu_bulk_unread(const emu_block *block, uint32_t thread);

void emu_bulk_free(emu_block *block);

#endif
