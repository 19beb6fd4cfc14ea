"""Tests kiln-lm as a program: its errors, its behaviour when a call fails, its size.

usage: check.py VERB PROGRAM EMULATOR DRIVER HEAP MODELS all|some
       check.py logits PROBE EMULATOR MODELS all|some
       check.py greedy PROBE EMULATOR all|some
       check.py synthetic PROBE EMULATOR all|some
       check.py layers PROBE EMULATOR
       check.py targets PROGRAM EMULATOR
       check.py size STRIP PROGRAM [COMPRESSED]

PROGRAM has kernels for every format. failing_driver.c and failing_heap.c make calls fail. models_make.py makes small models in
the folder MODELS. `all`: every call fails in turn; `some`: the first and the last of each kind. COMPRESSED is the program with
compressed images.
"""
import gzip
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import gguf_files
import goldens_check
import small_header
import tokenizer_check

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "tools/bench"))
import lm_model

PROGRAM = HERE.parent / "consumer/language_model"


class Failed(Exception):
    pass


def run(arguments, environment=(), **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=7200,
                          env={**os.environ, "KILN_EMU_CHECK": "none", **dict(environment)}, **more)


def small_model(folder, name="q4_1"):
    path = pathlib.Path(folder) / f"small_{name}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=folder) as scratch:  # concurrent tests may make the same file
        made = run([sys.executable, "-B", HERE / "models_make.py", "small", scratch, name.removesuffix("_head")])
        if made.returncode:
            print(made.stdout + made.stderr)
            sys.exit(made.returncode)
        os.replace(pathlib.Path(scratch) / path.name, path)
    return path


# ---- wrong arguments ----------------------------------------------------------------------------------------------------

MODEL = object()
REFUSED = [  # arguments, and the text on stderr
    ([], "MODEL.gguf: expected a file, found nothing"),
    ([MODEL], "--prompt: expected a text, found nothing"),
    ([MODEL, "--prompt"], "--prompt: expected a text, found nothing"),
    ([MODEL, "--prompt", "a", "-n", "0"], "-n: expected a whole number from 1 to 1048576, found '0'"),
    ([MODEL, "--prompt", "a", "-n", "-4"], "-n: expected a whole number from 1 to 1048576, found '-4'"),
    ([MODEL, "--prompt", "a", "-n", "99999999999999999999"], "found '99999999999999999999'"),
    ([MODEL, "--prompt", "a", "-n", "4x"], "found '4x'"),
    ([MODEL, "--prompt", "a", "--temperature", "-1"], "--temperature: expected a number from 0 to 100, found '-1'"),
    ([MODEL, "--prompt", "a", "--temperature", "nan"], "found 'nan'"),
    ([MODEL, "--prompt", "a", "--top-p", "1.5"], "--top-p: expected a number from 0 to 1, found '1.5'"),
    ([MODEL, "--prompt", "a", "--seed", "x"], "--seed: expected a whole number"),
    ([MODEL, "--prompt", "a", "--verbose"], "--verbose: there is no such option"),
    ([MODEL, MODEL, "--prompt", "a"], "there is one model only"),
    ([MODEL, "--prompt", "a", "--quiet", "--bench"], "--quiet: expected an answer to print, found '--bench'"),
    ([MODEL, "--prompt", "a", "--driver", ""], "--driver: expected a text, found ''"),
]
FAILED = [
    (["no/such.gguf", "--prompt", "a"], "no/such.gguf: "),
    ([MODEL, "--prompt", ""], "--prompt: expected a text of at least one token, found none"),
    ([MODEL, "--prompt", "a", "--context", "99999"], "--context: expected at most"),
    ([MODEL, "--prompt", "a b c d e f", "--context", "2"], "--prompt: expected fewer tokens than the context has, 2, found"),
    ([MODEL, "--prompt", "a", "--driver", "no/such.so"], "no/such.so: "),
    ([MODEL, "--prompt", "a", "--chat"], "--prompt"),
]


def refusals(program, emulator, _driver, _heap, folder, _extent):
    model, count = small_model(folder), 0
    for cases, status in ((REFUSED, 2), (FAILED, 1)):
        for arguments, expected in cases:
            got = run([program] + [model if a is MODEL else a for a in arguments] +
                      ([] if "--driver" in arguments or status == 2 else ["--driver", emulator]))
            if got.returncode != status or expected not in got.stderr or got.stdout:
                raise Failed(f"{arguments}: exit status {got.returncode}\n{got.stdout}{got.stderr}expected {status} and: {expected}")
            count += 1
    asked = [model, "--prompt", "a", "-n", "1", "--driver", emulator]
    for arguments, expected in ((["--help"], "the usage"), (asked, "the answer"), ([*asked, "--bench"], "the rates")):
        with open("/dev/full", "w") as full:
            got = subprocess.run([program, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
        if got.returncode != 1 or got.stderr != f"kiln-lm: {expected} cannot be written\n":
            raise Failed(f"{arguments} to a full device: exit status {got.returncode}\n{got.stderr}")
    print(f"{count} refusals as expected")


# ---- models that are refused ---------------------------------------------------------------------------------------------

DROP = None  # the key, or the tensor
KEYS = [  # key, its new value and type, and the text on stderr
    ("general.architecture", "qwen2", "STRING", "general.architecture: expected llama, found qwen2"),
    ("general.type", "adapter", "STRING", "general.type: expected model, found adapter: "),
    ("general.quantization_version", 1, "UINT32", "general.quantization_version: expected 2, found 1: "),
    ("split.count", 3, "UINT16", "split.count: expected 0 or 1, found 3: the file is one of several"),
    ("tokenizer.ggml.suppress_tokens", [5, 6], "ARRAY",
     "tokenizer.ggml.suppress_tokens: expected an array of 0 i32, found an array of 2 i32: "),
    ("llama.rope.scaling.type", "yarn", "STRING", "llama.rope.scaling.type: expected none or linear, found yarn: "),
    ("llama.rope.scaling.type", "none or linear", "STRING", "expected none or linear, found none or linear: "),
    ("llama.rope.scaling.factor", 0.5, "FLOAT32", "llama.rope.scaling.factor: expected 1 to 1e30, found 0.5"),
    ("llama.rope.scaling.factor", "4", "STRING", "key 'llama.rope.scaling.factor': expected f32, found string"),
    ("llama.rope.scaling.attn_factor", 1.25, "FLOAT32",
     "llama.rope.scaling.attn_factor: expected no such key, found 1.25: it may change the model"),
    ("llama.rope.scale_linear", 0.0, "FLOAT32", "llama.rope.scale_linear: expected 1 to 1e30, found 0"),
    ("llama.expert_count", 8, "UINT32", "llama.expert_count: expected 0, found 8: "),
    ("llama.attention.sliding_window", 4096, "UINT32", "llama.attention.sliding_window: expected 0, found 4096: "),
    ("llama.attention.causal", False, "BOOL", "llama.attention.causal: expected true, found false: "),
    ("llama.attention.clamp_kqv", 8.0, "FLOAT32", "llama.attention.clamp_kqv: expected 0, found 8: "),
    ("llama.attention.max_alibi_bias", 8.0, "FLOAT32", "llama.attention.max_alibi_bias: expected 0, found 8: "),
    ("llama.attention.scale", 0.0625, "FLOAT32", "llama.attention.scale: expected no such key, found 0.0625: "),
    ("llama.logit_scale", 16.0, "FLOAT32", "llama.logit_scale: expected no such key, found 16: it may change the model"),
    ("llama.use_parallel_residual", True, "BOOL", "llama.use_parallel_residual: expected false, found true: "),
    ("llama.of.tomorrow", "a\n\x1b[2J", "STRING", "llama.of.tomorrow: expected no such key, found a??[2J: "),
    ("llama.block_count", 0, "UINT32", "llama.block_count: expected 1 to 1024, found 0"),
    ("llama.block_count", 3, "UINT32", "tensor blk.2.attn_q.weight: there is none"),
    ("llama.block_count", 1, "UINT32", "tensor blk.1."),
    ("llama.block_count", 2.0, "FLOAT32", "llama.block_count"),
    ("llama.embedding_length", 1024, "UINT32", "tensor token_embd.weight: expected 1024 x 512 elements, found 512 x 512"),
    ("llama.embedding_length", DROP, "UINT32", "llama.embedding_length"),
    ("llama.feed_forward_length", 4294967295, "UINT32", "llama.feed_forward_length: expected 1 to 1048576"),
    ("llama.attention.head_count", 3, "UINT32", "llama.attention.head_count"),
    ("llama.attention.head_count_kv", 16, "UINT32", "llama.attention.head_count_kv: expected 1 to 8, found 16"),
    ("llama.attention.value_length", 32, "UINT32", "llama.attention.value_length: expected that of keys, 64, found 32"),
    ("llama.rope.dimension_count", 63, "UINT32", "llama.rope.dimension_count: expected an even number"),
    ("llama.rope.freq_base", 0.5, "FLOAT32", "llama.rope.freq_base: expected 1 to 1e30, found 0.5"),
    ("llama.attention.layer_norm_rms_epsilon", float("nan"), "FLOAT32", "llama.attention.layer_norm_rms_epsilon"),
    ("tokenizer.ggml.model", "llama", "STRING", "tokenizer.ggml.model"),
    ("tokenizer.ggml.pre", "qwen2", "STRING", "tokenizer.ggml.pre"),
]
HARMLESS = {  # keys that do not change an answer
    "general.type": ("model", "STRING"), "general.quantization_version": (2, "UINT32"), "general.of.tomorrow": (1, "UINT32"),
    "llama.attention.causal": (True, "BOOL"), "llama.attention.sliding_window": (0, "UINT32"),
    "llama.expert_count": (0, "UINT32"), "llama.rope.scaling.type": ("none", "STRING"),
    "llama.rope.scaling.factor": (8.0, "FLOAT32"), "llama.rope.scaling.original_context_length": (512, "UINT32"),
    "llama.tensor_data_layout": ("Meta AI original pth", "STRING"), "llama2.logit_scale": (16.0, "FLOAT32"),
    "split.count": (0, "UINT16"), "tokenizer.ggml.of.tomorrow": (1, "UINT32")}
TENSORS = [  # name, its change, and the text on stderr
    ("output_norm.weight", DROP, "tensor output_norm.weight: there is none"),
    ("blk.0.attn_q.bias", "F32", "tensor blk.0.attn_q.bias: this program does not know what it is for"),
    ("rope_freqs.weight", "F32", "tensor rope_freqs.weight: this program does not have Llama 3's scaling"),
    ("blk.0.ffn_norm.weight", "F16", "tensor blk.0.ffn_norm.weight: expected F32, found F16"),
    ("blk.1.ffn_down.weight", "F16", "tensor blk.1.ffn_down.weight: F16 is not among the formats of linear"),
    ("blk.1.ffn_down.weight", "TQ1_0", "tensor blk.1.ffn_down.weight: TQ1_0 is not among the formats of linear"),
    ("token_embd.weight", "BF16", "tensor token_embd.weight: BF16 is not among the formats of"),
    ("blk.1.ffn_up.weight", "Q8_0", "tensor blk.1.ffn_gate.weight: expected the format of ffn_up"),
]


def change(source, path, keys=None, tensors=None):
    """Copies a model with changed keys, {name: (value, type)}, and tensors, {name: type}. DROP removes one."""
    import gguf
    import numpy
    keys, tensors = dict(keys or {}), dict(tensors or {})
    reader = gguf.GGUFReader(source)
    types = gguf.GGUFValueType
    architecture = keys.pop("general.architecture", (reader.fields["general.architecture"].contents(), ""))[0]
    writer = gguf.GGUFWriter(path, architecture)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture" and name not in keys:
            is_array = field.types[0] == types.ARRAY
            writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if is_array else None)
    for name, (value, kind) in keys.items():
        if value is not DROP:
            writer.add_key_value(name, value, types[kind], types.INT32 if kind == "ARRAY" else None)
    for tensor in reader.tensors:
        kind = tensors.pop(tensor.name, tensor.tensor_type.name)
        if kind is DROP:
            continue
        data = tensor.data
        if kind != tensor.tensor_type.name:
            data = gguf.quants.quantize(gguf.quants.dequantize(data, tensor.tensor_type), gguf.GGMLQuantizationType[kind])
        writer.add_tensor(tensor.name, data, raw_dtype=gguf.GGMLQuantizationType[kind])
    for name in tensors:
        writer.add_tensor(name, numpy.ones(512, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def models(program, emulator, _driver, _heap, folder, _extent):
    model, changed = small_model(folder), pathlib.Path(folder) / "changed.gguf"
    cases = [(f"{key} = {value}", {"keys": {key: (value, kind)}}, expected) for key, value, kind, expected in KEYS]
    cases += [(f"{name} as {kind}", {"tensors": {name: kind}}, expected) for name, kind, expected in TENSORS]
    for what, changes, expected in cases:
        change(model, changed, **changes)
        got = run([program, changed, "--prompt", "a", "-n", "1", "--driver", emulator])
        if got.returncode != 1 or expected not in got.stderr or got.stdout:
            raise Failed(f"{what}: exit status {got.returncode}\n{got.stdout}{got.stderr}expected: {expected}")
    changed.write_bytes(later_part())
    got = run([program, changed, "--prompt", "a", "--driver", emulator])
    if got.returncode != 1 or "split.count: expected 0 or 1, found 3: the file is one of several" not in got.stderr:
        raise Failed(f"the second part of a file: exit status {got.returncode}\n{got.stderr}")
    change(model, changed, keys=HARMLESS)
    answers = [run([program, path, "--prompt", "The rain had", "-n", "8", "--quiet", "--driver", emulator])
               for path in (model, changed)]
    if answers[1].returncode or answers[1].stderr or answers[0].stdout != answers[1].stdout:
        raise Failed(f"harmless keys: exit status {answers[1].returncode}, {answers[1].stdout!r}\n{answers[1].stderr}"
                     f"without them: {answers[0].stdout!r}")
    changed.unlink()
    print(f"{len(cases) + 1} models refused as expected, {len(HARMLESS)} harmless keys taken")


def spoilt(program, emulator, _driver, _heap, folder, _extent):
    """A NaN row of the output matrix only excludes its token. A NaN matrix is an error."""
    model, changed = small_model(folder, "q4_1_head"), pathlib.Path(folder) / "spoilt.gguf"  # skips where there is no gguf
    import gguf
    import numpy
    prompt, token = ["--prompt", "The rain had", "-n", "8", "--driver", emulator], 300
    right = run([program, model, *prompt])
    head = next(tensor for tensor in gguf.GGUFReader(model).tensors if tensor.name == "output.weight")
    for rows, status, said in ((slice(token, token + 1), 0, "kiln-lm: warning: 8 logits were NaN; their tokens were not chosen"),
                               (slice(None), 1, "kiln-lm: the best logit after token 3 is not a finite number")):
        data = bytearray(model.read_bytes())
        weights = numpy.frombuffer(data, numpy.uint8, head.n_bytes, head.data_offset).reshape(head.data.shape)
        weights[rows, :2] = numpy.frombuffer(numpy.float16("nan").tobytes(), numpy.uint8)  # the first block's scale
        changed.write_bytes(data)
        for more in ([], ["--temperature", "1", "--top-k", "1"]):
            got = run([program, changed, *prompt, *more])
            if got.returncode != status or said not in got.stderr or got.stdout != (right.stdout if status == 0 else ""):
                raise Failed(f"{rows} {more}: exit status {got.returncode}, {got.stdout!r}\n{got.stderr}expected {right.stdout!r}, {said}")
    changed.unlink()
    print(f"with row {token} of the head NaN the same answer: {right.stdout!r}")


def later_part():
    """The second of three files lacks the model's keys."""
    part = gguf_files.File()
    part.alignment, part.tensors, part.data = 32, {}, b""
    part.keys = {name: gguf_files.key(name, gguf_files.U16, value) for name, value in (("split.no", 1), ("split.count", 3))}
    return part.bytes()


# ---- numbers ------------------------------------------------------------------------------------------------------------

FORMATS = "q4_0 q4_1 q5_0 q5_1 q8_0 mxfp4 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs".split()
MIXED = {"blk.0.attn_v.weight": "Q8_0", "blk.1.attn_q.weight": "Q5_1", "blk.1.ffn_down.weight": "Q5_0"}
TARGETS = "sm_90", "sm_75", "sm_80", "sm_120"
TOKENS, TOGETHER = 24, (0, 20)  # all tokens are read one by one; the first 20 are read together


def rounding(together):
    """Returns kiln-lm's rounding: products of tokens that are read together are of bytes."""
    return ("--rounding", f"lm,activation=q8:{together}") if together else ()


def probe(program, emulator, model, tokens, target, together):
    """Compares each layer and the logits of a model's path with float64 (lm_check.py). The first tokens are read together."""
    with tempfile.TemporaryDirectory() as folder:
        steps = len(tokens.read_text().split()) - together
        got = run([program, model, tokens, folder, "--driver", emulator, "--steps", steps], {"KILN_EMU_DEVICE": target})
        if got.returncode:
            raise Failed(f"{model} on {target}: {got.stderr}")
        compared = run([sys.executable, "-B", HERE / "lm_check.py", model, tokens, folder, *rounding(together)])
        print(f"{model.name} on {target}, {together} tokens together\n{compared.stdout}{compared.stderr}")
        if compared.returncode:
            raise Failed(f"{model} on {target}: farther from float64 than roundings go")


def mistakes(model, tokens):
    """A wrong constant, order of heads or weight exceeds the bounds."""
    for together in TOGETHER:
        tested = run([sys.executable, "-B", HERE / "lm_check.py", model, tokens, "--self-test", *rounding(together)])
        print(tested.stdout + tested.stderr)
        if tested.returncode:
            raise Failed("lm_check.py takes a mistake for a rounding, or a rounding for a mistake")


def logits(program, emulator, folder, extent):
    tokens = pathlib.Path(folder) / "tokens"
    draw = random.Random(1)
    small_model(folder)
    tokens.write_text(" ".join(str(draw.randrange(512)) for _ in range(TOKENS)))
    mistakes(small_model(folder), tokens)
    for name in FORMATS:
        for together in TOGETHER:
            probe(program, emulator, small_model(folder, name), tokens, "sm_90", together)
        if extent == "all" or name == "q5_k":  # with its own output matrix
            probe(program, emulator, small_model(folder, f"{name}_head"), tokens, "sm_90", TOGETHER[1])
    mixed = pathlib.Path(folder) / "mixed.gguf"
    change(small_model(folder), mixed, tensors=MIXED)
    probe(program, emulator, mixed, tokens, "sm_90", TOGETHER[1])
    scaled = pathlib.Path(folder) / "scaled.gguf"
    change(small_model(folder), scaled, keys={"llama.rope.scaling.factor": (4.0, "FLOAT32")})  # scaling without a type is linear
    probe(program, emulator, scaled, tokens, "sm_90", TOGETHER[1])
    for target in TARGETS[1:]:
        for name in FORMATS if extent == "all" else ("q4_1",):
            for together in TOGETHER:
                probe(program, emulator, small_model(folder, name), tokens, target, together)


# ---- answers ------------------------------------------------------------------------------------------------------------

ANSWERS = {"some": {"sm_90": (7,)}, "all": {"sm_90": range(20), "sm_75": (0, 7), "sm_80": (0, 7), "sm_120": (0, 7)}}


def compare_answer(program, emulator, model, golden, count, target, what, make_steps=None):
    """Compares the tokens that the model writes after a golden's prompt, launched as graphs. If they leave all of the golden's paths,
    make_steps(prompt, tokens) computes float64's steps for them."""
    with tempfile.NamedTemporaryFile("w") as prompt:
        prompt.write(" ".join(map(str, golden.tokens)))
        prompt.flush()
        got = run([program, model, prompt.name, "--greedy", count, "--driver", emulator], {"KILN_EMU_DEVICE": target})
    if got.returncode:
        raise Failed(f"{what} on {target}: {got.stderr}")
    taken = list(map(int, got.stdout.split()))
    if len(taken) != count:
        raise Failed(f"{what} on {target}: expected {count} tokens, found {len(taken)}")
    if make_steps and any(golden.step_after(taken[:i]) is None for i in range(count)):
        golden.paths["its own"] = make_steps(golden.tokens, taken)
    is_near, said = goldens_check.check(golden, "q8", taken)  # the prompt's products are
    print(f"{what} on {target}: {said}", flush=True)
    if not is_near:
        raise Failed("farther from float64's best token than rounding explains")


def steps_by_float64(model):
    """Returns a function that computes float64's steps on a path (goldens_float64.py)."""
    import goldens_float64  # needs NumPy, or exits with 77
    models = goldens_float64.Models(model)
    return lambda prompt, path: goldens_float64.steps_of(models, prompt, path, 0, ("q8",))[0]


def greedy(program, emulator, extent):
    """The real model's answers to the goldens' prompts."""
    model, count = tokenizer_check.model(), 64 if extent == "all" else 6
    make_steps = steps_by_float64(model) if extent == "all" else None
    for target, numbers in ANSWERS[extent].items():
        for number in numbers:
            compare_answer(program, emulator, model, goldens_check.read_goldens()[number], count, target, f"prompt {number}",
                           make_steps)


SYNTHETIC = {"some": 4, "all": 256}


def synthetic(program, emulator, extent):
    """The GPU kit's model and bench.lm's small model have the goldens' hashes and tokens."""
    for name, header, count in (("_small", small_header.small_header(), 32),
                                ("", gzip.decompress(lm_model.keep_header(tokenizer_check.model())), SYNTHETIC[extent])):
        path = HERE / f"goldens_synthetic{name}.txt"
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            made = lm_model.make(header, model)
            if f"\nmodel {made}\n" not in path.read_text():
                raise Failed(f"{path.name}: lm_model.py now makes another model, {made}")
            compare_answer(program, emulator, model, goldens_check.read_goldens(path)[0], count, "sm_90", path.stem,
                           steps_by_float64(model) if extent == "all" else None)


def layers(program, emulator):
    """Each layer and the logits of the real model, over 64 tokens of the goldens' prompts."""
    model = pathlib.Path(tokenizer_check.model())
    with tempfile.TemporaryDirectory() as folder:
        tokens = pathlib.Path(folder) / "tokens"
        asked = [token for golden in goldens_check.read_goldens() for token in golden.tokens]
        tokens.write_text(" ".join(map(str, asked[:64])))
        for target in TARGETS:
            probe(program, emulator, model, tokens, target, 60)


def targets(program, emulator):
    """The program's own bundle has the kernels for a token on each target."""
    model = tokenizer_check.model()
    for target in re.search(r"targets: \[(.*)\]", (PROGRAM / "kernels.yaml").read_text())[1].split(", "):
        got = run([program, model, "--prompt", "a", "-n", "1", "--driver", emulator], {"KILN_EMU_DEVICE": target})
        if got.returncode:
            raise Failed(f"{target}: {got.stderr}")
        print(f"{target}: {got.stdout!r}")


# ---- size ---------------------------------------------------------------------------------------------------------------

MOST_BYTES = (1_000_000, 700_000)  # plain, and with compressed images
MAY_NEED = re.compile(r"lib[cm]\.so\.6|ld-linux.*")


def size(strip, *programs):
    for program, most in zip(programs, MOST_BYTES):
        stripped = f"{program}.stripped"
        subprocess.run([strip, "-o", stripped, program], check=True)
        byte_count = os.path.getsize(stripped)
        os.unlink(stripped)
        needed = re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", program]).stdout)
        print(f"{os.path.basename(program)}: {byte_count:,} bytes stripped, needs {' '.join(needed)}")
        if byte_count > most:
            raise Failed(f"expected at most {most:,} bytes")
        if "libc.so.6" not in needed or not all(MAY_NEED.fullmatch(library) for library in needed):
            raise Failed("expected libc, and libm and the loader at most")


# ---- calls that fail ----------------------------------------------------------------------------------------------------


def with_fault(program, emulator, failing, model, **fault):
    return run([program, model, "--prompt", "The rain had", "-n", "3", "--driver", failing[0]],
               {"LM_DRIVER": emulator, "LD_PRELOAD": failing[1], **{k: str(v) for k, v in fault.items()}})


def judge(what, got, answer):
    said = got.stderr
    if got.returncode < 0:
        raise Failed(f"{what}: ended by signal {-got.returncode}\n{got.stderr}")
    # kiln_close leaves modules of an unknown context loaded; destroying the context unloads them
    left = re.sub(", left: [0-9]+ of cuModuleLoadDataEx", "", said) if what.endswith(" cuCtxGetCurrent") else said
    if "left:" in left:
        raise Failed(f"{what}: something was not given back\n{got.stderr}")
    if got.returncode == 0:
        if got.stdout != answer:
            raise Failed(f"{what}: exit status 0 with another answer, {got.stdout!r}\n{got.stderr}")
    elif got.returncode != 1 or not re.search("^kiln-lm: .", said, re.M) or not answer.startswith(got.stdout.rstrip("\n")):
        raise Failed(f"{what}: exit status {got.returncode}, {got.stdout!r}\n{got.stderr}")
    return got.returncode


def failures(program, emulator, driver, heap, folder, extent):
    model = small_model(folder)
    whole = with_fault(program, emulator, (driver, heap), model, LM_LIST=1)
    calls = re.findall(r"^call (\d+) (\w+)$", whole.stderr, re.M)
    allocations = int(re.search(r"(\d+) allocations", whole.stderr)[1])
    if whole.returncode or "left:" in whole.stderr:
        raise Failed(f"without a fault: exit status {whole.returncode}\n{whole.stderr[-2000:]}")
    chosen = [(int(number), name) for number, name in calls]
    if extent == "some":
        first, last = {}, {}
        for number, name in chosen:
            first.setdefault(name, number)
            last[name] = number
        chosen = sorted({(number, name) for kind in (first, last) for name, number in kind.items()})
    refused = sum(judge(f"call {number}, {name}", with_fault(program, emulator, (driver, heap), model, LM_FAIL_CALL=number), whole.stdout)
                  for number, name in chosen)
    full = [(int(number), name) for number, name in calls if name == "cuMemAlloc_v2"]
    for number, name in full:
        got = with_fault(program, emulator, (driver, heap), model, LM_FAIL_CALL=number, LM_FAIL_CODE=2)
        if judge(f"call {number}, no memory", got, whole.stdout) != 1 or "has no room for" not in got.stderr:
            raise Failed(f"call {number}, no memory\n{got.stderr}")
    for number in range(1, allocations + 1):
        got = with_fault(program, emulator, (driver, heap), model, LM_FAIL_HEAP=number)
        if judge(f"allocation {number}", got, whole.stdout) != 1 or "memory" not in got.stderr:
            raise Failed(f"allocation {number}\n{got.stderr}")
    print(f"{len(chosen)} of {len(calls)} calls failed in turn, {refused} with a message, the others without harm; "
          f"{len(full)} times no memory on the device, {allocations} times none on the host")


# ---- an interrupt -------------------------------------------------------------------------------------------------------


def interrupt(program, emulator, _driver, _heap, folder, _extent):
    model = small_model(folder)
    with subprocess.Popen([program, model, "--prompt", "The rain", "-n", "100000", "--context", "0", "--driver", emulator],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.read(1)  # the first token is printed
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    if process.returncode != 130 or "interrupted" not in stderr or "per second" not in stderr or not stdout.endswith("\n"):
        raise Failed(f"exit status {process.returncode}\n{stdout[-300:]}\n{stderr}")
    print("ended after a token, with the statistics")


# ---- rates --------------------------------------------------------------------------------------------------------------

BENCH = {"device": str, "sm": int, "driver": str, "graphs": bool, "launches_per_token": int, "load_seconds": float, "prompt_tokens": int,
         "prompt_tokens_per_second": float, "answer_tokens": int, "answer_tokens_per_second": float, "memory_share": float,
         "ended": str, "tokens": list}


def bench(program, emulator, driver, heap, _folder, _extent):
    """--bench and --no-graphs: the output, equal tokens, and a graph launch per token or no graph at all."""
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "small.gguf"
        lm_model.make(small_header.small_header(), model)
        asked = [program, model, "--prompt", "hello hello", "-n", "12", "--bench"]
        rows = {}
        for more in ((), ("--no-graphs",), ("--temperature", "1", "--seed", "3"), ("--no-graphs", "--temperature", "1", "--seed", "3")):
            got = run([*asked, *more, "--driver", driver], {"LM_DRIVER": emulator, "LD_PRELOAD": heap, "LM_LIST": "1"})
            row = json.loads(got.stdout) if got.returncode == 0 else {}
            graph_calls = re.findall(r"^call \d+ (cuGraph\w+|cuStreamBeginCapture\w*)$", got.stderr, re.M)
            has_graph = "--no-graphs" not in more
            if {name: type(value) for name, value in row.items()} != BENCH or row["graphs"] != has_graph:
                raise Failed(f"{more}: exit status {got.returncode}, {got.stdout}{got.stderr[-1000:]}")
            if (graph_calls.count("cuGraphLaunch"), bool(graph_calls)) != (12 if has_graph else 0, has_graph):
                raise Failed(f"{more}: unexpected graph calls: {graph_calls}")
            rows[more] = row
        for row in rows.values():
            found = row["prompt_tokens"], row["answer_tokens"], row["launches_per_token"], row["ended"], len(set(row["tokens"])) > 3
            if found != (3, 12, 14, "as many as -n says", True):
                raise Failed(f"unexpected: {row}")
        first, plain, drawn, plain_drawn = (row["tokens"] for row in rows.values())
        if first != plain or drawn != plain_drawn or first == drawn:
            raise Failed(f"tokens differ with and without graphs: {rows}")
        alone = json.loads(run([*asked, "-n", "1", "--driver", emulator]).stdout)
        if any(alone.get(name, 0) is not None for name in ("answer_tokens_per_second", "memory_share")):
            raise Failed(f"-n 1: expected null for the answer's rate and its share of the memory's: {alone}")
        if any(not 0 < row["memory_share"] < 1 for row in rows.values()):
            raise Failed(f"expected shares between 0 and 1: {rows}")
        for more in [], ["--no-graphs"]:
            stop_bench([*asked, "-n", "100000", *more, "--driver", emulator])
    print(f"{len(rows)} runs; with and without graphs the same tokens")


def stop_bench(command):
    """An interrupt during the answer keeps the rates so far."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "KILN_EMU_CHECK": "none"}) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    row = json.loads(stdout or "{}")
    in_answer = row.get("ended") == "interrupted" and len(row["tokens"]) == row["answer_tokens"] < 100000
    if process.returncode != 130 or not (in_answer or stderr == "interrupted in the prompt\n"):
        raise Failed(f"interrupted: exit status {process.returncode}\n{stdout[-300:]}\n{stderr}")


# ---- main ---------------------------------------------------------------------------------------------------------------


CHECKS = {check.__name__: check
          for check in (refusals, models, spoilt, interrupt, failures, bench, logits, greedy, synthetic, layers, targets, size)}


def main(verb, *arguments):
    try:
        CHECKS[verb](*arguments)
    except Failed as failed:
        print(failed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
