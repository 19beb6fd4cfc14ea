/* See memory.h. */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Between allocations, so that a small overrun is no access to a neighbour. */
#define GUARD_BYTES ((uint64_t)1 << 20)

/* More than any lane accesses at once. */
#define MANY_BYTES 256

static struct {
    pthread_mutex_t lock;
    uint64_t start, end, next;
    emu_allocation **all; /* by address, which is by age */
    size_t count, room;
    size_t first_live; /* all before it are freed */
    uint64_t used[16];
    bool keeps_shadows;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Address space only. The wish for a fixed place keeps addresses the same from run to run. */
static bool reserve(void)
{
    for (unsigned bits = 43; bits >= 36 && !memory.start; bits--) {
        size_t bytes = (size_t)1 << bits;
        void *wish = (void *)(uintptr_t)0x200000000000;
        void *p = mmap(wish, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            continue;
        memory.start = memory.next = (uint64_t)(uintptr_t)p;
        memory.end = memory.start + bytes;
    }
    return memory.start != 0;
}

static void remember(emu_allocation *a)
{
    if (memory.count == memory.room) {
        memory.room = memory.room ? 2 * memory.room : 256;
        emu_allocation **grown = emu_alloc(memory.room * sizeof *grown);
        if (memory.count)
            memcpy(grown, memory.all, memory.count * sizeof *grown);
        free(memory.all);
        memory.all = grown;
    }
    memory.all[memory.count++] = a;
}

static bool map(emu_allocation *a)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    a->mapped_bytes = emu_align_up(a->bytes, page);
    uint64_t next = emu_align_up(memory.next + a->mapped_bytes + GUARD_BYTES, page);
    if (next > memory.end || next < memory.next)
        return false;
    a->base = memory.next;
    if (mprotect((void *)(uintptr_t)a->base, a->mapped_bytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    memory.next = next;
    return true;
}

/* Address space for a shadow, which costs memory only where it is touched. */
static void *map_shadow(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Race shadows of freed allocations serve new ones: touching fresh pages is dear, and what lies in them belongs to
   launches that are over, which the check sees from their numbers. */
enum { KEPT_SHADOWS = 8, MOST_KEPT_BYTES = 1 << 25 };

static struct kept {
    uint64_t bytes; /* of the allocation that it was made for; 0: none */
    void *race;
    uint64_t race_bytes;
} kept[KEPT_SHADOWS];

/* The smallest has to go. */
static void keep_race(emu_allocation *a)
{
    struct kept new = {a->bytes, a->race, a->race_bytes}, *least = &kept[0];
    for (size_t i = 1; i < KEPT_SHADOWS; i++)
        least = kept[i].bytes < least->bytes ? &kept[i] : least;
    if (new.bytes > least->bytes &&new.race_bytes <= MOST_KEPT_BYTES) {
        struct kept old = *least;
        *least = new;
        new = old;
    }
    if (new.bytes)
        munmap(new.race, new.race_bytes);
}

/* The smallest that is large enough. */
static void reuse_race(emu_allocation *a)
{
    struct kept *best = NULL;
    for (size_t i = 0; i < KEPT_SHADOWS; i++)
        if (kept[i].bytes >= a->bytes && (!best || kept[i].bytes < best->bytes))
            best = &kept[i];
    if (!best)
        return;
    a->race = best->race;
    a->race_bytes = best->race_bytes;
    *best = (struct kept){0};
}

emu_allocation *emu_memory_alloc(uint64_t bytes, emu_allocation_kind kind, unsigned device, void *context)
{
    if (bytes == 0 || bytes > (uint64_t)1 << 42)
        return NULL;
    emu_allocation *a = emu_alloc(sizeof *a);
    *a = (emu_allocation){.bytes = bytes, .kind = kind, .device = device, .context = context};
    pthread_mutex_lock(&memory.lock);
    bool ok = (memory.start || reserve()) && map(a);
    if (ok) {
        remember(a);
        reuse_race(a);
        a->serial = memory.count;
        memory.used[device % 16] += bytes;
    }
    pthread_mutex_unlock(&memory.lock);
    if (ok && memory.keeps_shadows && kind == EMU_ALLOCATION_DEVICE)
        a->shadow = map_shadow(bytes / 8 + 1);
    if (!ok) {
        free(a);
        return NULL;
    }
    return a;
}

void emu_memory_keep_shadows(void)
{
    memory.keeps_shadows = true;
}

static void mark_byte(uint8_t *at, uint8_t bits, bool is_written)
{
    uint8_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (is_written && (old & bits) != bits)
        __atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
    else if (!is_written && (old & bits))
        __atomic_fetch_and(at, (uint8_t)~bits, __ATOMIC_RELAXED);
}

void emu_memory_mark(emu_allocation *a, uint64_t offset, uint64_t bytes, bool is_written)
{
    uint64_t end = offset + bytes;
    while (offset < end && (offset % 8 || end - offset < 8)) {
        uint64_t most = 8 - offset % 8, n = end - offset < most ? end - offset : most;
        mark_byte(&a->shadow[offset / 8], (uint8_t)(((1u << n) - 1) << offset % 8), is_written);
        offset += n;
    }
    if (end - offset >= MANY_BYTES) { /* of a copy or fill: nobody else marks these */
        memset(&a->shadow[offset / 8], is_written ? 0xff : 0, (end - offset) / 8);
        offset += (end - offset) & ~(uint64_t)7;
    }
    for (; end - offset >= 8; offset += 8)
        mark_byte(&a->shadow[offset / 8], 0xff, is_written);
    if (offset < end)
        mark_byte(&a->shadow[offset / 8], (uint8_t)((1u << (end - offset)) - 1), is_written);
}

void emu_memory_copied(uint64_t to, uint64_t from, uint64_t bytes)
{
    emu_allocation *a = emu_memory_holding(to, bytes), *b = from ? emu_memory_holding(from, bytes) : NULL;
    if (!a || !a->shadow)
        return;
    if (!b || !b->shadow) {
        emu_memory_mark(a, to - a->base, bytes, true);
        return;
    }
    for (uint64_t k = 0; k < bytes; k++)
        emu_memory_mark(a, to - a->base + k, 1, emu_memory_is_written(b, from - b->base + k));
}

static void release(emu_allocation *a)
{
    if (a->is_freed)
        return;
    a->is_freed = true;
    memory.used[a->device % 16] -= a->bytes;
    if (a->shadow)
        munmap(a->shadow, a->bytes / 8 + 1);
    if (a->race)
        keep_race(a);
    a->shadow = NULL;
    a->race = NULL;
    /* a fresh mapping gives the pages back and makes a stray host access fault */
    mmap((void *)(uintptr_t)a->base, a->mapped_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void emu_memory_free(emu_allocation *a)
{
    pthread_mutex_lock(&memory.lock);
    release(a);
    pthread_mutex_unlock(&memory.lock);
}

void emu_memory_free_context(void *context)
{
    pthread_mutex_lock(&memory.lock);
    for (size_t i = memory.first_live; i < memory.count; i++)
        if (memory.all[i]->context == context)
            release(memory.all[i]);
    while (memory.first_live < memory.count && memory.all[memory.first_live]->is_freed)
        memory.first_live++;
    pthread_mutex_unlock(&memory.lock);
}

static emu_allocation *find_locked(uint64_t address)
{
    size_t low = 0, high = memory.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory.all[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? memory.all[low - 1] : NULL;
}

emu_allocation *emu_memory_find(uint64_t address)
{
    pthread_mutex_lock(&memory.lock);
    emu_allocation *a = find_locked(address);
    pthread_mutex_unlock(&memory.lock);
    return a;
}

emu_allocation *emu_memory_holding(uint64_t address, uint64_t bytes)
{
    emu_allocation *a = emu_memory_find(address);
    bool inside =
        a && !a->is_freed && address - a->base <= a->bytes && bytes <= a->bytes - (address - a->base);
    return inside ? a : NULL;
}

bool emu_memory_contains(uint64_t address)
{
    return address >= memory.start && address < memory.end;
}

uint64_t emu_memory_used(unsigned device)
{
    pthread_mutex_lock(&memory.lock);
    uint64_t used = memory.used[device % 16];
    pthread_mutex_unlock(&memory.lock);
    return used;
}
