"""Tests predict.py: the replay of hand-made steps and the way through hand-made machine code, against answers known by hand; the
messages about wrong arguments; and, if ptxas and nvdisasm are installed, the prediction of a kernel of the default bundle.

usage: prediction.py kiln-profile CONFIG [FOLDER_OF_A_PYPI_PACKAGE]
"""
import contextlib
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/profile"))
import machine_code
import multiprocessor
import predict
import warp_trace
from multiprocessor import Machine, Step

MACHINE = Machine(l2_rate=32, memory_rate=8, l2_latency=300, memory_latency=700)
ALU, LOAD = Step("alu", 2), Step(multiprocessor.LOAD_STORE, 1, 22, sets=0)
COPY = Step(multiprocessor.LOAD_STORE, 4, 22, l2_bytes=512, is_copy=True)
COMMIT, WAIT = Step(multiprocessor.COMMIT), Step(multiprocessor.WAIT)
BARRIER = multiprocessor.barrier_cycles
NEXT_BLOCK = multiprocessor.BLOCK_START

REPLAYS = [  # (what, steps, warps, thread blocks, resident, cycles)
    ("stall counts", [ALU._replace(stall=4)] * 10, 1, 1, 1, 40),
    ("a pipe of a quarter", [ALU] * 100, 8, 1, 1, 2 * 200 - 1),
    ("four quarters", [ALU] * 100, 4, 1, 1, 199),
    ("products", [Step("tensor", 16)] * 100, 4, 1, 1, 99 * 16 + 1),
    ("issue", [Step(multiprocessor.NONE)] * 100, 16, 1, 1, 400),
    ("register ports", [Step(multiprocessor.NONE, reads=1.5)] * 100, 4, 1, 1, 149),
    ("wavefronts", [LOAD._replace(cycles=4)] * 100 + [Step(multiprocessor.NONE, waits=1)], 4, 1, 1, 1600 + 22 + 1),
    ("a load", [LOAD, Step(multiprocessor.NONE, waits=1)], 1, 1, 1, 24),
    ("a load that is not waited for", [LOAD, Step(multiprocessor.NONE, waits=2)], 1, 1, 1, 2),
    ("a load from the L2 cache", [LOAD._replace(l2_bytes=32), Step(multiprocessor.NONE, waits=1)], 1, 1, 1, 301),
    ("a load from memory", [LOAD._replace(l2_bytes=32, memory_bytes=32), Step(multiprocessor.NONE, waits=1)], 1, 1, 1, 701),
    ("the L2 cache's rate", [COPY] * 100, 4, 1, 1, 6400),
    ("the memory's rate", [COPY._replace(memory_bytes=512)] * 100, 4, 1, 1, 400 * 64),
    ("a group of copies", [COPY, COMMIT, WAIT], 1, 1, 1, 301),
    ("a group that may stay in flight", [COPY, COMMIT, WAIT._replace(keep=1)], 1, 1, 1, 16),
    ("the older of two groups", [COPY, COMMIT, COPY, COMMIT, WAIT._replace(keep=1)], 1, 1, 1, 301),
    ("both groups", [COPY, COMMIT, COPY, COMMIT, WAIT], 1, 1, 1, 303),
    ("barriers", [Step(multiprocessor.BARRIER)] * 10, 4, 1, 1, 10 * BARRIER(4)),
    ("barriers of two groups", [Step(multiprocessor.BARRIER, warps=2)] * 10, 4, 1, 1, 10 * BARRIER(2)),
    ("thread blocks in turn", [ALU._replace(stall=4)] * 10, 4, 3, 1, 3 * 40 + 2 * NEXT_BLOCK),
    ("thread blocks at once", [ALU._replace(stall=4)] * 10, 4, 3, 3, 40 + 2 * NEXT_BLOCK),
    ("code that runs first", [Step(multiprocessor.NONE, line=n // 8) for n in range(16)], 1, 1, 1, 300 + 38 + 8),
]


def listing(*instructions):
    """nvdisasm's text. An instruction: (PTX line, text, stall, sets, frees, waits), the last four optional; a string: a label."""
    lines, address = [], 0
    for item in instructions:
        if isinstance(item, str):
            lines.append(f"{item}:")
            continue
        line, text, stall, sets, frees, waits = (*item, *(1, 7, 7, 0)[len(item) - 2:])
        word = (stall | sets << 5 | frees << 8 | waits << 11) << 41
        lines += [f'\t//## File ".nv_debug_ptx_txt", line {line}', f"        /*{address:04x}*/   {text} ;   /* 0x{0:016x} */",
                  f"        /* 0x{word:016x} */"]
        address += 16
    return "\n".join(lines)


# A loop that ptxas unrolled by four, with a loop for the rest; code that a branch skips; a loop that leaves before it jumps back; a
# loop in a loop.
START = (1, "S2R R0, SR_TID.X")
UNROLLED = listing(START, (2, "@P0 BRA `(.L_x_2)"), ".L_x_1", *[(3, "LDS R1, [R0]")] * 4, (4, "@P1 BRA `(.L_x_1)"), ".L_x_2",
                   (4, "@!P2 BRA `(.L_x_4)"), ".L_x_3", (3, "LDS R1, [R0]"), (4, "@P3 BRA `(.L_x_3)"), ".L_x_4", (5, "EXIT"))
SKIPPED = listing(START, (2, "@P0 BRA `(.L_x_1)"), (3, "STS [R0], R1"), ".L_x_1", (4, "LDG.E R1, desc[UR4][R2.64]"), (5, "EXIT"))
LEFT_EARLY = listing(START, ".L_x_1", (2, "LDS R1, [R0]"), (3, "@P0 BRA `(.L_x_2)"), (4, "BRA `(.L_x_1)"), ".L_x_2", (5, "EXIT"))
NESTED = listing(START, ".L_x_1", (2, "BAR.SYNC.DEFER_BLOCKING 0x0"), ".L_x_2", (3, "LDS R1, [R0]"),
                 (4, "@P0 BRA `(.L_x_2)"), (5, "STG.E desc[UR4][R2.64], R1"), (6, "@P1 BRA `(.L_x_1)"), (7, "EXIT"))
TRACES = [  # (what, listing, {PTX line: executions}, {operation: times in the trace})
    ("an unrolled loop", UNROLLED, {1: 1, 2: 1, 3: 14, 4: 14, 5: 1}, {"LDS": 14}),
    ("an unrolled loop without a rest", UNROLLED, {1: 1, 2: 1, 3: 16, 4: 16, 5: 1}, {"LDS": 16}),
    ("less than four trips", UNROLLED, {1: 1, 2: 1, 3: 3, 4: 3, 5: 1}, {"LDS": 3}),
    ("a side that is taken", SKIPPED, {1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, {"STS": 1, "LDG": 1}),
    ("a side that is not taken", SKIPPED, {1: 1, 2: 1, 4: 1, 5: 1}, {"STS": 0, "LDG": 1}),
    ("a loop that ends in a jump back", LEFT_EARLY, {1: 1, 2: 16, 3: 16, 4: 15, 5: 1}, {"LDS": 16}),
    ("a loop in a loop", NESTED, {1: 1, 2: 3, 3: 30, 4: 30, 5: 3, 6: 3, 7: 1}, {"LDS": 30, "BAR": 3, "STG": 3}),
]


def check_replays():
    for what, steps, warps, blocks, resident, expected in REPLAYS:
        got = multiprocessor.replay(steps, warps, blocks, resident, MACHINE).cycles
        if got != expected:
            yield f"{what}: {got:g} cycles, expected {expected}"
    steps = [ALU._replace(stall=4)] * 10
    whole, extended = (f(steps, 4, 40, 2, MACHINE).cycles for f in (multiprocessor.replay, multiprocessor.run))
    if abs(extended / whole - 1) > 0.01:
        yield f"many thread blocks: {extended:g} cycles, {whole:g} if all are replayed"


def check_traces():
    for what, text, executed, expected in TRACES:
        code, labels = machine_code.read(text)
        ops = [machine_code.base(code[n].op) for n in warp_trace.trace(code, labels, executed)]
        got = {op: ops.count(op) for op in expected}
        if got != expected:
            yield f"{what}: {got}, expected {expected}"
    try:
        machine_code.read(listing(START, (2, "HGMMA.64x8x16.F32 R4, gdesc[UR4], R4")))
        yield "HGMMA: no error"
    except machine_code.NoPrediction as problem:
        if "the kernel has the instruction HGMMA.64x8x16.F32: " not in str(problem):
            yield f"HGMMA: '{problem}'"
    code, _ = machine_code.read(listing((7, "@!P1 LDS R1, [R0]", 4, 2, 1, 0b100001)))
    if code[0] != machine_code.Instruction("@!P1", "LDS", "R1, [R0]", 7, 4, 2, 1, 0b100001):
        yield f"the listing of an instruction: {code[0]}"


VARIANT = "nf4_unpack/type=f16,group=64,nibbles=low"
KERNEL = {"--variant": VARIANT, "--device": "H100", "--args": "n=2097152"}
WRONG = [  # ({option: value}, the message's beginning)
    ({"--device": "GTX 480"}, "--device: 'GTX 480' is not a device; there are T4, "),
    ({"--device": "rtx"}, "--device: 'rtx' could be RTX 3090, RTX 4090, RTX 5090, RTX PRO 6000; give one of these"),
    ({"--target": "sm_100"}, "--target: sm_100 does not run on H100, which is sm_90; leave out --target"),
    ({"--target": "sm_80a"}, "--target: sm_80a does not run on H100, which is sm_90; leave out --target"),
    ({"--target": "h100"}, "--target: 'h100' is not a target"),
    ({"--variant": "nf4_unpack"}, "kiln_default has no variant nf4_unpack\n"),
    ({"--args": "m=1"}, f"--args: {VARIANT} has no scalar 'm'; it has n (u64)"),
    ({"--profile": "/none"}, "cannot run /none: No such file or directory; build it"),
    ({"--profile": "/bin/true"}, "--profile: /bin/true is not a kiln-profile: it printed no JSON"),
]
FIGURES = [  # (option, value, what argparse says)
    ("--memory-share", "1.01", "argument --memory-share: expected a number above 0 and at most 1, found '1.01'"),
    ("--l2-bytes", "0", "argument --l2-bytes: expected a number above 0, found '0'"),
    ("--l2-cycles", "inf", "argument --l2-cycles: expected a number above 0, found 'inf'"),
    ("--l2-cycles", "nan", "argument --l2-cycles: expected a number above 0, found 'nan'"),
    ("--port-registers", "two", "argument --port-registers: expected a number above 0, found 'two'"),
]


def options_of(profile, config, folders, changed=()):
    options = KERNEL | {"--profile": profile} | dict(changed)
    return predict.read_options([config, *(part for option in options.items() for part in option),
                                 *(part for folder in folders for part in ("--packages", folder))])


def check_messages(profile, config):
    for changed, expected in WRONG:
        try:
            predict.predict(options_of(profile, config, [], changed))
            yield f"{changed}: a prediction, expected '{expected}'"
        except machine_code.NoPrediction as problem:
            if not str(problem).startswith(expected):
                yield f"{changed}: '{problem}', expected '{expected}'"


def check_figures(profile, config):
    for option, value, expected in FIGURES:
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                options_of(profile, config, [], {option: value})
        except SystemExit:
            pass
        if expected not in said.getvalue():
            yield f"{option} {value}: '{said.getvalue()}', expected '{expected}'"


def check_kernel(profile, config, folders):
    """The time lies between the memory's floor and three times that, and every counted access is in the trace."""
    try:
        p = predict.predict(options_of(profile, config, folders))
    except machine_code.MissingTool as problem:
        print(f"no kernel is predicted: {problem}")
        return
    floor = p.counts.cost / p.device.gb_per_s / 1e3
    if not floor < p.us < 3 * floor or abs(p.covered - 1) > 0.01:
        yield f"{VARIANT}: {p.us:.2f} us, the memory's floor is {floor:.2f} us; the trace has {p.covered:.3f} of the accesses"


def main():
    profile, config, *folders = sys.argv[1:]
    problems = [*check_replays(), *check_traces(), *check_messages(profile, config), *check_figures(profile, config),
                *check_kernel(profile, config, folders)]
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
