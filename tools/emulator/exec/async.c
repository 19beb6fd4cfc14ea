/* cp.async and mbarrier (ISA 9.7.9.25.3, 9.7.13.15). The copies in flight are in core/async.c. */
#include "exec.h"

#include "../core/bulk.h"
#include "mbarrier.h"

enum { WHOLE, SIZED, IGNORED, SOURCE }; /* mods.mode, see emu_decode_copy in decode/forms.c */

/* The bytes that come from the source; the rest of the copy is zeros. Returns false after a fault. */
static bool source_bytes(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t bytes[EMU_LANES])
{
    uint32_t too_many = 0;
    ACTIVE_LANES(mask)
    {
        bytes[i] = op->mods.count;
        if (op->mods.mode == SIZED)
            bytes[i] = LANES_OF(const uint32_t, 1)[i];
        else if (op->mods.mode == IGNORED && emu_predicate(w, op->arg[1]) >> i & 1)
            bytes[i] = 0;
        too_many |= (uint32_t)(bytes[i] > op->mods.count) << i;
    }
    if (too_many)
        emu_fault(w, op, too_many, CUDA_ERROR_LAUNCH_FAILED,
                  "copies more bytes from the source than cp-size, which is %u", op->mods.count);
    return !too_many;
}

/* Makes one request for all lanes that read the same number of bytes. */
static void request_sources(emu_warp *w, const emu_op *op, uint32_t mask, const uint32_t bytes[EMU_LANES],
                            const emu_copy copies[EMU_LANES])
{
    uint64_t from[EMU_LANES] = {0};
    uint32_t to[EMU_LANES] = {0};
    ACTIVE_LANES(mask)
    {
        from[i] = copies[i].from;
        to[i] = copies[i].to;
    }
    while (mask) {
        uint32_t same = 0, size = bytes[__builtin_ctz(mask)];
        ACTIVE_LANES(mask) same |= (uint32_t)(bytes[i] == size) << i;
        EMU_TELL(w->audience, request, w, op, same, size, false, from, to);
        mask &= ~same;
    }
}

/* A source must be aligned to cp-size, even if fewer bytes are read. */
static bool are_sources_aligned(emu_warp *w, const emu_op *op, uint32_t mask, const uint32_t bytes[EMU_LANES],
                                const uint64_t start[EMU_LANES], unsigned size)
{
    ACTIVE_LANES(mask)
    {
        if (start[i] % size == 0)
            continue;
        emu_fault(w, op, 1u << i, CUDA_ERROR_MISALIGNED_ADDRESS,
                  "reads %u bytes at 0x%llx, which is not a multiple of %u", bytes[i],
                  (unsigned long long)start[i], size);
        return false;
    }
    return true;
}

/* Reads the source in pieces of 16, 8, 4, 2 and 1 bytes, each for the lanes whose byte count has that bit. */
static bool read_sources(emu_warp *w, const emu_op *op, uint32_t mask, const uint32_t bytes[EMU_LANES],
                         emu_copy copies[EMU_LANES])
{
    uint64_t start[EMU_LANES], at[EMU_LANES];
    uint32_t reading = 0;
    ACTIVE_LANES(mask) reading |= (uint32_t)(bytes[i] != 0) << i;
    if (!reading)
        return true;
    if (!access_announce(w, op, op->arg[0], reading))
        return false;
    access_addresses(w, op, op->arg[0], reading, start);
    if (!are_sources_aligned(w, op, reading, bytes, start, copies[__builtin_ctz(reading)].bytes))
        return false;
    for (uint32_t piece = 16; piece; piece /= 2) {
        uint32_t lanes = 0;
        ACTIVE_LANES(reading) lanes |= (uint32_t)((bytes[i] & piece) != 0) << i;
        if (!lanes)
            continue;
        uint32_t some = (uint32_t)__builtin_ctz(lanes);
        for (uint32_t i = 0; i < EMU_LANES; i++)
            at[i] = lanes >> i & 1 ? start[i] + (bytes[i] & ~(2 * piece - 1))
                                   : start[some] + (bytes[some] & ~(2 * piece - 1));
        if (!access_judge(w, op, lanes, piece, false, at))
            return false;
        ACTIVE_LANES(lanes)
        {
            uint32_t done = bytes[i] & ~(2 * piece - 1);
            memcpy(copies[i].data + done, (const void *)(uintptr_t)at[i], piece);
            copies[i].from = at[i] - done;
            copies[i].read = (uint8_t)bytes[i];
            EMU_TELL(w->audience, copy_read, w, op, &copies[i], at[i], done, piece);
        }
    }
    if (EMU_IS_TOLD(w->audience, request))
        request_sources(w, op, reading, bytes, copies);
    return true;
}

HANDLER(copy)
{
    uint64_t to[EMU_LANES];
    uint32_t bytes[EMU_LANES];
    emu_copy copies[EMU_LANES];
    if (op->mods.mode == SOURCE)
        return;
    ACTIVE_LANES(mask)
    copies[i] = (emu_copy){.thread = thread_of(w, i), .at = op->at, .bytes = op->mods.count};
    if (!source_bytes(w, op, mask, bytes) ||
        !access_resolve(w, op, op->arg[0], mask, op->mods.count, true, to))
        return;
    ACTIVE_LANES(mask) copies[i].to = offset_of(w, to[i]);
    if (read_sources(w, op + 1, mask, bytes, copies))
        ACTIVE_LANES(mask) emu_async_issue(w->block, &copies[i]);
}

HANDLER(commit)
{
    (void)op;
    ACTIVE_LANES(mask) emu_async_commit(w->block, thread_of(w, i));
}

HANDLER(wait_group)
{
    emu_async_wait(w->block, w->id, mask, (uint32_t)op->imm, false);
}

HANDLER(wait_all)
{
    (void)op;
    emu_async_wait(w->block, w->id, mask, 0, true);
}

static void store_mbarrier(emu_warp *w, uint64_t at, emu_mbarrier m)
{
    emu_block *holder = emu_block_holding(w->block, at);
    emu_mbarrier_store(holder, (uint32_t)(at - (uint64_t)(uintptr_t)holder->shared), m);
}

static void advance_mbarrier(emu_warp *w, uint64_t at, emu_mbarrier *m)
{
    emu_block *holder = emu_block_holding(w->block, at);
    emu_mbarrier_advance(holder, (uint32_t)(at - (uint64_t)(uintptr_t)holder->shared), m);
}

#define MOST_ARRIVALS 0xfffffu

HANDLER(mbarrier_init)
{
    uint64_t at[EMU_LANES];
    const uint32_t *count = LANES_OF(const uint32_t, 1);
    if (!mbarriers_of(w, op, 0, mask, false, at))
        return;
    uint32_t valid = 0; /* before any lane has written */
    ACTIVE_LANES(mask)
    {
        uint64_t bits;
        memcpy(&bits, (const void *)(uintptr_t)at[i], sizeof bits);
        valid |= (uint32_t)emu_mbarrier_unpack(bits).is_valid << i;
    }
    if (valid && emu_is_misused(w, op, valid, EMU_INIT_OF_VALID))
        return;
    ACTIVE_LANES(mask)
    {
        if (count[i] == 0 || count[i] > MOST_ARRIVALS) {
            emu_fault(w, op, 1u << i, CUDA_ERROR_LAUNCH_FAILED,
                      "initialises an mbarrier object with the count %u", count[i]);
            return;
        }
        store_mbarrier(w, at[i], (emu_mbarrier){.expected = count[i], .pending = count[i], .is_valid = true});
    }
}

HANDLER(mbarrier_inval)
{
    uint64_t at[EMU_LANES], bits;
    emu_mbarrier m;
    if (!mbarriers_of(w, op, 0, mask, false, at))
        return;
    ACTIVE_LANES(mask)
    {
        if (!load_mbarrier(w, op, i, at[i], &bits, &m))
            return;
        store_mbarrier(w, at[i], (emu_mbarrier){0});
    }
}

static bool add_transactions(emu_warp *w, const emu_op *op, uint32_t lane, emu_mbarrier *m, int64_t count)
{
    if (emu_mbarrier_count(m, count))
        return true;
    emu_fault(
        w, op, 1u << lane, CUDA_ERROR_LAUNCH_FAILED,
        "adds %lld to an mbarrier object's transaction count of %d, which then leaves its range of 20 bits and a sign",
        (long long)count, m->transactions);
    return false;
}

enum { ARRIVE, NO_COMPLETE, EXPECT_TX }; /* mods.mode */

/* Arguments: state, address, count (or transactions with .expect_tx). */
static void arrive(emu_warp *w, const emu_op *op, uint32_t mask, bool drops, bool once)
{
    uint64_t at[EMU_LANES], bits;
    emu_mbarrier m;
    const uint32_t *operand = once ? NULL : LANES_OF(const uint32_t, 2);
    if (!mbarriers_of(w, op, 1, mask, op->arg[0] == EMU_SINK && op->mods.mode != NO_COMPLETE, at))
        return;
    ACTIVE_LANES(mask)
    {
        uint32_t count = once || op->mods.mode == EXPECT_TX ? 1 : operand[i];
        if (!load_mbarrier(w, op, i, at[i], &bits, &m))
            return;
        if (count == 0 || count > m.pending || (op->mods.mode == NO_COMPLETE && count == m.pending)) {
            emu_fault(w, op, 1u << i, CUDA_ERROR_LAUNCH_FAILED,
                      "arrives with the count %u at an mbarrier object that waits for %u more arrivals%s",
                      count, m.pending,
                      count && count == m.pending ? ", and .noComplete must not be the last" : "");
            return;
        }
        if (op->mods.mode == EXPECT_TX && !add_transactions(w, op, i, &m, operand[i]))
            return;
        m.pending -= count;
        m.expected -= drops ? count : 0;
        advance_mbarrier(w, at[i], &m);
        store_mbarrier(w, at[i], m);
        if (op->arg[0] != EMU_SINK)
            LANES_OF(uint64_t, 0)[i] = bits;
    }
}

HANDLER_CALLS(mbarrier_arrive, arrive, false, false)
HANDLER_CALLS(mbarrier_arrive_once, arrive, false, true)
HANDLER_CALLS(mbarrier_drop, arrive, true, false)
HANDLER_CALLS(mbarrier_drop_once, arrive, true, true)

static void change_transactions(emu_warp *w, const emu_op *op, uint32_t mask, bool completes)
{
    uint64_t at[EMU_LANES], bits;
    emu_mbarrier m;
    const uint32_t *count = LANES_OF(const uint32_t, 1);
    if (!mbarriers_of(w, op, 0, mask, true, at))
        return;
    ACTIVE_LANES(mask)
    {
        if (!load_mbarrier(w, op, i, at[i], &bits, &m))
            return;
        if (!add_transactions(w, op, i, &m, completes ? -(int64_t)count[i] : count[i]))
            return;
        if (completes)
            advance_mbarrier(w, at[i], &m);
        store_mbarrier(w, at[i], m);
    }
}

HANDLER_CALLS(mbarrier_expect, change_transactions, false)
HANDLER_CALLS(mbarrier_complete, change_transactions, true)

/* Returns true if the phase that the lane tests for has ended. */
static bool is_over(const emu_warp *w, const emu_op *op, uint32_t lane, bool by_parity, emu_mbarrier m)
{
    return by_parity ? (m.phase & 1) != (LANES_OF(const uint32_t, 2)[lane] & 1)
                     : m.phase != emu_mbarrier_unpack(LANES_OF(const uint64_t, 2)[lane]).phase;
}

/* Arguments: predicate, address, state or parity, time. Never blocks: the program loops. Pending arrivals of cp.async complete
   only if the tested phase needs them, so a test for an earlier phase does not see them. */
static void test(emu_warp *w, const emu_op *op, uint32_t mask, bool by_parity, bool gives_way)
{
    uint64_t at[EMU_LANES], bits;
    emu_mbarrier m;
    uint32_t done = 0;
    if (!mbarriers_of(w, op, 1, mask, false, at))
        return;
    emu_bulk_tick(w->block);
    if (w->state == EMU_WARP_FAULTED)
        return;
    ACTIVE_LANES(mask)
    {
        if (!load_mbarrier(w, op, i, at[i], &bits, &m))
            return;
        if (!is_over(w, op, i, by_parity, m)) {
            emu_async_arrive_at(w->block, offset_of(w, at[i]));
            if (!load_mbarrier(w, op, i, at[i], &bits, &m))
                return;
        }
        if (!by_parity && ((m.phase - emu_mbarrier_unpack(LANES_OF(const uint64_t, 2)[i]).phase) & 3) > 1 &&
            emu_is_misused(w, op, 1u << i, EMU_STALE_PHASE))
            return;
        bool complete = is_over(w, op, i, by_parity, m);
        done |= (uint32_t)complete << i;
        w->tested[i] = complete ? 0 : offset_of(w, at[i]) + 1;
        if (complete)
            EMU_TELL(w->audience, phase_passed, w, op, at[i]);
    }
    emu_set_predicate(w, op->arg[0], mask, done);
    w->polls += done != mask;
    w->tests += done != mask;
    if (gives_way && done != mask)
        emu_yield(w);
}

HANDLER_CALLS(mbarrier_test, test, false, false)
HANDLER_CALLS(mbarrier_test_parity, test, true, false)
HANDLER_CALLS(mbarrier_try, test, false, true)
HANDLER_CALLS(mbarrier_try_parity, test, true, true)

HANDLER(mbarrier_pending)
{
    const uint64_t *state = LANES_OF(const uint64_t, 1);
    SET_LANES(uint32_t, LANES_OF(uint32_t, 0), state[i] >> 20 & MOST_ARRIVALS);
}

/* mods.mode: 1 with .noinc. */
HANDLER(copy_arrive)
{
    uint64_t at[EMU_LANES], bits;
    emu_mbarrier m;
    if (!mbarriers_of(w, op, 0, mask, false, at))
        return;
    ACTIVE_LANES(mask)
    {
        if (!load_mbarrier(w, op, i, at[i], &bits, &m))
            return;
        m.pending += op->mods.mode ? 0 : 1;
        store_mbarrier(w, at[i], m);
        emu_copy c = {.thread = thread_of(w, i), .at = op->at};
        c.to = offset_of(w, at[i]);
        emu_async_issue(w->block, &c);
    }
}

#define COPY            " p:shared|shared::cta global L2::cache_hint? @prefetch?"
#define CTA             " p:shared|shared::cta?"
#define CLUSTER         " p:shared|shared::cta|shared::cluster?"
#define RELEASE         " release|relaxed cta|cluster"
#define ACQUIRE         " acquire|relaxed cta|cluster"
#define ARRIVE(handler) .run = handler, .refuse = emu_refuse_token
#define ARRIVAL(name, handler)                                                                               \
    {"mbarrier", name CTA " b64", "=_b64 []", 70, 80, .run = handler##_once},                                \
        {"mbarrier", name CTA " b64", "=_b64 [] arrivals", 78, 90, .run = handler},                          \
        {"mbarrier", name RELEASE CLUSTER " b64", "=_b64 []", 80, 80, ARRIVE(handler##_once)},               \
        {"mbarrier", name RELEASE CLUSTER " b64", "=_b64 [] arrivals", 80, 90, ARRIVE(handler)},             \
        {"mbarrier", name CLUSTER " b64", "=_b64 []", 80, 90, ARRIVE(handler##_once)},                       \
        {"mbarrier", name CLUSTER " b64", "=_b64 [] arrivals", 80, 90, ARRIVE(handler)},                     \
        {"mbarrier", name " m:-|noComplete" CTA " b64", "=_b64 [] arrivals", 70, 80, .run = handler},        \
        {"mbarrier",    name " m:-|noComplete release cta" CTA " b64", "=_b64 [] arrivals", 80, 80,          \
         .run = handler},                                                                                    \
        {"mbarrier", name " m:-|-|expect_tx" CLUSTER " b64", "=_b64 [] u32", 80, 90, ARRIVE(handler)},       \
    {                                                                                                        \
        "mbarrier", name " m:-|-|expect_tx" RELEASE CLUSTER " b64", "=_b64 [] u32", 80, 90, ARRIVE(handler)  \
    }
#define WAIT(name, version, target, operands, handler)                                                       \
    {"mbarrier", name CTA " b64", operands, version, target, .run = handler},                                \
    {                                                                                                        \
        "mbarrier", name ACQUIRE CTA " b64", operands, 80, target, .run = handler                            \
    }

static const emu_row rows[] = {
    {"cp", "async ca|cg" COPY, "", 70, 80, .run = copy, .form = EMU_FORM_COPY},
    {"cp", "async commit_group", "", 70, 80, .run = commit},
    {"cp", "async wait_group", "#", 70, 80, .run = wait_group},
    {"cp", "async wait_all", "", 70, 80, .run = wait_all},
    {"cp", "async mbarrier arrive m:-|noinc?" CTA " b64", "[]", 70, 80, .run = copy_arrive},
    {"mbarrier", "init" CTA " b64", "[] u32", 70, 80, .run = mbarrier_init},
    {"mbarrier", "inval" CTA " b64", "[]", 70, 80, .run = mbarrier_inval},
    {"mbarrier", "expect_tx" CLUSTER " b64", "[] u32", 80, 90, .run = mbarrier_expect},
    {"mbarrier", "expect_tx relaxed cta|cluster" CLUSTER " b64", "[] u32", 80, 90, .run = mbarrier_expect},
    {"mbarrier", "complete_tx" CLUSTER " b64", "[] u32", 80, 90, .run = mbarrier_complete},
    {"mbarrier", "complete_tx relaxed cta|cluster" CLUSTER " b64", "[] u32", 80, 90,
     .run = mbarrier_complete},
    {"mbarrier", "pending_count b64", "=u32 b64", 70, 80, .run = mbarrier_pending},
    ARRIVAL("arrive", mbarrier_arrive),
    ARRIVAL("arrive_drop", mbarrier_drop),
    WAIT("test_wait", 70, 80, "=p [] b64", mbarrier_test),
    WAIT("test_wait parity", 71, 80, "=p [] parity", mbarrier_test_parity),
    WAIT("try_wait", 78, 90, "=p [] b64 u32?", mbarrier_try),
    WAIT("try_wait parity", 78, 90, "=p [] parity u32?", mbarrier_try_parity),
};

EXPORT_ROWS(emu_rows_async);
