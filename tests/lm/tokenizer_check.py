#!/usr/bin/env python3
"""Compares the tokenizer with llama.cpp on the real model's vocabulary: 200 texts, also in the chat template, 10,000 random
strings and 1,000 random byte strings.

usage: tokenizer_check.py check PROGRAM GOLDEN     PROGRAM (tokenizer_encode) gives llama.cpp's tokens
       tokenizer_check.py rebase GOLDEN            writes llama.cpp's tokens to GOLDEN; needs PyPI's xllamacpp, gguf
                                                   and jinja2
       tokenizer_check.py compare PROGRAM          compares both on other random strings and on each single code point

The model is KILN_MODEL, or SHA256.gguf in ${XDG_CACHE_HOME:-~/.cache}/kiln. Exits 77 if it is missing.
"""
import ctypes
import hashlib
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

PREPARE = pathlib.Path(__file__).resolve().parents[2] / "tools/prepare.sh"  # downloads SmolLM2-135M-Instruct in Q4_1
MODEL = re.search(r"^model_sha256=(\w+)", PREPARE.read_text(), re.M)[1]
SKIPPED = 77
STRINGS, BYTE_STRINGS, GROUP = 10000, 1000, 100  # strings per line of the golden file

PASSAGES = r"""
Hello, world!
What is the capital of France?
The quick brown fox jumps over the lazy dog.
I'm sure they've said we'll go, but he'd rather not; it's what you're told, isn't it?
I'M SURE THEY'VE SAID WE'LL GO, IT'S WHAT YOU'RE TOLD
'tis the season, rock 'n' roll, the '90s, dogs' tails, 'sand 'tree 'dog 'many 'verse 'relay 'llama
It\u2019s what they\u2019ve said: \u201cwe\u2019ll see\u201d \u2014 or so\u2026
In 1969, 2 people walked on the Moon; 650,000,000 watched. That is 3.14159 or 1e-9 or 0x7fff or 12th.
x1 y22 z333 4a 55b 666c 7_8 9-10 11/12 13:14 1,234,567.89
\u0661\u0662\u0663 \u096a\u096b \uff11\uff12 \u00bd \u00b2 \u2167 \u3289 \U0001d7d8 \U00010107
int main(void)\n{\n    for (int i = 0; i < 10; i++)\n        printf("%d\\n", i);\n    return 0;\n}\n
def f(x):\n\tif x > 0:\n\t\treturn {'a': [1, 2], "b": None}\n\treturn lambda y: x ** y  # why?\n
{"name": "kiln", "sizes": [1, 22, 333], "ok": true, "nested": {"a": null}}\n
<html>\n  <body class="a b">&amp; &lt;p&gt;</body>\n</html>
SELECT a.id, COUNT(*) FROM t1 AS a WHERE a.x >= 10 GROUP BY 1;
.visible .entry k(.param .u64 p) { ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16]; }
https://example.org/a/b?c=d&e=%20f#g user.name+tag@example.org C:\\Users\\x ~/.cache/y
# Title\n\n* one\n* two\n    * three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```c\nx;\n```\n
a\nb\r\nc\rd\n\ne\n\n\nf\n \n  \n\tg\n\t\n
   three before, three after   
one  two   three    four     five      six
\t\t\ttabs\tand  \t mixed \t  spaces\t
 
  
\n
\n\n\n
 \n \n
\r\n\r\n
a\u00a0b\u00a0\u00a0c \u00a0 d\u2003e\u2009f\u3000g\u2028h\u2029i\u0085j\u1680k\u200bl\ufeffm
Stra\u00dfe, na\u00efve caf\u00e9, \u00c5ngstr\u00f6m, \u00d8, \u0153uvre, \u0142\u00f3d\u017a, \u010desk\u00fd, \u011f\u0131\u015f
e\u0301 a\u030a o\u0308 n\u0303 c\u0327 \u1e9b\u0323 Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d
Welches Buch liest du gerade, und wor\u00fcber schreibst du \u00fcbermorgen?
O\u00f9 est la biblioth\u00e8que ? J\u2019y vais \u00e0 l\u2019aube\u00a0; \u00ab d\u2019accord \u00bb.
\u00bfD\u00f3nde est\u00e1 el ni\u00f1o? \u00a1Ah\u00ed! Ma\u00f1ana ser\u00e1 otro d\u00eda.
\u041f\u0440\u0438\u0432\u0435\u0442, \u043a\u0430\u043a \u0434\u0435\u043b\u0430? \u0421\u044a\u0435\u0448\u044c \u0435\u0449\u0451 12 \u0431\u0443\u043b\u043e\u043a.
\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ba\u03cc\u03c3\u03bc\u03b5, \u03c0\u03ce\u03c2 \u03b5\u03af\u03c3\u03b1\u03b9;
\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0643\u064a\u0641 \u0627\u0644\u062d\u0627\u0644\u061f \u0663\u0664\u0665
\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd, \u05de\u05d4 \u05e9\u05dc\u05d5\u05de\u05da?
\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e, \u0906\u092a \u0915\u0948\u0938\u0947 \u0939\u0948\u0902?
\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01
\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u662f2026\u5e7411\u670823\u65e5\u3002
\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\u3068\u6f22\u5b57\u3068\u3072\u3089\u304c\u306a\u3002
\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4, 3\uc2dc\uc5d0 \ub9cc\ub098\uc694.
Xin ch\u00e0o th\u1ebf gi\u1edbi, h\u00f4m nay tr\u1eddi \u0111\u1eb9p qu\u00e1!
\U0001f600\U0001f680 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 \u2764\ufe0f \U0001f44d\U0001f3fd \u2705\u274c
\u2200x\u2208\u211d: x\u00b2\u22650 \u2234 \u221a2 \u2248 1.414 \u2192 \u221e \u00b1 \u2211 \u222b \u2260 \u03c0
$100 \u20ac50 \u00a330 \u00a520 100% 5\u00b0C \u00a7 4 \u00b6 2 \u00a9 \u2122 \u2116 7
!@#$%^&*()_+-=[]{}|;':",./<>?`~
!!! ??? ... --- *** === ### >>> <<< ((( ))) ,,, ;;;
a.b,c;d:e!f?g(h)i[j]k{l}m<n>o"p'q`r~s^t&u*v+w-x=y/z|\\
<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n
<|im_start|>user\nHow are you?<|im_end|>\n<|im_start|>assistant\n
<|endoftext|><|endoftext|> <|im_end|>x<|im_start|>
<|im_start|<|im_end|>|> <|im_end|im_end|> <|IM_END|> <| im_end |> <|im_end|
<repo_name>a/b<file_sep>x.py<reponame><gh_stars>100<jupyter_code>1<empty_output><issue_closed>
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
abababababababababababababababababababababababababababababababababababababababababababababababab
supercalifragilisticexpialidocious pneumonoultramicroscopicsilicovolcanoconiosis antidisestablishmentarianism
CamelCaseWordsAndHTTPServerNames snake_case_words_and_more kebab-case-words SCREAMING_SNAKE_CASE
                                                                                                   x
________________________________________________________________________________
\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\u000b\u000c\u000e\u001b\u007f
\ue000\uf8ff\U000f0000\U0010fffd \ufffe\uffff \u0378 \U0001fffe
"""

# Blocks that random code points are drawn from, so that each general category occurs often.
BLOCKS = [(0x20, 0x7e)] * 6 + [
    (0x30, 0x39), (0x00, 0x1f), (0x80, 0xff), (0x100, 0x24f), (0x1c4, 0x1cc), (0x1f88, 0x1faf), (0x2b0, 0x36f), (0x370, 0x52f),
    (0x590, 0x6ff), (0x900, 0xdff), (0xe00, 0x10ff), (0x1680, 0x1680), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2070, 0x209f),
    (0x20a0, 0x23ff), (0x2460, 0x24ff), (0x2e80, 0x30ff), (0x3000, 0x3001), (0x3200, 0x33ff), (0x4e00, 0x9fff), (0xa000, 0xa9ff),
    (0xac00, 0xd7af), (0xd800, 0xdfff), (0xe000, 0xf8ff), (0xf900, 0xffff), (0x10000, 0x107ff), (0x11000, 0x12fff),
    (0x16800, 0x1b2ff), (0x1d000, 0x1d7ff), (0x1e000, 0x1efff), (0x1f000, 0x1faff), (0x20000, 0x323af), (0xe0000, 0xe01ef),
    (0xf0000, 0x10ffff), (0, 0x10ffff)]
PIECES = [" ", "  ", "\n", "'s", "'ll", "'", "0", "12", "the", " and", "<|im_end|>", "<|im_", "|>"]


def texts():
    """Returns 200 texts: the passages, then two or three passages joined by a random separator."""
    passages = [eval("'" + line.replace("'", "\\'") + "'") for line in PASSAGES.split("\n")[1:-1]]
    draw = random.Random(1)
    made = list(passages)
    while len(made) < 200:
        made.append(pick(draw, ["", " ", "\n", "\n\n", ". "]).join(pick(draw, passages) for _ in range(2 + len(made) % 2)))
    return [text.encode() for text in made]


def pick(draw, items):
    """Like Random.choice, which gives other results in other versions of Python."""
    return items[int(draw.random() * len(items))]


def drawn_string(draw):
    """Returns code points of all categories, including surrogates, mixed with pieces that the pattern matches."""
    parts = []
    for _ in range(1 + int(draw.random() * 40)):
        first, last = pick(draw, BLOCKS)
        piece = pick(draw, PIECES) if draw.random() < 0.2 else chr(first + int(draw.random() * (last - first + 1)))
        parts.append(piece)
    return "".join(parts).encode("utf-8", "surrogatepass")


def drawn_bytes(draw):
    """Returns random bytes; in half of the strings, half of the bytes are parts of characters. A lead byte for code points above
    U+10FFFF, at which llama.cpp aborts, has no continuation byte after it."""
    data, mixed = bytearray(), draw.random() < 0.5
    for _ in range(1 + int(draw.random() * 60)):
        byte = int(draw.random() * 256)
        if mixed and draw.random() < 0.5:
            byte = pick(draw, [0x80, 0xbf, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0xed, 0xa0, 0xc0, 0xe0, 0x20])
        if data and data[-1] >= 0xf4 and data[-1] < 0xf8:
            byte &= 0x7f
        data.append(byte)
    return bytes(data)


def cases(seed):
    """Yields (name, texts) for each line of the golden file."""
    draw = random.Random(seed)
    strings = [drawn_string(draw) for _ in range(STRINGS)]
    byte_strings = [drawn_bytes(draw) for _ in range(BYTE_STRINGS)]
    yield from ((f"text {i}", [text]) for i, text in enumerate(texts()))
    for name, items in (("strings", strings), ("bytes", byte_strings)):
        yield from ((f"{name} {i}", items[i:i + GROUP]) for i in range(0, len(items), GROUP))


def chat_texts():
    """Returns the texts without NUL."""
    return [text for text in texts() if b"\0" not in text]


def model():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "kiln", MODEL + ".gguf")
    path = pathlib.Path(os.environ.get("KILN_MODEL") or cache)
    if not path.exists():
        print(f"SKIPPED: the model is not at {path}")
        sys.exit(SKIPPED)
    if hashlib.sha256(path.read_bytes()).hexdigest() != MODEL:
        print(f"SKIPPED: {path} is another file than that of SHA-256 {MODEL}")
        sys.exit(SKIPPED)
    return path


def encode(program, path, items, *chat):
    """Returns our program's tokens."""
    framed = b"".join(struct.pack("<I", len(text)) + text for text in items)
    out = subprocess.run([program, path, *chat], input=framed, stdout=subprocess.PIPE, check=True).stdout
    at, tokens = 0, []
    for _ in items:
        count, = struct.unpack_from("<I", out, at)
        tokens.append(struct.unpack_from(f"<{count}i", out, at + 4))
        at += 4 + 4 * count
    return tokens


class LlamaCpp:
    """llama.cpp's C functions, which xllamacpp's library exports."""

    def __init__(self, path):
        import xllamacpp
        self.library = ctypes.CDLL(str(pathlib.Path(xllamacpp.__path__[0], "xllamacpp.abi3.so")))
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        self.library.llama_log_set(self.quiet, None)
        self.library.llama_backend_init()

        class Parameters(ctypes.Structure):  # passed by value, with room for any version
            _fields_ = [("room", ctypes.c_ubyte * 256)]

        self.library.llama_model_default_params.restype = Parameters
        load, vocabulary = self.library.llama_model_load_from_file, self.library.llama_model_get_vocab
        load.restype, load.argtypes = ctypes.c_void_p, [ctypes.c_char_p, Parameters]
        vocabulary.restype, vocabulary.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self.library.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32,
                                                ctypes.c_bool, ctypes.c_bool]
        self.vocabulary = vocabulary(load(str(path).encode(), self.library.llama_model_default_params()))

    def encode(self, text):
        """Adds and parses special tokens, like llama.cpp's completion endpoint."""
        room = 3 * len(text) + 8
        tokens = (ctypes.c_int32 * room)()
        count = self.library.llama_tokenize(self.vocabulary, text, len(text), tokens, room, True, True)
        return tuple(tokens[:count])


def digest(tokens):
    """A checksum of the token sequences of some texts."""
    framed = b"".join(struct.pack(f"<I{len(row)}i", len(row), *row) for row in tokens)
    return f"{sum(map(len, tokens))} {hashlib.sha256(framed).hexdigest()[:16]}"


def check(program, golden):
    path = model()
    lines = [line for line in pathlib.Path(golden).read_text().splitlines() if not line.startswith("#")]
    made = list(cases(2))
    tokens = iter(encode(program, path, [text for _, items in made for text in items]))
    found = [f"{name}: {digest([next(tokens) for _ in items])}" for name, items in made]
    found.append(f"chat: {digest(encode(program, path, chat_texts(), 'chat'))}")
    wrong = [(a, b) for a, b in zip(lines, found) if a != b]
    for a, b in wrong[:10]:
        print(f"expected {a}\nfound    {b}")
    print(f"{len(found)} lines, {len(wrong)} differ")
    return bool(wrong) or len(lines) != len(found)


def rebase(golden):
    import gguf
    import jinja2
    llama = LlamaCpp(model())
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(
        gguf.GGUFReader(model()).fields["tokenizer.chat_template"].contents())
    chats = [template.render(messages=[{"role": "user", "content": text.decode()}], add_generation_prompt=True)
             for text in chat_texts()]
    header = "# llama.cpp's tokens, by tokenizer_check.py rebase: how many, and the first 16 digits of their SHA-256.\n"
    lines = [f"{name}: {digest([llama.encode(text) for text in items])}\n" for name, items in cases(2)]
    lines.append(f"chat: {digest([llama.encode(text.encode()) for text in chats])}\n")
    pathlib.Path(golden).write_text(header + "".join(lines))


def compare(program):
    path = model()
    llama = LlamaCpp(path)
    points = [chr(code).encode("utf-8", "surrogatepass") for code in range(0x110000)]
    kinds = {"texts and random strings": [text for seed in (3, 4) for _, items in cases(seed) for text in items],
             "code points": [b"a" + p + b"'s  " + p + b" " + p + p for p in points]}
    failed = False
    for kind, items in kinds.items():
        wrong = [text for text, tokens in zip(items, encode(program, path, items)) if llama.encode(text) != tokens]
        print(f"{kind}: {len(items)}, {len(wrong)} differ", *map(ascii, wrong[:3]))
        failed |= bool(wrong)
    return failed


def main():
    verbs = {"check": (check, 2), "rebase": (rebase, 1), "compare": (compare, 1)}
    verb, count = verbs.get(sys.argv[1] if sys.argv[1:] else "", (None, 0))
    if verb is None or len(sys.argv) != 2 + count:
        sys.exit(__doc__)
    sys.exit(verb(*sys.argv[2:]))


if __name__ == "__main__":
    main()
