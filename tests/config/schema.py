#!/usr/bin/env python3
"""`kiln schema` accepts every configuration that kiln accepts, knows every key, and rejects simple mistakes.

usage: schema.py KILN KILN_CONFIG_TEST

KILN_CONFIG_TEST is kiln with the families of tests/config. Without the Python packages jsonschema and yaml, exits with 77.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cases  # noqa: E402

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print("SKIPPED:", missing, "(Debian: python3-jsonschema python3-yaml)")
    sys.exit(77)

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
# Configurations of families that exist only in a test.
OTHERS = {TESTS / "bundle/sample.yaml", TESTS / "consumer/own_family/kernels.yaml",
          TESTS / "layer/product/product.yaml"}

REFUSED = """
    bundle: 7_days
    targets: [sm_91]
    targets: sm_80
    targets: []
    targets: [sm_80, sm_80]
    images: [spirv]
    max_bytes: lots
    max_driver: CUDA 12
    max_bytes: {bundle: -1}
    kernel: []
    kernels: []
    kernels: [{famly: int4_scale}]
    kernels: [{family: int5_scale}]
    kernels: [{family: int4_scale, ptx: a.ptx}]
    kernels: [{family: int4_scale, typ: f32}]
    kernels: [{family: int4_scale, type: f65}]
    kernels: [{family: int4_scale, type: []}]
    kernels: [{family: attention, causal: 1}]
    kernels: [{family: attention, head_dim: 65}]
    kernels: [{family: attention, head_dim: [64, "128x"]}]
    kernels: [{family: int4_scale, combinations: some}]
    kernels: [{family: nf4_gemm, shapes: {m: 1, n: 64, k: 64}}]
    kernels: [{family: nf4_gemm, shapes: [{m: 1, n: 64, q: 64}]}]
    kernels: [{family: nf4_gemm, shapes: [{m: {from: 1}, n: 64, k: 64}]}]
    kernels: [{family: nf4_gemm, shapes: [{m: -1, n: 64, k: 64}]}]
    kernels: [{family: nf4_gemm, shapes: [{m: 1, n: 64, k: 64}], combinations: legal}]
    kernels: [{family: nf4_gemm, shapes: [{m: 1, n: 64, k: 64}], within: 0.9}]
    kernels: [{family: nf4_gemm, shapes: [{m: 1, n: 64, k: 64}], workspace: some}]
    kernels: [{family: nf4_gemm, shapes: [{m: 1, n: 64, k: 64}], max_variants: 65}]
    kernels: [{family: nf4_gemm, shapes: [{m: 1, n: 64, k: 64}], only_these_shapes: 1}]
    kernels: [{family: nf4_gemm, shapes: [{m: 1, n: 64, k: 64}], devices: h100}]
    kernels: [{family: nf4_gemm, devices: [h100]}]
    kernels: [{ptx: 1}]
    kernels: [{ptx: a.ptx, entry: {}}]
    kernels: [{ptx: a.ptx, entries: {f: {blocks: 1}}}]
    kernels: [{ptx: a.ptx, entries: {f: {grid: [1, 1, 1, 1]}}}]
"""
LEAST = {"bundle": "app", "targets": ["sm_80"], "kernels": [{"family": "int4_scale"}]}


def schema_of(kiln):
    schema = json.loads(subprocess.run([kiln, "schema"], check=True, capture_output=True, text=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def keys_in(schema):
    """Returns every property that some object may have."""
    if isinstance(schema, list):
        return set().union(*map(keys_in, schema))
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties", {})
    return (set(properties) if isinstance(properties, dict) else set()).union(*map(keys_in, schema.values()))


def missing_keys(schema):
    """Finds keys that the readers of configurations name but the schema lacks."""
    named = set()
    for file in ("config.c", "config_ptx.c", "shaped.c", "shapes.c"):
        for words in re.findall(r'(?:_keys\[\] = |reader_check_keys\(r, \w+, )"([a-z_ ]+)"', (ROOT / "generator/plan" / file).read_text()):
            named |= set(words.split())
    assert {"bundle", "entries", "grid", "only_these_shapes", "from"} <= named
    return named - keys_in(schema)


def main():
    product, test = map(schema_of, sys.argv[1:3])
    passed, failed = 0, []
    accepted = cases.read(TESTS / "config/accepted.txt")[1].items()
    configs = [(test, name, text) for name, text in accepted if name.endswith(".yaml")]
    configs += [(product, p.relative_to(ROOT), p.read_text()) for p in [ROOT / "generated/default.yaml", *sorted(TESTS.rglob("*.yaml"))]
                if p not in OTHERS and ".lock" not in p.suffixes]
    for schema, name, text in configs:
        for error in schema.iter_errors(yaml.safe_load(text)):
            failed.append(f"{name}: {error.json_path}: {error.message[:200]}")
        passed += 1
    for line in REFUSED.strip().splitlines():
        if product.is_valid(LEAST | yaml.safe_load(line)):
            failed.append(f"taken, but wrong: {line.strip()}")
        passed += 1
    failed += [f"not in the schema: {key}" for key in sorted(missing_keys(product.schema))]
    print(*failed, f"{passed} configurations, {len(failed)} wrong", sep="\n")
    sys.exit(1 if failed else 0)


main()
