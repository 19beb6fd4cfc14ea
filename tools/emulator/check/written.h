/* The usual case of the init check: all lanes read from shared memory, or from one allocation, and every byte was written. */
#ifndef EMU_CHECK_WRITTEN_H
#define EMU_CHECK_WRITTEN_H

#include "../exec/access.h"

/* What the init check keeps of a block. */
typedef struct emu_init {
    size_t slots;
    uint32_t *defined;       /* by warp and slot: lanes */
    uint8_t *shared, *local; /* a byte per byte: has been written */
} emu_init;

/* Marks are a byte per byte, 1 for written. */
static inline bool written_in_shared(const uint8_t *marks, const uint64_t at[EMU_LANES], uint64_t base,
                                     unsigned bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t all = ones;
    for (unsigned k = 0; k < bytes; k += 8)
        EACH_LANE
        {
            uint64_t some = ones;
            memcpy(&some, marks + (at[i] - base) + k, bytes < 8 ? bytes : 8);
            all &= some;
        }
    return all == ones;
}

/* Marks are a bit per byte, and the accesses are aligned. */
static inline bool written_in_allocation(const uint8_t *marks, const uint64_t at[EMU_LANES], uint64_t base,
                                         unsigned bytes)
{
    unsigned full = bytes < 8 ? (1u << bytes) - 1 : 0xff, all = full;
    for (unsigned k = 0; k < bytes; k += 8)
        EACH_LANE
        {
            uint64_t offset = at[i] - base + k;
            all &= (unsigned)__atomic_load_n(&marks[offset / 8], __ATOMIC_RELAXED) >> offset % 8;
        }
    return all == full;
}

/* One instance per size, so that the loops are unrolled. */
#define WRITTEN_BY_SIZE(place, marks, base)                                                                  \
    (bytes == 4    ? place(marks, at, base, 4)                                                               \
     : bytes == 16 ? place(marks, at, base, 16)                                                              \
     : bytes == 8  ? place(marks, at, base, 8)                                                               \
     : bytes == 2  ? place(marks, at, base, 2)                                                               \
                   : bytes == 1 && place(marks, at, base, 1))

/* Whether all that the lanes read was certainly written. Idle lanes repeat an active one. */
static inline bool surely_written(const emu_warp *w, const emu_op *op, unsigned bytes,
                                  const uint64_t at[EMU_LANES])
{
    const emu_block *b = w->block;
    const emu_recent *r = &b->recent[op->at % EMU_RECENT];
    uint64_t shared = (uint64_t)(uintptr_t)b->shared;
    access_span s = access_extent(at);
    if (s.low >= shared && s.high + bytes <= shared + b->shared_bytes)
        return WRITTEN_BY_SIZE(written_in_shared, b->init->shared, shared);
    if (s.low < r->base || s.high + bytes > r->end || s.low_bits & (bytes - 1))
        return false;
    return !r->allocation->written ||
           WRITTEN_BY_SIZE(written_in_allocation, r->allocation->written, r->allocation->base);
}

#endif
