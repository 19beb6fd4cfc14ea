/* Bounds, alignment, lifetime and space of every access. The fast tests in exec/access.h come first; they call this if they
   fail. */
#include "bounds.h"

#include "launch.h"
#include "windows.h"

#include <stdio.h>

static const char *verb(bool writes)
{
    return writes ? "writes" : "reads";
}

static uint32_t misaligned_lanes(uint32_t mask, unsigned bytes, const uint64_t at[EMU_LANES])
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < EMU_LANES; i++)
        if ((mask >> i & 1) && (at[i] & (bytes - 1)))
            lanes |= 1u << i;
    return lanes;
}

static bool check_alignment(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                            const uint64_t at[EMU_LANES])
{
    uint32_t lanes = misaligned_lanes(mask, bytes, at);
    if (!lanes)
        return true;
    uint64_t address = at[__builtin_ctz(lanes)];
    emu_fault(w, op, lanes, CUDA_ERROR_MISALIGNED_ADDRESS,
              "%s %u bytes at 0x%llx, which is not a multiple of %u", verb(writes), bytes,
              (unsigned long long)address, bytes);
    return false;
}

static void describe(char *text, size_t room, const emu_allocation *a, uint64_t address, unsigned bytes)
{
    if (!a || address >= a->base + a->bytes + ((uint64_t)1 << 40)) {
        snprintf(text, room, "no allocation is near");
        return;
    }
    uint64_t end = a->base + a->bytes;
    char where[96] = "inside";
    if (address >= end)
        snprintf(where, sizeof where, "%llu bytes past the end of", (unsigned long long)(address - end));
    else if (address + bytes > end)
        snprintf(where, sizeof where, "across the end of (%llu bytes fit)",
                 (unsigned long long)(end - address));
    snprintf(text, room, "%s the %s%s %llu (%llu bytes at 0x%llx)", where, a->is_freed ? "freed " : "",
             a->name                           ? "variable that is allocation"
             : a->kind == EMU_ALLOCATION_HOST  ? "host allocation"
             : a->kind == EMU_ALLOCATION_CONST ? ".const bank, allocation"
                                               : "allocation",
             (unsigned long long)a->serial, (unsigned long long)a->bytes, (unsigned long long)a->base);
}

typedef struct window {
    emu_space space;
    uint64_t low, high; /* offsets in the window */
    char *host;
} window;

static bool find_window(const emu_warp *w, uint64_t address, uint32_t lane, window *found, uint64_t *offset)
{
    const emu_block *b = w->block;
    const emu_launch *l = b->launch;
    uint64_t local = l->program->local_bytes, thread = (uint64_t)w->id * EMU_LANES + lane;
    *offset = (address - EMU_SHARED_WINDOW) % EMU_WINDOW_BYTES;
    switch ((address - EMU_SHARED_WINDOW) / EMU_WINDOW_BYTES) {
    case 0:
        *found = (window){.space = EMU_SHARED}; /* any block of the cluster */
        return true;
    case 1:
        *found = (window){EMU_LOCAL, 16, local, b->local + thread * local};
        return true;
    case 2:
        *found = (window){EMU_PARAM, 0, l->parameter_bytes, l->parameters};
        return true;
    default:
        return false;
    }
}

/* Less than the gap between allocations. */
#define NEAR 65536

static void fault_global(emu_warp *w, const emu_op *op, uint32_t lanes, unsigned bytes, bool writes,
                         uint64_t address)
{
    char where[256];
    window in;
    uint64_t offset;
    const emu_allocation *above = emu_memory_find(address + NEAR);
    if (address < 4096)
        snprintf(where, sizeof where, "a null pointer plus %llu", (unsigned long long)address);
    else if (find_window(w, address, 0, &in, &offset))
        snprintf(where, sizeof where, "this is an address of .%s memory, at 0x%llx",
                 emu_space_names[in.space], (unsigned long long)offset);
    else if (above && above->base > address)
        snprintf(where, sizeof where, "%llu bytes before the allocation %llu (%llu bytes at 0x%llx)",
                 (unsigned long long)(above->base - address), (unsigned long long)above->serial,
                 (unsigned long long)above->bytes, (unsigned long long)above->base);
    else if (!emu_memory_contains(address))
        snprintf(where, sizeof where, "this is no device address");
    else
        describe(where, sizeof where, emu_memory_find(address), address, bytes);
    emu_fault(w, op, lanes, CUDA_ERROR_ILLEGAL_ADDRESS, "%s %u bytes at 0x%llx: %s", verb(writes), bytes,
              (unsigned long long)address, where);
}

/* The end of the accessible bytes: of the allocation, or of its last page, as on hardware. */
static uint64_t end_of(const emu_warp *w, const emu_allocation *a)
{
    return a->base + (w->block->launch->is_exact ? a->bytes : a->mapped_bytes);
}

static bool is_accessible(emu_warp *w, const emu_op *op, uint64_t address, unsigned bytes, bool writes)
{
    emu_allocation *a = emu_memory_find(address);
    if (!a || a->is_freed || address + bytes > end_of(w, a) || address + bytes < address)
        return false;
    if (a->kind == EMU_ALLOCATION_CONST && (writes || op->mods.space == EMU_GLOBAL))
        return false;
    if (a->kind != EMU_ALLOCATION_CONST)
        w->block->recent[op->at % EMU_RECENT] = (emu_recent){a->base, end_of(w, a), a};
    return true;
}

bool emu_bounds_global(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       const uint64_t at[EMU_LANES])
{
    if (!check_alignment(w, op, mask, bytes, writes, at))
        return false;
    uint32_t bad = 0;
    const emu_recent *r = &w->block->recent[op->at % EMU_RECENT];
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        bool inside = at[i] >= r->base && at[i] < r->end && at[i] + bytes <= r->end;
        if ((mask >> i & 1) && !inside && !is_accessible(w, op, at[i], bytes, writes))
            bad |= 1u << i;
    }
    if (!bad)
        return true;
    fault_global(w, op, bad, bytes, writes, at[__builtin_ctz(bad)]);
    return false;
}

bool emu_bounds_window(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       const uint64_t at[EMU_LANES], emu_space space, uint64_t low, uint64_t high)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < EMU_LANES; i++)
        if ((mask >> i & 1) && (at[i] < low || at[i] > high || at[i] + bytes > high))
            bad |= 1u << i;
    if (!bad)
        return check_alignment(w, op, mask, bytes, writes, at);
    uint64_t address = at[__builtin_ctz(bad)];
    if (space == EMU_SHARED && w->block->cluster->count > 1 &&
        address >> EMU_RANK_SHIFT != low >> EMU_RANK_SHIFT) {
        emu_fault(
            w, op, bad, CUDA_ERROR_ILLEGAL_ADDRESS,
            "%s %u bytes at 0x%llx of .shared memory, which belongs to the block of rank %u, not to its own of rank %u: this needs .shared::cluster",
            verb(writes), bytes, (unsigned long long)address, (unsigned)(address >> EMU_RANK_SHIFT),
            w->block->rank);
        return false;
    }
    if (address < low)
        emu_fault(w, op, bad, CUDA_ERROR_ILLEGAL_ADDRESS,
                  "%s %u bytes at 0x%llx of .%s memory, below its start at 0x%llx", verb(writes), bytes,
                  (unsigned long long)address, emu_space_names[space], (unsigned long long)low);
    else
        emu_fault(w, op, bad, CUDA_ERROR_ILLEGAL_ADDRESS,
                  "%s %u bytes at 0x%llx of .%s memory, which ends at 0x%llx", verb(writes), bytes,
                  (unsigned long long)address, emu_space_names[space], (unsigned long long)high);
    return false;
}

/* Converts a lane's .shared::cluster address to a host address. */
static bool find_in_cluster(emu_warp *w, const emu_op *op, uint32_t lane, unsigned bytes, bool writes,
                            uint64_t *at)
{
    const emu_cluster *c = w->block->cluster;
    uint64_t rank = *at >> EMU_RANK_SHIFT, lanes[EMU_LANES] = {0};
    const emu_block *b = rank < c->count ? &c->blocks[rank] : NULL;
    if (!b) {
        emu_fault(
            w, op, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
            "%s %u bytes at 0x%llx of .shared::cluster memory, which belongs to the block of rank %llu: the cluster has only %u block%s",
            verb(writes), bytes, (unsigned long long)*at, (unsigned long long)rank, c->count,
            c->count > 1 ? "s" : "");
        return false;
    }
    if (b->live_warps == 0) {
        emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                  "%s %u bytes at 0x%llx of .shared::cluster memory, of block (%u,%u,%u), which has ended",
                  verb(writes), bytes, (unsigned long long)*at, b->id[0], b->id[1], b->id[2]);
        return false;
    }
    lanes[lane] = *at;
    if (!emu_bounds_window(w, op, 1u << lane, bytes, writes, lanes,
                           b == w->block ? EMU_SHARED : EMU_SHARED_CLUSTER, b->shared_low, b->shared_high))
        return false;
    *at = (uint64_t)(uintptr_t)b->shared + (*at - b->shared_base);
    return true;
}

/* Idle lanes repeat an active one. */
static void repeat_active(uint32_t mask, uint64_t at[EMU_LANES])
{
    uint64_t some = at[__builtin_ctz(mask)];
    for (uint32_t i = 0; i < EMU_LANES; i++)
        at[i] = mask >> i & 1 ? at[i] : some;
}

bool emu_bounds_cluster(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                        uint64_t at[EMU_LANES])
{
    for (uint32_t i = 0; i < EMU_LANES; i++)
        if ((mask >> i & 1) && !find_in_cluster(w, op, i, bytes, writes, &at[i]))
            return false;
    repeat_active(mask, at);
    return true;
}

/* Lanes may point to different spaces, so each lane is checked separately. */
static bool check_generic_lane(emu_warp *w, const emu_op *op, uint32_t lane, unsigned bytes, bool writes,
                               uint64_t *at)
{
    window in;
    uint64_t offset, lanes[EMU_LANES] = {0};
    uint32_t mask = 1u << lane;
    lanes[lane] = *at;
    if (*at < EMU_SHARED_WINDOW)
        return emu_bounds_global(w, op, mask, bytes, writes, lanes);
    if (!find_window(w, *at, lane, &in, &offset) || (writes && in.space == EMU_PARAM)) {
        fault_global(w, op, mask, bytes, writes, *at);
        return false;
    }
    lanes[lane] = offset;
    if (in.space == EMU_SHARED) {
        *at = offset;
        return find_in_cluster(w, op, lane, bytes, writes, at);
    }
    if (!emu_bounds_window(w, op, mask, bytes, writes, lanes, in.space, in.low, in.high))
        return false;
    *at = (uint64_t)(uintptr_t)in.host + offset;
    return true;
}

bool emu_bounds_generic(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                        uint64_t at[EMU_LANES])
{
    for (uint32_t i = 0; i < EMU_LANES; i++)
        if ((mask >> i & 1) && !check_generic_lane(w, op, i, bytes, writes, &at[i]))
            return false;
    repeat_active(mask, at);
    return true;
}
