"""The default bundle's kernels for one target, as in the kit: PTX, launch, and ptxas' registers and stack."""
import gzip
import json
import pathlib
import re
import subprocess
import tempfile

from join import runs_on

ROOT = pathlib.Path(__file__).resolve().parents[2]


def image_for(variant, target):
    """The newest of a variant's targets that `target` can run, or None."""
    able = [image["target"] for image in variant["images"] if runs_on(image["target"], target)]
    return max(able, key=lambda name: (int(re.search(r"\d+", name)[0]), name), default=None)


def ptxas_figures(target):
    """{variant: registers, bytes of the stack} and the version of the ptxas that assembled them."""
    heading, *lines = (ROOT / "tests/generated/resources.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return {row[0]: {"registers": int(row[2]), "stack": int(row[3])} for row in rows if row[1] == target}, heading.split("\t")[-1]


def modelled_blocks(source):
    """{entry: expression}: the resident thread blocks that the generated choosers assume, with the names of the manifest."""
    found = {}
    for call in re.findall(r"kiln_consider\((.*?)\);", source, re.DOTALL):
        entry = re.search(r"&kiln_default_(\w+)_kernel", call)
        resident = re.search(r"\.resident = (.*?),\s*\.length", call, re.DOTALL)
        if entry and resident:
            text = re.sub(r"\(uint64_t\)|device\.", "", " ".join(resident[1].split()))
            found[entry[1]] = text.replace("maximum(", "max(").replace("minimum(", "min(")
    return found


def collect(kiln, target):
    manifest = json.loads((ROOT / "generated/kiln_default.json").read_text(encoding="utf-8"))
    figures, version = ptxas_figures(target)
    modelled = modelled_blocks((ROOT / "generated/kiln_default.c").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(kiln), "export", str(ROOT / "generated/default.yaml"), "--output", folder, "--quiet"], check=True)
        texts = {path.name: path.read_text(encoding="utf-8") for path in pathlib.Path(folder).glob("*.ptx")}
    found = []
    for v in manifest["variants"]:
        image = image_for(v, target)
        if image:
            found.append({"id": v["id"], "entry": v["entry"], "args": v["args"], "rules": v["rules"], "block": v["launch"]["block"],
                          "shared_bytes": v["launch"]["max_shared_bytes"], "grid": v["launch"]["grid"],
                          "resident": modelled.get(v["entry"]), "ptxas": figures.get(v["id"]), "text": texts[f"{v['entry']}.{image}.ptx"]})
    return {"target": target, "ptxas": version, "variants": found}


def write(path, kiln, target):
    path.write_bytes(gzip.compress(json.dumps(collect(kiln, target)).encode(), 9, mtime=0))
