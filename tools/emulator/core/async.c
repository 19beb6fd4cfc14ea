/* Asynchronous copies that have not arrived, and mbarrier objects: see async.h. */
#include "async.h"

#include <stdlib.h>
#include <string.h>

typedef struct emu_async {
    emu_copy *copies; /* in order of issue */
    size_t count, room;
    uint32_t *groups; /* by thread: groups that are committed */
    uint32_t threads;
} emu_async;

static emu_async *async_of(emu_block *b)
{
    if (!b->async) {
        b->async = emu_alloc(sizeof *b->async);
        b->async->threads = b->warp_count * EMU_LANES;
        b->async->groups = emu_alloc(b->async->threads * sizeof *b->async->groups);
    }
    return b->async;
}

void emu_async_free(emu_block *b)
{
    if (!b->async)
        return;
    free(b->async->copies);
    free(b->async->groups);
    free(b->async);
    b->async = NULL;
}

void emu_async_issue(emu_block *b, const emu_copy *copy)
{
    emu_async *a = async_of(b);
    a->copies = emu_with_room(a->copies, a->count, &a->room, sizeof *a->copies);
    a->copies[a->count] = *copy;
    a->copies[a->count++].group = a->groups[copy->thread];
}

void emu_async_commit(emu_block *b, uint32_t thread)
{
    async_of(b)->groups[thread]++;
}

/* Writes the copy's bytes, or arrives at the mbarrier. No other function writes the data of a copy. */
static void complete(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    b->stores++;
    EMU_TELL(&b->launch->audience, copied, b, c, by_mbarrier);
    if (c->bytes) {
        memcpy(b->shared + c->to, c->data, c->bytes);
        return;
    }
    uint64_t bits;
    memcpy(&bits, b->shared + c->to, sizeof bits);
    emu_mbarrier m = emu_mbarrier_unpack(bits);
    if (m.pending)
        m.pending--;
    emu_mbarrier_advance(b, c->to, &m);
    emu_mbarrier_store(b, c->to, m);
}

/* True while earlier copies of the arrival's thread are incomplete. */
static bool is_held(const emu_async *a, size_t kept, const emu_copy *c)
{
    for (size_t n = 0; n < kept; n++)
        if (a->copies[n].thread == c->thread)
            return true;
    return false;
}

/* True if an arrival of the thread follows copy n: the copy then also belongs to that mbarrier's phase. */
static bool is_tracked(const emu_async *a, size_t n, uint32_t thread)
{
    for (size_t k = n + 1; k < a->count; k++)
        if (a->copies[k].thread == thread && !a->copies[k].bytes)
            return true;
    return false;
}

void emu_async_wait(emu_block *b, uint32_t warp, uint32_t lanes, uint32_t pending, bool all)
{
    emu_async *a = b->async;
    size_t kept = 0;
    bool has_arrivals = false;
    if (!a)
        return;
    for (size_t n = 0; n < a->count; n++)
        has_arrivals |= !a->copies[n].bytes;
    for (size_t n = 0; n < a->count; n++) {
        const emu_copy *c = &a->copies[n];
        bool waits = c->thread / EMU_LANES == warp && lanes >> c->thread % EMU_LANES & 1;
        uint32_t groups = a->groups[c->thread], done = groups > pending ? groups - pending : 0;
        bool leaves = waits && (c->bytes ? all || c->group < done : !is_held(a, kept, c));
        if (leaves)
            complete(b, c, has_arrivals && is_tracked(a, n, c->thread));
        else if (kept++ != n)
            a->copies[kept - 1] = *c;
    }
    a->count = kept;
    EMU_TELL(&b->launch->audience, copies_awaited, b, warp, lanes);
}

void emu_async_arrive_at(emu_block *b, uint32_t mbarrier)
{
    emu_async *a = b->async;
    if (!a)
        return;
    for (size_t last = a->count; last-- > 0;) {
        emu_copy arrival = a->copies[last];
        size_t kept = 0;
        if (arrival.bytes || arrival.to != mbarrier)
            continue;
        for (size_t n = 0; n < a->count; n++) {
            emu_copy c = a->copies[n];
            if (n <= last && c.thread == arrival.thread)
                complete(b, &c, true);
            else
                a->copies[kept++] = c;
        }
        a->count = kept;
        last = kept;
    }
}

emu_mbarrier emu_mbarrier_unpack(uint64_t bits)
{
    emu_mbarrier m = {.expected = bits & 0xfffff, .pending = bits >> 20 & 0xfffff};
    m.transactions = (int32_t)(bits >> 40 & 0x1fffff);
    m.transactions -= m.transactions >= 0x100000 ? 0x200000 : 0;
    m.phase = bits >> 61 & 3;
    m.is_valid = bits >> 63;
    return m;
}

bool emu_mbarrier_count(emu_mbarrier *m, int64_t transactions)
{
    const int64_t most = 0xfffff, sum = m->transactions + transactions;
    if (sum > most || sum < -most)
        return false;
    m->transactions = (int32_t)sum;
    return true;
}

void emu_mbarrier_advance(emu_block *b, uint32_t mbarrier, emu_mbarrier *m)
{
    if (m->pending || m->transactions)
        return;
    m->phase = (m->phase + 1) & 3;
    m->pending = m->expected;
    EMU_TELL(&b->launch->audience, phase_ended, b, mbarrier);
}

void emu_mbarrier_store(emu_block *b, uint32_t mbarrier, emu_mbarrier m)
{
    uint64_t bits = (uint64_t)m.is_valid << 63 | (uint64_t)(m.phase & 3) << 61 |
                    (uint64_t)((uint32_t)m.transactions & 0x1fffff) << 40 |
                    (uint64_t)(m.pending & 0xfffff) << 20 | (m.expected & 0xfffff);
    memcpy(b->shared + mbarrier, &bits, sizeof bits);
    b->stores++;
}
