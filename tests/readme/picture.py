"""Draws the first page's picture as SVG: the bytes of the default bundle's kernels, and what they execute and move."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "report"))
from markup import Markup, el  # noqa: E402

# Families by purpose.
KINDS = [
    ("Attention", "attention"), ("RoPE", "rope"), ("NF4 matrix products", "nf4_gemm nf4_gemm_transposed"),
    ("GGUF matrix products", "linear rmsnorm_q4k_gemv"), ("NVFP4 matrix products", "nvfp4_gemv fp4_gemm"),
    ("Quantise rows of products", "q8_quantize fp4_quantize"),
    ("NF4: quantise and unpack", "nf4_quantize nf4_scale nf4_pack nf4_unpack"),
    ("INT4: quantise and unpack", "int4_quantize int4_scale int4_pack int4_unpack"), ("GGUF Q4_K to floats", "q4k_dequantize"),
]
WIDTH, BYTES, COSTS, TOP, ROW, BAR = 800, 300, 450, 62, 46, 8
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; fill: #1b1f24; }
.head { font-size: 15px; font-weight: 600; } .small { font-size: 11.5px; fill: #59636e; } .n { text-anchor: end; } .b { font-weight: 600; }
.bar { fill: #2268c4; } .more { fill: #9cc3f0; } .ptx { fill: #3f8f5f; }
@media (prefers-color-scheme: dark) {
    text { fill: #e4e8ec; } .small { fill: #9ba5b0; } .bar { fill: #4f97ec; } .more { fill: #2c4a70; } .ptx { fill: #57a878; }
}
"""


def text(x, y, shown, **attributes):
    return el("text", shown, x=f"{x:g}", y=f"{y:g}", **attributes)


def bar(x, y, width, kind):
    return el("rect", x=f"{x:.1f}", y=f"{y:g}", width=f"{width:.1f}", height=BAR, class_=kind)


def size(count):
    return f"{count / 1e6:.2f} MB" if count >= 1e6 else f"{count / 1e3:.0f} KB"


def bytes_of(manifest):
    """Returns [(kind, variants, bytes)], largest first."""
    kind_of = {family: kind for kind, families in KINDS for family in families.split()}
    found = {}
    for v in manifest["variants"]:
        if v["family"] not in kind_of:
            sys.exit(f"tests/readme/picture.py: KINDS has no kind for the family {v['family']}")
        of = found.setdefault(kind_of[v["family"]], [0, 0])
        of[0] += 1
        of[1] += sum(i["bytes"] for i in v["images"])
    return sorted(((kind, *of) for kind, of in found.items()), key=lambda row: -row[2])


def bytes_column(rows):
    yield text(0, 22, "Bytes of PTX", class_="head")
    yield text(0, 41, "a program links the kernels that it names", class_="small")
    for i, (kind, variants, count) in enumerate(rows):
        y = TOP + ROW * i
        yield text(0, y + 12, kind)
        yield text(BYTES, y + 12, size(count), class_="n b")
        yield bar(0, y + 18, BYTES * count / rows[0][2], "ptx")
        yield text(0, y + 38, f"{variants} variant{'s' * (variants > 1)}", class_="small")


def costs_column(costs):
    left, minimum = WIDTH - COSTS, COSTS / max(c.moved / c.minimum for c in costs)
    yield text(left, 22, "Bytes moved", class_="head")
    yield text(left, 41, "full colour: the minimum, each argument once", class_="small")
    yield text(WIDTH, 22, "Instructions", class_="n head")
    for i, c in enumerate(costs):
        y = TOP + ROW * i
        yield text(left, y + 12, c.name)
        yield text(WIDTH, y + 12, f"{c.instructions:.2f} per {c.unit}", class_="n b")
        yield bar(left, y + 18, minimum, "bar")
        yield bar(left + minimum, y + 18, minimum * (c.moved / c.minimum - 1), "more")
        yield text(left, y + 38, f"{c.moved:.3f} bytes per {c.unit}, minimum {c.minimum:.3f}", class_="small")
        yield text(WIDTH, y + 38, c.target, class_="n small")
    yield text(left, TOP + ROW * len(costs) + 20, "Exact counts at small sizes, by the emulated driver; not times.", class_="small")


def draw(manifest, costs):
    """`costs`: rows with name, target, unit, instructions, moved and minimum (readme.py)."""
    rows = bytes_of(manifest)
    height = TOP + ROW * max(len(rows), len(costs) + 1) + 2
    total = sum(i["bytes"] for v in manifest["variants"] for i in v["images"])
    about = "; ".join([*(f"{kind}: {size(count)} in {variants} variants" for kind, variants, count in rows),
                       *(f"{c.name} on {c.target}: {c.instructions:.2f} instructions and {c.moved:.3f} bytes per {c.unit}, minimum "
                         f"{c.minimum:.3f}" for c in costs)])
    title = f"The default bundle: {len(manifest['variants'])} kernels in {size(total)} of PTX, and what {len(costs)} of them execute and move"
    parts = [el("title", title, id="title"), el("desc", about + ".", id="desc"), el("style", Markup(STYLE)), *bytes_column(rows),
             *costs_column(costs)]
    return el("svg", [Markup(f"\n{part}") for part in parts], Markup("\n"), xmlns="http://www.w3.org/2000/svg",
              viewBox=f"0 0 {WIDTH} {height}", width=WIDTH, height=height, role="img", aria_labelledby="title desc") + "\n"
