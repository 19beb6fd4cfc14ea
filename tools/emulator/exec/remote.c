/* st.async and red.async (ISA 9.7.9.12, 9.7.13.7): stores and reductions in the cluster's shared memory that complete at an
   mbarrier there. In flight, they are treated as bulk copies: see core/bulk.c. */
#include "bulk.h"

#include "../core/bulk.h"
#include "mbarrier.h"
#include "update.h"

#include <stdlib.h>

static void write_value(const emu_bulk *bulk, char *to, const char *from, uint32_t bytes)
{
    (void)bulk;
    memcpy(to, from, bytes);
}

static void write_reduced(const emu_bulk *bulk, char *to, const char *from, uint32_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, from, bytes);
    update(&bulk->element, true, bytes, (uint64_t)(uintptr_t)to, value, 0);
}

/* Returns false after a fault. */
static bool are_blocks_right(emu_warp *w, const emu_op *op, uint32_t lane, const emu_block *holder,
                             uint64_t mbarrier, bool reduces)
{
    if (!holder)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "names a destination that is not in shared memory");
    else if (emu_block_holding(w->block, mbarrier) != holder)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "names an mbarrier object that is not in the destination's block");
    else if (reduces && holder == w->block)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "reduces into its own block's shared memory: the destination must be in another block");
    return w->state != EMU_WARP_FAULTED;
}

/* Returns the value that a lane sends, owned by the caller. */
static char *value_of(const emu_warp *w, const emu_op *op, uint32_t lane, unsigned each, unsigned count)
{
    char *data = emu_alloc((size_t)each * count);
    for (unsigned n = 0; n < count; n++)
        memcpy(data + n * each,
               (const char *)emu_lanes(w, count > 1 ? op->list[n] : op->arg[1]) + (size_t)lane * each, each);
    return data;
}

static void send_lane(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t to, uint64_t mbarrier,
                      bool reduces)
{
    emu_block *holder = emu_block_holding(w->block, to);
    unsigned each = emu_types[op->mods.type].bytes, count = op->mods.count;
    uint64_t bits;
    emu_mbarrier m;
    if (!are_blocks_right(w, op, lane, holder, mbarrier, reduces) ||
        !load_mbarrier(w, op + 1, lane, mbarrier, &bits, &m))
        return;
    emu_bulk bulk = {.op = op,
                     .kind = EMU_BULK_LOAD,
                     .from = w->block,
                     .holder = holder,
                     .thread = thread_of(w, lane),
                     .bytes = each * count,
                     .mbarrier = offset_in(holder, mbarrier),
                     .phase = m.phase,
                     .data = value_of(w, op, lane, each, count),
                     .pieces = emu_alloc(sizeof *bulk.pieces),
                     .piece_count = 1,
                     .write = reduces ? write_reduced : write_value};
    bulk.pieces[0] = (emu_bulk_piece){.shared = offset_in(holder, to), .bytes = bulk.bytes};
    if (reduces)
        bulk.element = (emu_mods){.type = op->mods.type, .mode = op->mods.combine};
    EMU_TELL(w->audience, bulk_issue, w, op, &bulk);
    emu_bulk_issue(&bulk);
}

static void send(emu_warp *w, const emu_op *op, uint32_t mask, bool reduces)
{
    uint64_t to[EMU_LANES], mbarrier[EMU_LANES];
    if (op->mods.mode != EMU_BULK_FIRST)
        return;
    if (w->block->cluster->count == 1) {
        emu_fault(w, op, mask, CUDA_ERROR_LAUNCH_FAILED,
                  "executes this in a cluster of one block: it needs another block");
        return;
    }
    if (!access_resolve(w, op, op->arg[0], mask, emu_types[op->mods.type].bytes * op->mods.count, true, to) ||
        !mbarriers_uncounted(w, op + 1, 0, mask, true, mbarrier))
        return;
    ACTIVE_LANES(mask)
    {
        send_lane(w, op, i, to[i], mbarrier[i], reduces);
        if (w->state == EMU_WARP_FAULTED)
            return;
    }
}

HANDLER_CALLS(store, send, false)
HANDLER_CALLS(reduce, send, true)

#define AT_MBARRIER " p:shared::cluster? mbarrier::complete_tx::bytes "
#define STORE(scope, version)                                                                                \
    {                                                                                                        \
        "st", "async " scope AT_MBARRIER "v:v2|v4? t:b32|b64|u32|u64|s32|s64|f32|f64", "", version, 90,      \
            .run = store, .form = EMU_FORM_REMOTE, .refuse = emu_refuse_vector                               \
    }
#define REDUCE(operations)                                                                                   \
    {                                                                                                        \
        "red", "async relaxed cluster" AT_MBARRIER operations, "", 81, 90, .run = reduce,                    \
                                                                           .form = EMU_FORM_REMOTE           \
    }

static const emu_row rows[] = {
    STORE("weak?", 81),          STORE("cluster", 87),       REDUCE("inc|dec t:u32"),
    REDUCE("min|max t:u32|s32"), REDUCE("and|or|xor t:b32"), REDUCE("add t:u32|s32|u64|s64"),
};

EXPORT_ROWS(emu_rows_remote);
