/* Copies into shared memory. */
#include "copy.h"
#include "shared.h"
#include "tail.h"

void copy_unit(ptx_fn *f, bool has_sm_80, ptx_val to, ptx_val from, const ptx_val *in_bounds, int hints)
{
    if (!has_sm_80) {
        ptx_val words[4];
        tail_load(f, PTX_U32, 4, words, from, in_bounds, hints);
        ptx_store_vec(f, 4, to, words, PTX_PLAIN);
    } else if (in_bounds) {
        ptx_val bytes = ptx_select(f, *in_bounds, ptx_u32(UNIT_BYTES), ptx_u32(0));
        ptx_cp_async_zfill(f, to, from, UNIT_BYTES, bytes, PTX_CG);
    } else {
        ptx_cp_async(f, to, from, UNIT_BYTES, PTX_CG);
    }
}

void copy_commit(ptx_fn *f, bool has_sm_80)
{
    if (has_sm_80)
        ptx_cp_async_commit(f);
}

void copy_wait(ptx_fn *f, bool has_sm_80, uint32_t pending)
{
    if (has_sm_80)
        ptx_cp_async_wait(f, pending);
}
