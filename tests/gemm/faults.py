"""The mistakes that are planted in nf4_gemm's kernels on CUDA cores, as edits of their PTX for sm_75, with a
aligned table for sm_80; tests/faults plants them."""
WRONG = r"elements are wrong.*\bout\["
MEMORY = r"ILLEGAL_ADDRESS|outside"
RACE = r"LAUNCH_FAILED"
UNWRITTEN = f"{WRONG}|two runs differ|uninitialised"
EITHER = f"{UNWRITTEN}|{MEMORY}|{RACE}"

LOAD_M, LOAD_N, LOAD_K = (f"ld.param.u32 $a, [param_{name}];" for name in "mnk")
JOIN = "add.rn.f32 $c, $b, $a;"

# What all of them have: which tiles.
TILES = [
    ("thread block's column ignored", UNWRITTEN, "mov.u32 $a, %ctaid.x;", "mov.u32 $a, 0;", 1),
    ("thread block's row ignored", UNWRITTEN, "mov.u32 $a, %ctaid.y;", "mov.u32 $a, 0;", 1),
    ("n one too large", EITHER, LOAD_N, LOAD_N + " add.u32 $a, $a, 1;", 1),
    ("n one too small", UNWRITTEN, LOAD_N, LOAD_N + " sub.u32 $a, $a, 1;", 1),
    ("m one too small", EITHER, LOAD_M, LOAD_M + " sub.u32 $a, $a, 1;", 1),
    ("last block of K forgotten", EITHER, LOAD_K, LOAD_K + " sub.u32 $a, $a, 64;", 1),
]

NARROW = TILES + [
    ("tiles left out where a thread block has several", UNWRITTEN, "mov.u32 $a, %nctaid.x; mul.lo.u32 $b, $a, 16;",
     "mov.u32 $a, %nctaid.x; mul.lo.u32 $b, $a, 32;", 1),
    ("column of codes that is not there", MEMORY,
     "min.u32 $a, $b, $c; mul.wide.u32 $d, $a, $e; shl.b64 $f, $d, 2; add.u64 $g, $f, %rd2;",
     "mov.b32 $a, $b; mul.wide.u32 $d, $a, $e; shl.b64 $f, $d, 2; add.u64 $g, $f, %rd2;", 4),
    ("codes beyond K", MEMORY, "min.u32 $a, $b, $c; shr.u32 $d, $a, 3;", "mov.b32 $a, $b; shr.u32 $d, $a, 3;", 1),
    ("A beyond K", MEMORY, "setp.lt.u32 $p, $a, %r3; mov.b32", "setp.le.u32 $p, $a, %r3; mov.b32", 2),
    ("A's second half from the first's place", WRONG, "v4.f32 $v, [$a+512];", "v4.f32 $v, [$a];", 2),
    ("half a stretch taken for a whole one", MEMORY, "and.b32 $a, %r3, 0xffffff00;", "mov.b32 $a, %r3;", 1),

    # ---- decoding ---------------------------------------------------------------------------------------------------
    ("second half of the table not filled", RACE, "setp.lt.u32 $p, $a, 2048;", "setp.lt.u32 $p, $a, 1024;", 1),
    ("first byte of a word by the second", WRONG, "prmt.b32 $a, $b, 0, 17472;", "prmt.b32 $a, $b, 0, 17473;", 16),
    ("entry of the table 8 bytes off", EITHER, "mad.lo.u32 $a, $b, 128, $c; ld", "mad.lo.u32 $a, $b, 120, $c; ld", 64),

    # ---- scales -----------------------------------------------------------------------------------------------------
    ("scale by the lane, not by its block", EITHER, "shr.u32 $a, $b, 1; mad.lo.u32 $c, $a, 4, $d;",
     "mov.b32 $a, $b; mad.lo.u32 $c, $a, 4, $d;", 1),
    ("four scales beyond the column", EITHER, "shl.b32 $a, %r8, 2; setp.lt.u32 $p, $a, $b;",
     "shl.b32 $a, %r8, 2; setp.le.u32 $p, $a, $b;", 1),
    ("a scale beyond the column", MEMORY, "setp.lt.s32 $p, $a, $b; @$p ld", "setp.le.s32 $p, $a, $b; @$p ld", 4),
    ("what a stretch lacks is no number", WRONG, "mov.b32 $a, 0f00000000; mad.wide.s32",
     "mov.b32 $a, 0f7FC00000; mad.wide.s32", 4),
    ("second 8192 by the first's scales", EITHER, "mad.wide.u32 $a, $b, 4, $c; add.u32 $d, $e, 4; sub",
     "mov.b64 $a, $c; add.u32 $d, $e, 4; sub", 1),
    ("scale cut to eleven bits", WRONG, "ld.shared.f32 $a, [$b+2112];",
     "ld.shared.f32 $a, [$b+2112]; and.b32 $a, $a, 0xffffe000;", 1),
    ("aligned where half of the columns are not", r"MISALIGNED|aligned|" + EITHER, "and.b32 $a, $b, 15; setp.eq.u32",
     "and.b32 $a, $b, 7; setp.eq.u32", 1),

    # ---- sums -------------------------------------------------------------------------------------------------------
    ("every second warp's stretches twice", WRONG, "mad.lo.u32 $a, $b, 256, $c;", "mad.lo.u32 $a, $b, 512, $c;", 1),
    ("second turn of the warps left out", WRONG, "add.u32 $a, $a, 1024; setp.lt.u32 $p, $a, %r",
     "add.u32 $a, $a, 2048; setp.lt.u32 $p, $a, %r", 1),
    ("lanes 4 apart not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 4, 31, 0xffffffff; " + JOIN, "mov.b32 $c, $b;", 4),
    ("lanes 1 apart not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 1, 31, 0xffffffff; " + JOIN, "mov.b32 $c, $b;", 4),
    ("fourth warp left out", WRONG, "ld.shared.f32 $a, [$d+3456]; " + JOIN, "mov.b32 $c, $b;", 1),

    # ---- barriers ---------------------------------------------------------------------------------------------------
    ("barrier after the table and scales left out", RACE, "bar.sync 0; shl.b32", "shl.b32", 1),
    ("barrier before the next scales left out", RACE, "bar.sync 0; add.u32 $a, $a, 128;", "add.u32 $a, $a, 128;", 1),
    ("barrier before the warps' sums left out", RACE, "bar.sync 0; setp.lt.u32 $p, $a, 16;", "setp.lt.u32 $p, $a, 16;", 1),
    ("barrier before the next tile left out", RACE, "bar.sync 0; add.u32 $a, $a, $b;", "add.u32 $a, $a, $b;", 1),
    ("barrier after A is staged left out", RACE, "bar.warp.sync 0xffffffff; prmt", "prmt", 1),
    ("barrier before the next stage left out", RACE, "bar.warp.sync 0xffffffff; ld.shared.f32", "ld.shared.f32", 1),
]

WINDOW = [
    ("first byte of a word by the second", WRONG, "prmt.b32 $a, $b, $c, 30212;", "prmt.b32 $a, $b, $c, 30228;", 32),
    ("next entry of the table", EITHER, "ld.shared.v2.f32 $v, [$a+1024];", "ld.shared.v2.f32 $v, [$a+1280];", 128),
    ("table by entries of 128 bytes", EITHER, "mad.lo.u32 $a, $b, 128, $c; ld.global", "mov.b32 $a, $c; ld.global", 1),
]

WIDE = TILES + [
    ("m one too large", MEMORY, LOAD_M, LOAD_M + " add.u32 $a, $a, 1;", 1),
    ("row of A that is not there", MEMORY, "min.u32 $a, $b, $c; mul.wide.u32 $d, $a, %r3;",
     "mov.b32 $a, $b; mul.wide.u32 $d, $a, %r3;", 2),
    ("A's second half from the first's place", WRONG, "mad.lo.u32 $a, $b, 32, $c; add", "mov.b32 $a, $c; add", 1),
    ("last stage of A is the third's", WRONG, "[$a+96];", "[$a+64];", 2),
    ("eighth code by the first", WRONG, "shr.u32 $a, $b, 28;", "mov.b32 $a, $b;", 8),
    ("lane that holds no value", WRONG, "shr.u32 $a, $b, 4; shfl", "shr.u32 $a, $b, 5; shfl", 8),
    ("second 16 columns of weights 16 bytes early", EITHER, "[$a+1280], $v;", "[$a+1264], $v;", 5),
    ("scale of the turn's first block", EITHER, "mad.lo.u32 $a, $b, 4, $c; shl.b32 $d, $b, 6;",
     "mov.b32 $a, $c; shl.b32 $d, $b, 6;", 1),
    ("four scales beyond the column", EITHER, "setp.lt.u32 $p, $a, $b; @!$p bra IF_4_END;",
     "setp.le.u32 $p, $a, $b; @!$p bra IF_4_END;", 1),
    ("a scale before the column", EITHER, "setp.ge.s32 $p, $a, 0;", "setp.ge.s32 $p, $a, -1;", 2),
    ("warps on the same blocks", WRONG, "add.u32 $a, $b, %r8; shl.b32", "mov.b32 $a, $b; shl.b32", 1),
    ("second turn of the warps left out", WRONG, "add.u32 $a, $a, 8; setp.lt.u32", "add.u32 $a, $a, 16; setp.lt.u32", 1),
    ("row beyond C", MEMORY, "setp.lt.u32 $p, $a, %r1;", "setp.le.u32 $p, $a, %r1;", 2),
    ("column beyond C", EITHER, "and.pred $p, $q, $r; @$p st.global", "and.pred $p, $q, $q; @$p st.global", 2),
    ("sixth warp left out", WRONG, "ld.shared.f32 $a, [$d+12800]; " + JOIN, "mov.b32 $c, $b;", 1),
    ("barrier after the scales left out", RACE, "bar.sync 0; add.u32 $a, $b, 64; min", "add.u32 $a, $b, 64; min", 1),
    ("barrier before the sums left out", RACE, "bar.sync 0; add.u32 $a, $a, 64;", "add.u32 $a, $a, 64;", 1),
    ("barrier before the warps' sums left out", RACE, "bar.sync 0; and.b32", "and.b32", 1),
    ("barrier after a stage left out", RACE, "bar.warp.sync 0xffffffff; mov.b32 $a, 0;", "mov.b32 $a, 0;", 4),
    ("barrier before the next stage left out", RACE, "bar.warp.sync 0xffffffff; ld.global", "ld.global", 3),
]

SIMT = "nf4_gemm/a=f32,acc=f32,nibbles={},strategy=simt,tile_m={},tile_n={},k_warps={},table={},stages=2,split_k=1"
FAULTS = {SIMT.format("low", 1, 16, 4, "compact"): NARROW, SIMT.format("low", 1, 32, 8, "aligned"): WINDOW,
          SIMT.format("high", 16, 32, 8, "compact"): WIDE}
# sm_87 has few multiprocessors, so that thread blocks have several tiles, and shared memory for an aligned table.
RUNS = [("table=aligned", "sm_80", "sm_87", "--max-elements 25000"), ("", "sm_75", "sm_87", "--max-elements 25000")]
