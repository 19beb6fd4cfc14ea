"""kiln-sbom: writes a bundle's bill of materials, an SPDX 2.3 document in JSON, from its manifest and the files beside it."""
import argparse
import datetime
import hashlib
import json
import os
import re
import sys
import uuid
import zlib

import inputs
import program

EPILOG = """\
Exit status: 0 done; 1 an input has a mistake; 2 bad usage; 3 the document cannot be written. The same files give the
same bytes: the document's time is SOURCE_DATE_EPOCH, or 1970-01-01 if that is not set."""

NONE = "NOASSERTION"
FORM = ("{\n  \"spdxVersion\": ", "\"Tool: kiln-sbom")  # of a document, for inputs.is_kept
KILN_COPYRIGHT = "Copyright (c) 2026 the kiln authors"
SOURCES = {"lock": inputs.Optional(inputs.SOURCE), "tuned": inputs.Optional([inputs.SOURCE]), "ptxas": inputs.Optional(str),
           "license": inputs.Optional(str),
           "external_files": inputs.Optional([{**inputs.SOURCE, "license": inputs.Optional(str)}])}  # in addition to what kiln-report reads
LICENSE = re.compile(r"[A-Za-z0-9.+\-() ]+\Z")


def own_version():
    header = __loader__.get_data(os.path.join(os.path.dirname(__file__), "kiln.h")).decode()
    return ".".join(re.search(rf"^#define KILN_VERSION_{part} +(\d+)$", header, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def created():
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or "0"
    if not re.fullmatch(r"\d{1,11}", epoch):
        raise program.UsageError(f"SOURCE_DATE_EPOCH: expected seconds since 1970, found '{epoch}'")
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def license_of(value, place):
    """Checks the characters of an SPDX expression; kiln checks its grammar."""
    if value is None:
        return NONE
    if not LICENSE.match(value):
        inputs.fail(place, f"expected an SPDX expression, found {json.dumps(value)[:60]}")
    return value


def joined(licenses):
    """Joins licences with AND. If any is unknown, the result is NOASSERTION."""
    licenses = list(dict.fromkeys(licenses))
    if NONE in licenses or not licenses:
        return NONE
    return " AND ".join(f"({each})" if " " in each and len(licenses) > 1 else each for each in licenses)


# ---- files ----------------------------------------------------------------------------------------------------------

def generated_files(manifest, path):
    """Returns (name, bytes) of NAME.c, its shards, NAME.h and NAME.json; NAME.c must belong to this manifest."""
    folder, bundle = os.path.dirname(path), manifest["bundle"]
    if not re.fullmatch(r"[A-Za-z_]\w*", bundle, re.A):
        inputs.fail(f"{path}: bundle", f"expected a C identifier, found {json.dumps(bundle)[:60]}")
    source, text = os.path.join(folder, f"{bundle}.c"), inputs.read_bytes(path)
    code = inputs.read_bytes(source)
    crc = re.search(rb"^const uint32_t %s_manifest_crc = (0x[0-9a-f]{8});$" % bundle.encode(), code, re.M)
    expected = f"0x{zlib.crc32(text):08x}"
    if not crc or crc[1].decode() != expected:
        inputs.fail(source, f"expected {bundle}_manifest_crc = {expected}, of {path}; found "
                    f"{crc[1].decode() if crc else 'none'}: it belongs to another manifest")
    shards = re.search(rb"--shards[ =](\d{1,4})", code.partition(b"\n")[0])
    names = [f"{bundle}.c", *(f"{bundle}_{i + 1}.c" for i in range(int(shards[1]) if shards else 0)), f"{bundle}.h"]
    for name in names:
        yield name, code if name == f"{bundle}.c" else inputs.read_bytes(os.path.join(folder, name))
    yield f"{bundle}.json", text


def hashes(data):
    return [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, data).hexdigest()} for name in ("sha1", "sha256")]


# ---- the document ---------------------------------------------------------------------------------------------------

def told(source):
    return f"{source['file']}: {source['bytes']} bytes, XXH3-128 {source['xxh3_128']}"


def package(identifier, name, license, **more):
    return {"SPDXID": identifier, "name": name, "downloadLocation": NONE, "filesAnalyzed": False, "licenseConcluded": license,
            "licenseDeclared": license, "copyrightText": NONE, **more}


def document(path):
    manifest, digest = inputs.read_manifest(path)
    inputs.check(manifest, SOURCES, path)
    bundle, generator, time = manifest["bundle"], manifest["generator"].rpartition(" "), created()
    tool = f"Tool: kiln-sbom-{own_version()}"
    own = license_of(manifest.get("license"), f"{path}: license")
    external = [(source, license_of(source.get("license"), f"{path}: external_files[{i}].license"))
                for i, source in enumerate(manifest.get("external_files") or [])]
    external = [each for i, each in enumerate(external) if each not in external[:i]]  # each file once, although it is listed per item
    whole = joined([own, *(license for _, license in external)])

    files = list(generated_files(manifest, path))
    sums = sorted(hashlib.sha1(data).hexdigest() for _, data in files)
    found = sorted(dict.fromkeys([own, *(license for _, license in external)]))
    file_items = [{"SPDXID": f"SPDXRef-File-{i + 1}", "fileName": f"./{name}", "checksums": hashes(data),
                   "fileTypes": ["TEXT" if name.endswith(".json") else "SOURCE"], "licenseConcluded": whole,
                   "licenseInfoInFiles": found, "copyrightText": NONE} for i, (name, data) in enumerate(files)]

    images = [(variant, image) for variant in manifest["variants"] for image in variant["images"]]
    made_from = [manifest["config"], *filter(None, [manifest.get("lock")]), *(manifest.get("tuned") or [])]
    packages = [
        {**package("SPDXRef-Bundle", bundle, own), "filesAnalyzed": True, "licenseConcluded": whole, "licenseInfoFromFiles": found,
         "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()},
         "primaryPackagePurpose": "SOURCE", "sourceInfo": "\n".join(map(told, made_from)),
         "annotations": [{"annotationDate": time, "annotationType": "OTHER", "annotator": tool,
                          "comment": f"image of {variant['id']} for {image['target']}: {image.get('format') or 'ptx'}, "
                                     f"{image['bytes']} bytes, XXH3-128 {image['xxh3_128']}"} for variant, image in images]},
        package("SPDXRef-kiln", "kiln", "MIT", versionInfo=generator[2], copyrightText=KILN_COPYRIGHT,
                primaryPackagePurpose="APPLICATION", summary="the generator that made the bundle"),
        package("SPDXRef-kiln-runtime", "libkiln_runtime", "MIT", copyrightText=KILN_COPYRIGHT, primaryPackagePurpose="LIBRARY",
                summary="the runtime that the bundle is linked with"),
        package("SPDXRef-xxHash", "xxHash", "BSD-2-Clause", copyrightText="Copyright (c) 2012-2023 Yann Collet",
                primaryPackagePurpose="LIBRARY", summary="compiled into libkiln_runtime"),
    ]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Bundle"), ("SPDXRef-kiln", "BUILD_TOOL_OF", "SPDXRef-Bundle"),
                 ("SPDXRef-Bundle", "STATIC_LINK", "SPDXRef-kiln-runtime"), ("SPDXRef-kiln-runtime", "CONTAINS", "SPDXRef-xxHash"),
                 *(("SPDXRef-Bundle", "CONTAINS", item["SPDXID"]) for item in file_items)]
    if any(image.get("stored_bytes") is not None for _, image in images):
        packages.append(package("SPDXRef-zstd", "libzstd", "BSD-3-Clause", copyrightText="Copyright (c) Meta Platforms, Inc. and affiliates",
                                primaryPackagePurpose="LIBRARY", summary="expands the bundle's compressed images"))
        relations.append(("SPDXRef-Bundle", "STATIC_LINK", "SPDXRef-zstd"))
    if manifest.get("ptxas"):
        packages.append(package("SPDXRef-ptxas", "ptxas", NONE, versionInfo=manifest["ptxas"], primaryPackagePurpose="APPLICATION",
                                summary="NVIDIA's assembler, which made the bundle's cubins"))
        relations.append(("SPDXRef-ptxas", "BUILD_TOOL_OF", "SPDXRef-Bundle"))
    for i, (source, license) in enumerate(external):
        packages.append(package(f"SPDXRef-External-{i + 1}", source["file"], license, primaryPackagePurpose="SOURCE",
                                summary="PTX from elsewhere, in the bundle", sourceInfo=told(source)))
        relations.append(("SPDXRef-Bundle", "CONTAINS", f"SPDXRef-External-{i + 1}"))

    content = hashlib.sha256("\n".join([digest, time, tool, *sums]).encode()).hexdigest()
    result = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": bundle,
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
        "creationInfo": {"created": time, "creators": [tool]}, "packages": packages, "files": file_items,
        "relationships": [dict(zip(("spdxElementId", "relationshipType", "relatedSpdxElement"), row)) for row in relations]}
    references = sorted({word for license in found for word in re.findall(r"LicenseRef-[A-Za-z0-9.\-]+", license)})
    if references:
        result["hasExtractedLicensingInfos"] = [
            {"licenseId": word, "name": word, "extractedText": "The configuration names this licence; its author has the text."}
            for word in references]
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n"


def main():
    parser = program.Parser("kiln-sbom", description="Writes a bundle's bill of materials: an SPDX 2.3 document in JSON.",
                            epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("manifest", metavar="MANIFEST", help="NAME.json, with NAME.c and NAME.h next to it")
    program.add_output(parser, "the document, NAME.spdx.json")
    o = parser.parse_args()
    stem = os.path.splitext(o.manifest)[0]
    return program.run("kiln-sbom", o, FORM, [o.manifest, stem + ".c", stem + ".h"], lambda: document(o.manifest))


sys.exit(main())
