#!/usr/bin/env python3
"""Tests the order of an instruction's modifiers: the emulated driver accepts exactly the orders that ptxas accepts.

usage: orders.py check DRIVER TABLE    compares the emulated driver with the table
       orders.py ptxas TABLE           compares this machine's ptxas with the table (exits 77 without a ptxas that knows its PTX)
       orders.py make TABLE            rewrites the table with the orders that ptxas accepts
"""
import collections
import ctypes
import itertools
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BODY = """.address_size 64
.func f(.reg .u32 a) { ret; }
.visible .entry k(.param .u64 p0)
{
.reg .b8 %b<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .u32 %u<9>; .reg .f32 %f<9>; .reg .b64 %d<9>; .reg .f64 %e<9>;
.reg .b128 %q<9>; .reg .pred %p<9>; L1: T1: .branchtargets L1;
"""
FIRST_LINE = 3 + BODY.count("\n")
ALL_UP_TO = 4  # with more modifiers, only some orders are tried


def nth_order(count, n):
    left, order = list(range(count)), []
    while left:
        step = math.factorial(len(left) - 1)
        order.append(left.pop(n // step))
        n %= step
    return tuple(order)


def orders_of(count):
    """Returns all orders but the written one; with many modifiers, exchanged neighbours, rotations and some of the rest."""
    if count <= ALL_UP_TO:
        return list(itertools.permutations(range(count)))[1:]
    one = tuple(range(count))
    tried = [one[:i] + (i + 1, i) + one[i + 2:] for i in range(count - 1)]
    tried += [one[i:] + one[:i] for i in range(1, count)] + [one[::-1]]
    tried += [nth_order(count, 7919 * n % math.factorial(count)) for n in range(1, 13)]
    return [order for order in dict.fromkeys(tried) if order != one]


def reordered(text, order):
    name, space, operands = text.partition(" ")
    opcode, *words = name.split(".")
    return ".".join([opcode] + [words[i] for i in order]) + space + operands


def digits(order):
    return "".join("0123456789ab"[i] for i in order)


def described(text, is_taken, tried):
    """Describes the accepted orders. tried: (order, whether it is accepted). An order of equal modifiers may be the written one."""
    if not is_taken:
        return "never"
    taken, refused = ([digits(order) for order, good in tried if good == wanted] for wanted in (True, False))
    if not refused or not taken:
        return "any" if tried and not refused else "one"
    return " ".join(["but"] + refused) if len(refused) < len(taken) else " ".join(["also"] + taken)


def read(path):
    """Returns {(target, version): [(instruction, its accepted orders)]}."""
    table, where = collections.defaultdict(list), None
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("== "):
            where = tuple(line.split()[1:])
        elif line and not line.startswith("#"):
            text, _, said = line.rpartition("; ")
            table[where].append((text + ";", said))
    return table


def forms(instructions):
    """Returns every text to try, once."""
    asked = dict.fromkeys(instructions)
    for text in instructions:
        words = text.partition(" ")[0].count(".")
        asked.update(dict.fromkeys(reordered(text, order) for order in orders_of(words)))
    return list(asked)


def verdict(text, takes):
    words = text.partition(" ")[0].count(".")
    return described(text, takes[text], [(order, takes[reordered(text, order)]) for order in orders_of(words)])


def program(target, version, lines):
    return f".version {version}\n.target {target}\n{BODY}" + "".join(line + "\n" for line in lines) + "}\n"


def ask_ptxas(target, version, lines):
    """Returns the lines that ptxas rejects. It reports some mistakes only if there are no others, so the rejected lines are
    removed and the rest is tried again."""
    refused, left = set(), list(lines)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "orders.ptx"
        while True:
            file.write_text(program(target, version, left))
            done = subprocess.run(["ptxas", f"-arch={target}", str(file), "-o", os.devnull], capture_output=True, text=True,
                                  check=False)
            found = {int(n) - FIRST_LINE for n in re.findall(r"line (\d+); (?:error|fatal)", done.stdout + done.stderr)}
            found = {left[n] for n in found if 0 <= n < len(left)}
            refused |= found
            if not found:
                break
            left = [line for line in left if line not in found]
    return {line: line not in refused for line in lines}


class Driver:
    def __init__(self, path, targets):
        devices = sorted({target.rstrip("af") for target in targets})
        os.environ["KILN_EMU_DEVICE"] = ",".join(devices)
        self.cuda = ctypes.CDLL(path)
        self.contexts = {}
        if self.cuda.cuInit(0):
            sys.exit("cuInit failed")
        for n, name in enumerate(devices):
            self.contexts[name] = ctypes.c_void_p()
            if self.cuda.cuCtxCreate_v2(ctypes.byref(self.contexts[name]), 0, n):
                sys.exit(f"there is no context for {name}")

    def loads(self, text):
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(65536)
        options = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        if self.cuda.cuModuleLoadDataEx(ctypes.byref(module), text.encode(), 2, options, values):
            return False
        self.cuda.cuModuleUnload(module)
        return True

    def ask(self, target, version, lines):
        self.cuda.cuCtxSetCurrent(self.contexts[target.rstrip("af")])
        return {line: self.loads(program(target, version, [line])) for line in lines}


def compare(table, ask, who):
    asked = wrong = 0
    for (target, version), rows in table.items():
        lines = forms([text for text, _ in rows])
        takes = ask(target, version, lines)
        asked += len(lines)
        for text, said in rows:
            says = verdict(text, takes)
            if says != said:
                wrong += 1
                print(f"{target} {version}: {text}\n  the table says   {said}\n  {who} says {says}")
    print(f"{asked} texts of {sum(map(len, table.values()))} instructions, {wrong} instructions on which they differ")
    return wrong


def require_ptxas():
    if not shutil.which("ptxas"):
        print("skipped: there is no ptxas")
        sys.exit(77)
    lines = subprocess.run(["ptxas", "--version"], capture_output=True, text=True, check=True).stdout
    if "release 13.0" not in lines:
        print("skipped: the table is of ptxas 13.0, this is another")
        sys.exit(77)


def make(path):
    table = read(path)
    text = pathlib.Path(path).read_text()
    out = [line for line in text.splitlines() if line.startswith("#")]
    for (target, version), rows in table.items():
        takes = ask_ptxas(target, version, forms([text for text, _ in rows]))
        out += [f"== {target} {version}"] + [f"{text} {verdict(text, takes)}" for text, _ in rows]
    pathlib.Path(path).write_text("\n".join(out) + "\n")


def main():
    verb, *rest = sys.argv[1:] or [""]
    if verb == "check" and len(rest) == 2:
        table = read(rest[1])
        sys.exit(1 if compare(table, Driver(rest[0], [t for t, _ in table]).ask, "the emulated driver") else 0)
    if verb == "ptxas" and len(rest) == 1:
        require_ptxas()
        sys.exit(1 if compare(read(rest[0]), ask_ptxas, "ptxas") else 0)
    if verb == "make" and len(rest) == 1:
        require_ptxas()
        make(rest[0])
        return
    sys.exit(__doc__)


main()
