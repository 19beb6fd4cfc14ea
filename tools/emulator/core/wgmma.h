/* Products of wgmma in flight (ISA 9.7.15): from mma_async to the wait_group that covers it. The emulator computes a
   product at once: compilers copy accumulators in flight between registers, and ptxas removes the copies. The checks report
   other accesses of its registers, and writes to the shared memory that it reads.

   The four warps meet at wgmma.fence: a product sees what all of them wrote to shared memory before it. The ISA does not
   promise this, but kernels rely on it (README.md, "wgmma").

   A product and its group belong to the warpgroup (ISA 9.7.15.7.2): a warp's wait ends once all four warps have committed the
   groups that it covers, and then no warp reads shared memory for their products any more. */
#ifndef EMU_WGMMA_H
#define EMU_WGMMA_H

#include "launch.h"

#define EMU_WARPGROUP_WARPS 4u

/* One warp's part of a product. */
typedef struct emu_product {
    const emu_op *op;
    uint64_t a, b;   /* matrix descriptors; a: 0 if A is in registers */
    bool adds;       /* scale-d: adds to the accumulators */
    uint32_t group;  /* how many groups the warp had committed before */
    uint32_t number; /* among the warp's products, from 1 */
} emu_product;

/* Sets `group` and `number`, and records the product as in flight. */
void emu_product_issue(emu_warp *warp, emu_product *product);
/* Waits until all four warps have executed as many wgmma.fences as this one. */
void emu_product_fence(emu_warp *warp, const emu_op *op, uint32_t lanes);
/* Commits the warp's group, and resumes warps of the warpgroup that waited for this. */
void emu_product_commit(emu_warp *warp);
/* Waits for all groups of the warp except the last op->imm. */
void emu_product_wait(emu_warp *warp, const emu_op *op, uint32_t lanes);
/* Resumes warps of the warpgroup that waited for this warp, which has ended. */
void emu_product_warp_exited(emu_warp *warp);
/* NULL if no product is in flight. */
const emu_product *emu_product_oldest(const emu_warp *warp);
bool emu_product_is_committed(const emu_warp *warp, const emu_product *product);

void emu_products_free(emu_block *block);

#endif
