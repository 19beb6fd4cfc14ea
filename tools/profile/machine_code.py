"""Reads a kernel's machine code (SASS), and finds the instructions that one warp executes, from how often its PTX lines ran.

ptxas -lineinfo notes the PTX line of every instruction without changing the code. The emulated driver counts how often each line
ran. Together they give the trips of each loop and the taken side of each branch, also where ptxas unrolled a loop.
"""
import collections
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

Instruction = collections.namedtuple("Instruction", "guard op operands line stall sets frees waits")
# guard: such as "@!P0", or ""; line: of the PTX, or 0. stall to waits: what ptxas tells the scheduler. stall: cycles until the next
# instruction of the warp; sets, frees: the scoreboard that the result releases, and that the read operands release, 7: none; waits:
# a bit for each scoreboard to wait for.

MEMORY = "LDG", "STG", "LD", "ST", "LDS", "STS", "LDSM", "STSM", "LDGSTS", "ATOM", "ATOMG", "ATOMS", "RED", "SHFL"
ONE_TO_ONE = (*MEMORY, "BAR", "HMMA", "IMMA", "QMMA", "OMMA")  # ptxas translates their PTX one to one, and keeps them in their loop
IDLE = "@!PT"  # the guard of instructions that do nothing, which ptxas puts before cp.async
JUMPS = "BRA", "EXIT", "RET", "KILL"
UNKNOWN = re.compile(r"HGMMA|IGMMA|QGMMA|UTC|UBLK|UTMA|SYNCS|USETMAXREG|BRX|JMX")


class Missing(Exception):
    """A tool is not installed, or the code has instructions that the model does not know."""


def base(op):
    return op.split(".")[0]


def is_jump(i):
    """A guarded call is a jump that is too far for a branch; another one is a division's slow way, which returns."""
    return base(i.op) in JUMPS or bool(i.guard) and base(i.op) == "CALL"


def is_exact(i):
    return base(i.op) in ONE_TO_ONE and i.guard != IDLE


# ---- the listing ---------------------------------------------------------------------------------------------------------------


def find_disassembler(folders=()):
    """Finds nvdisasm on the PATH, or in a PyPI package in one of the folders or of this interpreter."""
    found = [shutil.which("nvdisasm")]
    found += [path for place in [*folders, *sys.path] for path in pathlib.Path(place or ".").glob("nvidia/*/bin/nvdisasm")]
    return next((str(path) for path in found if path and os.access(path, os.X_OK)), None)


def assemble(ptx, arch, folders=()):
    """Returns (the listing, registers per thread)."""
    disassembler = find_disassembler(folders)
    if not shutil.which("ptxas"):
        raise Missing("there is no ptxas on the PATH; the CUDA toolkit has it")
    if not disassembler:
        raise Missing("there is no nvdisasm; the CUDA toolkit has it, and so has the package nvidia-cuda-nvdisasm of PyPI")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(ptx)
        done = subprocess.run(["ptxas", "-v", "-lineinfo", f"-arch={arch}", source, "-o", cubin], capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"ptxas: {done.stderr.strip()}")
        listing = subprocess.run([disassembler, "-c", "-gp", "-hex", cubin], capture_output=True, text=True, check=True).stdout
    return listing, int(re.search(r"Used (\d+) registers", done.stderr)[1])


def read(listing):
    """Returns ([Instruction], {label: the index of its instruction})."""
    code, labels, line = [], {}, 0
    for text in listing.splitlines():
        if place := re.match(r'\s*//## File ".*", line (\d+)', text):
            line = int(place[1])
        elif label := re.match(r"\s*(\.L_x_\d+):", text):
            labels[label[1]] = len(code)
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;", text):
            code.append(Instruction(found[1] or "", found[2], found[3], line, 1, 7, 7, 0))
        elif word := re.match(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$", text):  # the high word of an instruction's encoding
            control = int(word[1], 16) >> 41
            code[-1] = code[-1]._replace(stall=control & 15, sets=control >> 5 & 7, frees=control >> 8 & 7,
                                         waits=control >> 11 & 63)
    if unknown := next((i.op for i in code if UNKNOWN.match(i.op)), None):
        raise Missing(f"the model does not know the instruction {unknown}")
    return code, labels


# ---- the flow of control -------------------------------------------------------------------------------------------------------


class Flow:
    """Basic blocks, named by the index of their first instruction; `after` has their successors, the taken one first.
    END: the exit."""

    END = -1

    def __init__(self, code, labels):
        self.code, self.labels = code, labels
        starts = {0} | set(labels.values()) | {n + 1 for n, i in enumerate(code) if is_jump(i)}
        starts = sorted(n for n in starts if n < len(code))
        self.blocks = {first: range(first, after) for first, after in zip(starts, [*starts[1:], len(code)])}
        self.after = {first: self.successors(block[-1]) for first, block in self.blocks.items()}
        self.reached = self.reach(0, set())
        self.before = collections.defaultdict(list)
        for b in self.reached:
            for n in self.after[b]:
                self.before[n].append(b)
        self.dominators = self.find_dominators()
        self.loops = self.find_loops()

    def successors(self, last):
        i, following = self.code[last], last + 1 if last + 1 < len(self.code) else self.END
        if not is_jump(i) or i.op.startswith("BRA.DIV"):  # BRA.DIV: for a warp whose lanes have separated
            return [following]
        label = re.search(r"\.L_x_\d+", i.operands)
        taken = self.labels.get(label[0], self.END) if label else self.END
        is_conditional = i.guard or re.match(r"!?U?P\d", i.operands)
        return [taken, following] if is_conditional else [taken]

    def reach(self, start, walls):
        """The blocks that can run after the beginning of `start`, without passing through a block in `walls`."""
        found, work = set(), [start]
        while work:
            b = work.pop()
            if b != self.END and b not in found and b not in walls:
                found.add(b)
                work += self.after[b]
        return found

    def find_dominators(self):
        """{block: the blocks that every way to it passes}"""
        found = {b: set(self.reached) for b in self.reached} | {0: {0}}
        is_changed = True
        while is_changed:
            is_changed = False
            for b in sorted(self.reached - {0}):
                new = set.intersection(*(found[p] for p in self.before[b])) | {b}
                is_changed |= new != found[b]
                found[b] = new
        return found

    def find_loops(self):
        """{head: (its blocks, its latches)}"""
        found = {}
        for latch in sorted(self.reached):
            for head in self.after[latch]:
                if head in self.dominators[latch]:
                    body, latches = found.setdefault(head, ({head}, set()))
                    latches.add(latch)
                    work = [latch]
                    while work:
                        b = work.pop()
                        if b not in body:
                            body.add(b)
                            work += self.before[b]
        return found

    def innermost(self, block):
        """The head of the smallest loop that has the block, or None."""
        return min((h for h, (body, _) in self.loops.items() if block in body), key=lambda h: len(self.loops[h][0]), default=None)


# ---- how often blocks run ------------------------------------------------------------------------------------------------------


class Frequencies:
    """How often one warp runs each block, from `executed`: {PTX line: executions by one warp}."""

    def __init__(self, flow, executed):
        self.flow, self.executed = flow, executed
        exact, self.rough = self.uses(is_exact), self.uses(lambda i: not is_exact(i))
        self.known = self.solve(exact)
        for b in flow.reached:  # blocks of which nothing ran
            if not exact[b] and any(is_exact(flow.code[n]) for n in flow.blocks[b]):
                self.known[b] = 0

    def uses(self, wanted):
        """{block: {line: its instructions there}}. Of a line that became several instructions the rarest counts."""
        by_op = collections.defaultdict(collections.Counter)
        for i in self.flow.code:
            if i.line in self.executed and wanted(i):
                by_op[i.line][base(i.op)] += 1
        rarest = {line: min(ops, key=lambda op: (ops[op], op)) for line, ops in by_op.items()}
        return {b: collections.Counter(i.line for i in (self.flow.code[n] for n in self.flow.blocks[b])
                                       if rarest.get(i.line) == base(i.op)) for b in self.flow.reached}

    def solve(self, uses):
        """A line that is in one block gives its frequency. One that is in several, such as an unrolled loop and its rest, gives the
        block with the most copies as many whole trips as it allows, then the others."""
        blocks_of, known = collections.defaultdict(list), {}
        for b in sorted(uses):
            for line in uses[b]:
                blocks_of[line].append(b)
        for b in sorted(uses):
            alone = [self.executed[line] / n for line, n in uses[b].items() if len(blocks_of[line]) == 1]
            if alone:
                known[b] = statistics.median(alone)
        for b in sorted(set(uses) - set(known), key=lambda b: (-max(uses[b].values(), default=0), b)):
            found = []
            for line, n in uses[b].items():
                rest = self.executed[line] - sum(known.get(o, 0) * uses[o][line] for o in blocks_of[line])
                is_last = all(o in known or o == b for o in blocks_of[line])
                found.append(max(rest, 0) / n if is_last else max(rest, 0) // n)
            if found:
                known[b] = statistics.median(found)
        return known

    def of(self, block):
        """The block's frequency, at most its loop's; None: unknown."""
        if block == self.flow.END:
            return None
        if block in self.known:
            found = self.known[block]
        else:
            rough = [self.executed[line] / n for line, n in self.rough[block].items()]
            found = statistics.median(rough) if rough else None
        head = self.flow.innermost(block)
        most = self.of_loop(head) if head is not None else 1
        return found if found is None else min(found, most)

    def of_loop(self, head):
        """Trips of the loop, all its runs together."""
        body, latches = self.flow.loops[head]
        own = [b for b in body if self.flow.innermost(b) == head]
        always = [b for b in own if all(b in self.flow.dominators[latch] for latch in latches)]
        exact = [self.known[b] for b in always if b in self.known]
        if exact:
            return max(exact)
        exact = [self.known[b] for b in own if b in self.known]
        if exact:
            return max(exact)
        rough = [self.executed[line] / n for b in always for line, n in self.rough[b].items()]
        return statistics.median(rough) if rough else 1


def trace(code, labels, executed):
    """Returns the indices of the instructions that a warp executes, in order."""
    flow = Flow(code, labels)
    frequency = Frequencies(flow, executed)
    total = {b: frequency.of(b) for b in flow.reached}
    trips = {head: frequency.of_loop(head) for head in flow.loops}
    visits, entries, latched, sides, ends = collections.Counter(), collections.Counter(), collections.Counter(), {}, {}
    outer = {head: flow.innermost(min(flow.before[head], key=lambda b: b in flow.loops[head][0])) for head in flow.loops}

    def runs(head):
        """How often the loop is entered: as often as the blocks before it run, or once per trip of the loop around it."""
        known = [total[b] for b in flow.before[head] if b not in flow.loops[head][0] and total[b]]
        return max(known, default=trips[outer[head]] if outer[head] is not None else 1)

    def is_done(b, head, stays):
        """Whether the loop has had the trips of all entries so far when block b can leave it. The present trip counts if it has no
        work left."""
        share = min(1, entries[head] / max(round(runs(head)), 1))
        if b not in ends:
            body, latches = flow.loops[head]
            ends[b] = b not in latches and not any(frequency.known.get(n) for n in flow.reach(stays, {head}) & body)
        return latched[head] + ends[b] >= round(trips[head] * share)

    def needs(b, blocks):
        """The largest number of runs that one of the blocks lacks by now; None: nothing is known."""
        head = flow.innermost(b)
        most = total[b] or (trips[head] if head is not None else 1)
        progress = min(1, visits[b] / most)
        for known in frequency.known, total:
            lacks = [total[n] * progress - visits[n] for n in blocks if n in known and total[n] is not None]
            if lacks:
                return max(lacks)
        return None

    def choose(b):
        taken, following = flow.after[b]
        head = flow.innermost(b)
        if head is not None:
            body = flow.loops[head][0]
            if (taken in body) != (following in body):
                stays, leaves = (taken, following) if taken in body else (following, taken)
                return leaves if is_done(b, head, stays) else stays
        if b not in sides:
            reached = [flow.reach(n, {head}) for n in (taken, following)]
            sides[b] = reached[0] - reached[1], reached[1] - reached[0]
        lacks = [needs(b, side) for side in sides[b]]
        if not sides[b][0] or not sides[b][1]:  # one side skips the blocks of the other
            other = lacks[1] if sides[b][1] else lacks[0]
            works, skips = (following, taken) if sides[b][1] else (taken, following)
            return skips if other is not None and other < 0.5 else works if other is not None else following
        return taken if lacks[1] is None and lacks[0] is not None and lacks[0] >= 0.5 or \
            None not in lacks and lacks[0] > lacks[1] else following

    found, b, previous = [], 0, None
    while b != flow.END:
        visits[b] += 1
        if len(found) > 4_000_000:
            raise Missing("the way through the code has no end")
        for head, (body, latches) in flow.loops.items():
            if b == head and previous not in body:
                entries[head] += 1
            latched[head] += b in latches
        found += flow.blocks[b]
        after = flow.after[b]
        previous, b = b, after[0] if len(after) == 1 else choose(b)
    return found
