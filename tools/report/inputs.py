"""Reads JSON files and lines, and checks them first. A mistake raises an InputError with its place."""
import hashlib
import json
import os
import re
import tempfile


MOST_BYTES = 1 << 28


class InputError(Exception):
    """A mistake in the input, as "file:line:column: error: what", or with a member's path instead of line and column."""


def fail(place, what):
    text = f"{place}: error: {what}"
    raise InputError("".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text))


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        fail(path, f"cannot be read: {error.strerror}")
    if len(data) > MOST_BYTES:
        fail(path, f"expected at most {MOST_BYTES} bytes")
    return data


def read_text(path):
    data = read_bytes(path)
    try:
        return data.decode("utf-8"), hashlib.sha256(data).hexdigest()
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        fail(f"{path}:{line}:{column}", "not UTF-8")


def unique(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} occurs twice in an object")
    return found


def refuse(word):
    raise ValueError(f"{word} is not a JSON number")


def parse(text, path, what, line=None):
    """Parses a whole file, or one line of it."""
    place = path if line is None else f"{path}:{line}"
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        fail(f"{path}:{line or error.lineno}:{error.colno}", f"{what} must be JSON: {error.msg}")
    except RecursionError:
        fail(place, "nested too deeply")
    except ValueError as error:
        fail(place, str(error))


# ---- shapes ---------------------------------------------------------------------------------------------------------

MOST = 2 ** 63
WORDS = {str: "a text", int: "a whole number from 0 to 2^63", float: "a number", bool: "true or false", dict: "an object",
         list: "a list"}


class Optional:
    """A member that may be missing or null."""
    def __init__(self, shape):
        self.shape = shape


def is_a(value, kind):
    if kind is int:
        return type(value) is int and 0 <= value < MOST
    if kind is float:
        return type(value) in (int, float) and abs(value) < 1e300
    return type(value) is kind


def check(value, shape, place, path=""):
    """Returns whether the value has the members that a shape names, each with its type. Ignores other members."""
    kind = shape if isinstance(shape, type) else type(shape)
    if not is_a(value, kind):
        shown = json.dumps(value)
        fail(f"{place}: {path or 'the whole'}", f"expected {WORDS[kind]}, found {shown if len(shown) < 60 else shown[:57] + '...'}")
    if isinstance(shape, list):
        for i, item in enumerate(value):
            check(item, shape[0], place, f"{path}[{i}]")
    elif isinstance(shape, dict):
        for name, of in shape.items():
            member = f"{path}.{name}" if path else name
            if not isinstance(of, Optional):
                if name not in value:
                    fail(f"{place}: {path or 'the whole'}", f"it has no '{name}'")
                check(value[name], of, place, member)
            elif value.get(name) is not None:
                check(value[name], of.shape, place, member)


# ---- manifests ------------------------------------------------------------------------------------------------------

SOURCE = {"file": str, "bytes": int, "xxh3_128": str}
COST = {"bytes_read": Optional(str), "bytes_written": Optional(str), "elements": Optional(str)}
MANIFEST = {
    "bundle": str, "generator": str, "layout_version": int, "targets": [str], "min_driver": int, "config": SOURCE,
    "external_files": Optional([SOURCE]),
    "families": [{"name": str, "summary": Optional(str), "cost": Optional(COST)}],
    "variants": [{
        "id": str, "key": str, "family": str, "params": dict, "entry": str, "module": Optional(str),
        "args": [{"name": str, "direction": str}],
        "launch": {"block": [int], "max_shared_bytes": int, "static_shared_bytes": int},
        "cost": Optional(COST),
        "images": [{"target": str, "format": Optional(str), "min_driver": int, "bytes": int, "xxh3_128": str,
                    "stored_bytes": Optional(int)}],
    }],
}
TARGET = re.compile(r"sm_(\d{2,3})([af]?)\Z")


def read_manifest(path):
    text, digest = read_text(path)
    manifest = parse(text, path, "a manifest")
    if not isinstance(manifest, dict) or not {"bundle", "layout_version", "variants"} <= manifest.keys():
        fail(f"{path}:1:1", "expected a manifest, NAME.json, which `kiln generate` writes next to NAME.c")
    check(manifest, MANIFEST, path)
    seen = set()
    for i, variant in enumerate(manifest["variants"]):
        if variant["id"] in seen:
            fail(f"{path}: variants[{i}].id", f"'{variant['id']}' occurs twice")
        seen.add(variant["id"])
        if len(variant["launch"]["block"]) != 3:
            fail(f"{path}: variants[{i}].launch.block", "expected three numbers")
        for k, image in enumerate(variant["images"]):
            if not TARGET.match(image["target"]):
                fail(f"{path}: variants[{i}].images[{k}].target", f"expected a target such as sm_90, found '{image['target']}'")
    return manifest, digest


# ---- verifications --------------------------------------------------------------------------------------------------

RESULTS = ("ok", "executed, not compared", "skipped", "WRONG")
VERIFICATION = {
    "bundle": str, "device": str, "sm": int, "emulated": bool, "seed": Optional(int), "checks": Optional(str),
    "variants": [{"id": str, "result": str, "cases": Optional(int), "elements": Optional(int),
                  "worst_error_over_bound": Optional(float), "sizes": Optional(int), "ranges": Optional(dict), "limits": Optional(dict),
                  "excluded_pairs": Optional(int), "excluded": Optional(str), "detail": Optional(str)}],
    "targets_not_run": Optional([str]),
}


def read_verification(path, manifest):
    """Reads what `kiln-verify --json` writes."""
    text, digest = read_text(path)
    found = parse(text, path, "a verification")
    if not isinstance(found, dict) or "variants" not in found or "device" not in found:
        fail(f"{path}:1:1", "expected the output of `kiln-verify --json FILE`")
    check(found, VERIFICATION, path)
    if found["bundle"] != manifest["bundle"]:
        fail(f"{path}: bundle", f"it verifies '{found['bundle']}', but the manifest is for '{manifest['bundle']}'")
    known, seen = {v["id"] for v in manifest["variants"]}, set()
    for i, row in enumerate(found["variants"]):
        place = f"{path}: variants[{i}]"
        if row["id"] not in known:
            fail(place, f"the manifest has no variant '{row['id']}': it verifies another build of the bundle")
        if row["id"] in seen:
            fail(place, f"'{row['id']}' occurs twice")
        if row["result"] not in RESULTS:
            fail(place, f"expected one of {', '.join(RESULTS)} as the result; found '{row['result']}'")
        for name, edges in (row.get("ranges") or {}).items():
            if not isinstance(edges, list) or [type(edge) for edge in edges] != [int, int] or edges[0] > edges[1]:
                fail(f"{place}.ranges.{name}", f"expected the smallest and the largest value, found {json.dumps(edges)[:60]}")
        seen.add(row["id"])
    return found, digest


# ---- counts, registers and times -------------------------------------------------------------------------------------------

ACCESS = {"distinct_sectors": int}
LAUNCH = {"kernel": str, "grid": [int], "result": int, "warp_instructions": int,
          "tensor": {"multiply_adds": int, "shapes": [{"name": str, "multiply_adds": int}]},
          "shared": {kind: {"wavefronts": int} for kind in ("read", "write", "atomic")},
          "allocations": [{kind: ACCESS for kind in ("read", "write", "atomic")}]}
PROFILE = {"variant": str, "registers": dict, "report": dict}
KERNEL = re.compile(r'"kernel":\s*"([^"\\]*)"')
WORK = re.compile(r'"warp_instructions":\s*(\d+)')


def read_lines(path, digest):
    """Yields numbered lines one by one, since long runs have 100,000, and hashes them."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                digest.update(line)
                yield number, line.decode("utf-8")
    except OSError as error:
        fail(path, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"{path}:{number}:{error.start + 1}", "not UTF-8")


def read_counts(path, manifest, counts, registers):
    """Adds to counts each variant's launch with the most instructions, from lines that the emulated driver writes to
    KILN_EMU_REPORT or that `kiln-profile --json` prints; and the registers in the latter."""
    entries, digest, found_any = {v["entry"]: v["id"] for v in manifest["variants"]}, hashlib.sha256(), False
    for number, line in read_lines(path, digest):
        kernel, work = KERNEL.search(line), WORK.search(line)
        is_profile = '"report"' in line
        before = counts.get(entries.get(kernel[1])) if kernel else None
        is_less = before and work and int(work[1]) <= before["warp_instructions"] and not is_profile
        found_any = found_any or bool(is_less)
        if not line.strip() or is_less:
            continue
        found, place = parse(line, path, "a line of counts", number), f"{path}:{number}"
        if is_profile:
            check(found, PROFILE, place)
        launch = found["report"] if is_profile else found
        if not isinstance(launch, dict) or "kernel" not in launch:
            fail(f"{place}:1", "expected counts of a launch, from KILN_EMU_REPORT or kiln-profile --json")
        check(launch, {"kernel": str}, place)
        variant = entries.get(launch["kernel"])
        if variant is None or "warp_instructions" not in launch:  # another program's kernel, or a launch that failed
            continue
        check(launch, LAUNCH, place)
        found_any = True
        if is_profile and "target" in found["registers"]:
            check(found["registers"], {"target": str, "count": int}, place, "registers")
            registers[variant, found["registers"]["target"]] = found["registers"]["count"]
        if launch["warp_instructions"] > counts.get(variant, {"warp_instructions": -1})["warp_instructions"]:
            counts[variant] = launch
    if not found_any:
        fail(f"{path}:1:1", f"it has no launch of a kernel of '{manifest['bundle']}'")
    return digest.hexdigest()


def read_table(path, manifest, column, pattern):
    """Reads a number by variant and target from the first three columns of lines with tabs."""
    text, digest = read_text(path)
    heading, *lines = text.splitlines() or [""]
    if heading.split("\t")[:3] != ["variant", "target", column]:
        fail(f"{path}:1:1", f"expected the columns variant, target and {column}, separated by tabs")
    known, found = {v["id"] for v in manifest["variants"]}, {}
    targets = {*manifest["targets"], *(i["target"] for v in manifest["variants"] for i in v["images"])}
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) < 3 or not re.fullmatch(pattern, cells[2]) or not TARGET.match(cells[1]):
            fail(f"{path}:{number}:1", f"expected a variant, a target and a number of {column}, found '{line[:80]}'")
        if cells[0] not in known:
            fail(f"{path}:{number}:1", f"the manifest has no variant '{cells[0]}': the file belongs to another build of the bundle")
        if cells[1] not in targets:
            fail(f"{path}:{number}:1", f"the manifest has no image for {cells[1]}: the file belongs to another build of the bundle")
        if (cells[0], cells[1]) in found:
            fail(f"{path}:{number}:1", f"'{cells[0]}' for {cells[1]} occurs twice")
        found[cells[0], cells[1]] = float(cells[2])
    if not found:
        fail(f"{path}:1:1", f"it has no variant of '{manifest['bundle']}'")
    return found, digest


def read_resources(path, manifest):
    """Reads registers, as `tests/generated/ptxas.py rebase` writes them."""
    found, digest = read_table(path, manifest, "registers", r"\d{1,3}")
    return {key: int(value) for key, value in found.items()}, digest


def read_times(path, manifest):
    """Reads milliseconds of ptxas, as `kiln generate --times --quiet` writes them."""
    return read_table(path, manifest, "milliseconds", r"\d{1,9}(\.\d{1,9})?")


# ---- the output -----------------------------------------------------------------------------------------------------

def is_kept(path, form):
    """Returns whether another program wrote the file. The form is how this program's files begin, and a text within their
    first 4096 bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        front = file.read(4096).decode("utf-8", "replace")
    return front != "" and not (front.startswith(form[0]) and form[1] in front)


def write_whole(path, text):
    """Writes all or nothing: a temporary file that then replaces the file. A terminal or a pipe is written directly."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        return
    with tempfile.TemporaryDirectory(prefix=os.path.basename(path) + ".", dir=os.path.dirname(path)) as folder:
        part = os.path.join(folder, "part")
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(part, path)
