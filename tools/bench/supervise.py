"""Supervises programs that answer each input line with a line of JSON. If a line ends its program, or gets no answer in
time, only that line is lost: a new program continues with the next one."""
import collections
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time

START_SECONDS = 60  # until a program's first line, before which it opens the device
MOST_FAILED_STARTS = 3
INTERRUPTED = -signal.SIGINT, -signal.SIGTERM  # by the user, who also interrupts the supervisor


class Ended(Exception):
    """The program ended, or ran out of time, before it wrote a whole line."""


class Child:
    """One program. Its first line says that it is ready."""

    def __init__(self, command):
        self.complaints = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints)
        self.pending = b""

    def read(self, until):
        """The next line of JSON."""
        while b"\n" not in self.pending:
            seconds = until - time.monotonic()
            if seconds <= 0 or not select.select([self.process.stdout], [], [], seconds)[0]:
                raise Ended("no answer in time")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise Ended(f"ended with {self.process.wait()}: {self.complaint()}")
            self.pending += piece
        line, _, self.pending = self.pending.partition(b"\n")
        return json.loads(line)

    def ask(self, line, until):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its last output is read below
        return self.read(until)

    def has_ended(self, seconds):
        try:
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def complaint(self):
        self.complaints.seek(0)
        return " ".join(self.complaints.read().decode(errors="replace").split())[-500:]

    def stop(self):
        self.process.kill()
        self.process.wait()
        for file in self.process.stdin, self.process.stdout, self.complaints:
            try:
                file.close()
            except BrokenPipeError:
                pass


class Feed:
    """Hands lines to programs, in order, until a time.

    command        of a program
    is_fine(row)   False: the program may exit after this row
    on_first(row)  gets each program's first line
    on_row(line, row)      gets each answer
    on_lost(line, why)     gets each line that has none: "died ...", "hung ..."
    """

    def __init__(self, command, is_fine, on_first, on_row, on_lost, line_seconds):
        self.command, self.is_fine, self.line_seconds = command, is_fine, line_seconds
        self.on_first, self.on_row, self.on_lost = on_first, on_row, on_lost
        self.failed_starts = 0
        self.children = set()
        self.lock = threading.Lock()

    def run(self, lines, until, programs=1):
        """Returns the lines that did not run: time was up, or no program would start. An exception, such as
        KeyboardInterrupt, ends all programs; lines that they had not answered are not lost."""
        self.lines, self.until = collections.deque(lines), until
        threads = [threading.Thread(target=self.work) for _ in range(min(programs, len(lines)))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self.stop()
            for thread in filter(threading.Thread.is_alive, threads):
                thread.join()
            raise
        return list(self.lines)

    def stop(self):
        """Time is up, now."""
        with self.lock:
            self.until = 0
            for child in self.children:
                child.process.kill()

    def take(self):
        with self.lock:
            has_time = time.monotonic() < self.until and self.failed_starts < MOST_FAILED_STARTS
            return self.lines.popleft() if self.lines and has_time else None

    def give_back(self, line):
        with self.lock:
            self.lines.appendleft(line)

    def start(self):
        child = Child(self.command)
        with self.lock:
            self.children.add(child)
            if self.until == 0:
                child.process.kill()
        try:
            self.on_first(child.read(min(self.until, time.monotonic() + START_SECONDS)))
            self.failed_starts = 0
            return child
        except (Ended, ValueError) as why:
            child.stop()
            if time.monotonic() < self.until and child.process.returncode not in INTERRUPTED:
                self.failed_starts += 1
                self.on_lost(None, f"no start: {why}")
            return None

    def work(self):
        child = None
        while (line := self.take()) is not None:
            child = child or self.start()
            if not child:
                self.give_back(line)
                continue
            child = self.ask(child, line)
        if child:
            child.stop()

    def ask(self, child, line):
        """Asks one line. Returns the program to continue with; None: start a new one."""
        try:
            row = child.ask(line, min(self.until, time.monotonic() + self.line_seconds))
        except (Ended, ValueError) as why:
            child.stop()
            if time.monotonic() >= self.until or child.process.returncode in INTERRUPTED:
                self.give_back(line)
            else:
                self.on_lost(line, str(why))
            return None
        self.on_row(line, row)
        if self.is_fine(row) or not child.has_ended(1):
            return child
        child.stop()
        return None
