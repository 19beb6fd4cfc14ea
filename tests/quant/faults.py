"""The mistakes that are planted in the quantisers, as edits of their PTX for sm_75; tests/faults plants them.

A row is (fault, what kiln-verify must say, PTX, PTX in its stead, {kernels: how often the PTX occurs}). Kernels are
"scale/pack sym/nf4 any": all combinations of those words, of type f32 in groups of 64 with the low nibble first unless
a word says otherwise; see kernel_id. At the end FAULTS and FAR have the rows by kernel.
"""
import itertools

WRONG = r"elements are wrong"
CODES = r"elements are wrong.*\bpacked\["
OUT = r"elements are wrong.*\bout\["
NUMBERS = r"elements are wrong.*\b(scale|zero)\["
FAR_AWAY = r"differs at byte|kernel failed"
RACE = r"LAUNCH_FAILED"
MEMORY = r"ILLEGAL_ADDRESS|outside"
EITHER = f"{WRONG}|{MEMORY}|LAUNCH_FAILED"
UNWRITTEN = f"{WRONG}|two runs differ|uninitialised"

ALL = "scale/pack/quantize/unpack sym/nf4"
TENSOR_IN = "scale/pack/quantize sym/nf4"


def expand(kernels):
    """"pack/unpack sym" is "pack sym" and "unpack sym"."""
    return [" ".join(words) for words in itertools.product(*(word.split("/") for word in kernels.split()))]


def kernel_id(words):
    """The variant that "pack asym any f16" is short for."""
    operation, coder, *rest = words.split()
    params = {"type": "f32", "mode": coder, "group": "64", "nibbles": "low"}
    for word in rest:
        params["group" if word == "any" else "nibbles" if word == "high" else "type"] = word
    if coder == "nf4":
        del params["mode"]
    if operation == "scale":
        del params["nibbles"]
    family = "nf4" if coder == "nf4" else "int4"
    return f"{family}_{operation}/" + ",".join(f"{name}={value}" for name, value in params.items())


LOAD_N = "ld.param.u64 $a, [param_n];"
LOAD_GROUP = "ld.param.u64 $a, [param_group_size];"

EDITS = [
    # ---- which elements ---------------------------------------------------------------------------------------------
    ("dropped tail", UNWRITTEN, "bra IF_2_ELSE;", "bra IF_2_END;", {"scale/unpack sym/nf4": 1}),
    ("dropped tail", UNWRITTEN, "mov.b32 $a, 1;", "mov.b32 $a, 0;", {"pack/quantize sym/nf4": 1}),
    ("thread block's number ignored", UNWRITTEN, "mov.u32 $a, %ctaid.x;", "mov.u32 $a, 0;", {ALL: 1}),
    ("eighth warp's tile skipped", UNWRITTEN, "mad.lo.u32 $a, $b, 8, $c;", "mad.lo.u32 $a, $b, 9, $c;", {ALL: 1}),
    ("full tile without its last element", WRONG, "min.u64 $a, $b, 512;", "min.u64 $a, $b, 511;", {ALL: 1}),
    ("n one too large", MEMORY, LOAD_N, LOAD_N + " add.u64 $a, $a, 1;", {ALL: 1}),
    ("n one too small", UNWRITTEN, LOAD_N, LOAD_N + " sub.u64 $a, $a, 1;", {ALL: 1}),
    ("last short group forgotten", UNWRITTEN, LOAD_N, LOAD_N + " and.b64 $a, $a, -64;", {ALL: 1}),
    ("last odd element forgotten", UNWRITTEN, LOAD_N, LOAD_N + " and.b64 $a, $a, -2;", {ALL: 1}),
    ("every second row of the tail left out", UNWRITTEN, "add.u32 $a, $a, 128;", "add.u32 $a, $a, 256;", {ALL: 1}),
    ("one element read beyond n", MEMORY, "setp.gt.s32 $a, $b, 3;", "setp.ge.s32 $a, $b, 3;", {TENSOR_IN: 1}),
    ("tail's last element not read", WRONG, "setp.gt.s32 $a, $b, 0; mov.b32 $c, 0f7FFFFFFF;",
     "setp.gt.s32 $a, $b, 1; mov.b32 $c, 0f7FFFFFFF;", {TENSOR_IN: 1}),
    ("second vector read from the first's place", WRONG, "no_allocate.v4.f32 $v, [$a+512];",
     "no_allocate.v4.f32 $v, [$a];", {TENSOR_IN: 1}),
    ("third vector and fourth exchanged", WRONG,
     "no_allocate.v4.f32 $u, [$a+1024]; ld.global.nc.L1::no_allocate.v4.f32 $v, [$a+1536];",
     "no_allocate.v4.f32 $u, [$a+1536]; ld.global.nc.L1::no_allocate.v4.f32 $v, [$a+1024];", {TENSOR_IN: 1}),

    # ---- which group ------------------------------------------------------------------------------------------------
    ("tail takes the next group's place", EITHER, "shr.u32 $a, $b, 6;", "shr.u32 $a, $b, 6; add.u32 $a, $a, 1;",
     {ALL: 1}),
    ("tail's groups twice as large", EITHER, "shr.u32 $a, $b, 6;", "shr.u32 $a, $b, 7;", {ALL: 1}),
    ("groups of a full tile in the wrong order", WRONG, "mad.lo.u32 $a, $b, 2, $c; shl",
     "mad.lo.u32 $a, $c, 4, $b; shl", {ALL: 1}),
    ("group_size ignored", EITHER, LOAD_GROUP, LOAD_GROUP + " mov.b64 $a, 64;",
     {"scale/pack/quantize/unpack sym/nf4 any": 1}),
    ("group_size one too large", EITHER, LOAD_GROUP, LOAD_GROUP + " add.u64 $a, $a, 1;",
     {"scale/pack/quantize/unpack sym/nf4 any": 1}),
    ("group_size in 8 bits", EITHER, LOAD_GROUP, LOAD_GROUP + " and.b64 $a, $a, 0xff;",
     {"scale/pack/quantize/unpack sym/nf4 any": 1}),

    # ---- scale: extremes and what is made of them -------------------------------------------------------------------
    ("sign of the elements kept", WRONG, "abs.f32 $a, $b;", "mov.b32 $a, $b;", {"scale/quantize sym/nf4": 20}),
    ("least magnitude for the largest", WRONG, "max.f32 $a, $b, $c; shfl", "min.f32 $a, $b, $c; shfl",
     {"scale/quantize sym/nf4": 6}),
    ("group's lanes 8 apart not joined", WRONG, "shfl.sync.bfly.b32 $a, $b, 8,", "shfl.sync.bfly.b32 $a, $b, 0,",
     {"scale/quantize sym/nf4": 2}),
    ("fourth row of a tile not stored", UNWRITTEN, "setp.lt.u32 $a, $b, 4;", "setp.lt.u32 $a, $b, 3;",
     {"scale/quantize sym/nf4": 1}),
    ("absent group's scale stored", EITHER, "and.pred $a, $b, $c; shr", "and.pred $a, $b, $b; shr",
     {"scale/quantize sym/nf4": 1}),
    ("least scale not applied", WRONG, "max.f32 $a, $b, 0f2B8CBCCC;", "mov.b32 $a, $b;",
     {"scale/quantize sym/nf4": 2}),
    ("least scale one ulp too small", WRONG, "max.f32 $a, $b, 0f2B8CBCCC;", "max.f32 $a, $b, 0f2B8CBCCB;",
     {"scale/quantize sym/nf4": 2}),
    ("least scale added", WRONG, "max.f32 $a, $b, 0f2B8CBCCC;", "add.rn.f32 $a, $b, 0f2B8CBCCC;",
     {"scale/quantize sym/nf4": 2}),
    ("absmax by 8", WRONG, "div.rn.f32 $a, $b, 0f40E00000;", "div.rn.f32 $a, $b, 0f41000000;",
     {"scale/quantize sym": 2}),
    ("absmax by 7.5", WRONG, "div.rn.f32 $a, $b, 0f40E00000;", "div.rn.f32 $a, $b, 0f40F00000;",
     {"scale/quantize sym": 2}),
    ("scale by a product with 1/7", WRONG, "div.rn.f32 $a, $b, 0f40E00000;", "mul.rn.f32 $a, $b, 0f3E124925;",
     {"scale/quantize sym": 2}),
    ("scale rounded towards zero", WRONG, "div.rn.f32 $a, $b, 0f40E00000;", "div.rz.f32 $a, $b, 0f40E00000;",
     {"scale/quantize sym": 2}),
    ("scale rounded to f16", WRONG, "div.rn.f32 $a, $b, 0f40E00000;",
     "div.rn.f32 $a, $b, 0f40E00000; { .reg .b16 %narrow; cvt.rn.f16.f32 %narrow, $a; cvt.f32.f16 $a, %narrow; }",
     {"scale/quantize sym": 2}),
    ("absmax by 7, as for INT4", WRONG, "max.f32 $a, $b, 0f2B8CBCCC;",
     "max.f32 $a, $b, 0f2B8CBCCC; div.rn.f32 $a, $a, 0f40E00000;", {"scale/quantize nf4": 2}),
    ("absmax by 8", WRONG, "max.f32 $a, $b, 0f2B8CBCCC;",
     "max.f32 $a, $b, 0f2B8CBCCC; div.rn.f32 $a, $a, 0f41000000;", {"scale/quantize nf4": 2}),
    ("scale rounded to f16", WRONG, "max.f32 $a, $b, 0f2B8CBCCC;",
     "max.f32 $a, $b, 0f2B8CBCCC; { .reg .b16 %narrow; cvt.rn.f16.f32 %narrow, $a; cvt.f32.f16 $a, %narrow; }",
     {"scale/quantize nf4": 2}),
    ("NaN not left out", WRONG, "max.f32 $a, $b, $c; abs", "setp.gt.f32 %p1, $b, $c; selp.b32 $a, $b, $c, %p1; abs",
     {"scale/quantize sym/nf4": 13}),
    # ---- the same, asymmetric ---------------------------------------------------------------------------------------
    ("range by 16", "scale\\[", "div.rn.f32 $a, $b, 0f41700000;", "div.rn.f32 $a, $b, 0f41800000;",
     {"scale/quantize asym": 2}),
    ("largest for the range", "scale\\[", "sub.rn.f32 $a, $b, $c; max", "mov.b32 $a, $b; max",
     {"scale/quantize asym": 2}),
    ("least added to the range", "scale\\[", "sub.rn.f32 $a, $b, $c; max", "add.rn.f32 $a, $b, $c; max",
     {"scale/quantize asym": 2}),
    ("zero's sign lost", "zero\\[", "sub.rn.f32 $a, 0f00000000, $b;", "abs.f32 $a, $b;", {"scale/quantize asym": 2}),
    ("zero's sign wrong", "zero\\[", "sub.rn.f32 $a, 0f00000000, $b;", "mov.b32 $a, $b;",
     {"scale/quantize asym": 2}),
    ("zero negative where it is 0", "zero\\[", "sub.rn.f32 $a, 0f00000000, $b;", "neg.f32 $a, $b;",
     {"scale/quantize asym": 2}),
    ("zero rounded to a whole number", "zero\\[", "div.rn.f32 $a, $b, $c; shr",
     "div.rn.f32 $a, $b, $c; cvt.rni.f32.f32 $a, $a; shr", {"scale asym": 1}),
    ("zero one too large", "zero\\[", "div.rn.f32 $a, $b, $c; and",
     "div.rn.f32 $a, $b, $c; add.rn.f32 $a, $a, 0f3F800000; and", {"scale/quantize asym": 1}),
    ("zero not divided by the scale", "zero\\[", "sub.rn.f32 $a, 0f00000000, $b; div.rn.f32 $c, $a, $d;",
     "sub.rn.f32 $a, 0f00000000, $b; mov.b32 $c, $a;", {"scale/quantize asym": 2}),
    ("zero of denormals flushed", "zero\\[", "sub.rn.f32 $a, 0f00000000, $b;", "sub.rn.ftz.f32 $a, 0f00000000, $b;",
     {"scale/quantize asym": 2}),
    ("scale and zero exchanged", NUMBERS, "st.global.f32 [$a], $b; @$p st.global.f32 [$c], $d;",
     "st.global.f32 [$a], $d; @$p st.global.f32 [$c], $b;", {"scale/quantize asym": 2}),
    ("zero not stored", UNWRITTEN, "st.global.f32 [$a], $b; @$p st.global.f32 [$c], $d;", "st.global.f32 [$a], $b;",
     {"scale/quantize asym": 2}),
    ("absent elements taken for 0", NUMBERS, "mov.b32 $a, 0f7FFFFFFF;", "mov.b32 $a, 0f00000000;",
     {"scale/quantize asym": 4}),

    # ---- extremes in shared memory, where the group's size is an argument -------------------------------------------
    ("keys not cleared", EITHER, "st.shared.u32 [$a], 0;", "", {"scale/quantize sym/nf4 any": 1}),
    ("barrier before the extremes left out", RACE, "bar.sync 0; min", "min", {"scale/quantize sym/nf4 any": 1}),
    ("barrier after the extremes left out", RACE, "bar.sync 0; mov.b32 $a, $b;", "mov.b32 $a, $b;",
     {"scale/quantize sym/nf4 any": 1}),
    ("barrier before the codes left out", RACE, "bar.sync 0; mov.u32 $a, %laneid;", "mov.u32 $a, %laneid;",
     {"quantize sym/nf4 any": 1}),
    ("extremes stored, not joined", EITHER, "red.shared.max.u32 [$a], $b;", "st.shared.u32 [$a], $b;",
     {"scale/quantize sym/nf4 any": 1}),
    ("NaN taken for a number", WRONG, "setp.num.f32 $p, $a, $a; selp.b32 $b, $c, 0, $p;", "mov.b32 $b, $c;",
     {"scale/quantize sym/nf4 any": 1}),
    ("a group's end, not the tensor's", EITHER, "add.u64 $b, $d, $e; min.u64 $a, $b, $c; mov",
     "add.u64 $a, $d, $e; mov", {"scale/quantize sym/nf4 any": 1}),

    # ---- codes ------------------------------------------------------------------------------------------------------
    ("truncated towards 0", CODES, "add.rn.f32 $a, $b, 0f4B400008;",
     "cvt.rzi.f32.f32 $a, $b; add.rn.f32 $a, $a, 0f4B400008;", {"pack/quantize sym": 20}),
    ("truncated with the bias, as in a published kernel", CODES, "add.rn.f32 $a, $b, 0f4B400008;",
     "cvt.rmi.f32.f32 $a, $b; add.rn.f32 $a, $a, 0f4B400008;", {"pack/quantize sym": 20}),
    ("ties rounded up", CODES, "add.rn.f32 $a, $b, 0f4B400008;",
     "add.rn.f32 $a, $b, 0f3F000000; cvt.rmi.f32.f32 $a, $a; add.rn.f32 $a, $a, 0f4B400008;",
     {"pack/quantize sym": 20}),
    ("ties rounded away from 0", CODES, "add.rn.f32 $a, $b, 0f4B400008;",
     "abs.f32 $a, $b; add.rn.f32 $a, $a, 0f3F000000; cvt.rzi.f32.f32 $a, $a; copysign.f32 $a, $b, $a; "
     "add.rn.f32 $a, $a, 0f4B400008;",
     {"pack/quantize sym": 20}),
    ("truncated, as in a published kernel", CODES, "add.rn.f32 $a, $b, 0f4B400000;",
     "cvt.rzi.f32.f32 $a, $b; add.rn.f32 $a, $a, 0f4B400000;",
     {"pack/quantize asym": 20}),
    ("ties rounded up", CODES, "add.rn.f32 $a, $b, 0f4B400000;",
     "add.rn.f32 $a, $b, 0f3F000000; cvt.rmi.f32.f32 $a, $a; add.rn.f32 $a, $a, 0f4B400000;",
     {"pack/quantize asym": 20}),
    ("bias 7", CODES, "0f4B400008;", "0f4B400007;", {"pack/quantize sym": 20}),
    ("not clamped above in the tail", CODES, "min.f32 $a, $b, 0f40E00000;", "mov.b32 $a, $b;", {"pack sym": 4}),
    ("clamped at 8", CODES, "min.f32 $a, $b, 0f40E00000;", "min.f32 $a, $b, 0f41000000;", {"pack sym": 4}),
    ("not clamped below in the tail", CODES, "max.f32 $a, $b, 0fC1000000;", "mov.b32 $a, $b;", {"pack sym": 4}),
    ("clamped at -7", CODES, "0fC1000000;", "0fC0E00000;", {"pack sym": 4, "quantize sym": 20}),
    ("not clamped above", CODES, "min.f32 $a, $b, 0f41700000;", "mov.b32 $a, $b;", {"pack/quantize asym": 20}),
    ("not clamped below", CODES, "max.f32 $a, $b, 0f00000000;", "mov.b32 $a, $b;", {"pack/quantize asym": 20}),
    ("zero unused, as in a published kernel", CODES, "add.rn.f32 $a, $b, $z; max", "mov.b32 $a, $b; max",
     {"pack/quantize asym": 20}),
    ("zero one too small", CODES, "add.rn.f32 $a, $b, $z; max",
     "add.rn.f32 $a, $b, $z; sub.rn.f32 $a, $a, 0f3F800000; max", {"pack/quantize asym": 20}),
    ("zero subtracted", CODES, "add.rn.f32 $a, $b, $z; max", "sub.rn.f32 $a, $b, $z; max",
     {"pack/quantize asym": 20}),
    ("product with 1/scale", CODES, "fma.rn.f32 $a, $b, $c, $d; fma.rn.f32 $e, $a, $f, $b;", "mov.b32 $e, $b;",
     {"pack/quantize sym/nf4": 16}),
    ("first row's scale for the second", CODES, "shfl.sync.idx.b32 $a, $b, 1, 7199,",
     "shfl.sync.idx.b32 $a, $b, 0, 7199,", {"pack/quantize sym/nf4": 2}),
    ("nibbles swapped in full tiles", CODES, "mad.lo.u32 $a, $b, 16, $c;", "mad.lo.u32 $a, $c, 16, $b;",
     {"pack/quantize sym": 5}),
    ("bytes of a word exchanged", CODES, "st.global.u16 [$a], $b;",
     "prmt.b32 $b, $b, 0, 0x3201; st.global.u16 [$a], $b;", {"pack/quantize sym/nf4": 1}),
    ("second word stored in the third's place", CODES, "st.global.u16 [$a+64], $b;", "st.global.u16 [$a+128], $b;",
     {"pack/quantize sym/nf4": 1}),
    ("absent last nibble not 0", CODES, "mov.b32 $a, 0f7FFFFFFF;", "mov.b32 $a, 0f00000000;",
     {"pack/quantize sym/nf4": 4}),
    ("last odd byte not stored", UNWRITTEN, "setp.gt.s32 $a, $b, 2; @$a st.global.u8",
     "setp.gt.s32 $a, $b, 3; @$a st.global.u8", {"pack/quantize sym/nf4": 1}),
    ("one byte stored beyond packed", MEMORY, "setp.gt.s32 $a, $b, 2; @$a st.global.u8",
     "setp.ge.s32 $a, $b, 2; @$a st.global.u8", {"pack/quantize sym/nf4": 1}),
    ("extreme scales not treated with care", CODES, "vote.sync.all.pred $p, $q, 0xffffffff;",
     "vote.sync.any.pred $p, %p1, 0xffffffff;", {"pack sym/nf4": 1}),
    # ---- NF4's codes ------------------------------------------------------------------------------------------------
    ("a threshold belongs to the upper code", CODES, "setp.gt.f32 $p, $a, $b; @$p add",
     "setp.ge.f32 $p, $a, $b; @$p add", {"pack/quantize nf4": 20}),
    ("a threshold one ulp off", CODES, "0f3D22FAFF", "0f3D22FB00", {"pack/quantize nf4": 1}),
    ("a threshold forgotten", CODES, "0fBF591CD8", "0f40000000", {"pack/quantize nf4": 1}),
    ("a bucket's base one too small", CODES, "13, 13, 14,", "13, 12, 14,", {"pack/quantize nf4": 1}),
    ("buckets moved by one", CODES, "0f4B400010;", "0f4B400011;", {"pack/quantize nf4": 20}),
    ("negative elements by their magnitude", CODES, "fma.rn.f32 $a, $b, 0f416A0000,",
     "abs.f32 $a, $b; fma.rn.f32 $a, $a, 0f416A0000,", {"pack/quantize nf4": 20}),

    # ---- unpack -----------------------------------------------------------------------------------------------------
    ("nibbles swapped in full tiles", OUT, "{$a, $b, $c, $d};", "{$b, $a, $d, $c};", {"unpack sym/nf4": 4}),
    ("nibbles swapped in the tail", OUT, "@$p st.global.f32 [$a], $b; @$q st.global.f32 [$a+4], $c;",
     "@$p st.global.f32 [$a], $c; @$q st.global.f32 [$a+4], $b;", {"unpack sym/nf4": 1}),
    ("bias 7", OUT, "sub.rn.f32 $a, $b, 0f41000000;", "sub.rn.f32 $a, $b, 0f40E00000;", {"unpack sym": 1}),
    ("zero unused, as in a published kernel", OUT, "sub.rn.f32 $a, $b, $z; mul", "mov.b32 $a, $b; mul",
     {"unpack asym": 20}),
    ("zero added", OUT, "sub.rn.f32 $a, $b, $z; mul", "add.rn.f32 $a, $b, $z; mul", {"unpack asym": 20}),
    ("zero rounded to a whole number", OUT, "sub.rn.f32 $a, $b, $z; mul",
     "cvt.rni.f32.f32 $a, $z; sub.rn.f32 $a, $b, $a; mul", {"unpack asym": 20}),
    ("one rounding instead of two", OUT, "sub.rn.f32 $a, $b, $z; mul.rn.f32 $c, $a, $s;",
     "mul.rn.f32 $a, $z, $s; neg.f32 $a, $a; fma.rn.f32 $c, $b, $s, $a;", {"unpack asym": 20}),
    ("scale rounded to f16", OUT, "mul.rn.f32 $c, $a, $s;",
     "{ .reg .b16 %narrow; cvt.rn.f16.f32 %narrow, $s; cvt.f32.f16 $c, %narrow; } mul.rn.f32 $c, $a, $c;",
     {"unpack sym/asym/nf4": 20}),
    ("product rounded towards zero", OUT, "mul.rn.f32", "mul.rz.f32", {"unpack sym/nf4": 20}),
    ("denormals flushed", OUT, "mul.rn.f32", "mul.rn.ftz.f32", {"unpack sym/nf4": 20}),
    ("table's entry one ulp off", OUT, "0f3F3913B3", "0f3F3913B2", {"unpack nf4": 2}),
    ("table's second copy wrong", OUT, "0f3F800000, 0fBF800000,", "0f3F800000, 0f00000000,", {"unpack nf4": 1}),
    ("sign of the table lost", OUT, "mul.rn.f32 $c, $a, $s;", "abs.f32 $a, $a; mul.rn.f32 $c, $a, $s;",
     {"unpack sym/nf4": 20}),
    ("first row's scale for the second", OUT, "shfl.sync.idx.b32 $a, $b, 1, 7199,",
     "shfl.sync.idx.b32 $a, $b, 0, 7199,", {"unpack sym/nf4": 1}),
    ("codes of the next step", OUT, "[$a+64];", "[$a+128];", {"unpack sym/nf4": 1}),
    ("second step stored in the first's place", UNWRITTEN, "[$a+512], {", "[$a], {", {"unpack sym/nf4": 1}),
    ("last odd element not stored", UNWRITTEN, "setp.gt.s32 $a, $b, 2; ", "setp.gt.s32 $a, $b, 3; ",
     {"unpack sym/nf4": 1}),
    ("one element stored beyond out", MEMORY, "setp.gt.s32 $a, $b, 1; ", "setp.ge.s32 $a, $b, 1; ",
     {"unpack sym/nf4": 1}),
    ("one byte read beyond packed", MEMORY, "setp.gt.s32 $a, $b, 2; ", "setp.ge.s32 $a, $b, 2; ",
     {"unpack sym/nf4": 1}),
    ("f16 by truncation", OUT, "cvt.rn.f16.f32", "cvt.rz.f16.f32", {"unpack sym/nf4 f16": 40}),
    ("bf16 by truncation", OUT, "add.u32 $a, $b, 32767;", "mov.b32 $a, $b;", {"unpack sym/nf4 bf16": 40}),
    ("bf16: ties away from 0", OUT, "add.u32 $a, $b, 32767; add.u32 $c, $a, $d;",
     "add.u32 $a, $b, 32767; add.u32 $c, $a, 1;", {"unpack sym/nf4 bf16": 40}),
]

# Another kernel under this one's name.
SWAPS = [
    ("the other order of nibbles", CODES, {"pack/quantize sym/nf4": "high"}),
    ("the other order of nibbles", OUT, {"unpack sym/nf4": "high"}),
    ("NF4's kernel under INT4's name", WRONG, {"scale/pack/quantize/unpack sym": "nf4"}),
    ("INT4's kernel under NF4's name", WRONG, {"scale/pack/quantize/unpack nf4": "sym"}),
    ("bf16's kernel under f16's name", WRONG, {"scale/pack/quantize/unpack sym/nf4 f16": "bf16"}),
]

# Found by quant_far alone: numbers of elements, bytes and groups that are cut to 32 bits.
CUT = "and.b64 $a, $a, 4294967295;"
FAR_EDITS = [
    ("element's number in 32 bits", FAR_AWAY, "mul.wide.u32 $a, $b, 512;", "mul.wide.u32 $a, $b, 512; " + CUT,
     {ALL: 1}),
    ("n in 32 bits", FAR_AWAY, LOAD_N, LOAD_N + " " + CUT, {ALL: 1}),
    ("tensor's byte in 32 bits", FAR_AWAY, "shl.b64 $a, $b, 2; add.u64 $c, $a, %rd1;",
     "shl.b64 $a, $b, 2; " + CUT + " add.u64 $c, $a, %rd1;", {TENSOR_IN: 2}),
    ("tensor's byte in 32 bits", FAR_AWAY, "shl.b64 $a, $b, 2; add.u64 $c, $a, %rd3;",
     "shl.b64 $a, $b, 2; " + CUT + " add.u64 $c, $a, %rd3;", {"unpack sym/nf4": 2}),
    ("codes' byte in 32 bits", FAR_AWAY, "shr.u64 $a, $b, 1;", "shr.u64 $a, $b, 1; " + CUT,
     {"pack/quantize/unpack sym/nf4": 2}),
    ("group's number in 32 bits", FAR_AWAY, "mul.wide.u32 $a, $b, $c;", "mul.wide.u32 $a, $b, $c; " + CUT,
     {"scale/quantize sym/nf4 any": 1}),
    ("group's number in 32 bits", FAR_AWAY, "div.u64 $a, $b, $c;", "div.u64 $a, $b, $c; " + CUT,
     {"pack/unpack sym/nf4 any": 1}),
    ("group's first element in 32 bits", FAR_AWAY, "mul.wide.u32 $d, $e, $f; mul.lo.u64 $a, $b, $c;",
     "mul.wide.u32 $d, $e, $f; mul.lo.u64 $a, $b, $c; " + CUT, {"scale/quantize sym/nf4 any": 1}),
    ("group_size in 32 bits", FAR_AWAY, LOAD_GROUP, LOAD_GROUP + " " + CUT, {"pack/unpack sym/nf4 any": 1}),
]


def other_kernel(words, other):
    """"pack sym f16" is another of "pack sym bf16", and "pack nf4" of "pack sym"."""
    operation, coder = words.split()[:2]
    return kernel_id(f"{operation} {other}" if other in ("sym", "nf4") else f"{operation} {coder} {other}")


def by_kernel(rows):
    table = {}
    for name, says, *edit, kernels in rows:
        for words, value in kernels.items():
            for kernel in expand(words):
                change = [*edit, value] if edit else [other_kernel(kernel, value)]
                table.setdefault(kernel_id(kernel), []).append((name, says, *change))
    return table


FAULTS, FAR = by_kernel(EDITS + SWAPS), by_kernel(FAR_EDITS)
# Of groups of any size there are many.
RUNS = [("group=any", "sm_75", "sm_75", "--max-elements 4500"), ("", "sm_75", "sm_75", "--max-elements 20000")]
