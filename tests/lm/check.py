"""kiln-lm as a program: what it refuses, what it does when a call fails, how large it is.

usage: check.py VERB PROGRAM EMULATOR DRIVER HEAP MODELS [all]

PROGRAM has kernels for every format; failing_driver.c and failing_heap.c let calls fail; MODELS is a folder in which
models_make.py makes small models. `all`: every call fails in turn, not only the first and the last of each kind.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


class Failed(Exception):
    pass


def run(arguments, environment=(), **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "KILN_EMU_CHECK": "none", **dict(environment)}, **more)


def small_model(folder, name="q4_1"):
    path = pathlib.Path(folder) / f"small_{name}.gguf"
    if not path.exists():
        made = run([sys.executable, "-B", HERE / "models_make.py", "small", folder, name])
        if made.returncode:
            print(made.stdout + made.stderr)
            sys.exit(made.returncode)
    return path


# ---- what is refused ----------------------------------------------------------------------------------------------------

MODEL = object()
REFUSED = [  # arguments, and what stderr says
    ([], "MODEL.gguf: expected a file, found nothing"),
    ([MODEL], "--prompt: expected a text, found nothing"),
    ([MODEL, "--prompt"], "--prompt: expected a text, found nothing"),
    ([MODEL, "--prompt", "a", "-n", "0"], "-n: expected a whole number from 1 to 1048576, found '0'"),
    ([MODEL, "--prompt", "a", "-n", "-4"], "-n: expected a whole number from 1 to 1048576, found '-4'"),
    ([MODEL, "--prompt", "a", "-n", "99999999999999999999"], "found '99999999999999999999'"),
    ([MODEL, "--prompt", "a", "-n", "4x"], "found '4x'"),
    ([MODEL, "--prompt", "a", "--temperature", "-1"], "--temperature: expected a number from 0 to 100, found '-1'"),
    ([MODEL, "--prompt", "a", "--temperature", "nan"], "found 'nan'"),
    ([MODEL, "--prompt", "a", "--top-p", "1.5"], "--top-p: expected a number from 0 to 1, found '1.5'"),
    ([MODEL, "--prompt", "a", "--seed", "x"], "--seed: expected a whole number"),
    ([MODEL, "--prompt", "a", "--verbose"], "--verbose: expected an option, found '--verbose'"),
    ([MODEL, MODEL, "--prompt", "a"], "expected an option"),
]
FAILED = [
    (["no/such.gguf", "--prompt", "a"], "no/such.gguf: "),
    ([MODEL, "--prompt", ""], "--prompt: expected a text of at least one token, found none"),
    ([MODEL, "--prompt", "a", "--context", "99999"], "--context: expected at most"),
    ([MODEL, "--prompt", "a b c d e f", "--context", "2"], "--prompt: expected fewer tokens than the context has, 2, found"),
    ([MODEL, "--prompt", "a", "--driver", "no/such.so"], "no/such.so: "),
    ([MODEL, "--prompt", "a", "--chat"], "--prompt"),
]


def refusals(program, emulator, _failing, models, _rows):
    model, count = small_model(models), 0
    for cases, status in ((REFUSED, 2), (FAILED, 1)):
        for arguments, expected in cases:
            got = run([program] + [model if a is MODEL else a for a in arguments] +
                      ([] if "--driver" in arguments or status == 2 else ["--driver", emulator]))
            if got.returncode != status or expected not in got.stderr or got.stdout:
                raise Failed(f"{arguments}: exit status {got.returncode}\n{got.stdout}{got.stderr}expected {status} and: {expected}")
            count += 1
    print(f"{count} refusals as expected")


# ---- calls that fail ----------------------------------------------------------------------------------------------------


def with_fault(program, emulator, failing, model, **fault):
    return run([program, model, "--prompt", "The rain had", "-n", "3", "--driver", failing[0]],
               {"LM_DRIVER": emulator, "LD_PRELOAD": failing[1], **{k: str(v) for k, v in fault.items()}})


def judge(what, got, answer):
    said = got.stderr
    if got.returncode < 0:
        raise Failed(f"{what}: ended by signal {-got.returncode}\n{got.stderr}")
    # kiln_close leaves modules loaded that it cannot tell the context of; the context takes them with it
    left = re.sub(", left: [0-9]+ of cuModuleLoadDataEx", "", said) if what.endswith(" cuCtxGetCurrent") else said
    if "left:" in left:
        raise Failed(f"{what}: something was not given back\n{got.stderr}")
    if got.returncode == 0:
        if got.stdout != answer:
            raise Failed(f"{what}: exit status 0 with another answer, {got.stdout!r}\n{got.stderr}")
    elif got.returncode != 1 or not re.search("^kiln-lm: .", said, re.M) or not answer.startswith(got.stdout.rstrip("\n")):
        raise Failed(f"{what}: exit status {got.returncode}, {got.stdout!r}\n{got.stderr}")
    return got.returncode


def failures(program, emulator, failing, models, rows):
    model = small_model(models)
    whole = with_fault(program, emulator, failing, model, LM_LIST=1)
    calls = re.findall(r"^call (\d+) (\w+)$", whole.stderr, re.M)
    allocations = int(re.search(r"(\d+) allocations", whole.stderr)[1])
    if whole.returncode or "left:" in whole.stderr:
        raise Failed(f"without a fault: exit status {whole.returncode}\n{whole.stderr[-2000:]}")
    chosen = [(int(number), name) for number, name in calls]
    if not rows:
        first, last = {}, {}
        for number, name in chosen:
            first.setdefault(name, number)
            last[name] = number
        chosen = sorted({(number, name) for kind in (first, last) for name, number in kind.items()})
    refused = sum(judge(f"call {number}, {name}", with_fault(program, emulator, failing, model, LM_FAIL_CALL=number), whole.stdout)
                  for number, name in chosen)
    full = [(int(number), name) for number, name in calls if name == "cuMemAlloc_v2"]
    for number, name in full:
        got = with_fault(program, emulator, failing, model, LM_FAIL_CALL=number, LM_FAIL_CODE=2)
        if judge(f"call {number}, no memory", got, whole.stdout) != 1 or "has no room for" not in got.stderr:
            raise Failed(f"call {number}, no memory\n{got.stderr}")
    for number in range(1, allocations + 1):
        got = with_fault(program, emulator, failing, model, LM_FAIL_HEAP=number)
        if judge(f"allocation {number}", got, whole.stdout) != 1 or "memory" not in got.stderr:
            raise Failed(f"allocation {number}\n{got.stderr}")
    print(f"{len(chosen)} of {len(calls)} calls failed in turn, {refused} with a message, the others without harm; "
          f"{len(full)} times no memory on the device, {allocations} times none on the host")


# ---- an interrupt -------------------------------------------------------------------------------------------------------


def interrupt(program, emulator, _failing, models, _rows):
    model = small_model(models)
    with subprocess.Popen([program, model, "--prompt", "The rain", "-n", "100000", "--context", "0", "--driver", emulator],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.read(1)  # the first token is there
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    if process.returncode != 130 or "interrupted" not in stderr or "per second" not in stderr or not stdout.endswith("\n"):
        raise Failed(f"exit status {process.returncode}\n{stdout[-300:]}\n{stderr}")
    print("ended after a token, with the statistics")


def main(verb, program, emulator, driver, heap, models, *rows):
    checks = {"refusals": refusals, "failures": failures, "interrupt": interrupt}
    pathlib.Path(models).mkdir(parents=True, exist_ok=True)
    try:
        checks[verb](program, emulator, (driver, heap), models, rows)
    except Failed as failed:
        print(failed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
