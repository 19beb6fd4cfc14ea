#!/usr/bin/env python3
"""Published kernels' defects, that ours do not have: three that show in the error of quantising normal samples, which
is what it should be, and far from what was published with the defect; and one name for two kernels.

usage: check_defects.py KILN FULL_CONFIG RMSE DRIVER
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

# relative RMSE of 65,536 normal samples in groups of 64
RIGHT = {
    "int4-sym": 0.107,   # 0.216 where codes are truncated instead of rounded
    "int4-asym": 0.090,  # 0.718 where they are, and the zero is never used
    "nf4": 0.092,        # 0.730 where the scale is absmax / 7, as INT4's
}
TOLERANCE = 0.002  # the figures were published with other samples


def errors(out):
    return {tuple(line.split()[:2]): float(line.split()[2]) for line in out.splitlines()}


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
    kiln, full, rmse, driver = sys.argv[1:]
    healthy = errors(subprocess.run([rmse, driver], check=True, text=True, capture_output=True).stdout)
    fine = [check(f"{path}, {how}", healthy[path, how], wanted)
            for path, wanted in RIGHT.items() for how in ("fused", "steps")]
    fine.append(check_names(kiln, full))
    sys.exit(not all(fine))


main()
