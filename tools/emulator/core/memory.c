/* See memory.h. */
#include "memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A gap between allocations, so that a small overrun does not hit a neighbour. */
#define GUARD_BYTES ((uint64_t)1 << 20)

static struct {
    pthread_mutex_t lock;
    uint64_t start, end, next;
    emu_allocation **all; /* in order of address, which is also order of allocation */
    size_t count, room;
    size_t first_live; /* all allocations before it are freed */
    uint64_t used[16];
    const emu_memory_observer *observers[3];
    size_t observer_count;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Reserves address space only. It asks for a fixed place, so that addresses are the same in every run. */
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

static void add_to_table(emu_allocation *a)
{
    memory.all = emu_with_room(memory.all, memory.count, &memory.room, sizeof(emu_allocation *));
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

emu_allocation *emu_memory_alloc(uint64_t bytes, emu_allocation_kind kind, unsigned device, void *context)
{
    if (bytes == 0 || bytes > (uint64_t)1 << 42)
        return NULL;
    emu_allocation *a = emu_alloc(sizeof *a);
    *a = (emu_allocation){.bytes = bytes, .kind = kind, .device = device, .context = context};
    pthread_mutex_lock(&memory.lock);
    bool ok = (memory.start || reserve()) && map(a);
    if (ok) {
        add_to_table(a);
        a->serial = memory.count;
        memory.used[device % 16] += bytes;
        for (size_t i = 0; i < memory.observer_count; i++)
            if (memory.observers[i]->allocated)
                memory.observers[i]->allocated(a);
    }
    pthread_mutex_unlock(&memory.lock);
    if (!ok) {
        free(a);
        return NULL;
    }
    return a;
}

void emu_memory_observe(const emu_memory_observer *o)
{
    assert(memory.observer_count < sizeof memory.observers / sizeof *memory.observers);
    memory.observers[memory.observer_count++] = o;
}

void emu_memory_copied(uint64_t to, uint64_t from, uint64_t bytes)
{
    for (size_t i = 0; i < memory.observer_count; i++)
        if (memory.observers[i]->copied)
            memory.observers[i]->copied(to, from, bytes);
}

static void release(emu_allocation *a)
{
    if (a->is_freed)
        return;
    a->is_freed = true;
    memory.used[a->device % 16] -= a->bytes;
    for (size_t i = 0; i < memory.observer_count; i++)
        memory.observers[i]->freed(a);
    /* a fresh mapping releases the pages, and a stray access by the host then faults */
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
