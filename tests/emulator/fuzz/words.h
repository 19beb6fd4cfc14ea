/* Words that the mutator may exchange for each other, and edge values. */
#ifndef EMU_FUZZ_WORDS_H
#define EMU_FUZZ_WORDS_H

#include <stddef.h>

static const char *const families[] = {
    "add sub min max mul.lo mul.hi div rem sad",
    "add sub min max mul",
    "and or xor not cnot",
    "shl shr shr",
    "add sub addc subc",
    "mad madc fma",
    "abs neg not",
    "popc clz",
    "ex2 lg2 sin cos tanh rcp sqrt rsqrt",
    "div rcp sqrt",
    "ld ldu",
    "atom red",
    "add min max exch and or xor inc dec cas",
    "b16 u16 s16 f16 bf16",
    "b32 u32 s32 f32",
    "b64 u64 s64 f64",
    "f16x2 bf16x2 u16x2 s16x2 b32",
    "b8 u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64 f32 f64 f16 bf16",
    "f16 bf16 tf32 e4m3 e5m2 e2m1 e2m3 e3m2",
    "e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2 ue8m0x2 f16x2 bf16x2",
    "s8 u8 s4 u4 s2 u2",
    "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan",
    "rn rz rm rp rna",
    "rni rzi rmi rpi rn",
    "lo hi wide",
    "and or xor popc",
    "all any uni ballot",
    "up down bfly idx",
    "global shared shared::cta local const param",
    "global shared local",
    "shared shared::cta shared::cluster",
    "shared::cta shared::cluster",
    "1d 2d 3d 4d 5d",
    "fence commit_group wait_group",
    "dec inc",
    "add min max and or xor inc dec",
    "e4m3 e5m2 e2m1 e2m3 e3m2",
    "kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4",
    "scale_vec::1X scale_vec::2X scale_vec::4X",
    "ue8m0 ue4m3",
    "global_address rank box_dim global_dim global_stride element_stride elemtype interleave_layout swizzle_mode "
    "swizzle_atomicity fill_mode",
    "m64n8k8 m64n16k8 m64n24k8 m64n40k8",
    "m64n8k16 m64n16k16 m64n24k16 m64n40k16",
    "m64n8k32 m64n16k32 m64n24k32",
    "ca cg cs lu cv wb wt",
    "relaxed acquire release acq_rel weak volatile",
    "cta gpu sys cluster",
    "sync arrive red",
    "v2 v4 v8",
    "x1 x2 x4",
    "clamp wrap shiftamt",
    "f4e b4e rc8 ecl ecr rc16",
    "approx full rn",
    "row col",
    "m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64 m16n8k128 m16n8k256 m8n8k4 m8n8k16 m8n8k32 m8n8k128",
    "wait_group wait_all commit_group",
    "test_wait try_wait",
    "arrive arrive_drop expect_tx complete_tx",
    "finite infinite number notanumber normal subnormal",
    "%tid.x %tid.y %ntid.x %ctaid.x %nctaid.x %laneid %warpid %nwarpid %smid %nsmid %lanemask_eq "
    "%lanemask_lt "
    "%lanemask_ge %gridid %clock %dynamic_smem_size %total_smem_size %cluster_ctarank %cluster_nctarank %clusterid.x "
    "%cluster_ctaid.x",
    "bra bra.uni",
    "ret exit",
    NULL,
};

static const char modifiers[] =
    "ftz sat rn rz rm relaxed acquire release gpu cta sys volatile cc satfinite "
    "relu NaN abs xorsign nc cg v2 v4 v8 x2 x4 trans "
    "wide uni aligned noftz oob parity noinc noComplete approx full clamp wrap "
    "and or popc L2::cache_hint L1::evict_last "
    "L2::128B L1::no_allocate shared::cta b32 u64 f32 pred proxy sync "
    "shared::cluster multicast::cluster tile read cluster async expect_tx block_scale parity";

static const char integer_values[] =
    "0 1 -1 2 3 4 7 8 15 16 31 32 33 63 64 65 127 128 255 256 1024 4096 65535 65536 2147483647 "
    "-2147483648 4294967295 4294967296 0x1000080000 0x4000004000010000 0x8000002000010000 "
    "0xc000001000010000 0x0002000000000000 0x55 0xffffffff -9223372036854775808 9223372036854775807 "
    "18446744073709551615";
static const char single_values[] =
    "0f00000000 0f80000000 0f3F800000 0fBF800000 0f7F800000 0fFF800000 0f7FC00000 0f7F800001 "
    "0f00000001 0f807FFFFF 0f00800000 0f7F7FFFFF 0f4F000000 0fCF000001 0f5F000000 0f38800000 "
    "0f477FF000 0f43E00000";
static const char double_values[] =
    "0d0000000000000000 0d8000000000000000 0d3FF0000000000000 0d7FF0000000000000 0dFFF0000000000000 "
    "0d7FF8000000000001 0d0000000000000001 0d000FFFFFFFFFFFFF 0d7FEFFFFFFFFFFFFF 0d41DFFFFFFFC00000 "
    "0dC3E0000000000000 0d3690000000000000 0d47EFFFFFF0000000";

#endif
