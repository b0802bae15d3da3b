#!/usr/bin/env python3
"""Makes goldens/logprobs_*.txt: log-probabilities as transformers gives them, in fp32 over the dequantized weights.

    make_logprobs.py --model FILE.gguf --name tiny|smollm2

Per text its ids, of which the first `prompt` are the prompt and the rest the greedy answer; then for every token but the first its
log-probability, its rank, and the five likeliest tokens with theirs. The softmax is over the tokenizer's tokens, in float64.
"""

import argparse
import json
import pathlib

import numpy as np
import torch
from gguf import GGUFReader

from make_gate_a import load_model

GOLDENS = pathlib.Path(__file__).resolve().parent / "goldens"
NUM_TOP, NUM_GREEDY = 5, 8


def texts(name, model, num_tokens):
    """Pairs of a prompt and the whole text. Of SmolLM2 the greedy answers are gate A's."""
    if name == "tiny":
        random = np.random.Generator(np.random.PCG64(77))
        drawn = [[int(t) for t in random.integers(0, num_tokens - 1, length)] for length in (1, 2, 9, 33, 70)]
        return [(prompt, continue_greedily(model, prompt, num_tokens)) for prompt in drawn]
    shortest = sorted(json.loads((GOLDENS / "gate_a.json").read_text())["prompts"], key=lambda p: len(p["prompt_ids"]))[:5]
    return [(p["prompt_ids"], p["prompt_ids"] + p["greedy_ids"][:NUM_GREEDY]) for p in shortest]


@torch.no_grad()
def continue_greedily(model, ids, num_tokens):
    ids = list(ids)
    for _ in range(NUM_GREEDY):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1, :num_tokens].argmax()))
    return ids


@torch.no_grad()
def write_text(file, model, text, num_tokens):
    prompt, ids = text
    rows = model(torch.tensor([ids])).logits[0, :-1, :num_tokens].double().log_softmax(-1).numpy()
    file.write(f"text {len(ids)} prompt {len(prompt)}\n{' '.join(map(str, ids))}\n")
    for token, row in zip(ids[1:], rows):
        order = np.lexsort((np.arange(num_tokens), -row))
        rank = int(np.nonzero(order == token)[0][0]) + 1
        top = " ".join(f"{t} {row[t]:.7f}" for t in order[:NUM_TOP])
        file.write(f"{token} {row[token]:.7f} {rank} {top}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--name", required=True, choices=("tiny", "smollm2"))
    arguments = parser.parse_args()
    num_tokens = len(GGUFReader(arguments.model).fields["tokenizer.ggml.tokens"].data)
    model = load_model(arguments.model)
    with (GOLDENS / f"logprobs_{arguments.name}.txt").open("w") as file:
        for text in texts(arguments.name, model, num_tokens):
            write_text(file, model, text, num_tokens)


if __name__ == "__main__":
    main()
