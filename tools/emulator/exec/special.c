/* Names of the special registers: see special.h. Their values are made in move.c. */
#include "special.h"

#include <string.h>

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
    {"%cluster_ctarank", EMU_ZERO32, false},
    {"%cluster_nctarank", EMU_ONE32, false},
};

static bool is_zero_register(emu_text name)
{
    return (name.size > 7 && memcmp(name.at, "%envreg", 7) == 0) ||
           (name.size == 4 && memcmp(name.at, "%pm", 3) == 0 && name.at[3] >= '0' && name.at[3] <= '7');
}

bool emu_special_named(emu_text name, char element, emu_special *special)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (emu_text_is(name, table[i].name)) {
            if (table[i].has_elements != (element >= 'x' && element <= 'z'))
                return false;
            *special = table[i].special + (element ? (emu_special)(element - 'x') : 0);
            return true;
        }
    *special = EMU_ZERO32;
    return is_zero_register(name) && !element;
}

bool emu_special_is_refused(emu_text name)
{
    static const char *const names[] = {
        "%is_explicit_cluster",   "%clusterid",      "%nclusterid",
        "%cluster_ctaid",         "%cluster_nctaid", "%reserved_smem_offset_0",
        "%reserved_smem_offset_1"};
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
    default:
        return EMU_U32;
    }
}
