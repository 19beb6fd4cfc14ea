/* Instructions of the ISA that are not emulated, so that a module that needs one is refused by name. */
#include "match.h"

static const struct {
    const char *opcode, *modifier; /* NULL: any */
    const char *what;
} refused[] = {
    {"wgmma", NULL, "'wgmma' is"},
    {"tcgen05", NULL, "'tcgen05' is"},
    {"multimem", NULL, "'multimem' is"},
    {"mapa", NULL, "'mapa' (clusters) is"},
    {"getctarank", NULL, "'getctarank' (clusters) is"},
    {"clusterlaunchcontrol", NULL, "'clusterlaunchcontrol' is"},
    {"tensormap", NULL, "'tensormap' is"},
    {"wmma", NULL, "'wmma' is"},
    {"tex", NULL, "'tex' is"},
    {"tld4", NULL, "'tld4' is"},
    {"txq", NULL, "'txq' is"},
    {"istypep", NULL, "'istypep' is"},
    {"suld", NULL, "'suld' is"},
    {"sust", NULL, "'sust' is"},
    {"sured", NULL, "'sured' is"},
    {"suq", NULL, "'suq' is"},
    {"stacksave", NULL, "'stacksave' is"},
    {"stackrestore", NULL, "'stackrestore' is"},
    {"alloca", NULL, "'alloca' is"},
    {"fence", "tensormap::generic", "'fence.proxy.tensormap' is"},
    {"fence", "sync_restrict::shared::cta", "'fence' with .sync_restrict (clusters) is"},
    {"fence", "sync_restrict::shared::cluster", "'fence' with .sync_restrict (clusters) is"},
    {"cvta", "shared::cluster", "'cvta.shared::cluster' is"},
    {"isspacep", "shared::cluster", "'isspacep.shared::cluster' is"},
    {"cp", "bulk", "'cp.async.bulk' is"},
    {"cp", "reduce", "'cp.reduce.async' is"},
    {"barrier", "cluster", "'barrier.cluster' is"},
    {"st", "async", "'st.async' is"},
    {"st", "bulk", "'st.bulk' is"},
    {"red", "async", "'red.async' is"},
    {"mma", "sp", "'mma.sp' is"},
    {"mma", "sp::ordered_metadata", "'mma.sp' is"},
    {"mma", "block_scale", "'mma' with .block_scale is"},
    {"ldmatrix", "m16n16", "'ldmatrix.m16n16' is"},
    {"ldmatrix", "m8n16", "'ldmatrix.m8n16' is"},
    {"stmatrix", "m16n8", "'stmatrix.m16n8' is"},
    {"cvt", "rs", "'cvt.rs' is"},
    {"cvt", "s2f6x2", "'cvt' with .s2f6x2 is"},
};

static const char *const video[] = {
    "vadd",  "vsub",  "vabsdiff", "vmin",      "vmax",      "vshl",  "vshr",  "vmad",
    "vset",  "vadd2", "vsub2",    "vavrg2",    "vabsdiff2", "vmin2", "vmax2", "vset2",
    "vadd4", "vsub4", "vavrg4",   "vabsdiff4", "vmin4",     "vmax4", "vset4",
};

const char *emu_refused(const emu_instruction *i)
{
    for (size_t n = 0; n < sizeof video / sizeof *video; n++)
        if (emu_text_is(i->opcode, video[n]))
            return "this video instruction is";
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++) {
        if (!emu_text_is(i->opcode, refused[n].opcode))
            continue;
        if (!refused[n].modifier)
            return refused[n].what;
        for (unsigned m = 0; m < i->modifier_count; m++)
            if (emu_text_is(i->modifiers[m], refused[n].modifier))
                return refused[n].what;
    }
    return NULL;
}
