#!/usr/bin/env python3
"""Published kernels' defects, that ours do not have: three that show in the error of quantising normal samples, which
is what it should be, and what was published with the defect planted; and one name for two kernels.

usage: check_defects.py KILN CONFIG FULL_CONFIG RMSE DRIVER FAULTY_DRIVER
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

from faults import FAULTS, kernel_id

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from plant import Planter, plant  # pylint: disable=wrong-import-position

# relative RMSE of 65,536 normal samples in groups of 64
RIGHT = {"int4-sym": 0.107, "int4-asym": 0.090, "nf4": 0.092}
# defect: of which path, the error with it, and the faults that it is, by kernel
DEFECTS = {
    "truncates instead of rounding": ("int4-sym", 0.216, {"pack sym": ["truncated with the bias"]}),
    "never uses the zero, and truncates": ("int4-asym", 0.718, {"pack asym": ["zero unused", "truncated"],
                                                                "unpack asym": ["zero unused"]}),
    "divides by absmax / 7": ("nf4", 0.730, {"scale nf4": ["absmax by 7"]}),
}
TOLERANCE = 0.002  # the figures were published with other samples


def errors(out):
    return {tuple(line.split()[:2]): float(line.split()[2]) for line in out.splitlines()}


def faulty_text(planter, kernel, faults):
    text = planter.image(kernel_id(kernel))
    for fault in faults:
        rows = [edit for name, _, *edit in FAULTS[kernel_id(kernel)] if name.split(",")[0] == fault]
        assert len(rows) == 1, f"{len(rows)} faults '{fault}' of {kernel}"
        text = plant(text, *rows[0])
    return text


def check(what, error, wanted):
    is_right = abs(error - wanted) <= TOLERANCE
    print(f"{'ok   ' if is_right else 'WRONG'} {what}: relative RMSE {error:.4f}, expected {wanted}")
    return is_right


def check_names(kiln, config):
    """Every value of every parameter: no two variants share an entry point's name or a key."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([kiln, "generate", config, "--output", folder], check=True)
        manifest = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text(encoding="utf-8"))
    variants = manifest["variants"]
    shared = [(key, name) for key in ("id", "entry", "key")
              for name, count in collections.Counter(v[key] for v in variants).items() if count > 1]
    print(f"{'WRONG' if shared else 'ok   '} one name for two kernels: {shared or f'none of {len(variants)} variants'}")
    return not shared


def main():
    kiln, config, full, rmse, driver, faulty_driver = sys.argv[1:]
    planter = Planter(kiln, config)
    healthy = errors(subprocess.run([rmse, driver], check=True, text=True, capture_output=True).stdout)
    fine = [check(f"{path}, {how}", healthy[path, how], wanted)
            for path, wanted in RIGHT.items() for how in ("fused", "steps")]
    for defect, (path, wanted, faults) in DEFECTS.items():
        texts = {kernel_id(k): faulty_text(planter, k, names) for k, names in faults.items()}
        out = planter.run([rmse, faulty_driver], texts, KILN_EMU_DEVICE="sm_75").stdout
        fine.append(check(f"{path} that {defect}", errors(out)[path, "steps"], wanted))
    fine.append(check_names(kiln, full))
    sys.exit(not all(fine))


main()
