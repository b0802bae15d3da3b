#!/usr/bin/env python3
"""Makes goldens/sampling.txt: exact distributions of the next token, and log-probabilities, in float64.

    make_sampling_goldens.py

Each case is a row of logits with parameters and a history. The order of the stages is the contract's: allowed tokens, bad words,
ends below min_tokens; bias; penalties; temperature; min-p; top-k; top-p. Tokens with few expected draws share a bin of the
chi-square test; `low` and `high` bound its statistic with a false-alarm rate of 1e-6 on each side, so 2e-6 per case and seed.
Log-probabilities are of the logits alone.
"""

import math
import pathlib

import numpy as np

GOLDEN = pathlib.Path(__file__).resolve().parent / "goldens/sampling.txt"
VOCABULARY, NUM_DRAWS, FALSE_ALARMS, LEAST_EXPECTED = 48, 100_000, 1e-6, 20

BASE = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "presence": 0.0, "frequency": 0.0, "repetition": 1.0,
        "min_tokens": 0, "ends": [], "allowed": [], "bias": {}, "bad_words": [], "prompt": [], "generated": []}
HISTORY = {"prompt": [3, 3, 7, 20], "generated": [5, 9, 5, 11]}
CASES = {
    "plain": {},
    "hot": {"temperature": 1.7},
    "cold": {"temperature": 0.3},
    "top_k": {"top_k": 7},
    "top_p": {"top_p": 0.8},
    "min_p": {"min_p": 0.07},
    "all_filters": {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "min_p": 0.02},
    "min_p_before_top_k_before_top_p": {"temperature": 1.3, "min_p": 0.1, "top_k": 9, "top_p": 0.7},
    "bias": {"bias": {4: 3.5, 17: -100.0, 30: 1.25}},
    "penalties": {**HISTORY, "presence": 0.7, "frequency": 0.4, "repetition": 1.3},
    "negative_penalties": {**HISTORY, "presence": -1.5, "frequency": -0.25, "repetition": 0.8},
    "allowed": {"allowed": [1, 2, 5, 8, 13, 21, 34]},
    "bad_words": {**HISTORY, "bad_words": [[6], [5, 11, 4], [11, 12], [20, 5, 9, 5, 11, 2], [9, 13]]},
    "min_tokens": {**HISTORY, "min_tokens": 5, "ends": [0, 14]},
    "min_tokens_reached": {**HISTORY, "min_tokens": 4, "ends": [0, 14]},
    "everything": {**HISTORY, "temperature": 0.9, "top_k": 12, "top_p": 0.93, "min_p": 0.01, "presence": 0.3, "frequency": 0.2,
                   "repetition": 1.1, "min_tokens": 9, "ends": [2], "allowed": list(range(0, 40)), "bias": {5: 2.0, 45: 50.0},
                   "bad_words": [[8], [11, 10]]},
}


def gamma_q(a, x):
    """Regularized upper incomplete gamma function: series below a + 1, continued fraction above."""
    if x <= 0:
        return 1.0
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-17:
            n += 1
            term *= x / n
            total += term
        return 1 - scale * total
    b, c = x + 1 - a, 1e300
    d = 1 / b
    h = d
    for i in range(1, 10_000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return scale * h


def chi_square_quantile(above, freedom):
    """The x that a chi-square variable exceeds with probability `above`."""
    low, high = 0.0, 10.0 * freedom + 200
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gamma_q(freedom / 2, middle / 2) > above else (low, middle)
    return high


def masked(logits, case):
    x = logits.astype(np.float64)
    if case["allowed"]:
        keep = np.zeros(VOCABULARY, bool)
        keep[case["allowed"]] = True
        x[~keep] = -np.inf
    generated = case["generated"]
    for word in case["bad_words"]:
        before = word[:-1]
        if len(before) <= len(generated) and generated[len(generated) - len(before):] == before:
            x[word[-1]] = -np.inf
    if len(generated) < case["min_tokens"]:
        x[case["ends"]] = -np.inf
    for token, bias in case["bias"].items():
        x[token] += bias
    for token in set(case["prompt"]) | set(generated):
        x[token] = x[token] / case["repetition"] if x[token] > 0 else x[token] * case["repetition"]
    for token in set(generated):
        x[token] -= case["frequency"] * generated.count(token) + case["presence"]
    return x


def distribution(logits, case):
    z = masked(logits, case)
    z = (z - z.max()) / case["temperature"]
    weights = np.exp(z)
    weights[weights < case["min_p"]] = 0
    order = np.lexsort((np.arange(VOCABULARY), -weights))
    if case["top_k"]:
        weights[order[case["top_k"]:]] = 0
    if case["top_p"] < 1:
        before = np.cumsum(weights[order]) - weights[order]
        cut = case["top_p"] * weights.sum()
        assert np.abs(before - cut).min() > 1e-4, "a boundary that rounding could decide"
        weights[order[before >= cut]] = 0
    return weights / weights.sum()


def bins(probabilities):
    """A bin per token, in the order of likelihood; the least likely share the last. -1: never drawn."""
    place, number = np.full(VOCABULARY, -1), 0
    order = [i for i in np.argsort(-probabilities, kind="stable") if probabilities[i] > 0]
    for i, token in enumerate(order):
        rest = probabilities[order[i:]].sum() * NUM_DRAWS
        place[token] = number
        if probabilities[token] * NUM_DRAWS >= LEAST_EXPECTED and rest - probabilities[token] * NUM_DRAWS >= LEAST_EXPECTED:
            number += 1
    return place


def line(file, name, values):
    file.write(f"{name} {len(values)} {' '.join(str(v) for v in values)}\n")


def write_case(file, name, case, logits):
    probabilities = distribution(logits, case)
    place = bins(probabilities)
    freedom = int(place.max())
    assert freedom >= 3, name
    words = [n for word in case["bad_words"] for n in [len(word), *word]]
    file.write(f"case {name}\n")
    line(file, "logits", [float(x) for x in logits])
    for key in ("temperature", "top_p", "top_k", "min_p", "presence", "frequency", "repetition", "min_tokens"):
        file.write(f"{key} {case[key]}\n")
    for key in ("ends", "allowed", "prompt", "generated"):
        line(file, key, case[key])
    line(file, "bad_words", words)
    line(file, "bias_tokens", list(case["bias"]))
    line(file, "bias_values", list(case["bias"].values()))
    line(file, "probabilities", [float(p) for p in probabilities])
    line(file, "bins", [int(p) for p in place])
    file.write(f"low {chi_square_quantile(1 - FALSE_ALARMS, freedom)!r}\n")
    file.write(f"high {chi_square_quantile(FALSE_ALARMS, freedom)!r}\n")
    x = logits.astype(np.float64)
    line(file, "logprobs", [float(v) for v in x - x.max() - np.log(np.exp(x - x.max()).sum())])
    file.write("end\n")


def main():
    random = np.random.Generator(np.random.PCG64(20261129))
    with GOLDEN.open("w") as file:
        file.write(f"draws {NUM_DRAWS}\n")
        for name, changes in CASES.items():
            logits = (random.standard_normal(VOCABULARY) * 1.6).astype(np.float32)
            write_case(file, name, BASE | changes, logits)


if __name__ == "__main__":
    main()
