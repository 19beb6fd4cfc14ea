#!/usr/bin/env python3
"""Generates parts of the README.md files, and checks the files.

usage: readme.py check | rebase KILN
       readme.py --self-test
  check   reports stale parts, broken links, missing packages, invalid entries of configurations, and a first page that is
          too long
  rebase  rewrites the text between "<!-- made: WHAT -->" and "<!-- end -->", and the first page's picture, and prints the
          differences

WHAT is a function of MADE below, with its words. Its sources: `kiln families --json`, the committed default bundle, calls.c
and tests/counts.
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys
import textwrap
from typing import NamedTuple
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS, CALLS = ROOT / "generator" / "kernels", ROOT / "tests" / "readme" / "calls.c"
sys.path[:0] = [str(ROOT / "tests" / "counts"), str(ROOT / "tools" / "bench"), str(ROOT / "tools" / "python")]
import counts  # noqa: E402
import kiln  # noqa: E402
import picture  # noqa: E402
import summary  # noqa: E402

MOST_LINES, MOST_WORDS = 250, 2000  # words of the first page
PICTURE = ROOT / "tools" / "report" / "kiln_default.svg"
REGION = re.compile(r"(<!-- made: (.+?) -->\n).*?(<!-- end -->\n)", re.S)
CODE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
ELEMENT_TYPES = {"f64", "f32", "f16", "bf16"}

# The first page's costs: a name, a variant of the default bundle, its target, and the unit of its cost.
COUNTED = [
    ("NF4 matrix x vector, f16",
     "nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=1,tile_n=32,k_warps=8,table=compact,stages=2,split_k=1", "sm_80", "weight"),
    ("RMS norm, GGUF Q4_K matrix x vector, f16", "rmsnorm_q4k_gemv/norm=rms,x=f16,activation=q8,batch=1,y=f16,rows=2,chunk=8192",
     "sm_80", "weight"),
    ("NVFP4 matrix x vector, f16", "nvfp4_gemv/c=f16,decode=software,strategy=simt,lane_codes=32,rows=4,k_warps=8", "sm_90", "weight"),
    ("Attention, bf16, head_dim 128",
     "attention/type=bf16,head_dim=128,causal=false,strategy=mma,tile_q=128,tile_k=64,split_k=1,pack_gqa=false", "sm_80", "score"),
    ("f16 to INT4", "int4_quantize/type=f16,mode=sym,group=128,nibbles=low", "sm_75", "element"),
    ("NF4 to f16", "nf4_unpack/type=f16,group=64,nibbles=low", "sm_80", "element"),
    ("GGUF Q4_K to f16", "q4k_dequantize/type=f16", "sm_80", "element"),
]


class Sources:
    def __init__(self, kiln):
        self.kiln = kiln
        self.families = json.loads(self.run("families", "--json"))
        self.manifest = json.loads((ROOT / "generated" / "kiln_default.json").read_text(encoding="utf-8"))
        self.variants = {v["id"]: v for v in self.manifest["variants"]}
        self.full = [line.split()[1] for line in self.run("list", str(ROOT / "tests" / "full.yaml")).splitlines()]

    def run(self, *arguments):
        return subprocess.run([self.kiln, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- generated parts -------------------------------------------------------------------------------------------------

def table(heads, rows, numbers=0):
    """Returns a Markdown table; the last columns are numbers."""
    rule = ["---"] * (len(heads) - numbers) + ["---:"] * numbers
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, rule, *rows))


def families(sources, _text):
    """Returns each family with its heading in the pages beside the index."""
    pages = {anchor(heading): page.name for page in sorted(KERNELS.glob("*.md"))
             for heading in re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.M)}

    def row(family):
        name = family["name"]
        heading = next((h for h in pages if name in re.split("-", h)), None)
        types = next(p["values"] for p in family["params"] if set(p.get("values", ())) & ELEMENT_TYPES)
        link = f"[`{name}`]({pages[heading]}#{heading})" if heading else f"`{name}` has no page"
        return link, cell(family["summary"]), " ".join(types), str(sum(id.startswith(name + "/") for id in sources.variants))

    return table(("family", "what it does", "element types", "variants in the default bundle"), map(row, sources.families), 1)


def values(p):
    if "min" in p:
        return f"{p['min']} to {p['max']}" + (f" in steps of {p['step']}" if p["step"] != 1 else "") + f" (**{p['default']}**)"
    return " ".join(f"**{v}**" if v == str(p["default"]).lower() else v for v in p["values"])


def by_text(families, of):
    """Returns each different text with the families that have it: (text, ""), if all do."""
    having = {}
    for family in families:
        having.setdefault(of(family), []).append(f"`{family['name']}`")
    return [(text, ", ".join(names) if len(having) > 1 else "") for text, names in having.items()]


def parameters(sources, _text, *names):
    chosen = [f for f in sources.families if f["name"] in names]
    listed = lambda role: lambda f: "; ".join(f"`{p['name']}` {values(p)}" for p in f["params"] if p["role"] == role)
    return "".join(f"- {kind}{of and ' of ' + of}: {text or 'none'}.\n" for role, kind in (("contract", "Contract parameters"), ("tuning", "Tuning parameters"))
                   for text, of in by_text(chosen, listed(role)))


def accuracy(sources, _text, *names):
    """Returns a row for each text, bound and rule about NaNs, with the families that have it."""
    chosen = [f for f in sources.families if f["name"] in names]
    bounds = [(of, row) for f in chosen for row in f.get("bounds", []) for of in ([f"`{f['name']}`: "] if len(chosen) > 1 else [""])]
    rows = [(of or "all variants", text) for text, of in by_text(chosen, lambda f: f["accuracy"])]
    rows += [(of + row["where"], row["text"]) for of, row in bounds]
    rows += [(f"NaN and infinity{of and ': ' + of}", text) for text, of in by_text(chosen, lambda f: f["nonfinite"])]
    return table(("for", "accuracy"), [(cell(label), cell(text)) for label, text in rows])


def cell(text):
    return text.replace("|", "\\|")


def call(_sources, _text, name):
    """Returns the body of a function of calls.c."""
    body = re.search(rf"^static void {name}\(void\)\n{{\n(.*?)^}}", CALLS.read_text(encoding="utf-8"), re.M | re.S)[1]
    return f"```c\n{textwrap.dedent(body)}```\n"


def contents(_sources, text):
    headings = re.findall(r"^## (.+)$", CODE.sub("", text), re.M)
    return "".join(f"- [{heading}](#{anchor(heading)})\n" for heading in headings)


def sizes(sources, _text):
    images = [image for v in sources.variants.values() for image in v["images"]]
    oldest = int(re.search(r"^#define KILN_OLDEST_DRIVER (\d+)$", (ROOT / "include/kiln/driver.h").read_text(encoding="utf-8"), re.M)[1])
    drivers = [max(i["min_driver"], oldest) for i in images]  # the runtime refuses an older one
    first, last = (f"{driver // 1000}.{driver % 1000 // 10}" for driver in (min(drivers), max(drivers)))
    most, without = map(eval_product, re.search(r"^MOST_BYTES, MOST_WITHOUT_HASH = (.+?), (.+?)  #",
                        (ROOT / "tests/runtime/check_symbols.py").read_text(encoding="utf-8"), re.M).groups())
    megabytes = lambda count: f"{count / 1e6:.1f} MB"
    bundle = (ROOT / "generated" / "kiln_default.c").stat().st_size
    decoder = re.search(r"DECODER_BYTES = (\d+)", (ROOT / "generator/bundle/bundle.c").read_text(encoding="utf-8"))[1]
    return table(("what", "how much"), (
        ("code and constants of the runtime, at -Os on x86-64",
         f"at most {most // 1024} KB; {without // 1024} KB without lookup by name and without hashes. A test checks both; "
         f"{int(decoder) // 1000} KB more for compressed bundles"),
        ("the default bundle", f"{len(sources.variants)} variants for {len(sources.manifest['targets'])} targets in {len(images)}"
         f" images: {megabytes(sum(i['bytes'] for i in images))} of PTX, {megabytes(bundle)} of C"),
        ("the oldest driver that runs its kernels", f"CUDA {first} to {last}, depending on the image"),
        ("every value of every parameter, `tests/full.yaml`", f"{len(sources.full)} variants")))


def eval_product(text):
    a, b = map(int, text.split("*"))
    return a * b


class Cost(NamedTuple):
    """Returns a kernel's cost at a size, per unit of its work."""
    name: str
    target: str
    size: str
    unit: str
    instructions: float  # of threads
    moved: float         # bytes
    minimum: float       # bytes, each argument once


def counted_costs(sources):
    counted = counts.committed()

    def cost(name, id, target, unit):
        variant = sources.variants[id]
        params = {name: str(value) for name, value in variant["params"].items()}
        size = list(counts.sizes_of(variant)(params))[0]
        numbers = {name: float(value) if "." in value or "e" in value else int(value) for name, _, value in
                   (pair.partition("=") for pair in size.split(","))}
        minimum = sum(kiln._evaluate(variant["cost"][kind], numbers) for kind in ("bytes_read", "bytes_written"))
        instructions, sectors = counted[variant["family"], id, target][:2]
        elements = kiln._evaluate(variant["cost"]["elements"], numbers)
        shown = ", ".join(f"{name}={value}" for name, value in numbers.items()
                          if name in ("m", "n", "k", "q_heads", "q_length", "k_length"))
        return Cost(name, target, shown, unit, instructions / elements, 32 * sectors / elements, minimum / elements)

    return [cost(*row) for row in COUNTED]


def costs(sources, _text):
    return table(("kernel", "size", "thread instructions", "bytes moved", "minimum"),
                 [(f"{c.name}, `{c.target}`", c.size, f"{c.instructions:.2f}/{c.unit}", f"{c.moved:.3f}", f"{c.minimum:.3f}")
                  for c in counted_costs(sources)], 3)


def measured(_sources, _text, *words):
    return summary.first_page() if words == ("first",) else summary.markdown()


MADE = {"measured": measured, "families": families, "parameters": parameters, "accuracy": accuracy, "call": call, "contents": contents,
        "sizes": sizes, "costs": costs}


def made(text, sources):
    def region(match):
        what, *words = match[2].split()
        body = MADE[what](sources, text, *words)
        return f"{match[1]}{body}{match[3]}"

    return REGION.sub(region, text)


# ---- checks ----------------------------------------------------------------------------------------------------------

def anchor(heading):
    """Returns a heading's anchor, as on GitHub."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading).lower()).replace(" ", "-")


def anchors(text):
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", CODE.sub("", text), re.M)}


def links(text):
    """Returns the page's links as (line, target)."""
    plain = CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    plain = re.sub(r"`[^`\n]*`", lambda m: "x" * len(m[0]), plain)
    for match in re.finditer(r"\[[^\]]+\]\(([^)\s]+)\)", plain):
        yield plain.count("\n", 0, match.start(1)) + 1, match[1]


def broken_links(page, text):
    for line, link in links(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, part = link.partition("#")
        target = page.parent / path
        if not target.exists():
            yield f"{page.relative_to(ROOT)}:{line}: the link '{link}' leads to no file"
        elif part and part not in anchors(target.read_text(encoding="utf-8") if path else text):
            yield f"{page.relative_to(ROOT)}:{line}: the link '{link}' leads to no heading of its page"


def missing_packages(text):
    lists = re.findall(r"_packages=\((.+?)\)", (ROOT / "tools/prepare.sh").read_text(encoding="utf-8"), re.S)
    listed = [row.rpartition(":")[0] for row in " ".join(lists).split()]
    named = set(re.findall(r"`([^`\s]+)`", text))
    if not listed:
        yield "tools/prepare.sh: expected lists of packages"
    yield from (f"README.md: the package {package} of tools/prepare.sh is not named" for package in listed if package not in named)


def refused_entries(sources):
    """Each `{family: ...}` in the families' pages is an entry that the generator accepts."""
    for page in sorted(KERNELS.glob("*.md")):
        for entry in re.findall(r"`({family: [^`]+})`", page.read_text(encoding="utf-8")):
            target = "sm_100f" if "hardware" in entry else "sm_120f" if "block_scaled" in entry else "sm_90"
            config = f"bundle: entries\ntargets: [{target}]\nkernels:\n  - {entry}\n"
            done = subprocess.run([sources.kiln, "list", "-"], input=config, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                yield f"{page.relative_to(ROOT)}: the entry {entry} is refused: {done.stdout.strip()}"


def made_files(sources):
    """Yields (file, its text, the expected text)."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        yield page, text, made(text, sources)
    yield PICTURE, PICTURE.read_text(encoding="utf-8") if PICTURE.exists() else "", picture.draw(sources.manifest, counted_costs(sources))


def pages():
    folders = ".github", "generator", "include", "runtime", "tests", "tools"
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]


def wrong(sources):
    first = (ROOT / "README.md").read_text(encoding="utf-8")
    lines, words = first.count("\n"), len(first.split())
    if lines > MOST_LINES or words > MOST_WORDS:
        yield f"README.md: {lines} lines and {words} words; there may be {MOST_LINES} and {MOST_WORDS}"
    yield from missing_packages(first)
    yield from refused_entries(sources)
    version = sources.run("--version").split()[-1]
    if f"Version {version}," not in first:
        yield f"README.md: its status is not that of version {version}"
    for page in pages():
        yield from broken_links(page, page.read_text(encoding="utf-8"))
    for file, text, anew in made_files(sources):
        if anew != text:
            yield f"{file.relative_to(ROOT)}: a made part is stale; ninja rebase_readme remakes it"
            yield from difference(text, anew)


def difference(old, new):
    return (line.rstrip("\n") for line in difflib.unified_diff(old.splitlines(True), new.splitlines(True), "now", "anew", n=0))


def rebase(sources):
    for file, old, new in made_files(sources):
        if new != old:
            print(file.relative_to(ROOT), *difference(old, new), sep="\n")
            file.write_text(new, encoding="utf-8")


def self_test():
    """Finds a mistake of each kind, and none in correct pages."""
    page = ROOT / "README.md"
    right = "# A\n[b](LICENSE) [c](#a) [d](https://x.y/z) `[e](nowhere)`\n```\n[f](nowhere)\n# G\n```\n"
    assert list(broken_links(page, right)) == [], list(broken_links(page, right))
    for link, what in (("nowhere.md", "no file"), ("tests/data/README.md#nowhere", "no heading of its page")):
        (error,) = broken_links(page, f"# A\n\n[b]({link})\n")
        assert error == f"README.md:3: the link '{link}' leads to {what}", error
    assert anchor("Does it notice `x_y`, a *wrong* kernel?") == "does-it-notice-x_y-a-wrong-kernel"
    assert made("<!-- made: contents -->\nstale\n<!-- end -->\n## B c\n", None) == \
        "<!-- made: contents -->\n- [B c](#b-c)\n<!-- end -->\n## B c\n"
    assert "README.md: the package libfyaml-dev:arm64 of tools/prepare.sh is not named" in list(missing_packages("`gcc`"))
    variant = {"family": "rope", "images": [{"bytes": 1200}, {"bytes": 800}]}
    drawn = picture.draw({"variants": [variant, variant]}, [Cost("a < b", "sm_80", "n=1", "element", 1.5, 3, 2)])
    texts, bars = ([f(e) for e in xml.fromstring(drawn).iter(f"{{http://www.w3.org/2000/svg}}{name}")]
                   for name, f in (("text", lambda e: e.text), ("rect", lambda e: e.attrib["width"])))
    assert texts[2:5] == ["RoPE", "4 KB", "2 variants"] and texts[8:11] == \
        ["a < b", "1.50 per element", "3.000 bytes per element, minimum 2.000"], texts
    assert bars == ["300.0", "300.0", "150.0"], bars


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    verb, kiln = sys.argv[1:]
    sources = Sources(kiln)
    if verb == "rebase":
        rebase(sources)
        return 0
    found = list(wrong(sources))
    print("\n".join(found) or "nothing is stale, and every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
