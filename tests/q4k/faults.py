"""The mistakes that are planted in the Q4_K kernels, as edits of their PTX for sm_75; tests/faults plants
them."""
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
    ("bytes in the wrong order", WRONG, "prmt.b32 $a, $b, 0x4b000000, 29761;",
     "prmt.b32 $a, $b, 0x4b000000, 29762;", 16),
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
    ("stretches of one row fewer", UNWRITTEN, "sub.u32 $a, $b, 1; div.u32 $c, $a, $d;",
     "sub.u32 $a, $b, $d; div.u32 $c, $a, $d;", 1),
    ("last row of a stretch forgotten", UNWRITTEN, "min.u32 $a, $b, 256; div", "sub.u32 $a, $b, 1; div", 1),
    ("groups of three rows", UNWRITTEN, "mad.lo.u32 $a, $b, 2, $c; sub.u32 $d, $e, 1;",
     "mad.lo.u32 $a, $b, 3, $c; sub.u32 $d, $e, 1;", 1),
    ("a warp's last odd group forgotten", EITHER, "min.u32 $a, $b, 2; mad", "min.u32 $a, $b, 1; mad", 1),
    ("second row next to the first", WRONG, "add.u32 $a, $b, 2; mul.wide", "add.u32 $a, $b, 1; mul.wide", 1),
    ("a row that is not there copied", EITHER, "add.u32 $a, $b, 2; setp.lt.u32 $c, $a, $d;",
     "add.u32 $a, $b, 2; setp.le.u32 $c, $a, $d;", 3),
    ("rows 128 bytes apart per super-block", EITHER, "mul.lo.u64 $a, $b, 144;", "mul.lo.u64 $a, $b, 128;", 2),
    ("next group's rows 8 rows on", WRONG, "mul.wide.u32 $a, $b, 2304;", "mul.wide.u32 $a, $b, 1152;", 1),
    ("next group's rows a tile on", EITHER, "sub.u64 $a, $b, $c;", "sub.u64 $a, $b, $c; add.u64 $a, $a, 1152;", 1),
    ("sums of the second row with those of the first", EITHER, "div.u32 $a, $b, 16; mad.lo.u32 $c, $a, 2, $d;",
     "div.u32 $a, $b, 16; mad.lo.u32 $c, $a, 0, $d;", 1),

    # ---- which super-blocks -----------------------------------------------------------------------------------------
    ("one piece read beyond the row", EITHER, "selp.b32 $a, $b, 72, $c;",
     "selp.b32 $a, $b, 72, $c; add.u32 $a, $a, 1;", 2),
    ("last tile taken for a full one", EITHER, "selp.b32 $a, $b, 72, $c;", "mov.b32 $a, 72;", 2),
    ("a piece too few where lanes are one behind", EITHER, "and.b32 $a, $b, 1; sub.u32 $c, $d, $a; add.u32 $e, $c, 32;",
     "and.b32 $a, $b, 1; sub.u32 $c, $d, $a; add.u32 $e, $d, 32;", 1),
    ("tile's last pieces not copied", EITHER, "selp.b32 $a, $b, 72, $c;", "selp.b32 $a, $b, 71, $c;", 2),
    ("second row's tile over the first's", WRONG, "st.shared.v4.u32 [$a+1152], {$b, $c, $d, $e};",
     "st.shared.v4.u32 [$a], {$b, $c, $d, $e};", 2),
    ("always the same stage", EITHER, "sub.u32 $a, 2304, $a;", "", 1),
    ("barrier before the next copies left out", RACE, "bar.warp.sync 0xffffffff; add.u32 $a, $a, 8;",
     "add.u32 $a, $a, 8;", 1),

    # ---- norm -------------------------------------------------------------------------------------------------------
    ("eighth warp's squares left out", WRONG, "add.rn.f32 $a, $a, $b; div.rn.f32 $c, $a, $d; add",
     "div.rn.f32 $c, $a, $d; add", 1),
    ("sum for the mean", WRONG, "div.rn.f32 $a, $b, $c; add.rn.f32 $d, $a, $e; rsqrt",
     "mov.b32 $a, $b; add.rn.f32 $d, $a, $e; rsqrt", 1),
    ("epsilon left out", WRONG, "div.rn.f32 $a, $b, $c; add.rn.f32 $d, $a, $e; rsqrt",
     "div.rn.f32 $a, $b, $c; mov.b32 $d, $a; rsqrt", 1),
    ("barrier before the sums left out", RACE, "bar.sync 0; cvt.rn.f32.u32", "cvt.rn.f32.u32", 1),
    ("factor 0.4 % too small", WRONG, "rsqrt.approx.f32 $a, $b; mov",
     "rsqrt.approx.f32 $a, $b; mul.rn.f32 $a, $a, 0f3F7F0000; mov", 1),
    ("first element is the norm's factor", WRONG,
     "ld.global.nc.v4.f32 {$a, $b, $c, $d}, [$e]; mul.rn.f32 $f, $a, $g; mul",
     "ld.global.nc.v4.f32 {$a, $b, $c, $d}, [$e]; { .reg .pred %first; .reg .u32 %t; mov.u32 %t, %tid.x; "
     "setp.eq.u32 %first, %t, 0; @%first mov.b32 $a, $g; } mul.rn.f32 $f, $a, $g; mul", 1),
    ("infinite sums taken as they are", WRONG, "setp.gt.f32 $a, $b, 0f7F7FFFFF;", "setp.gt.f32 $a, $b, 0f7F800000;", 1),
    ("denormal sums taken as they are", WRONG, "setp.lt.f32 $a, $b, 0f0D800000;", "setp.lt.f32 $a, $b, 0f00000001;", 1),
    ("epsilon not raised with x", WRONG, "mul.rn.f32 $a, $b, $c; add.rn.f32 $d, $e, $a; rsqrt",
     "add.rn.f32 $d, $e, $b; rsqrt", 1),
    ("epsilon overflows where x is tiny", WRONG, "sqrt.approx.f32 $a, $b; max.f32",
     "mov.b32 $a, 0f00000000; max.f32", 1),
    ("largest numbers by 0", WRONG, "max.s32 $a, $b, 1;", "max.s32 $a, $b, 0;", 1),
    ("factor beyond f32", WRONG, "min.s32 $a, $b, 217;", "min.s32 $a, $b, 254;", 1),
    ("rest of the factor lost", WRONG, "st.shared.v2.f32 [$a+8], {$b, $c};", "st.shared.v2.f32 [$a+8], {$b, 0f3F800000};", 1),
    ("rest of a factor in reach", WRONG, "st.shared.f32 [$a+12], 0f3F800000;", "st.shared.f32 [$a+12], 0f40000000;", 1),
    ("barrier before the scaled factor left out", RACE, "bar.sync 0; ld.shared.f32 $a, [$b+8];", "ld.shared.f32 $a, [$b+8];",
     1),
    ("gamma of the neighbour", WRONG,
     "mul.rn.f32 $a, $b, $c; mul.rn.f32 $d, $a, $e; mul.rn.f32 $f, $g, $c; mul.rn.f32 $h, $f, $i;",
     "mul.rn.f32 $a, $b, $c; mul.rn.f32 $d, $a, $i; mul.rn.f32 $f, $g, $c; mul.rn.f32 $h, $f, $e;", 4),
    ("barrier before the first h left out", RACE, "bar.sync 0; mul.lo.u32", "mul.lo.u32", 1),

    # ---- scales and minima ------------------------------------------------------------------------------------------
    ("five bits for six", WRONG, "selp.b32 $a, 0x30303030, 0x3f3f3f3f, $b;",
     "selp.b32 $a, 0x30303030, 0x1f1f1f1f, $b;", 1),
    ("highest bit of late ones lost", WRONG, "selp.b32 $a, 0x30303030, 0x3f3f3f3f, $b;",
     "selp.b32 $a, 0x10101010, 0x3f3f3f3f, $b;", 1),
    ("late ones without their nibbles", WRONG, "selp.b32 $a, 0x0f0f0f0f, 0, $b;", "mov.b32 $a, 0;", 1),
    ("numbers of the neighbours", WRONG, "selp.b32 $a, 30258, 21520, $b;", "selp.b32 $a, 21520, 30258, $b;", 1),
    ("minima by the scales' nibbles", WRONG, "shr.u32 $a, $b, 4; prmt", "mov.b32 $a, $b; prmt", 2),
    ("minima added", WRONG, "mul.rn.f32 $a, $b, 0fCB000000; prmt",
     "mul.rn.f32 $a, $b, 0fCB000000; neg.f32 $b, $b; neg.f32 $a, $a; prmt", 2),
    ("odd sub-blocks by the even ones' scales", WRONG, "prmt.b32 $a, $b, 0x4b000000, 29761;",
     "prmt.b32 $a, $b, 0x4b000000, 29760;", 2),

    # ---- sums -------------------------------------------------------------------------------------------------------
    ("barrier before the stores left out", RACE, "bar.sync 0; mov.u32 $a, %tid.x; setp.lt",
     "mov.u32 $a, %tid.x; setp.lt", 1),
]

GEMV_EXACT = [
    ("sums of odd sub-blocks 31 numbers on", EITHER, "selp.b32 $a, 124, 0, $b;", "mov.b32 $a, 0;", 1),
    ("second byte's codes unscaled", WRONG, "mul.rn.f32 $a, $b, 0f3B800000;", "mov.b32 $a, $b;", 1),
    ("upper nibbles unscaled", WRONG, "selp.b32 $a, 0f3D800000, 0f3F800000, $b;", "mov.b32 $a, 0f3F800000;", 1),
    ("upper nibble of a byte masked as the lower", WRONG, "and.b32 $a, $b, 240;", "and.b32 $a, $b, 15;", 32),
    ("unit of sums one power too large", WRONG, "sub.s32 $a, 149, $b;", "sub.s32 $a, 150, $b;", 1),
    ("h raised too little for tiny ones", WRONG, "sub.s32 $a, 247, $b;", "sub.s32 $a, 127, $b;", 1),
    ("denormal codes flushed", WRONG, "fma.rn.f32 $a, $b, $c, $a;", "fma.rn.ftz.f32 $a, $b, $c, $a;", 140),
]

GEMV_Q8 = [
    ("scale by 128", WRONG, "div.rn.f32 $a, $b, 0f42FE0000;", "div.rn.f32 $a, $b, 0f43000000;", 1),
    ("codes truncated", WRONG, "cvt.rni.s32.f32 $a, $b;", "cvt.rzi.s32.f32 $a, $b;", 4),
    ("codes of half the range", WRONG, "div.full.f32 $a, 0f42FE0000, $b;", "div.full.f32 $a, 0f427C0000, $b;", 1),
    ("least scale too large", WRONG, "max.u32 $a, $b, 0x07800000;", "max.u32 $a, $b, 0x41000000;", 1),
    ("infinities hidden", WRONG, "max.u32 $a, $b, 0x07800000;", "max.u32 $a, $b, 0x07800000; min.u32 $a, $a, 0x7f7fffff;", 1),
    ("NaNs hidden", WRONG, "max.u32 $a, $b, 0x07800000;", "max.f32 $a, $b, 0f07800000;", 1),
    ("codes of W as signed numbers", WRONG, "dp4a.u32.s32", "dp4a.s32.s32", 32),
    ("codes of h as unsigned numbers", WRONG, "dp4a.u32.s32", "dp4a.u32.u32", 32),
    ("upper codes 16 times too large", WRONG, "selp.b32 $a, 0f3D800000, 0f3F800000, $b;", "mov.b32 $a, 0f3F800000;", 1),
    ("upper sub-block's numbers 24 bytes on", EITHER, "selp.b32 $a, 24, 0, $b;", "mov.b32 $a, 0;", 1),
]

KERNEL = "rmsnorm_q4k_gemv/norm=rms,x=f32,activation={},batch=1,y=f32,rows=2,chunk=65536"
FAULTS = {"q4k_dequantize/type=f32": DEQUANTIZE, "q4k_dequantize/type=f16": TO_F16, "q4k_dequantize/type=bf16": TO_BF16,
          KERNEL.format("exact"): GEMV + GEMV_EXACT, KERNEL.format("q8"): GEMV_Q8}
RUNS = [("", "sm_75", "sm_75", "--max-elements 60000")]
