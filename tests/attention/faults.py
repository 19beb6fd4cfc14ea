"""The mistakes that are planted in attention's kernels, as edits of their PTX for sm_75; tests/faults plants them."""
WRONG = r"elements are wrong.*\b(out|lse)\["
MEMORY = r"ILLEGAL_ADDRESS|outside"
RACE = r"LAUNCH_FAILED"
UNWRITTEN = f"{WRONG}|two runs differ|uninitialised"
EITHER = f"{UNWRITTEN}|{MEMORY}|{RACE}"

LOAD_KEYS = "ld.param.u32 $a, [param_k_length];"
LOAD_QUERIES = "ld.param.u32 $a, [param_q_length];"
FIRST_KEY = "max.u32 $a, $b, $c; sub.u32 $d, $a, $c; setp"
RAISE = "selp.b32 $a, 0f00000000, $b, $c; sub.rn.f32 $d, $e, $a; ex2.approx.ftz.f32 $f, $d;"
MASK = "selp.b32 $a, $a, 0fFF800000, $b;"
SHARE = "setp.eq.f32 $a, $b, 0f00000000; rcp.rn.f32 $c, $b; selp.b32 $d, 0f00000000, $c, $a;"
WEIGHT = "fma.rn.f32 $a, $b, $c, $d; ex2.approx.ftz.f32 $e, $a; add.rn.f32 $f, $f, $e;"
WEIGHED = "neg.f32 $a, $b; fma"
LOG = "lg2.approx.f32 $a, $b; add.rn.f32 $c, $a, $d; mul.rn.f32 $e, $c, 0f3F317218;"


PLACES = [
    ("thread block's tile ignored", UNWRITTEN, "mov.u32 $a, %ctaid.x;", "mov.u32 $a, 0;", 1),
    ("head ignored", EITHER, "mov.u32 $a, %ctaid.y;", "mov.u32 $a, 0;", 2),
    ("batch ignored", EITHER, "mov.u32 $a, %ctaid.z;", "mov.u32 $a, 0;", 2),
    ("one query too many", MEMORY, LOAD_QUERIES, LOAD_QUERIES + " add.u32 $a, $a, 1;", 1),
    ("last query left out", EITHER, LOAD_QUERIES, LOAD_QUERIES + " sub.u32 $a, $a, 1;", 1),
    ("one key too many", EITHER, LOAD_KEYS, LOAD_KEYS + " add.u32 $a, $a, 1;", 1),
]

UNPACKED = [
    ("each head of Q its own of K", EITHER, "div.u32 $a, $b, $c; div.u32 $d, $e, $a;", "mov.b32 $d, $e;", 1),
    ("heads of K and V by turns", WRONG, "div.u32 $a, $b, $c; div.u32 $d, $e, $a;", "rem.u32 $d, $e, $c;", 1),
    ("mask at the first key, as PyTorch's", EITHER, "add.u32 $a, $b, 1; add.u32 $c, $a, $d; sub.u32 $e, $c, $f;",
     "add.u32 $e, $b, 1;", 1),
    ("a query does not see its own key", WRONG, "add.u32 $a, $b, 1; add.u32 $c, $a, $d; sub.u32 $e, $c, $f;",
     "add.u32 $c, $b, $d; sub.u32 $e, $c, $f;", 1),
    ("logarithm of the next head's rows", EITHER, "mad.lo.u32 $a, $b, $c, $d; mul.wide.u32 $e, $a, $f;",
     "mad.lo.u32 $a, $b, $c, $d; add.u32 $a, $a, 1; mul.wide.u32 $e, $a, $f;", 1),
]

UNSPLIT = [
    ("a tile that all see by its first query is masked too late", WRONG, FIRST_KEY,
     "max.u32 $a, $b, $c; sub.u32 $d, $a, $c; add.u32 $d, $d, 1; setp", 1),
]


def softmax(rows, weights, kv_ends, raises, minus="neg.f32 $a, $b;"):
    """`rows` of a lane, `weights` of a tile, loads of K and V that may be behind the end, how often sums are scaled;
    where the largest score is made negative for the weights."""
    return [
        ("keys behind the last read", MEMORY, "@$p ld.global.nc.v4.u32", "ld.global.nc.v4.u32", kv_ends),
        ("no score masked", WRONG, MASK, "mov.b32 $a, $a;", weights),
        ("masked scores are 0", WRONG, MASK, "selp.b32 $a, $a, 0f00000000, $b;", weights),
        ("masked scores are -1e4", WRONG, MASK, "selp.b32 $a, $a, 0fC61C4000, $b;", weights),
        ("scale left out", WRONG, "mul.rn.f32 $a, $b, 0f3FB8AA3B;", "mov.b32 $a, 0f3FB8AA3B;", 1),
        ("base 2", WRONG, "mul.rn.f32 $a, $b, 0f3FB8AA3B;", "mov.b32 $a, $b;", 1),
        ("scale 0 not minded", WRONG, "selp.b32 $a, 0, $b, $c; mov", "mov.b32 $a, $b; mov", 1),
        ("a row of -inf subtracts -inf", WRONG, RAISE,
         RAISE.replace("selp.b32 $a, 0f00000000, $b, $c;", "mov.b32 $a, $b;"), raises),
        ("old sums not shrunk", WRONG, RAISE, RAISE + " mov.b32 $f, 0f3F800000;", raises),
        ("largest not subtracted", WRONG, minus, minus.replace("neg.f32 $a, $b", "mov.b32 $a, 0f00000000"), rows),
        ("weights a little too large", WRONG, WEIGHT,
         WEIGHT.replace("add", "fma.rn.f32 $e, $e, 0f3A800000, $e; add"), weights),
        ("rows without keys are NaN", WRONG, SHARE, "rcp.rn.f32 $d, $b;", rows),
        ("not divided by the sum", WRONG, SHARE, "mov.b32 $d, 0f3F800000;", rows),
        ("logarithm without the largest score", WRONG, LOG,
         LOG.replace("add.rn.f32 $c, $a, $d;", "mov.b32 $c, $a;"), rows),
        ("logarithm to base 2", WRONG, LOG, LOG.replace("mul.rn.f32 $e, $c, 0f3F317218;", "mov.b32 $e, $c;"), rows),
    ]


SIMT = PLACES + UNPACKED + UNSPLIT + softmax(rows=4, weights=8, kv_ends=3, raises=4) + [
    ("no barrier before the panels", RACE, "bar.sync 0; add.u32 $a, $b, 32; setp.le.u32 $c, $a, $d;",
     "add.u32 $a, $b, 32; setp.le.u32 $c, $a, $d;", 2),
    ("no barrier behind the panels", RACE, "bar.sync 0; mov.b32 $a, 0;", "mov.b32 $a, 0;", 1),
    ("lanes 8 apart not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 8, 31, 0xffffffff;", "mov.b32 $a, $b;", 8),
    ("the largest score of this tile alone", WRONG, "max.f32 $a, $a, $b;", "mov.b32 $a, $b;", 4),
    ("sum of the weights not shrunk", WRONG, "neg.f32 $a, $b; mul.rn.f32 $c, $c, $d;", "neg.f32 $a, $b;", 4),
    ("second keys by the first's row", WRONG, "+2304];", "];", 1),
]

MMA = PLACES + UNPACKED + UNSPLIT + softmax(rows=2, weights=16, kv_ends=8, raises=2, minus=WEIGHED) + [
    ("no barriers before V and the next K are copied", RACE, "bar.sync 0; add.u32 $a, $b, 32; setp.le.u32",
     "add.u32 $a, $b, 32; setp.le.u32", 2),
    ("lanes 2 apart not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 2, 31, 0xffffffff;", "mov.b32 $a, $b;", 4),
    ("sum of the weights not shrunk", WRONG, "ex2.approx.ftz.f32 $a, $b; mul.rn.f32 $c, $c, $a;",
     "ex2.approx.ftz.f32 $a, $b;", 2),
    ("the largest score of this tile alone", WRONG, "max.f32 $a, $a, $b; setp.eq", "mov.b32 $a, $b; setp.eq", 2),
    ("a grown largest score is not minded", WRONG, "add.rn.f32 $a, $b, 0f40000000;",
     "add.rn.f32 $a, $b, 0f43800000;", 2),
    ("the first row's growth alone is asked for", WRONG, "or.pred $a, $b, $c; vote.sync.any.pred $d, $a, 0xffffffff;",
     "vote.sync.any.pred $d, $b, 0xffffffff;", 1),
    ("tail of the rows of Q left out", WRONG, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {$a, $b}, [$c+32];",
     "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {$a, $b}, [$c];", 1),
    ("V not turned over", WRONG, ".x4.trans.", ".x4.", 3),
    ("weights of a pair exchanged", WRONG, "mov.b32 $a, {$b, $c}; fma", "mov.b32 $a, {$c, $b}; fma", 6),
    ("rows of O staged a row late", EITHER, "shr.u32 $a, $b, 2; and.b32 $c, $b, 3; mad",
     "shr.u32 $a, $b, 2; add.u32 $a, $a, 1; and.b32 $c, $b, 3; mad", 1),
]

SPLIT = PLACES + UNPACKED + softmax(rows=2, weights=16, kv_ends=8, raises=4, minus=WEIGHED) + [
    ("all parts take the first keys", WRONG, "rem.u32 $a, $b, 4;", "mov.b32 $a, 0;", 1),
    ("last keys in no part", WRONG, "add.u32 $a, $b, 127; div.u32 $c, $a, 128;", "div.u32 $c, $b, 128;", 1),
    ("a part goes on to the end", WRONG, "mul.lo.u32 $a, $b, $c; add.u32 $d, $a, $c; min.u32 $e, $f, $d;",
     "mul.lo.u32 $a, $b, $c; mov.b32 $e, $f;", 1),
    ("parts in one place", f"{WRONG}|{RACE}", "mul.lo.u32 $a, $b, 32; mad.wide.u32 $c, $a, 4, $d; mad",
     "mov.b32 $a, 0; mad.wide.u32 $c, $a, 4, $d; mad", 2),
    ("the first to arrive joins", EITHER, "setp.eq.u32 $a, $b, 3; @!$a", "setp.eq.u32 $a, $b, 0; @!$a", 1),
    ("no barrier before the arrival", RACE, "bar.sync 0; setp.eq.u32 $a, $b, 0;", "setp.eq.u32 $a, $b, 0;", 1),
    ("tile_counters not reset", r"elements are wrong.*\btile_counters\[", "inc.u32 $a, [$b], 3;", "inc.u32 $a, [$b], 9;", 1),
    ("last part left out", WRONG, "min.u32 $a, $b, 4;", "min.u32 $a, $b, 3;", 2),
    ("parts not scaled", WRONG, "ex2.approx.ftz.f32 $a, $b; mov.b32 $c, $d; mul.rn.f32 $e, $e, $f; fma",
     "mov.b32 $a, 0f3F800000; mov.b32 $c, $d; mul.rn.f32 $e, $e, $f; fma", 2),
    ("part without keys subtracts -inf", WRONG,
     "setp.eq.f32 $a, $b, 0fFF800000; selp.b32 $c, 0f00000000, $b, $a; sub.rn.f32 $d, $e, $c; "
     "ex2.approx.ftz.f32 $f, $d; sub", "mov.b32 $c, $b; sub.rn.f32 $d, $e, $c; ex2.approx.ftz.f32 $f, $d; sub", 2),
]

QUERY = "div.u32 $a, $b, $c; rem.u32 $d, $b, $c; mul.wide.u32"
PACKED = PLACES + UNSPLIT + softmax(rows=2, weights=16, kv_ends=12, raises=2, minus=WEIGHED) + [
    ("each head of K by the first heads of Q", EITHER, "div.u32 $a, $b, $c; mul.lo.u32 $d, $e, $a; mad",
     "div.u32 $a, $b, $c; mov.b32 $d, $e; mad", 1),
    ("the first head's queries alone", EITHER, "mul.lo.u32 $d, $c, $e; cvt", "mov.b32 $d, $c; cvt", 1),
    ("queries of a head in a row", EITHER, QUERY, "rem.u32 $a, $b, $c; div.u32 $d, $b, $c; mul.wide.u32", 11),
    ("all rows of one head", EITHER, QUERY, "div.u32 $a, $b, $c; mov.b32 $d, 0; mul.wide.u32", 11),
    ("all rows of one query", EITHER, QUERY, "mov.b32 $a, 0; rem.u32 $d, $b, $c; mul.wide.u32", 11),
    ("a row sees by its number", EITHER, "div.u32 $a, $b, $c; add.u32 $d, $a, 1;", "add.u32 $d, $b, 1;", 4),
]

SCALAR_KERNEL = "attention/type=f32,head_dim=16,causal=true,strategy=simt,tile_q=32,tile_k=32,split_k=1,pack_gqa=false"
MATRIX_KERNEL = "attention/type=f16,head_dim=24,causal=true,strategy=mma,tile_q=32,tile_k=32,split_k=1,pack_gqa=false"
SPLIT_KERNEL = MATRIX_KERNEL.replace("split_k=1", "split_k=4")
PACKED_KERNEL = "attention/type=f16,head_dim=40,causal=true,strategy=mma,tile_q=32,tile_k=32,split_k=1,pack_gqa=true"
FAULTS = {SCALAR_KERNEL: SIMT, MATRIX_KERNEL: MMA, SPLIT_KERNEL: SPLIT, PACKED_KERNEL: PACKED}
RUNS = [("", "sm_75", "sm_75", "--max-elements 10000 --inputs 8")]
TALLY = r".*"
