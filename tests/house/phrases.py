#!/usr/bin/env python3
"""Finds English that reads as if translated: phrases that no file may contain, with what to write instead.

usage: phrases.py ROOT | phrases.py --self-test
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/cmake"))
from packages import source_files  # noqa: E402

# phrase: what to write
PHRASES = {
    "is said": "unless noted; or name who says it", "are said": "unless noted; or name who says it",
    "is told": "is reported, is printed", "are told": "are reported, are printed",
    "as ever": "as usual, normally",
    "as it is": "unchanged, directly", "as they are": "unchanged, directly",
    "that of which": "the noun",
    "so many": "the number, or its name",
    "in front of": "before, preceding", "the launch in front": "the preceding launch",
    "behind it": "after it", "behind them": "after them", "behind that": "after that", "behind those": "after those",
    "one behind the other": "concatenated, one after the other",
    "on its way": "in flight", "on their way": "in flight", "on the way": "in flight",
    "nobody": "no thread, no program",
    "for ever": "always, never, without end",
    "but for": "except",
    "none has": "no NOUN has",
    "without a word": "silently",
    "goes without saying": "leave it out",
    "whoever": "anyone who; or name who",
    "anyhow": "anyway",
    "the other way round": "the reverse",
}
OF = re.compile(r"(?:/\*|//|#|\"\"\") ?Of (?!course)")  # a comment that begins with "Of"
SUFFIXES = {".c", ".h", ".hpp", ".cpp", ".cu", ".def", ".inc", ".py", ".sh", ".cmake", ".md", ".txt", ".yaml", ".yml"}
# Generated files, and texts that affect results.
NOT_OURS = re.compile(r"generated/|tests/data/|tests/lm/models_make\.py$|tests/house/phrases\.py$")

PATTERN = re.compile(r"\b(?:" + "|".join(phrase.replace(" ", r"\s+") for phrase in PHRASES) + r")\b", re.I)
PREFIX = re.compile(r"(?<=\n)[ \t]*(?:\*(?!/)|//|#)", re.M)  # blank out the start of a comment's next line, so that offsets stay


def errors_in(name, text):
    prose = PREFIX.sub(lambda m: " " * len(m[0]), text)
    found = [(m.start(), " ".join(m[0].lower().split())) for m in PATTERN.finditer(prose)]
    found += [(m.start(), m[0]) for m in OF.finditer(text)]
    for at, phrase in sorted(found):
        line = text.count("\n", 0, at) + 1
        yield f"{name}:{line}: '{phrase}': {PHRASES.get(phrase, 'begin with the subject')}"


def errors(root):
    for name in source_files(root):
        file = root / name
        if (file.suffix in SUFFIXES or file.name == "CMakeLists.txt") and not NOT_OURS.match(name) and file.is_file():
            yield from errors_in(name, file.read_text(encoding="utf-8", errors="replace"))


def self_test():
    """Finds each broken text below, and none of the good ones."""
    cases = [
        ("/* Of a row, its first. */", True), ("/* Often. */", False), ("# what is\n# said of it", True),
        (" * the data as it\n * is, packed", True), ("ran in front of it", True), ("all But for the last", True),
        ("butter for bread", False), ("as it isolates", False), ("ptx_val behind = it;", False), ("", False),
    ]
    wrong = [text for text, broken in cases if bool(list(errors_in("a.c", text))) != broken]
    for text in wrong:
        print(f"not judged as it should be: {text!r}")
    return len(wrong)


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    found = list(errors(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "no file has a phrase that the table bans")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
