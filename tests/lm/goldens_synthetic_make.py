#!/usr/bin/env python3
"""Makes goldens_synthetic.txt or _small.txt: float64's greedy tokens with the weights of tools/bench/lm_model.py.

usage: goldens_synthetic_make.py MODEL ENCODE > tests/lm/goldens_synthetic.txt     MODEL gives tokenizer and shapes
       goldens_synthetic_make.py small ENCODE > tests/lm/goldens_synthetic_small.txt

ENCODE is build/bin/tokenizer_encode. Needs numpy and gguf; goldens_check.py needs neither. The goldens come from float64, because
the emulated driver takes about 2 s per token of MODEL.
"""
import gzip
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from goldens_float64 import Models, own_greedy, write_path
from small_header import small_header

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "tools/bench"))
import lm_model

STEPS = 256
# 64 tokens: one whole chunk
PROMPT = ("A kiln is a thermally insulated chamber, a type of oven, that produces temperatures sufficient to complete some process, such "
          "as hardening, drying, or chemical changes. Kilns have been used for millennia to turn objects made from clay into pottery, "
          "tiles and bricks. Various industries use rotary kilns for pyroprocessing.")
SMALL_PROMPT, SMALL_STEPS = "hello hello, hell", 32


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, encode = sys.argv[1:]
    is_small = source == "small"
    prompt, steps = (SMALL_PROMPT, SMALL_STEPS) if is_small else (PROMPT, STEPS)
    header = small_header() if is_small else gzip.decompress(lm_model.keep_header(source))
    with tempfile.TemporaryDirectory() as room:
        path = f"{room}/model.gguf"
        print("# Made by goldens_synthetic_make.py. The model that lm_model.py makes has this SHA-256.")
        print("model", lm_model.make(header, path))
        text = prompt.encode()
        encoded = subprocess.run([encode, path], input=struct.pack("<I", len(text)) + text, capture_output=True, check=True).stdout
        models, (_, *tokens) = Models(path), struct.unpack(f"<{len(encoded) // 4}i", encoded)
        print("text", json.dumps(prompt))
        print("tokens", *tokens)
        write_path("float64", models, tokens, own_greedy(models, tokens, steps, set()), 0)


if __name__ == "__main__":
    main()
