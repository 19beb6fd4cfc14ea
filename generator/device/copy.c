/* Copies into shared memory. */
#include "copy.h"
#include "shared.h"
#include "tail.h"

void copy_unit_now(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints)
{
    ptx_val words[4];
    tail_load(f, PTX_U32, 4, words, from, in_bounds, hints);
    ptx_store_vec(f, 4, to, words, PTX_PLAIN);
}

void copy_unit(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints)
{
    if (!ptx_has_sm(f, 80)) {
        copy_unit_now(f, to, from, in_bounds, hints);
    } else if (in_bounds) {
        ptx_val bytes = ptx_select(f, *in_bounds, ptx_u32(UNIT_BYTES), 0);
        ptx_cp_async_zfill(f, to, from, UNIT_BYTES, bytes, PTX_CG);
    } else {
        ptx_cp_async(f, to, from, UNIT_BYTES, PTX_CG);
    }
}

void copy_unit_or_zeros(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, int hints)
{
    if (ptx_has_sm(f, 80)) {
        ptx_cp_async_zfill(f, to, from, UNIT_BYTES, bytes, PTX_CG);
        return;
    }
    ptx_val in_bounds = ptx_ne(f, bytes, 0);
    copy_unit_now(f, to, from, &in_bounds, hints);
}

static void copy_words(ptx_fn *f, uint32_t count, ptx_val to, ptx_val from, const ptx_val *in_bounds)
{
    if (ptx_has_sm(f, 80)) {
        ptx_val bytes = ptx_select(f, *in_bounds, ptx_u32(4 * count), 0);
        ptx_cp_async_zfill(f, to, from, 4 * count, bytes, PTX_CA);
        return;
    }
    ptx_val words[2];
    tail_load(f, PTX_U32, count, words, from, in_bounds, PTX_NC);
    ptx_store_vec(f, (int)count, to, words, PTX_PLAIN);
}

void copy_word(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds)
{
    copy_words(f, 1, to, from, in_bounds);
}

void copy_half(ptx_fn *f, ptx_val to, ptx_val from, const ptx_val *in_bounds)
{
    copy_words(f, 2, to, from, in_bounds);
}

/* Below sm_80: a whole piece, or fewer bytes than that, then zeros. */
static void copy_bytes(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left, uint32_t size)
{
    PTX_IF (f, ptx_ge(f, left, size)) {
        if (size == UNIT_BYTES)
            copy_unit(f, to, from, NULL, PTX_NC | PTX_NO_ALLOCATE);
        else
            ptx_store(f, to, ptx_load_hint(f, from, PTX_NC));
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

static void copy_some(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left, uint32_t size, int hints)
{
    if (!ptx_has_sm(f, 80)) {
        copy_bytes(f, to, from, left, size);
        return;
    }
    ptx_val some = ptx_min(f, ptx_max(f, left, 0), (int32_t)size);
    ptx_cp_async_zfill(f, to, from, size, ptx_as(f, PTX_U32, some), hints);
}

void copy_cut(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left)
{
    copy_some(f, to, from, left, UNIT_BYTES, PTX_CG);
}

void copy_word_cut(ptx_fn *f, ptx_val to, ptx_val from, ptx_val left)
{
    copy_some(f, to, from, left, 4, PTX_CA);
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
