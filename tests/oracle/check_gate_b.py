#!/usr/bin/env python3
"""Gate B: is the fast arithmetic as near to the model as llama.cpp's on the same file?

    LLAMA_CPP_LIB_PATH=FOLDER check_gate_b.py --model FILE.gguf --tool build/dev/tests/oracle/logits_tool
                                              --work FOLDER [--only VARIANT ...]

The texts of goldens/gate_b_texts.json, 512 tokens of each, are read teacher-forced by transformers in fp32 over the dequantized
weights (the reference), by Pagoda (int8 activations, bf16 KV, and what --only adds) and by llama.cpp with the same KV type and
with its own default, f16. Per position: the divergence KL(reference || other) and whether the first choice is the same.
Passed: mean KL at most 1.05 times llama.cpp's with the same KV type, first choice within 0.3 points of its. The intervals are
those of a bootstrap over runs of 64 positions. --work keeps what was computed, so that variants can be added one by one.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys

import numpy as np

import oracle_tokenizer as oracle

HERE = pathlib.Path(__file__).resolve().parent
NUM_TOKENS, RUN, NUM_RESAMPLES, SEED = 512, 64, 10_000, 1
MAX_RATIO, MAX_POINTS = 1.05, 0.3
OURS, THEIRS = "pagoda int8/bf16", "llama.cpp bf16"
# name: (program, its settings: dtypes of activations and KV, or ggml's number of the KV type)
VARIANTS = {
    OURS: ("pagoda", ("int8", "bf16")),
    "pagoda int8/f32": ("pagoda", ("int8", "f32")),
    "pagoda f32/bf16": ("pagoda", ("f32", "bf16")),
    "pagoda f32/f32": ("pagoda", ("f32", "f32")),
    THEIRS: ("llama.cpp", 30),
    "llama.cpp f16": ("llama.cpp", 1),
    "llama.cpp f32": ("llama.cpp", 0),
}


def texts(path):
    tokenizer = oracle.build(oracle.from_gguf(path), with_control=True)
    for text in json.loads((HERE / "goldens/gate_b_texts.json").read_text()):
        ids = tokenizer.encode(text, add_special_tokens=False).ids[:NUM_TOKENS]
        assert len(ids) == NUM_TOKENS, text[:40]
        yield ids


def pagoda_logits(tool, path, dtypes, ids):
    numbers = struct.pack(f"<I{len(ids)}I", len(ids), *ids)
    positions = struct.pack(f"<I{len(ids)}I", len(ids), *range(len(ids)))
    output = subprocess.run([tool, path, *dtypes], input=numbers + positions, stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(output, "<f4").reshape(len(ids), -1)


class Llama:
    """llama.cpp by the plain functions of its Python package, with everything but the KV type at its defaults."""

    def __init__(self, path, kv_type, threads):
        from llama_cpp import llama_cpp as api

        self.api = api
        self.silence = api.llama_log_callback(lambda level, text, data: None)
        api.llama_log_set(self.silence, None)
        api.llama_backend_init()
        self.model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
        parameters = api.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = NUM_TOKENS
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.type_k = parameters.type_v = kv_type
        self.context = api.llama_init_from_model(self.model, parameters)
        assert self.model and self.context
        self.columns = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))

    def logits(self, ids):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        batch = self.api.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for position, token in enumerate(ids):
            batch.token[position], batch.pos[position] = token, position
            batch.n_seq_id[position], batch.seq_id[position][0], batch.logits[position] = 1, 0, True
        assert self.api.llama_decode(self.context, batch) == 0
        rows = self.api.llama_get_logits(self.context)
        result = np.ctypeslib.as_array(rows, (len(ids), self.columns)).copy()
        self.api.llama_batch_free(batch)
        return result


def log_probabilities(logits):
    logits = logits.astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def compared(reference, other):
    """Per position: KL(reference || other), and 1 where the first choice is the same."""
    kl = np.empty(len(reference))
    for begin in range(0, len(reference), 64):
        part = slice(begin, begin + 64)
        p, q = log_probabilities(reference[part]), log_probabilities(other[part])
        kl[part] = (np.exp(p) * (p - q)).sum(-1)
    return np.stack([kl, reference.argmax(-1) == other.argmax(-1)])


def reference_logits(path, ids, work):
    file = work / "reference.npy"
    if not file.exists():
        import torch

        from make_gate_a import load_model

        model = load_model(path)
        with torch.no_grad():
            np.save(file, np.stack([model(torch.tensor([i])).logits[0].numpy() for i in ids]))
    return np.load(file, mmap_mode="r")


def measure(args, ids):
    """The figures of every variant asked for, [2, texts * tokens] each, new or kept."""
    figures = {}
    for name, (program, settings) in VARIANTS.items():
        file = args.work / f"{name.replace(' ', '_').replace('/', '_')}.npy"
        if not file.exists() and name in args.only:
            reference = reference_logits(args.model, ids, args.work)
            llama = Llama(args.model, settings, args.threads) if program == "llama.cpp" else None
            rows = [llama.logits(i) if llama else pagoda_logits(args.tool, args.model, settings, i) for i in ids]
            np.save(file, np.concatenate([compared(*pair) for pair in zip(reference, rows)], axis=1))
        if file.exists():
            figures[name] = np.load(file)
    return figures


def resampled(figures):
    """The means of `figures` over runs of RUN positions drawn with replacement, [2, NUM_RESAMPLES]; the same draws for all."""
    runs = figures.reshape(2, -1, RUN).mean(-1)
    draws = np.random.default_rng(SEED).integers(0, runs.shape[1], (NUM_RESAMPLES, runs.shape[1]))
    return runs[:, draws].mean(-1)


def interval(values):
    low, high = np.percentile(values, [2.5, 97.5])
    return f"[{low:.4g}, {high:.4g}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=[OURS, THEIRS, "llama.cpp f16"], choices=VARIANTS)
    parser.add_argument("--threads", type=int, default=1, help="of llama.cpp")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    ids = list(texts(args.model))
    figures = measure(args, ids)
    print(f"{sum(map(len, ids))} positions of {len(ids)} texts\n\n| | mean KL | median | 99th percentile | same first choice |")
    print("|---|---|---|---|---|")
    for name, (kl, same) in figures.items():
        draws = resampled(figures[name])
        print(f"| {name} | {kl.mean():.4g} {interval(draws[0])} | {np.median(kl):.4g} | {np.percentile(kl, 99):.4g} | "
              f"{100 * same.mean():.2f} % {interval(100 * draws[1])} |")
    ours, theirs = resampled(figures[OURS]), resampled(figures[THEIRS])
    ratio = figures[OURS][0].mean() / figures[THEIRS][0].mean()
    points = 100 * (figures[OURS][1].mean() - figures[THEIRS][1].mean())
    print(f"\nmean KL: {ratio:.3f} times llama.cpp's {interval(ours[0] / theirs[0])}; "
          f"first choice: {points:+.2f} points {interval(100 * (ours[1] - theirs[1]))}")
    passed = ratio <= MAX_RATIO and points >= -MAX_POINTS
    print("passed" if passed else "not passed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
