/* The PTX builder's memory operations between threads: copies in the background, barriers in shared memory, atomics,
 * fences. Part of kiln/author/ptx.h. */
#ifndef KILN_PTX_SYNC_H
#define KILN_PTX_SYNC_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif
/* A reference card keeps the columns that a person drew. */
/* clang-format off */

/* ---- copies in the background, sm_80 ---------------------------------------------------------------------------- */

/* 4, 8 or 16 bytes from global into shared memory, both at multiples of them. Hints: PTX_CA (or none), or PTX_CG for 16
 * bytes past L1; a prefetch size. _zfill reads only the first from_bytes, a U32, and writes zeros for the others: with 0
 * nothing is read, and the source need not exist. */
#define ptx_cp_async(f, to, from, bytes, hints)                                                              \
    ptx_cp_async_at(f, to, from, bytes, hints, PTX_HERE)
#define ptx_cp_async_zfill(f, to, from, bytes, from_bytes, hints)                                            \
    ptx_cp_async_zfill_at(f, to, from, bytes, from_bytes, hints, PTX_HERE)
/* Makes a group of this thread's copies since the last one; waits until at most `pending` of its groups are on the way;
 * or for all. A thread sees its own copies then; for those of others a barrier must follow. */
#define ptx_cp_async_commit(f)          ptx_effect0(f, PTX_OP_CP_COMMIT, PTX_HERE)
#define ptx_cp_async_wait(f, pending)   ptx_effect1(f, PTX_OP_CP_WAIT, ptx_u32(pending), PTX_HERE)
#define ptx_cp_async_wait_all(f)        ptx_effect0(f, PTX_OP_CP_WAIT_ALL, PTX_HERE)

/* ---- barriers in shared memory, sm_80 --------------------------------------------------------------------------- */

/* `barrier` points to a U64 or B64 in shared memory, which one thread initialises with the number of arrivals that make
 * a phase; a ptx_barrier must come before its first use. */
#define ptx_mbarrier_init(f, barrier, arrivals)  ptx_mbarrier_with_at(f, PTX_OP_MBAR_INIT, barrier, arrivals, PTX_HERE)
#define ptx_mbarrier_end(f, barrier)             ptx_mbarrier_at(f, PTX_OP_MBAR_INVAL, barrier, PTX_HERE)
/* One arrival, or some; gives the phase that it counts for, a B64. */
#define ptx_mbarrier_arrive(f, barrier)          ptx_mbarrier_at(f, PTX_OP_MBAR_ARRIVE, barrier, PTX_HERE)
#define ptx_mbarrier_arrive_count(f, barrier, n) ptx_mbarrier_with_at(f, PTX_OP_MBAR_ARRIVE_COUNT, barrier, n, PTX_HERE)
/* One arrival, and that many bytes more to wait for; sm_90. */
#define ptx_mbarrier_arrive_bytes(f, barrier, n) ptx_mbarrier_with_at(f, PTX_OP_MBAR_ARRIVE_BYTES, barrier, n, PTX_HERE)
/* An arrival when this thread's copies so far have ended; _noinc: one that init has counted. */
#define ptx_cp_async_arrive(f, barrier)          ptx_mbarrier_at(f, PTX_OP_CP_ARRIVE, barrier, PTX_HERE)
#define ptx_cp_async_arrive_noinc(f, barrier)    ptx_mbarrier_at(f, PTX_OP_CP_ARRIVE_NOINC, barrier, PTX_HERE)
/* Has the phase ended? By what arrive gave, or by its number's lowest bit, a U32. try: may sleep a while; sm_90. */
#define ptx_mbarrier_test(f, barrier, phase)     ptx_mbarrier_with_at(f, PTX_OP_MBAR_TEST, barrier, phase, PTX_HERE)
#define ptx_mbarrier_test_parity(f, barrier, bit) ptx_mbarrier_with_at(f, PTX_OP_MBAR_TEST_PARITY, barrier, bit, PTX_HERE)
#define ptx_mbarrier_try(f, barrier, phase)      ptx_mbarrier_with_at(f, PTX_OP_MBAR_TRY, barrier, phase, PTX_HERE)
#define ptx_mbarrier_try_parity(f, barrier, bit) ptx_mbarrier_with_at(f, PTX_OP_MBAR_TRY_PARITY, barrier, bit, PTX_HERE)

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

/* Memory = op(memory, value), as one step, in global or shared memory; gives what was there. The pointer's element is
 * the type. order: PTX_PLAIN, which is PTX_RELAXED | PTX_GPU, or one order and one scope; see ptx_hint. The order in
 * which threads come is open: float sums differ from run to run. */
#define ptx_atom_add(f, pointer, value, order)  ptx_atom_at(f, PTX_OP_ATOM_ADD, pointer, value, order, PTX_HERE)
        /* U32, S32, U64, S64, F32, F64, F16, F16X2; BF16, BF16X2 from sm_90 */
#define ptx_atom_min(f, pointer, value, order)  ptx_atom_at(f, PTX_OP_ATOM_MIN, pointer, value, order, PTX_HERE)
#define ptx_atom_max(f, pointer, value, order)  ptx_atom_at(f, PTX_OP_ATOM_MAX, pointer, value, order, PTX_HERE)
        /* U32, S32, U64, S64 */
#define ptx_atom_and(f, pointer, value, order)  ptx_atom_at(f, PTX_OP_ATOM_AND, pointer, value, order, PTX_HERE)
#define ptx_atom_or(f, pointer, value, order)   ptx_atom_at(f, PTX_OP_ATOM_OR, pointer, value, order, PTX_HERE)
#define ptx_atom_xor(f, pointer, value, order)  ptx_atom_at(f, PTX_OP_ATOM_XOR, pointer, value, order, PTX_HERE)
        /* 32 and 64-bit integers and bits */
#define ptx_atom_exch(f, pointer, value, order) ptx_atom_at(f, PTX_OP_ATOM_EXCH, pointer, value, order, PTX_HERE)
        /* any type of 32 or 64 bits */
#define ptx_atom_inc(f, pointer, last, order)   ptx_atom_at(f, PTX_OP_ATOM_INC, pointer, last, order, PTX_HERE)
#define ptx_atom_dec(f, pointer, last, order)   ptx_atom_at(f, PTX_OP_ATOM_DEC, pointer, last, order, PTX_HERE)
        /* U32; counts 0 ... last and round again, up or down */
/* Writes `value` where memory is `expected`, by its bits; any type of 16, 32 or 64 bits. */
#define ptx_atom_cas(f, pointer, expected, value, order)                                                     \
    ptx_atom_cas_at(f, pointer, expected, value, order, PTX_HERE)
/* The same without a result; order: relaxed or release. */
#define ptx_red_add(f, pointer, value, order)   ptx_red_at(f, PTX_OP_RED_ADD, pointer, value, order, PTX_HERE)
#define ptx_red_min(f, pointer, value, order)   ptx_red_at(f, PTX_OP_RED_MIN, pointer, value, order, PTX_HERE)
#define ptx_red_max(f, pointer, value, order)   ptx_red_at(f, PTX_OP_RED_MAX, pointer, value, order, PTX_HERE)
#define ptx_red_and(f, pointer, value, order)   ptx_red_at(f, PTX_OP_RED_AND, pointer, value, order, PTX_HERE)
#define ptx_red_or(f, pointer, value, order)    ptx_red_at(f, PTX_OP_RED_OR, pointer, value, order, PTX_HERE)
#define ptx_red_xor(f, pointer, value, order)   ptx_red_at(f, PTX_OP_RED_XOR, pointer, value, order, PTX_HERE)
#define ptx_red_inc(f, pointer, last, order)    ptx_red_at(f, PTX_OP_RED_INC, pointer, last, order, PTX_HERE)
#define ptx_red_dec(f, pointer, last, order)    ptx_red_at(f, PTX_OP_RED_DEC, pointer, last, order, PTX_HERE)

/* ---- fences and waiting ----------------------------------------------------------------------------------------- */

/* order: PTX_ACQ_REL or PTX_SC, and a scope. ptx_membar is the older name of a fence with PTX_SC; a scope alone. */
#define ptx_fence(f, order)       ptx_fence_at(f, PTX_OP_FENCE, order, PTX_HERE)
#define ptx_membar(f, scope)      ptx_fence_at(f, PTX_OP_MEMBAR, scope, PTX_HERE)
/* Lets this thread rest, from 0 to twice that many nanoseconds, at most 1 ms. U32. */
#define ptx_nanosleep(f, nanoseconds) ptx_effect1(f, PTX_OP_NANOSLEEP, nanoseconds, PTX_HERE)
/* Launches that follow on the grid before: waits until it has ended and its memory is seen; lets the next one begin.
 * sm_90. A kernel with a wait may be launched before the launch in front of it has ended (kiln_options.overlap_launches), so
 * every thread has to wait: it stands in no block. Before it the kernel writes nothing to global memory and reads there
 * only what arguments that are constant (kiln_arg) point at; prefetches are free. */
#define ptx_grid_wait(f)          ptx_effect0(f, PTX_OP_GRID_WAIT, PTX_HERE)
#define ptx_grid_launch_next(f)   ptx_effect0(f, PTX_OP_GRID_LAUNCH_NEXT, PTX_HERE)

/* clang-format on */
#ifdef __cplusplus
}
#endif

#endif
