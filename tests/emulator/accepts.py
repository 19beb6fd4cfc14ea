"""Tests that the emulated driver accepts exactly the Hopper instructions that ptxas accepts: types, spaces, scopes and operands.

usage: accepts.py DRIVER

Each line of FORMS stands for all choices of its braces; in braces, a name of SETS stands for its choices. In the operands, R is a
register of the type that the instruction ends with, A an address in the instruction's space, and C coordinates, one per dimension.
Instructions that the driver does not emulate are not compared. Exits 77 without a ptxas that knows PTX 8.8.
"""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
SETS = {"OP": "add|min|max|inc|dec|and|or|xor|cas|exch", "TYPE": "b8|b16|b32|b64|u16|u32|u64|s32|s64|f16|bf16|f32|f64|f16x2|b128",
        "DIM": "0d|1d|2d|5d|6d", "TX": "mbarrier::complete_tx::bytes", "NEAR": "|shared::cluster|global",
        "SEM": "|release.cta|release.cluster|relaxed.cta|relaxed.cluster|acquire.cta|acquire.cluster|release|release.gpu",
        "SCOPE": "cta|cluster|gpu|sys",
        "EL": "f16|bf16|tf32|e4m3|e5m2|s8|u8|e2m1", "SHARED": "shared|shared::cta|shared::cluster"}
FORMS = """
cp.reduce.async.bulk.shared::cluster.shared::cta.{TX}.{OP}.{TYPE} [%r1], [%r1], 64, [%r1];
cp.reduce.async.bulk.global.shared::cta.bulk_group.{OP}.{|noftz}.{TYPE} [%d1], [%r1], 64;
cp.reduce.async.bulk.tensor.{DIM}.global.shared::cta.{OP}.{|tile}.bulk_group [%d1, C], [%r1];
cp.async.bulk.tensor.{DIM}.{SHARED}.global.{|tile}.{TX} [%r1], [%d1, C], [%r1];
cp.async.bulk.tensor.{DIM}.{SHARED}.global.{|tile}.{TX}.L2::cache_hint [%r1], [%d1, C], [%r1], %d1;
cp.async.bulk.tensor.{DIM}.{SHARED}.global.{|tile}.{TX}.multicast::cluster [%r1], [%d1, C], [%r1], %h1;
cp.async.bulk.tensor.{DIM}.global.{SHARED}.{|tile}.bulk_group [%d1, C], [%r1];
cp.async.bulk.prefetch.tensor.{DIM}.L2.global.{|tile} [%d1, C];
cp.async.bulk.{SHARED}.global.{TX}.{|L2::cache_hint} [%r1], [%d1], 64, [%r1]{|, %d1};
cp.async.bulk.{SHARED}.global.{TX}.multicast::cluster [%r1], [%d1], 64, [%r1]{|, %h1};
cp.async.bulk.{SHARED}.{SHARED}.{TX|bulk_group} [%r1], [%r1], 64{|, [%r1]};
cp.async.bulk.global.{SHARED}.bulk_group [%d1], [%r1], {64|8|%r1};
cp.async.bulk.{commit_group|wait_group|wait_group.read} {|0|-1|%r1};
cp.async.bulk.prefetch.L2.{|global}.{|L2::cache_hint} [%d1], 64{|, %d1};
red.async.relaxed.cluster.{NEAR}.{TX}.{OP}.{TYPE} [A], R, [A];
red.async.{relaxed.gpu|release.cluster|weak|}.shared::cluster.{TX}.add.u32 [%r1], R, [%r1];
st.async.{|weak|cluster|relaxed.cluster}.{NEAR}.{TX}.{TYPE} [A], R, [A];
st.async.{|weak}.shared::cluster.{TX}.v2.{TYPE} [%r1], {R, R}, [%r1];
st.async.{|weak}.shared::cluster.{TX}.v4.{TYPE} [%r1], {R, R, R, R}, [%r1];
atom.shared::cluster.{OP}.{|noftz}.{TYPE} R, [%r1], R;
atom.shared::cluster.cas.{TYPE} R, [%r1], R, R;
red.shared::cluster.{OP}.{|noftz}.{TYPE} [%r1], R;
{ld.shared::cluster.{TYPE} R, [%r1]|st.shared::cluster.{TYPE} [%r1], R};
mbarrier.{arrive|arrive_drop}.{|expect_tx|noComplete}.{SEM}.{|SHARED}.b64 {%d2|_}, [A]{|, %r1};
mbarrier.{test_wait|try_wait}.{SEM}.{|SHARED}.b64 %p1, [A], %d2{|, %r2};
mbarrier.{test_wait|try_wait}.parity.{SEM}.{|SHARED}.b64 %p1, [A], %r1{|, %r2};
mbarrier.{expect_tx|complete_tx|init}.{SEM}.{|SHARED}.b64 [A], %r1;
mbarrier.inval.{|SHARED|global}.b64 [A];
barrier.cluster.{arrive|wait}.{|release|acquire|relaxed}.{|aligned};
fence.{acq_rel|sc|acquire|release|relaxed}.{SCOPE};
fence.mbarrier_init.{release|acquire|relaxed}.{SCOPE};
fence.proxy.{alias|async|async.global|async.shared|async.shared::cta|async.shared::cluster};
fence.proxy.tensormap::generic.{release|acquire}.{SCOPE}{| [%d1], 128};
fence.proxy.async::generic.{acquire|release}.sync_restrict::{SHARED}.cluster;
tensormap.replace.tile.{global_address|global_stride|rank|box_dim}.{|global|SHARED}.b1024.{b32|b64} [A], {|0, |%r1, }{1|R};
tensormap.replace.tile.{global_dim|element_stride|elemtype|fill_mode}.{|global|SHARED}.b1024.b32 [A], {|0, |%r1, }{1|99|R};
tensormap.replace.tile.{interleave_layout|swizzle_mode|swizzle_atomicity}.{|global|SHARED}.b1024.b32 [A], {1|9|R};
prefetch.{|param|const|global}.tensormap [%d1];
mapa.{|SHARED}.{u32|b32} %r1, {%r1|v}, {%r2|3};
mapa.{|SHARED}.{u64|b64} %d1, {%d1|v}, %r2;
getctarank.{|SHARED}.{u32|b32} %r2, {%r1|v};
getctarank.{|SHARED}.{u64|b64} %r2, {%d1|v};
setmaxnreg.{inc|dec}.sync.aligned.u32 {16|24|36|40|232|240|248|256|%r1};
elect.sync {%r1|%p1, |_|%p1, |%r1, }{-1|%r2};
griddepcontrol.{wait|launch_dependents|};
wgmma.{fence|commit_group|wait_group|arrive}.sync.aligned {|0|-1|%r1};
wgmma.mma_async.sync.aligned.m64n8k{8|16|32}.f32.{EL}.{EL} {%f0, %f1, %f2, %f3}, %d1, %d2, 1{|, 1, 1|, 1, 1, 0, 0};
wgmma.mma_async.sync.aligned.m64n8k{8|16|32}.f16.{EL}.{EL} {%r0, %r1}, %d1, %d2, 1{|, 1, 1|, 1, 1, 0, 0};
wgmma.mma_async.sync.aligned.m64n8k{16|32}.{|satfinite}.s32.{EL}.{EL} {%r0, %r1, %r2, %r3}, %d1, %d2, 1{|, 1, 1};
wgmma.mma_async.sync.aligned.m64n8k{8|16|32}.f32.{EL}.{EL} {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, %d2, 1, 1, 1{|, 0};
"""
REGISTERS = {"8": "%h1", "16": "%h1", "32": "%r1", "64": "%d1", "f32": "%f1", "f64": "%e1", "128": "%q1", "16x2": "%r1"}
HEAD = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p0) .maxntid 128 .minnctapersm 1
{
.reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .f64 %e<4>; .reg .b128 %q<4>; .reg .pred %p<4>;
.shared .align 8 .b8 v[16];
"""
AT_ONCE = 300


def expanded(line):
    """Returns all choices, those of the innermost braces first. Braces without a bar belong to PTX."""
    found = re.search(r"\{([^{}]*\|[^{}]*|[A-Z]+)\}", line)
    if not found or found[1] == "R":
        return [line]
    choices = [choice for word in found[1].split("|") for choice in SETS.get(word, word).split("|")]
    return [text for choice in choices for text in expanded(line[:found.start()] + choice + line[found.end():])]


def instructions():
    lines = [text for line in FORMS.split("\n") if line for text in expanded(line)]
    found = {}
    for line in lines:
        opcode, space, operands = line.partition(" ")
        opcode = re.sub(r"\.+(?=[.;]|$)", "", opcode)
        last = opcode.rstrip(";").split(".")[-1]
        register = REGISTERS.get(last) or REGISTERS.get(last.lstrip("busf") if last != "bf16" else "16", "%r1")
        rank = int((re.search(r"\.(\d)d\b", opcode) or [0, 1])[1])
        words = {"R": register, "A": "%r1" if ".shared" in opcode else "%d1", "C": f"{{{', '.join(['%r1'] * max(rank, 1))}}}"}
        found[opcode + space + re.sub(r"\b[RAC]\b", lambda word: words[word[0]], operands)] = None
    return list(found)


def program(lines):
    return HEAD + "".join(line + "\n" for line in lines) + "ret;\n}\n"


def refused_by_ptxas(lines):
    """ptxas reports some mistakes of a text only if there are none of another kind."""
    refused = set()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "k.ptx")
        while True:
            path.write_text(program("//" if line in refused else line for line in lines))
            done = subprocess.run(["ptxas", "-arch=sm_90a", "-O0", "-o", "/dev/null", path], capture_output=True, text=True)
            wrong = {int(n) - HEAD.count("\n") - 1 for n in re.findall(r"line (\d+); (?:error|fatal) ", done.stdout + done.stderr)}
            new = {lines[n] for n in wrong if 0 <= n < len(lines)} - refused
            if not new:
                return refused
            refused |= new


class Driver:
    def __init__(self, path):
        os.environ.update(KILN_EMU_DEVICE="sm_90", KILN_EMU_CHECK="none", KILN_EMU_VERBOSE="0")
        self.cuda, context = ctypes.CDLL(path), ctypes.c_void_p()
        if self.cuda.cuInit(0) or self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0):
            sys.exit(f"{path} does not begin")

    def load(self, line):
        """Returns whether the driver accepts the instruction, and its log."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
        options, values = (ctypes.c_int * 2)(5, 6), (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        result = self.cuda.cuModuleLoadDataEx(ctypes.byref(module), program([line]).encode(), 2, options, values)
        if not result:
            self.cuda.cuModuleUnload(module)
        return not result and not log.value, log.value.decode()


def main(path):
    if not shutil.which("ptxas") or len(refused_by_ptxas(["mov.u32 %r1, 0;"])):
        print("no ptxas that knows PTX 8.8")
        sys.exit(SKIPPED)
    driver, lines, wrong = Driver(path), instructions(), 0
    refused = set().union(*(refused_by_ptxas(lines[n:n + AT_ONCE]) for n in range(0, len(lines), AT_ONCE)))
    for line in lines:
        takes, log = driver.load(line)
        if takes == (line in refused) and "is not emulated" not in log:
            wrong += 1
            print(f"ptxas {'refuses' if line in refused else 'takes'} {line}\n    {log or 'the emulated driver takes it'}")
    print(f"{len(lines)} instructions, of which ptxas refuses {len(refused)}; {wrong} differ")
    sys.exit(wrong > 0)


main(*sys.argv[1:])
