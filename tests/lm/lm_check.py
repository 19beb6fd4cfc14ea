#!/usr/bin/env python3
"""Compares kiln-lm's result of each layer with float64.

usage: lm_check.py MODEL TOKENS DIR... [--rounding NAMES]       checks lm_probe's files in each DIR
       lm_check.py MODEL TOKENS --self-test [--rounding NAMES]  float32 runs of the reference: a correct one, and one per mistake

DIR has layer_00.f32 ... (the residual stream after each layer, [tokens, embedding]) and logits.f32 ([tokens, vocabulary]), raw
and little-endian. --rounding gives the program's rounding points, as for reference_llama.py (default: lm). Two comparisons:

whole   with a float64 run without rounding. A token's error is |x - r| / |r|, lengths of vectors. Its bound is MARGIN times the
        root mean square error of RUNS runs with random rounding at the program's rounding points. It is measured for this model,
        these tokens, each layer and each token, and is at least the median of all tokens. For logits the largest element of
        x - r is checked too.
step    with a float64 layer on the program's own stream, rounded where the program rounds. Only float32's errors are left, and
        roundings that they flip. The error of the layer's output is |x - r| / |r - stream before|, the logits' is |x - r| / |r|.
        RUNS float64 steps with errors of FLOAT32 times a vector's root mean square before every rounding (and noise for scores,
        whose roundings depend on tiles) give two bounds: for the worst token twice the largest error of any token, and for the
        median of the tokens twice the largest median. A flipped rounding is rare and may be large; the median shows mistakes
        that affect all tokens. The runs begin at float64's stream. A layer between one and two bounds is checked again with
        TIPPED_RUNS runs from the program's own stream, because other numbers are near the middle of two float16 there.

A cell is the worst token's error, and the largest error relative to its bound of any token. 1 or more fails.
"""
import argparse
import pathlib
import sys

from reference_llama import Model, Noise, Refused, Rounding, np, parse_rounding, read_tokens

RUNS, TIPPED_RUNS = 8, 64
MARGIN = 4.0
FLOAT32 = 2.0**-21
NOT_REPEATED = "scores"  # rounded relative to a maximum that depends on tiles


class Tipped(Noise):
    """Rounds after adding an error like that of float32's sums and approximate functions. Adds noise at points whose roundings
    cannot be repeated."""

    def __call__(self, point, x):
        if point == NOT_REPEATED:
            return super().__call__(point, x)
        if point == "stream":  # the stream is a sum of two numbers
            return Rounding.__call__(self, point, x)
        size = FLOAT32 * np.sqrt((x * x).mean(axis=-1, keepdims=True))
        return Rounding.__call__(self, point, x + size * self.random.standard_normal(x.shape))


def length(x):
    return np.linalg.norm(x, axis=-1)


def largest(x):
    return np.abs(x).max(axis=-1)


class Checker:
    """A float64 run and its bounds, for every dump of the same tokens."""

    def __init__(self, model, tokens, points):
        self.model, self.tokens, self.points = model, tokens, points
        self.repeated = Rounding({point: kind for point, kind in points.items() if point != NOT_REPEATED})
        self.streams, _, self.logits = model.run(tokens)
        self.whole = self.whole_bounds()
        self.steps = [self.step_bounds(layer, before) for layer, before in enumerate([model.embed(tokens), *self.streams])]

    def whole_bounds(self):
        """Returns the bound of each tensor for every token."""
        squares = 0
        for seed in range(RUNS):
            streams, _, logits = self.model.run(self.tokens, Noise(self.points, seed))
            squares = squares + np.square(self.whole_errors(streams, logits))
        own = np.sqrt(squares / RUNS)
        return MARGIN * np.maximum(own, np.median(own, axis=1, keepdims=True))

    def step_bounds(self, layer, before, runs=RUNS):
        """Returns the bounds for the worst token, and for the tokens' median."""
        right = self.step(layer, before, self.repeated)
        errors = [self.step_error(layer, before, right, self.step(layer, before, Tipped(self.points, seed)))
                  for seed in range(runs)]
        return 2 * np.max(errors), 2 * np.max(np.median(errors, axis=1))

    def whole_errors(self, streams, logits):
        """Returns the errors of each layer, of the logits, and of the logits' largest element."""
        errors = [length(x - r) / length(r) for x, r in zip([*streams, logits], [*self.streams, self.logits])]
        return [*errors, largest(logits - self.logits)]

    def step(self, layer, before, rounding):
        if layer == self.model.layers:
            return self.model.finish(before, rounding)
        return self.model.layer(layer, before, rounding)[0]

    def step_error(self, layer, before, r, x):
        return length(x - r) / length(r if layer == self.model.layers else r - before)

    def step_row(self, layer, before, x):
        error = self.step_error(layer, before, self.step(layer, before, self.repeated), x)

        def share(worst, median):
            return np.max([error.max() / worst, np.median(error) / median])

        first = share(*self.steps[layer])
        return error.max(), share(*self.step_bounds(layer, before, TIPPED_RUNS)) if 1 <= first < 2 else first

    def rows(self, streams, logits):
        """Returns (name, whole error, relative to its bound, step error, relative to its bound) of each tensor."""
        steps = [self.step_row(layer, before, x)
                 for layer, (before, x) in enumerate(zip([self.model.embed(self.tokens), *streams], [*streams, logits]))]
        names = [f"layer_{layer:02}" for layer in range(self.model.layers)] + ["logits", "logits, largest"]
        for name, error, bound, step in zip(names, self.whole_errors(streams, logits), self.whole, [*steps, (0.0, 0.0)]):
            yield name, error.max(), (error / bound).max(), *step


def is_within(row):
    return row[2] < 1 and row[4] < 1  # also false for a NaN


# ---- dumps --------------------------------------------------------------------------------------------------------------


def read_dump(folder, model, tokens):
    def read(name, columns):
        path = pathlib.Path(folder) / f"{name}.f32"
        expected = 4 * len(tokens) * columns
        if not path.exists() or path.stat().st_size != expected:
            found = f"{path.stat().st_size} bytes" if path.exists() else "no such file"
            sys.exit(f"{path}: expected {len(tokens)} x {columns} float32, {expected} bytes, found {found}")
        return np.fromfile(path, "<f4").astype(np.float64).reshape(len(tokens), columns)
    return ([read(f"layer_{layer:02}", model.embedding) for layer in range(model.layers)],
            read("logits", len(model.head())))


def check_dumps(checker, folders):
    failed = 0
    for folder in folders:
        streams, logits = read_dump(folder, checker.model, checker.tokens)
        print(f"{folder}: {len(checker.tokens)} tokens\n{'':16} {'whole':>9} {'of bound':>8} {'step':>9} {'of bound':>8}")
        for row in checker.rows(streams, logits):
            failed += not is_within(row)
            print(f"{row[0]:16} {row[1]:9.2e} {row[2]:8.3f}" + (f" {row[3]:9.2e} {row[4]:8.3f}" if row[3] else "")
                  + ("" if is_within(row) else "  FAILED"))
        print(f"largest logit: {(logits.argmax(axis=1) == checker.logits.argmax(axis=1)).sum()} of {len(logits)} are float64's")
    return failed


# ---- mistakes -----------------------------------------------------------------------------------------------------------


def half_turns(model):
    """RoPE over elements i and i + rope_dim / 2, as other architectures have it."""
    order = np.concatenate([np.arange(model.rope_dim).reshape(2, -1).T.ravel(), np.arange(model.rope_dim, model.head_dim)])
    back = np.argsort(order)
    right = model.rotate
    return lambda x, position: right(x[..., order], position)[..., back]


def later_turns(model):
    """K's positions are one more than Q's."""
    right = model.rotate
    return lambda x, position: right(x, position + (x.shape[1] == model.key_heads))


def wrong_weight(model, name, change):
    """Changes a copy of a tensor during the run."""
    right = model.weight
    wrong = change(right(name).copy())
    return lambda asked: wrong if asked == name else right(asked)


def scaled(index, factor):
    def change(values):
        values[index] *= factor
        return values
    return change


def exchanged(model, one, other):
    right = model.weight
    return lambda asked: right(asked.replace(one, "#").replace(other, one).replace("#", other))


def wide_scores(model):
    """Attention as if heads were twice as wide."""
    right = model.attend
    return lambda q, *rest: right(q / model.dtype(np.sqrt(2)), *rest)


def see_all_but(model, tokens):
    """Tokens do not see the first token."""
    def attend(q, k, v, position, rounding):
        out = model_attend(q, k, v, position, rounding)
        if len(k) > tokens:
            out[tokens:] = model_attend(q[tokens:], k[tokens:], v[tokens:], position, rounding)
        return out
    model_attend = model.attend
    return attend


# name: (attribute of Model, its wrong value)
MISTAKES = {
    "epsilon 1e-6": ("epsilon", lambda model: 1e-6),
    "epsilon twice as large": ("epsilon", lambda model: 2 * model.epsilon),
    "rope base a tenth": ("rope_base", lambda model: model.rope_base / 10),
    "rope base 1 % more": ("rope_base", lambda model: model.rope_base * 1.01),
    "rope over half the dimensions": ("rope_dim", lambda model: model.rope_dim // 2),
    "rope turns halves": ("rotate", half_turns),
    "rope of K one token later": ("rotate", later_turns),
    "key heads in turn": ("key_head", lambda model: lambda head: head % model.key_heads),
    "last head reads the first key head": ("key_head", lambda model: lambda head: (head + 1) % model.heads
                                           // (model.heads // model.key_heads)),
    "scale of attention": ("attend", wide_scores),
    "first token unseen": ("attend", lambda model: see_all_but(model, 1)),
    "gate and up exchanged": ("weight", lambda model: exchanged(model, "ffn_gate", "ffn_up")),
    "norms exchanged": ("weight", lambda model: exchanged(model, "attn_norm", "ffn_norm")),
    "one of a norm's weights 3 % more": ("weight", lambda model: wrong_weight(
        model, f"blk.{model.layers - 1}.ffn_norm", scaled(5, 1.03))),
    "a block of 32 weights 20 % more": ("weight", lambda model: wrong_weight(
        model, f"blk.{model.layers // 2}.attn_v", scaled((3, slice(64, 96)), 1.2))),
    "a row of the head zero": ("weight", lambda model: wrong_weight(model, model.head_name(), scaled(7, 0))),
    "final norm's weight 0.1 % more": ("weight", lambda model: wrong_weight(model, "output_norm", scaled(slice(None), 1.001))),
}
# Rounding to bytes is as coarse, so only runs without bytes show these.
SMALL = {"stream=f16", "activation=q8", "rope base 1 % more", "one of a norm's weights 3 % more", "a block of 32 weights 20 % more"}
LOST_PRECISION = {"stream=f16": {"stream": "f16"}, "activation=q8": {"activation": "q8"},
                  "activation=f16": {"activation": "f16"}}


def self_test(checker, path):
    """The correct run is within the bounds, and every mistake exceeds them."""
    model = Model(path, np.float32)
    failed = 0

    def run(name, points, should_pass):
        nonlocal failed
        if name in SMALL and checker.points["activation"].startswith("q8"):
            return
        streams, _, logits = (np.asarray(x, np.float64) for x in model.run(checker.tokens, Rounding(points)))
        rows = list(checker.rows(list(streams), logits))
        whole, step = (max(row[i] for row in rows) for i in (2, 4))
        is_good = all(map(is_within, rows)) == should_pass
        failed += not is_good
        print(f"{name:36} whole {whole:9.3g}  step {step:9.3g} of the bound" + ("" if is_good else "  FAILED"))

    run("right", checker.points, True)
    for name, points in LOST_PRECISION.items():
        if any(checker.points.get(point) != kind for point, kind in points.items()):
            run(name, checker.points | points, False)
    for name, (attribute, wrong) in MISTAKES.items():
        kept = model.__dict__.get(attribute)
        setattr(model, attribute, wrong(model))
        run(name, checker.points, False)
        delattr(model, attribute)
        if kept is not None:
            setattr(model, attribute, kept)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("tokens")
    parser.add_argument("dumps", nargs="*")
    parser.add_argument("--rounding", default="lm")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test == bool(options.dumps):
        parser.error("expected either folders or --self-test")
    try:
        checker = Checker(Model(options.model), read_tokens(options.tokens), parse_rounding(options.rounding))
        failed = self_test(checker, options.model) if options.self_test else check_dumps(checker, options.dumps)
    except Refused as refused:
        sys.exit(f"{options.model}: {refused}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
