"""kiln-report: a bundle as one page of HTML that needs nothing else, from its manifest and what was found out about it."""
import argparse
import os
import re
import sys

import devices
import figures
import inputs
import page
import program

EPILOG = """\
Exit status: 0; 1 what was read is not what it should be; 2 usage; 3 the page cannot be written. The same input gives the
same bytes. The page is written whole or not at all."""


def size_of(text):
    found = re.fullmatch(r"((?:\w+\.)?[A-Za-z_]\w*)=(\d{1,18})", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER or FAMILY.NAME=NUMBER, found '{text}'")
    return found[1], int(found[2])


def device_of(text):
    found = devices.find_device(text)
    if isinstance(found, list):
        raise argparse.ArgumentTypeError(f"expected a device, found '{text}'; there are {', '.join(found)}")
    return found


def options_of(arguments):
    parser = program.Parser("kiln-report", description="Shows a bundle as one page of HTML: its bytes, variants, occupancy and "
                    "least times per GPU, how it was verified, what changed.", epilog=EPILOG,
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("manifest", metavar="MANIFEST", help="NAME.json, which kiln generate writes")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the page; - for standard output")
    parser.add_argument("--verify", metavar="FILE", action="append", default=[],
                        help="what kiln-verify --json FILE wrote; once for each device")
    parser.add_argument("--against", metavar="MANIFEST", help="an older manifest: what changed since")
    parser.add_argument("--counts", metavar="FILE", action="append", default=[],
                        help="what kernels execute: lines that the emulated driver wrote to KILN_EMU_REPORT, or of kiln-profile --json, "
                        "which has registers too where there is a ptxas")
    parser.add_argument("--resources", metavar="FILE", help="registers: lines of variant, target, registers, with tabs between")
    parser.add_argument("--device", metavar="D", type=device_of, action="append",
                        help="for occupancy and roofline: words of its name, or a target; once for each (default: those of the "
                        "bundle's targets)")
    parser.add_argument("--size", metavar="NAME=N", type=size_of, action="append", default=[],
                        help="of costs and shared memory; FAMILY.NAME=N for one family alone")
    return parser.parse_args(arguments)


def report_of(o):
    """The page's text."""
    manifest, digest = inputs.read_manifest(o.manifest)
    read = [(o.manifest, digest)]
    registers, counts, verifications, changes = {}, {}, [], None
    if o.resources:
        registers, digest = inputs.read_resources(o.resources, manifest)
        read.append((o.resources, digest))
    for path in o.counts:
        read.append((path, inputs.read_counts(path, manifest, counts, registers)))
    for path in o.verify:
        found, digest = inputs.read_verification(path, manifest)
        verifications.append(found)
        read.append((path, digest))
    if o.against:
        old, digest = inputs.read_manifest(o.against)
        changes = os.path.basename(o.against), figures.changes(old, manifest)
        read.append((o.against, digest))
    shown = list(dict.fromkeys(o.device)) if o.device else devices.standing_for(manifest["targets"])
    report = figures.Report(manifest, o.manifest, dict(o.size), registers, counts or None, verifications, shown)
    for name in sorted(dict(o.size).keys() - report.names):
        raise program.UsageError(f"--size: no cost has a size '{name}'; there are {', '.join(sorted(n for n in report.names if '.' not in n))}")
    return page.page(report, [(os.path.basename(path), os.path.getsize(path), digest) for path, digest in read], changes)


def main():
    o = options_of(sys.argv[1:])
    return program.run("kiln-report", o.output, [o.manifest, o.against, o.resources, *o.counts, *o.verify], lambda: report_of(o))


sys.exit(main())
