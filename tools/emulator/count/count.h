/* Counters of a launch, kept when KILN_EMU_REPORT names a file (report.c writes them). The definitions, all of PTX:

   thread instruction   a lane that executes an instruction: it is active there and the instruction's guard holds for it
   lane slot            a lane that is active at an instruction, whether the guard holds or not
   warp instruction     an instruction issued once for the lanes of a warp that are there together, at least one; also when
                        its guard holds for none. Lanes that wait for others of their warp (shfl, bar, ...) are counted when
                        they go on, as often as they go on together. What leaves a function at its end counts as a ret.
   class                by opcode and type, see class.c; loads, stores and atomics by the state space that is written,
                        "generic" when none is
   branch               a bra or brx as a warp instruction; divergent: it separates lanes that ran together
   barrier              a bar or barrier as a warp instruction
   product              a warp instruction of the class tensor that multiplies matrices
   multiply-adds        m*n*k per product; a quarter of that for wgmma, which each of four warps counts; four times that for
                        mma.m8n8k4 of f16, which multiplies four pairs of matrices
   shape                of a product: its opcode, and its modifiers from the shape on, such as m16n8k16
   request              the lanes of one warp instruction that access one allocation (or shared memory, ...) together: a
                        cp.async makes one to its source and one to shared memory; lanes that copy fewer bytes than
                        others make one of their own, lanes that only write zeros none to the source. Lanes give the
                        rows of ldmatrix and stmatrix, 16 bytes each; wgmma requests 16 bytes per lane: of A, the rows
                        of its warp; of B, which four warps share, a quarter. Prefetches and reads of parameters make none
   sector               32 aligned bytes of an allocation. Per request each sector counts once; there is no cache, so the
                        next request counts it again. If cp.async copies 16 bytes per lane, a sector counts
                        once for each aligned 32 bytes of shared memory that it goes to: its two halves are
                        one request to the L2 cache only if they go to the same 32 bytes, in either order.
                        Measured on an H100 with Nsight Compute. The cost of smaller copies is unknown; they
                        count like loads
   bulk copy            a copy that one thread issues. Its bytes are counted by kind, in global and in shared memory, where a load
                        also fills elements outside its tensor. In global memory each contiguous piece, such as a row of a
                        box, is a request; in shared memory a copy is one request, with a wavefront per 128 bytes. A
                        reduction is atomic in global memory and a read of shared memory. Counted at issue, without its mbarrier
   wait                 a lane that tests an mbarrier; passed: it has seen the end of the phase. A lane that waits for bulk groups
   bytes                lanes times their access sizes; bytes used: distinct bytes of each request, added over requests
   distinct sectors     sectors of an allocation that some request of the launch touched
   read, write, atomic  atom, red and operations on mbarrier objects are atomic, and count as neither read nor written; a
                        store counts even if it changes nothing
   wavefront            shared memory has 32 banks of 4 bytes. A request is handled in parts of 32 lanes when a lane
                        accesses at most 4 bytes, of 16 lanes for 8 and of 8 lanes for 16 bytes. A part with an active lane
                        takes as many wavefronts as the busiest bank has distinct words (lanes share a word); an atomic
                        one takes as many as the busiest bank has accesses. Ideal: one per part. Their users are
                        threads, wgmma's operands, and bulk copies

   Every counter is a sum over blocks, so it depends on the number of host threads as little as the kernel does. */
#ifndef EMU_COUNT_H
#define EMU_COUNT_H

#include "../core/bulk.h"

#define EMU_SECTOR_BYTES 32u

typedef enum emu_work_class {
    EMU_IS_INTEGER,
    EMU_IS_FLOAT,
    EMU_IS_DOUBLE,
    EMU_IS_HALF,
    EMU_IS_CONVERSION,
    EMU_IS_SPECIAL,
    EMU_IS_MOVE,
    EMU_IS_GLOBAL,
    EMU_IS_SHARED,
    EMU_IS_LOCAL,
    EMU_IS_CONST,
    EMU_IS_PARAM,
    EMU_IS_GENERIC,
    EMU_IS_CONTROL,
    EMU_IS_WARP,
    EMU_IS_TENSOR,
    EMU_WORK_CLASSES
} emu_work_class;

extern const char *const emu_work_class_names[EMU_WORK_CLASSES];

emu_work_class emu_work_class_of(const emu_instruction *instruction);
bool emu_is_branch(const emu_instruction *instruction);
bool emu_is_barrier(const emu_instruction *instruction);
bool emu_is_atomic(const emu_instruction *instruction);
/* Returns true for a test of an mbarrier. */
bool emu_is_test(const emu_instruction *instruction);
/* Return true for a bulk copy or reduction, or the commit or wait of their group; for that wait only. */
bool emu_is_bulk_copy(const emu_instruction *instruction);
bool emu_is_group_wait(const emu_instruction *instruction);
/* Multiply-adds of a product, as defined above; 0 for any other instruction. */
uint64_t emu_multiply_adds(const emu_instruction *instruction);

typedef struct emu_count_op {
    uint64_t warps, slots, lanes;
    uint64_t parted; /* issues whose guard is true for some lanes only, or that branch to several targets */
} emu_count_op;

typedef enum emu_access_kind { EMU_READ, EMU_WRITE, EMU_ATOMIC, EMU_ACCESS_KINDS } emu_access_kind;

typedef enum emu_count_place { EMU_AT_ALLOCATIONS, EMU_AT_SHARED, EMU_AT_LOCAL, EMU_PLACES } emu_count_place;

/* Fields that do not apply are 0. */
typedef struct emu_count_access {
    uint64_t requests, bytes, bytes_used, sectors, wavefronts, ideal_wavefronts;
} emu_count_access;

/* Sums over the bulk copies of a kind. */
typedef struct emu_count_bulk {
    uint64_t copies, global_bytes, shared_bytes;
} emu_count_bulk;

typedef struct emu_count_row { /* an allocation that the launch touched or was given */
    const emu_allocation *allocation;
    uint64_t *seen[EMU_ACCESS_KINDS]; /* one bit per sector */
    uint64_t **seen_by; /* by operation: its own bits, or NULL without a request; NULL: not asked for */
    uint64_t seen_bytes;
    emu_count_access total[EMU_ACCESS_KINDS];
} emu_count_row;

/* What the blocks of one slot of a worker have counted. It is added to the launch's tally when the worker ends. */
typedef struct emu_tally {
    struct emu_counts *counts;
    emu_count_op *ops;
    emu_count_access (*accesses)[EMU_PLACES]; /* by operation */
    emu_count_access shared[EMU_ACCESS_KINDS], local[EMU_ACCESS_KINDS];
    emu_count_bulk bulk[EMU_BULK_KINDS];
    uint64_t passed; /* tests of mbarriers that saw the end of the phase */
    emu_count_access (*rows)[EMU_ACCESS_KINDS];
    size_t row_room;
    uint32_t *recent; /* by operation: 1 + the row that it accessed last */
} emu_tally;

typedef struct emu_counts {
    const emu_program *program;
    pthread_mutex_t lock;
    emu_tally total;
    emu_count_row *rows[4096]; /* rows do not move; allocations beyond the last row are not counted */
    size_t row_count;
    bool *is_atomic;  /* by operation */
    bool wants_lines; /* KILN_EMU_REPORT_LINES=1 */
} emu_counts;

/* Counts the launch, if KILN_EMU_REPORT asks for it. */
void emu_count_launch(emu_launch *launch);

static inline void emu_add_access(emu_count_access *to, const emu_count_access *from)
{
    to->requests += from->requests;
    to->bytes += from->bytes;
    to->bytes_used += from->bytes_used;
    to->sectors += from->sectors;
    to->wavefronts += from->wavefronts;
    to->ideal_wavefronts += from->ideal_wavefronts;
}

#endif
