"""Finds phases that need not run: results of the same card, driver and kernel text are committed."""
import hashlib
import json
import pathlib
import subprocess
import tempfile

import records


def kernel_text(kiln, config):
    """A hash of all images that a configuration makes."""
    with tempfile.TemporaryDirectory() as room:
        subprocess.run([kiln, "generate", config, "--output", room, "--quiet"], check=True)
        manifest = json.loads(next(pathlib.Path(room).glob("*.json")).read_text(encoding="utf-8"))
    images = [[variant["id"], image["target"], image["xxh3_128"]] for variant in manifest["variants"] for image in variant["images"]]
    return hashlib.sha256(json.dumps(images).encode()).hexdigest()[:32]


def machines(results, file, phase, kernels):
    """[device, driver] of each row of the phase with these kernels."""
    rows = [row for folder in sorted(pathlib.Path(results).glob("*/")) for row in records.read(folder, file)]
    return [[row["device"], row["kernel_driver"]] for row in rows if row.get("phase") == phase and row.get("kernels") == kernels]


def has_results(run, measured):
    """Whether the run's device and driver are among these [device, driver]."""
    names = [row["first"]["device"]["name"] for row in records.read(run.records.folder, "run") if "kernel_driver" in row]
    return bool(names) and [names[-1], run.card.driver()] in measured
