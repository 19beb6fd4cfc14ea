/* Device memory: allocations in one reserved address range, so that any address can be checked. Addresses are host
   addresses. Freed allocations are remembered, and their addresses are not reused. Thread safe. */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include "../support/emu.h"

typedef enum emu_allocation_kind {
    EMU_ALLOCATION_DEVICE,
    EMU_ALLOCATION_HOST, /* page-locked, visible to the device */
    EMU_ALLOCATION_MANAGED,
    EMU_ALLOCATION_MODULE, /* .global variables */
    EMU_ALLOCATION_CONST,  /* a module's .const bank */
} emu_allocation_kind;

typedef struct emu_allocation {
    uint64_t base, bytes;
    uint64_t mapped_bytes; /* whole pages */
    emu_allocation_kind kind;
    bool is_freed;
    unsigned device;
    void *context;
    uint64_t serial;  /* from 1, in order of allocation */
    const char *name; /* name of a module's variable; may be NULL */
    uint8_t
        *written; /* this and the rest belong to observers: one bit per byte, 1 if written; NULL: all are */
    struct emu_race_cell *race_cells;
    uint64_t race_bytes;
    uint32_t *writers; /* by byte: the serial of the last launch that wrote it; NULL: no launch did */
} emu_allocation;

/* Memory events outside of launches, for the checks. A NULL is not called. `allocated` and `freed` are called with the lock
   of all memory held. */
typedef struct emu_memory_observer {
    void (*allocated)(emu_allocation *allocation);
    void (*freed)(emu_allocation *allocation);
    void (*copied)(uint64_t to, uint64_t from, uint64_t bytes); /* see emu_memory_copied */
} emu_memory_observer;

/* Observes all allocations from now on. */
void emu_memory_observe(const emu_memory_observer *observer);
/* Tells the observers of a copy or fill of device memory by the host. from: the source, or 0. */
void emu_memory_copied(uint64_t to, uint64_t from, uint64_t bytes);

/* Returns zero-filled memory, at least 512-byte aligned, followed by a guard gap. NULL: out of memory. */
emu_allocation *emu_memory_alloc(uint64_t bytes, emu_allocation_kind kind, unsigned device, void *context);
void emu_memory_free(emu_allocation *allocation);
/* Frees all allocations of the context. */
void emu_memory_free_context(void *context);

/* Returns the allocation that holds the address, or the nearest one below it, freed or not; NULL: none. */
emu_allocation *emu_memory_find(uint64_t address);
/* Returns the live allocation that holds all of [address, address + bytes), or NULL. */
emu_allocation *emu_memory_holding(uint64_t address, uint64_t bytes);
/* True if the address is in the range that allocations come from. */
bool emu_memory_contains(uint64_t address);
uint64_t emu_memory_used(unsigned device);

#endif
