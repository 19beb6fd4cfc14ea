/* Products of wgmma in flight (ISA 9.7.15): each from its mma_async to the wait_group that covers it. It is computed at
   once: compilers copy accumulators in flight from register to register, and ptxas removes the copies. The checks report
   whatever else reads or writes them, and writes to what the product reads. */
#ifndef EMU_WGMMA_H
#define EMU_WGMMA_H

#include "launch.h"

#define EMU_WARPGROUP_WARPS 4u

/* One warp's part of a product. */
typedef struct emu_product {
    const emu_op *op;
    uint64_t a, b;   /* matrix descriptors; a: 0 when A is in registers */
    bool adds;       /* to the accumulators: scale-d */
    uint32_t group;  /* commits of the warp before it */
    uint32_t number; /* among the warp's products, from 1 */
} emu_product;

/* Completes the group and the number. */
void emu_product_issue(emu_warp *warp, emu_product *product);
void emu_product_commit(emu_warp *warp);
/* The warp's oldest product in flight, NULL: none. */
const emu_product *emu_product_oldest(const emu_warp *warp);
/* Is it in a group that is not among the last `pending`? Uncommitted ones are in none. */
bool emu_product_is_due(const emu_warp *warp, const emu_product *product, uint32_t pending);
/* The oldest one is no longer in flight. */
void emu_product_retire(emu_warp *warp);

void emu_products_free(emu_block *block);

#endif
