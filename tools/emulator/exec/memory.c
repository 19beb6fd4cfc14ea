/* ld, st, prefetch and similar instructions (ISA 9.7.9.8 to 9.7.9.17). Registers have exactly the type's size here. */
#include "exec.h"

#include "access.h"

static inline bool is_consecutive(const uint64_t at[EMU_LANES], uint64_t bytes)
{
    uint64_t different = 0;
    EACH_LANE different |= at[i] ^ (at[0] + (uint64_t)(unsigned)i * bytes);
    return different == 0;
}

/* One instance per element size and vector length, so that the loops have constant strides. */
static inline void load(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, unsigned count)
{
    uint64_t at[EMU_LANES];
    if (!access_resolve(w, op, op->arg[1], mask, bytes * count, false, at))
        return;
    if (count == 1 && mask == EMU_ALL && is_consecutive(at, bytes)) {
        memcpy(emu_lanes(w, op->arg[0]), (const void *)(uintptr_t)at[0], (size_t)EMU_LANES * bytes);
        return;
    }
    for (unsigned n = 0; n < count; n++) {
        char *d = emu_lanes(w, count == 1 ? op->arg[0] : op->list[n]);
        if (mask == EMU_ALL)
            for (unsigned i = 0; i < EMU_LANES; i++)
                memcpy(d + i * bytes, (const char *)(uintptr_t)at[i] + n * bytes, bytes);
        else
            ACTIVE_LANES(mask) memcpy(d + i * bytes, (const char *)(uintptr_t)at[i] + n * bytes, bytes);
    }
}

static inline void store(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, unsigned count)
{
    uint64_t at[EMU_LANES];
    if (!access_resolve(w, op, op->arg[0], mask, bytes * count, true, at))
        return;
    w->block->stores++;
    if (count == 1 && mask == EMU_ALL && is_consecutive(at, bytes)) {
        memcpy((void *)(uintptr_t)at[0], emu_lanes(w, op->arg[1]), (size_t)EMU_LANES * bytes);
        return;
    }
    for (unsigned n = 0; n < count; n++) {
        const char *s = emu_lanes(w, count == 1 ? op->arg[1] : op->list[n]);
        if (count > 1 && op->list[n] == EMU_SINK)
            continue;
        ACTIVE_LANES(mask) memcpy((char *)(uintptr_t)at[i] + n * bytes, s + i * bytes, bytes);
    }
}

#define ACCESS(bytes, count)                                                                                 \
    HANDLER(load_##bytes##x##count)                                                                          \
    {                                                                                                        \
        load(w, op, mask, bytes, count);                                                                     \
    }                                                                                                        \
    HANDLER(store_##bytes##x##count)                                                                         \
    {                                                                                                        \
        store(w, op, mask, bytes, count);                                                                    \
    }

#define ACCESS_124(bytes)                                                                                    \
    ACCESS(bytes, 1)                                                                                         \
    ACCESS(bytes, 2)                                                                                         \
    ACCESS(bytes, 4)

ACCESS_124(1)
ACCESS_124(2)
ACCESS_124(4)
ACCESS_124(8)
ACCESS(4, 8)
ACCESS(16, 1)

#define ROW_124(kind, bytes)                                                                                 \
    {                                                                                                        \
        kind##_##bytes##x1, kind##_##bytes##x2, kind##_##bytes##x4, NULL                                     \
    }

static emu_handler *const loads[5][4] = {
    ROW_124(load, 1), ROW_124(load, 2), {load_4x1, load_4x2, load_4x4, load_4x8},
    ROW_124(load, 8), {load_16x1},
};

static emu_handler *const stores[5][4] = {
    ROW_124(store, 1), ROW_124(store, 2), {store_4x1, store_4x2, store_4x4, store_4x8},
    ROW_124(store, 8), {store_16x1},
};

/* Strong accesses (volatile, relaxed, acquire, release) may conflict with those of blocks on other host threads, so each
   element is a host atomic. All are acquire and release, so that fences in the kernel order them too. */
static inline uint64_t load_element(const void *at, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return __atomic_load_n((const uint8_t *)at, __ATOMIC_ACQUIRE);
    case 2:
        return __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE);
    case 4:
        return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
    default:
        return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
    }
}

static inline void store_element(void *at, unsigned bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        __atomic_store_n((uint8_t *)at, (uint8_t)value, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((uint16_t *)at, (uint16_t)value, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((uint32_t *)at, (uint32_t)value, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE);
    }
}

static void lock_wide(unsigned bytes, bool locks)
{
    if (bytes == 16)
        (locks ? pthread_mutex_lock : pthread_mutex_unlock)(&emu_wide_lock);
}

HANDLER(load_strong)
{
    uint64_t at[EMU_LANES];
    unsigned bytes = emu_types[op->mods.type].bytes, count = op->mods.count, part = bytes < 8 ? bytes : 8;
    if (!access_resolve(w, op, op->arg[1], mask, bytes * count, false, at))
        return;
    w->polls++;
    lock_wide(bytes, true);
    for (unsigned n = 0; n < count; n++) {
        char *d = emu_lanes(w, count == 1 ? op->arg[0] : op->list[n]);
        ACTIVE_LANES(mask)
        {
            for (unsigned k = 0; k < bytes; k += part) {
                uint64_t value = load_element((const char *)(uintptr_t)at[i] + n * bytes + k, part);
                memcpy(d + i * bytes + k, &value, part);
            }
        }
    }
    lock_wide(bytes, false);
}

HANDLER(store_strong)
{
    uint64_t at[EMU_LANES];
    unsigned bytes = emu_types[op->mods.type].bytes, count = op->mods.count, part = bytes < 8 ? bytes : 8;
    if (!access_resolve(w, op, op->arg[0], mask, bytes * count, true, at))
        return;
    w->block->stores++;
    lock_wide(bytes, true);
    for (unsigned n = 0; n < count; n++) {
        const char *s = emu_lanes(w, count == 1 ? op->arg[1] : op->list[n]);
        if (count > 1 && op->list[n] == EMU_SINK)
            continue;
        ACTIVE_LANES(mask)
        {
            for (unsigned k = 0; k < bytes; k += part) {
                uint64_t value = 0;
                memcpy(&value, s + i * bytes + k, part);
                store_element((char *)(uintptr_t)at[i] + n * bytes + k, part, value);
            }
        }
    }
    lock_wide(bytes, false);
}

/* 32-byte accesses are only for global memory. */
static bool is_too_wide(const emu_mods *m)
{
    return emu_types[m->type].bytes * m->count > 16 && m->space != EMU_GLOBAL && m->space != EMU_GENERIC;
}

static emu_handler *pick_ld(const emu_mods *m)
{
    if (is_too_wide(m))
        return NULL;
    if (m->flags & EMU_STRONG)
        return load_strong;
    return loads[__builtin_ctz(emu_types[m->type].bytes)][__builtin_ctz(m->count)];
}

static emu_handler *pick_st(const emu_mods *m)
{
    if (is_too_wide(m))
        return NULL;
    if (m->flags & EMU_STRONG)
        return store_strong;
    return stores[__builtin_ctz(emu_types[m->type].bytes)][__builtin_ctz(m->count)];
}

/* cp.async.bulk.prefetch (ISA 9.7.9.25.4.3). The address must be valid, but nothing is read, so it is no access. */
HANDLER(prefetch_bulk)
{
    enum { UNIT = 16 };
    uint64_t first[EMU_LANES], last[EMU_LANES];
    const uint32_t *bytes = LANES_OF(uint32_t, 1);
    if (!access_announce(w, op, op->arg[0], mask))
        return;
    access_addresses(w, op, op->arg[0], mask, first);
    memcpy(last, first, sizeof last);
    ACTIVE_LANES(mask)
    {
        if (bytes[i] % UNIT != 0) {
            emu_fault(w, op, 1u << i, CUDA_ERROR_MISALIGNED_ADDRESS,
                      "prefetches %u bytes, which is not a multiple of %d", bytes[i], UNIT);
            return;
        }
        last[i] += bytes[i] > 0 ? bytes[i] - UNIT : 0;
    }
    if (access_find(w, op, mask, UNIT, false, first))
        access_find(w, op, mask, UNIT, false, last);
}

HANDLER(create_policy)
{
    SET_LANES(uint64_t, LANES_OF(uint64_t, 0), 0);
}

/* discard.L2 makes the line's contents undefined. This keeps them, which is allowed, but the address must be valid. */
HANDLER(discard)
{
    uint64_t at[EMU_LANES];
    access_resolve(w, op, op->arg[0], mask, 128, true, at);
}

#define LD_SPACE "p:const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster?"
#define ST_SPACE "p:global|local|param|param::func|shared|shared::cta|shared::cluster?"
#define STRONG   "p:global|shared|shared::cta|shared::cluster?"
#define HINTS    " @l1? L2::cache_hint?"
#define HINTS_L2 " @l1? @l2? L2::cache_hint?"
#define TYPE     " @mem"
#define VECTOR   " v:v2|v4?"
#define LD       "=~*t [] hint?"
#define ST       "[] ~*t hint?"
#define WIDE_32  " v:v8 t:b32|u32|s32|f32"
#define WIDE_64  " v:v4 t:b64|u64|s64|f64"
#define SCOPE    " cta|cluster|gpu|sys"
#define LOAD     .pick = pick_ld, .refuse = emu_refuse_hint
#define STORE    .pick = pick_st, .refuse = emu_refuse_hint

static const emu_row rows[] = {
    {"ld", "weak? p:global? ca|cg|cs|lu|cv?" HINTS_L2 " @prefetch?" WIDE_32, LD, 88, 100, LOAD},
    {"ld", "weak? p:global? ca|cg|cs|lu|cv?" HINTS_L2 " @prefetch?" WIDE_64, LD, 88, 100, LOAD},
    {"ld", "p:global ca|cg|cs? nc" HINTS_L2 " @prefetch?" WIDE_32, LD, 88, 100, LOAD},
    {"ld", "p:global ca|cg|cs? nc" HINTS_L2 " @prefetch?" WIDE_64, LD, 88, 100, LOAD},
    {"ld", "weak? " LD_SPACE " ca|cg|cs|lu|cv?" HINTS " @prefetch?" VECTOR TYPE, LD, LOAD},
    {"ld", "volatile p:global? @prefetch?" WIDE_32, LD, 88, 100, LOAD},
    {"ld", "volatile p:global? @prefetch?" WIDE_64, LD, 88, 100, LOAD},
    {"ld", "volatile " STRONG " @prefetch?" VECTOR TYPE, LD, LOAD},
    {"ld", "volatile p:local" VECTOR TYPE, LD, 91, LOAD},
    {"ld", "relaxed|acquire" SCOPE " p:global?" HINTS_L2 " @prefetch?" WIDE_32, LD, 88, 100, LOAD},
    {"ld", "relaxed|acquire" SCOPE " p:global?" HINTS_L2 " @prefetch?" WIDE_64, LD, 88, 100, LOAD},
    {"ld", "relaxed|acquire" SCOPE " " STRONG HINTS " @prefetch?" VECTOR TYPE, LD, 60, 70, LOAD},
    {"ld", "mmio relaxed sys p:global? @mem", LD, 82, 70, LOAD},
    {"ld", "weak? " LD_SPACE " ca|cg|cs|lu|cv? t:b128", LD, 83, 70, LOAD},
    {"ld", "relaxed|acquire" SCOPE " " STRONG " t:b128", LD, 83, 70, LOAD},
    {"ld", "p:global ca|cg|cs? nc" HINTS " @prefetch?" VECTOR TYPE, LD, 31, 32, LOAD},
    {"ld", "p:global ca|cg|cs? nc" HINTS " @prefetch? t:b128", LD, 83, 70, LOAD},
    {"ldu", "p:global?" VECTOR TYPE, LD, .pick = pick_ld, .refuse = emu_refuse_vector},
    {"st", "weak? p:global? wb|cg|cs|wt?" HINTS_L2 WIDE_32, ST, 88, 100, STORE},
    {"st", "weak? p:global? wb|cg|cs|wt?" HINTS_L2 WIDE_64, ST, 88, 100, STORE},
    {"st", "weak? " ST_SPACE " wb|cg|cs|wt?" HINTS VECTOR TYPE, ST, STORE},
    {"st", "volatile p:global?" WIDE_32, ST, 88, 100, STORE},
    {"st", "volatile p:global?" WIDE_64, ST, 88, 100, STORE},
    {"st", "volatile " STRONG VECTOR TYPE, ST, STORE},
    {"st", "volatile p:local" VECTOR TYPE, ST, 91, STORE},
    {"st", "relaxed|release" SCOPE " p:global?" HINTS_L2 WIDE_32, ST, 88, 100, STORE},
    {"st", "relaxed|release" SCOPE " p:global?" HINTS_L2 WIDE_64, ST, 88, 100, STORE},
    {"st", "relaxed|release" SCOPE " " STRONG HINTS VECTOR TYPE, ST, 60, 70, STORE},
    {"st", "mmio relaxed sys p:global? @mem", ST, 82, 70, STORE},
    {"st", "weak? " ST_SPACE " wb|cg|cs|wt? t:b128", ST, 83, 70, STORE},
    {"st", "relaxed|release" SCOPE " " STRONG " t:b128", ST, 83, 70, STORE},
    {"prefetch", "p:global|local? L1|L2", "[]", .run = nothing},
    {"prefetch", "p:global L2::evict_last|L2::evict_normal", "[]", 74, 80, .run = nothing},
    {"prefetchu", "L1", "[]", .run = nothing},
    {"cp", "async bulk prefetch L2 p:global L2::cache_hint?", "[] u32 hint?", 80, 90, .run = prefetch_bulk},
    {"createpolicy", "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged t:b64",
     "=t", 74, 80, .run = create_policy},
    {"createpolicy", "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged t:b64",
     "=t fraction", 74, 80, .run = create_policy},
    {"createpolicy",
     "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged "
     "L2::evict_first|L2::evict_unchanged "
     "t:b64",
     "=t fraction?", 74, 80, .run = create_policy},
    {"applypriority", "p:global? L2::evict_normal", "[] #", 74, 80, .run = nothing},
    {"discard", "p:global? L2", "[] #", 74, 80, .run = discard},
};

EXPORT_ROWS(emu_rows_memory);
