/* Special registers: see special.h. */
#include "special.h"

#include "exec.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- names and types ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    emu_special special;
    bool has_elements;
} table[] = {
    {"%tid", EMU_TID_X, true},
    {"%ntid", EMU_NTID_X, true},
    {"%ctaid", EMU_CTAID_X, true},
    {"%nctaid", EMU_NCTAID_X, true},
    {"%laneid", EMU_LANEID, false},
    {"%warpid", EMU_WARPID, false},
    {"%nwarpid", EMU_NWARPID, false},
    {"%smid", EMU_SMID, false},
    {"%nsmid", EMU_NSMID, false},
    {"%gridid", EMU_GRIDID, false},
    {"%lanemask_eq", EMU_LANEMASK_EQ, false},
    {"%lanemask_le", EMU_LANEMASK_LE, false},
    {"%lanemask_lt", EMU_LANEMASK_LT, false},
    {"%lanemask_ge", EMU_LANEMASK_GE, false},
    {"%lanemask_gt", EMU_LANEMASK_GT, false},
    {"%clock", EMU_CLOCK, false},
    {"%clock_hi", EMU_CLOCK_HI, false},
    {"%clock64", EMU_CLOCK64, false},
    {"%globaltimer", EMU_GLOBALTIMER, false},
    {"%globaltimer_lo", EMU_GLOBALTIMER_LO, false},
    {"%globaltimer_hi", EMU_GLOBALTIMER_HI, false},
    {"%total_smem_size", EMU_TOTAL_SMEM, false},
    {"%aggr_smem_size", EMU_AGGR_SMEM, false},
    {"%dynamic_smem_size", EMU_DYNAMIC_SMEM, false},
    {"%reserved_smem_offset_begin", EMU_RESERVED_BEGIN, false},
    {"%reserved_smem_offset_end", EMU_RESERVED_END, false},
    {"%reserved_smem_offset_cap", EMU_RESERVED_CAP, false},
    {"%current_graph_exec", EMU_ZERO64, false},
    {"%clusterid", EMU_CLUSTERID_X, true},
    {"%nclusterid", EMU_NCLUSTERID_X, true},
    {"%cluster_ctaid", EMU_CLUSTER_CTAID_X, true},
    {"%cluster_nctaid", EMU_CLUSTER_NCTAID_X, true},
    {"%cluster_ctarank", EMU_CLUSTER_CTARANK, false},
    {"%cluster_nctarank", EMU_CLUSTER_NCTARANK, false},
    {"%is_explicit_cluster", EMU_IS_EXPLICIT_CLUSTER, false},
};

/* The prefix and a number from 0 to `most`. */
static bool is_numbered(emu_text name, const char *prefix, unsigned most)
{
    char wanted[16];
    for (unsigned n = 0; n <= most; n++) {
        snprintf(wanted, sizeof wanted, "%s%u", prefix, n);
        if (emu_text_is(name, wanted))
            return true;
    }
    return false;
}

static bool is_zero_register(emu_text name)
{
    return is_numbered(name, "%envreg", 31) || is_numbered(name, "%pm", 7);
}

bool emu_special_named(emu_text name, char element, emu_special *special)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (emu_text_is(name, table[i].name)) {
            if (table[i].has_elements != (element != '\0'))
                return false;
            *special =
                element == 'w' ? EMU_ZERO32 : table[i].special + (element ? (emu_special)(element - 'x') : 0);
            return true;
        }
    *special = EMU_ZERO32;
    return is_zero_register(name) && !element;
}

bool emu_special_is_refused(emu_text name)
{
    static const char *const names[] = {"%reserved_smem_offset_0", "%reserved_smem_offset_1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (emu_text_is(name, names[i]))
            return true;
    return name.size == 7 && memcmp(name.at, "%pm", 3) == 0 && memcmp(name.at + 4, "_64", 3) == 0;
}

emu_type emu_special_type(emu_special special)
{
    switch (special) {
    case EMU_CLOCK64:
    case EMU_GLOBALTIMER:
    case EMU_GRIDID:
    case EMU_ZERO64:
        return EMU_U64;
    case EMU_IS_EXPLICIT_CLUSTER:
        return EMU_PRED;
    default:
        return EMU_U32;
    }
}

/* ---- values ----------------------------------------------------------------------------------------------------------- */

static uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Values that all lanes share. The clock counts readings and turns, so it is the same in every run. */
static uint64_t uniform_special(emu_warp *w, emu_special special)
{
    const emu_launch *l = w->block->launch;
    uint32_t reserved = l->program->reserved_shared_bytes;
    switch (special) {
    case EMU_NTID_X:
    case EMU_NTID_Y:
    case EMU_NTID_Z:
        return l->block[special - EMU_NTID_X];
    case EMU_CTAID_X:
    case EMU_CTAID_Y:
    case EMU_CTAID_Z:
        return w->block->id[special - EMU_CTAID_X];
    case EMU_NCTAID_X:
    case EMU_NCTAID_Y:
    case EMU_NCTAID_Z:
        return l->grid[special - EMU_NCTAID_X];
    case EMU_WARPID:
        return w->id;
    case EMU_NWARPID:
        return 64;
    case EMU_SMID:
        return w->block->index % l->multiprocessors;
    case EMU_NSMID:
        return l->multiprocessors;
    case EMU_GRIDID:
        return l->serial;
    case EMU_CLOCK:
    case EMU_CLOCK64:
        return w->clock += 32;
    case EMU_CLOCK_HI:
        return (w->clock += 32) >> 32;
    case EMU_GLOBALTIMER:
    case EMU_GLOBALTIMER_LO:
        return nanoseconds();
    case EMU_GLOBALTIMER_HI:
        return nanoseconds() >> 32;
    case EMU_TOTAL_SMEM:
    case EMU_AGGR_SMEM:
        return w->block->shared_bytes - reserved;
    case EMU_DYNAMIC_SMEM:
        return l->dynamic_shared_bytes;
    case EMU_RESERVED_END:
        return reserved;
    case EMU_RESERVED_CAP:
        return l->shared_limit;
    case EMU_CLUSTERID_X:
    case EMU_CLUSTERID_Y:
    case EMU_CLUSTERID_Z:
        return w->block->id[special - EMU_CLUSTERID_X] / l->cluster[special - EMU_CLUSTERID_X];
    case EMU_NCLUSTERID_X:
    case EMU_NCLUSTERID_Y:
    case EMU_NCLUSTERID_Z:
        return l->grid[special - EMU_NCLUSTERID_X] / l->cluster[special - EMU_NCLUSTERID_X];
    case EMU_CLUSTER_CTAID_X:
    case EMU_CLUSTER_CTAID_Y:
    case EMU_CLUSTER_CTAID_Z:
        return w->block->id[special - EMU_CLUSTER_CTAID_X] % l->cluster[special - EMU_CLUSTER_CTAID_X];
    case EMU_CLUSTER_NCTAID_X:
    case EMU_CLUSTER_NCTAID_Y:
    case EMU_CLUSTER_NCTAID_Z:
        return l->cluster[special - EMU_CLUSTER_NCTAID_X];
    case EMU_CLUSTER_CTARANK:
        return w->block->rank;
    case EMU_CLUSTER_NCTARANK:
        return l->cluster_blocks;
    case EMU_IS_EXPLICIT_CLUSTER:
        return l->is_explicit_cluster;
    default:
        return 0;
    }
}

static uint64_t lane_special(const emu_warp *w, emu_special special, uint32_t lane)
{
    const uint32_t *block = w->block->launch->block;
    uint32_t thread = w->id * EMU_LANES + lane, bit = 1u << lane;
    switch (special) {
    case EMU_TID_X:
        return thread % block[0];
    case EMU_TID_Y:
        return thread / block[0] % block[1];
    case EMU_TID_Z:
        return thread / block[0] / block[1];
    case EMU_LANEID:
        return lane;
    case EMU_LANEMASK_EQ:
        return bit;
    case EMU_LANEMASK_LE:
        return bit | (bit - 1);
    case EMU_LANEMASK_LT:
        return bit - 1;
    case EMU_LANEMASK_GE:
        return ~(bit - 1);
    default:
        return ~(bit - 1) & ~bit;
    }
}

static bool differs_by_lane(emu_special special)
{
    return special <= EMU_TID_Z || special == EMU_LANEID ||
           (special >= EMU_LANEMASK_EQ && special <= EMU_LANEMASK_GT);
}

void emu_read_special(emu_warp *w, const emu_op *op, uint32_t mask)
{
    emu_special which = (emu_special)op->imm;
    unsigned bytes = emu_types[op->mods.type].bytes;
    bool varies = differs_by_lane(which);
    uint64_t uniform = varies ? 0 : uniform_special(w, which);
    char *d = LANES_OF(char, 0);
    if (op->mods.type == EMU_PRED) {
        emu_set_predicate(w, op->arg[0], mask, uniform ? EMU_ALL : 0);
        return;
    }
    ACTIVE_LANES(mask)
    {
        uint64_t value = varies ? lane_special(w, which, i) : uniform;
        memcpy(d + (size_t)i * bytes, &value, bytes);
    }
}
