"""Tests kiln-sbom: compares its documents with facts computed here from the bundle, and checks its errors.

usage: check.py PROGRAM KILN ROOT contents|same_bytes|mistakes|spdx
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

PROGRAM, KILN, ROOT, VERB = sys.argv[1:]
CONFIG = """bundle: both
license: MIT OR Apache-2.0
targets: [sm_80, sm_90]
kernels:
  - {family: nf4_unpack, type: [f16, f32]}
  - {ptx: transpose.ptx, license: LicenseRef-mine}
  - {ptx: transpose.ptx, license: LicenseRef-mine, entries: {transpose: {name: again}}}
"""
failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(what)
        print(f"FAILED: {what}: got {str(got)[:400]!r}, expected {str(wanted)[:400]!r}")


def sbom(manifest, output="-", **environment):
    return subprocess.run([sys.executable, "-B", PROGRAM, manifest, "-o", output], capture_output=True, text=True, check=False,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "", **environment})


def generate(folder, config=CONFIG, *options):
    shutil.copy(pathlib.Path(ROOT, "tests/consumer/external_ptx/ptx/clang_sm80.ptx"), folder / "transpose.ptx")
    (folder / "kernels.yaml").write_text(config)
    done = subprocess.run([KILN, "generate", folder / "kernels.yaml", "--quiet", *options], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"kiln generate: {done.stderr}")


def relations(document):
    return {tuple(row[key].removeprefix("SPDXRef-") for key in ("spdxElementId", "relationshipType", "relatedSpdxElement"))
            for row in document["relationships"]}


def contents(folder):
    generate(folder, CONFIG, "--shards", "2")
    manifest = json.loads((folder / "both.json").read_text())
    document = json.loads(sbom(folder / "both.json").stdout)
    expect("the document", [document[key] for key in ("spdxVersion", "dataLicense", "SPDXID", "name")],
           ["SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT", "both"])
    expect("its time", document["creationInfo"]["created"], "1970-01-01T00:00:00Z")
    version = manifest["generator"].removeprefix("kiln ")
    expect("its maker", document["creationInfo"]["creators"], [f"Tool: kiln-sbom-{version}"])

    names = ["both.c", "both_1.c", "both_2.c", "both.h", "both.json"]
    expect("the files", [file["fileName"] for file in document["files"]], [f"./{name}" for name in names])
    for name, file in zip(names, document["files"]):
        data = (folder / name).read_bytes()
        expect(f"the sums of {name}", {sum["algorithm"]: sum["checksumValue"] for sum in file["checksums"]},
               {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()})
        expect(f"the licences in {name}", file["licenseInfoInFiles"], ["LicenseRef-mine", "MIT OR Apache-2.0"])

    packages = {package["SPDXID"].removeprefix("SPDXRef-"): package for package in document["packages"]}
    expect("the packages", {name: (package["name"], package.get("versionInfo"), package["licenseDeclared"])
                            for name, package in packages.items()},
           {"Bundle": ("both", None, "MIT OR Apache-2.0"), "kiln": ("kiln", version, "MIT"),
            "kiln-runtime": ("libkiln_runtime", None, "MIT"), "xxHash": ("xxHash", None, "BSD-2-Clause"),
            "External-1": ("transpose.ptx", None, "LicenseRef-mine")})
    expect("the whole's licence", packages["Bundle"]["licenseConcluded"], "(MIT OR Apache-2.0) AND LicenseRef-mine")
    expect("a licence of one's own", [row["licenseId"] for row in document["hasExtractedLicensingInfos"]], ["LicenseRef-mine"])
    sums = "".join(sorted(hashlib.sha1((folder / name).read_bytes()).hexdigest() for name in names))
    expect("the verification code", packages["Bundle"]["packageVerificationCode"]["packageVerificationCodeValue"],
           hashlib.sha1(sums.encode()).hexdigest())
    config = manifest["config"]
    expect("what it was made from", packages["Bundle"]["sourceInfo"],
           f"kernels.yaml: {len(CONFIG)} bytes, XXH3-128 {config['xxh3_128']}")
    expect("the PTX", packages["External-1"]["sourceInfo"],
           f"transpose.ptx: {(folder / 'transpose.ptx').stat().st_size} bytes, XXH3-128 {manifest['external_files'][0]['xxh3_128']}")
    images = [f"image of {variant['id']} for {image['target']}: ptx, {image['bytes']} bytes, XXH3-128 {image['xxh3_128']}"
              for variant in manifest["variants"] for image in variant["images"]]
    expect("the images", [note["comment"] for note in packages["Bundle"]["annotations"]], images)
    expect("enough images", len(images) >= 4, True)
    expect("the relations", relations(document), {
        ("DOCUMENT", "DESCRIBES", "Bundle"), ("kiln", "BUILD_TOOL_OF", "Bundle"), ("Bundle", "STATIC_LINK", "kiln-runtime"),
        ("kiln-runtime", "CONTAINS", "xxHash"), ("Bundle", "CONTAINS", "External-1"),
        *(("Bundle", "CONTAINS", f"File-{i + 1}") for i in range(5))})

    # A manifest that names compressed images and a ptxas, in a bundle with an adjusted CRC.
    manifest["ptxas"] = "ptxas 12.9"
    manifest["variants"][0]["images"][0]["stored_bytes"] = 17
    rewrite(folder, manifest)
    document = json.loads(sbom(folder / "both.json").stdout)
    expect("zstd and ptxas", {("Bundle", "STATIC_LINK", "zstd"), ("ptxas", "BUILD_TOOL_OF", "Bundle")} <= relations(document), True)

    generate(folder, CONFIG.replace("license: MIT OR Apache-2.0\n", ""), "--force")
    bundle = json.loads(sbom(folder / "both.json").stdout)["packages"][0]
    expect("no licence", (bundle["licenseDeclared"], bundle["licenseConcluded"]), ("NOASSERTION", "NOASSERTION"))


def rewrite(folder, manifest):
    """Writes another manifest, and a matching NAME.c."""
    text = json.dumps(manifest).encode()
    (folder / "both.json").write_bytes(text)
    code = (folder / "both.c").read_text()
    (folder / "both.c").write_text(re.sub(r"(both_manifest_crc = )0x\w+", rf"\g<1>0x{zlib.crc32(text):08x}", code))


def same_bytes(folder):
    generate(folder)
    first = sbom(folder / "both.json").stdout
    (folder / "elsewhere").mkdir()
    for name in ("both.c", "both.h", "both.json"):
        shutil.copy(folder / name, folder / "elsewhere")
    expect("in another folder", sbom(folder / "elsewhere/both.json", TZ="Pacific/Kiritimati", LC_ALL="C").stdout, first)
    done = sbom(folder / "both.json", folder / "both.spdx.json")
    expect("to a file", (done.returncode, done.stdout, (folder / "both.spdx.json").read_text()), (0, "", first))
    (folder / "main.c").write_text("int main(void) {}")
    done = sbom(folder / "both.json", folder / "main.c")
    expect("another program's file", (done.returncode, "kiln-sbom did not write this file, so it stays" in done.stderr), (3, True))
    expect("which stays", (folder / "main.c").read_text(), "int main(void) {}")
    expect("to the same file", sbom(folder / "both.json", folder / "both.spdx.json").returncode, 0)
    dated = json.loads(sbom(folder / "both.json", SOURCE_DATE_EPOCH="1700000000").stdout)
    expect("SOURCE_DATE_EPOCH", dated["creationInfo"]["created"], "2023-11-14T22:13:20Z")
    spaces = {json.loads(first)["documentNamespace"], dated["documentNamespace"]}
    (folder / "both.h").write_text("/* changed */\n")
    spaces.add(json.loads(sbom(folder / "both.json").stdout)["documentNamespace"])
    expect("a namespace for each document", len(spaces), 3)
    expect("namespaces", [space for space in spaces if not re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", space)], [])


def mistakes(folder):
    generate(folder)
    good, code = (folder / "both.json").read_text(), (folder / "both.c").read_text()

    def refused(what, status, message, **environment):
        done = sbom(folder / "both.json", folder / "out", **environment)
        expect(what, (done.returncode, message in done.stderr, (folder / "out").exists()), (status, True, False))
        if message not in done.stderr:
            print(done.stderr)
    (folder / "both.json").write_text(good + "\n")
    refused("another manifest", 1, "both.c: error: expected both_manifest_crc = 0x")
    (folder / "both.json").write_text("{}")
    refused("no manifest", 1, "both.json:1:1: error: expected a manifest, NAME.json")
    (folder / "both.json").write_text(good)
    (folder / "both.h").unlink()
    refused("no header", 1, "both.h: error: cannot be read: No such file or directory")
    (folder / "both.c").unlink()
    refused("no source", 1, "both.c: error: cannot be read: No such file or directory")
    for name, value, message in (("license", "MIT\nX", 'license: error: expected an SPDX expression, found "MIT\\nX"'),
                                 ("license", 5, "license: error: expected a text, found 5"),
                                 ("bundle", "../a", 'bundle: error: expected a C identifier, found "../a"'),
                                 ("lock", {"file": "x"}, "lock: error: it has no 'bytes'"),
                                 ("ptxas", [], "ptxas: error: expected a text, found []")):
        (folder / "both.json").write_text(json.dumps({**json.loads(good), name: value}))
        refused(f"{name} {value}", 1, message)
    (folder / "both.json").write_text(good)
    (folder / "both.c").write_text(code)
    refused("a wrong time", 2, "kiln-sbom: SOURCE_DATE_EPOCH: expected seconds since 1970, found 'now'", SOURCE_DATE_EPOCH="now")
    done = sbom(folder / "both.json", folder / "both.c")
    expect("an input as output", (done.returncode, "both.c: error: is an input too" in done.stderr), (1, True))
    expect("which is as it was", (folder / "both.c").read_text(), code)
    done = subprocess.run([sys.executable, "-B", PROGRAM], capture_output=True, text=True)
    expect("no arguments", (done.returncode, "usage: kiln-sbom" in done.stderr), (2, True))


def spdx(folder):
    try:
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    except ImportError as error:
        print(f"SKIPPED: PyPI's spdx-tools, which validates documents, is not installed: {error}")
        sys.exit(77)
    generate(folder)
    for manifest in (folder / "both.json", pathlib.Path(ROOT, "generated/kiln_default.json")):
        output = folder / f"{manifest.stem}.spdx.json"
        expect(f"kiln-sbom {manifest.name}", sbom(manifest, output).returncode, 0)
        document = parse_file(str(output))
        expect(f"what is wrong with {output.name}", [m.validation_message for m in validate_full_spdx_document(document)], [])
        document.packages[0].license_declared = None
        document.files[0].spdx_id = "SPDXRef-_"
        expect("a mistake is found", len(validate_full_spdx_document(document)) > 0, True)


with tempfile.TemporaryDirectory() as scratch:
    {f.__name__: f for f in (contents, same_bytes, mistakes, spdx)}[VERB](pathlib.Path(scratch).resolve())
sys.exit(1 if failures else 0)
