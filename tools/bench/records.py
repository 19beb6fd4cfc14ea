"""The files of a run: JSON lines in a few files of one folder, written at once, so that a killed run keeps them."""
import gzip
import json
import pathlib
import statistics
import threading
import time

FILES = "run", "verify", "times", "probes", "peers", "replay", "examine"  # FILE.jsonl each; only a few files may come back
MOST_BYTES = 15 << 20  # per file


class Records:
    """Raises OSError if the folder cannot be written. `lost` is the first error of a row that did not fit on the disk."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start = time.monotonic()
        self.lock = threading.Lock()
        self.lost = None
        self.path("run").open("ab").close()
        for file in FILES:
            cut_piece(self.path(file))

    def path(self, file):
        return self.folder / f"{file}.jsonl"

    def add(self, file, row):
        """Appends the row as one line, with the seconds since the run began. A row that no longer fits is dropped."""
        line = (json.dumps({**row, "at": round(time.monotonic() - self.start, 2)}) + "\n").encode()
        with self.lock:
            try:
                with self.path(file).open("ab") as out:
                    if out.tell() + len(line) <= MOST_BYTES:
                        out.write(line)
            except OSError as why:
                self.lost = self.lost or why
                cut_piece(self.path(file))


def cut_piece(path):
    """Removes the piece of a line that a killed run or a full disk left at the end of a file."""
    if path.exists():
        with path.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


def read(folder, file):
    """The rows of FILE.jsonl.gz, for committed results, then those of FILE.jsonl. An incomplete last line of a killed run is
    left out."""
    lines = []
    for path, open_text in (pathlib.Path(folder) / f"{file}.jsonl.gz", gzip.open), (pathlib.Path(folder) / f"{file}.jsonl", open):
        if path.exists():
            with open_text(path, "rt", encoding="utf-8", newline="\n") as text:
                lines += text
    return [json.loads(line) for line in lines if line.endswith("}\n")]


def about(folder):
    """The row that describes the machine; None if there is none."""
    return next((row for row in read(folder, "run") if "kernel_driver" in row), None)


def microseconds(row):
    """The median of a row's times, in microseconds."""
    return row["us"]["median"] if isinstance(row["us"], dict) else statistics.median(row["us"])
