"""Drawings, as inline SVG. Colours are classes of page.css."""
import itertools
import math

from markup import el, join

LETTER, BOLD = 6.7, 7.7  # average width of a letter of an 11-pixel label, in a wide font


def number(x):
    """A coordinate."""
    return f"{x:.1f}".removesuffix(".0")


def key(shape, text):
    """An entry of a legend: a small shape and its meaning."""
    return el("span", el("svg", shape, width="12", height="12", class_="key", aria_hidden="true"), f" {text}")


def rect(x, y, width, height, **attributes):
    return el("rect", x=number(x), y=number(y), width=number(max(width, 0)), height=number(max(height, 0)), **attributes)


def label(x, y, text, **attributes):
    return el("text", text, x=number(x), y=number(y), **attributes)


def short_bytes(count):
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= of:
            return f"{count / of:.3g} {unit}"
    return f"{count} B"


# ---- treemap ----------------------------------------------------------------------------------------------------------------

def squarify(sizes, x, y, width, height):
    """Divides a rectangle into one per size, largest first: rows along its shorter side, each as close to squares as
    possible. Bruls, Huizing, van Wijk: Squarified Treemaps, 2000."""
    found, sizes, total = [], list(sizes), sum(sizes)
    while sizes and min(width, height) > 1e-6:
        side, scale = min(width, height), width * height / total

        def worst(row, side=side, scale=scale):
            area = sum(row) * scale
            return max(max(side * side * s * scale / area ** 2, area ** 2 / (side * side * s * scale)) for s in row)
        count = 1
        while count < len(sizes) and worst(sizes[:count + 1]) <= worst(sizes[:count]):
            count += 1
        row, thick, at = sizes[:count], sum(sizes[:count]) * scale / side, 0
        for s in row:
            long = s * scale / thick
            found.append((x, y + at, thick, long) if width >= height else (x + at, y, long, thick))
            at += long
        if width >= height:
            x, width = x + thick, width - thick
        else:
            y, height = y + thick, height - thick
        sizes, total = sizes[count:], total - sum(row)
    return found


HEAD = 17  # height of a family's heading, if there is room for its name


def fits(text, width, height, letter=LETTER):
    return len(text) * letter + 8 <= width and height >= 14


LEAST_LETTERS = 6  # letters that a shortened name keeps


def name_in(family, size, width, height):
    """Returns the name with its size, alone, shortened, or nothing."""
    room = int((width - 8) / BOLD)
    names = [f"{family} {short_bytes(size)}", family, *([family[:room - 1] + "…"] if room > LEAST_LETTERS else [])]
    return next((n for n in names if fits(n, width, height, BOLD)), None)


def treemap(families, width, height, **attributes):
    """Draws a rectangle per family, containing one per variant: {family: [(title, lines of its label, bytes)]}. A label ends
    before the first line that does not fit; pointing at a rectangle shows its title."""
    sums = sorted(((sum(size for *_, size in of), family) for family, of in families.items()), key=lambda s: (-s[0], s[1]))
    sums, drawn = [s for s in sums if s[0]], []
    for number, ((size, family), (x, y, w, h)) in enumerate(zip(sums, squarify([s for s, _ in sums], 0, 0, width, height))):
        x, y, w, h = x + 1, y + 1, max(w - 2, 0), max(h - 2, 0)
        name = name_in(family, size, w, h - 14)
        head = HEAD if name else 0
        drawn.append(rect(x, y, w, h, class_="family"))
        of = sorted((v for v in families[family] if v[2]), key=lambda v: -v[2])
        for (title, lines, _), (cx, cy, cw, ch) in zip(of, squarify([v[2] for v in of], x, y + head, w, h - head)):
            cx, cy, cw, ch = cx + .5, cy + .5, cw - 1, ch - 1
            shown = itertools.takewhile(lambda line: fits(line, cw, 14), lines[:int(ch - 1) // 13] if name else [])
            drawn.append(el("g", el("title", title), rect(cx, cy, cw, ch, class_=f"t{number % 8}"),
                            [label(cx + 4, cy + 12 + 13 * k, line) for k, line in enumerate(shown)]))
        if name:
            drawn.append(label(x + 4, y + 12.5, name, class_="name"))
    return el("svg", drawn, viewBox=f"0 0 {width} {height}", role="img",
              aria_label="bytes by family and variant; the tables have the numbers", **attributes)


# ---- roofline ---------------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 246, 42, 10, 24, 34
PREFIXES = {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


def power(exponent):
    """Returns 10^exponent in few letters."""
    if exponent < 0:
        return f"{10 ** exponent:.{-exponent}f}"
    of = exponent // 3 * 3
    return f"{10 ** (exponent - of)}{PREFIXES.get(of, f'e{of}')}"


def decades(low, high):
    low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return low, max(high, low + 1)


def span_of(charts):
    """Returns the decades of both axes that cover all charts, so that charts compare; from (device, points)."""
    at = [p.work / p.bytes for _, points in charts for p in points]
    devices = [device for device, _ in charts]
    ridges = [d.slots_per_second / d.bytes_per_second for d in devices]
    x0, x1 = decades(min(at + ridges), 1.2 * max(at + ridges))
    least = min(at + ridges)
    y0, y1 = decades(min(d.bytes_per_second for d in devices) * least, max(d.slots_per_second for d in devices))
    return x0, x1, y0, y1


def roofline(device, points, span):
    x0, x1, y0, y1 = span

    def x(v):
        return LEFT + (math.log10(v) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)

    def y(v):
        return HEIGHT - BOTTOM - (math.log10(v) - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)
    rate, peak = device.bytes_per_second, device.slots_per_second
    grid = [join(el("line", x1=number(x(10.0 ** e)), x2=number(x(10.0 ** e)), y1=TOP, y2=HEIGHT - BOTTOM, class_="grid"),
                 label(x(10.0 ** e), HEIGHT - BOTTOM + 13, power(e), class_="middle")) for e in range(x0, x1 + 1)]
    grid += [join(el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=number(y(10.0 ** e)), y2=number(y(10.0 ** e)), class_="grid"),
                  label(LEFT - 5, y(10.0 ** e) + 4, power(e), class_="end")) for e in range(y0, y1 + 1)]
    start = max(10.0 ** x0, 10.0 ** y0 / rate)
    roof = [(start, rate * start), (peak / rate, peak), (10.0 ** x1, peak)]
    grid.append(el("polyline", points=" ".join(f"{number(x(a))},{number(y(b))}" for a, b in roof), class_="roof"))
    seen = {}
    for p in points:
        at = number(x(p.work / p.bytes)), number(y(min(peak, rate * p.work / p.bytes)))
        seen.setdefault((at, p.variant.family, p.limit), []).append(p)
    for (at, family, limit), same in seen.items():
        title = f"{same[0].variant.id}: {same[0].work / same[0].bytes:.3g} issue slots per byte, at least {micro(same[0].seconds)} us by {limit}"
        if len(same) > 1:
            title += f"; and {len(same) - 1} more of {family}"
        grid.append(el("circle", el("title", title), cx=at[0], cy=at[1], r="3.5", class_="memory" if limit == "memory" else "compute"))
    grid.append(label(2, 12, "issue slots per second"))
    grid.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, "issue slots per byte", class_="middle"))
    return el("svg", grid, viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="roofline", role="img",
              aria_label=f"roofline of {device.name}; the table below has the least times")


def micro(seconds):
    us = seconds * 1e6
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"
