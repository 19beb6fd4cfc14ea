"""Replays the instructions of all warps of one multiprocessor, cycle by cycle, with what ptxas tells the scheduler.

Each of four quarters issues one instruction per cycle, from its oldest warp that can issue. A warp waits for its stall counts, its
scoreboards, barriers and groups of copies; an instruction waits for its pipe. The quarters share the load/store unit, which takes a
wavefront per cycle, the port to the L2 cache, and this multiprocessor's share of the memory's bandwidth.
"""
import collections
import heapq
import math

QUARTERS = 4
OWN_PIPES = "tensor", "fma", "imad", "alu", "special", "double"  # of each quarter
LOAD_STORE = "load_store"
COMMIT, WAIT, BARRIER, BRANCH, NONE = "commit", "wait", "barrier", "branch", "none"

Step = collections.namedtuple("Step", "pipe cycles latency stall sets frees waits l2_bytes memory_bytes is_copy keep warps "
                                      "reads line", defaults=(1, 0, 1, 7, 7, 0, 0, 0, False, 0, 0, 0, None))
"""One executed instruction. cycles: how long it occupies its pipe; in the load/store unit, its wavefronts. latency: cycles from
then until the result. stall, sets, frees, waits: see machine_code.py. l2_bytes, memory_bytes: through the L2 cache, and from or to
memory. is_copy: a cp.async, in the group that the next commit closes. keep: groups of copies that a wait leaves in flight. warps:
how many a barrier waits for; 0: those of the thread block. reads: cycles that its operands occupy the register ports. line: which
128 bytes of the code it is in; None: they are in the cache."""

Machine = collections.namedtuple("Machine", "l2_rate memory_rate l2_latency memory_latency")  # bytes per cycle, cycles
Result = collections.namedtuple("Result", "cycles busy")  # busy: {resource: its share of the cycles}

QUEUE = 32  # wavefronts that wait for the load/store unit; then loads and stores stall
READ_OPERANDS = 8  # cycles from the last wavefront of a load or store until its operands have been read
COPY_OPERANDS = 20  # cycles from the issue of a copy until its operands have been read
BLOCK_START = 200  # cycles from one thread block's start on a multiprocessor to the next one's: an H100, large empty grids
BRANCH_CYCLES = 6
PREFETCHED = 8  # lines of code in flight from the L2 cache when a multiprocessor runs them for the first time; not measured


def barrier_cycles(warps):
    """Measured on an H100 for 2 to 16 warps."""
    return 12 + 2 * warps


class Warp:
    __slots__ = "block", "quarter", "at", "boards", "opened", "groups", "first"

    def __init__(self, block, quarter, first):
        self.block, self.quarter, self.first = block, quarter, first
        self.at, self.boards, self.opened, self.groups = 0, [0.0] * 8, 0.0, []


def run(steps, warps, blocks, resident, machine):
    """Like replay(), but replays only the first of many thread blocks, and continues at the rate of the last of these."""
    most = 4 * resident
    if blocks <= most + resident:
        return replay(steps, warps, blocks, resident, machine)
    some, more = (replay(steps, warps, n, resident, machine) for n in (most - 2 * resident, most))
    rate = (more.cycles - some.cycles) / (2 * resident)
    cycles = more.cycles + (blocks - most) * rate
    return Result(cycles, {name: share * more.cycles / most * blocks / cycles for name, share in more.busy.items()})


def replay(steps, warps, blocks, resident, machine):
    """Runs `blocks` thread blocks of `warps` warps, `resident` at once, each warp with these steps. Returns a Result."""
    issue, ports = [0] * QUARTERS, [0.0] * QUARTERS
    fetched = {}  # line of code: when it arrives
    pipes = [dict.fromkeys(OWN_PIPES, 0.0) for _ in range(QUARTERS)]
    busy = dict.fromkeys((*OWN_PIPES, "issue", LOAD_STORE, "l2", "memory"), 0.0)
    load_store = l2 = memory = 0.0
    running, waiting, events = [0] * blocks, collections.defaultdict(list), []
    started, end, length = 0, 0, len(steps)

    def start(time):
        nonlocal started
        running[started] = warps
        for n in range(warps):
            heapq.heappush(events, (time, started * warps + n, Warp(started, (started * warps + n) % QUARTERS, n)))
        started += 1

    def ready(warp, time):
        """When the warp's next instruction can issue: at `time`, or later."""
        if warp.at == length:
            return time
        step, boards = steps[warp.at], warp.boards
        if step.waits:
            for n in range(6):
                if step.waits >> n & 1 and boards[n] > time:
                    time = boards[n]
        if step.pipe == WAIT and len(warp.groups) > step.keep:
            time = max(time, warp.groups[len(warp.groups) - step.keep - 1])
        return time

    for n in range(min(resident, blocks)):
        start(n * BLOCK_START)
    while events:
        time, rank, warp = heapq.heappop(events)
        if warp.at == length:
            end = max(end, time)
            running[warp.block] -= 1
            if not running[warp.block] and started < blocks:
                start(time + BLOCK_START)
            continue
        step, q = steps[warp.at], warp.quarter
        if issue[q] > time:
            heapq.heappush(events, (issue[q], rank, warp))
            continue
        if ports[q] >= time + 1:
            heapq.heappush(events, (int(ports[q]), rank, warp))
            continue
        time, pipe, line = math.ceil(time), step.pipe, step.line
        if line is not None:
            if line not in fetched:
                preceding, latency = fetched.get(line - 1), machine.l2_latency
                fetched[line] = time + latency if preceding is None else max(time, preceding + latency / PREFETCHED)
            if fetched[line] > time:
                heapq.heappush(events, (fetched[line], rank, warp))
                continue
        if pipe in pipes[q]:
            free = pipes[q][pipe]
            if free >= time + 1:
                heapq.heappush(events, (int(free), rank, warp))
                continue
            pipes[q][pipe] = done = max(free, time) + step.cycles
            busy[pipe] += step.cycles / QUARTERS
            warp.boards[step.sets] = max(warp.boards[step.sets], done + step.latency)
            warp.boards[step.frees] = max(warp.boards[step.frees], done)
        elif pipe == LOAD_STORE:
            if load_store > time + QUEUE:
                heapq.heappush(events, (load_store - QUEUE, rank, warp))
                continue
            load_store = max(load_store, time) + step.cycles
            busy[LOAD_STORE] += step.cycles
            done = load_store + step.latency
            if step.l2_bytes:
                l2 = max(l2, time) + step.l2_bytes / machine.l2_rate
                done = max(l2, time + machine.l2_latency)
            if step.memory_bytes:
                memory = max(memory, time) + step.memory_bytes / machine.memory_rate
                done = max(done, memory + machine.l2_latency, time + machine.memory_latency)
            if step.is_copy:
                warp.opened = max(warp.opened, done)
                warp.boards[step.frees] = max(warp.boards[step.frees], time + COPY_OPERANDS)
            else:
                warp.boards[step.sets] = max(warp.boards[step.sets], done)
                warp.boards[step.frees] = max(warp.boards[step.frees], load_store + READ_OPERANDS)
        elif pipe == COMMIT:
            warp.groups.append(max(warp.opened, warp.groups[-1] if warp.groups else 0))
            warp.opened = 0.0
        else:
            warp.boards[step.sets] = max(warp.boards[step.sets], time + step.latency)
        issue[q] = time + 1
        ports[q] = max(ports[q], time) + step.reads
        busy["issue"] += 1 / QUARTERS
        warp.at += 1
        after = time + max(step.stall, BRANCH_CYCLES if pipe == BRANCH else 1)
        if pipe == BARRIER:
            count = step.warps or warps
            group = waiting[warp.block, warp.first // count]
            group.append((rank, warp))
            if len(group) == count:
                for other_rank, other in group:
                    heapq.heappush(events, (ready(other, time + barrier_cycles(count)), other_rank, other))
                group.clear()
        else:
            heapq.heappush(events, (ready(warp, after), rank, warp))
    cycles = max(end, l2, memory, 1)
    busy["l2"] = sum(s.l2_bytes for s in steps) * warps * blocks / machine.l2_rate
    busy["memory"] = sum(s.memory_bytes for s in steps) * warps * blocks / machine.memory_rate
    return Result(cycles, {name: share / cycles for name, share in busy.items()})
