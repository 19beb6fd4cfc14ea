#!/usr/bin/env python3
"""Compares kiln-lm's greedy tokens with those of llama.cpp and float64 in goldens_greedy.txt.

usage: goldens_check.py check NUMBER exact|q8 FILE   FILE has the tokens that the program wrote after prompt NUMBER (0 to 19)
       goldens_check.py prompt NUMBER                prints `chat` or `text`, a space, and the prompt
       goldens_check.py tokens NUMBER                prints the prompt's tokens and llama.cpp's answer tokens
       goldens_check.py self-test

The file has a section for each prompt. It begins with `chat` or `text` (with or without the model's template) and the text as
JSON. `tokens` are the prompt's tokens, by llama.cpp. Then come paths: `llama.cpp 0`, and `float64 N` if float64 leaves llama.cpp's
path at step N. A step is a line: the token taken; two bounds, for exact and for q8 products; and at most LISTED best tokens of
float64, each with the distance of its logit below the best (the last one may be the token taken). A bound is the largest change
of such a distance in runs with random rounding.

A token fits if float64 puts it less than twice the bound below the best. Tokens are checked while they follow a path: a program
may take either path, or leave both where the best tokens are that close.
"""
import json
import pathlib
import sys

GOLDENS = pathlib.Path(__file__).with_name("goldens_greedy.txt")
PRODUCTS = ("exact", "q8")
LISTED = 8


class Golden:
    def __init__(self, kind, text):
        self.kind, self.text = kind, json.loads(text)
        self.tokens, self.paths = [], {}  # name: [(token, bounds, {token: how far below})]

    def step_after(self, taken):
        """Returns the step after these tokens of a path, or None if they leave all paths."""
        for steps in self.paths.values():
            if len(steps) > len(taken) and [step[0] for step in steps[:len(taken)]] == taken:
                return steps[len(taken)]
        return None


def read_goldens(path=GOLDENS):
    goldens = []
    for line in path.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word in ("chat", "text"):
            goldens.append(Golden(word, rest))
        elif word == "tokens":
            goldens[-1].tokens = list(map(int, rest.split()))
        elif word in ("llama.cpp", "float64"):
            steps = goldens[-1].paths[word] = goldens[-1].paths.get("llama.cpp", [])[:int(rest)]
        elif word.isdigit():
            exact, q8, *best = rest.split()
            below = dict(pair.split(":") for pair in best)
            steps.append((int(word), {"exact": float(exact), "q8": float(q8)},
                          {int(token): float(distance) for token, distance in below.items()}))
    return goldens


def check(golden, products, taken):
    """Returns (whether all tokens fit, a message)."""
    worst = (0.0, "each is float64's best")
    for i, token in enumerate(taken):
        step = golden.step_after(taken[:i])
        if step is None:
            return True, f"the first {i} of {len(taken)} tokens checked, then it leaves both paths; {worst[1]}"
        _, bounds, below = step
        allowed, listed = 2 * bounds[products], list(below.values())[:LISTED]
        if token not in below:
            if len(listed) == LISTED and listed[-1] < allowed:
                return True, f"the first {i} of {len(taken)} tokens checked, then more than {LISTED} are near; {worst[1]}"
            return False, f"token {i} is {token}, not near float64's best, {next(iter(below))}: allowed {allowed:.3g} below it"
        if below[token] > 0:
            said = f"token {i} is {token}, {below[token]:.3g} below float64's best, {next(iter(below))}; allowed {allowed:.3g}"
            if not below[token] < allowed:
                return False, said
            worst = max(worst, (below[token] / allowed, said))
    return True, f"{len(taken)} tokens checked; {worst[1]}"


def self_test():
    goldens, differing = read_goldens(), 0
    for number, golden in enumerate(goldens):
        paths = {name: [step[0] for step in steps] for name, steps in golden.paths.items()}
        for steps in golden.paths.values():
            assert all(list(below.values())[0] == 0 and bounds["q8"] > 0 for _, bounds, below in steps), number
        is_fine, said = check(golden, "q8", paths["llama.cpp"])
        assert is_fine, (number, said)
        own = paths.get("float64", paths["llama.cpp"])
        assert check(golden, "exact", own)[0], number
        assert not any(check(golden, "exact", own[:i] + [own[i] ^ 1])[0] for i in range(len(own))), number
        differing += "float64" in paths
        print(f"prompt {number}: llama.cpp's {said}")
    assert len(goldens) == 20
    print(f"20 prompts; llama.cpp's tokens fit with q8 products; after {differing} float64 takes others")


def main():
    words = sys.argv[1:]
    if words == ["self-test"]:
        self_test()
        return
    is_known = words[1:2] and words[1].isdigit() and {"check": 4, "prompt": 2, "tokens": 2}.get(words[0]) == len(words)
    if not is_known or words[0] == "check" and words[2] not in PRODUCTS:
        sys.exit(__doc__)
    golden = read_goldens()[int(words[1])]
    if words[0] == "prompt":
        print(golden.kind, golden.text)
    elif words[0] == "tokens":
        print(*golden.tokens, *(step[0] for step in golden.paths["llama.cpp"]))
    else:
        is_fine, said = check(golden, words[2], list(map(int, pathlib.Path(words[3]).read_text().split())))
        print(f"prompt {words[1]}: {said}")
        sys.exit(0 if is_fine else 1)


if __name__ == "__main__":
    main()
