/* For the check `lanes`: which accesses of a warp's lanes a release covers. A release covers its own lane's accesses, and those
   that other lanes executed before the warp-wide operation at which the lanes last met. A bar.warp.sync, a block or cluster
   barrier, shfl, vote, match, redux, elect, mma, wgmma, ldmatrix and stmatrix are such operations. Two simplifications may miss a
   race: a release counts as seen if a later one of its warp was; and only the last 16 releases of a warp are kept. */
#ifndef EMU_LANES_H
#define EMU_LANES_H

#include "../core/warp.h"

enum { EMU_RELEASES = 16 };

/* What one warp keeps. Zeros are valid: no lane has met another. */
typedef struct emu_race_lanes {
    uint32_t all; /* time of the last operation of the whole warp */
    /* [i][k]: time up to which lane k's accesses were executed before lane i's next one, if later than `all` */
    uint32_t met[EMU_LANES][EMU_LANES];
    /* A ring of releases. The accesses of all lanes are covered up to the time `all`, and those of lane k up to lane[k] if that
       is later. */
    struct {
        uint32_t time, step, all, lane[EMU_LANES];
    } releases[EMU_RELEASES];
    uint32_t release_count;
} emu_race_lanes;

/* The lanes execute a warp-wide operation at this time. */
void emu_lanes_meet(emu_race_lanes *l, uint32_t lanes, uint32_t time);
/* The lanes release at this time. Releases of single lanes in one step count as one. */
void emu_lanes_release(emu_race_lanes *l, uint32_t lanes, uint32_t time, uint32_t step);
/* Returns those of the lanes whose accesses at `time` no release up to the time `known` covers. */
uint32_t emu_lanes_uncovered(const emu_race_lanes *l, uint32_t lanes, uint32_t time, uint32_t known);

#endif
