"""Shared by kiln-report and kiln-sbom: usage, exit statuses, and output that is written whole or not at all."""
import argparse
import os
import sys

import inputs


class UsageError(Exception):
    """A mistake in the command line that only the inputs reveal."""


class Parser(argparse.ArgumentParser):
    """An argument parser that refuses empty values, and reports when its help cannot be written."""

    def parse_args(self, *args, **options):
        o = super().parse_args(*args, **options)
        if any("" in (value if isinstance(value, list) else [value]) for value in vars(o).values()):
            self.error("an argument is empty")
        return o

    def print_help(self, file=None):
        write_out(self.prog, self.format_help())


def write_out(program, text):
    """Writes to standard output; exits with status 3 if that fails."""
    try:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        print(f"{program}: cannot write -: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python would report the error again at exit
        sys.exit(3)


def add_output(parser, what):
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help=f"{what}; - for standard output")
    parser.add_argument("--force", action="store_true", help="replace FILE even if another program wrote it")


def run(program, o, form, read, make):
    """Writes make()'s text to the output. The output must not be one of the inputs, nor, without --force, a file of another
    form (see inputs.is_kept). Returns the exit status."""
    output = o.output
    try:
        for path in filter(None, read):
            if os.path.exists(output) and os.path.exists(path) and os.path.samefile(path, output):
                inputs.fail(output, "is an input too")
        text = make()
    except inputs.InputError as error:
        print(error, file=sys.stderr)
        return 1
    except UsageError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    if output == "-":
        write_out(program, text)
        return 0
    try:
        if not o.force and inputs.is_kept(output, form):
            print(f"{program}: cannot write {output}: {program} did not write this file, so it stays: write elsewhere, or replace it "
                  "with --force", file=sys.stderr)
            return 3
        inputs.write_whole(output, text)
    except OSError as error:
        print(f"{program}: cannot write {output}: {error.strerror}", file=sys.stderr)
        return 3
    return 0
