#!/usr/bin/env python3
"""Makes what the tokenizer's tests read: goldens over the small vocabulary and, with --train, that vocabulary itself.

    make_tokenizer_goldens.py [--train]

The vocabulary is trained once, over the repository's own text at that time, and then stays: training again gives another.
Bytes that do not occur there have no token, as in SmolLM2's vocabulary. A golden file holds records as encode_tool reads
them, each followed by a u32 count and u16 ids.
"""

import argparse
import dataclasses
import json
import pathlib
import struct
import subprocess

from tokenizers import Tokenizer, models, trainers

import oracle_tokenizer as oracle
from tokenizer_cases import Cases, marked

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY = ROOT / "tests/fixtures/vocabulary_2k.txt"
GOLDENS = ROOT / "tests/oracle/goldens"
NUM_TOKENS = 2048
KINDS = {"<|endoftext|>": oracle.CONTROL, "<|im_start|>": oracle.CONTROL, "<|im_end|>": oracle.CONTROL,
         "[cut]]]": oracle.CONTROL, "[cut]": oracle.USER_DEFINED, "[cut]]": oracle.USER_DEFINED}
STRINGS, MARKED, SEED, LONGEST = 1500, 200, 7, 300


def train():
    names = subprocess.run(["git", "ls-files", "*.h", "*.cc", "*.py", "*.proto", "*.md", "*.txt"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split()
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names if "fixtures" not in name]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = oracle.splitting("smollm")
    # What the sources lack, so that other scripts have merges too.
    texts += ["Être où? Ça va, naïve café. Straße, größer. Привет, как дела? Это просто. 你好，世界。今天天气很好。 "
              "こんにちは世界、これはテストです。 안녕하세요 세계 مرحبا بالعالم שלום עולם नमस्ते दुनिया 😀😀👍🏽❤️ — … “x”"] * 20
    trainer = trainers.BpeTrainer(vocab_size=NUM_TOKENS, special_tokens=list(KINDS), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    oracle.save(oracle.Vocabulary("smollm", tokens, [KINDS.get(t, oracle.NORMAL) for t in tokens], merges, 1, 2), VOCABULARY)


def with_ids(record, ids):
    return record + struct.pack(f"<I{len(ids)}H", len(ids), *ids)


def make_golden(vocabulary):
    plain = oracle.build(vocabulary, with_control=False)
    control = oracle.build(vocabulary, with_control=True)
    cases = Cases(vocabulary, SEED)
    strings = [s for s in (cases.string() for _ in range(2 * STRINGS)) if len(s) <= LONGEST][:STRINGS]
    data = b""
    for text in strings:
        data += with_ids(oracle.record(oracle.PLAIN, text), plain.encode(text, add_special_tokens=False).ids)
        if any(token in text for token in KINDS):
            data += with_ids(oracle.record(oracle.CONTROLS, text), control.encode(text, add_special_tokens=False).ids)
    for _ in range(MARKED):
        parts, ids = marked(cases, vocabulary, plain)
        if sum(len(text) for _, text in parts) <= LONGEST:
            data += with_ids(oracle.marked_record(parts), ids)
    (GOLDENS / f"tokenizer_{vocabulary.pre}.bin").write_bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--train", action="store_true", help="train the vocabulary anew first")
    if parser.parse_args().train:
        train()
    vocabulary = oracle.load(VOCABULARY)
    for pre in ("smollm", "gpt-2"):
        make_golden(dataclasses.replace(vocabulary, pre=pre))


if __name__ == "__main__":
    main()
