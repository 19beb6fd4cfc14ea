"""kiln-report: a bundle as one page of HTML that needs nothing else, from its manifest and what other tools found out about it."""
import argparse
import os
import sys

import devices
import figures
import inputs
import page
import program

EPILOG = """\
Exit status: 0; 1 a wrong input; 2 usage; 3 the page cannot be written. The same input gives the
same bytes. The page is written whole or not at all."""


def device_of(text):
    found = devices.find_device(text)
    if isinstance(found, list):
        raise argparse.ArgumentTypeError(f"expected a device, found '{text}'; there are {', '.join(found)}")
    return found


def options_of(arguments):
    parser = program.Parser("kiln-report", description="Shows a bundle as one page of HTML: its bytes, variants and occupancy, "
                    "the sizes for which it was verified, what changed.", epilog=EPILOG,
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("manifest", metavar="MANIFEST", help="NAME.json, which kiln generate writes")
    program.add_output(parser, "the page")
    parser.add_argument("--verify", metavar="FILE", action="append", default=[],
                        help="what kiln-verify --json FILE wrote; once for each device")
    parser.add_argument("--against", metavar="MANIFEST", help="an older manifest: what changed since")
    parser.add_argument("--counts", metavar="FILE", action="append", default=[],
                        help="what kernels execute: lines that the emulated driver wrote to KILN_EMU_REPORT, or of kiln-profile --json, "
                        "which has registers too where there is a ptxas")
    parser.add_argument("--resources", metavar="FILE", help="registers: lines of variant, target, registers, with tabs between")
    parser.add_argument("--times", metavar="FILE", help="what ptxas takes: lines of variant, target, milliseconds, with tabs between, "
                        "as kiln generate --times --quiet prints them")
    parser.add_argument("--device", metavar="D", type=device_of, action="append",
                        help="for occupancy, times and roofline: words of its name, or a target; once for each (default: those of "
                        "the bundle's targets)")
    return parser.parse_args(arguments)


def report_of(o):
    """The page's text."""
    manifest, digest = inputs.read_manifest(o.manifest)
    read = [(o.manifest, digest)]
    registers, counts, times, verifications, changes = {}, {}, {}, [], None
    if o.resources:
        registers, digest = inputs.read_resources(o.resources, manifest)
        read.append((o.resources, digest))
    if o.times:
        times, digest = inputs.read_times(o.times, manifest)
        read.append((o.times, digest))
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
    report = figures.Report(manifest, registers, counts, times, verifications, shown)
    return page.page(report, [(os.path.basename(path), os.path.getsize(path), digest) for path, digest in read], changes)


def main():
    o = options_of(sys.argv[1:])
    return program.run("kiln-report", o, page.FORM, [o.manifest, o.against, o.resources, o.times, *o.counts, *o.verify], lambda: report_of(o))


sys.exit(main())
