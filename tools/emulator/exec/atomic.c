/* atom and red (ISA 9.7.13.5, 9.7.13.6). Blocks run on several host threads, so each element is a host atomic. */
#include "exec.h"

#include "access.h"
#include "update.h"

static uint64_t load_element(const emu_warp *w, uint32_t arg, unsigned bytes, uint32_t lane)
{
    uint64_t x = 0;
    memcpy(&x, (const char *)emu_lanes(w, arg) + (size_t)lane * bytes, bytes);
    return x;
}

static bool is_shared_address(const emu_warp *w, uint64_t host)
{
    return emu_block_holding(w->block, host) != NULL;
}

/* The value arguments follow the address; with `returns` the old value goes to argument 0. */
static inline void atomic(emu_warp *w, const emu_op *op, uint32_t mask, unsigned address_arg, bool returns)
{
    uint64_t at[EMU_LANES];
    unsigned bytes = emu_types[op->mods.type].bytes;
    if (!access_resolve(w, op, op->arg[address_arg], mask, bytes, true, at))
        return;
    bool changed = false;
    ACTIVE_LANES(mask)
    {
        uint64_t b = load_element(w, op->arg[address_arg + 1], bytes, i);
        uint64_t c = op->mods.mode == CAS ? load_element(w, op->arg[address_arg + 2], bytes, i) : 0;
        uint64_t old = update(&op->mods, is_shared_address(w, at[i]), bytes, at[i], b, c);
        changed |= op->mods.mode != CAS || old == b;
        if (returns)
            memcpy(LANES_OF(char, 0) + (size_t)i * bytes, &old, bytes);
    }
    w->block->stores += changed; /* a failed compare-and-swap is no progress */
    w->polls += !changed;
}

HANDLER_CALLS(atom, atomic, 1, true)
HANDLER_CALLS(red, atomic, 0, false)

/* Vector elements are updated one by one. Sources are read first, since a destination may be the source of another element.
   The list holds the destinations, if any, then the sources. */
static inline void vector(emu_warp *w, const emu_op *op, uint32_t mask, unsigned address_arg, bool returns)
{
    uint64_t at[EMU_LANES];
    unsigned bytes = emu_types[op->mods.type].bytes, count = op->mods.count;
    if (!access_resolve(w, op, op->arg[address_arg], mask, bytes * count, true, at))
        return;
    w->block->stores++;
    const uint32_t *sources = op->list + (returns ? count : 0);
    ACTIVE_LANES(mask)
    {
        uint64_t old[8];
        for (unsigned n = 0; n < count; n++)
            old[n] =
                update(&op->mods, false, bytes, at[i] + n * bytes, load_element(w, sources[n], bytes, i), 0);
        for (unsigned n = 0; returns && n < count; n++)
            memcpy((char *)emu_lanes(w, op->list[n]) + (size_t)i * bytes, &old[n], bytes);
    }
}

HANDLER_CALLS(atom_vector, vector, 1, true)
HANDLER_CALLS(red_vector, vector, 0, false)

typedef struct bits128 {
    uint64_t low, high;
} bits128;

/* 16 bytes: one lock for all of them. */
HANDLER(atom_128)
{
    uint64_t at[EMU_LANES];
    if (!access_resolve(w, op, op->arg[1], mask, 16, true, at))
        return;
    w->block->stores++;
    bits128 *d = LANES_OF(bits128, 0);
    const bits128 *b = LANES_OF(const bits128, 2), *c = LANES_OF(const bits128, op->mods.mode == CAS ? 3 : 2);
    pthread_mutex_lock(&emu_wide_lock);
    ACTIVE_LANES(mask)
    {
        bits128 old, value = c[i];
        memcpy(&old, (void *)(uintptr_t)at[i], sizeof old);
        if (op->mods.mode != CAS || (old.low == b[i].low && old.high == b[i].high))
            memcpy((void *)(uintptr_t)at[i], &value, sizeof value);
        d[i] = old;
    }
    pthread_mutex_unlock(&emu_wide_lock);
}

#define OPERATIONS "m:and|or|xor|exch|add|inc|dec|min|max|cas"

/* True if the operation exists for the type. */
static bool has_type(const emu_mods *m)
{
    bool is_bits = emu_types[m->type].class == EMU_BITS, is_float = m->type == EMU_F32 || m->type == EMU_F64;
    switch (m->mode) {
    case AND:
    case OR:
    case XOR:
    case EXCH:
    case CAS:
        return is_bits;
    case INC:
    case DEC:
        return m->type == EMU_U32;
    case ADD:
        return !is_bits && m->type != EMU_S64; /* .u64 has the same result */
    default:
        return !is_bits && !is_float;
    }
}

static emu_handler *pick_atom(const emu_mods *m)
{
    return has_type(m) && m->mode != CAS ? atom : NULL;
}

static emu_handler *pick_red(const emu_mods *m)
{
    return has_type(m) && m->mode != EXCH && m->mode != CAS ? red : NULL;
}

static emu_handler *pick_cas(const emu_mods *m)
{
    return m->mode == CAS ? m->type == EMU_B128 ? atom_128 : atom : NULL;
}

static emu_handler *pick_exch_128(const emu_mods *m)
{
    return m->mode == EXCH ? atom_128 : NULL;
}

static emu_handler *pick_add_half_atom(const emu_mods *m)
{
    return m->mode == ADD ? atom : NULL;
}

static emu_handler *pick_add_half_red(const emu_mods *m)
{
    return m->mode == ADD ? red : NULL;
}

static bool vector_exists(const emu_mods *m)
{
    if (m->type == EMU_F32)
        return m->mode == ADD && m->count <= 4;
    bool packed = m->type == EMU_F16X2 || m->type == EMU_BF16X2;
    return (m->mode == ADD || m->mode == MIN || m->mode == MAX) && (!packed || m->count <= 4);
}

static emu_handler *pick_atom_vector(const emu_mods *m)
{
    return vector_exists(m) ? atom_vector : NULL;
}

static emu_handler *pick_red_vector(const emu_mods *m)
{
    return vector_exists(m) ? red_vector : NULL;
}

#define SEM     "relaxed|acquire|release|acq_rel? @scope? "
#define SEM_RED "relaxed|release? @scope? "
#define SPACE   "p:global|shared|shared::cta|shared::cluster? "
#define SCALARS " L2::cache_hint? t:b32|b64|u32|u64|s32|s64|f32|f64"
#define CAS_    "m:-|-|-|-|-|-|-|-|-|cas "
#define EXCH_   "m:-|-|-|exch "
#define PICK(f) .pick = f, .refuse = emu_refuse_hint

static const emu_row rows[] = {
    {"atom", SEM SPACE CAS_ "t:b16|b32|b64", "=_t [] t t", PICK(pick_cas)},
    {"atom", SEM SPACE CAS_ "t:b128", "=_t [] t t", 83, 90, PICK(pick_cas)},
    {"atom", SEM SPACE EXCH_ "L2::cache_hint? t:b128", "=_t [] t hint?", 83, 90, PICK(pick_exch_128)},
    {"atom", SEM SPACE OPERATIONS SCALARS, "=_t [] t hint?", PICK(pick_atom)},
    {"atom", SEM SPACE OPERATIONS " noftz L2::cache_hint? t:f16|f16x2", "=_t [] t hint?", 62, 60,
     PICK(pick_add_half_atom)},
    {"atom", SEM SPACE OPERATIONS " noftz L2::cache_hint? t:bf16|bf16x2", "=_x [] x hint?", 78, 90,
     PICK(pick_add_half_atom)},
    {"atom", SEM "p:global? " OPERATIONS " L2::cache_hint? v:v2|v4 t:f32", "=*t [] *t hint?", 81, 90,
     PICK(pick_atom_vector)},
    {"atom", SEM "p:global? " OPERATIONS " noftz L2::cache_hint? v:v2|v4|v8 @half", "=*x [] *x hint?", 81, 90,
     PICK(pick_atom_vector)},
    {"red", SEM_RED SPACE OPERATIONS SCALARS, "[] t hint?", PICK(pick_red)},
    {"red", SEM_RED SPACE OPERATIONS " noftz L2::cache_hint? t:f16|f16x2", "[] t hint?", 62, 60,
     PICK(pick_add_half_red)},
    {"red", SEM_RED SPACE OPERATIONS " noftz L2::cache_hint? t:bf16|bf16x2", "[] x hint?", 78, 90,
     PICK(pick_add_half_red)},
    {"red", SEM_RED "p:global? " OPERATIONS " L2::cache_hint? v:v2|v4 t:f32", "[] *t hint?", 81, 90,
     PICK(pick_red_vector)},
    {"red", SEM_RED "p:global? " OPERATIONS " noftz L2::cache_hint? v:v2|v4|v8 @half", "[] *x hint?", 81, 90,
     PICK(pick_red_vector)},
};

EXPORT_ROWS(emu_rows_atomic);
