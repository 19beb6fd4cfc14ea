#!/usr/bin/env python3
"""Makes goldens_greedy.txt: llama.cpp's greedy answers to 20 prompts, with float64's distances for every token.

usage: goldens_make.py MODEL > tests/lm/goldens_greedy.txt    (needs numpy, gguf and xllamacpp; goldens_check.py needs neither)

MODEL is SmolLM2-135M-Instruct.Q4_1.gguf. llama.cpp runs on the CPU with an f16 cache, temperature 0 and without penalties. It
rounds activations to bytes (q8), so it sometimes takes another token than float64; the file then has both paths.
goldens_check.py describes the format.
"""
import json
import sys
import urllib.request

import numpy as np
import xllamacpp

from goldens_float64 import Models, own_greedy, write_path

STEPS = 64

CHATS = ["What is the capital of France?", "Explain why the sky is blue to a child of six.",
         "Write a function in C that returns the larger of two integers.", "Give me a list of five vegetables.",
         "Combien font douze fois douze ?", "Summarise in one sentence: The cat sat on the mat, and the dog watched it."]
TEXTS = ["Once upon a time, in a village by the sea,", "The three primary colours are", "def fibonacci(n):\n    ",
         "#include <stdio.h>\n\nint main(void)\n{\n", "SELECT name, COUNT(*) FROM orders", "1. Wash the apples.\n2. Peel them.\n3.",
         "Die Hauptstadt von Deutschland ist", "El agua hierve a", "北京是", "Москва - это",
         "| Planet | Moons |\n| --- | --- |\n| Earth | 1 |\n",
         "In 1969, Apollo 11 carried 3 men over 384,400 km; 21.5 hours later", "Dear Dr. O'Neill,\n\nI'm sorry that we couldn't",
         "<|im_start|>user\nName three rivers of Africa.<|im_end|>\n<|im_start|>assistant\nThe Nile,"]


class Llama:
    """llama.cpp's server."""

    def __init__(self, path):
        parameters = xllamacpp.CommonParams()
        parameters.model.path = path
        parameters.n_ctx, parameters.n_parallel, parameters.verbosity = 1024, 1, -1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        self.server = xllamacpp.Server(parameters)

    def post(self, path, **body):
        request = urllib.request.Request(self.server.listening_address + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request))

    def chat(self, text):
        return self.post("/apply-template", messages=[{"role": "user", "content": text}])["prompt"]

    def tokens(self, text):
        return self.post("/tokenize", content=text, add_special=True, parse_special=True)["tokens"]

    def greedy(self, prompt):
        """Returns the tokens, including the end token if any, and their log-probabilities. Tokens that end inside a character have no
        log-probability, so that list may be shorter."""
        answer = self.post("/completion", prompt=prompt, n_predict=STEPS, temperature=0, samplers=["top_k"], top_k=1,
                           repeat_penalty=1.0, return_tokens=True, cache_prompt=False, n_probs=2)
        rows = answer["completion_probabilities"]
        return answer["tokens"], [row["logprob"] for row in rows]


def log_probabilities(logits):
    return logits - logits.max(axis=1, keepdims=True) - np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(
        axis=1, keepdims=True))


def main():
    models, llama, ends = Models(sys.argv[1]), Llama(sys.argv[1]), {0, 2}
    print("# Made by goldens_make.py with llama.cpp of xllamacpp", xllamacpp.__version__)
    print("# A step: the token, bounds with exact and with q8 products, float64's best tokens and how far below the best they are")
    for kind, text in [("chat", text) for text in CHATS] + [("text", text) for text in TEXTS]:
        full = llama.chat(text) if kind == "chat" else text
        prompt = llama.tokens(full)
        path, probabilities = llama.greedy(full)
        print(f"\n{kind} {json.dumps(text, ensure_ascii=False)}")
        print("tokens", *prompt)
        logits, bounds = write_path("llama.cpp", models, prompt, path, 0)
        if len(probabilities) == len(path):
            off = np.abs(log_probabilities(logits)[range(len(path)), path] - probabilities)
            print(f"{text[:20]!r}: llama.cpp's log probability is off by {off.max():.3f} at most, {(off / bounds).max():.2f} of q8's"
                  " bound", file=sys.stderr)
        same = next((i for i, token in enumerate(path) if token != logits[i].argmax()), len(path))
        if same < len(path):
            own = path[:same] + own_greedy(models, prompt + path[:same], STEPS - same, ends)
            write_path("float64", models, prompt, own, same)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
