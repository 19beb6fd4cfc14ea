/* Special registers (ISA 10): names, types, values. */
#ifndef EMU_SPECIAL_H
#define EMU_SPECIAL_H

#include "../core/program.h"

typedef enum emu_special {
    EMU_TID_X,
    EMU_TID_Y,
    EMU_TID_Z,
    EMU_NTID_X,
    EMU_NTID_Y,
    EMU_NTID_Z,
    EMU_CTAID_X,
    EMU_CTAID_Y,
    EMU_CTAID_Z,
    EMU_NCTAID_X,
    EMU_NCTAID_Y,
    EMU_NCTAID_Z,
    EMU_LANEID,
    EMU_WARPID,
    EMU_NWARPID,
    EMU_SMID,
    EMU_NSMID,
    EMU_GRIDID,
    EMU_LANEMASK_EQ,
    EMU_LANEMASK_LE,
    EMU_LANEMASK_LT,
    EMU_LANEMASK_GE,
    EMU_LANEMASK_GT,
    EMU_CLOCK,
    EMU_CLOCK_HI,
    EMU_CLOCK64,
    EMU_GLOBALTIMER,
    EMU_GLOBALTIMER_LO,
    EMU_GLOBALTIMER_HI,
    EMU_TOTAL_SMEM,
    EMU_AGGR_SMEM,
    EMU_DYNAMIC_SMEM,
    EMU_RESERVED_BEGIN,
    EMU_RESERVED_END,
    EMU_RESERVED_CAP,
    EMU_CLUSTERID_X,
    EMU_CLUSTERID_Y,
    EMU_CLUSTERID_Z,
    EMU_NCLUSTERID_X,
    EMU_NCLUSTERID_Y,
    EMU_NCLUSTERID_Z,
    EMU_CLUSTER_CTAID_X,
    EMU_CLUSTER_CTAID_Y,
    EMU_CLUSTER_CTAID_Z,
    EMU_CLUSTER_NCTAID_X,
    EMU_CLUSTER_NCTAID_Y,
    EMU_CLUSTER_NCTAID_Z,
    EMU_CLUSTER_CTARANK,
    EMU_CLUSTER_NCTARANK,
    EMU_IS_EXPLICIT_CLUSTER, /* a predicate */
    EMU_ZERO32,              /* %envreg, %pm */
    EMU_ZERO64,
} emu_special;

/* True for registers of the ISA that are not emulated. */
bool emu_special_is_refused(emu_text name);
bool emu_special_named(emu_text name, char element, emu_special *special);
emu_type emu_special_type(emu_special special);

/* The handler; op->imm is the special register. */
void emu_read_special(emu_warp *warp, const emu_op *op, uint32_t mask);

#endif
