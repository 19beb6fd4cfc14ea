"""Computes float64's best tokens at each step of a path, and the distances of others. goldens_check.py describes the format."""
import numpy as np

from goldens_check import LISTED
from reference_llama import Model, Noise, POINTS

SEEDS = 2
BOUNDED = {"exact": POINTS, "q8": POINTS | {"activation": "q8", "head": "q8"}}
LIKELY = 64  # the bound covers this many tokens, those with the largest logits


class Models:
    """The model in float64, and in float32 for results whose last bits do not matter."""

    def __init__(self, path):
        self.exact, self.fast = Model(path), Model(path, np.float32)


def own_greedy(models, tokens, steps, ends):
    """Returns the float32 model's tokens after these; write_path() checks that float64 takes the same."""
    taken, cache, new = [], [], tokens
    while len(taken) < steps and (not taken or taken[-1] not in ends):
        new = [int(models.fast.run(new, cache=cache)[2][-1].argmax())]
        taken += new
    return taken


def bounds_of(models, tokens, logits, kinds):
    """Returns for each step the largest change of a likely token's distance from the best, in runs with random rounding."""
    likely = np.argsort(-logits, axis=1)[:, :LIKELY]

    def distances(values):
        values = np.take_along_axis(values, likely, axis=1)
        return values[:, :1] - values

    def moved(points, seed):
        return np.abs(distances(models.fast.run(tokens, Noise(points, seed))[2]) - distances(logits)).max(axis=1)
    return {kind: np.max([moved(BOUNDED[kind], seed) for seed in range(SEEDS)], axis=0) for kind in kinds}


def steps_of(models, prompt, path, first, kinds=tuple(BOUNDED)):
    """Returns the steps from `first` on: (token taken, bounds, {token: distance below the best}); and all logits and bounds."""
    tokens, begin = prompt + path[:-1], len(prompt) - 1
    logits = models.exact.run(tokens)[2]
    bounds = bounds_of(models, tokens, logits, kinds)
    steps = []
    for at in range(begin + first, len(tokens)):
        order, taken = np.argsort(-logits[at])[:LISTED].tolist(), path[at - begin]
        below = (logits[at].max() - logits[at]).tolist()
        listed = [token for i, token in enumerate(order) if i < 2 or below[token] < 2 * bounds["q8"][at]]
        steps.append((taken, {kind: bounds[kind][at] for kind in kinds}, {token: below[token] for token in [*listed, taken]}))
    return steps, logits[begin:], {kind: bounds[kind][begin:] for kind in kinds}


def write_path(name, models, prompt, path, first):
    """Writes the steps from `first` on: the token taken, both bounds, and the best tokens with their distances below the best."""
    steps, logits, bounds = steps_of(models, prompt, path, first)
    print(name, first)
    for taken, bound, below in steps:
        assert name != "float64" or next(iter(below)) == taken
        print(" ", taken, *(f"{bound[kind]:.2g}" for kind in BOUNDED), *(f"{token}:{far:.3g}" for token, far in below.items()))
    return logits, bounds["q8"]
