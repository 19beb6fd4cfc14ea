#include "watch.h"
void emu_race_start(emu_block *b)
{
    (void)b;
}
void emu_race_free(emu_block *b)
{
    (void)b;
}
bool emu_race_access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                     const uint64_t at[EMU_LANES])
{
    (void)w;
    (void)op;
    (void)mask;
    (void)bytes;
    (void)writes;
    (void)at;
    return true;
}
void emu_race_fence(emu_warp *w, uint32_t mask, unsigned scope)
{
    (void)w;
    (void)mask;
    (void)scope;
}
void emu_race_launch_end(emu_launch *l)
{
    (void)l;
}
void emu_race_arrive(emu_warp *w, uint32_t *c)
{
    (void)w;
    (void)c;
}
void emu_race_leave(emu_warp *w, const uint32_t *c)
{
    (void)w;
    (void)c;
}
void emu_race_warp_sync(emu_warp *w, uint32_t l)
{
    (void)w;
    (void)l;
}
