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
    {"cp", "im2col", NULL, .lacks = "a bulk copy with .im2col is"},
    {"cp", "tile::", NULL, .lacks = "a bulk copy with .tile::gather4 or .tile::scatter4 is"},
    {"cp", "cta_group", NULL, .lacks = "a bulk copy with .cta_group is"},
    {"cp", "cp_mask", NULL, .lacks = "a bulk copy with .cp_mask is"},
    {"st", "async", NULL, .lacks = "'st.async' is"},
    {"st", "bulk", NULL, .lacks = "'st.bulk' is"},
    {"red", "async", NULL, .lacks = "'red.async' is"},
    {"mma", "sp", NULL, .lacks = "'mma.sp' is"},
    {"ldmatrix", "m16n16", NULL, .lacks = "'ldmatrix.m16n16' is"},
    {"ldmatrix", "m8n16", NULL, .lacks = "'ldmatrix.m8n16' is"},
    {"stmatrix", "m16n8", NULL, .lacks = "'stmatrix.m16n8' is"},
    {"createpolicy", "range", NULL, .lacks = "'createpolicy.range' is"},
    {"cvt", "rs", NULL, .lacks = "'cvt.rs' is"},
    {"cvt", "s2f6x2", NULL, .lacks = "'cvt' with .s2f6x2 is"},
};

EXPORT_ROWS(emu_rows_lacking);
