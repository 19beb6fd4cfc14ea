"""Tests kiln-report: compares its pages with figures computed here from the same inputs, and checks its errors.

usage: check.py PROGRAM ROOT figures|pages|mistakes
       check.py PROGRAM ROOT tools KILN-VERIFY KILN-PROFILE EMULATOR
"""
import base64
import contextlib
import copy
import hashlib
import html.parser
import io
import json
import os
import pathlib
import re
import runpy
import stat
import subprocess
import sys
import tempfile
from typing import NamedTuple
import xml.etree.ElementTree as xml

PROGRAM, ROOT, VERB, *TOOLS = sys.argv[1:]
MANIFEST = json.loads(pathlib.Path(ROOT, "generated/kiln_default.json").read_text(encoding="utf-8"))
VOID = {"meta", "input", "br", "wbr"}
failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(what)
        print(f"FAILED: {what}: got {str(got)[:400]!r}, expected {str(wanted)[:400]!r}")


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-B", PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def run_here(arguments):
    """Like run(), but in this process, which is much faster. Returns (status, stderr). Nothing may be printed on stdout."""
    stderr = io.StringIO()
    sys.argv = [PROGRAM, *arguments]
    with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(None):
        try:
            runpy.run_path(PROGRAM, run_name="__main__")
        except SystemExit as end:
            return end.code, stderr.getvalue()
    return None, ""


# ---- a page as a tree -------------------------------------------------------------------------------------------------------

class Node:
    def __init__(self, name, attributes):
        self.name, self.attributes, self.children = name, dict(attributes), []

    def all(self, name=None, **attributes):
        for child in self.children:
            if isinstance(child, Node):
                if name in (None, child.name) and all(child.attributes.get(k.rstrip("_")) == v for k, v in attributes.items()):
                    yield child
                yield from child.all(name, **attributes)

    def one(self, name=None, **attributes):
        found = list(self.all(name, **attributes))
        assert len(found) == 1, (name, attributes, len(found))
        return found[0]

    @property
    def text(self):
        return "".join(c if isinstance(c, str) else c.text for c in self.children)


class Tree(html.parser.HTMLParser):
    """Fails at an element with a wrong end."""
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.text = [Node("", {})], text
        self.feed(text)
        self.close()
        expect("every element ends", [n.name for n in self.open], [""])

    def handle_starttag(self, tag, attrs):
        expect(f"attributes of {tag} come once", len(dict(attrs)), len(attrs))
        node = Node(tag, attrs)
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag):
        expect("the element that ends", tag, self.open[-1].name)
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def rows_of(table):
    """Returns [{heading: cell}], by the last row of headings."""
    heads = [c.text for c in list(table.one("thead").all("tr"))[-1].all("th")]
    return [dict(zip(heads, [c for c in row.children if isinstance(c, Node)])) for row in table.one("tbody").all("tr")]


def section(page, name):
    return page.one("section", id=name)


def facts(part):
    return {fact.one("dt").text: fact.one("dd").text for fact in part.one("dl").all("div")}


def check_well_made(text):
    """Checks that the page is well-formed, self-contained, and has a readable script. Returns the tree."""
    page = Tree(text).open[0]
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        xml.fromstring(svg)
    elements = list(page.all())
    expect("elements that load", {n.name for n in elements} & set("link img iframe object embed base image use audio video".split()), set())
    for node in elements:
        for name, value in node.attributes.items():
            expect(f"{node.name}'s attribute", (name in ("src", "srcset", "style", "action", "data", "background"), name[:2] == "on"), (False, False))
            expect("a link stays on the page", name == "href" and not value.startswith("#"), False)
    style, script = page.one("style").text, page.one("script").text
    for what in "url(", "@import", "http:", "https:", "//fonts":
        expect(f"style with {what}", what in style, False)
    for what in "http", "fetch", "import", "XMLHttp", "innerHTML", "eval", "document.write":
        expect(f"script with {what}", what in script, False)
    expect("lines of the script, below 100", script.count("\n") < 100, True)
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]

    def digest(of):
        return base64.b64encode(hashlib.sha256(of.encode()).digest()).decode()
    expect("policy", policy, f"default-src 'none'; style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}';")
    places = [re.escape(str(pathlib.Path(p).resolve())) for p in (ROOT, tempfile.gettempdir(), pathlib.Path.home())]
    expect("times and places", re.findall("|".join([r"20\d\d-\d\d", *(p for p in places if p != "/")]), text), [])
    identities = [n.attributes["id"] for n in elements if "id" in n.attributes]
    expect("ids come once", len(identities), len(set(identities)))
    return page


# ---- figures ----------------------------------------------------------------------------------------------------------------

def registers():
    """{id: {target: registers}}."""
    found = {}
    for line in pathlib.Path(ROOT, "tests/generated/resources.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        variant, target, count, *_ = line.split("\t")
        found.setdefault(variant, {})[target] = int(count)
    return found


def made_up(folder):
    """Writes a verification with each verdict, a missing variant and errors in thousandths; an older manifest; and counts."""
    ids = [v["id"] for v in MANIFEST["variants"]]
    rows = [{"id": i, "result": "ok", "cases": 3, "elements": 10, "worst_error_over_bound": n / 1000, "largest": "n=1", "sizes": 2,
             "ranges": {"n": [n + 1, 4000 + n], "causal_offset": [-n, 7]}} for n, i in enumerate(ids)]
    rows[0] |= {"limits": {"n": 4000}, "excluded_pairs": 0}
    rows[5] |= {"limits": {"n": 1 << 40, "causal_offset": 7}, "excluded_pairs": 31, "excluded": "n=3 with causal_offset=7 (too much work)"}
    rows[1] |= {"result": "WRONG", "worst_error_over_bound": 2.5, "detail": "n=3: out[2] is 1, expected 2"}
    rows[2] |= {"result": "skipped", "worst_error_over_bound": None, "detail": "no image"}
    rows[3] |= {"result": "executed, not compared", "worst_error_over_bound": None}
    verification = {"bundle": "kiln_default", "device": "Example 9000", "sm": 90, "driver_version": 13000, "emulated": False,
                    "checks": "guards", "seed": 1, "variants": rows[:4] + rows[:4:-1], "families": [], "times": {"seconds": 1},
                    "targets_not_run": ["sm_75", "sm_80"]}
    old = copy.deepcopy(MANIFEST)
    gone = copy.deepcopy(old["variants"][0])
    gone["id"] += ",older=true"
    del old["variants"][5]
    old["variants"][0]["launch"]["block"] = [128, 1, 1]
    old["variants"][1]["images"][0] |= {"bytes": 15000, "xxh3_128": "0" * 32}
    for number in 2, 3:  # moved from sm_87; the second one also needs a newer driver
        old["variants"][number]["images"][0]["target"] = "sm_87"
    old["variants"][3]["images"][0]["min_driver"] = 1
    old["variants"].append(gone)
    old["generator"] = "kiln 0.1.0"
    kinds = ("read", "write", "atomic")
    products = [[], [], [{"name": "mma.m16n8k32.row.col.s32.s8.s8.s32", "multiply_adds": 3 << 30}]]  # of each counted variant
    counts = [{"launch": 1, "kernel": v["entry"], "grid": [3, 2, 1], "result": 0, "warp_instructions": w,
               "tensor": {"multiply_adds": sum(p["multiply_adds"] for p in of), "shapes": of},
               "shared": {kind: {"wavefronts": 0} for kind in kinds},
               "allocations": [{kind: {"distinct_sectors": 1000 * (kind == "read")} for kind in kinds}]}
              for v, of in zip(MANIFEST["variants"], products) for w in (100, 4000000, 200)]
    paths = {"times": pathlib.Path(folder, "times.tsv")}
    paths["times"].write_text("variant\ttarget\tmilliseconds\n" + "".join(
        f"{v['id']}\t{i['target']}\t{time_of(v, i['target'])}\n" for v in MANIFEST["variants"] for i in v["images"]))
    for name, value in ("verify", [verification]), ("old", [old]), ("counts", counts), ("manifest", [MANIFEST]):
        paths[name] = pathlib.Path(folder, f"{name}.json")
        paths[name].write_text("".join(json.dumps(v) + "\n" for v in value))
    return paths, verification, old


def number_of(target):
    return int(re.match(r"sm_(\d+)", target)[1])


def newest_first(target):
    """A key to sort by: family-specific targets before base ones. The default bundle has no architecture-specific ones."""
    return not target.endswith("f"), -number_of(target)


def time_of(variant, target):
    return f"{len(variant['id']) * number_of(target) / 4 + target.endswith('f'):.2f}"


def check_figures():
    check_parts()
    with tempfile.TemporaryDirectory() as folder:
        paths, verification, old = made_up(folder)
        done = run(paths["manifest"], "--verify", paths["verify"], "--against", paths["old"], "--resources",
                   pathlib.Path(ROOT, "tests/generated/resources.tsv"), "--times", paths["times"], "-o", "-")
        expect("it is made", (done.returncode, done.stderr), (0, ""))
        page = check_well_made(done.stdout)
        check_summary(page, paths)
        check_bytes(page)
        check_variants(page, verification)
        check_verification(page, verification)
        check_times(page)
        check_changes(page, old)
        expect("without counts no roofline", [len(list(section(page, "roofline").all(n))) for n in ("svg", "table", "code")], [0, 0, 2])
        counted = run(paths["manifest"], "--counts", paths["counts"], "--device", "a100", "--device", "sm_75", "-o", "-")
        check_counted(check_well_made(counted.stdout))


def check_summary(page, paths):
    images = [i for v in MANIFEST["variants"] for i in v["images"]]
    total, least = sum(i["bytes"] for i in images), min(i["min_driver"] for i in images)

    def cuda(version):
        return f"CUDA {version // 1000}.{version % 1000 // 10}"
    expect("summary", facts(section(page, "summary")), {
        "Made by": MANIFEST["generator"], "Families": str(len(MANIFEST["families"])), "Variants": str(len(MANIFEST["variants"])),
        "Images": str(len(images)), "Bytes of images": f"{total / 1e6:.3g} MB ({total:,} bytes)", "Targets": " ".join(MANIFEST["targets"]),
        "Oldest driver, all images": cuda(MANIFEST["min_driver"]), "Oldest driver, any image": cuda(least),
        "Verified on Example 9000, sm_90": f"{len(MANIFEST['variants']) - 4} of {len(MANIFEST['variants'])} within bound, 1 WRONG"})
    hashes = [(r["file"].text, r["bytes"].text, r["hash"].text) for r in rows_of(section(page, "summary").one("table"))]
    expect("hashes", hashes[0], (MANIFEST["config"]["file"], f"{MANIFEST['config']['bytes']:,}", f"xxh3_128 {MANIFEST['config']['xxh3_128']}"))
    data = paths["manifest"].read_bytes()
    expect("the manifest's hash", hashes[1], ("manifest.json", f"{len(data):,}", f"sha256 {hashlib.sha256(data).hexdigest()}"))
    expect("all inputs", [h[0] for h in hashes[2:]], ["resources.tsv", "times.tsv", "verify.json", "old.json"])


def bytes_by():
    found = {}
    for v in MANIFEST["variants"]:
        for i in v["images"]:
            of = found.setdefault(v["family"], {})
            of[i["target"]] = of.get(i["target"], 0) + i["bytes"]
    return found


def check_bytes(page):
    part, by = section(page, "bytes"), bytes_by()
    targets = sorted({t for of in by.values() for t in of}, key=lambda t: (number_of(t), t))
    rows = rows_of(part.one("table", class_="sums"))
    for row in rows[:-1]:
        of = by[row["KB"].text]
        expect(f"bytes of {row['KB'].text}", {t: row[t].text for t in targets}, {t: f"{of[t] / 1000:,.1f}" if t in of else "" for t in targets})
        expect("their sum", row["all"].text, f"{sum(of.values()) / 1000:,.1f}")
    expect("families", len(rows), len(by) + 1)
    last, total = rows[-1], sum(sum(of.values()) for of in by.values())
    expect("the sum of all", [last[t].text for t in (*targets, "all", "variants")],
           [*(f"{sum(of.get(t, 0) for of in by.values()) / 1000:,.1f}" for t in targets), f"{total / 1000:,.1f}", str(len(MANIFEST["variants"]))])
    for size in "treemap wide", "treemap narrow":
        check_treemap(part.one("svg", class_=size), total)
    check_values(part)


def check_values(part):
    """Shows bytes by each value of each parameter that differs; a family's sums are equal."""
    rows = rows_of(part.one("table", class_="values"))
    wanted = {}
    for v in MANIFEST["variants"]:
        for name, value in v["params"].items():
            of = wanted.setdefault((v["family"], name), {}).setdefault(str(value).lower(), [0, 0])
            of[0] += sum(i["bytes"] for i in v["images"])
            of[1] += 1
    wanted = {key: values for key, values in wanted.items() if len(values) > 1}
    expect("parameters", {(r["family"].text, r["parameter"].text) for r in rows}, wanted.keys())
    for row in rows:
        values = wanted[row["family"].text, row["parameter"].text]
        shown = {v: (int(n), size) for v, size, n in re.findall(r"([\w.]+): ([\d.]+ [KM]B) \((\d+)\)", row["value: bytes (variants)"].text)}
        expect("its values", shown, {v: (n, f"{size / 1e6:.3g} MB" if size >= 1e6 else f"{size / 1e3:.3g} KB") for v, (size, n) in values.items()})


def check_treemap(svg, total):
    """Shows each variant once, with its bytes, in an area of nearly its share. Areas do not overlap, and labels fit."""
    width, height = map(int, svg.attributes["viewbox"].split()[2:])
    found, places = {}, []
    for group in svg.all("g"):
        variant, count = re.match(r"(\S+): ([\d,]+) bytes", group.one("title").text).groups()
        found[variant] = int(count.replace(",", ""))
        x, y, w, h = (float(group.one("rect").attributes[k]) for k in ("x", "y", "width", "height"))
        share = found[variant] / total
        expect(f"{variant} is drawn by its bytes", abs(w * h / width / height - share) < .01 + .25 * share, True)
        expect("it lies inside", (x >= 0, y >= 0, x + w <= width, y + h <= height), (True,) * 4)
        places.append((x, y, x + w, y + h))
        for label in group.all("text"):
            expect(f"'{label.text}' fits", 6 * len(label.text) < w and float(label.attributes["y"]) < y + h, True)
    over = [(a, b) for n, a in enumerate(places) for b in places[:n]
            if min(a[2], b[2]) - max(a[0], b[0]) > .15 and min(a[3], b[3]) - max(a[1], b[1]) > .15]
    expect("areas over others", over, [])
    expect("the treemap's bytes", found, {v["id"]: sum(i["bytes"] for i in v["images"]) for v in MANIFEST["variants"]})


class Device(NamedTuple):
    """Returns a multiprocessor's limits: CUDA C++ Programming Guide, technical specifications per compute capability."""
    target: str
    threads: int
    blocks: int
    shared: int
    shared_of_block: int


DEVICES = {"T4": Device("sm_75", 1024, 16, 65536, 65536), "A100": Device("sm_80", 2048, 32, 167936, 166912),
           "H100": Device("sm_90", 2048, 32, 233472, 232448), "B200": Device("sm_100", 2048, 32, 233472, 232448),
           "RTX 5090": Device("sm_120", 1536, 24, 102400, 101376)}


def taken(targets, device):
    """Returns the target, among some, whose code the device runs, or None."""
    def runs(target):
        number, own = number_of(target), number_of(DEVICES[device].target)
        return number <= own and (not target.endswith("f") or number // 10 == own // 10)
    return min(filter(runs, targets), key=newest_first, default=None)


def occupancy(device, threads, shared, registers):
    """Returns the warps of the most thread blocks that fit: the guide's "Hardware multithreading", and CUDA's occupancy calculator."""
    def has_room(blocks):
        warps = blocks * -(-threads // 32)
        of_partition = 16384 // (-(-registers * 32 // 256) * 256)  # warps that fit into the registers of one of four partitions
        kept = 0 if device.target == "sm_75" else 1024
        return (blocks <= device.blocks and warps * 32 <= device.threads and -(-warps // 4) <= of_partition
                and shared <= device.shared_of_block and blocks * (-(-shared // 128) * 128 + kept) <= device.shared)
    blocks = max(n for n in range(33) if n == 0 or has_room(n))
    return 100 * blocks * -(-threads // 32) * 32 / device.threads


def check_variants(page, verification):
    table, known = page.one("table", id="table"), registers()
    rows = {r["variant"].text: r for r in rows_of(table)}
    expect("every variant, in the manifest's order", list(rows), [v["id"] for v in MANIFEST["variants"]])
    results = {r["id"]: r for r in verification["variants"]}
    # By NVIDIA's calculator: 256 threads of 64 registers, and of 45; 128 of 245.
    expect("known occupancies", [occupancy(DEVICES["A100"], *of) for of in ((256, 0, 64), (256, 0, 45), (128, 0, 245))], [50, 62.5, 12.5])
    for v in MANIFEST["variants"]:
        row, images = rows[v["id"]], v["images"]
        newest, launch = max(i["min_driver"] for i in images), v["launch"]
        threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
        shared = launch["static_shared_bytes"] + launch["max_shared_bytes"]
        expect(v["id"], [row[k].text for k in ("bytes", "images for", "driver", "threads", "shared bytes")],
               [f"{sum(i['bytes'] for i in images):,}", " ".join(dict.fromkeys(i["target"] for i in images)),
                f"{newest // 1000}.{newest % 1000 // 10}", str(threads), f"{shared:,}"])
        runs = [d for d in DEVICES if taken([i["target"] for i in images], d)]
        own = {d: known[v["id"]][taken(known[v["id"]], d)] for d in runs}
        expect("its time", row["ptxas, ms"].text, milliseconds(max(float(time_of(v, i["target"])) for i in images)))
        expect(f"registers of {v['id']}", row["registers"].text, str(max(own.values())))
        expect(f"occupancy of {v['id']}", {d: row[d].attributes["data-v"] for d in DEVICES},
               {d: f"{occupancy(DEVICES[d], threads, shared, own[d]):.3f}" if d in runs else "" for d in DEVICES})
        check_result(row["Example 9000, sm_90"], results.get(v["id"]))
    options = [o.text for o in page.one("select", id="family").all("option")]
    expect("families to choose", options, ["all families", *dict.fromkeys(v["family"] for v in MANIFEST["variants"])])


def check_result(cell, row):
    if row is None:
        return expect("of what did not run", cell.text, "not run")
    return expect(f"result of {row['id']}", cell.text, {"ok": "3"}.get(row["result"], row["result"]))


def check_verification(page, verification):
    part, results = section(page, "verification"), {r["id"]: r for r in verification["variants"]}
    missing = MANIFEST["variants"][4]["id"]
    lists = {d.one("summary").text: [i.text for i in d.all("li")] for d in part.all("details")}
    expect("lists", lists, {
        "By variant, with all integer arguments and the largest error as a share of its bound": [],
        "What was not reached": [],
        "1 variant WRONG": [f"{MANIFEST['variants'][1]['id']}: n=3: out[2] is 1, expected 2"], "1 variant did not run": [missing],
        "1 variant skipped": [f"{MANIFEST['variants'][2]['id']}: no image"],
        "1 variant ran without being compared": [MANIFEST["variants"][3]["id"]]})
    families, variants, beyond, apart = part.all("table")
    for row in rows_of(families):
        of = [n for n, v in enumerate(MANIFEST["variants"]) if v["family"] == row["family"].text]
        right = [n for n in of if MANIFEST["variants"][n]["id"] in results and results[MANIFEST["variants"][n]["id"]]["result"] == "ok"]
        cost = MANIFEST["variants"][of[0]]["cost"]
        named = [f"n {min(right) + 1:,} to {4000 + max(right):,}"] if re.search(r"\bn\b", " ".join(cost.values())) else []
        sizes = ", ".join(named or [f"n {min(right) + 1:,} to {4000 + max(right):,}", f"causal_offset {-max(right)} to 7"])
        expect(row["family"].text, [row[k].text for k in ("within bound", "for sizes", "cases")],
               [f"{len(right)} of {len(of)}", sizes.replace(" ", "\u00a0").replace(",\u00a0", ", "), str(3 * len(right))])
    reached, = rows_of(beyond)
    expect("what rules allow beyond", [reached[k].text for k in ("family", "argument", "allowed by its rules")],
           [MANIFEST["variants"][5]["family"], "n", f"{1 << 40:,}"])
    expect("pairs that did not run", [[cell.text for cell in r.values()] for r in rows_of(apart)],
           [[MANIFEST["variants"][5]["id"], "31", "n=3 with causal_offset=7 (too much work)"]])
    first = rows_of(variants)[0]
    expect("a variant's ranges", [first[k].text for k in ("sizes", "cases", "error / bound")],
           ["n\u00a01\u00a0to\u00a04,000, causal_offset\u00a00\u00a0to\u00a07", "3", "exact"])
    expect("its share of the bound", rows_of(variants)[5]["error / bound"].text, f"{(len(results) - 1) / 1000:.3g}")


def milliseconds(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def check_times(page):
    rows = {r["ptxas, ms"].text: r for r in rows_of(section(page, "times").one("table"))}
    families = list(dict.fromkeys(v["family"] for v in MANIFEST["variants"]))
    expect("families with times", list(rows), [*families, "all"])
    for device in DEVICES:
        times = {f: [] for f in families}
        for v in MANIFEST["variants"]:
            target = taken([i["target"] for i in v["images"]], device)
            times[v["family"]] += [float(time_of(v, target))] if target else []
        times["all"] = [t for of in times.values() for t in of]
        for name, of in times.items():
            more = f"{len(of)} variants" if name == "all" else f"slowest {milliseconds(max(of, default=0))}"
            expect(f"times of {name} on {device}", rows[name][device].text, f"{milliseconds(sum(of))} {more}" if of else "")


def microseconds(text):
    us = float(text)
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"


def check_counted(page):
    """Three variants of one family: 4,000,000 warp instructions and 32,000 bytes. An A100 executes 108 * 4 per cycle at 1,410 MHz.
    The last one's 3 * 2^30 multiply-adds of s8 take 2 cycles for 1,024 on an A100's tensor cores, and 4 on a T4's."""
    products = 3 << 20  # of 1,024 multiply-adds
    a100, t4 = 108 * 4 * 1410, 40 * 4 * 1590
    both = " instructions, tensor cores"
    part = section(page, "roofline")
    times = rows_of(list(part.all("table"))[-1])
    expect("minimum times that were counted", {k: v.text for k, v in times[0].items()},
           {"minimum time, us": "int4_quantize",
            "A100": f"{microseconds(4e6 / a100)} to {microseconds(2 * products / a100)}{both}",
            "T4": f"{microseconds(4e6 / t4)} to {microseconds(4 * products / t4)}{both}"})
    expect("one family was counted", len(times), 1)
    expect("what was counted", [[c.text for c in row.values()] for row in rows_of(part.one("table", class_="counts"))],
           [[v["id"], "6", "4,000,000", "0", n, "32,000"] for v, n in zip(MANIFEST["variants"], ("0", "0", f"{products << 10:,}"))])
    expect("its point", [c.one("title").text for c in next(part.all("figure")).all("circle")],
           [f"{MANIFEST['variants'][0]['id']}: 125 issue slots per byte, at least {microseconds(4e6 / a100)} us by "
            "instructions; and 1 more of int4_quantize",
            f"{MANIFEST['variants'][2]['id']}: 197 issue slots per byte, at least {microseconds(2 * products / a100)} us by "
            "tensor cores"])
    listed = next(d for d in part.all("details") if "not counted" in d.one("summary").text)
    expect("those that were not", listed.one("summary").text, f"{len(MANIFEST['variants']) - 3} variants not counted")


def check_changes(page, old):
    part, new = section(page, "changes"), MANIFEST
    expect("what changed", facts(part), {
        "Variants added": "1", "Variants removed": "1", "Variants changed": "3", "Variants moved": "1",
        "Variants alike": str(len(new["variants"]) - 5),
        "Bytes of images": "{:,} -> {:,} ({:+,})".format(*(sums := [sum(i["bytes"] for v in m["variants"] for i in v["images"])
                                                                   for m in (old, new)]), sums[1] - sums[0])})
    members, families = part.all("table")
    expect("members", [[c.text for c in r.values()] for r in rows_of(members)], [["generator", "kiln 0.1.0", new["generator"]]])
    for row in rows_of(families):
        sums = [sum(i["bytes"] for v in m["variants"] if v["family"] == row["family"].text for i in v["images"]) for m in (old, new)]
        expect(row["family"].text, [row[k].text for k in ("bytes before", "now", "more")],
               [f"{sums[0]:,}", f"{sums[1]:,}", f"{sums[1] - sums[0]:+,}" if sums[0] != sums[1] else "0"])
    now = new["variants"]
    expect("lists", {d.one("summary").text: [i.text for i in d.all("li")] for d in part.all("details")}, {
        "1 variant added": [f"{now[5]['id']}: {sum(i['bytes'] for i in now[5]['images']):,} bytes"],
        "1 variant removed": [f"{now[0]['id']},older=true: {sum(i['bytes'] for i in now[0]['images']):,} bytes"],
        "3 variants changed": [
            f"{now[0]['id']}: 0 bytes; launch.block: 128 1 1 -> 256 1 1",
            f"{now[1]['id']}: {now[1]['images'][0]['bytes'] - 15000:+,} bytes; sm_75: 15,000 -> {now[1]['images'][0]['bytes']:,} bytes",
            f"{now[3]['id']}: 0 bytes; sm_87: moved to sm_75, {now[3]['images'][0]['bytes']:,} bytes; min_driver"],
        "1 variant moved to other targets with the same images": [
            f"{now[2]['id']}: sm_87: moved to sm_75, {now[2]['images'][0]['bytes']:,} bytes"]})


# Computed by hand: occupancies of (device, threads, shared bytes, registers) for which rounding matters.
OCCUPANCIES = {("A100", 256, 0, 41): 62.5, ("A100", 256, 0, 40): 75, ("A100", 1024, 0, 65): 0, ("T4", 32, 5957, None): 31.25,
               ("A100", 32, 0, None): 50, ("T4", 256, 65537, None): 0, ("H100", 256, 115 * 1024, None): 12.5}

# Computed by hand from include/kiln/kiln.h and devices.def: cycles of 2^20 multiply-adds.
CYCLES = {("A100", "mma.m16n8k16.row.col.f32.f16.f16.f32"): 4096, ("A100", "mma.m16n8k32.row.col.satfinite.s32.s8.u8.s32"): 2048,
          ("A100", "mma.m16n8k64.row.col.s32.s4.s4.s32"): 1024, ("A100", "mma.m16n8k8.row.col.f32.tf32.tf32.f32"): 8192,
          ("H100", "wgmma.m64n16k32.f32.e4m3.e4m3"): 2048, ("H100", "wgmma.m64n16k32.s32.s8.s8"): 2048,
          ("RTX 5090", "mma.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"): 2048,
          ("RTX 5090", "mma.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0"): 8192,
          ("RTX 5090", "mma.m16n8k16.row.col.f32.bf16.bf16.f32"): 16384}


def check_parts():
    """The program's own parts."""
    sys.path.insert(0, PROGRAM)
    import charts
    import devices
    expect("occupancies", {key: devices.occupancy(devices.find_device(key[0]), *key[1:]) for key in OCCUPANCIES}, OCCUPANCIES)
    picked = {(sm, *targets): devices.preferred(targets, devices.find_device(sm)) for sm, *targets in (
        ("sm_103", "sm_80", "sm_100f", "sm_100", "sm_103"), ("sm_103", "sm_100a", "sm_90a", "sm_80"), ("sm_90", "sm_90", "sm_90a"),
        ("sm_121", "sm_120f", "sm_121"), ("sm_100", "sm_120f", "sm_90"), ("sm_75", "sm_80"))}
    cycles = {(name, product): devices.product_cycles(devices.find_device(name), product, 1 << 20) for name, product in CYCLES}
    expect("cycles of products", cycles, CYCLES)
    expect("images that are taken", list(picked.values()), ["sm_100f", "sm_80", "sm_90a", "sm_120f", "sm_90", None])
    # The example of Bruls, Huizing and van Wijk.
    expect("a squarified treemap", [tuple(round(v, 2) for v in r) for r in charts.squarify([6, 6, 4, 3, 2, 2, 1], 0, 0, 6, 4)],
           [(0, 0, 3, 2), (0, 2, 3, 2), (3, 0, 1.71, 2.33), (4.71, 0, 1.29, 2.33), (3, 2.33, 1.2, 1.67), (4.2, 2.33, 1.2, 1.67),
            (5.4, 2.33, 0.6, 1.67)])


# ---- pages ------------------------------------------------------------------------------------------------------------------

NASTY = ['<script>alert(1)</script>', '"><svg onload=alert(1)>', "' onmouseover='x", "]]></style><b>", "&lt;&#60;", "a\u202eb", "nul\0", "\ud800",
         "</title><script>", "<!--", "{{x}}", "line\nbreak"]


def nasty(value, names):
    """Returns the value with a hostile text appended to each name."""
    if isinstance(value, dict):
        return {k: v if k in ("args", "target", "targets", "condition", "bytes_read", "bytes_written", "elements", "shared_bytes", "result", "sm")
                else nasty(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [nasty(v, names) for v in value]
    return f"{value}{names[hash_of(value) % len(names)]}" if isinstance(value, str) else value


def hash_of(text):
    return hashlib.sha256(text.encode()).digest()[0]


def check_pages():
    with tempfile.TemporaryDirectory() as folder:
        paths, verification, old = made_up(folder)
        plain = run(paths["manifest"], "--verify", paths["verify"], "--against", paths["old"], "-o", "-").stdout
        hostile = copy.deepcopy(nasty(MANIFEST, NASTY))
        wrong = nasty(verification, NASTY)
        older = nasty(old, NASTY)
        for name, value in ("manifest", hostile), ("verify", wrong), ("old", older):
            paths[name].write_text(json.dumps(value))
        done = run(paths["manifest"], "--verify", paths["verify"], "--against", paths["old"], "-o", "-")
        expect("a hostile bundle", (done.returncode, done.stderr), (0, ""))
        page, same = check_well_made(done.stdout), check_well_made(plain)
        expect("its elements are those of the plain one", {n.name for n in page.all()}, {n.name for n in same.all()})
        expect("and its attributes", {k for n in page.all() for k in n.attributes}, {k for n in same.all() for k in n.attributes})
        expect("its script and style", [page.one(n).text for n in ("script", "style")], [same.one(n).text for n in ("script", "style")])
        shown = [row["variant"].text for row in rows_of(page.one("table", id="table"))]
        expect("names are shown unchanged", shown, [re.sub("[\0\n\u202e\ud800]", lambda m: f"\\u{ord(m[0]):04x}", v["id"])
                                                      for v in hostile["variants"]])
        check_same_bytes(folder)
        check_odd(folder)


def check_same_bytes(folder):
    """The page does not depend on the folder, the hash seed or the locale. A file is replaced atomically, with the usual permissions."""
    manifest, output = pathlib.Path(ROOT, "generated/kiln_default.json"), pathlib.Path(folder, "page.html")
    pages = set()
    for seed, locale in ("1", "C"), ("2", "C.UTF-8"):
        done = run(manifest, "-o", output, cwd=folder, env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale}, umask=0o022)
        expect("silence", (done.returncode, done.stdout, done.stderr), (0, "", ""))
        pages.add(output.read_bytes())
    pages.add(run(manifest, "--output", "-").stdout.encode())
    expect("pages of one manifest", len(pages), 1)
    expect("rights", stat.S_IMODE(output.stat().st_mode), 0o644)
    expect("nothing else is left", sorted(p.name for p in pathlib.Path(folder).iterdir()),
           ["counts.json", "manifest.json", "old.json", "page.html", "times.tsv", "verify.json"])


def check_odd(folder):
    """External PTX with images under another name and unknown geometry, compressed images, cubins, an empty bundle."""
    bundle = copy.deepcopy(MANIFEST)
    first, second = bundle["variants"][:2]
    bundle["variants"] = [first, second]
    first |= {"module": first["id"], "cost": {"bytes_read": None, "bytes_written": None, "elements": None}}
    first["launch"]["block"] = [0, 0, 0]
    second |= {"module": first["id"], "images": first["images"]}
    first["images"][0]["stored_bytes"] = 1000
    first["images"].append({"target": "sm_90", "format": "cubin", "min_driver": 12000, "bytes": 500, "xxh3_128": "0" * 32})
    path = pathlib.Path(folder, "odd.json")
    path.write_text(json.dumps(bundle))
    page = check_well_made(run(path, "-o", "-").stdout)
    rows = rows_of(page.one("table", id="table"))
    expect("bytes that are owned", [r["bytes"].text for r in rows], ["1,500", "0"])
    expect("threads that are not known", [(r["threads"].text, r["A100"].text) for r in rows], [("-", "-"), ("256", "≤ 100")])
    whole = first["images"][0]["bytes"] + 500
    expect("compression", facts(section(page, "summary"))["Bytes of images"], f"1.5 KB (1,500 bytes), before compression {whole / 1000:.3g} KB ({whole:,} bytes)")
    expect("cubins", facts(section(page, "summary"))["Images"], "2, 1 of them cubins")
    for v in bundle["variants"]:  # a cubin only runs on its own device
        v["images"] = [{"target": "sm_80", "format": "cubin", "min_driver": 12000, "bytes": 500, "xxh3_128": "0" * 32}]
    bundle["targets"] = ["sm_80", "sm_90"]
    path.write_text(json.dumps(bundle))
    page = check_well_made(run(path, "-o", "-").stdout)
    expect("cubins alone", [facts(section(page, "summary"))["Images"]] + [rows_of(page.one("table", id="table"))[1][d].text for d in ("A100", "H100")],
           ["1, 1 of them cubins", "≤ 100", "-"])
    bundle["variants"], bundle["targets"] = [], ["sm_999"]
    path.write_text(json.dumps(bundle))
    expect("nothing at all", run(path, "-o", "-").returncode, 0)


# ---- mistakes ---------------------------------------------------------------------------------------------------------------

def changed(*path, to=None):
    """Returns the manifest's text with one member changed; without `to` the member is removed."""
    bundle = copy.deepcopy(MANIFEST)
    at = bundle
    for step in path[:-1]:
        at = at[step]
    if to is None:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return json.dumps(bundle)


def check_mistakes():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _, verification, _ = made_up(folder)
        first = MANIFEST["variants"][0]["id"]

        times = "variant\ttarget\tmilliseconds"

        def verify(**members):
            return json.dumps({**verification, **members})
        refused = [
            ("m", "{", 'm:1:2: error: a manifest must be JSON: Expecting property name enclosed in double quotes'),
            ("m", '{\n "bundle": nope}', "m:2:12: error: a manifest must be JSON: Expecting value"),
            ("m", b'{\n  "a\xff"}', "m:2:5: error: not UTF-8"),
            ("m", '{"bundle": "a", "bundle": "b"}', "m: error: 'bundle' occurs twice in an object"),
            ("m", '{"bundle": NaN}', "m: error: NaN is not a JSON number"),
            ("m", "[" * 100000, "m: error: nested too deeply"),
            ("m", "[]", "m:1:1: error: expected a manifest, NAME.json, which `kiln generate` writes next to NAME.c"),
            ("m", '{"bundle": "b", "variants": []}', "m:1:1: error: expected a manifest, NAME.json, which `kiln generate` writes next to NAME.c"),
            ("m", changed("targets"), "m: the whole: error: it has no 'targets'"),
            ("m", changed("targets", to="sm_80"), 'm: targets: error: expected a list, found "sm_80"'),
            ("m", changed("variants", 2, "images", 0, "bytes", to=-1),
             "m: variants[2].images[0].bytes: error: expected a whole number from 0 to 2^63, found -1"),
            ("m", changed("variants", 2, "images", 0, "bytes", to=True),
             "m: variants[2].images[0].bytes: error: expected a whole number from 0 to 2^63, found true"),
            ("m", changed("variants", 1, "id", to=first), f"m: variants[1].id: error: '{first}' occurs twice"),
            ("m", changed("variants", 0, "images", 0, "target", to="sm_1\x1b"),
             "m: variants[0].images[0].target: error: expected a target such as sm_90, found 'sm_1\\u001b'"),
            ("m", changed("variants", 0, "launch", "block", to=[1]), "m: variants[0].launch.block: error: expected three numbers"),
            ("v", "{}", "v:1:1: error: expected the output of `kiln-verify --json FILE`"),
            ("v", verify(bundle="other"), "v: bundle: error: it verifies 'other', but the manifest is for 'kiln_default'"),
            ("v", verify(variants=[{"id": "x", "result": "ok"}]),
             "v: variants[0]: error: the manifest has no variant 'x': it verifies another build of the bundle"),
            ("v", verify(variants=[{"id": first, "result": "fine"}]),
             "v: variants[0]: error: expected one of ok, executed, not compared, skipped, WRONG as the result; found 'fine'"),
            ("v", verify(variants=[{"id": first, "result": "ok"}] * 2), f"v: variants[1]: error: '{first}' occurs twice"),
            *(("v", verify(variants=[{"id": first, "result": "ok", "ranges": {"n": edges}}]),
               f"v: variants[0].ranges.n: error: expected the smallest and the largest value, found {json.dumps(edges)}")
              for edges in (3, [1], [2, 1], ["1", "2"], [1, 2.5])),
            ("a", '{"variants": 3, "bundle": "a", "layout_version": 1}', "a: the whole: error: it has no 'generator'"),
            ("a", changed("bundle", to="other"), "a: bundle: error: it is for 'other', but the manifest is for 'kiln_default'"),
            ("c", "", "c:1:1: error: it has no launch of a kernel of 'kiln_default'"),
            ("c", '\n{"kernel": 3}', "c:2: kernel: error: expected a text, found 3"),
            ("c", '{"kernel": "x"}\n{"kernel": "x", "kernel": "y"}', "c:2: error: 'kernel' occurs twice in an object"),
            ("c", '{"kernel": "x"}\n{"x"', "c:2:5: error: a line of counts must be JSON: Expecting ':' delimiter"),
            ("c", "{}", "c:1:1: error: expected counts of a launch, from KILN_EMU_REPORT or kiln-profile --json"),
            ("r", "id\tx", "r:1:1: error: expected the columns variant, target and registers, separated by tabs"),
            ("r", "variant\ttarget\tregisters\na\tsm_80\t32",
             "r:2:1: error: the manifest has no variant 'a': the file belongs to another build of the bundle"),
            ("r", f"variant\ttarget\tregisters\n{first}\tsm_70\t32",
             "r:2:1: error: the manifest has no image for sm_70: the file belongs to another build of the bundle"),
            ("r", "variant\ttarget\tregisters", "r:1:1: error: it has no variant of 'kiln_default'"),
            ("r", "variant\ttarget\tregisters\na\tsm_80\tmany", "r:2:1: error: expected a variant, a target and a number of registers, found 'a\\u0009sm_80\\u0009many'"),
            ("t", "", "t:1:1: error: expected the columns variant, target and milliseconds, separated by tabs"),
            ("t", "variant\ttarget\tms", "t:1:1: error: expected the columns variant, target and milliseconds, separated by tabs"),
            ("t", f"{times}\n{first}\tsm_80\t-1", f"t:2:1: error: expected a variant, a target and a number of milliseconds, found '{first}\\u0009sm_80\\u0009-1'"),
            ("t", f"{times}\n{first}\tsm_80\t1\ntotal 3\n", "t:3:1: error: expected a variant, a target and a number of milliseconds, found 'total 3'"),
            ("t", f"{times}\n{first}\tsm_80\t1\n{first}\tsm_80\t2.5\n", f"t:3:1: error: '{first}' for sm_80 occurs twice"),
            ("t", f"{times}\nx\tsm_80\t1\n", "t:2:1: error: the manifest has no variant 'x': the file belongs to another build of the bundle"),
        ]
        options = {"v": "--verify", "a": "--against", "c": "--counts", "r": "--resources", "t": "--times"}
        pathlib.Path("good").write_text(json.dumps(MANIFEST))
        pathlib.Path("page").write_text("as before")
        for name, text, message in refused:
            pathlib.Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
            arguments = ["m" if name == "m" else "good", *([] if name == "m" else [options[name], name]), "-o", "page"]
            expect(f"{name} {text[:60]!r}", run_here(arguments), (1, message + "\n"))
        check_usage(folder)


def check_usage(folder):
    pathlib.Path("both").write_text(json.dumps({"bundle": "kiln_default", "device": "d", "sm": 90, "emulated": True, "variants": []}))
    devices = "expected a device, found 'jetson'; there are Jetson AGX Orin, Jetson AGX Orin 32GB, "
    for arguments, status, message in (
            (["good"], 2, "the following arguments are required: -o/--output"),
            (["-o", "page"], 2, "the following arguments are required: MANIFEST"),
            (["", "-o", "page"], 2, "an argument is empty"),
            (["good", "-o", "page", "--counts", ""], 2, "an argument is empty"),
            (["good", "-o", "page", "--device", "jetson"], 2, devices),
            (["none", "-o", "page"], 1, "none: error: cannot be read: No such file or directory"),
            (["good", "-o", "page", "--verify", "both", "--verify", "both"], 1, "both: error: the same verification is given twice"),
            (["good", "-o", "page", "--times", "t", "--times", "u"], 2, "argument --times: expected one file, found 't' and 'u'"),
            (["good", "-o", "good"], 1, "good: error: is an input too"),
            (["good", "-o", "no/page"], 3, "kiln-report: cannot write no/page: No such file or directory"),
            (["good", "-o", "page"], 3, "kiln-report: cannot write page: kiln-report did not write this file, so it stays: write elsewhere, or "
                                        "replace it with --force"),
            (["good", "-o", "."], 3, "kiln-report: cannot write .: Is a directory")):
        got, said = run_here(arguments)
        expect(f"{arguments}", (got, message in said), (status, True))
    expect("the page is as it was", pathlib.Path("page").read_text(), "as before")
    expect("nothing is left", [p.name for p in pathlib.Path(folder).iterdir() if p.name.startswith("page.")], [])
    for again in ([], ["--force"]):
        pathlib.Path("page").write_text("" if not again else "as before")
        expect("an empty file, or --force", (run_here(["good", "-o", "page", *again]), run_here(["good", "-o", "page"])), ((0, ""), (0, "")))
    expect("what a device is not", run_here(["good", "-o", os.devnull]), (0, ""))
    expect("it stays", stat.S_ISCHR(os.stat(os.devnull).st_mode), True)
    expect("help", run("--help").stdout.startswith("usage: kiln-report "), True)
    for arguments in (["--help"], ["good", "-o", "-"]):
        with open("/dev/full", "w") as full:
            got = subprocess.run([sys.executable, "-B", PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
        expect(f"{arguments} to a full device", (got.returncode, got.stderr), (3, "kiln-report: cannot write -: No space left on device\n"))


# ---- other tools ------------------------------------------------------------------------------------------------------------

def check_tools():
    """Makes a page from the output of kiln-verify, the emulated driver and kiln-profile."""
    verify, profile, emulator = TOOLS
    one, other = "nf4_scale/type=f16,group=64", "nf4_unpack/type=f16,group=64,nibbles=low"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([verify, "--driver", emulator, "--filter", one, "--inputs", "1", "--max-elements", "4096", "--json", "v.json"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "KILN_EMU_REPORT": "counts", "KILN_EMU_DEVICE": "sm_90"})
        said = subprocess.run([profile, ROOT + "/generated", "--variant", other, "--target", "sm_90", "--args", "n=8192", "--driver", emulator,
                               "--json"], check=True, capture_output=True, text=True).stdout
        pathlib.Path("profile").write_text(said)
        done = run(ROOT + "/generated/kiln_default.json", "--verify", "v.json", "--counts", "counts", "--counts", "profile", "--counts", "counts", "--device", "h100",
                   "-o", "-")
        expect("it is made", (done.returncode, done.stderr), (0, ""))
        for name in ("v.json", "counts"):  # only replaced by their own kind
            pathlib.Path("main.c").write_text("int main(void) {}\n")
            option = ["--json", "main.c"] if name == "v.json" else []
            again = subprocess.run([verify, "--driver", emulator, "--filter", one, "--size", "n=64", *option], check=False, capture_output=True,
                                   text=True, env={**os.environ, "KILN_EMU_REPORT": "main.c", "KILN_EMU_DEVICE": "sm_90"})
            said_kept = "kiln-verify did not write this file" if option else "KILN_EMU_REPORT: main.c is not a report, so it is not overwritten"
            expect(f"main.c for {name}", (again.returncode, again.stderr.count(said_kept), pathlib.Path("main.c").read_text()),
                   (2 if option else 0, 1, "int main(void) {}\n"))
            own = subprocess.run([verify, "--driver", emulator, "--filter", one, "--size", "n=64", "--json", "w.json"], check=False,
                                 stdout=subprocess.DEVNULL, env={**os.environ, "KILN_EMU_REPORT": "counts2", "KILN_EMU_DEVICE": "sm_90"})
            expect("files of an earlier run", own.returncode, 0)
        page = check_well_made(done.stdout)
        expect("what ran", [r["variant"].text for r in rows_of(page.one("table", id="table")) if r["kiln emulated sm_90"].text != "not run"], [one])
        least, most = next(v["ranges"]["n"] for v in json.loads(pathlib.Path("v.json").read_text())["variants"] if v["id"] == one)
        proven = {r["family"].text: r["for sizes"].text for r in rows_of(next(section(page, "verification").all("table")))}
        expect("its sizes", (proven["nf4_scale"], least, most > 4096), (f"n\u00a0{least}\u00a0to\u00a0{most:,}", 1, True))
        # 8,192 elements of f16 from codes, scales and a table: 512 + 128 + 16 + 4 sectors, over 3,352 GB/s.
        times = {r["minimum time, us"].text: r["H100"].text for r in rows_of(list(section(page, "roofline").all("table"))[-1])}
        expect("families that were counted", list(times), ["nf4_unpack", "nf4_scale"])
        slots = json.loads(said)["report"]["warp_instructions"]
        expect("its minimum time", times["nf4_unpack"].split()[0], microseconds(max(660 * 32 / 3352e3, slots / (132 * 4 * 1980))))
        known = json.loads(said)["registers"].get("count")
        if known:
            row = next(r for r in rows_of(page.one("table", id="table")) if r["variant"].text == other)
            expect("its registers", row["registers"].text, str(known))


{"figures": check_figures, "pages": check_pages, "mistakes": check_mistakes, "tools": check_tools}[VERB]()
print(f"{len(failures)} failed" if failures else "all as expected")
sys.exit(bool(failures))
