/* See bulk.h. */
#include "bulk.h"

#include "async.h"

#include <stdlib.h>
#include <string.h>

/* The longest delay of a copy, in ticks. */
#define MOST_DELAY 12u

typedef struct emu_bulks {
    emu_bulk *all; /* in order of issue */
    size_t count, room;
    uint32_t *groups; /* committed, by thread */
    size_t in_flight; /* copies that have not landed */
    uint32_t issued;
    uint64_t now;
} emu_bulks;

static emu_bulks *bulks_of(emu_block *b)
{
    if (!b->bulks) {
        b->bulks = emu_alloc(sizeof *b->bulks);
        b->bulks->groups = emu_alloc(b->warp_count * EMU_LANES * sizeof *b->bulks->groups);
    }
    return b->bulks;
}

static void free_bulk(emu_bulk *bulk)
{
    free(bulk->pieces);
    free(bulk->data);
}

void emu_bulk_free(emu_block *b)
{
    emu_bulks *s = b->bulks;
    if (!s)
        return;
    for (size_t n = 0; n < s->count; n++)
        free_bulk(&s->all[n]);
    free(s->all);
    free(s->groups);
    free(s);
    b->bulks = NULL;
}

/* Pseudorandom, so that copies issued together land in any order, and the same in every run. */
static uint32_t delay_of(const emu_block *b, uint32_t number)
{
    uint64_t x = (b->index << 32 | number) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return 1 + (uint32_t)(x >> 33) % MOST_DELAY;
}

void emu_bulk_issue(emu_bulk *bulk)
{
    emu_block *b = bulk->holder;
    emu_bulks *s = bulks_of(b);
    s->all = emu_with_room(s->all, s->count, &s->room, sizeof *s->all);
    bulk->group = s->groups[bulk->thread];
    bulk->number = ++s->issued;
    bulk->due = s->now + delay_of(b, bulk->number);
    s->all[s->count++] = *bulk;
    s->in_flight++;
}

void emu_bulk_commit(emu_block *b, uint32_t thread)
{
    bulks_of(b)->groups[thread]++;
}

bool emu_bulk_is_any(const emu_block *b)
{
    return b->bulks && b->bulks->in_flight;
}

/* ---- landing ------------------------------------------------------------------------------------------------------- */

static void read_source(emu_block *b, emu_bulk *bulk)
{
    size_t bytes = 0;
    if (bulk->is_read)
        return;
    for (uint32_t n = 0; n < bulk->piece_count; n++)
        bytes += bulk->pieces[n].bytes;
    char *to = bulk->data = emu_alloc(bytes + 1);
    for (uint32_t n = 0; n < bulk->piece_count; n++) {
        memcpy(to, b->shared + bulk->pieces[n].shared, bulk->pieces[n].bytes);
        to += bulk->pieces[n].bytes;
    }
    bulk->is_read = true;
}

static void write_stored(const emu_bulk *bulk)
{
    const char *from = bulk->data;
    for (uint32_t n = 0; n < bulk->piece_count; n++) {
        bulk->write(bulk, (char *)(uintptr_t)bulk->pieces[n].global, from, bulk->pieces[n].bytes);
        from += bulk->pieces[n].bytes;
    }
}

static void write_loaded(emu_block *b, const emu_bulk *bulk)
{
    for (uint32_t n = 0; n < bulk->piece_count; n++) {
        const emu_bulk_piece *p = &bulk->pieces[n];
        if (p->global)
            bulk->write(bulk, b->shared + p->shared, (const char *)(uintptr_t)p->global, p->bytes);
        else if (bulk->data)
            bulk->write(bulk, b->shared + p->shared, bulk->data, p->bytes);
        else
            memset(b->shared + p->shared, bulk->fill, p->bytes);
    }
}

static void complete_transactions(emu_block *b, const emu_bulk *bulk)
{
    uint64_t bits;
    emu_warp *w = &bulk->from->warps[bulk->thread / EMU_LANES];
    uint32_t lane = 1u << bulk->thread % EMU_LANES;
    memcpy(&bits, b->shared + bulk->mbarrier, sizeof bits);
    emu_mbarrier m = emu_mbarrier_unpack(bits);
    if (!m.is_valid)
        emu_fault(w, bulk->op, lane, CUDA_ERROR_LAUNCH_FAILED,
                  "completes at an mbarrier object that was invalidated while the copy was in flight");
    else if (!emu_mbarrier_count(&m, -(int64_t)bulk->bytes))
        emu_fault(
            w, bulk->op, lane, CUDA_ERROR_LAUNCH_FAILED,
            "completes %u bytes at an mbarrier object, whose transaction count then leaves its range of 20 bits and a sign",
            bulk->bytes);
    if (w->state == EMU_WARP_FAULTED)
        return;
    emu_mbarrier_advance(b, bulk->mbarrier, &m);
    emu_mbarrier_store(b, bulk->mbarrier, m);
}

static void land(emu_block *b, emu_bulk *bulk)
{
    if (bulk->is_landed)
        return;
    b->bulks->in_flight--;
    b->stores++;
    bulk->is_landed = true;
    if (bulk->kind == EMU_BULK_LOAD) {
        write_loaded(b, bulk);
        EMU_TELL(&b->launch->audience, bulk_done, b, bulk);
        complete_transactions(b, bulk);
        return;
    }
    read_source(b, bulk);
    write_stored(bulk);
}

/* A landed store or reduction is kept until its thread waits for it: only then is its write known to be complete. */
void emu_bulk_tick(emu_block *b)
{
    emu_bulks *s = b->bulks;
    size_t kept = 0;
    if (!s)
        return;
    s->now++;
    for (size_t n = 0; n < s->count; n++) {
        emu_bulk *bulk = &s->all[n];
        if (bulk->due <= s->now)
            land(b, bulk);
        if (bulk->is_landed && bulk->kind == EMU_BULK_LOAD)
            free_bulk(bulk);
        else
            s->all[kept++] = *bulk;
    }
    s->count = kept;
}

void emu_bulk_wait(emu_block *b, uint32_t warp, uint32_t lanes, uint32_t pending, bool reads)
{
    emu_bulks *s = b->bulks;
    size_t kept = 0;
    if (!s)
        return;
    for (size_t n = 0; n < s->count; n++) {
        emu_bulk *bulk = &s->all[n];
        uint32_t groups = s->groups[bulk->thread], done = groups > pending ? groups - pending : 0;
        bool is_waited = bulk->kind != EMU_BULK_LOAD && bulk->thread / EMU_LANES == warp &&
                         lanes >> bulk->thread % EMU_LANES & 1 && bulk->group < done;
        if (is_waited && !bulk->is_known_read) {
            read_source(b, bulk);
            bulk->is_known_read = true;
            EMU_TELL(&b->launch->audience, bulk_read, b, bulk);
        }
        if (is_waited && !reads) {
            land(b, bulk);
            EMU_TELL(&b->launch->audience, bulk_done, b, bulk);
            free_bulk(bulk);
        } else {
            s->all[kept++] = *bulk;
        }
    }
    s->count = kept;
}

const emu_bulk *emu_bulk_unread(const emu_block *b, uint32_t thread)
{
    for (size_t n = 0; b->bulks && n < b->bulks->count; n++)
        if (b->bulks->all[n].thread == thread && b->bulks->all[n].kind != EMU_BULK_LOAD &&
            !b->bulks->all[n].is_known_read)
            return &b->bulks->all[n];
    return NULL;
}

void emu_bulk_end(emu_block *b)
{
    emu_bulks *s = b->bulks;
    for (size_t n = 0; s && n < s->count; n++)
        if (s->all[n].kind != EMU_BULK_LOAD)
            land(b, &s->all[n]);
    emu_bulk_free(b);
}
