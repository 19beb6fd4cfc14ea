/* The PTX builder's memory operations between threads: asynchronous copies, barriers in shared memory, atomics, fences.
 * Part of kiln/author/ptx.h. */
#ifndef KILN_PTX_SYNC_H
#define KILN_PTX_SYNC_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Columns are aligned by hand. */
/* clang-format off */

/* ---- copies in the background, sm_80 ---------------------------------------------------------------------------- */

/* Copies 4, 8 or 16 bytes from global to shared memory, both aligned to that size. Hints: PTX_CA (or none), or PTX_CG
 * to bypass L1; a prefetch size. _zfill reads only the first from_bytes, a U32, and zero-fills the rest: with 0 nothing
 * is read, and the source may be invalid. */
#define ptx_cp_async(f, to, from, bytes, hints) PTX_CALL_(f, cp_async, to, from, bytes, hints)
#define ptx_cp_async_zfill(f, to, from, bytes, from_bytes, hints)                                            \
    PTX_CALL_(f, cp_async_zfill, to, from, bytes, from_bytes, hints)
/* _commit makes a group of this thread's copies since the last one; _wait waits until at most `pending` of its groups
 * are in flight; _wait_all waits for all. Then a thread sees its own copies; a barrier must follow before other threads
 * see them. */
#define ptx_cp_async_commit(f)          ptx_effect0(f, PTX_OP_CP_COMMIT, PTX_HERE)
#define ptx_cp_async_wait(f, pending)   ptx_effect1(f, PTX_OP_CP_WAIT, ptx_u32(pending), PTX_HERE)
#define ptx_cp_async_wait_all(f)        ptx_effect0(f, PTX_OP_CP_WAIT_ALL, PTX_HERE)

/* ---- barriers in shared memory, sm_80 --------------------------------------------------------------------------- */

/* `barrier` points to a U64 or B64 in shared memory. One thread initialises it with the number of arrivals per phase; a
 * ptx_barrier must come before its first use. */
#define ptx_mbarrier_init(f, barrier, arrivals)  PTX_CALL_(f, mbarrier, PTX_OP_MBAR_INIT, barrier, PTX_VAL_(arrivals))
#define ptx_mbarrier_end(f, barrier)             ptx_mbarrier_at(f, PTX_OP_MBAR_INVAL, barrier, PTX_HERE)
/* Arrives once, or several times; returns the current phase, a B64. */
#define ptx_mbarrier_arrive(f, barrier)          ptx_mbarrier_at(f, PTX_OP_MBAR_ARRIVE, barrier, PTX_HERE)
#define ptx_mbarrier_arrive_count(f, barrier, n) PTX_CALL_(f, mbarrier, PTX_OP_MBAR_ARRIVE_COUNT, barrier, PTX_VAL_(n))
/* Arrives once, and adds `n` bytes that the phase waits for; sm_90. */
#define ptx_mbarrier_arrive_bytes(f, barrier, n) PTX_CALL_(f, mbarrier, PTX_OP_MBAR_ARRIVE_BYTES, barrier, PTX_VAL_(n))
/* Arrives when this thread's earlier copies have completed; _noinc: init has already counted the arrival. */
#define ptx_cp_async_arrive(f, barrier)          ptx_mbarrier_at(f, PTX_OP_CP_ARRIVE, barrier, PTX_HERE)
#define ptx_cp_async_arrive_noinc(f, barrier)    ptx_mbarrier_at(f, PTX_OP_CP_ARRIVE_NOINC, barrier, PTX_HERE)
/* Return whether the phase has completed. test and try take the phase that arrive returned; _parity takes the low bit of
 * the phase's number, a U32. try may suspend the thread; sm_90. */
#define ptx_mbarrier_test(f, barrier, phase)     PTX_CALL_(f, mbarrier, PTX_OP_MBAR_TEST, barrier, PTX_VAL_(phase))
#define ptx_mbarrier_test_parity(f, barrier, bit) PTX_CALL_(f, mbarrier, PTX_OP_MBAR_TEST_PARITY, barrier, PTX_VAL_(bit))
#define ptx_mbarrier_try(f, barrier, phase)      PTX_CALL_(f, mbarrier, PTX_OP_MBAR_TRY, barrier, PTX_VAL_(phase))
#define ptx_mbarrier_try_parity(f, barrier, bit) PTX_CALL_(f, mbarrier, PTX_OP_MBAR_TRY_PARITY, barrier, PTX_VAL_(bit))

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

/* Atomically sets memory = op(memory, value), in global or shared memory; returns the old value. The pointer's element
 * gives the type. order: PTX_PLAIN, which is PTX_RELAXED | PTX_GPU, or one order and one scope; see ptx_hint. Threads
 * arrive in any order: float sums differ from run to run. */
#define ptx_atom_add(f, pointer, value, order)  PTX_CALL_(f, atom, PTX_OP_ATOM_ADD, pointer, PTX_VAL_(value), order)
        /* U32, S32, U64, S64, F32, F64, F16, F16X2; BF16, BF16X2 from sm_90 */
#define ptx_atom_min(f, pointer, value, order)  PTX_CALL_(f, atom, PTX_OP_ATOM_MIN, pointer, PTX_VAL_(value), order)
#define ptx_atom_max(f, pointer, value, order)  PTX_CALL_(f, atom, PTX_OP_ATOM_MAX, pointer, PTX_VAL_(value), order)
        /* U32, S32, U64, S64 */
#define ptx_atom_and(f, pointer, value, order)  PTX_CALL_(f, atom, PTX_OP_ATOM_AND, pointer, PTX_VAL_(value), order)
#define ptx_atom_or(f, pointer, value, order)   PTX_CALL_(f, atom, PTX_OP_ATOM_OR, pointer, PTX_VAL_(value), order)
#define ptx_atom_xor(f, pointer, value, order)  PTX_CALL_(f, atom, PTX_OP_ATOM_XOR, pointer, PTX_VAL_(value), order)
        /* 32 and 64-bit integers and bits */
#define ptx_atom_exch(f, pointer, value, order) PTX_CALL_(f, atom, PTX_OP_ATOM_EXCH, pointer, PTX_VAL_(value), order)
        /* any type of 32 or 64 bits */
#define ptx_atom_inc(f, pointer, last, order)   PTX_CALL_(f, atom, PTX_OP_ATOM_INC, pointer, PTX_VAL_(last), order)
#define ptx_atom_dec(f, pointer, last, order)   PTX_CALL_(f, atom, PTX_OP_ATOM_DEC, pointer, PTX_VAL_(last), order)
        /* U32; count up or down in 0 ... last, and wrap around */
/* Writes `value` if memory equals `expected` bitwise; any type of 16, 32 or 64 bits. */
#define ptx_atom_cas(f, pointer, expected, value, order)                                                     \
    PTX_CALL_(f, atom_cas, pointer, PTX_VAL_(expected), PTX_VAL_(value), order)
/* Without a result; order: relaxed or release. */
#define ptx_red_add(f, pointer, value, order)   PTX_CALL_(f, red, PTX_OP_RED_ADD, pointer, PTX_VAL_(value), order)
#define ptx_red_min(f, pointer, value, order)   PTX_CALL_(f, red, PTX_OP_RED_MIN, pointer, PTX_VAL_(value), order)
#define ptx_red_max(f, pointer, value, order)   PTX_CALL_(f, red, PTX_OP_RED_MAX, pointer, PTX_VAL_(value), order)
#define ptx_red_and(f, pointer, value, order)   PTX_CALL_(f, red, PTX_OP_RED_AND, pointer, PTX_VAL_(value), order)
#define ptx_red_or(f, pointer, value, order)    PTX_CALL_(f, red, PTX_OP_RED_OR, pointer, PTX_VAL_(value), order)
#define ptx_red_xor(f, pointer, value, order)   PTX_CALL_(f, red, PTX_OP_RED_XOR, pointer, PTX_VAL_(value), order)
#define ptx_red_inc(f, pointer, last, order)    PTX_CALL_(f, red, PTX_OP_RED_INC, pointer, PTX_VAL_(last), order)
#define ptx_red_dec(f, pointer, last, order)    PTX_CALL_(f, red, PTX_OP_RED_DEC, pointer, PTX_VAL_(last), order)

/* ---- fences and waiting ----------------------------------------------------------------------------------------- */

/* order: PTX_ACQ_REL or PTX_SC, and a scope. ptx_membar is the older name of a fence with PTX_SC; it takes only a
 * scope. */
#define ptx_fence(f, order)       ptx_fence_at(f, PTX_OP_FENCE, order, PTX_HERE)
#define ptx_membar(f, scope)      ptx_fence_at(f, PTX_OP_MEMBAR, scope, PTX_HERE)
/* Orders this thread's writes to shared memory before reads in the async proxy: wgmma and bulk stores. sm_90. A
 * barrier must follow if other threads start the product or the store. */
#define ptx_fence_async(f)        ptx_effect0(f, PTX_OP_FENCE_ASYNC, PTX_HERE)
/* Orders this thread's ptx_mbarrier_init before bulk copies that complete at the mbarrier object. sm_90. A barrier must
 * follow if other threads use it. */
#define ptx_fence_mbarrier_init(f) ptx_effect0(f, PTX_OP_FENCE_MBARRIER, PTX_HERE)
/* Suspends this thread for 0 to twice that many nanoseconds, at most 1 ms. U32. */
#define ptx_nanosleep(f, nanoseconds) ptx_effect1(f, PTX_OP_NANOSLEEP, nanoseconds, PTX_HERE)
/* For overlapping launches. ptx_grid_wait waits until the preceding grid has ended and its stores are visible;
 * ptx_grid_launch_next lets the next grid begin. sm_90. A kernel with a wait may start before the preceding launch has
 * ended (kiln_options.overlap_launches), so every thread must wait: the call must be outside all blocks. Before it the
 * kernel must not write global memory, and may read it only through constant arguments (kiln_arg); prefetches are
 * allowed. */
#define ptx_grid_wait(f)          ptx_effect0(f, PTX_OP_GRID_WAIT, PTX_HERE)
#define ptx_grid_launch_next(f)   ptx_effect0(f, PTX_OP_GRID_LAUNCH_NEXT, PTX_HERE)

/* clang-format on */
#ifdef __cplusplus
}
#endif

#endif
