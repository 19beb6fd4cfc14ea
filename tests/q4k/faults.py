"""The mistakes that are planted in the Q4_K kernels, as edits of their PTX for sm_75.

A row is (fault, what kiln-verify must say, PTX, PTX in its stead, how often the PTX occurs). In the PTX $a, $b, ... are
operands, and the same letter is the same operand.
"""
WRONG = r"elements are wrong.*\bout\["
MEMORY = r"ILLEGAL_ADDRESS|outside"
RACE = r"LAUNCH_FAILED"
UNWRITTEN = f"{WRONG}|two runs differ|uninitialised"
EITHER = f"{UNWRITTEN}|{MEMORY}|{RACE}"

LOAD_N = "ld.param.u64 $a, [param_n];"
HALVES = "mov.b32 {$a, $b}, $c; cvt.f32.f16 $d, $a; cvt.f32.f16 $e, $b;"

DEQUANTIZE = [
    # ---- which super-blocks -----------------------------------------------------------------------------------------
    ("thread block's number ignored", UNWRITTEN, "mov.u32 $a, %ctaid.x;", "mov.u32 $a, 0;", 1),
    ("eighth warp's tile skipped", UNWRITTEN, "mad.lo.u32 $a, $b, 8, $c;", "mad.lo.u32 $a, $b, 9, $c;", 1),
    ("last super-block forgotten", UNWRITTEN, LOAD_N, LOAD_N + " sub.u64 $a, $a, 256;", 1),
    ("one super-block too many", MEMORY, LOAD_N, LOAD_N + " add.u64 $a, $a, 256;", 1),
    ("tiles of seven", UNWRITTEN, "min.u64 $a, $b, 8;", "min.u64 $a, $b, 7;", 1),
    ("short tile taken for a full one", MEMORY, "setp.eq.u32 $a, $b, 8;", "setp.le.u32 $a, $b, 8;", 1),
    ("eighth super-block of a tile not stored", UNWRITTEN, "setp.gt.u32 $a, $b, 7;", "setp.gt.u32 $a, $b, 8;", 1),
    ("short tile's last word not read", WRONG, "setp.gt.s32 $a, $b, 32;", "setp.gt.s32 $a, $b, 33;", 1),
    ("one word read beyond the end", MEMORY, "setp.gt.s32 $a, $b, 32;", "setp.ge.s32 $a, $b, 32;", 1),
    ("second row read from the first's place", WRONG, "ld.global.nc.L1::no_allocate.u32 $a, [$b+128]; ld",
     "ld.global.nc.L1::no_allocate.u32 $a, [$b]; ld", 1),
    ("super-blocks 128 bytes apart", EITHER, "mul.lo.u64 $a, $b, 144;", "mul.lo.u64 $a, $b, 128;", 1),

    # ---- which words ------------------------------------------------------------------------------------------------
    ("codes of the seventh a word early", WRONG, "add.u32 $a, $b, 28; shfl", "add.u32 $a, $b, 27; shfl", 1),
    ("codes of the third from the wrong row", WRONG, "setp.ge.u32 $a, $b, 12;", "setp.gt.u32 $a, $b, 12;", 1),
    ("the sixth by the header of the fifth", WRONG, "add.u32 $a, $b, 20; and", "add.u32 $a, $b, 16; and", 1),
    ("header of the second from the first's row", WRONG, "setp.eq.u32 $a, $b, 1;", "setp.eq.u32 $a, $b, 9;", 1),
    ("bytes in the wrong order", WRONG, "prmt.b32 $a, $b, 0x4b000000, 29761;", "prmt.b32 $a, $b, 0x4b000000, 29762;", 16),
    ("high half of the codes over the low one", UNWRITTEN, "[$a+128], $v;", "[$a], $v;", 1),

    # ---- scales and minima ------------------------------------------------------------------------------------------
    ("five bits for six", WRONG, "and.b32 $a, $b, 0x3f3f3f3f;", "and.b32 $a, $b, 0x1f1f1f1f;", 2),
    ("highest bit of late ones lost", WRONG, "and.b32 $a, $b, 0x30303030;", "and.b32 $a, $b, 0x10101010;", 2),
    ("high bits of late ones left out", WRONG, "or.b32 $a, $b, $c;", "mov.b32 $a, $c;", 2),
    ("high bits of late ones one too low", WRONG, "shr.u32 $a, $b, 2; and.b32 $c, $a, 0x30303030;",
     "shr.u32 $a, $b, 3; and.b32 $c, $a, 0x30303030;", 2),
    ("late minima by the scales' nibbles", WRONG, "shl.b32 $a, $b, 4; shr.u32 $c, $d, 4;",
     "shl.b32 $a, $b, 4; mov.b32 $c, $d;", 1),
    ("odd sub-blocks by the even ones' numbers", WRONG, "bfe.u32 $a, $b, 8, 8;", "bfe.u32 $a, $b, 0, 8;", 2),
    ("d and dmin exchanged", WRONG, HALVES, "mov.b32 {$a, $b}, $c; cvt.f32.f16 $d, $b; cvt.f32.f16 $e, $a;", 1),
    ("d without its sign", WRONG, HALVES, HALVES + " abs.f32 $d, $d;", 1),
    ("minima added", WRONG, "neg.f32 $a, $b;", "mov.b32 $a, $b;", 1),
    ("minima left out", WRONG, "neg.f32 $a, $b;", "mov.b32 $a, 0f00000000;", 1),

    # ---- elements ---------------------------------------------------------------------------------------------------
    ("high nibbles by the low ones", WRONG, "shr.u32 $a, $b, 4; and.b32 $c, $a, 0x0f0f0f0f; shfl",
     "mov.b32 $a, $b; and.b32 $c, $a, 0x0f0f0f0f; shfl", 8),
    ("high codes of five bits", WRONG, "shr.u32 $a, $b, 4; and.b32 $c, $a, 0x0f0f0f0f; shfl",
     "shr.u32 $a, $b, 4; and.b32 $c, $a, 0x1f1f1f1f; shfl", 8),
    ("codes less 8, as in Q4_0", WRONG, "sub.rn.f32 $a, $b, 0f4B000000;", "sub.rn.f32 $a, $b, 0f4B000008;", 64),
    ("rounded towards zero", WRONG, "fma.rn.f32 $a, $b, $c, $d;", "fma.rz.f32 $a, $b, $c, $d;", 64),
    ("denormals flushed", WRONG, "fma.rn.f32 $a, $b, $c, $d;",
     "fma.rn.f32 $a, $b, $c, $d; { .reg .pred %tiny; .reg .f32 %size; abs.f32 %size, $a; "
     "setp.lt.f32 %tiny, %size, 0f38800000; @%tiny mov.b32 $a, 0f00000000; }", 64),
]

TO_F16 = [
    ("truncated", WRONG, "cvt.rn.f16.f32 $a, $b;", "cvt.rz.f16.f32 $a, $b;", 64),
    ("overflow to the largest number", WRONG, "cvt.rn.f16.f32 $a, $b;",
     "cvt.rn.f16.f32 $a, $b; { .reg .f32 %most; min.f32 %most, $b, 0f477FE000; cvt.rn.f16.f32 $a, %most; }", 64),
]

TO_BF16 = [
    ("truncated", WRONG, "add.u32 $a, $b, 32767;", "mov.b32 $a, $b;", 64),
    ("ties rounded up", WRONG, "bfe.u32 $a, $b, 16, 1;", "mov.b32 $a, 1;", 64),
    ("ties rounded down", WRONG, "bfe.u32 $a, $b, 16, 1;", "mov.b32 $a, 0;", 64),
]

GEMV = [
    # ---- which rows -------------------------------------------------------------------------------------------------
    ("thread block's number ignored", UNWRITTEN, "mov.u32 $a, %ctaid.x;", "mov.u32 $a, 0;", 1),
    ("groups of 17 rows", UNWRITTEN, "mul.lo.u32 $a, $b, 16; mul", "mul.lo.u32 $a, $b, 17; mul", 1),
    ("second pair of warps on the rows of the first", EITHER, "mad.lo.u32 $a, $b, 8, $c;", "mad.lo.u32 $a, $b, 0, $c;", 1),
    ("fourth row a row early", EITHER, "add.u32 $a, $b, 6;", "add.u32 $a, $b, 5;", 1),
    ("one row too many", MEMORY, "setp.lt.u32 $a, $b, $c; mul.wide", "setp.le.u32 $a, $b, $c; mul.wide", 4),
    ("rows 128 bytes apart per super-block", EITHER, "mul.lo.u64 $a, $b, 144;", "mul.lo.u64 $a, $b, 128;", 4),
    ("no row's tiles begin early, but they are read so", EITHER, "sub.u32 $a, $b, $c; mul.lo.u32 $d, $e, 9;",
     "mov.b32 $a, $b; mul.lo.u32 $d, $e, 9;", 1),

    # ---- which super-blocks -----------------------------------------------------------------------------------------
    ("one piece read beyond the row", EITHER, "setp.lt.u32 $a, $b, $c; and.pred $d, $a, $e; @$d ld",
     "setp.le.u32 $a, $b, $c; and.pred $d, $a, $e; @$d ld", 2),
    ("tile's last 128 bytes not read", WRONG, "setp.lt.u32 $a, $b, 8; and.pred", "setp.lt.u32 $a, $b, 0; and.pred", 1),
    ("seven super-blocks of a tile", WRONG, "min.u32 $a, $b, 8;", "min.u32 $a, $b, 7;", 1),
    ("a super-block that is not there taken too", EITHER, "selp.b32 $a, $b, 0, $c; sub", "mov.b32 $a, 0; sub", 1),
    ("barrier after the copies left out", RACE, "bar.warp.sync 0xffffffff; shr.u32 $a, $b, 2;", "shr.u32 $a, $b, 2;", 1),
    ("barrier before the next copies left out", RACE, "bar.warp.sync 0xffffffff; add", "add", 1),
    ("fourth row's codes by the third's", WRONG, "ld.shared.u32 $a, [$b+3472];", "ld.shared.u32 $a, [$b+2320];", 1),

    # ---- norm -------------------------------------------------------------------------------------------------------
    ("fourth warp's squares left out", WRONG, "add.rn.f32 $a, $a, $b; div.rn.f32", "div.rn.f32", 1),
    ("sum for the mean", WRONG, "div.rn.f32 $a, $b, $c;", "mov.b32 $a, $b;", 1),
    ("epsilon left out", WRONG, "add.rn.f32 $a, $b, $c; rsqrt", "mov.b32 $a, $b; rsqrt", 1),
    ("barrier before the sums left out", RACE, "bar.sync 0;", "", 1),
    ("factor 0.4 % too small", WRONG, "rsqrt.approx.f32 $a, $b;", "rsqrt.approx.f32 $a, $b; mul.rn.f32 $a, $a, 0f3F7F0000;",
     1),
    ("gamma of the neighbour", WRONG, "mul.rn.f32 $a, $b, $c; mul.rn.f32 $d, $a, $e; mul.rn.f32 $f, $g, $c; mul.rn.f32 $h, $f, $i;",
     "mul.rn.f32 $a, $b, $c; mul.rn.f32 $d, $a, $i; mul.rn.f32 $f, $g, $c; mul.rn.f32 $h, $f, $e;", 4),

    # ---- products ---------------------------------------------------------------------------------------------------
    ("minima by h's other half", WRONG, "add.rn.f32 $a, $b, $c; shfl.sync.idx", "mov.b32 $a, $b; shfl.sync.idx", 2),
    ("odd sub-blocks by the even elements", WRONG, "add.u32 $a, $b, 32; mad.wide", "mov.b32 $a, $b; mad.wide", 1),
    ("codes less 8, as in Q4_0", WRONG, "sub.rn.f32 $a, $b, 0f4B000000;", "sub.rn.f32 $a, $b, 0f4B000008;", 32),
    ("lanes 16 apart not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 16, 31, 0xffffffff;", "mov.b32 $a, $b;", 5),
    ("third row's sum not stored", UNWRITTEN, "@$p st.global.f32 [$a], $b; add.u32", "add.u32", 1),
]

GEMV_Q8 = [
    ("scale by 128", WRONG, "div.rn.f32 $a, $b, 0f42FE0000;", "div.rn.f32 $a, $b, 0f42000000;", 2),
    ("codes truncated", WRONG, "cvt.rni.s32.f32 $a, $b;", "cvt.rzi.s32.f32 $a, $b;", 8),
    ("codes of half the range", WRONG, "min.s32 $a, $b, 127;", "min.s32 $a, $b, 63;", 8),
    ("sign of the codes lost", WRONG, "max.s32 $a, $b, -127;", "max.s32 $a, $b, 0;", 8),
    ("codes as unsigned numbers", WRONG, "dp4a.u32.s32", "dp4a.u32.u32", 8),
]

KERNEL = "rmsnorm_q4k_gemv/norm=rms,x=f32,activation={},batch=1,y=f32"
FAULTS = {"q4k_dequantize/type=f32": DEQUANTIZE, "q4k_dequantize/type=f16": TO_F16, "q4k_dequantize/type=bf16": TO_BF16,
          KERNEL.format("exact"): GEMV, KERNEL.format("q8"): GEMV_Q8}
