/* All rows of one level. List new files of handlers here and in CMakeLists.txt. */
#include "exec.h"

#define TABLES(X)                                                                                            \
    X(integer)                                                                                               \
    X(bits)                                                                                                  \
    X(float)                                                                                                 \
    X(half)                                                                                                  \
    X(math)                                                                                                  \
    X(compare)                                                                                               \
    X(move)                                                                                                  \
    X(memory)                                                                                                \
    X(atomic)                                                                                                \
    X(warp)                                                                                                  \
    X(control)                                                                                               \
    X(barrier)                                                                                               \
    X(async)                                                                                                 \
    X(bulk)                                                                                                  \
    X(remote)                                                                                                \
    X(tensormap)                                                                                             \
    X(mma)                                                                                                   \
    X(wgmma)                                                                                                 \
    X(convert)                                                                                               \
    X(lacking)

#define DECLARE(name) extern const emu_rows EMU_LEVEL_NAME(emu_rows_##name);
#define ADDRESS(name) &EMU_LEVEL_NAME(emu_rows_##name),

TABLES(DECLARE)

extern const emu_micro EMU_LEVEL_NAME(emu_micro_move);
extern const emu_control EMU_LEVEL_NAME(emu_control);

static const emu_rows *const tables[] = {TABLES(ADDRESS)};

extern const emu_level EMU_LEVEL_NAME(emu_level);
const emu_level EMU_LEVEL_NAME(emu_level) = {tables, sizeof tables / sizeof *tables,
                                             &EMU_LEVEL_NAME(emu_micro_move), &EMU_LEVEL_NAME(emu_control)};
