#!/usr/bin/env python3
"""Compares the tokenizer with the `tokenizers` package over a real model's vocabulary.

    check_tokenizer.py --model FILE.gguf --tool build/dev/tests/text/encode_tool [--strings 100000] [--seed 1]

Generated strings are encoded with and without control tokens, and as marked text; then every code point, alone and between
neighbours. Prints the number of differences and the first few; exit code 0 when there is none.
"""

import argparse
import io
import itertools
import subprocess
import sys

import oracle_tokenizer as oracle
from tokenizer_cases import Cases, code_points, marked, of_code_point

BATCH = 20000


class Comparison:
    def __init__(self, vocabulary, tool, model):
        self.plain = oracle.build(vocabulary, with_control=False)
        self.control = oracle.build(vocabulary, with_control=True)
        self.vocabulary = vocabulary
        self.command = [tool, model]
        self.cases = self.tokens = self.differences = 0

    def run(self, records):
        """`records`: (record bytes, expected ids, what to show)."""
        answers = subprocess.run(self.command, input=b"".join(r[0] for r in records),
                                 stdout=subprocess.PIPE, check=True).stdout
        stream = io.BytesIO(answers)
        for _, expected, shown in records:
            got = oracle.read_ids(stream)
            self.cases += 1
            self.tokens += len(expected)
            if got != expected:
                self.differences += 1
                if self.differences <= 10:
                    print(f"differs: {shown!r}\n  expected {expected}\n  got      {got}")
        assert stream.read() == b""

    def strings(self, texts):
        for mode, encoder in ((oracle.PLAIN, self.plain), (oracle.CONTROLS, self.control)):
            encoded = encoder.encode_batch(texts, add_special_tokens=False)
            self.run([(oracle.record(mode, t), e.ids, (mode, t)) for t, e in zip(texts, encoded)])

    def marked(self, cases, count):
        made = [marked(cases, self.vocabulary, self.plain) for _ in range(count)]
        self.run([(oracle.marked_record(parts), ids, parts) for parts, ids in made])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--strings", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    vocabulary = oracle.from_gguf(args.model)
    comparison = Comparison(vocabulary, args.tool, args.model)
    cases = Cases(vocabulary, args.seed)
    for begin in range(0, args.strings, BATCH):
        comparison.strings([cases.string() for _ in range(min(BATCH, args.strings - begin))])
    print(f"seed {args.seed}: {args.strings} strings, with and without control tokens: {comparison.cases} cases, "
          f"{comparison.tokens} tokens, {comparison.differences} differences", flush=True)
    comparison.marked(cases, args.strings // 10)
    print(f"with {args.strings // 10} marked texts: {comparison.cases} cases, {comparison.differences} differences",
          flush=True)
    points = map(of_code_point, code_points())
    while batch := list(itertools.islice(points, BATCH)):
        comparison.strings(batch)
    print(f"with every code point: {comparison.cases} cases, {comparison.tokens} tokens, "
          f"{comparison.differences} differences")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
