"""The mistakes that are planted in the transposed NF4 products, as edits of their PTX for sm_75, bf16's and tf32's
for sm_80; tests/faults plants them."""
WRONG = r"elements are wrong.*\bout\["
MEMORY = r"ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|outside"
CHECK = r"LAUNCH_FAILED"  # what the checks find while it runs: races, reads of what nobody wrote
UNWRITTEN = f"{WRONG}|two runs differ|uninitialised"
EITHER = f"{UNWRITTEN}|{MEMORY}|{CHECK}"

# f32, one row, four parts of n
ONE_ROW = [
    # ---- which tile, which columns ----------------------------------------------------------------------------------
    ("every thread block makes the first tile", UNWRITTEN, "mov.u32 $a, %ctaid.x; mul.lo.u32 $b, $a, 512;",
     "mov.u32 $a, 0; mul.lo.u32 $b, $a, 512;", 2),
    ("every part is the first", EITHER, "mov.u32 $a, %ctaid.z;", "mov.u32 $a, 0;", 2),
    ("parts four warps apart", WRONG, "mad.lo.u32 $a, $b, 8, $c; mul.lo.u32 $d, $a, 16;",
     "mad.lo.u32 $a, $b, 4, $c; mul.lo.u32 $d, $a, 16;", 1),
    ("codes read behind the end of K", MEMORY, "min.u32 $a, $b, $c; shr.u32 $d, $a, 1;",
     "mov.u32 $a, $b; shr.u32 $d, $a, 1;", 1),
    ("columns read behind the last", MEMORY, "min.u32 $a, $b, $c; mad.wide.u32 $d, $a, $e, $f; ld.global.nc.L1",
     "mov.u32 $a, $b; mad.wide.u32 $d, $a, $e, $f; ld.global.nc.L1", 8),
    ("one column of A too many", f"{WRONG}|{MEMORY}", "setp.lt.u32 $a, $b, $c; mad.wide",
     "setp.le.u32 $a, $b, $c; mad.wide", 1),
    ("half of the columns' bytes", WRONG, "shr.u32 $a, $b, 1; shr.u32 $c, $b, 4;",
     "shr.u32 $a, $b, 2; shr.u32 $c, $b, 4;", 1),
    ("scales of 128", EITHER, "shr.u32 $a, $b, 1; shr.u32 $c, $b, 4;", "shr.u32 $a, $b, 1; shr.u32 $c, $b, 5;", 1),

    # ---- products ---------------------------------------------------------------------------------------------------
    ("all lanes by the first block's scale", WRONG, "shr.u32 $a, $b, 6;", "shr.u32 $a, $b, 9;", 1),
    ("scale left out", WRONG, "mul.rn.f32 $a, $b, $c; prmt", "mov.b32 $a, $b; prmt", 8),
    ("fourth column by the third's a", WRONG, "shfl.sync.idx.b32 $a, $b, 3, 4127, 0xffffffff;",
     "shfl.sync.idx.b32 $a, $b, 2, 4127, 0xffffffff;", 1),
    ("a of the other lanes' columns", WRONG, "mad.lo.u32 $a, $b, 2, $c; div.u32", "mul.lo.u32 $a, $b, 2; div.u32", 1),
    ("second byte decoded for the third", WRONG, "prmt.b32 $a, $b, 0, 17474;", "prmt.b32 $a, $b, 0, 17473;", 32),
    ("table's entries too near each other", WRONG, "mad.lo.u32 $a, $b, 128, $c;", "mad.lo.u32 $a, $b, 64, $c;", 128),
    ("end of the table not written", CHECK, "st.shared.v4.f32 [$a+28672], $v;",
     "st.shared.v4.f32 [$a+24576], $v;", 1),
    ("table read before it is there", CHECK, "bar.sync 0; mov.b32 $a, 0f00000000;", "mov.b32 $a, 0f00000000;", 1),

    # ---- sums -------------------------------------------------------------------------------------------------------
    ("sums written over a table in use", CHECK, "bar.sync 0; mad.lo.u32 $a, $b, 2, $c;", "mad.lo.u32 $a, $b, 2, $c;",
     1),
    ("sums read before they are there", CHECK, "bar.sync 0; div.u32 $a, $b, 32;", "div.u32 $a, $b, 32;", 1),
    ("units of lanes over each other", f"{UNWRITTEN}|{CHECK}", "st.shared.v4.f32 [$a+272], $v;",
     "st.shared.v4.f32 [$a+256], $v;", 1),
    ("last lanes' sums forgotten", WRONG, "ld.shared.f32 $a, [$b+32640];", "ld.shared.f32 $a, [$b+30464];", 1),
    ("one part fewer waited for", EITHER, "inc.u32 $a, [$b], 3;", "inc.u32 $a, [$b], 2;", 1),
    ("last part added twice over the third", WRONG, "ld.global.cg.v2.f32 $v, [$a+4096];",
     "ld.global.cg.v2.f32 $v, [$a+6144];", 1),
    ("parts kept in half their place", EITHER, "mul.lo.u32 $a, $b, 512; mad.wide.u32 $c, $a, 4, $d; st.global",
     "mul.lo.u32 $a, $b, 256; mad.wide.u32 $c, $a, 4, $d; st.global", 1),
    ("tiles of all rows share a counter", EITHER, "mad.lo.u32 $a, $b, $c, $d; mov.u32 $e, %ctaid.z;",
     "mov.u32 $a, $d; mov.u32 $e, %ctaid.z;", 1),
]

# f16, eight rows
EIGHT_ROWS = [
    ("rows of A read behind the last", MEMORY, "min.u32 $a, $b, $c; mul.wide.u32", "mov.u32 $a, $b; mul.wide.u32", 4),
    ("odd rows by the even ones' numbers", WRONG, "div.u32 $a, $b, 16; add.u32 $c, $a, $d;",
     "div.u32 $a, $b, 16; mov.u32 $c, $d;", 1),
    ("odd rows of the first column by the even ones'", WRONG, "shfl.sync.idx.b32 $a, $b, 16, 31, 0xffffffff;",
     "shfl.sync.idx.b32 $a, $b, 0, 31, 0xffffffff;", 4),
    ("rows stored behind the last", MEMORY, "setp.lt.u32 $a, $b, $c; and.pred", "setp.le.u32 $a, $b, $c; and.pred", 16),
    ("rounded to zero", WRONG, "cvt.rn.f16.f32", "cvt.rz.f16.f32", 16),
    ("second row on top of the first", UNWRITTEN, "add.u32 $a, $b, 1; mul.wide.u32 $c, $a, $d;",
     "add.u32 $a, $b, 0; mul.wide.u32 $c, $a, $d;", 1),
]

# f16 with mma, eight rows, two parts of n; products in f16
MATRIX = [
    ("columns of a pair exchanged", WRONG, "lop3.b32 $a, 0x0f0f0f0f, $b, $c, 202;",
     "lop3.b32 $a, 0x0f0f0f0f, $b, $c, 172;", 8),
    ("second column's codes left where they are", WRONG, "shl.b32 $a, $b, 4; shr.u32 $c, $d, 4; lop3",
     "mov.b32 $a, $b; shr.u32 $c, $d, 4; lop3", 4),
    ("scale's second part left out", WRONG, "mul.rn.f16x2 $a, $b, $c; fma", "mov.b32 $a, 0; fma", 32),
    ("buffers do not take turns", CHECK, "sub.u32 $a, 10112, $a;", "mov.b32 $a, 0;", 1),
    ("multiplied before all have stored", CHECK, "bar.sync 0; add.u32 $a, $b, 64; setp", "add.u32 $a, $b, 64; setp", 1),
    ("scales read behind the last column", MEMORY, "setp.lt.u32 $a, $b, $c; mov.b32 $d, 0f00000000;",
     "setp.le.u32 $a, $b, $c; mov.b32 $d, 0f00000000;", 4),
    ("codes not turned where they are read", WRONG, "xor.b32 $a, $b, $c; mul.lo.u32 $d, $a, 32; mad.lo.u32 $e, $f, 4, $d;",
     "mov.b32 $a, $b; mul.lo.u32 $d, $a, 32; mad.lo.u32 $e, $f, 4, $d;", 1),
    ("scales of other warps", EITHER, "mad.lo.u32 $a, $b, 144, $c; add.u32 $d, $a, $e; and.b32",
     "mad.lo.u32 $a, $b, 128, $c; add.u32 $d, $a, $e; and.b32", 1),
    ("rows of A too near each other", EITHER, "mad.lo.u32 $a, $b, 96, $c; add.u32 $d, $a, $e; mov.b32",
     "mad.lo.u32 $a, $b, 80, $c; add.u32 $d, $a, $e; mov.b32", 1),
    ("rows stored behind the last", MEMORY, "setp.lt.u32 $a, $b, $c; and.pred", "setp.le.u32 $a, $b, $c; and.pred", 2),
    ("k stored behind the last", MEMORY, "setp.lt.u32 $a, $b, $c; mad.lo.u32 $d, $e, 2, $f;",
     "setp.le.u32 $a, $b, $c; mad.lo.u32 $d, $e, 2, $f;", 1),
    ("one part of two waited for", EITHER, "inc.u32 $a, [$b], 1;", "inc.u32 $a, [$b], 0;", 1),
]

# bf16 with mma, eight rows, two parts of n, for sm_80
MATRIX_BF16 = [
    ("scale's second part left out", WRONG, "fma.rn.bf16x2 $a, $b, $c, $d; fma.rn.bf16x2 $e, $b, $f, $a;",
     "mov.b32 $a, $d; fma.rn.bf16x2 $e, $b, $f, $a;", 4),
    ("scale's first part left out", WRONG, "fma.rn.bf16x2 $a, $b, $c, $d; fma.rn.bf16x2 $e, $b, $f, $a;",
     "fma.rn.bf16x2 $e, $b, $c, $d;", 4),
]

# f16 with mma, eight rows, two parts of n, for sm_80; products in tf32
MATRIX_TF32 = [
    ("scale left out", WRONG, "mul.rn.f32 $a, $b, $c; cvt.rna", "mov.b32 $a, $b; cvt.rna", 8),
    ("a times its scale cut, not rounded", WRONG, "cvt.rna.tf32.f32 $a, $b;", "mov.b32 $a, $b;", 8),
    ("second k of a byte by the first's weight", WRONG, "cvt.f32.f16 $a, $b; cvt.f32.f16 $c, $d; mma",
     "cvt.f32.f16 $a, $b; cvt.f32.f16 $c, $b; mma", 16),
    ("sums of the total over each other", EITHER, "st.local.v4.f32 [$a+16], $v;", "st.local.v4.f32 [$a+32], $v;", 1),
    ("total so far not joined", WRONG, "setp.ge.u32 $a, $b, 2048;", "setp.lt.u32 $a, $b, 2048;", 1),
    ("total of the stages before the last ones", EITHER, "xor.b32 $a, $b, 2048; and.b32 $c, $a, 2048;",
     "xor.b32 $a, $b, 2048; and.b32 $c, $b, 2048;", 1),
    ("total left behind at the end", EITHER, "add.u32 $a, $b, 1984; setp.lt.u32 $c, $a, $d;",
     "add.u32 $a, $b, 1984; setp.gt.u32 $c, $a, $d;", 1),
]

SIMT = "nf4_gemm_transposed/a={},acc=f32,nibbles=low,strategy=simt,tile_m={},k_warps=8,split_k={},vector=1,table=compact,scales=any"
MMA = "nf4_gemm_transposed/a={},acc=f32,nibbles=low,strategy=mma,tile_m=8,k_warps=8,split_k=2,vector=1,table=compact,scales={}"
FAULTS = {
    SIMT.format("f32", 1, 4): ONE_ROW,
    SIMT.format("f16", 8, 1): EIGHT_ROWS,
    MMA.format("f16", "normal"): MATRIX,
    MMA.format("f16", "any"): MATRIX_TF32,
    MMA.format("bf16", "any"): MATRIX_BF16,
}
OPTIONS = "--max-elements 800000"
RUNS = [("a=bf16", "sm_80", "sm_80", OPTIONS), ("a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=8,k_warps=8,split_k=2,"
        "vector=1,table=compact,scales=any", "sm_80", "sm_80", OPTIONS), ("", "sm_75", "sm_75", OPTIONS)]
