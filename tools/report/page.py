"""The page: its sections, in reading order."""
import base64
import hashlib
import pkgutil
import re

import charts
import figures
from markup import Markup, el, join

FORM = ("<!doctype html>\n<html ", ": what is in it</title>")  # for inputs.is_kept
MOST_NAMED, MOST_OPEN = 40, 12  # items of a list; a short list is open, since a closed one does not print


def page(report, inputs, changes):
    style, script = (pkgutil.get_data("page", f"page.{end}").decode("utf-8") for end in ("css", "js"))
    allowed = " ".join(f"{kind}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}';"
                       for kind, text in (("style", style), ("script", script)))
    title = f"{report.manifest['bundle']}: what is in it"
    sections = [("summary", "Summary", summary(report, inputs)), ("bytes", "Bytes", bytes_section(report))]
    if report.verifications:
        sections.append(("verification", "Verification", verification(report)))
    if changes:
        sections.append(("changes", "Changes", changes_section(changes[0], changes[1])))
    if report.times:
        sections.append(("times", "Compile times", times_section(report)))
    sections += [("roofline", "Roofline", roofline(report)), ("variants", "Variants", variants(report))]
    head = el("head", el("meta", charset="utf-8"), el("meta", name="viewport", content="width=device-width, initial-scale=1"),
              el("meta", http_equiv="Content-Security-Policy", content=f"default-src 'none'; {allowed}"),
              el("meta", name="color-scheme", content="light dark"), el("title", title), el("style", Markup(style)))
    top = el("header", el("h1", report.manifest["bundle"]),
             el("nav", [el("a", name, href=f"#{key}") for key, name, _ in sections], aria_label="sections"))
    body = el("main", [el("section", el("h2", name), content, id=key) for key, name, content in sections])
    return f"<!doctype html>\n{el('html', head, el('body', top, body, el('script', Markup(script))), lang='en')}\n"


# ---- pieces -----------------------------------------------------------------------------------------------------------------

def driver(version):
    return f"CUDA {version // 1000}.{version % 1000 // 10}"


def megabytes(count):
    return f"{charts.short_bytes(count)} ({count:,} bytes)" if count >= 1000 else f"{count:,} bytes"


def plural(count, one, many=None):
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def code(text):
    """Returns an id with line breaks allowed after its slash and commas."""
    return el("code", breaking(text, "/,"))


def option(text):
    return el("code", text, class_="option")


def breaking(text, ends):
    parts = re.split(f"(?<=[{ends}])", text)
    return [join(part, el("wbr")) for part in parts[:-1]] + parts[-1:]


def table(heads, rows, groups=None, **attributes):
    """heads: (text, is a number); groups: rows above them. A wide table scrolls by itself, by keyboard too."""
    names = join(groups, el("tr", [el("th", text, scope="col", class_="n" if is_number else None) for text, is_number in heads]))
    body = [el("tr", [cell if isinstance(cell, Markup) and cell.startswith("<t") else
                      el("td", cell, class_="n" if is_number else None) for cell, (_, is_number) in zip(row, heads)])
            for row in rows]
    return el("div", el("table", el("thead", names), el("tbody", body), **attributes), class_="scroll", tabindex="0",
              role="region", aria_label=attributes.get("aria_label", heads[0][0]))


def row_head(text):
    """Returns a family's name with line breaks allowed after its underscores."""
    return el("th", breaking(text, "_"), scope="row")


def named(title, items, shown=MOST_NAMED, is_open=False):
    """Returns a list that opens, cut if it is long; None if it is empty."""
    more = el("li", f"and {len(items) - shown:,} more") if len(items) > shown else None
    return el("details", el("summary", title), el("ul", [el("li", i) for i in items[:shown]], more),
              open="" if is_open or len(items) <= MOST_OPEN else None) if items else None


# ---- summary ----------------------------------------------------------------------------------------------------------------

def summary(report, inputs):
    m, images = report.manifest, [i for v in report.variants if v.owner == v.id for i in v.images]
    total, text = sum(i.bytes for i in images), sum(i.text_bytes for i in images)
    cubins = sum(i.is_cubin for i in images)
    facts = [("Made by", m["generator"]), ("Families", f"{len(report.families):,}"), ("Variants", f"{len(report.variants):,}"),
             ("Images", f"{len(images):,}" + (f", {cubins:,} of them cubins" if cubins else "")),
             ("Bytes of images", megabytes(total) + (f", before compression {megabytes(text)}" if text != total else "")),
             ("Targets", " ".join(m["targets"])), ("Oldest driver, all images", driver(m["min_driver"])),
             ("Oldest driver, any image", driver(min((i.min_driver for i in images), default=0)))]
    for v in report.verifications:
        found = [row["result"] for row in v["variants"]]
        right, wrong = found.count("ok"), found.count("WRONG")
        facts.append((f"Verified on {of_what(v)}",
                      f"{right:,} of {len(report.variants):,} within bound" + (f", {wrong:,} WRONG" if wrong else "")))
    sources = [(f["file"], f"{f['bytes']:,}", el("code", f"xxh3_128 {f['xxh3_128']}"))
               for f in [m["config"], *(m.get("external_files") or [])]]
    sources += [(name, f"{size:,}", el("code", f"sha256 {digest}")) for name, size, digest in inputs]
    return join(el("dl", [el("div", el("dt", k), el("dd", v)) for k, v in facts], class_="facts"),
                el("details", el("summary", "What this page and the bundle were made from"),
                   table([("file", False), ("bytes", True), ("hash", False)], sources)))


# ---- bytes ------------------------------------------------------------------------------------------------------------------

def kilobytes(count):
    return f"{count / 1000:,.1f}"


MOST_ROWS = 30  # of an open table


def bytes_section(report):
    by, targets = report.bytes_by(), report.targets if len(report.targets) > 1 else []
    total = sum(sum(of.values()) for of in by.values()) or 1
    order = sorted(by, key=lambda f: (-sum(by[f].values()), f))
    rows = [[row_head(f), *(kilobytes(by[f][t]) if t in by[f] else "" for t in targets), kilobytes(sum(by[f].values())),
             f"{100 * sum(by[f].values()) / total:.1f} %", f"{len(report.of_family(f)):,}"] for f in order]
    rows.append([row_head("all"), *(kilobytes(sum(of.get(t, 0) for of in by.values())) for t in targets),
                 kilobytes(sum(sum(of.values()) for of in by.values())), "100 %", f"{len(report.variants):,}"])
    heads = [("KB", False), *((t, True) for t in targets), ("all", True), ("share", True), ("variants", True)]
    families = {f: drawn_variants(report, f, total) for f in order}
    return join(el("p", "An area per variant, by the bytes of its images, within its family. Labels have the parameters in which the "
                   "family's variants differ."),
                charts.treemap(families, 1180, 460, class_="treemap wide"), charts.treemap(families, 360, 520, class_="treemap narrow"),
                table(heads, rows, class_="sums"), values_table(report, order))


def worded(name, value):
    """Returns "f16, tile_m 16, causal, not causal": a word stands without its name, unless the name is short, as in x f16."""
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} {value}" if len(name) == 1 or re.fullmatch(r"\d+|none", str(value)) else str(value)


def drawn_variants(report, family, total):
    names = report.differing(family)
    return [(f"{v.id}: {v.bytes:,} bytes, {100 * v.bytes / total:.1f} %",
             [charts.short_bytes(v.bytes), *(worded(name, v.params.get(name, "-")) for name in names)] if names else [], v.bytes)
            for v in report.variants if v.family == family]


def values_table(report, families):
    """Shows the bytes that a list in the configuration costs."""
    rows = [[row_head(f), name, ", ".join(f"{figures.shown(value)}: {charts.short_bytes(size)} ({count:,})" for value, count, size in values)]
            for f in families for name, values in report.values_of(f).items()]
    heads = [("family", False), ("parameter", False), ("value: bytes (variants)", False)]
    return el("details", el("summary", "What a bundle without a parameter's value would save"),
              table(heads, rows, class_="values"), open="" if len(rows) <= MOST_ROWS else None) if rows else None


# ---- verification -----------------------------------------------------------------------------------------------------------

def share(row):
    """Returns the largest error divided by its bound."""
    ratio = row.get("worst_error_over_bound")
    return "-" if ratio is None else f"{ratio:.3g}" if ratio else "exact"


def range_text(ranges, names=None):
    """Returns "m 1 to 65, k 64 to 4,096", with line breaks allowed between them."""
    return ", ".join((f"{name} {least:,}" + (f" to {most:,}" if most > least else "")).replace(" ", "\u00a0")
                     for name, (least, most) in ranges.items() if names is None or name in names)


def verification(report):
    return join(el("p", "Each variant ran at the edges of its sizes on inputs that are hard for it, and each element was compared with a "
                   "reference in float64. The sizes are the smallest and largest that were tried, not each one between them; those of a family "
                   "span its variants."),
                [of_device(report, v) for v in report.verifications])


def of_what(v):
    """Returns the device with the facts that its name leaves out."""
    more = [word for word, is_so in ((f"sm_{v['sm']}", True), ("emulated", v["emulated"])) if is_so and word not in v["device"]]
    return ", ".join([v["device"], *more])


def of_device(report, v):
    results = report.results(v)
    missing = [x.id for x in report.variants if x.id not in results]
    by = {word: [r for r in v["variants"] if r["result"] == word] for word in ("skipped", "executed, not compared", "WRONG")}
    rows = []
    for family in report.families:
        variants = report.of_family(family)
        of = [results[x.id] for x in variants if x.id in results]
        right = [r for r in of if r["result"] == "ok"]
        ranges = figures.ranges_of(right)
        wrong = sum(r["result"] == "WRONG" for r in of)
        rows.append([row_head(family), el("td", f"{len(right):,} of {len(variants):,}", class_="n wrong" if wrong else "n"),
                     range_text(ranges, variants[0].sizes & ranges.keys() or None), f"{sum(r.get('cases') or 0 for r in right):,}"])
    what = of_what(v)
    skipped = v.get("targets_not_run") or []
    return join(el("h3", what),
                el("p", ran(v), f" Its images for {', '.join(skipped)} did not run here." if skipped else None),
                named(f"{plural(len(by['WRONG']), 'variant')} WRONG", [said(r) for r in by["WRONG"]], len(results), True),
                named(f"{plural(len(missing), 'variant')} did not run", [code(i) for i in missing]),
                named(f"{plural(len(by['skipped']), 'variant')} skipped", [said(r) for r in by["skipped"]]),
                named(f"{plural(len(by['executed, not compared']), 'variant')} ran without being compared",
                      [said(r) for r in by["executed, not compared"]]),
                table([("family", False), ("within bound", True), ("for sizes", False), ("cases", True)], rows,
                      aria_label=f"proven on {what}"),
                el("details", el("summary", "By variant, with all integer arguments and the largest error as a share of its bound"),
                   table([("variant", False), ("sizes", False), ("cases", True), ("error / bound", True)],
                         [[el("th", code(r["id"]), scope="row"), range_text(r.get("ranges") or {}), f"{r.get('cases') or 0:,}", share(r)]
                          for r in v["variants"]], class_="counts")),
                not_reached(report, v))


def not_reached(report, v):
    """Shows the rules' limits beyond the tried sizes, and the pairs of values that did not run together."""
    results, rows = report.results(v), []
    for family in report.families:
        of = [results[x.id] for x in report.of_family(family) if x.id in results]
        ranges, limits = figures.ranges_of([r for r in of if r["result"] == "ok"]), figures.limits_of(of)
        rows += [[row_head(family), code(name), f"{most:,}", f"{limits[name]:,}"]
                 for name, (_, most) in ranges.items() if limits.get(name, 0) > most]
    pairs = [(r["id"], r["excluded_pairs"], r.get("excluded") or "") for r in v["variants"] if r.get("excluded_pairs")]
    if not rows and not pairs:
        return None
    return el("details", el("summary", "What was not reached"),
              table([("family", False), ("argument", False), ("largest tried", True), ("allowed by its rules", True)], rows) if rows else None,
              table([("variant", False), ("pairs of values that did not run together", True), ("the first, and why", False)],
                    [[el("th", code(i), scope="row"), f"{count:,}", text] for i, count, text in pairs], class_="counts") if pairs else None)


def ran(v):
    """Shows how much was compared, as far as the file says."""
    cases, elements = (sum(row.get(name) or 0 for row in v["variants"]) for name in ("cases", "elements"))
    known = [f"{plural(cases, 'case')}, {elements:,} elements compared"]
    known += [f"{name} {v[name]}" for name in ("checks", "seed") if v.get(name) is not None]
    return "; ".join(known) + "."


def said(row):
    return join(code(row["id"]), f": {row['detail']}" if row.get("detail") else "")


# ---- changes ----------------------------------------------------------------------------------------------------------------

def signed(count):
    return f"{count:+,}" if count else "0"


def shown_member(value):
    if isinstance(value, dict) and "file" in value:
        return f"{value['file']}, {value['bytes']:,} bytes, {value['xxh3_128']}"
    return figures.shown(value)


def changes_section(path, c):
    counts = [("added", len(c.added)), ("removed", len(c.removed)), ("changed", len(c.changed)), ("moved", len(c.moved)),
              ("alike", c.alike)]
    before, after = (sum(f[i] for f in c.families) for i in (1, 2))
    facts = el("dl", [el("div", el("dt", f"Variants {k}"), el("dd", f"{n:,}")) for k, n in counts],
               el("div", el("dt", "Bytes of images"), el("dd", f"{before:,} -> {after:,} ({signed(after - before)})")),
               class_="facts")
    members = [[row_head(name), shown_member(a), shown_member(b)] for name, a, b in c.bundle]
    families = [[row_head(name), f"{a:,}", f"{b:,}", signed(b - a), ", ".join(what)] for name, a, b, what in c.families]
    heads = [("family", False), ("bytes before", True), ("now", True), ("more", True), ("changed in its description", False)]
    return join(el("p", "Against ", el("code", path), "."), facts,
                table([("of the bundle", False), ("before", False), ("now", False)], members) if members else None,
                table(heads, families),
                named(f"{plural(len(c.added), 'variant')} added", [join(code(i), f": {b:,} bytes") for i, b in c.added], 2000),
                named(f"{plural(len(c.removed), 'variant')} removed", [join(code(i), f": {b:,} bytes") for i, b in c.removed], 2000),
                named(f"{plural(len(c.changed), 'variant')} changed",
                      [join(code(x.id), f": {signed(x.after - x.before)} bytes; {'; '.join(x.what)}") for x in c.changed], 2000),
                named(f"{plural(len(c.moved), 'variant')} moved to other targets with the same images",
                      [join(code(x.id), f": {'; '.join(x.what)}") for x in c.moved], 2000))


# ---- compile times -----------------------------------------------------------------------------------------------------------

def milliseconds(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def times_section(report):
    """Sums over the images that each device takes."""
    rows, sums = [], [[] for _ in report.devices]
    for family in report.families:
        cells = []
        for d, of_device_sum in zip(report.devices, sums):
            own = [t for t in (report.milliseconds(v, d) for v in report.of_family(family)) if t is not None]
            of_device_sum += own
            cells.append(join(milliseconds(sum(own)), el("small", f" slowest {milliseconds(max(own))}")) if own else "")
        if any(cells):
            rows.append([row_head(family), *cells])
    rows.append([row_head("all"), *(join(milliseconds(sum(s)), el("small", f" {plural(len(s), 'variant')}")) if s else "" for s in sums)])
    return join(el("p", "What ptxas took for the PTX that each device takes, on a machine that the file does not name. A driver compiles "
                   "PTX when a kernel is first used, in a time of about this order; ", option("kiln_preload"), " does it earlier, and cubins "
                   "need none."),
                table([("ptxas, ms", False), *((d.name, True) for d in report.devices)], rows, class_="times sums"))


# ---- roofline ---------------------------------------------------------------------------------------------------------------

def roofline(report):
    if not report.counts:
        return el("p", "Nothing was counted. Run a program on the emulated driver with ", option("KILN_EMU_REPORT=counts.jsonl"), " and give ",
                  option("--counts counts.jsonl"), " for a roofline of what its kernels executed.")
    drawn = [(d, list(report.points(d))) for d in report.devices]
    drawn = [(d, points) for d, points in drawn if points]
    if not drawn:
        return el("p", "No variant that was counted runs on these devices.")
    span = charts.span_of(drawn)
    drawings = [el("figure", el("figcaption", el("strong", d.name), f" {d.gb_per_s:,} GB/s, {d.multiprocessors} multiprocessors at "
                                                                    f"{d.mhz:,} MHz"),
                   charts.roofline(d, points, span)) for d, points in drawn]
    return join(el("p", "Each variant's largest counted launch: across, the issue slots that it takes for a byte that it moves; up, issue "
                   "slots per second. The roof is what memory, then the schedulers of all multiprocessors, can do. A product takes the "
                   "slots in which the tensor cores do it, and shared memory those in which it is busy, where that is more. Nothing here "
                   "is timed: each point stands on the roof."),
                counted(report),
                el("p", [charts.key(el("circle", cx="6", cy="6", r="4", class_=kind), f"limited by {what}")
                         for kind, what in (("memory", "memory"), ("compute", "instructions, shared memory or tensor cores"))],
                   class_="legend"),
                el("div", drawings, class_="figures"), minimum_times(report, drawn))


def counted(report):
    missing = [v.id for v in report.variants if v.id not in report.counts]
    rows = [[el("th", code(v.id), scope="row"), *(f"{n:,}" for n in figures.count_of(report.counts[v.id]))]
            for v in report.variants if v.id in report.counts]
    heads = [("variant", False), ("thread blocks", True), ("warp instructions", True), ("wavefronts", True), ("multiply-adds", True),
             ("bytes moved", True)]
    return join(el("details", el("summary", "What was counted"), table(heads, rows, class_="counts")),
                named(f"{plural(len(missing), 'variant')} not counted", [code(i) for i in missing]))


def minimum_times(report, drawn):
    rows = []
    for family in report.families:
        cells = []
        for _, points in drawn:
            own = [p for p in points if p.variant.family == family]
            times, limits = sorted(p.seconds for p in own), sorted({p.limit for p in own})
            ends = dict.fromkeys(charts.micro(t) for t in times[:1] + times[-1:])
            cells.append(join(" to ".join(ends), el("small", " " + ", ".join(limits)) if own else ""))
        if any(cells):
            rows.append([row_head(family), *cells])
    return table([("minimum time, us", False), *((d.name, True) for d, _ in drawn)], rows, class_="times")


# ---- variants ---------------------------------------------------------------------------------------------------------------

def cell(shown, value=None, class_="n", **attributes):
    return el("td", shown, class_=class_, data_v="" if value is None else value, **attributes)


def bounded(percent, is_known):
    """Returns an occupancy; without known registers it may be lower."""
    if percent is None:
        return cell("-")
    shade = f"n o{min(int(percent // 25), 3)}"
    return cell("not at its largest sizes" if not percent else f"{'' if is_known else '≤ '}{percent:.0f}", f"{percent:.3f}", shade)


FIXED = [("variant", False), ("bytes", True), ("images for", False), ("driver", True), ("threads", True), ("shared bytes", True)]


def groups_of(heads, *groups):
    """Makes a row above the headings: (title, columns)."""
    rest = len(heads) - sum(count for _, count in groups)
    return el("tr", el("td", "", colspan=rest), [el("th", title, colspan=count, scope="colgroup", class_="group")
                                                 for title, count in groups if count])


def variants(report):
    heads = [*FIXED, *([("registers", True)] if report.has_registers else []), *([("ptxas, ms", True)] if report.times else []),
             *((of_what(v), True) for v in report.verifications), *((d.name, True) for d in report.devices)]
    all_results = [report.results(v) for v in report.verifications]
    rows = [row_of(report, v, [result(of.get(v.id)) for of in all_results]) for v in report.variants]
    notes = []
    if not report.has_registers:
        notes.append(join("Registers are not in a manifest (", option("--resources"), " or ", option("--counts"), " adds them), so an "
                          "occupancy is the most that threads and shared memory allow."))
    notes.append("Driver: the CUDA version of the oldest one that loads all images. Shared memory: the most that a launch takes. "
                 "Occupancy: warps at once, of those that a multiprocessor has room for. A dash: nothing of it runs there.")
    options = [el("option", "all families", value="")] + [el("option", f) for f in report.families]
    form = el("form", el("label", "Words ", el("input", type="search", id="words", placeholder="bf16 mma sm_90", autocomplete="off")),
              el("label", "Family ", el("select", options, id="family")),
              el("output", plural(len(rows), "variant"), id="shown", aria_live="polite"), id="filter", hidden="")
    groups = groups_of(heads, ("cases within bound", len(report.verifications)), ("occupancy, %", len(report.devices)))
    return join([el("p", n) for n in notes], form, table(heads, rows, groups, id="table", aria_label="variants"))


def row_of(report, v, results):
    registers = [report.registers_on(v, d) for d in report.devices]
    targets = list(dict.fromkeys(i.target for i in v.images))
    newest = max((i.min_driver for i in v.images), default=None)
    cells = [el("th", code(v.id), scope="row", data_f=v.family),
             cell(f"{v.bytes:,}", v.bytes,
                  title=", ".join(f"{i.target}{' cubin' if i.is_cubin else ''}: {i.bytes:,}" for i in v.images)),
             cell(" ".join(targets), len(targets), None),
             cell(driver(newest).removeprefix("CUDA ") if newest else "-", newest),
             cell(f"{v.threads:,}" if v.threads else "-", v.threads or None), cell(f"{v.shared_bytes:,}", v.shared_bytes)]
    if report.has_registers:
        known = [r for r in registers if r]
        cells.append(cell(max(known), max(known), title=", ".join(f"{d.name}: {r}" for d, r in zip(report.devices, registers) if r))
                     if known else cell("-"))
    if report.times:
        slowest = max(v.times.values(), default=None)
        cells.append(cell("-" if slowest is None else milliseconds(slowest), slowest,
                          title=", ".join(f"{target}: {time:g}" for target, time in v.times.items()) or None))
    return [*cells, *results, *(bounded(report.occupancy(v, d), r) for d, r in zip(report.devices, registers))]


def result(row):
    if row is None:
        return el("td", "not run", class_="n none", data_v="")
    word, cases = row["result"], row.get("cases") or 0
    title = "; ".join(filter(None, [range_text(row.get("ranges") or {}) if word == "ok" else "", row.get("detail")])) or None
    if word == "WRONG":
        return cell("WRONG", 2 ** 53, "n wrong", title=title)
    return cell(f"{cases:,}" if word == "ok" else word, cases if word == "ok" else None, title=title)
