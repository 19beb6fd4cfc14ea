/* Warp-level operations, against the ISA's text (9.7.9.6, 9.7.13.9 to 9.7.13.14): shfl in all modes with all segments,
   clamps and distances; vote, match, redux, elect and activemask on subsets of a warp. */
#include "emu_test.h"

#include <math.h>

enum { WARPS = 2048, LANES = 32 };

typedef struct lane_input {
    uint64_t a;
    uint32_t b, c, mask, unused;
} lane_input;

typedef struct lane_output {
    uint64_t d;
    uint32_t p, ran;
} lane_output;

typedef lane_output reference(const lane_input *warp, int lane);

typedef struct warp_case {
    const char
        *instruction; /* %d0 %r0 %f0: a; %r1 %r2: b, c; %r3: mask; %q0: bit 0 of a; results %d5, %r5, %q5 */
    char source; /* inputs of a warp: s: shuffles; other letters: member masks with values of this kind */
    reference *want;
} warp_case;

static bool is_member(const lane_input *warp, int lane)
{
    return warp[0].mask >> lane & 1;
}

/* The pseudocode of 9.7.9.6. */
static lane_output shuffled(const lane_input *warp, int lane, char mode)
{
    int bval = (int)(warp[lane].b & 31), cval = (int)(warp[lane].c & 31),
        segmask = (int)(warp[lane].c >> 8 & 31);
    int max_lane = (lane & segmask) | (cval & ~segmask), min_lane = lane & segmask, j = 0;
    bool p = false;
    switch (mode) {
    case 'u':
        j = lane - bval;
        p = j >= max_lane;
        break;
    case 'd':
        j = lane + bval;
        p = j <= max_lane;
        break;
    case 'b':
        j = lane ^ bval;
        p = j <= max_lane;
        break;
    default:
        j = min_lane | (bval & ~segmask);
        p = j <= max_lane;
    }
    return (lane_output){.d = (uint32_t)warp[p ? j : lane].a, .p = p};
}

#define SHUFFLE(name, mode)                                                                                  \
    static lane_output name(const lane_input *warp, int lane)                                                \
    {                                                                                                        \
        return shuffled(warp, lane, mode);                                                                   \
    }
SHUFFLE(shfl_up, 'u')
SHUFFLE(shfl_down, 'd')
SHUFFLE(shfl_bfly, 'b')
SHUFFLE(shfl_idx, 'i')

static uint32_t ballot_of(const lane_input *warp)
{
    uint32_t lanes = 0;
    for (int n = 0; n < LANES; n++)
        lanes |= is_member(warp, n) && (warp[n].a & 1) ? 1u << n : 0;
    return lanes;
}

#define VOTE(name, d_value, p_value)                                                                         \
    static lane_output name(const lane_input *warp, int lane)                                                \
    {                                                                                                        \
        uint32_t ballot = ballot_of(warp), mask = warp[0].mask;                                              \
        (void)mask;                                                                                          \
        (void)lane;                                                                                          \
        return (lane_output){.d = d_value, .p = p_value};                                                    \
    }
VOTE(vote_all, 0, ballot == mask)
VOTE(vote_any, 0, ballot != 0)
VOTE(vote_uni, 0, ballot == 0 || ballot == mask)
VOTE(vote_none, 0, ballot == 0)
VOTE(vote_ballot, ballot, 0)

static lane_output match_any(const lane_input *warp, int lane)
{
    lane_output r = {0};
    for (int n = 0; n < LANES; n++)
        r.d |= is_member(warp, n) && warp[n].a == warp[lane].a ? 1u << n : 0;
    return r;
}

static lane_output match_all(const lane_input *warp, int lane)
{
    bool all = match_any(warp, lane).d == warp[0].mask;
    return (lane_output){.d = all ? warp[0].mask : 0, .p = all};
}

#define REDUX(name, T, start, step)                                                                          \
    static lane_output name(const lane_input *warp, int lane)                                                \
    {                                                                                                        \
        T r = start;                                                                                         \
        (void)lane;                                                                                          \
        for (int n = 0; n < LANES; n++) {                                                                    \
            T x = (T)warp[n].a;                                                                              \
            r = is_member(warp, n) ? (T)(step) : r;                                                          \
        }                                                                                                    \
        return (lane_output){.d = (uint32_t)r};                                                              \
    }
REDUX(redux_add, uint32_t, 0, r + x)
REDUX(redux_min_u32, uint32_t, UINT32_MAX, x < r ? x : r)
REDUX(redux_max_u32, uint32_t, 0, x > r ? x : r)
REDUX(redux_min_s32, int32_t, INT32_MAX, x < r ? x : r)
REDUX(redux_max_s32, int32_t, INT32_MIN, x > r ? x : r)
REDUX(redux_and, uint32_t, UINT32_MAX, r &x)
REDUX(redux_or, uint32_t, 0, r | x)
REDUX(redux_xor, uint32_t, 0, r ^ x)

static float float_of(uint64_t bits)
{
    uint32_t u = (uint32_t)bits;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Zeros are ordered by sign. A NaN counts only with .NaN, or if all values are NaNs. */
static lane_output reduced_float(const lane_input *warp, bool is_max, bool magnitudes, bool propagates)
{
    float best = (float)NAN;
    bool has_nan = false;
    for (int n = 0; n < LANES; n++) {
        float x = float_of(warp[n].a);
        if (!is_member(warp, n))
            continue;
        x = magnitudes ? fabsf(x) : x;
        has_nan |= isnan(x);
        bool is_less = x < best || (x == best && signbit(x) && !signbit(best));
        bool is_more = x > best || (x == best && !signbit(x) && signbit(best));
        best = isnan(best) || (is_max ? is_more : is_less) ? x : best;
    }
    uint32_t bits;
    memcpy(&bits, &best, sizeof bits);
    return (lane_output){.d = isnan(best) || (has_nan && propagates) ? 0x7fffffff : bits};
}

#define REDUX_FLOAT(name, is_max, magnitudes, propagates)                                                    \
    static lane_output name(const lane_input *warp, int lane)                                                \
    {                                                                                                        \
        (void)lane;                                                                                          \
        return reduced_float(warp, is_max, magnitudes, propagates);                                          \
    }
REDUX_FLOAT(redux_min_f32, false, false, false)
REDUX_FLOAT(redux_max_f32, true, false, false)
REDUX_FLOAT(redux_min_abs, false, true, false)
REDUX_FLOAT(redux_max_abs_nan, true, true, true)
REDUX_FLOAT(redux_min_nan, false, false, true)

/* "Elects one predicated active leader thread from a set of threads": here the first one. */
static lane_output elected(const lane_input *warp, int lane)
{
    int leader = __builtin_ctz(warp[0].mask);
    return (lane_output){.d = (uint32_t)leader, .p = lane == leader};
}

static lane_output active(const lane_input *warp, int lane)
{
    (void)lane;
    return (lane_output){.d = warp[0].mask};
}

static const warp_case cases[] = {
    {"shfl.sync.up.b32 %r5|%q5, %r0, %r1, %r2, -1;", 's', shfl_up},
    {"shfl.sync.down.b32 %r5|%q5, %r0, %r1, %r2, %r3;", 's', shfl_down},
    {"shfl.sync.bfly.b32 %r5|%q5, %r0, %r1, %r2, 0xffffffff;", 's', shfl_bfly},
    {"shfl.sync.idx.b32 %r5|%q5, %r0, %r1, %r2, %r3;", 's', shfl_idx},
    {"vote.sync.all.pred %q5, %q0, %r3;", 'b', vote_all},
    {"vote.sync.any.pred %q5, %q0, %r3;", 'b', vote_any},
    {"vote.sync.uni.pred %q5, %q0, %r3;", 'b', vote_uni},
    {"vote.sync.all.pred %q5, !%q0, %r3;", 'b', vote_none},
    {"vote.sync.ballot.b32 %r5, %q0, %r3;", 'b', vote_ballot},
    {"match.any.sync.b32 %r5, %r0, %r3;", 'm', match_any},
    {"match.any.sync.b64 %r5, %d0, %r3;", 'w', match_any},
    {"match.all.sync.b32 %r5|%q5, %r0, %r3;", 'm', match_all},
    {"match.all.sync.b64 %r5|%q5, %d0, %r3;", 'w', match_all},
    {"match.all.sync.b64 _|%q5, %d0, %r3; match.all.sync.b64 %r5, %d0, %r3;", 'w', match_all},
    {"redux.sync.add.u32 %r5, %r0, %r3;", 'r', redux_add},
    {"redux.sync.add.s32 %r5, %r0, %r3;", 'r', redux_add},
    {"redux.sync.min.u32 %r5, %r0, %r3;", 'r', redux_min_u32},
    {"redux.sync.max.u32 %r5, %r0, %r3;", 'r', redux_max_u32},
    {"redux.sync.min.s32 %r5, %r0, %r3;", 'r', redux_min_s32},
    {"redux.sync.max.s32 %r5, %r0, %r3;", 'r', redux_max_s32},
    {"redux.sync.and.b32 %r5, %r0, %r3;", 'r', redux_and},
    {"redux.sync.or.b32 %r5, %r0, %r3;", 'r', redux_or},
    {"redux.sync.xor.b32 %r5, %r0, %r3;", 'r', redux_xor},
    {"redux.sync.min.f32 %f5, %f0, %r3; mov.b32 %r5, %f5;", 'f', redux_min_f32},
    {"redux.sync.max.f32 %f5, %f0, %r3; mov.b32 %r5, %f5;", 'f', redux_max_f32},
    {"redux.sync.min.abs.f32 %f5, %f0, %r3; mov.b32 %r5, %f5;", 'f', redux_min_abs},
    {"redux.sync.max.abs.NaN.f32 %f5, %f0, %r3; mov.b32 %r5, %f5;", 'f', redux_max_abs_nan},
    {"redux.sync.min.NaN.f32 %f5, %f0, %r3; mov.b32 %r5, %f5;", 'f', redux_min_nan},
    {"elect.sync %r5|%q5, %r3;", 'r', elected},
    {"activemask.b32 %r5;", 'r', active},
};

static uint64_t value_for(char source, int warp, int lane)
{
    static const uint32_t floats[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                                      0x7fc00001, 1,          0x80000001, 0xbf800000};
    uint64_t r = random_bits();
    switch (source) {
    case 's':
        return (uint64_t)(warp * LANES + lane + 1);
    case 'b':
        return warp % 3 == 0 ? (uint64_t)(warp / 3 & 1) : r >> 9;
    case 'm':
        return warp % 4 ? r >> 20 & 3 : 7;
    case 'w': /* differences only in the upper half */
        return warp % 4 ? (r >> 20 & 3) << 40 | 5 : UINT64_C(7) << 33;
    case 'f':
        return warp % 2 ? floats[r >> 20 & 7] : r >> 13 & UINT32_MAX;
    default:
        return warp % 2 ? r >> 13 & UINT32_MAX : (uint64_t)(int64_t)((int)(r >> 20 & 15) - 8) & UINT32_MAX;
    }
}

/* Every segment mask and clamp with distances of 0 to 31, equal or different in the lanes. */
static void fill(lane_input *lanes, char source, int warp)
{
    uint32_t mask = (uint32_t)(random_bits() >> 11);
    for (int lane = 0; lane < LANES; lane++) {
        lane_input *in = &lanes[lane];
        *in = (lane_input){.a = value_for(source, warp, lane),
                           .mask = source == 's' || warp % 5 == 0 ? UINT32_MAX : mask};
        if (warp % 5 == 1)
            in->mask = 1u << warp / 5 % 32;
        if (source == 's') {
            in->mask = UINT32_MAX;
            in->b = (uint32_t)(warp % 3 ? warp / 3 : (int)(random_bits() >> 30));
            in->c = (uint32_t)(warp % 32 << 8 | warp / 32 % 32) | 0xffffe0e0;
        }
        in->mask = in->mask ? in->mask : 1;
    }
}

static const char *body_of(const char *instruction)
{
    static char body[2048];
    snprintf(
        body, sizeof body,
        ".reg .u64 %%p<4>; .reg .b64 %%d<6>; .reg .b32 %%r<12>; .reg .f32 %%f<6>; .reg .pred %%q<6>;\n"
        "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%r6, %%ctaid.x; mov.u32 %%r7, %%tid.x;\n"
        "mad.lo.u32 %%r8, %%r6, 256, %%r7; mad.wide.u32 %%p1, %%r8, 24, %%p1; mad.wide.u32 %%p0, %%r8, 16, "
        "%%p0;\n"
        "ld.global.b64 %%d0, [%%p1]; cvt.u32.u64 %%r0, %%d0; mov.b32 %%f0, %%r0; ld.global.b32 %%r1, "
        "[%%p1+8];\n"
        "ld.global.b32 %%r2, [%%p1+12]; ld.global.b32 %%r3, [%%p1+16]; and.b32 %%r9, %%r0, 1;\n"
        "setp.ne.u32 %%q0, %%r9, 0; mov.b64 %%d5, 0; mov.b32 %%r5, 0; setp.ne.u32 %%q5, 0, 0; mov.u32 %%r11, "
        "0;\n"
        "mov.u32 %%r10, %%laneid; shr.u32 %%r9, %%r3, %%r10; and.b32 %%r9, %%r9, 1; setp.eq.u32 %%q1, %%r9, "
        "0;\n"
        "@%%q1 bra OUT; %s\nmov.u32 %%r11, 1;\n"
        "OUT: selp.u32 %%r10, 1, 0, %%q5; cvt.u64.u32 %%d5, %%r5; st.global.b64 [%%p0], %%d5;\n"
        "st.global.v2.b32 [%%p0+8], {%%r10, %%r11}; ret;",
        instruction);
    return body;
}

static void test_cases(void **state)
{
    (void)state;
    static lane_input in[WARPS][LANES];
    static lane_output out[WARPS][LANES];
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        for (int w = 0; w < WARPS; w++)
            fill(in[w], cases[n].source, w);
        run_body(".version 8.8\n.target sm_100a", body_of(cases[n].instruction), WARPS * LANES, in, sizeof in,
                 out, sizeof out);
        for (int w = 0; w < WARPS; w++)
            for (int lane = 0; lane < LANES; lane++) {
                lane_output want = {0}, got = out[w][lane];
                if (is_member(in[w], lane)) {
                    want = cases[n].want(in[w], lane);
                    want.ran = 1;
                }
                if (memcmp(&want, &got, sizeof got))
                    fail_msg("%s warp %d, lane %d of %08x: d %llx p %u, not %llx %u", cases[n].instruction, w,
                             lane, in[w][0].mask, (unsigned long long)got.d, got.p,
                             (unsigned long long)want.d, want.p);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, begin_100, end_context);
}
