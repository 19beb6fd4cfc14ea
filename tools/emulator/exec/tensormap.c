/* Tensor maps made by kernels (ISA 9.7.9.28, 9.7.13.16), and the fences of their proxy. */
#include "../core/tensor_map.h"

#include "access.h"
#include "bulk.h"

enum { HALF = EMU_MAP_BYTES / 2 }; /* also the alignment of maps */

/* Checks each lane's 128 bytes. Returns false after a fault. */
static bool find_map(emu_warp *w, const emu_op *op, uint32_t mask, bool writes, uint64_t at[EMU_LANES])
{
    uint64_t rest[EMU_LANES];
    if (!access_announce(w, op, op->arg[0], mask))
        return false;
    access_addresses(w, op, op->arg[0], mask, at);
    for (int i = 0; i < EMU_LANES; i++)
        rest[i] = at[i] + HALF;
    return access_find(w, op, mask, HALF, writes, at) && access_find(w, op, mask, HALF, writes, rest);
}

/* Also reports the access to the observers. */
static bool access_map(emu_warp *w, const emu_op *op, uint32_t mask, bool writes, uint64_t at[EMU_LANES])
{
    if (!find_map(w, op, mask, writes, at))
        return false;
    EMU_TELL(w->audience, access, w, op, mask, EMU_MAP_BYTES, writes, at);
    return w->state != EMU_WARP_FAULTED;
}

static void replace(emu_warp *w, const emu_op *op, uint32_t mask, bool has_ordinal, bool is_wide)
{
    uint64_t at[EMU_LANES];
    const uint32_t *ordinal = has_ordinal ? LANES_OF(const uint32_t, 1) : NULL;
    const uint32_t value = op->arg[has_ordinal ? 2 : 1];
    if (!access_map(w, op, mask, true, at))
        return;
    w->block->stores++;
    ACTIVE_LANES(mask)
    emu_map_set((void *)(uintptr_t)at[i], (emu_map_field)op->mods.mode, has_ordinal ? ordinal[i] : 0,
                is_wide ? ((const uint64_t *)emu_lanes(w, value))[i]
                        : ((const uint32_t *)emu_lanes(w, value))[i]);
}

HANDLER_CALLS(replace_wide, replace, false, true)
HANDLER_CALLS(replace_narrow, replace, false, false)
HANDLER_CALLS(replace_wide_of, replace, true, true)
HANDLER_CALLS(replace_narrow_of, replace, true, false)

/* The warp copies the first lane's map. All lanes count as readers, so a lane that wrote the map needs a bar.warp.sync before
   this. The copy synchronises the lanes, so one may write the map again afterwards. */
HANDLER(copy_fence)
{
    uint64_t to[EMU_LANES], from[EMU_LANES];
    if (op->mods.mode != EMU_BULK_FIRST || !is_whole_warp(w, op, mask))
        return;
    uint32_t first = mask & (~mask + 1);
    if (!find_map(w, op, first, false, from))
        return;
    EMU_TELL(w->audience, access, w, op, mask, EMU_MAP_BYTES, false, from);
    if (w->state == EMU_WARP_FAULTED || !access_map(w, op + 1, first, true, to))
        return;
    memcpy((void *)(uintptr_t)to[0], (const void *)(uintptr_t)from[0], EMU_MAP_BYTES);
    w->block->stores++;
    EMU_TELL(w->audience, warp_sync, w, mask);
    EMU_TELL(w->audience, fence, w, op, mask);
}

HANDLER(release)
{
    EMU_TELL(w->audience, fence, w, op, mask);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* A fence accesses nothing, so its address need not be inside an allocation. */
HANDLER(acquire)
{
    uint64_t at[EMU_LANES];
    uint32_t outside = 0;
    if (!access_announce(w, op, op->arg[0], mask))
        return;
    access_addresses(w, op, op->arg[0], mask, at);
    ACTIVE_LANES(mask) outside |= (uint32_t)(at[i] >= EMU_SHARED_WINDOW) << i;
    if (outside) {
        emu_fault(w, op, outside, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "names 0x%llx, which is no address of .global memory",
                  (unsigned long long)at[__builtin_ctz(outside)]);
        return;
    }
    EMU_TELL(w->audience, fence, w, op, mask);
    EMU_TELL(w->audience, map_fence, w, op, mask, at);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define REPLACE_ON(targets, field, type, operands, handler)                                                  \
    {                                                                                                        \
        "tensormap", "replace tile m:" field " p:global|shared::cta? b1024 " type, operands, 83, 90,         \
            targets, .run = handler, .refuse = emu_refuse_map_field                                          \
    }
#define REPLACE(...) REPLACE_ON("90a 100f 103f 110f 120f 121f", __VA_ARGS__)

/* The fields are in the order of emu_map_field. */
static const emu_row rows[] = {
    REPLACE("global_address", "b64", "[] b64", replace_wide),
    REPLACE("-|rank", "b32", "[] b32", replace_narrow),
    REPLACE("-|-|box_dim|global_dim|-|element_stride", "b32", "[] u32 b32", replace_narrow_of),
    REPLACE("-|-|-|-|global_stride", "b64", "[] u32 b64", replace_wide_of),
    REPLACE("-|-|-|-|-|-|elemtype|interleave_layout|swizzle_mode|-|fill_mode", "b32", "[] b32",
            replace_narrow),
    REPLACE_ON("100f 103f 110f 120f 121f", "-|-|-|-|-|-|-|-|-|swizzle_atomicity", "b32", "[] b32",
               replace_narrow),
    {"tensormap", "cp_fenceproxy global shared::cta tensormap::generic release @scope sync aligned", "", 83,
     90, .run = copy_fence, .form = EMU_FORM_MAP_COPY},
    {"fence", "proxy tensormap::generic release @scope", "", 83, 90, .run = release},
    {"fence", "proxy tensormap::generic acquire @scope", "[] #", 83, 90, .run = acquire},
    {"prefetch", "p:const|param? tensormap", "[]", 80, 90, .run = nothing},
};

EXPORT_ROWS(emu_rows_tensormap);
