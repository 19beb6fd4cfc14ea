"""Makes the header of a small llama without the GGUF package: SmolLM2's formats and head size, two layers."""
import gguf_files
from gguf_files import F32, STRING, U32

WIDTH, HIDDEN, LAYERS, HEADS, KEY_HEADS, HEAD_SIZE = 256, 512, 2, 4, 2, 64
FORMAT_F32, FORMAT_Q4_1, FORMAT_Q8_0 = (0, 4, 1), (3, 20, 32), (8, 34, 32)  # number of the type, bytes and elements of a block
KEYS = (("general.architecture", STRING, "llama"), ("llama.block_count", U32, LAYERS), ("llama.context_length", U32, 2048),
        ("llama.embedding_length", U32, WIDTH), ("llama.feed_forward_length", U32, HIDDEN), ("llama.attention.head_count", U32, HEADS),
        ("llama.attention.head_count_kv", U32, KEY_HEADS), ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        ("llama.rope.freq_base", F32, 10000.0))


def tensors():
    """Returns (name, dims, format), in the order of the file."""
    yield "token_embd.weight", [WIDTH, len(gguf_files.TEXTS)], FORMAT_Q8_0
    yield "output_norm.weight", [WIDTH], FORMAT_F32
    yield "output.weight", [WIDTH, len(gguf_files.TEXTS)], FORMAT_Q8_0
    for layer in range(LAYERS):
        for name, dims in (("attn_norm", [WIDTH]), ("attn_q", [WIDTH, HEADS * HEAD_SIZE]), ("attn_k", [WIDTH, KEY_HEADS * HEAD_SIZE]),
                           ("attn_v", [WIDTH, KEY_HEADS * HEAD_SIZE]), ("attn_output", [HEADS * HEAD_SIZE, WIDTH]),
                           ("ffn_norm", [WIDTH]), ("ffn_gate", [WIDTH, HIDDEN]), ("ffn_up", [WIDTH, HIDDEN]),
                           ("ffn_down", [HIDDEN, WIDTH])):
            yield f"blk.{layer}.{name}.weight", dims, FORMAT_F32 if len(dims) == 1 else FORMAT_Q4_1


def small_header():
    file = gguf_files.File()  # keeps its tokenizer and unusual keys
    file.keys |= {name: gguf_files.key(name, kind, value) for name, kind, value in KEYS}
    file.set("add_eos_token", gguf_files.key, gguf_files.BOOL, 0)
    file.tensors, at = {}, 0
    for name, dims, (number, size, elements) in tensors():
        file.tensors[name] = gguf_files.tensor(name, dims, number, at)
        at += -(-dims[0] * (dims[1] if len(dims) > 1 else 1) // elements * size // file.alignment) * file.alignment
    file.data = b""
    return file.bytes()
