/* ld.global.nc and ldu in the race check. They read "via non-coherent cache" and "read-only data" (ISA 9.7.9.9,
   9.7.9.10): a cache line, with bytes next to those that were asked for, may stay there while the kernel runs. So no
   thread of the launch, not even the reader, may write such bytes before or after the load; no barrier, fence or strong
   access orders the two. cp.async and all other loads are coherent. The check keeps one reader and one writer per word
   for the whole launch, and only for programs with such loads. If several threads read or write a word, it names the last
   one. */
#include "check.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct party {
    uint64_t block;
    uint32_t at;
    uint16_t thread;
    uint8_t bytes; /* one bit per byte of the word */
} party;

typedef struct word_use {
    party reader, writer;
} word_use;

typedef struct used_allocation {
    struct used_allocation *next;
    const emu_allocation *allocation;
    word_use *words;
    size_t bytes;
} used_allocation;

typedef struct emu_read_only {
    used_allocation *used;
} emu_read_only;

static void launch_begin(emu_launch *l)
{
    l->read_only = emu_alloc(sizeof *l->read_only);
}

static void launch_end(emu_launch *l)
{
    for (used_allocation *u = l->read_only->used, *next; u; u = next) {
        next = u->next;
        if (u->words)
            munmap(u->words, u->bytes);
        free(u);
    }
    free(l->read_only);
    l->read_only = NULL;
}

static word_use *words_of(emu_launch *l, const emu_allocation *a)
{
    for (used_allocation *u = l->read_only->used; u; u = u->next)
        if (u->allocation == a)
            return u->words;
    used_allocation *u = emu_alloc(sizeof *u);
    *u = (used_allocation){l->read_only->used, a, NULL, (a->mapped_bytes / 4 + 8) * sizeof(word_use)};
    void *p =
        mmap(NULL, u->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    u->words = p == MAP_FAILED ? NULL : p;
    l->read_only->used = u;
    return u->words;
}

/* Lanes of one access that conflict with the same instruction. */
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
    emu_describe_place(w, m->address, place, sizeof place);
    emu_describe_thread(w, m->other.block, m->other.thread, thread, sizeof thread);
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

static void access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                   const uint64_t at[EMU_LANES])
{
    emu_block *b = w->block;
    emu_space space = (emu_space)op->mods.space;
    meeting m = {0};
    if (space == EMU_CONST || space == EMU_PARAM || space == EMU_LOCAL || space == EMU_SHARED ||
        space == EMU_SHARED_CLUSTER)
        return;
    if (!writes && !emu_plan_of(w, op)->reads_only)
        return;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        const emu_allocation *a = mask >> i & 1 ? emu_allocation_at(b, op, at[i]) : NULL;
        word_use *words = a && a->kind != EMU_ALLOCATION_CONST ? words_of(b->launch, a) : NULL;
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

const emu_observer emu_read_only_check = {
    .launch_begin = launch_begin,
    .launch_end = launch_end,
    .access = access,
};
