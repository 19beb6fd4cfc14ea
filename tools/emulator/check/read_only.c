/* ld.global.nc and ldu in the race check. They read "via non-coherent cache" and "read-only data" (ISA 9.7.9.9, 9.7.9.10):
   what a line of that cache holds stays there while the kernel runs, neighbours of what was asked for included. So no thread
   of the launch, not even the one that reads, may write such bytes, before or after; no barrier, fence or strong access
   orders the two. Copies of cp.async and all other loads are coherent. Kept by word for the whole launch, whatever the
   order of its blocks, and only where the program has such loads; of several threads that read, or write, one word the last
   one is named. */
#include "race.h"

#include <stdio.h>
#include <sys/mman.h>

typedef struct party {
    uint64_t block;
    uint32_t at;
    uint16_t thread;
    uint8_t bytes; /* of the word: bits */
} party;

typedef struct word_use {
    party reader, writer;
} word_use;

struct emu_read_only {
    struct emu_read_only *next;
    const emu_allocation *allocation;
    word_use *words;
    size_t bytes;
};

static word_use *words_of(emu_launch *l, const emu_allocation *a)
{
    struct emu_race_grid *g = l->race_grid;
    for (struct emu_read_only *r = g->read_only; r; r = r->next)
        if (r->allocation == a)
            return r->words;
    struct emu_read_only *r = emu_arena_alloc(&g->arena, sizeof *r);
    *r = (struct emu_read_only){g->read_only, a, NULL, (a->bytes / 4 + 8) * sizeof(word_use)};
    void *p =
        mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    r->words = p == MAP_FAILED ? NULL : p;
    return (g->read_only = r)->words;
}

void emu_read_only_free(struct emu_race_grid *g)
{
    for (struct emu_read_only *r = g->read_only; r; r = r->next)
        if (r->words)
            munmap(r->words, r->bytes);
}

/* Lanes of one access that meet one instruction. */
typedef struct meeting {
    uint32_t lanes;
    uint64_t address; /* of the first lane */
    party other;
} meeting;

static void report(emu_warp *w, const emu_op *op, unsigned bytes, bool writes, meeting *m)
{
    char place[160], thread[96], source[EMU_SOURCE_BYTES];
    const emu_program *p = w->block->launch->program;
    if (!m->lanes)
        return;
    emu_watch_place(w, m->address, place, sizeof place);
    emu_watch_thread(w, m->other.block, m->other.thread, thread, sizeof thread);
    emu_source_of(p, m->other.at, source);
    unsigned line = p->instructions[m->other.at]->line;
    if (writes)
        emu_note(w, op, m->lanes, m->other.at,
                 "writes %u bytes at %s, which %s reads in line %u%s as read-only data", bytes, place, thread,
                 line, source);
    else
        emu_note(w, op, m->lanes, m->other.at,
                 "reads %u bytes at %s as read-only data, which %s writes in line %u%s of the same launch",
                 bytes, place, thread, line, source);
    m->lanes = 0;
}

static uint8_t bytes_of_word(uint64_t word, uint64_t from, uint64_t to)
{
    uint64_t first = word < from ? from - word : 0, end = word + 4 > to ? to - word : 4;
    return (uint8_t)((1u << end) - (1u << first));
}

void emu_read_only_access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                          const uint64_t at[EMU_LANES])
{
    emu_block *b = w->block;
    meeting m = {0};
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        const emu_allocation *a = mask >> i & 1 ? emu_race_allocation(b, op, at[i]) : NULL;
        word_use *words = a ? words_of(b->launch, a) : NULL;
        uint64_t from = words ? at[i] - a->base : 0, to = words ? from + bytes : 0;
        for (uint64_t word = from & ~UINT64_C(3); word < to; word += 4) {
            word_use *u = &words[word / 4];
            party *mine = writes ? &u->writer : &u->reader, *other = writes ? &u->reader : &u->writer;
            uint8_t touched = bytes_of_word(word, from, to);
            *mine = (party){b->index, op->at, (uint16_t)(w->id * EMU_LANES + i), mine->bytes | touched};
            if (!(other->bytes & touched))
                continue;
            if (m.lanes && m.other.at != other->at)
                report(w, op, bytes, writes, &m);
            if (!m.lanes) {
                m.other = *other;
                m.address = at[i];
            }
            m.lanes |= 1u << i;
        }
    }
    report(w, op, bytes, writes, &m);
}
