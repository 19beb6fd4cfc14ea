"""The files of a run: JSON lines in a few files of one folder, written at once, so that a killed run keeps them."""
import json
import pathlib
import threading
import time

FILES = "run", "verify", "times", "probes", "peers", "examine"  # FILE.jsonl each; only a few files may come back
MOST_BYTES = 15 << 20  # per file


class Records:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start = time.monotonic()
        self.lock = threading.Lock()

    def path(self, file):
        return self.folder / f"{file}.jsonl"

    def add(self, file, row):
        """Appends the row as one line, with the seconds since the run began. A row that no longer fits is dropped."""
        text = json.dumps({**row, "at": round(time.monotonic() - self.start, 2)}) + "\n"
        with self.lock, self.path(file).open("a", encoding="utf-8") as out:
            if out.tell() + len(text) <= MOST_BYTES:
                out.write(text)


def read(folder, file):
    """The rows of a file. The last line of a killed run may be incomplete and is then left out."""
    path = pathlib.Path(folder) / f"{file}.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("}\n")]
