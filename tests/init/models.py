"""Makes model files for the tests of `kiln init`: GGUF headers of several architectures with zero tensors, and config.json files.

usage: models.py FOLDER    writes small files and mutants of them

Sizes are those of real models where possible. Layers are few, and the tensors are a hole in the file.
"""
import json
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lm"))
from gguf_files import BOOL, F32, STRING, U32, key, tensor  # noqa: E402

# number, elements and bytes of a block; source: ggml-common.h
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22), "q5_1": (7, 32, 24),
         "q8_0": (8, 32, 34), "q8_1": (9, 32, 36), "q2_k": (10, 256, 84), "q3_k": (11, 256, 110), "q4_k": (12, 256, 144),
         "q5_k": (13, 256, 176), "q6_k": (14, 256, 210), "q8_k": (15, 256, 292), "iq2_xxs": (16, 256, 66), "iq2_xs": (17, 256, 74),
         "iq3_xxs": (18, 256, 98), "iq1_s": (19, 256, 50), "iq4_nl": (20, 32, 18), "iq3_s": (21, 256, 110), "iq2_s": (22, 256, 82),
         "iq4_xs": (23, 256, 136), "i8": (24, 1, 1), "i16": (25, 1, 2), "i32": (26, 1, 4), "i64": (27, 1, 8), "f64": (28, 1, 8),
         "iq1_m": (29, 256, 56), "bf16": (30, 1, 2), "tq1_0": (34, 256, 54), "tq2_0": (35, 256, 66), "mxfp4": (39, 32, 17),
         "nvfp4": (40, 64, 36), "q1_0": (41, 128, 18)}
ALIGNMENT = 32


def write(path, keys, tensors):
    """keys: {name: value}; tensors: {name: (format, columns, rows...)}."""
    kinds = {bool: BOOL, int: U32, float: F32, str: STRING}
    rows, at = [], 0
    for name, (kind, *dims) in tensors.items():
        number, elements, block = TYPES[kind]
        size = dims[0] // elements * block
        for dim in dims[1:]:
            size *= dim
        rows.append(tensor(name, dims, number, at))
        at += -(-size // ALIGNMENT) * ALIGNMENT
    header = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(keys))
    header += b"".join(key(name, kinds[type(item)], item) for name, item in keys.items()) + b"".join(rows)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(-(-len(header) // ALIGNMENT) * ALIGNMENT + at)


def decoder(architecture, width, heads, kv_heads, head_dim, hidden, vocabulary, layers, formats, **more):
    """Returns a decoder with GGUF's names. `formats`: of "embedding", "head" and roles, by role or (role, layer); "all" for the rest.
    `more`: bias, head_norm, post_norm, layer_norm; keys: those that not every model has; fused, no_gate, experts."""
    prefix = architecture + "."
    norm = "layer_norm_epsilon" if more.get("layer_norm") else "layer_norm_rms_epsilon"
    keys = {"general.architecture": architecture, prefix + "block_count": layers, prefix + "context_length": more.get("context", 4096),
            prefix + "embedding_length": width, prefix + "feed_forward_length": hidden, prefix + "attention.head_count": heads,
            prefix + "attention.head_count_kv": kv_heads, prefix + "attention." + norm: 1e-6, prefix + "rope.freq_base": 1e6}
    if head_dim * heads != width:
        keys |= {prefix + "attention.key_length": head_dim, prefix + "attention.value_length": head_dim}
    keys |= {prefix + name: item for name, item in more.get("keys", {}).items()}
    tensors = {"token_embd.weight": (formats.get("embedding", formats["all"]), width, vocabulary), "output_norm.weight": ("f32", width)}
    if "head" in formats:
        tensors["output.weight"] = (formats["head"], width, vocabulary)
    q, kv = heads * head_dim, kv_heads * head_dim
    matrices = {"attn_q": (width, q), "attn_k": (width, kv), "attn_v": (width, kv), "attn_output": (q, width)}
    if more.get("fused"):
        matrices = {"attn_qkv": (width, q + 2 * kv), "attn_output": (q, width), "ffn_up": (width, 2 * hidden), "ffn_down": (hidden, width)}
    elif more.get("no_gate"):
        matrices |= {"ffn_up": (width, hidden), "ffn_down": (hidden, width)}
    elif not more.get("experts"):
        matrices |= {"ffn_gate": (width, hidden), "ffn_up": (width, hidden), "ffn_down": (hidden, width)}
    for layer in range(layers):
        block = f"blk.{layer}."
        for role, dims in matrices.items():
            tensors[block + role + ".weight"] = (formats.get((role, layer), formats.get(role, formats["all"])), *dims)
            if role in more.get("bias", ()):
                tensors[block + role + ".bias"] = ("f32", dims[1])
        norms = ["attn_norm"] + ["ffn_norm"] * (not more.get("parallel"))
        norms += ["post_attention_norm", "post_ffw_norm"] * bool(more.get("post_norm"))
        for name in norms:
            tensors[block + name + ".weight"] = ("f32", width)
            if more.get("layer_norm"):
                tensors[block + name + ".bias"] = ("f32", width)
        if more.get("head_norm"):
            tensors |= {block + f"attn_{x}_norm.weight": ("f32", head_dim) for x in "qk"}
        if more.get("experts"):
            count = more["experts"]
            tensors[block + "ffn_gate_inp.weight"] = ("f32", width, count)
            for role, dims in (("gate", (width, hidden)), ("up", (width, hidden)), ("down", (hidden, width))):
                tensors[block + f"ffn_{role}_exps.weight"] = (formats["all"], *dims, count)
    return keys, tensors


Q4_K_M = {"all": "q4_k", "head": "q6_k", ("attn_v", 0): "q6_k", ("ffn_down", 0): "q6_k"}
GGUF = {
    # Llama 3.2 1B's sizes; llama-quantize's mixture
    "llama": decoder("llama", 2048, 32, 8, 64, 8192, 128256, 2, Q4_K_M, context=131072),
    "qwen2": decoder("qwen2", 896, 14, 2, 64, 4864, 151936, 2, {"all": "q8_0"}, bias=("attn_q", "attn_k", "attn_v")),
    "qwen3": decoder("qwen3", 1024, 16, 8, 128, 3072, 151936, 2, {"all": "q5_k", "embedding": "q6_k"}, head_norm=True),
    "gemma2": decoder("gemma2", 2304, 8, 4, 256, 9216, 256000, 2, {"all": "q4_0"}, post_norm=True,
                      keys={"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "attention.sliding_window": 4096}),
    "phi3": decoder("phi3", 3072, 32, 32, 96, 8192, 32064, 2, {"all": "iq4_xs", "head": "q6_k"}, fused=True),
    "phi2": decoder("phi2", 2560, 32, 32, 80, 10240, 51200, 1, {"all": "q8_0", "head": "f16"}, no_gate=True, layer_norm=True,
                    parallel=True, bias=("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"),
                    keys={"rope.dimension_count": 32}),
    "mixtral": decoder("llama", 4096, 32, 8, 128, 14336, 32000, 1, {"all": "q3_k", "attn_output": "iq3_s"}, experts=2,
                       keys={"expert_count": 8, "expert_used_count": 2}),
    "odd": decoder("tomorrow", 640, 5, 5, 128, 1280, 4096, 1, {"all": "mxfp4", "embedding": "q8_1"},
                   keys={"odd_scale": 0.125}),
}
LLAMA_JSON = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
              "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000,
              "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "rope_scaling": None, "hidden_act": "silu",
              "torch_dtype": "bfloat16", "tie_word_embeddings": False}
QWEN2_JSON = LLAMA_JSON | {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "sliding_window": 32768,
                           "use_sliding_window": False}
JSON = {  # name: (the file's content, the value of --format)
    "llama_q4_k": (LLAMA_JSON, "q4_k"),
    "qwen2_nf4": (QWEN2_JSON | {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True,
                                                        "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}}, None),
    "llama_nvfp4": (LLAMA_JSON | {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, None),
    # Gemma 2 27B: attention's scale does not follow from head_dim
    "gemma2_q4_0": (LLAMA_JSON | {"model_type": "gemma2", "hidden_size": 4608, "num_attention_heads": 32, "num_key_value_heads": 16,
                                  "num_hidden_layers": 2, "head_dim": 128, "query_pre_attn_scalar": 144, "sliding_window": 4096,
                                  "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "hidden_act": "gelu"}, "q4_0"),
    "gpt_oss_mxfp4": (LLAMA_JSON | {"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
                                    "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32, "experts_per_token": 4,
                                    "swiglu_limit": 7.0, "attention_bias": True, "sliding_window": 128,
                                    "layer_types": ["sliding_attention", "full_attention"],
                                    "rope_scaling": {"rope_type": "yarn", "factor": 32.0}, "quantization_config": {
                                        "quant_method": "mxfp4", "modules_to_not_convert": [
                                            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}, None),
    "granite_q4_0": (LLAMA_JSON | {"model_type": "granite", "attention_multiplier": 0.015625, "embedding_multiplier": 12.0,
                                   "residual_multiplier": 0.22, "logits_scaling": 8.0, "rope_theta": None,
                                   "rope_parameters": {"rope_type": "llama3", "rope_theta": 5000000.0}}, "q4_0"),
    "deepseek_v2_q4_0": (LLAMA_JSON | {"model_type": "deepseek_v2", "num_hidden_layers": 3, "num_attention_heads": 16,
                                       "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128,
                                       "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2,
                                       "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "moe_layer_freq": 1}, "q4_0"),
    "olmo2_q8_0": (LLAMA_JSON | {"model_type": "olmo2"}, "q8_0"),
    "glm4_q8_0": (LLAMA_JSON | {"model_type": "glm4", "attention_bias": True, "partial_rotary_factor": 0.5}, "q8_0"),
    # an unquantised module of each kind, and keys that kiln does not know
    "llama_nvfp4_ignore": (LLAMA_JSON | {"num_hidden_layers": 3, "later": [1, 2], "factor": 0.5, "quantization_config": {
        "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "ignore": [
            "lm_head", "re:.*self_attn.*", "model.layers.0.mlp.down_proj", "model.layers.2", "other"]}}, None),
    "ffn300_q4_0": (LLAMA_JSON | {"intermediate_size": 300}, "q4_0"),
    "llama_gptq": (LLAMA_JSON | {"quantization_config": {"quant_method": "gptq", "bits": 4}}, None),
    "llama_awq": (LLAMA_JSON | {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}, None),
}


def make(folder, name):
    """Returns the file's path and its options."""
    folder = pathlib.Path(folder)
    if name in GGUF:
        path = folder / f"{name}.gguf"
        write(path, *GGUF[name])
        return path, []
    says, asked = JSON[name]
    path = folder / name / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(says, indent=2))
    return path, ["--format", asked] if asked else []


TINY = {"all": "q4_0", "embedding": "q8_0"}
SMALL = {
    "plain": decoder("llama", 64, 2, 1, 32, 64, 64, 1, TINY),
    "biased": decoder("qwen2", 64, 2, 1, 32, 64, 64, 2, TINY | {("attn_v", 1): "q4_1"}, bias=("attn_q", "attn_k", "attn_v", "ffn_down")),
    "normed": decoder("gemma2", 64, 2, 2, 64, 64, 64, 1, TINY, post_norm=True, head_norm=True, keys={"attn_logit_softcapping": 50.0}),
    "fused": decoder("phi3", 64, 4, 4, 16, 64, 64, 1, TINY | {"head": "f16"}, fused=True),
    "shifted": decoder("phi2", 64, 4, 4, 16, 64, 64, 1, TINY, no_gate=True, layer_norm=True, parallel=True),
}


def write_mutants(folder):
    """Writes the seeds of fuzzing: small files, and copies with a few changed bytes in the header."""
    folder, draw = pathlib.Path(folder), random.Random(1)
    folder.mkdir(exist_ok=True)
    for name, (keys, tensors) in SMALL.items():
        path = folder / name
        write(path, keys, tensors)
        whole = path.read_bytes()
        end = whole.rindex(b"weight") + 30
        for number in range(4):
            changed = bytearray(whole)
            for _ in range(draw.randrange(1, 4)):
                at = draw.randrange(24, end)
                changed[at] = draw.choice((0, 1, changed[at] ^ 1 << draw.randrange(8), 255))
            (folder / f"{name}.{number}").write_bytes(changed)
    for name, (says, _) in JSON.items():
        text = json.dumps(says)
        (folder / f"{name}.json").write_text(text)
        (folder / f"{name}.cut.json").write_text(text.replace("2048", draw.choice(("0", "null", "99999999999", "[1]", "-3", "\"a\"")), 1))


if __name__ == "__main__":
    write_mutants(sys.argv[1])
