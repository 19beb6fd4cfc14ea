/* Addresses of memory accesses: from registers to checked host addresses. If the fast tests here fail, core/bounds.c
   decides and reports. */
#ifndef EMU_ACCESS_H
#define EMU_ACCESS_H

#include "../core/bounds.h"
#include "../core/windows.h"
#include "exec.h"

/* The name of a shared variable as an address is an offset in the own block's memory. */
static inline uint64_t constant_base(const emu_warp *w, const emu_op *op, uint32_t arg)
{
    if (__builtin_expect(!(arg & 1), 1))
        return 0;
    bool is_shared = op->mods.space == EMU_SHARED || op->mods.space == EMU_SHARED_CLUSTER;
    return is_shared ? w->block->shared_base : 0;
}

static inline void access_addresses(const emu_warp *w, const emu_op *op, uint32_t arg, uint32_t mask,
                                    uint64_t at[EMU_LANES])
{
    const uint64_t *a = emu_lanes(w, arg);
    uint64_t offset = (uint64_t)op->imm + constant_base(w, op, arg),
             wrap = op->mods.flags & EMU_ADDRESS_32 ? UINT32_MAX : UINT64_MAX;
    EACH_LANE at[i] = (a[i] + offset) & wrap;
    if (mask != EMU_ALL) { /* idle lanes repeat an active one, so that they pass the same tests */
        uint64_t some = at[__builtin_ctz(mask)];
        EACH_LANE at[i] = mask >> i & 1 ? at[i] : some;
    }
}

typedef struct access_span {
    uint64_t low, high, low_bits;
} access_span;

static inline access_span access_extent(const uint64_t at[EMU_LANES])
{
    uint64_t low = UINT64_MAX, high = 0, bits = 0;
    EACH_LANE
    {
        low = at[i] < low ? at[i] : low;
        high = at[i] > high ? at[i] : high;
        bits |= at[i];
    }
    return (access_span){low, high, bits};
}

static inline bool access_global(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                                 const uint64_t at[EMU_LANES])
{
    const emu_recent *r = &w->block->recent[op->at % EMU_RECENT];
    access_span s = access_extent(at);
    if ((s.low_bits & (bytes - 1)) == 0 && s.low >= r->base && s.high < r->end && s.high + bytes <= r->end)
        return true;
    return emu_bounds_global(w, op, mask, bytes, writes, at);
}

/* An access to a window. `at` are offsets, whose valid ones are low to high; they become host addresses. */
static inline bool access_window(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                                 uint64_t at[EMU_LANES], emu_space space, uint64_t low, uint64_t high,
                                 char *host)
{
    access_span s = access_extent(at);
    bool fine = (s.low_bits & (bytes - 1)) == 0 && s.low >= low && s.high < high && s.high + bytes <= high;
    if (!fine && !emu_bounds_window(w, op, mask, bytes, writes, at, space, low, high))
        return false;
    EACH_LANE at[i] += (uint64_t)(uintptr_t)host;
    return true;
}

/* The own block's shared memory. */
static inline bool access_shared(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                                 uint64_t at[EMU_LANES])
{
    const emu_block *b = w->block;
    return access_window(w, op, mask, bytes, writes, at, EMU_SHARED, b->shared_low, b->shared_high,
                         b->shared - b->shared_base);
}

static inline bool access_local(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                                uint64_t at[EMU_LANES])
{
    uint64_t each = w->block->launch->program->local_bytes;
    char *host = w->block->local + (uint64_t)w->id * EMU_LANES * each;
    if (!access_window(w, op, mask, bytes, writes, at, EMU_LOCAL, 16, each, host))
        return false;
    EACH_LANE at[i] += (uint64_t)(unsigned)i * each;
    if (mask != EMU_ALL) {
        uint64_t some = at[__builtin_ctz(mask)];
        EACH_LANE at[i] = mask >> i & 1 ? at[i] : some;
    }
    return true;
}

static inline bool all_global(const uint64_t at[EMU_LANES])
{
    access_span s = access_extent(at);
    return s.high < EMU_SHARED_WINDOW;
}

static inline bool access_find(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                               uint64_t at[EMU_LANES])
{
    emu_launch *l = w->block->launch;
    switch (op->mods.space) {
    case EMU_GLOBAL:
        return access_global(w, op, mask, bytes, writes, at);
    case EMU_SHARED:
        return access_shared(w, op, mask, bytes, writes, at);
    case EMU_SHARED_CLUSTER:
        return emu_bounds_cluster(w, op, mask, bytes, writes, at);
    case EMU_LOCAL:
    case EMU_PARAM_CALL:
        return access_local(w, op, mask, bytes, writes, at);
    case EMU_CONST:
        return access_window(w, op, mask, bytes, writes, at, EMU_CONST, 0, l->const_bytes, l->const_bank);
    case EMU_PARAM:
        return access_window(w, op, mask, bytes, writes, at, EMU_PARAM, 0, l->parameter_bytes, l->parameters);
    default:
        return all_global(at) ? access_global(w, op, mask, bytes, writes, at)
                              : emu_bounds_generic(w, op, mask, bytes, writes, at);
    }
}

/* Checks the addresses and turns them into host addresses, without counting a request. Returns false after a fault. */
static inline bool access_judge(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                                uint64_t at[EMU_LANES])
{
    if (!access_find(w, op, mask, bytes, writes, at))
        return false;
    EMU_TELL(w->audience, access, w, op, mask, bytes, writes, at);
    return true;
}

/* Tells observers that the argument will be used as an address. Returns false after a fault. */
static inline bool access_announce(emu_warp *w, const emu_op *op, uint32_t arg, uint32_t mask)
{
    if (!EMU_IS_TOLD(w->audience, address))
        return true;
    EMU_TELL(w->audience, address, w, op, arg, mask);
    return w->state != EMU_WARP_FAULTED;
}

/* Like access_resolve, without counting a request. */
static inline bool access_uncounted(emu_warp *w, const emu_op *op, uint32_t arg, uint32_t mask,
                                    unsigned bytes, bool writes, uint64_t at[EMU_LANES])
{
    if (!access_announce(w, op, arg, mask))
        return false;
    access_addresses(w, op, arg, mask, at);
    return access_judge(w, op, mask, bytes, writes, at);
}

/* Resolves an access of `bytes` per lane at the address in argument `arg`. Returns false after a fault. Otherwise all 32
   entries of `at` are readable host addresses; idle lanes repeat an active one. */
static inline bool access_resolve(emu_warp *w, const emu_op *op, uint32_t arg, uint32_t mask, unsigned bytes,
                                  bool writes, uint64_t at[EMU_LANES])
{
    if (!access_uncounted(w, op, arg, mask, bytes, writes, at))
        return false;
    EMU_TELL(w->audience, request, w, op, mask, bytes, writes, at, NULL);
    return true;
}

#endif
