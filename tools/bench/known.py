"""Which probes already have results, by the card's name, the driver's version, the probe, and a hash of its kernels and cases.

In probes.jsonl, the row "begin" has the driver's version, "device" the card's name, and "took" a probe's hash if all its cases
ran. A probe without kernels of its own always runs.
"""
import hashlib
import json
import pathlib

FILE = "probes.jsonl"


def text_of(probe):
    """A hash of the probe's kernels and cases, 16 digits; None: it has no kernel."""
    if not probe.text or not probe.cases:
        return None
    whole = hashlib.sha256()
    for case in probe.cases:
        whole.update(json.dumps(case, sort_keys=True).encode())
        whole.update(probe.text(**case).encode())
    return whole.hexdigest()[:16]


def read(path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines() if pathlib.Path(path).exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def follow(rows):
    """Yields each row with the (card, driver) that it was measured on."""
    card = driver = None
    for row in rows:
        driver = row.get("kernel_driver") if row["probe"] == "begin" else driver
        if row["probe"] == "device" and "name" in row:
            card, driver = row["name"], driver or row.get("driver_version")
        yield row, (card, driver)


def identity(path):
    """(card, driver) of the last run in a file."""
    return ([(None, None)] + [which for _, which in follow(read(path))])[-1]


def collect(results):
    """[[card, driver, probe, text, folder]] from all folders of results."""
    found = []
    for path in sorted(pathlib.Path(results).glob(f"*/{FILE}")):
        for row, (card, driver) in follow(read(path)):
            if row["probe"] == "took" and row.get("text"):
                found.append([card, driver, row["name"], row["text"], path.parent.name])
    return found


def load(path):
    """{(card, driver, probe, text): folder}, from a file of collect()'s result."""
    return {tuple(key): folder for *key, folder in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))}
