#!/usr/bin/env python3
"""Whole models of any GGUF type beside transformers: are the logits those of the dequantized weights?

    check_quantized.py --tool build/dev/tests/oracle/logits_tool FILE.gguf...

Per file: the types of its tensors, then the error of f32 and of int8 activations (KV in f32 both times) at the last 16 positions
of three prompts, against transformers in fp32 over the weights that the gguf package dequantizes. An error is relative to the
root mean square of the oracle's row. Exit code 0 when f32 stays within 1e-3 everywhere.
"""

import argparse
import collections
import pathlib
import struct
import subprocess
import sys

import numpy as np
import torch
from gguf import GGUFReader

import oracle_tokenizer as oracle
from gate_a_prompts import PROMPTS
from make_gate_a import load_model

NUM_PROMPTS, MAX_TOKENS, NUM_POSITIONS, MAX_RELATIVE_ERROR = 3, 96, 16, 1e-3


def tool_rows(tool, path, activation, texts, positions):
    request = b"".join(struct.pack(f"<I{len(n)}I", len(n), *n) for pair in zip(texts, positions) for n in pair)
    output = subprocess.run([tool, path, activation, "f32"], input=request, stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(output, "<f4").reshape(sum(map(len, positions)), -1)


@torch.no_grad()
def oracle_rows(path, texts, positions):
    model = load_model(path)
    rows = [model(torch.tensor([ids])).logits[0][at].numpy() for ids, at in zip(texts, positions)]
    return np.concatenate(rows)


def check(tool, path):
    types = collections.Counter(tensor.tensor_type.name for tensor in GGUFReader(path).tensors)
    tokenizer = oracle.build(oracle.from_gguf(path), with_control=True)
    texts = [tokenizer.encode(text, add_special_tokens=False).ids[:MAX_TOKENS] for _, text, _ in PROMPTS[:NUM_PROMPTS]]
    positions = [list(range(max(0, len(ids) - NUM_POSITIONS), len(ids))) for ids in texts]
    wanted = oracle_rows(path, texts, positions)
    scale = np.sqrt(np.mean(np.square(wanted, dtype=np.float64), axis=1))
    print(f"{pathlib.Path(path).name}: {', '.join(f'{n} {name}' for name, n in types.most_common())}; {len(wanted)} rows")
    worst = {}
    for activation in ("f32", "int8"):
        got = tool_rows(tool, path, activation, texts, positions)
        errors = np.abs(got - wanted).max(axis=1) / scale
        worst[activation] = errors.max()
        same = int((got.argmax(axis=1) == wanted.argmax(axis=1)).sum())
        print(f"  {activation}: largest error {errors.max():.3g}, median {np.median(errors):.3g}; first choice equal in {same}",
              flush=True)
    return worst["f32"] <= MAX_RELATIVE_ERROR


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    passed = all([check(args.tool, path) for path in args.models])
    print("passed" if passed else "not passed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
