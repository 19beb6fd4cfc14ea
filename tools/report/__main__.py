"""kiln-report: shows a bundle as one self-contained page of HTML, from its manifest and the results of other tools."""
import argparse
import os
import sys

import devices
import figures
import inputs
import page
import program

EPILOG = """\
Exit status: 0 done; 1 an input has a mistake; 2 bad usage; 3 the page cannot be written. The same input gives the
same bytes. The page is written completely or not at all."""


def device_of(text):
    found = devices.find_device(text)
    if isinstance(found, list):
        raise argparse.ArgumentTypeError(f"expected a device, found '{text}'; there are {', '.join(found)}")
    return found


class Once(argparse.Action):
    """An option that may be given once."""
    def __call__(self, parser, namespace, values, option_string=None):
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument {option_string}: expected one file, found '{getattr(namespace, self.dest)}' and '{values}'")
        setattr(namespace, self.dest, values)


def options_of(arguments):
    parser = program.Parser("kiln-report", description="Shows a bundle as one page of HTML: its bytes, variants and occupancy, "
                    "the sizes for which it was verified, what changed.", epilog=EPILOG,
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("manifest", metavar="MANIFEST", help="NAME.json, which kiln generate writes")
    program.add_output(parser, "the page")
    parser.add_argument("--verify", metavar="FILE", action="append", default=[],
                        help="results of kiln-verify --json FILE; may be repeated, for several devices")
    parser.add_argument("--against", metavar="MANIFEST", action=Once, help="an older manifest: show what changed since")
    parser.add_argument("--counts", metavar="FILE", action="append", default=[],
                        help="executed instructions: lines of KILN_EMU_REPORT, written by the emulated driver, or of kiln-profile --json, "
                        "which also has registers if there is a ptxas")
    parser.add_argument("--resources", metavar="FILE", action=Once, help="registers: lines of variant, target and registers, separated by tabs")
    parser.add_argument("--times", metavar="FILE", action=Once, help="ptxas's times: lines of variant, target and milliseconds, separated by tabs, "
                        "as kiln generate --times --quiet prints them")
    parser.add_argument("--device", metavar="D", type=device_of, action="append",
                        help="a device for occupancy, times and roofline: words of its name, or a target; may be repeated (default: those of "
                        "the bundle's targets)")
    return parser.parse_args(arguments)


def report_of(o):
    """Returns the page's text."""
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
        if digest in (before for _, before in read):
            inputs.fail(path, "the same verification is given twice")
        verifications.append(found)
        read.append((path, digest))
    if o.against:
        old, digest = inputs.read_manifest(o.against)
        if old["bundle"] != manifest["bundle"]:
            inputs.fail(f"{o.against}: bundle", f"it is for '{old['bundle']}', but the manifest is for '{manifest['bundle']}'")
        changes = os.path.basename(o.against), figures.changes(old, manifest)
        read.append((o.against, digest))
    shown = list(dict.fromkeys(o.device)) if o.device else devices.standing_for(manifest["targets"])
    report = figures.Report(manifest, registers, counts, times, verifications, shown)
    return page.page(report, [(os.path.basename(path), os.path.getsize(path), digest) for path, digest in read], changes)


def main():
    o = options_of(sys.argv[1:])
    return program.run("kiln-report", o, page.FORM, [o.manifest, o.against, o.resources, o.times, *o.counts, *o.verify], lambda: report_of(o))


sys.exit(main())
