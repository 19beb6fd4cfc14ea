/* See lanes.h. */
#include "lanes.h"

#include <string.h>

static void raise_to(uint32_t *to, uint32_t time)
{
    *to = *to < time ? time : *to;
}

void emu_lanes_meet(emu_race_lanes *l, uint32_t lanes, uint32_t time)
{
    uint32_t all[EMU_LANES] = {0};
    if (lanes == EMU_ALL) {
        raise_to(&l->all, time);
        return;
    }
    for (unsigned i = 0; i < EMU_LANES; i++)
        for (unsigned k = 0; (lanes >> i & 1) && k < EMU_LANES; k++)
            raise_to(&all[k], lanes >> k & 1 ? time : l->met[i][k]);
    for (unsigned i = 0; i < EMU_LANES; i++)
        if (lanes >> i & 1)
            memcpy(l->met[i], all, sizeof all);
}

void emu_lanes_release(emu_race_lanes *l, uint32_t lanes, uint32_t time, uint32_t step)
{
    unsigned n = (l->release_count + EMU_RELEASES - 1) % EMU_RELEASES;
    if (lanes == EMU_ALL || !l->release_count || l->releases[n].step != step) {
        n = l->release_count++ % EMU_RELEASES;
        memset(&l->releases[n], 0, sizeof l->releases[n]);
        l->releases[n].time = time;
        l->releases[n].step = step;
        l->releases[n].all = l->all;
    }
    if (lanes == EMU_ALL) {
        raise_to(&l->releases[n].all, time);
        return;
    }
    for (unsigned i = 0; i < EMU_LANES; i++)
        for (unsigned k = 0; (lanes >> i & 1) && k < EMU_LANES; k++)
            raise_to(&l->releases[n].lane[k], lanes >> k & 1 ? time : l->met[i][k]);
}

uint32_t emu_lanes_uncovered(const emu_race_lanes *l, uint32_t lanes, uint32_t time, uint32_t known)
{
    unsigned kept = l->release_count < EMU_RELEASES ? l->release_count : EMU_RELEASES;
    bool is_complete = l->release_count <= EMU_RELEASES;
    for (unsigned n = 0; n < kept; n++) {
        if (l->releases[n].time < time)
            is_complete = true; /* the releases that were dropped are older than the access */
        if (l->releases[n].time < time || l->releases[n].time > known)
            continue;
        if (l->releases[n].all >= time)
            return 0;
        for (unsigned k = 0; k < EMU_LANES; k++)
            if (l->releases[n].lane[k] >= time)
                lanes &= ~(1u << k);
    }
    return is_complete ? lanes : 0;
}
