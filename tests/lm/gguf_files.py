#!/usr/bin/env python3
"""Makes small GGUF files, valid and invalid, and tests the messages about the invalid ones.

usage: gguf_files.py valid FILE          writes one with a key of each type, three tensors and a tokenizer
       gguf_files.py all FOLDER          writes it, a small one and every wrong one: what fuzzing starts from
       gguf_files.py check PROGRAM       PROGRAM (tokenizer_encode) gives the message of each wrong one
"""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q", F64: "<d"}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, item):
    return string(item) if kind == STRING else struct.pack(FORMATS[kind], item)


def key(name, kind, item):
    return string(name) + struct.pack("<I", kind) + value(kind, item)


def array(name, kind, items, count=None):
    return (string(name) + struct.pack("<IIQ", ARRAY, kind, len(items) if count is None else count) +
            b"".join(value(kind, item) for item in items))


def tensor(name, dims, number, offset):
    return string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset)


def characters():
    """Returns GPT-2's table: the character for each byte."""
    plain = [b for b in range(256) if 0x21 <= b <= 0x7e or 0xa1 <= b <= 0xac or 0xae <= b]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + rest.index(b)) for b in range(256)]


KINDS = {"test.u8": (U8, 200), "test.i8": (I8, -3), "test.u16": (U16, 60000), "test.i16": (I16, -300), "test.u32": (U32, 70000),
         "test.i32": (I32, -70000), "test.f32": (F32, 0.5), "test.bool": (BOOL, 1), "test.string": (STRING, "na\u00efve"),
         "test.u64": (U64, 1 << 40), "test.i64": (I64, -(1 << 40)), "test.f64": (F64, 0.25)}
# The first 16 are control tokens if their types say so; then all bytes except 0xff; then merged tokens.
TEXTS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool>", "<tool>>", "<unused>"] + characters()[:255] + ["he", "ll", "hell",
         "hello", "\u0120hello", "<|fim_pad|>", "<|eot_id|>", "[EOS]", "<fim_prefix>", "<\uff5cend\u2581of\u2581sentence\uff5c>"]
TYPES = [3, 3, 3, 4, 4, 5] + [1] * (len(TEXTS) - 11) + [3, 4, 1, 3, 3]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 hello", "l l"]


class File:
    """Returns the parts of a valid file. A mistake changes some of them."""

    def __init__(self):
        self.magic, self.version = b"GGUF", 3
        self.alignment = 64
        self.keys = {"general.architecture": key("general.architecture", STRING, "llama"),
                     "general.alignment": key("general.alignment", U32, self.alignment)}
        self.keys |= {name: key(name, kind, item) for name, (kind, item) in KINDS.items()}
        self.keys["test.f32s"] = array("test.f32s", F32, [1.5, -2.0])
        self.keys["test.bools"] = array("test.bools", BOOL, [0, 1])
        self.keys["tokenizer.chat_template"] = key("tokenizer.chat_template", STRING, "{{ message }}")
        self.keys["test.none"] = array("test.none", STRING, [])
        self.set("model", key, STRING, "gpt2")
        self.set("pre", key, STRING, "smollm")
        self.set("tokens", array, STRING, TEXTS)
        self.set("token_type", array, I32, TYPES)
        self.set("merges", array, STRING, MERGES)
        self.set("bos_token_id", key, U32, 1)
        self.set("eos_token_id", key, U32, 2)
        self.set("fim_sep_token_id", key, U32, 4)
        self.set("add_bos_token", key, BOOL, 1)
        self.set("add_eos_token", key, BOOL, 1)
        self.tensors = {"a.weight": tensor("a.weight", [64, 2], 2, 0), "b.weight": tensor("b.weight", [256, 1, 1, 2], 14, 128),
                        "c.bias": tensor("c.bias", [3], 0, 576)}
        self.data = bytes(i % 251 for i in range(576 + 12))
        self.key_count = self.tensor_count = None

    def set(self, name, make, *rest):
        name = "tokenizer.ggml." + name
        self.keys[name] = make(name, *rest)

    def header(self):
        keys, tensors = list(self.keys.values()), list(self.tensors.values())
        counts = (len(tensors) if self.tensor_count is None else self.tensor_count,
                  len(keys) if self.key_count is None else self.key_count)
        return self.magic + struct.pack("<IQQ", self.version, *counts) + b"".join(keys + tensors)

    def bytes(self):
        header = self.header()
        return header + bytes(-len(header) % self.alignment) + self.data

    def before(self, name):
        """Returns the number of bytes before the key or tensor of this name."""
        return self.header().index(string(name))


def changed(**attributes):
    def change(file):
        for name, item in attributes.items():
            setattr(file, name, item)
    return change


def with_key(name, data):
    return lambda file: file.keys.update({name: data})


def with_tensor(name, *row):
    return lambda file: file.tensors.update({name: tensor(name, *row)})


def tokens(name, make, *rest):
    return lambda file: file.set(name, make, *rest)


def without(name):
    return lambda file: file.keys.__delitem__(name)


def cut(place):
    """Truncates the file: at an offset, or after some bytes of a key or tensor."""
    return lambda file: (file.bytes()[:place] if isinstance(place, int) else file.bytes()[:file.before(place[0]) + place[1]])


def patched(name, skip, data):
    """Changes bytes of a key or tensor."""
    def change(file):
        made, at = file.bytes(), file.before(name) + skip
        return made[:at] + data + made[at + len(data):]
    return change


def texts_with(index, text):
    return TEXTS[:index] + [text] + TEXTS[index + 1:]


NAME = len(string("general.alignment"))
K = "tokenizer.ggml."
# name: the change, and the message. Braces contain sums of offsets of keys and tensors in the valid file, numbers, and `size`,
# the wrong file's size. Additions follow the last key, where the valid file has a.weight, or the last tensor.
MISTAKES = {
    # the file
    "empty": (cut(0), "byte 0: expected 4 bytes of \"GGUF\", found the end of the file after 0"),
    "three_bytes": (cut(3), "byte 0: expected 4 bytes of \"GGUF\", found the end of the file after 3"),
    "magic": (changed(magic=b"GGML"), "byte 0: expected \"GGUF\", found bytes 47 47 4d 4c"),
    "version_cut": (cut(6), "byte 4: expected 4 bytes of the version, found the end of the file after 2"),
    "version_1": (changed(version=1), "byte 4: expected version 2 or 3, found 1"),
    "version_4": (changed(version=4), "byte 4: expected version 2 or 3, found 4"),
    "big_endian": (changed(version=3 << 24), "byte 4: expected a little-endian file, found a big-endian one"),
    "counts_cut": (cut(20), "byte 16: expected 8 bytes of the number of keys, found the end of the file after 4"),
    "tensor_count_cut": (cut(9), "byte 8: expected 8 bytes of the number of tensors, found the end of the file after 1"),
    "most_keys": (changed(key_count=(1 << 64) - 1),
                  "byte 16: expected at most the {size/14} keys that fit the file, found 18446744073709551615"),
    "most_tensors": (changed(tensor_count=1 << 63),
                     "byte 8: expected at most the {size/33} tensors that fit the file, found 9223372036854775808"),
    "one_key_more": (changed(key_count=30), "byte {a.weight+30}: expected 562949953421312 bytes of a key's name, "
                     "found the end of the file after {size-a.weight-30}"),
    # keys
    "key_length": (patched("test.u32", 0, b"\xff" * 8), "byte {test.u32+8}: expected 18446744073709551615 bytes of a key's name, "
                   "found the end of the file after {size-test.u32-8}"),
    "key_empty": (with_key("x", key("", U8, 1)), "byte {a.weight}: expected a key's name of 1 to 65535 bytes, found 0"),
    "key_long": (with_key("x", key("k" * 65536, U8, 1)), "byte {a.weight}: expected a key's name of 1 to 65535 bytes, found 65536"),
    "key_space": (patched("test.u32", 12, b" "), "byte {test.u32+12}: expected printable ASCII in a key's name, found byte 0x20"),
    "key_not_ascii": (patched("test.u32", 8, "\u00e9".encode()),
                      "byte {test.u32+8}: expected printable ASCII in a key's name, found byte 0xc3"),
    "key_not_utf8": (patched("test.u32", 8, b"\xc0\x80"), "byte {test.u32+8}: expected UTF-8 in a key's name, found byte 0xc0"),
    "key_twice": (with_key("x", key("test.u8", U8, 1)), "key 'test.u8': expected once, found twice"),
    "key_type": (patched("test.u32", 16, b"\x0d\0\0\0"), "key 'test.u32' at byte {test.u32}: expected a known type, found number 13"),
    "key_type_cut": (cut(("test.bools", 20)), "byte {test.bools+18}: expected 4 bytes of a key's type, found the end of the file after 2"),
    "value_cut": (cut((K + "bos_token_id", 40)),
                  "byte {tokenizer.ggml.bos_token_id+39}: expected 1 of type u32 in key 'tokenizer.ggml.bos_token_id', found the end of the file after 1 bytes"),
    "bool_2": (patched("test.bool", 21, b"\2"), "byte {test.bool+21}: expected a bool of 0 or 1 in key 'test.bool', found 2"),
    "bool_in_array": (with_key("test.bools", array("test.bools", BOOL, [1, 0, 7])),
                      "byte {test.bools+36}: expected a bool of 0 or 1 in key 'test.bools', found 7"),
    "string_length": (patched("test.string", 23, b"\0" * 7 + b"\x80"), "byte {test.string+31}: expected 9223372036854775808 bytes of "
                      "key 'test.string', found the end of the file after {size-test.string-31}"),
    "string_surrogate": (patched("test.string", 31, b"\xed\xa0\x80"),
                         "byte {test.string+31}: expected UTF-8 in key 'test.string', found byte 0xed"),
    "string_overlong": (patched("test.string", 31, b"\xe0\x80\x80"),
                        "byte {test.string+31}: expected UTF-8 in key 'test.string', found byte 0xe0"),
    "string_above": (patched("test.string", 31, b"\xf4\x90\x80\x80"),
                     "byte {test.string+31}: expected UTF-8 in key 'test.string', found byte 0xf4"),
    "string_cut_short": (patched("test.string", 36, b"\xc3"),
                         "byte {test.string+36}: expected UTF-8 in key 'test.string', found byte 0xc3"),
    "array_of_arrays": (with_key("x", array("x", ARRAY, [], 1)),
                        "key 'x' at byte {a.weight}: expected a known type of an array's items, found number 9 (array)"),
    "array_type": (with_key("x", array("x", 99, [], 0)),
                   "key 'x' at byte {a.weight}: expected a known type of an array's items, found number 99"),
    "array_count": (with_key("test.f32s", array("test.f32s", F32, [1.0], 1 << 62)),
                    "byte {test.f32s+33}: expected 4611686018427387904 of type f32 in key 'test.f32s', "
                    "found the end of the file after {size-test.f32s-33} bytes"),
    "array_count_wraps": (with_key("test.f32s", array("test.f32s", F32, [1.0], (1 << 62) + 1)),
                          "byte {test.f32s+33}: expected 4611686018427387905 of type f32 in key 'test.f32s', "
                          "found the end of the file after {size-test.f32s-33} bytes"),
    "array_cut": (cut(("test.f32s", 27)),
                  "byte {test.f32s+25}: expected 8 bytes of the length of an array, found the end of the file after 2"),
    "array_string": (with_key("x", array("x", STRING, ["ok", b"\xff"])), "byte {a.weight+43}: expected UTF-8 in key 'x', found byte 0xff"),
    "alignment_type": (with_key("general.alignment", key("general.alignment", U64, 64)),
                       "key 'general.alignment': expected u32, found u64"),
    "alignment_array": (with_key("general.alignment", array("general.alignment", U32, [64])),
                        "key 'general.alignment': expected u32, found an array of u32"),
    "alignment_0": (patched("general.alignment", NAME + 4, b"\0"),
                    "key 'general.alignment': expected a power of two of at least 8, found 0"),
    "alignment_48": (patched("general.alignment", NAME + 4, b"\x30"),
                     "key 'general.alignment': expected a power of two of at least 8, found 48"),
    # tensors
    "tensor_name_long": (with_tensor("t" * 65, [1], 0, 640), "byte {c.bias+38}: expected a tensor's name of 1 to 64 bytes, found 65"),
    "tensor_twice": (lambda file: (file.tensors.update(x=tensor("c.bias", [1], 0, 640)), changed(data=bytes(700))(file)),
                     "tensor 'c.bias': expected once, found twice"),
    "dims_0": (patched("c.bias", 14, b"\0"), "tensor 'c.bias': expected 1 to 4 dims, found 0"),
    "dims_5": (patched("c.bias", 14, b"\5"), "tensor 'c.bias': expected 1 to 4 dims, found 5"),
    "dim_is_0": (with_tensor("b.weight", [256, 0], 14, 128), "tensor 'b.weight': expected dims of at least 1, found dims[1] = 0"),
    "dims_cut": (cut(("c.bias", 20)), "byte {c.bias+18}: expected 8 bytes of a tensor's dims, found the end of the file after 2"),
    "offset_cut": (cut(("c.bias", 32)), "byte {c.bias+30}: expected 8 bytes of a tensor's offset, found the end of the file after 2"),
    "type_withdrawn": (with_tensor("b.weight", [256], 4, 128), "tensor 'b.weight': expected a type of ggml, found number 4"),
    "type_unknown": (with_tensor("b.weight", [256], 1 << 20, 128), "tensor 'b.weight': expected a type of ggml, found number 1048576"),
    "not_whole_blocks": (with_tensor("b.weight", [255], 14, 128),
                         "tensor 'b.weight': expected dims[0] to be a multiple of Q6_K's 256, found 255"),
    "too_many_bytes": (with_tensor("c.bias", [1 << 62, 4], 0, 576),
                       "tensor 'c.bias': expected 4611686018427387904 x 4 x 1 x 1 F32 to fit the file, found {size} bytes"),
    "product_wraps": (with_tensor("c.bias", [1 << 32, 1 << 16, 1 << 16, 1], 0, 576),
                      "tensor 'c.bias': expected 4294967296 x 65536 x 65536 x 1 F32 to fit the file, found {size} bytes"),
    "offset_unaligned": (with_tensor("c.bias", [3], 0, 577),
                         "tensor 'c.bias': expected an offset that is a multiple of 64, found 577"),
    "offset_beyond": (with_tensor("c.bias", [3], 0, 640),
                      "tensor 'c.bias': expected 12 bytes at offset 640 of the data, found the end of the file after 588 of the data"),
    "offset_wraps": (with_tensor("c.bias", [3], 0, (1 << 64) - 64),
                     "tensor 'c.bias': expected 12 bytes at offset 18446744073709551552 of the data, "
                     "found the end of the file after 588 of the data"),
    "one_byte_short": (lambda file: file.bytes()[:-1],
                       "tensor 'c.bias': expected 12 bytes at offset 576 of the data, found the end of the file after 587 of the data"),
    "no_data": (lambda file: file.header(),
                "tensor 'a.weight': expected 72 bytes at offset 0 of the data, found the end of the file after 0 of the data"),
    "overlap": (with_tensor("c.bias", [3], 0, 128),
                "tensor 'c.bias': expected bytes of its own, found 12 that are of tensor 'b.weight' too"),
    "overlap_inside": (with_tensor("b.weight", [256, 1, 1, 2], 14, 64),
                       "tensor 'b.weight': expected bytes of its own, found 8 that are of tensor 'a.weight' too"),
    # the tokenizer
    "tokenizer_model": (tokens("model", key, STRING, "llama"), "key 'tokenizer.ggml.model': expected 'gpt2', found 'llama'"),
    "tokenizer_pre": (tokens("pre", key, STRING, "qwen2"), "key 'tokenizer.ggml.pre': expected 'smollm', found 'qwen2'"),
    "tokenizer_no_pre": (without(K + "pre"), "key 'tokenizer.ggml.pre': expected string, found no such key"),
    "tokens_type": (tokens("tokens", array, I32, [1]), "key 'tokenizer.ggml.tokens': expected an array of string, found an array of i32"),
    "tokens_none": (tokens("tokens", array, STRING, []), "key 'tokenizer.ggml.tokens': expected 1 to 16777216, found 0"),
    "types_count": (tokens("token_type", array, I32, TYPES[1:]),
                    f"key 'tokenizer.ggml.token_type': expected as many as tokens, {len(TEXTS)}, found {len(TEXTS) - 1}"),
    "types_missing": (without(K + "token_type"), "key 'tokenizer.ggml.token_type': expected an array of i32, found no such key"),
    "token_twice": (tokens("tokens", array, STRING, texts_with(9, "!")), "token 39: expected a text of its own, found '!' of token 9"),
    "token_type_7": (tokens("token_type", array, I32, [7] + TYPES[1:]), "token 0: expected a type of 1 to 6, found 7"),
    "token_characters": (tokens("tokens", array, STRING, texts_with(40, "a b")),
                         "token 40: expected characters that stand for bytes, found 'a b'"),
    "token_line": (tokens("tokens", array, STRING, texts_with(40, "a\n\x1b[2J")),
                   "token 40: expected characters that stand for bytes, found 'a??[2J'"),
    "merges_missing": (without(K + "merges"), "key 'tokenizer.ggml.merges': expected an array of string, found no such key"),
    "merge_no_space": (tokens("merges", array, STRING, ["h e", "ll"]),
                       "merge 1: expected the texts of two tokens whose joint text is a token too, found 'll'"),
    "merge_no_product": (tokens("merges", array, STRING, ["e h"]),
                         "merge 0: expected the texts of two tokens whose joint text is a token too, found 'e h'"),
    "bos_type": (tokens("bos_token_id", key, I32, 1), "key 'tokenizer.ggml.bos_token_id': expected u32, found i32"),
    "eos_beyond": (tokens("eos_token_id", key, U32, 9999),
                   f"key 'tokenizer.ggml.eos_token_id': expected a token below {len(TEXTS)}, found 9999"),
    "bos_missing": (without(K + "bos_token_id"), "key 'tokenizer.ggml.bos_token_id': expected one beside "
                    "'tokenizer.ggml.add_bos_token', which is true, found no such key"),
    "add_bos_type": (tokens("add_bos_token", key, STRING, "yes"),
                     "key 'tokenizer.ggml.add_bos_token': expected bool, found string"),
}


def make(name):
    """Returns a wrong file's bytes."""
    file = File()
    made = MISTAKES[name][0](file)
    return made if isinstance(made, bytes) else file.bytes()


def message(expected, size):
    """Returns the message for a wrong file of this many bytes."""
    def number(match):
        words = re.split(r"([-+/])", match[1])
        numbers = [size if w == "size" else int(w) if w.isdigit() else File().before(w) for w in words[::2]]
        total = numbers[0]
        for sign, n in zip(words[1::2], numbers[1:]):
            total = total + n if sign == "+" else total - n if sign == "-" else total // n
        return str(total)
    return re.sub(r"\{(.*?)\}", number, expected)


def check(program):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "wrong.gguf")
        for name, (_, expected) in MISTAKES.items():
            path.write_bytes(make(name))
            expected = message(expected, path.stat().st_size)
            done = subprocess.run([program, path], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            found = done.stderr.removeprefix(f"{path}: ").rstrip("\n")
            if done.returncode != 1 or found != expected:
                print(f"{name}: expected exit 1 and\n  {expected}\nfound exit {done.returncode} and\n  {found}")
                wrong += 1
        for path, expected in ((folder, "expected a regular file, found a folder"),
                               ("/dev/null", "expected a regular file, found a pipe or device"),
                               (folder + "/none", "cannot be opened: No such file or directory")):
            done = subprocess.run([program, path], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if (done.returncode, done.stderr) != (1, f"{path}: {expected}\n"):
                print(f"{path}: expected '{expected}', found exit {done.returncode} and {done.stderr}")
                wrong += 1
    print(f"{len(MISTAKES) + 3} mistakes, {wrong} without their message")
    return wrong != 0


def small():
    """Returns a valid file of few bytes, for faster fuzzing."""
    file = File()
    file.alignment, file.keys = 32, {}
    file.set("model", key, STRING, "gpt2")
    file.set("pre", key, STRING, "smollm")
    file.set("tokens", array, STRING, ["<|im_end|>", "a", "b", "ab"])
    file.set("token_type", array, I32, [3, 1, 1, 1])
    file.set("merges", array, STRING, ["a b"])
    file.tensors, file.data = {"w": tensor("w", [2], 1, 0)}, b"abab"
    return file.bytes()


def write_all(folder):
    for name in MISTAKES:
        pathlib.Path(folder, name).write_bytes(make(name))
    pathlib.Path(folder, "valid").write_bytes(File().bytes())
    pathlib.Path(folder, "small").write_bytes(small())


def main():
    verb, place = sys.argv[1:3] if len(sys.argv) == 3 else ("", "")
    if verb == "valid":
        pathlib.Path(place).write_bytes(File().bytes())
    elif verb == "all":
        pathlib.Path(place).mkdir(exist_ok=True)
        write_all(place)
    elif verb == "check":
        sys.exit(check(place))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
