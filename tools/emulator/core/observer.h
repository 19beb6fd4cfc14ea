/* The events of a launch, for its observers: the checks and the counters. Observers subscribe before the launch begins; the
   core and the handlers do not know them. An event without subscribers costs a branch. An observer may fault the warp,
   which ends it, so the sender checks the warp's state before it goes on. */
#ifndef EMU_OBSERVER_H
#define EMU_OBSERVER_H

#include "warp.h"

struct emu_launch;
struct emu_copy;
struct emu_product;
struct emu_bulk;
struct emu_cluster;

/* Broken rules on participation, which a device would silently accept. */
typedef enum emu_misuse {
    EMU_NOT_A_MEMBER,    /* lanes that are not in their own member mask */
    EMU_INACTIVE_SOURCE, /* lanes that take a value from a lane that does not take part */
    EMU_PART_OF_WARP,    /* lanes that execute a warp-wide operation without the rest of their warp */
    EMU_INIT_OF_VALID,   /* lanes that initialise a valid mbarrier object again */
    EMU_STALE_PHASE,     /* lanes that test for a phase before the last two */
    EMU_INC_LOWERS,      /* setmaxnreg.inc that asks for fewer registers than the lanes have */
    EMU_DEC_RAISES,      /* setmaxnreg.dec that asks for more */
    EMU_PARTED_UNIFORM,  /* lanes that take a .uni branch while other active lanes do not */
} emu_misuse;

/* The events:

   launch_begin      the launch is complete except for what observers add to it
   launch_end        the result is final
   block_begin       a block is ready to run, in memory that earlier blocks may have used
   block_end         all its threads have ended
   block_free        the block's memory is freed, and what observers keep with it
   issue             the active lanes reach an operation; those of `mask`, perhaps none, are about to execute it
   wait              lanes begin to wait at the operation that was just issued
   release           lanes continue after the operation that they waited at
   part              an indexed branch sends lanes that ran together to different targets
   misuse            see emu_misuse
   exchange          lanes of a warp, none of which is missing, are about to exchange values
   address           the lanes are about to use the argument as an address
   access            the lanes are about to access `bytes` each at these host addresses; idle lanes repeat an active one
   request           the memory request of an instruction for these lanes together; `at` as above. `to` is NULL,
                     or the destinations of cp.async: offsets in shared memory
   fence             the lanes execute a fence
   warp_sync         the lanes have met at a bar.warp.sync, or copied a tensor map together
   barrier_arrive    a warp arrives at a block barrier: the sum of its fragments
   barrier_complete  all expected threads have arrived, and the waiting warps are about to continue
   cluster_arrive    a warp arrives at the cluster's barrier: its fragments have the instructions
   cluster_complete  all warps of the cluster have arrived
   cluster_wait      a warp has waited for that, and is about to continue
   copy_read         an asynchronous copy takes `bytes` of its source, at a host address; `done` bytes came before them
   copied            the copy, or its arrival at an mbarrier, is complete: a thread waited for it, or by_mbarrier
   copies_awaited    the lanes of a warp have waited for their own copies
   grid_wait         the lanes have waited for the launches before this one: griddepcontrol.wait
   grid_next         the lanes let the next launch begin: griddepcontrol.launch_dependents
   exit              the lanes are about to end
   phase_ended       a phase of the mbarrier at this offset in shared memory has ended
   phase_passed      a lane has seen the end of the phase of the mbarrier at this host address
   warpgroup         a warp executes an instruction of wgmma, or setmaxnreg; `product` is NULL, or the one that it issues
   warpgroup_met     all warps of a warpgroup have reached a wgmma.fence; `first` is the warpgroup's first warp
   bulk_issue        a lane issues a bulk copy; `access` has reported its accesses, unless it is repeated
   bulk_read         the lane has waited until the source of its store or reduction was read
   bulk_done         a load has landed, and is about to complete at its mbarrier; or a lane has waited for its store or
                     reduction
   map_read          a lane is about to use the tensor map at this host address
   map_fence         the lanes fence the proxy of the tensor maps at these host addresses: fence.proxy.tensormap, acquire
   product_read      a warp of the warpgroup has waited for a product: this warp's part has read its operands
   product_done      the warp itself has waited for the product */
/* clang-format off */
#define EMU_EVENTS(X) \
    X(launch_begin, (struct emu_launch *launch)) \
    X(launch_end, (struct emu_launch *launch)) \
    X(block_begin, (struct emu_block *block)) \
    X(block_end, (struct emu_block *block)) \
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
    X(cluster_arrive, (emu_warp *warp)) \
    X(cluster_complete, (struct emu_cluster *cluster)) \
    X(cluster_wait, (emu_warp *warp)) \
    X(copy_read, (emu_warp *warp, const emu_op *op, struct emu_copy *copy, uint64_t at, unsigned done, unsigned bytes)) \
    X(copied, (struct emu_block *block, const struct emu_copy *copy, bool by_mbarrier)) \
    X(copies_awaited, (struct emu_block *block, uint32_t warp, uint32_t lanes)) \
    X(grid_wait, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(grid_next, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(exit, (emu_warp *warp, const emu_op *op, uint32_t lanes)) \
    X(phase_ended, (struct emu_block *block, uint32_t mbarrier)) \
    X(phase_passed, (emu_warp *warp, const emu_op *op, uint64_t mbarrier)) \
    X(bulk_issue, (emu_warp *warp, const emu_op *op, const struct emu_bulk *bulk)) \
    X(bulk_read, (struct emu_block *block, const struct emu_bulk *bulk)) \
    X(bulk_done, (struct emu_block *block, const struct emu_bulk *bulk)) \
    X(map_read, (emu_warp *warp, const emu_op *op, uint32_t lane, uint64_t map)) \
    X(map_fence, (emu_warp *warp, const emu_op *op, uint32_t mask, const uint64_t at[EMU_LANES])) \
    X(warpgroup, (emu_warp *warp, const emu_op *op, const struct emu_product *product)) \
    X(warpgroup_met, (emu_warp *first)) \
    X(product_read, (emu_warp *warp, const struct emu_product *product)) \
    X(product_done, (emu_warp *warp, const struct emu_product *product))
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
