#!/usr/bin/env python3
"""From shapes to times and back: `kiln choose --candidates` keeps the candidates, the program of kiln_add_tune times them at the
configuration's shapes, and `kiln choose` takes the fastest by these times, and by hand-written times.

usage: check_loop.py KILN DRIVER TUNE LOCK        (TUNE has the bundle of loop.yaml; LOCK has its candidates)
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KILN, DRIVER, TUNE, LOCK = sys.argv[1:]
CONFIG = pathlib.Path(__file__).with_name("loop.yaml").read_text()
ROWS = [1, 2, 3, 4, 5, 8, 9]  # the points of {from: 1, to: 9}: ends, powers of two, and t and t + 1 for a tile of t
TYPES = "f16", "bf16"


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}"[:2000])


def run(folder, *command, status=0):
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "KILN_EMU_DEVICE": "sm_90"})
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def variants_of(folder, lock):
    """Returns the ids of a lock file's variants."""
    listed = run(folder, KILN, "list", "loop.yaml", "--lock", lock).stdout
    return [line.split()[1] for line in listed.splitlines()]


def times_of(path):
    """{(rows, variant): nanoseconds}"""
    rows, times = None, {}
    for line in path.read_text().splitlines():
        if found := re.match(r"    shape: {m: (\d+), n: 64, k: 512}$", line):
            rows = int(found[1])
        elif found := re.match(r"      (\S+): (\d+)$", line):
            times[rows, found[1]] = int(found[2])
    return times


def write_times(path, times):
    """Returns a tuned file for an H100."""
    lines = ["compute_capability: 9.0", "multiprocessors: 132", "times:"]
    for rows in ROWS:
        lines += ["  - family: linear", f"    shape: {{m: {rows}, n: 64, k: 512}}", "    nanoseconds:"]
        lines += [f"      {name}: {time}" for (at, name), time in times.items() if at == rows]
    path.write_text("\n".join(lines) + "\n")


def explained(folder, kind, rows):
    """Returns the first variant of `kiln explain`, and whether its time was measured."""
    heading, first, *_ = run(folder, KILN, "explain", "loop.yaml", "linear", "-d", "h100", f"x={kind}", f"m={rows}", "n=64", "k=512",
                             "workspace_size=0", "--long").stdout.splitlines()
    return re.search(r"linear/\S+", first)[0], "measured" in heading


ITEMS = ["  - {family: nf4_gemm, a: [f32, f16], shapes: [{m: [16, 8], n: 64, k: 64}, {m: 8, n: 64, k: 64}]}\n",
         "  - {family: nf4_gemm, a: bf16, shapes: [{m: 8, n: 64, k: 2 * n}]}\n",
         "  - {family: attention, layout: paged, shapes: [{batch: 1, q_heads: 1, kv_heads: 1, q_length: 9, k_length: 9, pages_size: 32}]}\n"]


def shapes_of(folder, items):
    """Returns the manifest's list: (family, contract parameters other than the defaults, sizes, usual values)."""
    config = folder / "shapes_of.yaml"
    config.write_text("bundle: shapes_of\ntargets: [sm_80]\nkernels:\n" + "".join(items))
    run(folder, KILN, "choose", config, "-q")
    run(folder, KILN, "generate", config, "-q")
    listed = json.loads((folder / "shapes_of.json").read_text())["shapes"]
    return [(shape["family"], shape["contract"].get("a"), shape["sizes"], shape.get("usual")) for shape in listed]


def check_manifest(folder):
    """Each shape is listed once, for any order of items."""
    listed = shapes_of(folder, ITEMS)
    expect("another order of items", shapes_of(folder, ITEMS[::-1]), listed)
    expect("shapes in the manifest", [shape for shape in listed if shape[0] == "nf4_gemm"],
           [("nf4_gemm", ["bf16"], {"m": 8, "n": 64, "k": "2 * n"}, None)]
           + [("nf4_gemm", ["f32", "f16"], {"m": rows, "n": 64, "k": 64}, None) for rows in (8, 16)])
    sizes, usual = next(shape[2:] for shape in listed if shape[0] == "attention")
    expect("a size that has a usual value, and is named", (sizes["pages_size"], "pages_size" in usual, usual["splits"]), (32, False, "0"))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config, lock = folder / "loop.yaml", folder / "loop.lock.yaml"
        config.write_text(CONFIG)
        check_manifest(folder)

        # The choice, and the choice with candidates, which is the program's lock.
        run(folder, KILN, "choose", "loop.yaml")
        chosen = variants_of(folder, lock)
        run(folder, KILN, "choose", "loop.yaml", "--candidates", 6, "-o", "wide.lock.yaml")
        wide = variants_of(folder, "wide.lock.yaml")
        expect("the lock of the program", pathlib.Path(LOCK).read_bytes(), (folder / "wide.lock.yaml").read_bytes())
        expect("what is chosen is among the candidates", set(chosen) <= set(wide), True)
        for kind in TYPES:
            count = sum(f",x={kind}," in name for name in wide)
            expect(f"candidates of {kind}: 6, and those chosen that are none of them", 6 <= count <= 6 + len(chosen), True)
        said = run(folder, KILN, "generate", "loop.yaml", "--lock", "wide.lock.yaml", "-q")
        expect("messages about the lock with candidates", said.stderr, "")

        # Measured at the configuration's shapes, for each item's contract.
        tune = TUNE, "--driver", DRIVER, "--repeat", 1, "-o"
        run(folder, *tune, "h100.yaml")
        times = times_of(folder / "h100.yaml")
        expect("what is measured", set(times), {(rows, name) for rows in ROWS for name in wide})

        # A file with the same range has the same shapes; another shape applies to all contracts.
        filters = "--filter", wide[0]
        (folder / "shapes.yaml").write_text("- {family: linear, shape: {m: {from: 1, to: 9}, n: 64, k: 512}}\n")
        run(folder, *tune, "range.yaml", "shapes.yaml", *filters)
        expect("shapes of a file", set(times_of(folder / "range.yaml")), {(rows, wide[0]) for rows in ROWS})

        # Chosen by measured times: within the ratio at each shape.
        config.write_text(CONFIG + "tuned: [h100.yaml]\n")
        said = run(folder, KILN, "generate", "loop.yaml", "-q").stderr
        expect("a lock from before the times", "loop.lock.yaml:3:8: warning: " in said, True)
        run(folder, KILN, "choose", "loop.yaml")
        for kind in TYPES:
            mine = [name for name in variants_of(folder, lock) if f",x={kind}," in name]
            for rows in ROWS:
                all_times = [time for (at, name), time in times.items() if at == rows and f",x={kind}," in name]
                least = min(times[rows, name] for name in mine if (rows, name) in times)
                expect(f"{kind}, {rows} rows: {least} ns of {min(all_times)} are within 1.05", least <= 1.05 * min(all_times), True)
        expect("messages about the new lock, except the source of the times",
               re.fullmatch(r"h100.yaml:\S+ warning: these times come from the emulated driver .*\n",
                            run(folder, KILN, "generate", "loop.yaml", "-q").stderr) is not None, True)

        # Hand-written times: for each type, one variant that was not chosen is by far the fastest up to 4 rows, and another above.
        few, many = ({next(name for name in names if f",x={kind}," in name and name not in chosen) for kind in TYPES}
                     for names in (wide, wide[::-1]))
        expect("two of each type", len(few | many), 2 * len(TYPES))
        write_times(folder / "h100.yaml", {(rows, name): 100 + rows if name in (few if rows <= 4 else many) else 5000
                                           for rows, name in times})
        run(folder, KILN, "choose", "loop.yaml")
        run(folder, KILN, "generate", "loop.yaml", "-q")
        manifest = json.loads((folder / "loop.json").read_text())
        expect("the bundle by times", {v["id"] for v in manifest["variants"]}, few | many)
        for kind in TYPES:
            for rows in ROWS:
                name, is_measured = explained(folder, kind, rows)
                expect(f"what is launched, {kind}, {rows} rows", (name in (few if rows <= 4 else many), f",x={kind}," in name, is_measured),
                       (True, True, True))
        print(f"{len(wide)} candidates, {len(times)} times")


main()
