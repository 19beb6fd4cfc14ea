"""Edits of the PTX that kiln embeds, and programs run with the edited text in its place (faulty_cuda.c)."""
import functools
import os
import pathlib
import re
import subprocess
import tempfile

TARGET = "sm_75"


def pattern_of(ptx):
    """A regular expression for PTX with $operands; blanks and line ends are alike."""
    seen, out = set(), []
    for piece in re.split(r"(\$[a-z]|\s+)", ptx):
        name = piece[1:]
        if piece.startswith("$"):
            out.append(f"(?P={name})" if name in seen else rf"(?P<{name}>\{{[^}}]*\}}|%\w+)")
            seen.add(name)
        else:
            out.append(r"\s+" if piece.isspace() else re.escape(piece))
    return re.compile("".join(out))


def plant(text, ptx, instead, times):
    """The text with the edit, which has to apply as often as was said."""
    faulty, found = pattern_of(ptx).subn(re.sub(r"\$([a-z])", r"\\g<\1>", instead), text)
    if found != times:
        raise ValueError(f"the PTX occurs {found} times, not {times}")
    return faulty


class Planter:
    """The kernels of one configuration."""

    def __init__(self, kiln, config):
        self.show = [kiln, "show", config]

    def target(self, _kernel):
        return TARGET

    @functools.cache
    def image(self, kernel):
        command = [*self.show, kernel, "--target", self.target(kernel)]
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout

    def entry(self, kernel):
        return re.search(r"\.entry (\w+)", self.image(kernel))[1]

    def run(self, command, texts, **variables):
        """The finished program, that loaded these texts, by kernel, for the images; all of them, or it is an error."""
        with tempfile.TemporaryDirectory() as folder:
            for i, (kernel, text) in enumerate(texts.items()):
                pathlib.Path(folder, f"{i}.from").write_text(self.image(kernel), encoding="utf-8")
                pathlib.Path(folder, f"{i}.to").write_text(text, encoding="utf-8")
            environment = dict(os.environ, KILN_FAULTS=folder, KILN_EMU_THREADS="1", **variables)
            done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
        for i, kernel in enumerate(texts):
            if f"planted {i}\n" not in done.stderr:
                raise ValueError(f"{kernel} was not loaded: {done.stderr}{done.stdout}")
        return done
