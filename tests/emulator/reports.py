"""Checks that the emulated driver's output does not depend on the number of host threads: counters and values of correct
kernels, and reports of broken ones (in the order of thread blocks; the first 10 and a count). Also checks that invalid settings
are refused.

usage: reports.py test_corpus FOLDER-OF-CORRECT-KERNELS
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

THREADS = (1, 2, 4, 16)
VARIES = "// Thread blocks wait for each other: how often they poll is random."
HEAD = """// launch {blocks} 32
// expect 719 x
.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 zeros, .param .u64 freed)
{{
.reg .u64 %p<4>; .reg .u32 %r<8>; .reg .pred %q<2>;
ld.param.u64 %p0, [out]; ld.param.u64 %p1, [in]; ld.param.u64 %p2, [zeros]; mov.u32 %r0, %ctaid.x;
"""
FIRST_LINE = 10  # line of the file at which the body begins


def run(corpus, kind, folder, *more, **settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_EMU_")}
    environment.update({"KILN_EMU_" + k: str(v) for k, v in settings.items()})
    done = subprocess.run([corpus, kind, folder, *more], env=environment, capture_output=True, text=True, check=False)
    done.stdout = without_addresses(done.stdout)
    return done


def without_addresses(text):
    """Device memory has other addresses in every run."""
    return re.sub("0x[0-9a-f]{9,}", "ADDRESS", text)


def fail(what):
    sys.exit("reports.py: " + what)


def check_counters(corpus, folder):
    """The report has a line per kernel, in the order of their names."""
    names = sorted(p.name for p in pathlib.Path(folder).glob("*.ptx"))
    varies = [VARIES in (pathlib.Path(folder) / name).read_text(encoding="utf-8") for name in names]
    first = None
    with tempfile.TemporaryDirectory() as scratch:
        for threads in THREADS:
            path = os.path.join(scratch, "report")
            done = run(corpus, "correct", folder, CHECK="memory,init,sync", THREADS=threads, REPORT=path,
                       REPORT_LINES=1)
            lines = without_addresses(pathlib.Path(path).read_text(encoding="utf-8")).splitlines()
            lines = [line for line in lines if '"kernel":"k"' in line]  # without the kernels that are launched before it
            if done.returncode or len(lines) != len(names):
                fail(f"{threads} threads: {len(lines)} launches of {len(names)}\n{done.stdout}")
            first = first or lines
            for name, a, b in zip(names, first, lines):
                if a != b and not varies[names.index(name)]:
                    fail(f"{name}: counters with {threads} threads differ:\n{a}\n{b}")
    print(f"counters of {len(names) - sum(varies)} kernels, values of {len(names)}: the same with {THREADS} threads")


def lines_of(text):
    return [int(part.split(":")[0]) for part in text.split(", line ")[1:]]


def check_broken(corpus, title, body, blocks, lines, check="all", **settings):
    """Expects reports at these lines of the body, in this order, for any number of threads."""
    first = None
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "x_0.ptx").write_text(HEAD.format(blocks=blocks) + body + "}\n", encoding="utf-8")
        for threads in THREADS:
            done = run(corpus, "broken", folder, "print", CHECK=check, THREADS=threads, **settings)
            if "RACE" not in title:
                again = run(corpus, "broken", folder, "print", CHECK="memory,init,sync", THREADS=threads, **settings)
                if again.stdout != done.stdout:
                    fail(f"{title}: the race check changes the reports\n{done.stdout}\n{again.stdout}")
            first = first or done
            if lines_of(done.stdout) != [FIRST_LINE + n for n in lines] or done.stdout != first.stdout:
                fail(f"{title}: {threads} threads:\n{done.stdout}")
    print(f"{title}: {len(lines)} reports")
    return first


def findings(corpus):
    load = "ld.global.u32 %r1, [%p0+{}];\n"
    body = "".join(load.format(4 * i) for i in range(14)) + "ret;\n"
    check_broken(corpus, "all reports", body, 6, range(14))
    shown = check_broken(corpus, "the first 10", body, 6, range(10), VERBOSE=1)
    if "kiln emulator: 14 reports, the first 10 are shown\n" not in shown.stderr:
        fail(f"no count of reports: {shown.stderr}")
    if shown.stdout.count("  192 times in this launch") != 10:
        fail(f"no count of a report's lanes: {shown.stdout}")
    silent = check_broken(corpus, "silence", body, 6, [], VERBOSE=0)
    if silent.stderr:
        fail(f"said with KILN_EMU_VERBOSE=0: {silent.stderr}")
    # only the last block executes the first load; all execute the second
    body = "setp.eq.u32 %q0, %r0, 7;\n@%q0 ld.global.u32 %r1, [%p0];\nld.global.u32 %r1, [%p0+8];\nret;\n"
    check_broken(corpus, "the order of blocks", body, 8, [2, 1])
    # block 5 faults: whether blocks 6 and 7 run is random, so their reports are left out
    body = ("setp.gt.u32 %q0, %r0, 5;\n@%q0 ld.global.u32 %r1, [%p0];\nsetp.eq.u32 %q0, %r0, 5;\n@!%q0 bra E;\n"
            "ld.global.u32 %r1, [%p0+12];\nst.global.u32 [%p2+-4], %r0;\nE:\nret;\n")
    for order in "forward", "reverse", "shuffle":
        check_broken(corpus, f"findings before a fault, {order}", body, 8, [4, 5], ORDER=order)
    body = "st.global.u32 [%p2], %r0;\nld.global.u32 %r1, [%p2];\nret;\n"
    check_broken(corpus, "RACES of blocks", body, 4, [1, 0, 0])
    body = "mov.u32 %r1, 9;\nst.global.u32 [%p2], %r1;\nret;\n"
    check_broken(corpus, "RACES of the same value", body, 4, [])
    same = check_broken(corpus, "RACES of the same value", body, 4, [1], check="all,same")
    if "with nothing to order the two, the same value" not in same.stdout:
        fail(f"does not say that the value is the same: {same.stdout}")


def settings(corpus, folder):
    for name, value, word in (("THREADS", "four", "expected a number from 1 to 256"), ("THREADS", "0", "from 1 to 256"),
                              ("THREADS", "2x", "from 1 to 256"), ("THREADS", "-1", "from 1 to 256"),
                              ("THREADS", "257", "from 1 to 256"), ("JUMPS", "many", "expected a number"),
                              ("VERBOSE", "3", "from 0 to 2"), ("FORK", "yes", "from 0 to 1"),
                              ("REPORT_LINES", "2", "from 0 to 1"), ("BLOCKS", "4", "expected FIRST-LAST"),
                              ("BLOCKS", "4-3", "expected FIRST-LAST"), ("BLOCKS", "0--1", "expected FIRST-LAST"),
                              ("BLOCKS", " 0-0", "expected FIRST-LAST"), ("CHECK", ",", "is not one of memory"),
                              ("CHECK", "memory,rase", "'rase' is not one of memory, init, race, sync, same, proxy, warpgroup, lanes, all, none"),
                              ("CHECK", "none,race", "'none' must be the only word"),
                              ("CHECK", "all,none", "'none' must be the only word"),
                              ("ORDER", "back", "expected forward, reverse or shuffle"),
                              ("DEVICE", "sm_1", "'sm_1' is not a device"), ("DRIVER", "13", "expected a version")):
        done = run(corpus, "correct", folder, **{name: value})
        if done.returncode != 2 or f"KILN_EMU_{name}" not in done.stderr or word not in done.stderr:
            fail(f"KILN_EMU_{name}={value}: exit {done.returncode}, {done.stderr}")
    print("invalid settings are refused")
    done = run(corpus, "correct", folder, DRIVER="12020")  # without KILN_EMU_DRIVER newer PTX is accepted
    if "newer than 8.2, the newest that this driver takes" not in done.stdout + done.stderr:
        fail(f"KILN_EMU_DRIVER=12020: exit {done.returncode}, {done.stdout}{done.stderr}")
    done = run(corpus, "correct", folder, BLOCKS="900-901")  # no launch has these blocks: nothing runs, and nothing crashes
    if done.returncode not in (0, 1):
        fail(f"KILN_EMU_BLOCKS=900-901: exit {done.returncode}, {done.stderr}")


def output_files(corpus, folder):
    """Files of counters, of instructions not reached and of recorded launches that cannot be written."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "two").mkdir()
        for kernel in sorted(pathlib.Path(folder).glob("*.ptx"))[:2]:
            shutil.copy(kernel, scratch / "two")
        text = scratch / "text"
        text.write_text("not a report\n", encoding="utf-8")
        for name, path, words in (("REPORT", scratch / "none/file", "cannot write KILN_EMU_REPORT to"),
                                  ("UNREACHED", scratch / "none/file", "cannot write KILN_EMU_UNREACHED to"),
                                  ("RECORD", scratch / "none/file", "cannot be written"),
                                  ("REPORT", text, "is not a report, so it is not overwritten"),
                                  ("UNREACHED", text, "is not a report, so it is not overwritten")):
            done = run(corpus, "correct", scratch / "two", "print", **{name: path})
            if words not in done.stdout + done.stderr or done.stderr.count("cannot write") > 1 or text.read_text(encoding="utf-8") != "not a report\n":
                fail(f"KILN_EMU_{name}={path}: {done.stdout}{done.stderr}")
    print("files that cannot be written are reported")


def main(corpus, folder):
    settings(corpus, folder)
    output_files(corpus, folder)
    findings(corpus)
    check_counters(corpus, folder)


main(*sys.argv[1:])
