/* Operations among the lanes of a warp (ISA 9.7.9.6, 9.7.13.2, 9.7.13.9 to 9.7.13.14). */
#include "exec.h"
#include "warpgroup.h"

/* Executes the operation for `group`: lanes with the same member mask, none of which is missing. */
typedef void group_function(emu_warp *w, const emu_op *op, uint32_t group);

/* Splits the lanes by their member masks. Incomplete groups wait for the missing lanes. */
static inline void for_each_group(emu_warp *w, const emu_op *op, uint32_t mask, const uint32_t *members,
                                  emu_wait wait, group_function *execute)
{
    while (mask) {
        uint32_t named = members[__builtin_ctz(mask)], group = 0;
        ACTIVE_LANES(mask) group |= (uint32_t)(members[i] == named) << i;
        mask &= ~group;
        if ((group & ~named) && emu_is_misused(w, op, group & ~named, EMU_NOT_A_MEMBER))
            return;
        if (named & w->alive & ~group) {
            emu_wait_at(w, op, (emu_fragment){.mask = group, .members = named, .wait = (uint8_t)wait});
            continue;
        }
        EMU_TELL(w->audience, exchange, w, op, group);
        execute(w, op, group);
    }
}

#define MODE_UP   0
#define MODE_DOWN 1
#define MODE_BFLY 2

/* Returns the source lane, or -1 if it is out of range: the lane then keeps its own value. */
static inline int source_lane(unsigned mode, int lane, uint32_t b, uint32_t c)
{
    int by = (int)(b & 31), clamp = (int)(c & 31), segment = (int)(c >> 8 & 31);
    int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int j;
    switch (mode) {
    case MODE_UP:
        j = lane - by;
        return j >= most ? j : -1;
    case MODE_DOWN:
        j = lane + by;
        break;
    case MODE_BFLY:
        j = lane ^ by;
        break;
    default:
        j = least | (by & ~segment);
    }
    return j <= most ? j : -1;
}

static void shfl_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    const uint32_t *a = LANES_OF(const uint32_t, 2), *b = LANES_OF(const uint32_t, 3),
                   *c = LANES_OF(const uint32_t, 4);
    uint32_t *d = LANES_OF(uint32_t, 0), t[EMU_LANES], in_range = 0, inactive = 0;
    ACTIVE_LANES(group)
    {
        int j = source_lane(op->mods.mode, (int)i, b[i], c[i]);
        in_range |= (uint32_t)(j >= 0) << i;
        j = j < 0 ? (int)i : j & 31;
        inactive |= (~group >> j & 1) << i;
        t[i] = a[j];
    }
    if (inactive && emu_is_misused(w, op, inactive, EMU_INACTIVE_SOURCE))
        return;
    ACTIVE_LANES(group) d[i] = t[i];
    if (op->arg[1] != EMU_SINK)
        emu_set_predicate(w, op->arg[1], group, in_range);
}

HANDLER_CALLS(shfl, for_each_group, LANES_OF(const uint32_t, 5), EMU_WAIT_LANES, shfl_group)

enum { VOTE_ALL, VOTE_ANY, VOTE_UNI };

static void vote_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    uint32_t p = emu_predicate(w, op->arg[1]) & group;
    bool all = p == group, any = p != 0;
    bool result = op->mods.mode == VOTE_ALL ? all : op->mods.mode == VOTE_ANY ? any : all || !any;
    emu_set_predicate(w, op->arg[0], group, result ? EMU_ALL : 0);
}

static void ballot_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    uint32_t p = emu_predicate(w, op->arg[1]) & group, *d = LANES_OF(uint32_t, 0);
    ACTIVE_LANES(group) d[i] = p;
}

HANDLER_CALLS(vote, for_each_group, LANES_OF(const uint32_t, 2), EMU_WAIT_LANES, vote_group)
HANDLER_CALLS(ballot, for_each_group, LANES_OF(const uint32_t, 2), EMU_WAIT_LANES, ballot_group)

static inline uint64_t value_of(const emu_warp *w, const emu_op *op, unsigned arg, uint32_t lane)
{
    return emu_types[op->mods.type].bytes == 8 ? LANES_OF(const uint64_t, arg)[lane]
                                               : LANES_OF(const uint32_t, arg)[lane];
}

static uint32_t equal_lanes(const emu_warp *w, const emu_op *op, unsigned arg, uint32_t group, uint64_t value)
{
    uint32_t equal = 0;
    ACTIVE_LANES(group) equal |= (uint32_t)(value_of(w, op, arg, i) == value) << i;
    return equal;
}

static void match_any_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    uint32_t t[EMU_LANES], *d = LANES_OF(uint32_t, 0);
    ACTIVE_LANES(group) t[i] = equal_lanes(w, op, 1, group, value_of(w, op, 1, i));
    ACTIVE_LANES(group) d[i] = t[i];
}

static void match_all_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    uint64_t first = value_of(w, op, 2, (uint32_t)__builtin_ctz(group));
    bool all = equal_lanes(w, op, 2, group, first) == group;
    uint32_t *d = LANES_OF(uint32_t, 0);
    ACTIVE_LANES(group) d[i] = all ? group : 0;
    if (op->arg[1] != EMU_SINK)
        emu_set_predicate(w, op->arg[1], group, all ? EMU_ALL : 0);
}

HANDLER_CALLS(match_any, for_each_group, LANES_OF(const uint32_t, 2), EMU_WAIT_LANES, match_any_group)
HANDLER_CALLS(match_all, for_each_group, LANES_OF(const uint32_t, 3), EMU_WAIT_LANES, match_all_group)

enum { REDUX_ADD, REDUX_MIN, REDUX_MAX };

/* Maps signed values to unsigned ones in the same order; its own inverse. */
static uint32_t ordered(uint32_t v, bool is_signed)
{
    return is_signed ? v ^ 0x80000000 : v;
}

static void redux_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    const uint32_t *a = LANES_OF(const uint32_t, 1);
    uint32_t *d = LANES_OF(uint32_t, 0), sum = 0, least = UINT32_MAX, most = 0;
    bool is_signed = op->mods.type == EMU_S32;
    ACTIVE_LANES(group)
    {
        uint32_t v = ordered(a[i], is_signed);
        sum += a[i];
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    uint32_t r = op->mods.mode == REDUX_ADD   ? sum
                 : op->mods.mode == REDUX_MIN ? ordered(least, is_signed)
                                              : ordered(most, is_signed);
    ACTIVE_LANES(group) d[i] = r;
}

static void redux_bits_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    const uint32_t *a = LANES_OF(const uint32_t, 1);
    uint32_t *d = LANES_OF(uint32_t, 0), and = UINT32_MAX, or = 0, xor = 0;
    ACTIVE_LANES(group)
    {
        and &= a[i];
        or |= a[i];
        xor ^= a[i];
    }
    uint32_t r = op->mods.mode == 0 ? and : op->mods.mode == 1 ? or : xor;
    ACTIVE_LANES(group) d[i] = r;
}

/* NaNs take part only with .NaN; -0 is below +0. */
static void redux_float_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    const uint32_t *a = LANES_OF(const uint32_t, 1);
    uint32_t *d = LANES_OF(uint32_t, 0), best = 0x7fffffff;
    bool is_max = op->mods.mode, any_nan = false, found = false;
    ACTIVE_LANES(group)
    {
        uint32_t v = op->mods.flags & EMU_ABS ? a[i] & 0x7fffffff : a[i];
        uint32_t key = v & 0x80000000 ? ~v : v | 0x80000000,
                 best_key = best & 0x80000000 ? ~best : best | 0x80000000;
        if ((v & 0x7fffffff) > 0x7f800000) {
            any_nan = true;
        } else if (!found || (is_max ? key > best_key : key < best_key)) {
            best = v;
            found = true;
        }
    }
    if (any_nan && (op->mods.flags & EMU_NAN))
        best = 0x7fffffff;
    ACTIVE_LANES(group) d[i] = best;
}

HANDLER_CALLS(redux, for_each_group, LANES_OF(const uint32_t, 2), EMU_WAIT_LANES, redux_group)
HANDLER_CALLS(redux_bits, for_each_group, LANES_OF(const uint32_t, 2), EMU_WAIT_LANES, redux_bits_group)
HANDLER_CALLS(redux_float, for_each_group, LANES_OF(const uint32_t, 2), EMU_WAIT_LANES, redux_float_group)

static void elect_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    uint32_t leader = (uint32_t)__builtin_ctz(group), *d = LANES_OF(uint32_t, 0);
    ACTIVE_LANES(group) d[i] = leader;
    emu_set_predicate(w, op->arg[1], group, 1u << leader);
}

HANDLER_CALLS(elect, for_each_group, LANES_OF(const uint32_t, 2), EMU_WAIT_LANES, elect_group)

HANDLER(activemask)
{
    uint32_t *d = LANES_OF(uint32_t, 0);
    ACTIVE_LANES(mask) d[i] = mask;
}

static void warp_barrier_group(emu_warp *w, const emu_op *op, uint32_t group)
{
    (void)op;
    EMU_TELL(w->audience, warp_sync, w, group);
}

HANDLER_CALLS(warp_barrier, for_each_group, LANES_OF(const uint32_t, 0), EMU_WAIT_WARP, warp_barrier_group)

/* Observers see setmaxnreg as a warpgroup instruction, which all four warps execute. */
static void set_registers(emu_warp *w, const emu_op *op, uint32_t mask, bool raises)
{
    if (!is_whole_warp(w, op, mask) || w->block->launch->registers == 0 || !is_in_warpgroup(w, op, mask))
        return;
    EMU_TELL(w->audience, warpgroup, w, op, NULL);
    if (w->state != EMU_WARP_FAULTED)
        emu_set_registers(w, op, mask, raises);
}

HANDLER_CALLS(raise_registers, set_registers, true)
HANDLER_CALLS(lower_registers, set_registers, false)

#define SETMAXNREG(action, handler)                                                                          \
    {                                                                                                        \
        "setmaxnreg", action " sync aligned u32", "#", 80, 90, "90a 100f 103f 110f 120f 121f",               \
            .run = handler, .refuse = emu_refuse_count                                                       \
    }

static const emu_row rows[] = {
    {"shfl", "sync m:up|down|bfly|idx t:b32", "=t|p? t u32 u32 u32", 60, 30, .run = shfl},
    {"vote", "sync m:all|any|uni t:pred", "=p !p u32", 60, 30, .run = vote},
    {"vote", "sync ballot t:b32", "=t !p u32", 60, 30, .run = ballot},
    {"match", "any sync t:b32|b64", "=b32 t u32", 60, 70, .run = match_any},
    {"match", "all sync t:b32|b64", "=_b32|p? t u32", 60, 70, .run = match_all},
    {"redux", "sync m:add|min|max t:u32|s32", "=t t u32", 70, 80, .run = redux},
    {"redux", "sync m:and|or|xor t:b32", "=t t u32", 70, 80, .run = redux_bits},
    {"redux", "sync m:min|max abs? NaN? t:f32", "=t t u32", 86, 100, "100f", .run = redux_float},
    {"elect", "sync", "=_b32|p u32", 80, 90, .run = elect},
    {"activemask", "t:b32", "=t", 62, 30, .run = activemask},
    {"bar", "warp sync", "u32", 60, 30, .run = warp_barrier},
    SETMAXNREG("inc", raise_registers),
    SETMAXNREG("dec", lower_registers),
};

EXPORT_ROWS(emu_rows_warp);
