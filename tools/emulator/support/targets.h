/* PTX targets and the devices that run them; the table of devices that the emulator can imitate. */
#ifndef EMU_TARGETS_H
#define EMU_TARGETS_H

#include "emu.h"

/* True if target sm_<number><kind> is in a list such as "90a 100f 120f", or belongs to a family (f) in it. */
bool emu_target_in(unsigned number, char kind, const char *list);

/* True if PTX for sm_<number><kind> runs on a device with compute capability <device>. */
bool emu_target_runs_on(unsigned number, char kind, unsigned device);

typedef struct emu_device_model {
    unsigned number; /* such as 90 */
    unsigned multiprocessors;
    unsigned threads_per_multiprocessor, blocks_per_multiprocessor;
    unsigned shared_per_multiprocessor; /* bytes */
    unsigned shared_per_block_optin;    /* bytes */
    unsigned l2_bytes, clock_khz, memory_clock_khz, bus_bits;
    uint64_t memory_bytes;
} emu_device_model;

extern const emu_device_model emu_device_models[];
extern const size_t emu_device_model_count;

#define EMU_SHARED_PER_BLOCK          (48u * 1024)
#define EMU_REGISTERS_PER_BLOCK       65536u
#define EMU_RESERVED_SHARED_PER_BLOCK 1024u /* from compute capability 8.0 on */

/* The lowest .version that has the target (ISA 11.1.2), 10 * major + minor; 0: no such target. */
unsigned emu_target_version(unsigned number, char kind);

/* True if this .version exists, up to 9.1. */
bool emu_is_ptx_version(unsigned version);

/* The highest .version that a driver accepts: 91 for driver 13010. */
unsigned emu_driver_ptx_version(int driver);

#endif
