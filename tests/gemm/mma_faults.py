"""The mistakes that are planted in nf4_gemm's kernels on tensor cores, as edits of their PTX for sm_80;
tests/faults plants them."""
from faults import EITHER, JOIN, MEMORY, RACE, TILES, UNWRITTEN, WRONG

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 $d, {$a, $b, $c, $e}, {$f, $g}, $h;"
SUM = "fma.rn.f32 $a, $b, $c, $a;"
CODES_COLUMN = "min.u32 $a, $b, $c; mul.wide.u32 $d, $a, $e; add.u64 $f, $d, %rd2;"
NEXT_COLUMN = "sub.u32 $c, %r2, 1; min.u32 $d, $a, $c; mul.wide.u32 $e, $d, $f; add"
SCALES_COLUMN = "min.u32 $a, $b, $c; add.u32 $d, $e, 0; shr"

NARROW = TILES + [
    # ---- which columns and blocks -----------------------------------------------------------------------------------
    ("column of codes that is not there", MEMORY, CODES_COLUMN,
     CODES_COLUMN.replace("min.u32 $a, $b, $c", "mov.b32 $a, $b"), 4),
    ("column of scales that is not there", MEMORY, SCALES_COLUMN,
     SCALES_COLUMN.replace("min.u32 $a, $b, $c", "mov.b32 $a, $b"), 1),
    ("a thread's second column of scales that is not there", MEMORY, "min.u32 $a, $b, 8;", "mov.b32 $a, 8;", 1),
    ("codes of the half as long column", EITHER, "shr.u32 $a, %r3, 1;", "shr.u32 $a, %r3, 2;", 1),
    ("second columns by the first's codes", WRONG, "add.u32 $a, $b, 8; " + NEXT_COLUMN, "add.u32 $a, $b, 0; " + NEXT_COLUMN, 1),
    ("fourth block's codes by the third's", WRONG, "v2.u32 $v, [$a+768];", "v2.u32 $v, [$a+512];", 4),
    ("next iteration's codes a block early", WRONG, "v2.u32 $v, [$a+1280];", "v2.u32 $v, [$a+1024];", 4),
    ("codes of iterations 31 blocks apart", EITHER, "add.u64 $a, $a, 1024;", "add.u64 $a, $a, 992;", 4),
    ("second block taken where it is not", EITHER, "sub.s32 $a, $b, 8;", "sub.s32 $a, $b, 7;", 1),
    ("last scale of a chunk not copied", WRONG, "setp.gt.s32 $p, $a, 0; selp.b32 $b, 4, 0, $p;",
     "setp.gt.s32 $p, $a, 1; selp.b32 $b, 4, 0, $p;", 1),
    ("scale behind the last copied", MEMORY, "sub.s32 $a, $b, 32; mad", "sub.s32 $a, $b, 31; mad", 1),

    # ---- copies -----------------------------------------------------------------------------------------------------
    ("barrier before an iteration left out", RACE, "cp.async.wait_group 0; bar.sync 0;", "cp.async.wait_group 0;", 1),
    ("copies not waited for", EITHER, "cp.async.wait_group 0; bar.sync 0;", "cp.async.wait_group 1; bar.sync 0;", 1),
    ("second eighth of the table not filled", EITHER, "st.shared.v4.u32 [$a+4096], $v;", "", 1),
    ("scales of the next eight columns", WRONG, "ld.shared.v4.f32 $v, [$a+2176];", "ld.shared.v4.f32 $v, [$a+4352];", 1),
    ("scales not in the order in which they are taken", WRONG, "mad.lo.u32 $a, $b, 4, $c; add.u32 $d, $a, $e;",
     "mad.lo.u32 $a, $c, 8, $b; add.u32 $d, $a, $e;", 1),
    ("second half of a block's A by the first", WRONG, "v4.u32 $v, [$a+1040];", "v4.u32 $v, [$a+1024];", 1),
    ("A of the iteration before", EITHER, "cp.async.cg.shared.global [$a], [$b+4096], 16, $c;",
     "cp.async.cg.shared.global [$a], [$b], 16, $c;", 1),
    ("places of A not exchanged", EITHER, "mad.lo.u32 $a, $b, 2, 4112; div", "mad.lo.u32 $a, $b, 2, 0; div", 1),

    # ---- products ---------------------------------------------------------------------------------------------------
    ("first byte of a word by the second", WRONG, "prmt.b32 $a, $b, 0, 17472;", "prmt.b32 $a, $b, 0, 17473;", 32),
    ("entry of the table 8 bytes off", EITHER, "mad.lo.u32 $a, $b, 128, $c; ld", "mad.lo.u32 $a, $b, 120, $c; ld", 128),
    ("columns g and g + 8 exchanged", WRONG, MMA, MMA.replace("{$a, $b, $c, $e}", "{$b, $a, $e, $c}"), 32),
    ("halves of k exchanged in the weights alone", WRONG, MMA, MMA.replace("{$a, $b, $c, $e}", "{$c, $e, $a, $b}"), 32),
    ("halves of k exchanged in A alone", WRONG, MMA, MMA.replace("{$f, $g}", "{$g, $f}"), 32),
    ("block's sums not added to those before", WRONG, SUM, "mul.rn.f32 $a, $b, $c;", 32),
    ("scale left out", WRONG, SUM, "add.rn.f32 $a, $a, $b;", 32),
    ("scale rounded to 8 bits", WRONG, SUM,
     "{ .reg .b32 %bits; .reg .f32 %short; mov.b32 %bits, $c; and.b32 %bits, %bits, 0xfffe0000; "
     "mov.b32 %short, %bits; fma.rn.f32 $a, $b, %short, $a; }", 32),

    # ---- sums and stores --------------------------------------------------------------------------------------------
    ("eighth warp's sums left out", WRONG, "ld.shared.f32 $a, [$d+8064]; " + JOIN, "mov.b32 $c, $b;", 1),
    ("barrier before the sums are added left out", RACE, "bar.sync 0; mov.b32 $a, 0f00000000; setp",
     "mov.b32 $a, 0f00000000; setp", 1),
    ("barrier before the sums are stored left out", RACE, "bar.sync 0; mad", "mad", 1),
    ("rows of sums exchanged", EITHER, "st.shared.f32 [$a+144], $b;", "st.shared.f32 [$a+288], $b;", 1),
    ("a column too many stored", MEMORY, "setp.lt.u32 $p, $a, %r2;", "setp.le.u32 $p, $a, %r2;", 1),
]

STAGED = [
    ("a stage too few waited for", EITHER, "cp.async.wait_group 2; bar.sync 0;", "cp.async.wait_group 3; bar.sync 0;", 4),
    ("barrier of a stage left out", RACE, "cp.async.wait_group 2; bar.sync 0; setp.gt", "cp.async.wait_group 2; setp.gt", 3),
    ("third stage read from the second's place", EITHER, "ld.shared.v4.u32 $v, [$a+16896];",
     "ld.shared.v4.u32 $v, [$a+8448];", 1),
    ("second eight rows by the first", WRONG, "ld.shared.v4.u32 $v, [$a+4224];", "ld.shared.v4.u32 $v, [$a];", 1),
    ("rows 8 to 15 not copied", EITHER, "add.u32 $a, $b, 8; setp.lt.u32 $p, $a, %r1; selp.b32 $c, 16, 0, $p;",
     "add.u32 $a, $b, 8; setp.lt.u32 $p, $a, %r1; selp.b32 $c, 0, 0, $p;", 1),
    ("row copied that is not there", MEMORY, "add.u32 $a, $b, 8; setp.lt.u32 $p, $a, %r1; selp.b32 $c, 16, 0, $p;",
     "add.u32 $a, $b, 8; setp.lt.u32 $p, $a, %r1; selp.b32 $c, 16, 16, $p;", 1),
    ("block of A behind K copied", MEMORY, "setp.gt.s32 $p, $a, 0; @!$p bra", "setp.ge.s32 $p, $a, 0; @!$p bra", 3),
]

SPLIT = [
    ("part's number ignored", EITHER, "mov.u32 $a, %ctaid.z; div", "mov.u32 $a, 0; div", 1),
    ("part's place ignored", UNWRITTEN, "mov.u32 $a, %ctaid.z; mul", "mov.u32 $a, 0; mul", 1),
    ("odd block of K forgotten", EITHER, "selp.b32 $a, 1, 0, $p; add", "selp.b32 $a, 0, 0, $p; add", 1),
    ("second part begins a block early", EITHER, "mad.lo.u32 $a, $b, $c, $d; setp.lt.u32 $p, $b, $e; selp",
     "mul.lo.u32 $a, $b, $c; setp.lt.u32 $p, $b, $e; selp", 1),
    ("first part to arrive taken for the last", EITHER, "setp.eq.u32 $p, $a, 1; and.pred",
     "setp.eq.u32 $p, $a, 0; and.pred", 1),
    ("second part left out", WRONG, "ld.global.cg.f32 $a, [$b+512]; add.rn.f32 $c, $c, $a;", "", 1),
    ("table at the wrong place of its 64 KB", EITHER, "and.b32 $a, $b, 0xffff0000;", "and.b32 $a, $b, 0xffffff00;", 1),
]

KERNEL = "nf4_gemm/a={},acc=f32,nibbles=low,strategy=mma,{},stages={},split_k={}"
FAULTS = {KERNEL.format("f16", "tile_m=1,tile_n=32,k_warps=8,table=compact", 2, 1): NARROW,
          KERNEL.format("bf16", "tile_m=16,tile_n=64,k_warps=4,table=compact", 4, 1): STAGED,
          KERNEL.format("bf16", "tile_m=4,tile_n=32,k_warps=8,table=aligned", 2, 2): SPLIT}
RUNS = [("", "sm_80", "sm_80", "--max-elements 25000")]
