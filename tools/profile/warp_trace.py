"""Finds the instructions that one warp executes, from how often the kernel's PTX lines ran (machine_code.py has their lines).

The counts give the trips of each loop and the taken side of each branch, also where ptxas unrolled a loop.
"""
import collections
import re
import statistics

from machine_code import NoPrediction, base, is_exact, is_jump

MOST_STEPS = 4_000_000

# ---- the flow of control -------------------------------------------------------------------------------------------------------


class Flow:
    """Basic blocks, named by the index of their first instruction; END: the exit. before: predecessors; after: successors, the
    taken one first."""

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
        """{block: the blocks on every path to it}"""
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
        """The head of the smallest loop that contains the block, or None."""
        return min((h for h, (body, _) in self.loops.items() if block in body), key=lambda h: len(self.loops[h][0]), default=None)


# ---- how often blocks run ------------------------------------------------------------------------------------------------------


class Frequencies:
    """How often one warp runs each block, from `executed`: {PTX line: executions by one warp}."""

    def __init__(self, flow, executed):
        self.flow, self.executed = flow, executed
        exact, self.rough = self.uses(is_exact), self.uses(lambda i: not is_exact(i))
        self.known = self.solve(exact)
        for b in flow.reached:  # none of the block's exact instructions ran
            if not exact[b] and any(is_exact(flow.code[n]) for n in flow.blocks[b]):
                self.known[b] = 0

    def uses(self, wanted):
        """{block: {line: its instructions there}}. If a line became several instructions, the rarest counts."""
        by_op = collections.defaultdict(collections.Counter)
        for i in self.flow.code:
            if i.line in self.executed and wanted(i):
                by_op[i.line][base(i.op)] += 1
        rarest = {line: min(ops, key=lambda op: (ops[op], op)) for line, ops in by_op.items()}
        return {b: collections.Counter(i.line for i in (self.flow.code[n] for n in self.flow.blocks[b])
                                       if rarest.get(i.line) == base(i.op)) for b in self.flow.reached}

    def solve(self, uses):
        """A line in one block gives the block's frequency. A line in several blocks, such as an unrolled loop and its tail, gives
        the block with the most copies as many whole trips as possible, then the other blocks."""
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
        """The block's frequency, at most that of its loop; None: unknown."""
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
        """Trips of the loop, in all its runs."""
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


# ---- the way of a warp ---------------------------------------------------------------------------------------------------------


class Walk:
    """A warp's way through the blocks. At a branch it takes the side whose blocks lack more runs by then."""

    def __init__(self, flow, frequencies):
        self.flow, self.known = flow, frequencies.known
        self.total = {b: frequencies.of(b) for b in flow.reached}
        self.trips = {head: frequencies.of_loop(head) for head in flow.loops}
        self.outer = {head: flow.innermost(min(flow.before[head], key=lambda b: b in body))
                      for head, (body, _) in flow.loops.items()}
        self.visits, self.entries, self.latched = collections.Counter(), collections.Counter(), collections.Counter()
        self.sides, self.ends = {}, {}  # of a branch: the blocks of one side only; of an exit: whether its trip is complete

    def trace(self):
        """Returns the indices of the instructions."""
        found, b, previous = [], 0, None
        while b != self.flow.END:
            if len(found) > MOST_STEPS:
                raise NoPrediction("the kernel's branches cannot be followed to its end: the counts of its PTX lines do not fit")
            self.count(b, previous)
            found += self.flow.blocks[b]
            after = self.flow.after[b]
            previous, b = b, after[0] if len(after) == 1 else self.choose(b, *after)
        return found

    def count(self, b, previous):
        self.visits[b] += 1
        for head, (body, latches) in self.flow.loops.items():
            self.entries[head] += b == head and previous not in body
            self.latched[head] += b in latches

    def choose(self, b, taken, following):
        head = self.flow.innermost(b)
        if head is not None:
            body = self.flow.loops[head][0]
            if (taken in body) != (following in body):
                stays, leaves = (taken, following) if taken in body else (following, taken)
                return leaves if self.is_done(b, head, stays) else stays
        if b not in self.sides:
            reached = [self.flow.reach(n, {head}) for n in (taken, following)]
            self.sides[b] = reached[0] - reached[1], reached[1] - reached[0]
        only_taken, only_following = self.sides[b]
        if only_taken and only_following:
            lacks, others = self.lack(b, only_taken), self.lack(b, only_following)
            if lacks is None:
                return following
            return taken if (lacks >= 0.5 if others is None else lacks > others) else following
        works, skips = (following, taken) if only_following else (taken, following)  # one side skips the other's blocks
        lacks = self.lack(b, only_following or only_taken)
        if lacks is None:
            return following
        return works if lacks >= 0.5 else skips

    def is_done(self, b, head, stays):
        """Whether the loop has had the trips of all entries so far when block b can leave it. The present trip counts if it has no
        work left."""
        share = min(1, self.entries[head] / max(round(self.all_entries(head)), 1))
        if b not in self.ends:
            body, latches = self.flow.loops[head]
            self.ends[b] = b not in latches and not any(self.known.get(n) for n in self.flow.reach(stays, {head}) & body)
        return self.latched[head] + self.ends[b] >= round(self.trips[head] * share)

    def all_entries(self, head):
        """How often the loop is entered: as often as the blocks before it run, or once per trip of the loop around it."""
        known = [self.total[b] for b in self.flow.before[head] if b not in self.flow.loops[head][0] and self.total[b]]
        return max(known, default=1 if self.outer[head] is None else self.trips[self.outer[head]])

    def lack(self, b, blocks):
        """The largest number of runs that one of the blocks lacks when b runs; None: nothing is known."""
        head = self.flow.innermost(b)
        most = self.total[b] or (1 if head is None else self.trips[head])
        progress = min(1, self.visits[b] / most)
        for known in self.known, self.total:
            lacks = [self.total[n] * progress - self.visits[n] for n in blocks if n in known and self.total[n] is not None]
            if lacks:
                return max(lacks)
        return None


def trace(code, labels, executed):
    """Returns the indices of the instructions that a warp executes, in order. executed: {PTX line: executions by one warp}."""
    flow = Flow(code, labels)
    return Walk(flow, Frequencies(flow, executed)).trace()
