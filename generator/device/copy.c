/* Copies into shared memory. */
#include "copy.h"
#include "shared.h"
#include "tail.h"

void copy_now(ptx_fn *f, uint32_t bytes, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints)
{
    ptx_val words[4];
    tail_load(f, PTX_U32, bytes / 4, words, from, in_bounds, hints);
    ptx_store_vec(f, (int)bytes / 4, to, words, PTX_PLAIN);
}

/* Only copies of 16 bytes can bypass L1. */
static int cache_of(uint32_t bytes)
{
    return bytes == UNIT_BYTES ? PTX_CG : PTX_CA;
}

void copy_async(ptx_fn *f, uint32_t bytes, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints)
{
    if (!ptx_has_sm(f, 80)) {
        copy_now(f, bytes, to, from, in_bounds, hints);
    } else if (in_bounds) {
        ptx_val some = ptx_select(f, *in_bounds, ptx_u32(bytes), 0);
        ptx_cp_async_zfill(f, to, from, bytes, some, cache_of(bytes));
    } else {
        ptx_cp_async(f, to, from, bytes, cache_of(bytes));
    }
}

void copy_unit_or_zeros(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, int hints)
{
    if (ptx_has_sm(f, 80)) {
        ptx_cp_async_zfill(f, to, from, UNIT_BYTES, bytes, PTX_CG);
        return;
    }
    ptx_val in_bounds = ptx_ne(f, bytes, 0);
    copy_now(f, UNIT_BYTES, to, from, &in_bounds, hints);
}

/* Below sm_80: a whole piece, or fewer bytes than that, then zeros. */
static void copy_some_now(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left, uint32_t size)
{
    PTX_IF (f, ptx_ge(f, left, size)) {
        copy_now(f, size, to, from, NULL, size == UNIT_BYTES ? PTX_NC | PTX_NO_ALLOCATE : PTX_NC);
    }
    PTX_ELSE (f) {
        ptx_val zeros[4] = {ptx_u32(0), ptx_u32(0), ptx_u32(0), ptx_u32(0)};
        ptx_store_vec(f, (int)size / 4, to, zeros, PTX_PLAIN);
        PTX_FOR (f, i, 0, left, 1) {
            ptx_val byte = ptx_load(f, ptx_at(f, ptx_cast_ptr(f, from, PTX_U8), i));
            ptx_store(f, ptx_at(f, ptx_cast_ptr(f, to, PTX_U8), i), byte);
        }
    }
}

void copy_some(ptx_fn *f, uint32_t size, ptx_val to, ptx_val from, ptx_val left)
{
    if (!ptx_has_sm(f, 80)) {
        copy_some_now(f, to, from, left, size);
        return;
    }
    ptx_val some = ptx_min(f, ptx_max(f, left, 0), (int32_t)size);
    ptx_cp_async_zfill(f, to, from, size, ptx_as(f, PTX_U32, some), cache_of(size));
}

void copy_commit(ptx_fn *f)
{
    if (ptx_has_sm(f, 80))
        ptx_cp_async_commit(f);
}

void copy_wait(ptx_fn *f, uint32_t pending)
{
    if (ptx_has_sm(f, 80))
        ptx_cp_async_wait(f, pending);
}
