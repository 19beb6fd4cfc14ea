#!/usr/bin/env python3
"""Runs a GGUF model of architecture llama in float64, and writes the output of every layer.

usage: reference_llama.py MODEL --tokens FILE --out DIR [--type f64|f32] [--rounding NAMES] [--arithmetic f64|f32]

FILE has token ids separated by white space. DIR gets layer_00, layer_01, ... (the residual stream after each layer, [tokens,
embedding]), norm (the final norm's output) and logits ([tokens, vocabulary]), each raw and little-endian, with the type as its
suffix. It shares no code with kiln-lm: the GGUF reference package reads and decodes the file, NumPy multiplies.

--rounding rounds where a program on a GPU may: `none`, `lm` (like kiln-lm, one token at a time), `lm,activation=q8:20` (like
kiln-lm, the first 20 tokens together), `lm,activation=q8,head=q8` (bytes in every product), or points of the table POINTS below, such as `qkv=f16,stream=f32`. `--arithmetic f32` also multiplies and adds in float32, for lm_check.py's self-test.
"""
import argparse
import os
import pathlib
import re
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the same sums on every machine, and faster on a shared machine
try:
    import gguf
    import numpy as np
except ImportError:
    print("skipped: python3 has no numpy and gguf")
    sys.exit(77)

# Points where a program may round, and kiln-lm's type there.
POINTS = {
    "stream": "f32",  # the residual stream, after the embedding and after each of its two additions
    "activation": "f32",  # the input of each product of a layer; also half (f16), q8 (a byte each, with a scale for 32 neighbours)
                          # and q8:N (so for the first N tokens, f32 for the others)
    "head": "f32",  # the input of the last product
    "qkv": "f16",  # Q, K and V, the products' outputs
    "rotated": "f16",  # Q and K after RoPE
    "scores": "f16",  # attention's probabilities, relative to the largest so far, which depends on tiles
    "attention": "f16",  # attention's output
    "hidden": "f16",  # SwiGLU's output
}
MANTISSA_BITS = {"f16": 10, "f32": 23}
LEAST_EXPONENT = {"f16": -14, "f32": -126}


class Refused(Exception):
    pass


# ---- rounding ---------------------------------------------------------------------------------------------------------


def ulp_of(x, kind):
    """Returns this type's spacing at x; x's exponent is clamped to the type's normal range."""
    bits = MANTISSA_BITS[kind]
    finer = 2.0 ** (np.finfo(x.dtype).nmant - bits)
    return np.maximum(np.spacing(np.abs(x)) * finer, 2.0 ** (LEAST_EXPONENT[kind] - bits))


def q8_scale(x):
    """Returns absmax / 127 of each 32 neighbours."""
    return np.abs(x.reshape(-1, 32)).max(axis=1, keepdims=True).astype(np.float64) / 127


def round_q8(x):
    scale = q8_scale(x)
    codes = np.rint(x.reshape(-1, 32) / np.where(scale > 0, scale, 1))
    return (codes * scale.astype(np.float32)).astype(x.dtype).reshape(x.shape)


def q8_rows(kind, x):
    """Returns how many rows are rounded to bytes by q8 or q8:N."""
    return int(kind[3:] or len(x))


class Rounding:
    """Rounds to nearest at the given points. Without points it does nothing."""

    def __init__(self, points=None):
        self.points = points or {}

    def __call__(self, point, x):
        kind = self.points.get(point, "f64")
        if kind == "f64":
            return x
        if kind.startswith("q8"):
            count = q8_rows(kind, x)
            x = np.concatenate([round_q8(x[:count]), x[count:]])
            kind = "f32"
        return x.astype({"f16": np.float16, "f32": np.float32}[kind]).astype(x.dtype)


class Noise(Rounding):
    """Adds random rounding errors at these points, uniform over half an ulp each way."""

    def __init__(self, points, seed):
        super().__init__(points)
        self.random = np.random.default_rng(seed)

    def __call__(self, point, x):
        kind = self.points.get(point, "f64")
        if kind == "f64":
            return x
        draw = self.random.random(x.shape, x.dtype) - x.dtype.type(0.5)
        if kind.startswith("q8"):
            count = q8_rows(kind, x)
            steps = np.broadcast_to(q8_scale(x).astype(x.dtype), (x.size // 32, 32)).reshape(x.shape)
            return x + draw * np.concatenate([steps[:count], ulp_of(x[count:], "f32")])
        if point == "scores":
            draw = np.where(x == 1, 0, draw)  # the largest score's own probability is exact
        return x + draw * ulp_of(x, kind)


def parse_rounding(text):
    """Parses `none` or points: `lm` is all of POINTS, NAME=KIND is one of them."""
    points = {}
    for word in text.split(","):
        name, _, kind = word.partition("=")
        if word == "lm":
            points |= POINTS
        elif name in POINTS and (kind in MANTISSA_BITS or name in ("activation", "head") and re.fullmatch("q8(:[0-9]+)?", kind)):
            points[name] = kind
        elif word != "none":
            raise Refused(f"--rounding {word!r}: expected none, lm, or one of {', '.join(POINTS)} with =f16, =f32"
                          " (activation and head also =q8 and =q8:N)")
    return points


# ---- the file ---------------------------------------------------------------------------------------------------------


class Model:
    """The parameters of a GGUF file, and its matrices as [outputs, inputs]."""

    def __init__(self, path, dtype=np.float64):
        reader = gguf.GGUFReader(path)
        self.dtype = dtype
        self.keys = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("tokenizer.")}
        if self.keys["general.architecture"] != "llama":
            raise Refused(f"architecture {self.keys['general.architecture']!r}, expected llama")
        self.layers = self.get("block_count")
        self.embedding = self.get("embedding_length")
        self.heads = self.get("attention.head_count")
        self.key_heads = self.get("attention.head_count_kv", self.heads)
        self.head_dim = self.get("attention.key_length", self.embedding // self.heads)
        self.rope_dim = self.get("rope.dimension_count", self.head_dim)
        self.rope_base = self.get("rope.freq_base", 10000.0)
        scaling = self.get("rope.scaling.type", "linear")
        if scaling not in ("none", "linear"):
            raise Refused(f"positions scaled by {scaling}")
        self.rope_factor = 1 if scaling == "none" else self.get("rope.scaling.factor", self.get("rope.scale_linear", 1))
        self.epsilon = self.get("attention.layer_norm_rms_epsilon")
        if self.get("attention.value_length", self.head_dim) != self.head_dim:
            raise Refused("value heads that are not as wide as key heads")
        for key in ("expert_count", "attention.scale", "attention.sliding_window"):
            if self.get(key, "none") not in ("none", 0):
                raise Refused(f"the key llama.{key}")
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.decoded = {}
        unknown = self.tensors.keys() - set(self.names())
        if unknown:
            raise Refused("tensors that this reference does not know: " + ", ".join(sorted(unknown)))

    def get(self, key, default=None):
        value = self.keys.get("llama." + key, default)
        if value is None:
            raise Refused(f"no key llama.{key}")
        return value

    def names(self):
        parts = "attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate ffn_up ffn_down".split()
        return ["token_embd.weight", "output_norm.weight", "output.weight",
                *(f"blk.{layer}.{part}.weight" for layer in range(self.layers) for part in parts)]

    def weight(self, name):
        """Returns the tensor, decoded once and cached."""
        if name not in self.decoded:
            tensor = self.tensors[name + ".weight"]
            decoded = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            self.decoded[name] = decoded.reshape(tuple(reversed(tensor.shape.tolist()))).astype(self.dtype)
        return self.decoded[name]

    def head_name(self):
        return "output" if "output.weight" in self.tensors else "token_embd"

    def head(self):
        return self.weight(self.head_name())

    # ---- a run --------------------------------------------------------------------------------------------------------

    def run(self, tokens, rounding=Rounding(), cache=None):
        """Returns the stream after each layer, the final norm's output, and the logits of all tokens. A cache (initially an empty
        list) keeps K and V, so that a later call continues after these tokens."""
        position = cache[0][0].shape[0] if cache else 0
        stream = self.embed(tokens, rounding)
        streams = []
        for layer in range(self.layers):
            kept = None
            if cache is not None:
                if len(cache) == layer:
                    cache.append((np.zeros((0, self.key_heads, self.head_dim), self.dtype),) * 2)
                kept = cache[layer]
            stream, kept = self.layer(layer, stream, rounding, position, kept)
            if cache is not None:
                cache[layer] = kept
            streams.append(stream)
        normed = self.norm("output_norm", stream)
        return streams, normed, rounding("head", normed) @ self.head().T

    def embed(self, tokens, rounding=Rounding()):
        return rounding("stream", self.weight("token_embd")[np.asarray(tokens)])

    def layer(self, layer, stream, rounding=Rounding(), position=0, kept=None):
        """Returns the stream after this layer, and (K, V) of all tokens so far."""
        def weight(name):
            return self.weight(f"blk.{layer}.{name}")

        h = rounding("activation", self.norm(f"blk.{layer}.attn_norm", stream))
        q, k, v = (rounding("qkv", h @ weight(name).T).reshape(len(stream), -1, self.head_dim)
                   for name in ("attn_q", "attn_k", "attn_v"))
        q, k = (rounding("rotated", self.rotate(x, position)) for x in (q, k))
        if kept:
            k, v = (np.concatenate([old, new]) for old, new in zip(kept, (k, v)))
        o = rounding("attention", self.attend(q, k, v, position, rounding)).reshape(len(stream), -1)
        stream = rounding("stream", stream + rounding("activation", o) @ weight("attn_output").T)

        h = rounding("activation", self.norm(f"blk.{layer}.ffn_norm", stream))
        gate, up = h @ weight("ffn_gate").T, h @ weight("ffn_up").T
        hidden = rounding("hidden", gate / (1 + np.exp(-gate)) * up)
        return rounding("stream", stream + rounding("activation", hidden) @ weight("ffn_down").T), (k, v)

    def finish(self, stream, rounding=Rounding()):
        """Returns the logits of a stream after the last layer."""
        return rounding("head", self.norm("output_norm", stream)) @ self.head().T

    def norm(self, name, x):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.dtype(self.epsilon)) * self.weight(name)

    def rotate(self, x, position):
        """Applies RoPE to x[tokens, heads, head_dim]. In GGUF's llama files elements 2i and 2i + 1 of Q and K form a pair, which
        turns by position / factor * base^(-2i / rope_dim). Elements from rope_dim on stay unchanged."""
        count = self.rope_dim // 2
        at = np.arange(position, position + len(x), dtype=np.float64) / self.rope_factor
        angle = at[:, None] * self.rope_base ** (-2.0 * np.arange(count) / self.rope_dim)
        cos, sin = (f(angle).astype(self.dtype)[:, None, :] for f in (np.cos, np.sin))
        even, odd = x[..., 0:self.rope_dim:2], x[..., 1:self.rope_dim:2]
        turned = x.copy()
        turned[..., 0:self.rope_dim:2] = even * cos - odd * sin
        turned[..., 1:self.rope_dim:2] = even * sin + odd * cos
        return turned

    def key_head(self, head):
        """Repeats each key head for the neighbouring heads that share it."""
        return head // (self.heads // self.key_heads)

    def attend(self, q, k, v, position, rounding=Rounding()):
        """Returns softmax of q.k / sqrt(head_dim), over the tokens up to each token's own, times v."""
        is_later = np.arange(len(k))[None, :] > position + np.arange(len(q))[:, None]
        out = np.empty_like(q)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, self.key_head(head)].T / self.dtype(np.sqrt(self.head_dim))
            scores[is_later] = -np.inf
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, head] = rounding("scores", scores) @ v[:, self.key_head(head)] / scores.sum(axis=1, keepdims=True)
        return out


# ---- the program ------------------------------------------------------------------------------------------------------


def read_tokens(path):
    return [int(word) for word in pathlib.Path(path).read_text().split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--type", choices=("f64", "f32"), default="f64")
    parser.add_argument("--rounding", default="none")
    parser.add_argument("--arithmetic", choices=("f64", "f32"), default="f64")
    options = parser.parse_args()
    types = {"f64": np.float64, "f32": np.float32}
    try:
        model = Model(options.model, types[options.arithmetic])
        streams, normed, logits = model.run(read_tokens(options.tokens), Rounding(parse_rounding(options.rounding)))
    except Refused as refused:
        sys.exit(f"{options.model}: {refused}")
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    named = {f"layer_{layer:02}": stream for layer, stream in enumerate(streams)} | {"norm": normed, "logits": logits}
    for name, values in named.items():
        values.astype("<" + options.type[0] + str(int(options.type[1:]) // 8)).tofile(out / f"{name}.{options.type}")


if __name__ == "__main__":
    main()
