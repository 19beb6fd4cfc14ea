#!/usr/bin/env python3
"""Makes GGUF models for the tests of kiln-lm.

usage: models_make.py again MODEL FOLDER [FORMAT...]     writes MODEL with its matrices in FORMAT, as FOLDER/FORMAT.gguf
       models_make.py small FOLDER [FORMAT...]           writes small llamas of random weights, as FOLDER/small_FORMAT[_head].gguf

FORMAT is a row of the table FORMATS; without one, all of them (`again`: those that the GGUF reference package makes). A small
model has two layers, 512 wide, 8 heads of 64 over 4 key heads, 512 tokens, and a tokenizer of SmolLM2's kind. With _head, it has
2 key heads and its own output matrix; otherwise the embedding is the output matrix. The weights are the same in every run.
"""
import pathlib
import sys

try:
    import gguf
    import numpy as np
except ImportError:
    print("skipped: python3 has no numpy and gguf")
    sys.exit(77)

# Offsets of a block's f16 factors, and the standard deviation of codes of random bits; None: the package quantises.
FORMATS = {"q4_0": None, "q4_1": None, "q5_0": None, "q5_1": None, "q8_0": None, "mxfp4": None, "q2_k": (80, 82),
           "q3_k": (108,), "q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,), "iq4_nl": (0,), "iq4_xs": (0,)}
EMBEDDING, FEED_FORWARD, LAYERS, HEADS, HEAD_DIM, VOCABULARY = 512, 768, 2, 8, 64, 512
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

# The small tokenizer learns its merges from this text.
TEXT = """The rain had stopped, and the streets of the town were still wet. There was nobody in the square but a man who sold
hot bread, and he was reading. What do you read? asked the child. It is the story of a ship, said the man, that went out to
the north with twenty sailors and came home with none. Where had they gone? They had found an island, and on the island a
house, and in the house a table with twenty chairs. The child thought about this for some time. Then she said that it must
have been a good house, and that she would have stayed there too. The man laughed and gave her the last of his bread. In the
morning, when 12 boats left the harbour, she walked along the shore with her brother and counted them: one, two, three, four.
"Which would you take?" he wanted to know. "The smallest, because it goes where large ships cannot," she answered; "but I'm
not going today. Don't wait for me, we'll travel next summer." Behind the hills some clouds were growing dark again, yellow
light fell between them, and both children hurried back before water could reach their shoes."""


def type_of(name):
    return gguf.GGMLQuantizationType[name.upper()]


def encode(matrix, kind):
    """Returns the matrix's bytes in this format; f32 stays f32."""
    return matrix if kind == gguf.GGMLQuantizationType.F32 else gguf.quants.quantize(matrix, kind)


# ---- a model in another format ------------------------------------------------------------------------------------------


def make_again(source, path, name):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key not in ("general.architecture", "general.file_type"):
            is_array = field.types[0] == gguf.GGUFValueType.ARRAY
            writer.add_key_value(key, field.contents(), field.types[0], field.types[-1] if is_array else None)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        kind = type_of(name) if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, encode(values, kind), raw_dtype=kind)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- small ones ---------------------------------------------------------------------------------------------------------


def random_blocks(random, rows, columns, kind, deviation):
    """Returns blocks of random bits. Factors give the elements this standard deviation, and a mean of 0 if the format has a
    minimum, by fitting the second factor."""
    length, size = gguf.GGML_QUANT_SIZES[kind]
    places = FORMATS[kind.name.lower()]
    blocks = random.integers(0, 256, (rows * columns // length, size), dtype=np.uint8)

    def decode(*factors):
        for place, factor in zip(places, factors):
            blocks[:, place:place + 2] = np.frombuffer(np.float16(factor).tobytes(), np.uint8)
        return gguf.quants.dequantize(blocks.reshape(rows, -1), kind)

    factors = [1.0]
    if len(places) == 2:
        factors.append(float(decode(1, 0).mean() / -decode(0, 1).mean()))
    scale = deviation / decode(*factors).std()
    spread = random.uniform(0.5, 1.5, len(blocks))
    for place, factor in zip(places, factors):
        blocks[:, place:place + 2] = (spread * scale * factor).astype("<f2").view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def random_matrix(random, rows, columns, name, gain=1.0):
    """Returns the bytes of a matrix that scales a vector's length by about the gain."""
    deviation = gain / np.sqrt(columns)
    if FORMATS[name] is None:
        return encode(random.normal(0, deviation, (rows, columns)).astype(np.float32), type_of(name))
    return random_blocks(random, rows, columns, type_of(name), deviation)


def byte_letters():
    """Returns GPT-2's letter for each byte: printable bytes stand for themselves, the others map to letters from U+0100 on."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    letters = {byte: chr(byte) for byte in own} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


def learn_merges(text, count):
    """Learns byte pair encoding with this many new tokens: the most frequent pair of neighbours first, ties in alphabetical
    order."""
    letters = byte_letters()
    words = [[letters[byte] for byte in word.encode()] for word in text.replace("\n", " ").replace(" ", "\n ").split("\n")]
    merges, made = [], set()
    while len(made) < count:
        pairs = {}
        for word in words:
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        made.add("".join(best))
        for word in words:
            at = 0
            while at + 1 < len(word):
                if (word[at], word[at + 1]) == best:
                    word[at:at + 2] = ["".join(best)]
                at += 1
    return merges


def add_tokenizer(writer):
    letters = byte_letters()
    merges = learn_merges(TEXT, VOCABULARY - len(SPECIAL) - len(letters))
    tokens = SPECIAL + letters + list(dict.fromkeys("".join(pair) for pair in merges))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * len(SPECIAL) + [gguf.TokenType.NORMAL] * (len(tokens) - len(SPECIAL)))
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)


def make_small(path, name, has_head):
    random = np.random.default_rng([*map(ord, name), has_head])
    key_heads = 2 if has_head else 4
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(f"small {name}")
    writer.add_block_count(LAYERS)
    writer.add_context_length(2048)
    writer.add_embedding_length(EMBEDDING)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(key_heads)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(10000.0 if has_head else 100000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    add_tokenizer(writer)

    def matrix(tensor, rows, columns, gain=1.0):
        writer.add_tensor(tensor, random_matrix(random, rows, columns, name, gain), raw_dtype=type_of(name))

    def norm(tensor):
        writer.add_tensor(tensor, random.uniform(0.5, 1.5, EMBEDDING).astype(np.float32))

    # Small embeddings, so that a wrong epsilon shows; large Q and K, so that attention prefers some tokens.
    matrix("token_embd.weight", VOCABULARY, EMBEDDING)
    for layer in range(LAYERS):
        norm(f"blk.{layer}.attn_norm.weight")
        matrix(f"blk.{layer}.attn_q.weight", HEADS * HEAD_DIM, EMBEDDING, 1.5)
        matrix(f"blk.{layer}.attn_k.weight", key_heads * HEAD_DIM, EMBEDDING, 1.5)
        matrix(f"blk.{layer}.attn_v.weight", key_heads * HEAD_DIM, EMBEDDING)
        matrix(f"blk.{layer}.attn_output.weight", EMBEDDING, HEADS * HEAD_DIM)
        norm(f"blk.{layer}.ffn_norm.weight")
        matrix(f"blk.{layer}.ffn_gate.weight", FEED_FORWARD, EMBEDDING)
        matrix(f"blk.{layer}.ffn_up.weight", FEED_FORWARD, EMBEDDING)
        matrix(f"blk.{layer}.ffn_down.weight", EMBEDDING, FEED_FORWARD)
    norm("output_norm.weight")
    if has_head:
        matrix("output.weight", VOCABULARY, EMBEDDING)
    finish(writer)


# ---- the program --------------------------------------------------------------------------------------------------------


def main():
    words = sys.argv[1:]
    verb = words.pop(0) if words else None
    if verb not in ("again", "small") or len(words) < (2 if verb == "again" else 1):
        sys.exit(__doc__)
    source = words.pop(0) if verb == "again" else None
    folder = pathlib.Path(words.pop(0))
    names = words or [name for name, places in FORMATS.items() if verb == "small" or places is None]
    for name in names:
        if name not in FORMATS or verb == "again" and FORMATS[name]:
            sys.exit(f"{name}: expected one of {', '.join(n for n, places in FORMATS.items() if verb == 'small' or not places)}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if verb == "again":
            make_again(source, folder / f"{name}.gguf", name)
            continue
        for has_head in (False, True):
            make_small(folder / f"small_{name}{'_head' * has_head}.gguf", name, has_head)


if __name__ == "__main__":
    main()
