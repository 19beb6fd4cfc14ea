/* Instructions of the ISA without a handler, so that a kernel that uses one is refused with its name. */
#include "exec.h"

#define LACKS(opcode, what)                                                                                  \
    {                                                                                                        \
        opcode, "", NULL, .lacks = what                                                                      \
    }
#define WHOLE(opcode)        LACKS(opcode, "'" opcode "' is")
#define VIDEO(opcode)        LACKS(opcode, "this video instruction is")
#define PACKED_VIDEO(opcode) VIDEO(opcode), VIDEO(opcode "2"), VIDEO(opcode "4")

static const emu_row rows[] = {
    {"wgmma", "b1", NULL, .lacks = "'wgmma' with .b1 is"},
    {"wgmma", "sp", NULL, .lacks = "'wgmma.mma_async.sp' is"},
    WHOLE("tcgen05"),
    WHOLE("multimem"),
    WHOLE("clusterlaunchcontrol"),
    WHOLE("tensormap"),
    WHOLE("wmma"),
    WHOLE("tex"),
    WHOLE("tld4"),
    WHOLE("txq"),
    WHOLE("istypep"),
    WHOLE("suld"),
    WHOLE("sust"),
    WHOLE("sured"),
    WHOLE("suq"),
    WHOLE("stacksave"),
    WHOLE("stackrestore"),
    WHOLE("alloca"),
    PACKED_VIDEO("vadd"),
    PACKED_VIDEO("vsub"),
    PACKED_VIDEO("vabsdiff"),
    PACKED_VIDEO("vmin"),
    PACKED_VIDEO("vmax"),
    PACKED_VIDEO("vset"),
    VIDEO("vshl"),
    VIDEO("vshr"),
    VIDEO("vmad"),
    VIDEO("vavrg2"),
    VIDEO("vavrg4"),
    LACKS("mapa", "'mapa' (clusters) is"),
    LACKS("getctarank", "'getctarank' (clusters) is"),
    {"fence", "tensormap::generic", NULL, .lacks = "'fence.proxy.tensormap' is"},
    {"fence", "sync_restrict::shared::", NULL, .lacks = "'fence' with .sync_restrict (clusters) is"},
    {"cvta", "shared::cluster", NULL, .lacks = "'cvta.shared::cluster' is"},
    {"isspacep", "shared::cluster", NULL, .lacks = "'isspacep.shared::cluster' is"},
    {"cp", "bulk", NULL, .lacks = "'cp.async.bulk' is"},
    {"cp", "reduce", NULL, .lacks = "'cp.reduce.async' is"},
    {"barrier", "cluster", NULL, .lacks = "'barrier.cluster' is"},
    {"st", "async", NULL, .lacks = "'st.async' is"},
    {"st", "bulk", NULL, .lacks = "'st.bulk' is"},
    {"red", "async", NULL, .lacks = "'red.async' is"},
    {"mma", "sp", NULL, .lacks = "'mma.sp' is"},
    {"mma", "block_scale", NULL, .lacks = "'mma' with .block_scale is"},
    {"ldmatrix", "m16n16", NULL, .lacks = "'ldmatrix.m16n16' is"},
    {"ldmatrix", "m8n16", NULL, .lacks = "'ldmatrix.m8n16' is"},
    {"stmatrix", "m16n8", NULL, .lacks = "'stmatrix.m16n8' is"},
    {"cvt", "rs", NULL, .lacks = "'cvt.rs' is"},
    {"cvt", "s2f6x2", NULL, .lacks = "'cvt' with .s2f6x2 is"},
};

EXPORT_ROWS(emu_rows_lacking);
