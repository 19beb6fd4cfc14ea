#!/usr/bin/env python3
"""Tests `kiln init`: its output for models, which must run, and its errors.

usage: init_test.py KILN goldens | rebase
       init_test.py KILN mistakes
       init_test.py KILN types
       init_test.py KILN run RUNTIME DRIVER MODEL...

goldens.txt has the kernels.yaml for each model of models.py, and for a project without a model, with an item's family and
parameters in one row. `run` builds and runs the programs for models of models.py, and for SmolLM2.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "lm")]
import cases  # noqa: E402
import models  # noqa: E402
import tokenizer_check  # noqa: E402

KILN = pathlib.Path(sys.argv[1]).resolve()
GOLDENS = HERE / "goldens.txt"
ROOT = HERE.parents[1]
# Parts of a program that the configuration lacks: attention's times, elements of V, softcap, scale and query_scalar; rope's base.
PROGRAM_ROWS = {
    "gemma2_q4_0": ['{"attention", 2, 128, 50, 1, 144, {'],
    "granite_q4_0": ['{"attention", 22, 64, 0, 0.015625, 1, {', '{"rope", 22, 5000000, {'],
    "llama_q4_k": ['{"attention", 22, 64, 0, 1, 64, {', '{"rope", 22, 10000, {'],
}
FAST = ["--targets", "sm_80"]
failed = []


def expect(condition, message):
    if not condition:
        failed.append(message)
        print("FAILED:", message)


def run(*command, status=0, **options):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, check=False, **options)
    if done.returncode != status:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: expected exit status {status}, found {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def init(folder, *options, **keywords):
    return run(KILN, "init", folder, *FAST, *options, **keywords)


# ---- goldens ------------------------------------------------------------------------------------------------------------


def make_goldens(folder):
    """Returns {NAME.yaml: its bytes}. The lock equals the one of `kiln choose`, and gives no warnings."""
    made = {}
    for name in ["example", *models.GGUF, *models.JSON]:
        project = folder / f"of {name}"
        path, options = models.make(folder, name) if name != "example" else (None, [])
        init(project, *(["--model", path] if path else []), *options)
        config = project / "kernels.yaml"
        made[f"{name}.yaml"] = config.read_bytes()
        for row in PROGRAM_ROWS.get(name, ()):
            expect(row in (project / "main.c").read_text(), f"{name}: main.c has {row}")
        said = run(KILN, "list", config)
        expect(said.stderr == "", f"{name}: a warning: {said.stderr}")
        if name not in ("example", "odd"):
            continue
        said = run(KILN, "choose", config, "--diff")
        others = [line for line in said.stderr.splitlines() if not re.search("warning: .* times the best time at .*; max_variants allows more", line)]
        expect(not said.stdout and not others, f"{name}: kiln choose would change the lock: {said}")
    return made


def rows(config):
    """A row for each item: linear format=q4_k matrices=2 # attn_q, attn_k"""
    item = re.compile(r"  # (.+)\n  - family: (.+)\n((?:    \w+: .+\n)+)    shapes:\n")
    text = item.sub(lambda m: f"{m[2]} {' '.join(re.findall('    (.+)', m[3])).replace(': ', '=')} # {m[1]}\n", config.decode())
    return text.replace("      - {", "  {").encode()


def config_of(rows):
    """The configuration of which `rows` makes these rows."""
    def item(match):
        family, *parameters = match[1].split()
        lines = "".join(f"    {parameter.replace('=', ': ')}\n" for parameter in parameters)
        return f"  # {match[2]}\n  - family: {family}\n{lines}    shapes:\n"
    head, kernels, items = rows.decode().partition("kernels:\n")
    return (head + kernels + re.sub(r"(?m)^(\w+ .+?) # (.+)\n", item, items).replace("  {", "      - {")).encode()


def goldens(folder):
    comment, expected = cases.read(GOLDENS)
    made = make_goldens(folder)
    for name in sorted({*expected, *made}):
        golden = name in expected and config_of(expected[name])
        expect(golden == made.get(name), f"{name}: not the golden; init_test.py rebase, then read the difference")
    print(f"{len(made)} configurations as in {GOLDENS.name}")


def rebase(folder):
    comment = cases.read(GOLDENS)[0] if GOLDENS.exists() else "# What `kiln init` writes for the models of models.py. Refreshed by the target rebase_init.\n"
    cases.write(GOLDENS, comment, {name: rows(config) for name, config in make_goldens(folder).items()})


# ---- mistakes -----------------------------------------------------------------------------------------------------------


def mistakes(folder):
    """Each mistake is an error with its place, and kiln writes nothing."""
    gguf, _ = models.make(folder, "qwen2")
    json_file = folder / "config.json"
    llama = '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2'
    short = folder / "short.gguf"
    short.write_bytes(gguf.read_bytes()[:100])
    empty = folder / "empty.gguf"
    models.write(empty, {"general.architecture": "llama"}, {})
    untyped = folder / "untyped.gguf"
    models.write(untyped, {"general.architecture": 7}, {})
    cases_of_json = [
        ("", [], "config.json: error: expected an object with the model's sizes, found an empty file"),
        ("[1, 2]", [], "config.json:1:1: error: expected an object with the model's sizes, found no object"),
        ("{\n  \"hidden_size\": 64,\n  \"hidden_size\": 65}", [], r"config.json:3:4: error: expected each key once, found 'hidden_size' again"),
        ("{\"hidden_size\": 64", [], r"config.json:2:1: error: not valid YAML: missing comma"),
        (llama + "}", ["--format", "q4_k"], "config.json:1:1: error: expected 'vocab_size: NUMBER', found no such key"),
        (llama + ', "vocab_size": "many"}', ["--format", "q4_k"],
         r"config.json:1:\d+: error: expected a whole number of at most 9 digits for 'vocab_size', found the text 'many'"),
        (llama + ', "vocab_size": 100, "rms_norm_eps": -1}', ["--format", "q4_k"],
         r"config.json:1:\d+: error: expected a number above 0, at most 1e30 for 'rms_norm_eps', found '-1'"),
        (llama.replace("2,", "2000,", 1) + ', "vocab_size": 100}', ["--format", "q4_k"],
         r"config.json:1:\d+: error: expected at most 1024 for 'num_hidden_layers', found '2000'"),
        (llama + ', "vocab_size": 100}', [], "config.json:1:1: error: expected a quantization_config, found none: name the format of "
         "the weights, --format q4_0, .*, nf4, nvfp4"),
        (llama + ', "vocab_size": 100}', ["--format", "q4k"], "--format: error: expected a format, found 'q4k'; did you mean 'q4_k'?"),
    ]
    for more, says in (
            ('"vocab_size": null', "expected a number for 'vocab_size', found null"),
            ('"vocab_size": 9, "num_key_value_heads": 0', "expected a number from 1 on for 'num_key_value_heads', found '0'"),
            ('"vocab_size": 9, "num_key_value_heads": 3', "expected a divisor of num_attention_heads 2 for 'num_key_value_heads', found 3"),
            ('"vocab_size": 9, "head_dim": 0', "expected a number from 1 on for 'head_dim', found '0'"),
            ('"vocab_size": 9, "rope_scaling": 2', "expected an object for 'rope_scaling', found '2'"),
            ('"vocab_size": 9, "partial_rotary_factor": 2', "expected at most 1 for 'partial_rotary_factor', found 2"),
            ('"vocab_size": 9, "quantization_config": "nf4"', "expected an object for 'quantization_config', found the text 'nf4'"),
            ('"vocab_size": 9, "quantization_config": [1]', "expected an object for 'quantization_config', found a list"),
            ('"vocab_size": 9, "quantization_config": {}', "expected 'quant_method: METHOD' in quantization_config, found no such key"),
            ('"vocab_size": 9, "quantization_config": {"load_in_4bit": false, "load_in_8bit": false, "bnb_4bit_quant_type": "nf4"}',
             "expected a quantization_config that quantises, found load_in_4bit and load_in_8bit false"),
    ):
        cases_of_json.append((f"{llama}, {more}}}", [], rf"config.json:1:\d+: error: {says}"))
    cases_of_json.append((llama.replace('heads": 2', 'heads": 3') + ', "vocab_size": 9}', ["--format", "q4_0"],
                          r"config.json:1:\d+: error: expected a divisor of hidden_size 64 for 'num_attention_heads', found 3"))
    for number, (text, options, says) in enumerate(cases_of_json):
        json_file.write_text(text)
        told(folder / "project", ["--model", json_file, *options], says, f"JSON {number}")
    for options, says in (
            (["--model", folder / "none.gguf"], "none.gguf: error: cannot be opened: No such file or directory"),
            (["--model", short], "short.gguf: error: byte "),
            (["--model", empty], "empty.gguf: error: expected a model and targets that kiln has kernels for; found no matrices"),
            (["--model", untyped], "untyped.gguf: error: key 'general.architecture': expected string, found u32"),
            (["--model", gguf, "--format", "q4_k"], "--format: error: expected a config.json for --model beside it"),
            (["--format", "q4_k"], "--format: error: expected a config.json for --model beside it"),
            (["--name", "a-b"], "--name: error: expected a C identifier .letters, digits, _. as bundle, found 'a-b'"),
            (["--name", "app"], "--name: error: 'app' is a target of the project already; choose another name"),
            (["--name", "class"], "--name: error: expected a C identifier as bundle, found 'class', a word of C or C"),
    ):
        told(folder / "project", options, says, options)
    nan = float("nan")
    for key, value, says in (
            ("block_count", 0, "expected a number from 1 to 1024, found 0"),
            ("attention.head_count", 0, "expected a number from 1 to 1048576, found 0"),
            ("attention.head_count", 3, "expected a divisor of attn_q's rows, 64, found 3"),
            ("attention.head_count_kv", 0, "expected a number from 1 to 1048576, found 0"),
            ("embedding_length", 1 << 31, "expected a number from 1 to 1048576, found 2147483648"),
            ("rope.dimension_count", 64, "expected at most the 32 elements of a head, found 64"),
            ("rope.freq_base", nan, "expected a number above 0, at most 1e30, found nan"),
            ("rope.freq_base", -1.0, "expected a number above 0, at most 1e30, found -1"),
            ("attention.layer_norm_rms_epsilon", 0.0, "expected a number above 0, at most 1e30, found 0"),
    ):
        changed = folder / "changed.gguf"
        models.write(changed, *models.decoder("llama", 64, 2, 1, 32, 64, 64, 1, models.TINY, keys={key: value}))
        told(folder / "project", ["--model", changed], f"changed.gguf: error: key 'llama.{key}': {says}", (key, value))
    done = subprocess.run([KILN, "init", folder / "project", "--targets", "sm90"], text=True, capture_output=True, check=False)
    expect(done.returncode == 2 and done.stderr == "--targets: error: expected a target, found 'sm90'; did you mean 'sm_90'?\n",
           f"a target: {done}")

    existing = folder / "existing"
    existing.mkdir()
    (existing / "main.c").write_text("mine")
    done = subprocess.run([KILN, "init", existing, *FAST], text=True, capture_output=True, check=False)
    expect(done.returncode == 1 and done.stderr == f"{existing}/main.c: error: expected no such file, found one: kiln init replaces none\n",
           f"a file that is there: {done}")
    expect([p.name for p in existing.iterdir()] == ["main.c"] and (existing / "main.c").read_text() == "mine", "nothing is written beside it")
    init(existing, "--cxx", "--name", "mine")  # main.cpp is another file
    init(existing, "--cxx", status=1)
    expect("bundle: mine\n" in (existing / "kernels.yaml").read_text(), "--name")
    (existing / "afile").write_text("")
    dangling = folder / "dangling"
    dangling.mkdir()
    (dangling / "main.c").symlink_to("nowhere")
    for path, says in (
            ("", "DIR: error: expected the name of a folder, found an empty one"),
            (folder / "a;b", "a;b: error: expected a folder without ';' in its name"),
            (existing / "afile", "afile: error: expected a folder, found something else of this name"),
            (folder / "missing/project/", "project: error: cannot make the folder: expected a folder '.*missing' to make it in, found none"),
            (dangling, "main.c: error: expected no such file, found one: kiln init replaces none"),
    ):
        done = subprocess.run([KILN, "init", path, *FAST], text=True, capture_output=True, check=False)
        expect(done.returncode == 1 and re.search(says, done.stderr), f"{path}: expected {says}, found {done}")
    expect([p.name for p in dangling.iterdir()] == ["main.c"] and (dangling / "main.c").is_symlink(), "a link to nowhere is a file that is there")
    expect(not (folder / "a;b").exists() and not (folder / "missing").exists(), "no folder is made")
    here = folder / "here"
    here.mkdir()
    run(KILN, "init", "-q", *FAST, cwd=here)
    expect({p.name for p in here.iterdir()} == {"kernels.yaml", "kernels.lock.yaml", "CMakeLists.txt", "main.c"}, "the current folder")


def told(project, options, says, what):
    done = subprocess.run([str(c) for c in (KILN, "init", project, *FAST, *options)], text=True, capture_output=True, check=False)
    expect(done.returncode in (1, 2) and re.search(says, done.stderr) and not done.stdout, f"{what}: expected {says}, found {done}")
    expect(not project.exists(), f"{what}: nothing is written")


# ---- types --------------------------------------------------------------------------------------------------------------


def types(folder):
    """kiln init reads any ggml type. A type that kiln lacks becomes a comment."""
    taken = subprocess.run([KILN, "families", "linear"], text=True, capture_output=True, check=True).stdout
    taken = re.search(r"^  format +(.*?) *\n", taken, re.M)[1].split()
    taken = [kind for kind in taken if kind not in ("int4", "nf4")]  # kiln's own
    lacking = [kind for kind in models.TYPES if kind not in taken]
    expect(len(lacking) == len(models.TYPES) - len(taken), f"every format of kiln's is a type of ggml: {taken}")
    formats = {"all": "q4_0"} | {("attn_output", layer): kind for layer, kind in enumerate(lacking)}
    models.write(folder / "typed.gguf", *models.decoder("llama", 256, 4, 4, 64, 256, 256, len(lacking), formats))
    init(folder / "typed", "--model", folder / "typed.gguf")
    config = (folder / "typed/kernels.yaml").read_text()
    for layer, kind in enumerate(lacking):
        says = f"# - blk.{layer}.attn_output; blk.{layer}.attn_output: prompt: linear: expected a value of format, found '{kind}'"
        expect(says in config and f"format: {kind}\n" not in config, f"expected {says} in:\n{config}")


# ---- programs -----------------------------------------------------------------------------------------------------------


def launched(folder, runtime, driver, name, *options):
    """Builds and runs the programs. Each prints a line per call, with finite numbers."""
    project = folder / f"run {name}"
    init(project, *options)
    run(KILN, "generate", project / "kernels.yaml", "-q")
    flags = ["-O0", *os.environ.get("CFLAGS", "").split(), f"-I{ROOT}/include"]
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", *flags, project / "main.c", project / "appkernels.c", runtime, "-lm",
        "-ldl", "-o", project / "app")
    environment = os.environ | {"LD_LIBRARY_PATH": str(pathlib.Path(driver).parent), "KILN_EMU_DEVICE": "sm_80", "KILN_EMU_CHECK": "all"}
    output = run(project / "app", env=environment).stdout
    lines = output.splitlines()
    print(f"{name}:\n{output}")
    squares = [float(line.rpartition(" ")[2]) for line in lines[:-1]]
    expect(lines[-1] == f"{len(squares)} calls, 0 wrong" and len(squares) > 1 and all(0 < x < 1e30 for x in squares), f"{name}: {output}")
    rows = (project / "main.c").read_text().count("\n    {\"")
    expect(len(squares) == rows, f"{name}: each of {rows} calls is launched: {output}")
    return output


def launch_all(folder):
    runtime, driver, *names = sys.argv[3:]
    for name in names:
        if name == "smollm2":
            path, options = tokenizer_check.model(), []
        else:
            path, options = models.make(folder, name)
        launched(folder, runtime, driver, name, "--model", path, *options)


with tempfile.TemporaryDirectory() as scratch:
    {"goldens": goldens, "rebase": rebase, "mistakes": mistakes, "types": types, "run": launch_all}[sys.argv[2]](pathlib.Path(scratch))
sys.exit(1 if failed else 0)
