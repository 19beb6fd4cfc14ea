/* mov, address conversion, and the small operations that the decoder adds to instructions. */
#include "exec.h"

#include "../core/windows.h"
#include "special.h"

typedef struct bits128 {
    uint64_t low, high;
} bits128;

#define COPY(bits, T)                                                                                        \
    HANDLER(copy_##bits)                                                                                     \
    {                                                                                                        \
        const T *a = LANES_OF(const T, 1);                                                                   \
        T *d = LANES_OF(T, 0);                                                                               \
        if (mask == EMU_ALL)                                                                                 \
            memmove(d, a, EMU_LANES * sizeof(T));                                                            \
        else                                                                                                 \
            ACTIVE_LANES(mask) d[i] = a[i];                                                                  \
    }
COPY(8, uint8_t)
COPY(16, uint16_t)
COPY(32, uint32_t)
COPY(64, uint64_t)
COPY(128, bits128)

HANDLER(copy_predicate)
{
    emu_set_predicate(w, op->arg[0], mask, emu_predicate(w, op->arg[1]));
}

#define EXTEND(from, S, to, D) DEFINE1(extend_##from##_##to, D, S, a)
EXTEND(u8, uint8_t, 16, uint16_t)
EXTEND(u8, uint8_t, 32, uint32_t)
EXTEND(u8, uint8_t, 64, uint64_t)
EXTEND(s8, int8_t, 16, uint16_t)
EXTEND(s8, int8_t, 32, uint32_t)
EXTEND(s8, int8_t, 64, uint64_t)
EXTEND(u16, uint16_t, 32, uint32_t)
EXTEND(u16, uint16_t, 64, uint64_t)
EXTEND(s16, int16_t, 32, uint32_t)
EXTEND(s16, int16_t, 64, uint64_t)
EXTEND(u32, uint32_t, 64, uint64_t)
EXTEND(s32, int32_t, 64, uint64_t)

HANDLER(extend_128)
{
    unsigned bytes = emu_types[op->mods.type].bytes;
    bool is_signed = emu_types[op->mods.type].class == EMU_SIGNED;
    const char *a = LANES_OF(const char, 1);
    bits128 *d = LANES_OF(bits128, 0);
    ACTIVE_LANES(mask)
    {
        bits128 r = {0};
        memcpy(&r.low, a + (size_t)i * bytes, bytes);
        unsigned unused = 64 - 8 * bytes;
        if (is_signed) {
            r.low = (uint64_t)((int64_t)(r.low << unused) >> unused);
            r.high = (int64_t)r.low < 0 ? UINT64_MAX : 0;
        }
        d[i] = r;
    }
}

#define CHOP(from, S, to, D) DEFINE1(chop_##from##_##to, D, S, a)
CHOP(16, uint16_t, 8, uint8_t)
CHOP(32, uint32_t, 8, uint8_t)
CHOP(32, uint32_t, 16, uint16_t)
CHOP(64, uint64_t, 8, uint8_t)
CHOP(64, uint64_t, 16, uint16_t)
CHOP(64, uint64_t, 32, uint32_t)

#define ADD(bits, T) DEFINE2(add_##bits, T, T, T, (T)(a + b))
ADD(16, uint16_t)
ADD(32, uint32_t)
ADD(64, uint64_t)

#define CHOP_128(to, D)                                                                                      \
    HANDLER(chop_128_##to)                                                                                   \
    {                                                                                                        \
        const bits128 *a = LANES_OF(const bits128, 1);                                                       \
        D *d = LANES_OF(D, 0);                                                                               \
        ACTIVE_LANES(mask) d[i] = (D)a[i].low;                                                               \
    }
CHOP_128(8, uint8_t)
CHOP_128(16, uint16_t)
CHOP_128(32, uint32_t)
CHOP_128(64, uint64_t)

/* Packs {a, b, ..} to one register, or unpacks it. op->imm: bytes per element; mods.mode: 1 packs. */
HANDLER(pack)
{
    unsigned bytes = (unsigned)op->imm, whole = emu_types[op->mods.type].bytes;
    for (unsigned n = 0; n < op->mods.count; n++) {
        char *scalar = LANES_OF(char, 0) + (size_t)n * bytes, *element = emu_lanes(w, op->list[n]);
        if (op->mods.mode)
            ACTIVE_LANES(mask) memcpy(scalar + (size_t)i * whole, element + (size_t)i * bytes, bytes);
        else if (op->list[n] != EMU_SINK)
            ACTIVE_LANES(mask) memcpy(element + (size_t)i * bytes, scalar + (size_t)i * whole, bytes);
    }
}

DEFINE2(pack_16x2, uint32_t, uint16_t, uint16_t, (uint32_t)a | (uint32_t)b << 16)
DEFINE2(pack_32x2, uint64_t, uint32_t, uint32_t, (uint64_t)a | (uint64_t)b << 32)

/* The two frequent packings, vectorised. */
HANDLER(pack_two)
{
    emu_op two = *op;
    two.arg[1] = op->list[0];
    two.arg[2] = op->list[1];
    if (op->imm == 2)
        pack_16x2(w, &two, mask);
    else
        pack_32x2(w, &two, mask);
}

#define UNPACK(bits, T, S)                                                                                   \
    HANDLER(unpack_##bits##x2)                                                                               \
    {                                                                                                        \
        const S *a = LANES_OF(const S, 0);                                                                   \
        S t[EMU_LANES];                                                                                      \
        memcpy(t, a, sizeof t); /* an element may be the scalar's slot */                                    \
        SET_LANES(T, (T *)emu_lanes(w, op->list[0]), t[i]);                                                  \
        SET_LANES(T, (T *)emu_lanes(w, op->list[1]), t[i] >> bits);                                          \
    }
UNPACK(16, uint16_t, uint32_t)
UNPACK(32, uint32_t, uint64_t)

HANDLER(mov_vector)
{
    bool two = op->mods.count == 2, packs = op->mods.mode;
    if (two && packs && (op->imm == 2 || op->imm == 4))
        pack_two(w, op, mask);
    else if (two && !packs && op->imm == 2)
        unpack_16x2(w, op, mask);
    else if (two && !packs && op->imm == 4)
        unpack_32x2(w, op, mask);
    else
        pack(w, op, mask);
}

/* Converts window offsets to generic addresses, and back. Global addresses are already generic; .const ones are relative to
   the module's bank. */
static uint64_t window_start(const emu_warp *w, unsigned space)
{
    switch (space) {
    case EMU_SHARED:
    case EMU_SHARED_CLUSTER:
        return EMU_SHARED_WINDOW;
    case EMU_LOCAL:
        return EMU_LOCAL_WINDOW;
    case EMU_PARAM:
        return EMU_PARAM_WINDOW;
    case EMU_CONST:
        return (uint64_t)(uintptr_t)w->block->launch->const_bank;
    default:
        return 0;
    }
}

HANDLER(cvta)
{
    const uint64_t *a = LANES_OF(const uint64_t, 1);
    uint64_t start = window_start(w, op->mods.space);
    start = op->mods.flags & EMU_TO ? 0 - start : start;
    SET_LANES(uint64_t, LANES_OF(uint64_t, 0), a[i] + start);
}

HANDLER(isspacep)
{
    const emu_launch *l = w->block->launch;
    const uint64_t *a = LANES_OF(const uint64_t, 1);
    uint64_t start = window_start(w, op->mods.space);
    uint64_t size = op->mods.space == EMU_CONST ? l->const_bytes : EMU_WINDOW_BYTES;
    uint64_t bank = (uint64_t)(uintptr_t)l->const_bank;
    uint32_t inside = 0;
    ACTIVE_LANES(mask)
    {
        bool is = a[i] - start < size;
        if (op->mods.space == EMU_GLOBAL) /* kernel parameters count as global (ISA 9.7.9.19) */
            is = (emu_memory_contains(a[i]) && a[i] - bank >= l->const_bytes) ||
                 a[i] - EMU_PARAM_WINDOW < EMU_WINDOW_BYTES;
        else if (op->mods.space == EMU_SHARED)
            is = (a[i] - start) >> EMU_RANK_SHIFT == w->block->rank;
        else if (op->mods.space == EMU_SHARED_CLUSTER)
            is = (a[i] - start) >> EMU_RANK_SHIFT < l->cluster_blocks;
        inside |= (uint32_t)is << i;
    }
    emu_set_predicate(w, op->arg[0], mask, inside);
}

/* Shared memory in a cluster (ISA 9.7.9.23, 9.7.9.24): an address has the rank of its block above the offset. What the
   addresses mean shows when they are used. */
#define OFFSET_MASK ((1u << EMU_RANK_SHIFT) - 1)

HANDLER(mapa)
{
    const uint32_t *rank = LANES_OF(const uint32_t, 2);
    if (op->mods.type == EMU_U32) {
        const uint32_t *a = LANES_OF(const uint32_t, 1);
        SET_LANES(uint32_t, LANES_OF(uint32_t, 0), (a[i] & OFFSET_MASK) | rank[i] << EMU_RANK_SHIFT);
    } else {
        const uint64_t *a = LANES_OF(const uint64_t, 1);
        SET_LANES(uint64_t, LANES_OF(uint64_t, 0),
                  (a[i] & ~(uint64_t)UINT32_MAX) | (a[i] & OFFSET_MASK) | rank[i] << EMU_RANK_SHIFT);
    }
}

HANDLER(getctarank)
{
    uint32_t *d = LANES_OF(uint32_t, 0);
    if (op->mods.type == EMU_U32) {
        const uint32_t *a = LANES_OF(const uint32_t, 1);
        SET_LANES(uint32_t, d, a[i] >> EMU_RANK_SHIFT);
    } else {
        const uint64_t *a = LANES_OF(const uint64_t, 1);
        SET_LANES(uint32_t, d, (uint32_t)a[i] >> EMU_RANK_SHIFT);
    }
}

HANDLER(shared_address)
{
    uint32_t base = w->block->shared_base;
    if (emu_types[op->mods.type].bytes == 8) {
        const uint64_t *a = LANES_OF(const uint64_t, 1);
        SET_LANES(uint64_t, LANES_OF(uint64_t, 0), a[i] + base);
    } else if (emu_types[op->mods.type].bytes == 4) {
        const uint32_t *a = LANES_OF(const uint32_t, 1);
        SET_LANES(uint32_t, LANES_OF(uint32_t, 0), a[i] + base);
    } else { /* the lower half: ptxas takes it for a register of 16 bits */
        const uint16_t *a = LANES_OF(const uint16_t, 1);
        SET_LANES(uint16_t, LANES_OF(uint16_t, 0), a[i]);
    }
}

const emu_micro EMU_LEVEL_NAME(emu_micro_move) = {
    .extend =
        {
            [EMU_U8] = {extend_u8_16, extend_u8_32, extend_u8_64, extend_128},
            [EMU_B8] = {extend_u8_16, extend_u8_32, extend_u8_64, extend_128},
            [EMU_S8] = {extend_s8_16, extend_s8_32, extend_s8_64, extend_128},
            [EMU_U16] = {NULL, extend_u16_32, extend_u16_64, extend_128},
            [EMU_B16] = {NULL, extend_u16_32, extend_u16_64, extend_128},
            [EMU_S16] = {NULL, extend_s16_32, extend_s16_64, extend_128},
            [EMU_U32] = {NULL, NULL, extend_u32_64, extend_128},
            [EMU_B32] = {NULL, NULL, extend_u32_64, extend_128},
            [EMU_S32] = {NULL, NULL, extend_s32_64, extend_128},
            [EMU_U64] = {NULL, NULL, NULL, extend_128},
            [EMU_B64] = {NULL, NULL, NULL, extend_128},
            [EMU_S64] = {NULL, NULL, NULL, extend_128},
        },
    .chop =
        {
            {NULL},
            {chop_16_8},
            {chop_32_8, chop_32_16},
            {chop_64_8, chop_64_16, chop_64_32},
            {chop_128_8, chop_128_16, chop_128_32, chop_128_64},
        },
    .add = {NULL, add_16, add_32, add_64},
    .copy = {copy_8, copy_16, copy_32, copy_64, copy_128},
    .copy_predicate = copy_predicate,
    .special = emu_read_special,
    .shared_address = shared_address,
};

#define MOV_TYPES    "t:pred|b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f32|f64"
#define MOV_TYPES_32 "t:b16|b32|u16|u32|s16|s32|f32"
#define MOV          .run = mov_vector, .form = EMU_FORM_MOV, .refuse = emu_refuse_vector
#define SPACES       "p:global|shared|shared::cta|shared::cluster|local|const|param|param::entry"

static const emu_row rows[] = {
    {"mov", MOV_TYPES, "", MOV},
    {"mov", "v:v2 " MOV_TYPES_32 "|b64|u64|s64|f64", "", MOV},
    {"mov", "v:v4 " MOV_TYPES_32, "", MOV},
    {"cvta", SPACES " t:u64", "=t &t", .run = cvta},
    {"cvta", "to " SPACES " t:u64", "=t t", .run = cvta},
    {"isspacep", SPACES, "=p u64", .run = isspacep},
    {"mapa", "p:shared::cluster? t:u32|u64", "=t &t u32", 78, 90, .run = mapa},
    {"getctarank", "p:shared::cluster? t:u32|u64", "=u32 &t", 78, 90, .run = getctarank},
};

EXPORT_ROWS(emu_rows_move);
