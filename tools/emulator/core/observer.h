/* The events of a launch, for its observers: the checks and the counters. Observers subscribe before the launch begins; the
   core and the handlers do not know them. An event without subscribers costs a branch. An observer may fault the warp,
   which ends it, so the sender checks the warp's state before it goes on. */
#ifndef EMU_OBSERVER_H
#define EMU_OBSERVER_H

#include "warp.h"

struct emu_launch;
struct emu_copy;
struct emu_product;

/* Broken rules on participation, which a device would silently accept. */
typedef enum emu_misuse {
    EMU_NOT_A_MEMBER,    /* lanes that are not in their own member mask */
    EMU_INACTIVE_SOURCE, /* lanes that take a value from a lane that does not take part */
    EMU_PART_OF_WARP,    /* lanes that execute a warp-wide operation without the rest of their warp */
    EMU_PARTED_UNIFORM,  /* lanes that take a .uni branch while other active lanes do not */
} emu_misuse;

/* Each event and its arguments.

   launch_begin      the launch is complete except for what observers add to it
   launch_end        its result is known
   block_begin       a block is ready to run, perhaps in the memory of an earlier block
   block_free        its memory is released; observers release theirs
   issue             the active lanes reach an operation, and those in `mask` are about to execute it; `mask` may be 0
   wait              lanes leave the operation that has just been issued, to wait at it
   release           lanes that waited at an operation go on after it
   part              an indexed branch sends lanes that were together to several targets
   misuse            see emu_misuse
   exchange          lanes of a warp are about to exchange values; all the lanes that they wait for are there
   address           the lanes are about to use the argument as an address
   access            the lanes are about to access `bytes` each at these host addresses; idle lanes repeat an active one
   request           the lanes of an instruction make one memory request; `at` as above. `to` is NULL,
                     or the destinations of cp.async: offsets in shared memory
   fence             the lanes execute a fence
   warp_sync         the lanes have met at a bar.warp.sync
   barrier_arrive    a warp arrives at a block barrier: its fragments, summed up
   barrier_complete  all have arrived, and the waiting warps are about to go on
   copy_read         an asynchronous copy reads `bytes` of its source, at a host address, after `done` earlier bytes
   copied            a copy, or its arrival at an mbarrier, is complete: a thread waited for it, or (by_mbarrier) the mbarrier did
   copies_awaited    the lanes of a warp have waited for their copies
   grid_wait         the lanes have waited for the preceding launches: griddepcontrol.wait
   grid_next         the lanes let the next launch begin: griddepcontrol.launch_dependents
   exit              the lanes are about to exit
   phase_ended       a phase of the mbarrier at this offset in shared memory has ended
   phase_passed      a lane has seen that end, at this host address
   warpgroup         a warp executes an instruction of wgmma; `product` is the product that it issues, or NULL
   product_done      a warp has waited for the product. `at`: host addresses of the 16-byte pieces of shared memory that it read,
                     in the order of the `access` events */
/* clang-format off */
#define EMU_EVENTS(X) \
    X(launch_begin, (struct emu_launch *launch)) \
    X(launch_end, (struct emu_launch *launch)) \
    X(block_begin, (struct emu_block *block)) \
    X(block_free, (struct emu_block *block)) \
    X(issue, (emu_warp *warp, const emu_op *op, uint32_t mask)) \
    X(wait, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(release, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(part, (emu_warp *warp, const emu_op *op)) \
    X(misuse, (emu_warp *warp, const emu_op *op, uint32_t lanes, emu_misuse what)) \
    X(exchange, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(address, (emu_warp *warp, const emu_op *op, uint32_t arg, uint32_t mask)) \
    X(access, (emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes, \
               const uint64_t at[EMU_LANES])) \
    X(request, (emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes, \
                const uint64_t at[EMU_LANES], const uint32_t to[EMU_LANES])) \
    X(fence, (emu_warp *warp, const emu_op *op, uint32_t mask)) \
    X(warp_sync, (emu_warp *warp, uint32_t lanes)) \
    X(barrier_arrive, (emu_warp *warp, const emu_fragment *arriving)) \
    X(barrier_complete, (struct emu_block *block, unsigned number)) \
    X(copy_read, (emu_warp *warp, const emu_op *op, struct emu_copy *copy, uint64_t at, unsigned done, unsigned bytes)) \
    X(copied, (struct emu_block *block, const struct emu_copy *copy, bool by_mbarrier)) \
    X(copies_awaited, (struct emu_block *block, uint32_t warp, uint32_t lanes)) \
    X(grid_wait, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(grid_next, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(exit, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(phase_ended, (struct emu_block *block, uint32_t mbarrier)) \
    X(phase_passed, (emu_warp *warp, const emu_op *op, uint64_t mbarrier)) \
    X(warpgroup, (emu_warp *warp, const emu_op *op, const struct emu_product *product)) \
    X(product_done, (emu_warp *warp, const struct emu_product *product, unsigned count, const uint64_t *at))
/* clang-format on */

/* NULL: the observer does not want the event. */
typedef struct emu_observer {
#define EMU_EVENT(event, says) void(*event) says;
    EMU_EVENTS(EMU_EVENT)
#undef EMU_EVENT
} emu_observer;

#define EMU_MOST_OBSERVERS 8

/* The observers of each event, in the order of subscription; NULL ends the list. */
typedef struct emu_audience {
#define EMU_EVENT(event, says) void(*event[EMU_MOST_OBSERVERS + 1]) says;
    EMU_EVENTS(EMU_EVENT)
#undef EMU_EVENT
} emu_audience;

#define EMU_IS_TOLD(audience, event) ((audience)->event[0] != NULL)

#define EMU_TELL(audience, event, ...)                                                                       \
    do                                                                                                       \
        for (size_t n_ = 0; (audience)->event[n_]; n_++)                                                     \
            (audience)->event[n_](__VA_ARGS__);                                                              \
    while (0)

void emu_observe(struct emu_launch *launch, const emu_observer *observer);

/* Reports a misuse to the observers. Returns true if one of them has ended the warp. */
bool emu_is_misused(emu_warp *warp, const emu_op *op, uint32_t lanes, emu_misuse what);

#endif
