"""The mistakes that are planted in nvfp4_gemv, as edits of its PTX for sm_75, of strategy mma for sm_80, of what decodes by
hardware for sm_100f; tests/faults plants them."""
WRONG = r"elements are wrong.*\bout\["
MEMORY = r"ILLEGAL_ADDRESS|outside"
CHECK = r"LAUNCH_FAILED"  # what the checks find while it runs: races, reads of what nobody wrote
UNWRITTEN = f"{WRONG}|two runs differ|uninitialised"
EITHER = f"{UNWRITTEN}|{MEMORY}|{CHECK}"

# f32, four rows per warp, 32 codes per lane
FOUR_ROWS = [
    # ---- which rows, which vector -----------------------------------------------------------------------------------
    ("every thread block makes the first rows", UNWRITTEN, "mov.u32 $a, %ctaid.x;", "mov.u32 $a, 0;", 1),
    ("vectors behind the grid's left out", UNWRITTEN, "mov.u32 $a, %nctaid.y;", "mov.u32 $a, 0x7fffffff;", 1),
    ("thread blocks 31 rows apart", UNWRITTEN, "mul.lo.u32 $a, $b, 32; mad", "mul.lo.u32 $a, $b, 31; mad", 1),
    ("warps three rows apart", UNWRITTEN, "mad.lo.u32 $a, $b, 4, $c; sub", "mad.lo.u32 $a, $b, 3, $c; sub", 1),
    ("rows behind the last read", MEMORY, "min.u32 $a, $b, $c; cvt.u64.u32", "mov.u32 $a, $b; cvt.u64.u32", 4),
    ("row behind the last written", MEMORY, "setp.lt.u32 $a, $b, $c; and.pred", "setp.le.u32 $a, $b, $c; and.pred", 1),
    ("last row not written", UNWRITTEN, "setp.lt.u32 $a, $b, $c; and.pred",
     "add.u32 $b, $b, 1; setp.lt.u32 $a, $b, $c; and.pred", 1),
    ("every vector is the first matrix's", EITHER, "mul.wide.u32 $a, $b, $c; mul.lo.u64", "mov.u64 $a, 0; mul.lo.u64", 1),
    ("b padded to 64 rows", EITHER, "selp.b32 $a, 128, $b, $c;", "selp.b32 $a, 64, $b, $c;", 1),
    ("padding of b left out", EITHER, "mul.wide.u32 $a, $b, $c; mul.lo.u64 $d, $a, $e;",
     "cvt.u64.u32 $a, $b; mul.lo.u64 $d, $a, $e;", 1),
    ("fourth row by the third's codes", WRONG, "add.u32 $a, $b, 3; min", "add.u32 $a, $b, 2; min", 1),
    ("scales of every second block", EITHER, "shr.u64 $a, $b, 3;", "shr.u64 $a, $b, 2;", 5),

    # ---- which codes ------------------------------------------------------------------------------------------------
    ("last step forgotten", WRONG, "add.u32 $a, $b, 1023;", "mov.u32 $a, $b;", 1),
    ("codes behind the end read", f"{MEMORY}|{WRONG}", "min.u32 $a, $b, $c; mad", "mov.u32 $a, $b; mad", 2),
    ("end multiplied more than once", WRONG, "selp.b32 $a, $b, 0, $c;", "mov.b32 $a, $b;", 1),
    ("half of the lanes have no scale", WRONG, "setp.le.u32 $a, $b, $c; selp", "setp.lt.u32 $a, $b, $c; selp", 1),
    ("second chunk is the first's codes", WRONG, "shr.u32 $a, $b, 5; add.u32 $c, $a, $d;",
     "mov.u32 $a, 0; add.u32 $c, $a, $d;", 1),
    ("chunks of 16383", EITHER, "min.u32 $a, $b, 16384;", "min.u32 $a, $b, 15360;", 1),
    ("barrier before the products left out", f"{CHECK}|{WRONG}", "bar.sync 0; mov", "mov", 1),
    ("barrier after the products left out", f"{CHECK}|{WRONG}", "bar.sync 0; add", "add", 1),
    ("second half of b by the first's", WRONG, "ld.shared.v4.u32 $a, [$b+512];", "ld.shared.v4.u32 $a, [$b];", 1),
    ("steps of b 1024 bytes apart", EITHER, "mad.lo.u32 $a, $b, 1152, $c; ld", "mad.lo.u32 $a, $b, 1024, $c; ld", 1),

    # ---- codes ------------------------------------------------------------------------------------------------------
    ("1.5 is 1", WRONG, "prmt.b32 $a, 0x03020100,", "prmt.b32 $a, 0x02020100,", 80),
    ("6 is 8", WRONG, "0x0c080604, $a;", "0x10080604, $a;", 80),
    ("a's signs lost", WRONG, "sub.s32 $a, $b, $c;", "add.s32 $a, $b, $c;", 8),
    ("b's signs lost", WRONG, "sub.u32 $a, $b, $c; xor.b32 $d, $a, 0x80808080;",
     "add.u32 $a, $b, $c; xor.b32 $d, $a, 0x80808080;", 8),
    ("b's bytes borrow", WRONG, "or.b32 $a, $b, 0x80808080; sub", "mov.b32 $a, $b; sub", 8),
    ("high codes by the low ones", WRONG, "shr.u32 $a, $b, 16; shr.u32 $c, $d, 16; prmt", "mov.b32 $a, $b; mov.b32 $c, $d; prmt", 20),
    ("second sum starts with the first", WRONG, "dp4a.u32.s32 $a, $b, $c, 0; dp4a.u32.s32 $d, $e, $c, 0;",
     "dp4a.u32.s32 $a, $b, $c, 0; dp4a.u32.s32 $d, $e, $c, $a;", 8),

    # ---- scales -----------------------------------------------------------------------------------------------------
    ("signs of scales lost", WRONG, "lop3.b32 $a, $b, 0x80008000, $c, 234;", "mov.b32 $a, $c;", 5),
    ("scales exchanged", WRONG, "prmt.b32 $a, $b, 0, 5124;", "prmt.b32 $a, $b, 0, 0x0414;", 5),
    ("scales without subnormals", WRONG, "and.b32 $a, $b, 0x3f803f80;", "and.b32 $a, $b, 0x3c003c00;", 5),
    ("factor of b's scales", WRONG, "mov.b32 $a, 0x74007400;", "mov.b32 $a, 0x78007800;", 1),
    ("NaN of a's scales is 480", WRONG, "or.b32 $a, $a, $b;", "", 4),
    ("448 is a NaN too", WRONG, "add.u32 $a, $b, 0x00800080;", "add.u32 $a, $b, 0x01000100;", 5),
    ("NaN of b's scales is 480", WRONG, "or.b32 $a, $b, $c; mad.lo", "mov.b32 $a, $b; mad.lo", 1),
    ("half-precision product overflows", WRONG, "mul.rn.f16x2 $a, $b, $c; mov.b32",
     "mul.rn.f16x2 $a, $b, $c; add.rn.f16x2 $a, $a, $a; mov.b32", 4),

    # ---- sums -------------------------------------------------------------------------------------------------------
    ("first block of a lane forgotten", WRONG, "fma.rn.f32 $a, $b, $c, $a; xor", "xor", 4),
    ("sums rounded to zero", WRONG, "fma.rn.f32 $a, $b, $c, $a;", "fma.rz.f32 $a, $b, $c, $a; and.b32 $a, $a, 0xffffff80;", 8),
    ("lanes 4 apart not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 4, 31, 0xffffffff;", "mov.b32 $a, 0f00000000;", 1),
    ("halves keep the wrong rows", WRONG, "setp.ne.u32 $a, $b, 0; selp.b32 $c, $d, $e, $a; selp",
     "setp.eq.u32 $a, $b, 0; selp.b32 $c, $d, $e, $a; selp", 2),
    ("sums begin with what was there", EITHER, "mov.b32 $a, 0f00000000; mov.b32 $b, 0; add", "mov.b32 $b, 0; add", 3),
]

# f32, eight warps for each row
EIGHT_WARPS = [
    ("warps take each other's steps", WRONG, "and.b32 $a, $b, 7; shr", "and.b32 $a, $b, 3; shr", 1),
    ("barrier before the warps' sums left out", f"{CHECK}|{WRONG}", "bar.sync 0; setp", "setp", 1),
    ("eighth warp's sum left out", WRONG, "ld.shared.f32 $a, [$b+28];", "mov.b32 $a, 0f00000000;", 1),
    ("warps' sums in one place", EITHER, "mad.lo.u32 $a, $b, 1, $c; mad", "mov.u32 $a, $c; mad", 1),
    ("turn of seven warps", WRONG, "add.u32 $a, $a, 8; setp.lt.u32 $b, $a, $c; @$b bra LOOP_8;",
     "add.u32 $a, $a, 7; setp.lt.u32 $b, $a, $c; @$b bra LOOP_8;", 1),
    ("a's steps rounded down to a turn", WRONG, "add.u32 $a, $b, 1023; shr", "add.u32 $a, $b, 0; shr", 1),
]

# bf16, 16 codes per lane
NARROW = [
    ("c rounded towards zero", WRONG, "add.u32 $a, $b, 32767;", "mov.u32 $a, $b;", 1),
    ("NaN rounded like a number", WRONG, "selp.b32 $a, $b, 0x7fff0000, $c;", "mov.b32 $a, $b;", 1),
    ("rows 16 codes too long", EITHER, "shr.u32 $a, $b, 4; sub.u32 $c, $a, 1;", "shr.u32 $a, $b, 4; mov.u32 $c, $a;", 1),
]

# f32, 16 rows per two warps, on tensor cores
MATRIX = [
    # ---- which rows, which codes ------------------------------------------------------------------------------------
    ("thread blocks 65 rows apart", UNWRITTEN, "mul.lo.u32 $a, $b, 64; mad", "mul.lo.u32 $a, $b, 65; mad", 1),
    ("lower rows by the upper ones' codes", WRONG, "add.u32 $a, $b, 8; min", "mov.u32 $a, $b; min", 1),
    ("rows behind the last read", MEMORY, "min.u32 $a, $b, $c; cvt.u64.u32", "mov.u32 $a, $b; cvt.u64.u32", 2),
    ("row behind the last written", MEMORY, "setp.lt.u32 $a, $b, $c; and.pred", "setp.le.u32 $a, $b, $c; and.pred", 1),
    ("lanes' chunks next to each other", EITHER, "mad.lo.u32 $a, $b, 8, $c; mul.wide.u32 $d, $a, 16;",
     "mad.lo.u32 $a, $b, 2, $c; mul.wide.u32 $d, $a, 16;", 1),
    ("scales of the other lanes", WRONG, "mul.wide.u32 $a, $b, 16; add", "mul.wide.u32 $a, $b, 0; add", 1),
    ("third step of a row by its second", WRONG, "v4.u32 $a, [$b+64];", "v4.u32 $a, [$b+32];", 2),
    ("super-steps of 480 codes", EITHER, "mad.wide.u32 $a, $b, 256, $c; ld", "mad.wide.u32 $a, $b, 240, $c; ld", 2),
    ("second warp on the first's steps", WRONG, "and.b32 $a, $b, 1; shr.u32 $c, $b, 1;", "mov.b32 $a, 0; shr.u32 $c, $b, 1;", 1),
    ("second chunk of b is the first", WRONG, "shr.u32 $a, $b, 9; shr", "mov.u32 $a, 0; shr", 1),

    # ---- b ----------------------------------------------------------------------------------------------------------
    ("b's chunk by the wrong super-step", EITHER, "mad.lo.u32 $a, $b, $c, $d; mad.lo.u32 $e, $b, $f, $g; mad",
     "mov.u32 $a, $d; mad.lo.u32 $e, $b, $f, $g; mad", 1),
    ("every lane owns its column's codes", WRONG, "selp.b32 $a, $b, $c, $d; selp.b32 $e, 1152, 0, $d;",
     "mov.b32 $a, $b; mov.b32 $e, 1152;", 2),
    ("no lane owns the second block", WRONG, "selp.b32 $a, $b, $c, $d; selp.b32 $e, 1152, 0, $d; mad",
     "mov.b32 $a, $c; mov.b32 $e, 0; mad", 1),
    ("zeros not written", CHECK, "@$p st.shared.v4.u32 [$a], {0, 0, 0, 0};", "", 1),
    ("zeros of half the lanes", CHECK, "setp.lt.u32 $a, $b, 32; mad", "setp.lt.u32 $a, $b, 16; mad", 1),
    ("barrier before the products left out", f"{CHECK}|{WRONG}", "bar.sync 0; shr", "shr", 1),
    ("barrier after the products left out", f"{CHECK}|{WRONG}", "bar.sync 0; add", "add", 1),
    ("negatives of b are b", WRONG, "sub.u32 $a, $b, $c; xor.b32 $d, $a, 0x80808080; xor",
     "add.u32 $a, $b, $c; xor.b32 $d, $a, 0x80808080; xor", 2),
    ("b's scales by the neighbour's", EITHER, "mad.lo.u32 $a, $b, 4, $c; add.u32 $d, $a, 1024;",
     "mad.lo.u32 $a, $b, 4, $c; add.u32 $d, $a, 1028;", 1),
    ("halves of b's super-steps 512 bytes apart", EITHER, "mad.lo.u32 $a, $b, 576, $c; mad.lo.u32 $d, $e, 16, $a; add",
     "mad.lo.u32 $a, $b, 512, $c; mad.lo.u32 $d, $e, 16, $a; add", 1),

    # ---- products ---------------------------------------------------------------------------------------------------
    ("6 is 8", WRONG, "0x0c080604, $a;", "0x10080604, $a;", 144),
    ("high codes by the low ones", WRONG, "shr.u32 $a, $b, 16; shr.u32 $c, $d, 16; prmt", "mov.b32 $a, $b; mov.b32 $c, $d; prmt", 36),
    ("half of the scales of a word", WRONG, "shl.b32 $a, $b, 4; setp", "mov.b32 $a, 0; setp", 1),
    ("NaN of a's scales is 480", WRONG, "add.u32 $a, $b, 0x00800080; or.b32 $c, $c, $a;", "", 8),
    ("products rounded down", WRONG, "fma.rn.f32 $a, $b, $c, $a;", "fma.rm.f32 $a, $b, $c, $a; and.b32 $a, $a, 0xffffff00;", 16),
    ("lanes of a row not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 2, 31, 0xffffffff;", "mov.b32 $a, 0f00000000;", 2),
    ("second warp's sum left out", WRONG, "ld.shared.f32 $a, [$b+64];", "mov.b32 $a, 0f00000000;", 1),
    ("eight rows in one place", EITHER, "mad.lo.u32 $a, $b, 16, $c; mad.lo.u32 $d, $a, 4, $e; mad",
     "mul.lo.u32 $a, $b, 16; mad.lo.u32 $d, $a, 4, $e; mad", 1),
]

# f32, four rows per warp, by the conversion
CONVERTED_ROWS = [
    ("second pair of a word by the first's", WRONG, "cvt.rn.f16x2.e2m1x2 $a, $b; cvt.rn.f16x2.e2m1x2 $c, $d; cvt",
     "cvt.rn.f16x2.e2m1x2 $a, $b; cvt.rn.f16x2.e2m1x2 $c, $b; cvt", 20),
    ("first pair of a block left out", WRONG, "mul.rn.f16x2 $a, $b, $c; fma.rn.f16x2 $d, $e, $f, $a;",
     "mul.rn.f16x2 $d, $e, $f;", 8),
    ("one half of a block's sum left out", WRONG, "fma.rn.f32.f16 $a, $b, $c, 0f00000000; fma.rn.f32.f16 $d, $e, $c, $a;",
     "fma.rn.f32.f16 $d, $e, $c, 0f00000000;", 8),
    ("block's sum rounded to f16", WRONG, "fma.rn.f32.f16 $a, $b, $c, $d; add.rn.f32 $e, $e, $a;",
     "fma.rn.f32.f16 $a, $b, $c, $d; and.b32 $a, $a, 0xffffe000; add.rn.f32 $e, $e, $a;", 8),
    ("sums not times 4", WRONG, "mul.rn.f32 $a, $b, 0f40800000;", "mov.b32 $a, $b;", 4),
    ("factor of b's scales", WRONG, "mov.b32 $a, 0x34003400;", "mov.b32 $a, 0x30003000;", 1),
    ("end multiplied more than once", WRONG, "selp.b16 $a, $b, 0, $c;", "mov.b16 $a, $b;", 1),
    ("half-precision product overflows", WRONG, "mul.rn.f16x2 $a, $b, $c; mov.b32",
     "mul.rn.f16x2 $a, $b, $c; add.rn.f16x2 $a, $a, $a; mov.b32", 4),
    ("third plane of b by the second's", WRONG, "ld.shared.v4.u32 $a, [$b+1024];", "ld.shared.v4.u32 $a, [$b+512];", 1),
]

# f32, 16 rows per eight warps, by the conversion, on tensor cores
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
CONVERTED_MATRIX = [
    ("first half of the products left out", WRONG, f"{MMA} $a, $b, $c, $d; {MMA} $e, $f, $g, $a;", f"{MMA} $e, $f, $g, $d;", 16),
    ("second half of a word by the first's b", WRONG, f"{MMA} $a, $b, $c, $d; {MMA} $e, $f, $g, $a;",
     f"{MMA} $a, $b, $c, $d; {MMA} $e, $f, $c, $a;", 16),
    ("second word of b by the first's", WRONG, "ld.shared.v4.b32 $a, [$b+128];", "ld.shared.v4.b32 $a, [$b];", 2),
    ("every lane owns its column's codes", WRONG, "selp.b32 $a, $b, $c, $d; selp.b32 $e, 1152, 0, $d;",
     "mov.b32 $a, $b; mov.b32 $e, 1152;", 2),
    ("zeros not written", CHECK, "@$p st.shared.v4.u32 [$a], {0, 0, 0, 0};", "", 1),
    ("half of the scales of a word", WRONG, "shr.u32 $a, $b, $c; cvt.u16.u32 $d, $a;", "cvt.u16.u32 $d, $b;", 8),
    ("sums not times 4", WRONG, "mul.rn.f32 $a, $b, 0f40800000;", "mov.b32 $a, $b;", 2),
    ("eighth warp's sum left out", WRONG, "ld.shared.f32 $a, [$b+448];", "mov.b32 $a, 0f00000000;", 1),
    ("barrier before the warps' sums left out", f"{CHECK}|{WRONG}", "bar.sync 0; setp", "setp", 1),
]

OF = "nvfp4_gemv/c={},decode={},strategy={},lane_codes={},rows={},k_warps={}"
FAULTS = {
    OF.format("f32", "software", "simt", 32, 4, 1): FOUR_ROWS,
    OF.format("f32", "software", "simt", 32, 1, 8): EIGHT_WARPS,
    OF.format("bf16", "software", "simt", 16, 1, 4): NARROW,
    OF.format("f32", "software", "mma", 32, 16, 2): MATRIX,
    OF.format("f32", "hardware", "simt", 32, 4, 1): CONVERTED_ROWS,
    OF.format("f32", "hardware", "mma", 32, 16, 8): CONVERTED_MATRIX,
}
OPTIONS = "--max-elements 60000 --inputs 2"
RUNS = [("decode=hardware", "sm_100f", "sm_100", OPTIONS), ("strategy=mma", "sm_80", "sm_80", OPTIONS),
        ("", "sm_75", "sm_75", OPTIONS)]
TALLY = r"strategy=\w+"
