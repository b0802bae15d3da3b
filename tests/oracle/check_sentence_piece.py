"""Compares SentencePiece vocabularies with `sentencepiece` and, as a tokenizer.json in each known form, with `tokenizers`.

    python tests/oracle/check_sentence_piece.py --tool build/dev/tests/text/encode_tool --model FILE.gguf [--strings 100000]

Generated strings are encoded with and without control tokens, and ids made text again; then every code point among neighbours of
every class, in the forms of --code-points. Prints one line per form and fails on a difference.
"""

import argparse
import io
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import oracle_tokenizer as oracle
import sentence_piece
from tokenizer_cases import code_points, of_code_point

BATCH = 10000


class Comparison:
    def __init__(self, name, command, encoder):
        self.name, self.command, self.encoder = name, command, encoder
        self.encodings = self.tokens = self.texts = self.differences = 0

    def compare(self, what, ours, wanted):
        if ours == wanted:
            return
        self.differences += 1
        if self.differences <= 5:
            print(f"{self.name}: {what!r}\n  ours   {ours}\n  oracle {wanted}")

    def ask(self, records):
        answers = subprocess.run([*self.command], input=b"".join(records), stdout=subprocess.PIPE, check=True).stdout
        return io.BytesIO(answers)

    def strings(self, texts):
        for mode in (oracle.PLAIN, oracle.CONTROLS):
            wanted = self.encoder.encode_all(texts, mode == oracle.CONTROLS)
            answers = self.ask([oracle.record(mode, text) for text in texts])
            for text, ids in zip(texts, wanted):
                self.compare((mode, text), oracle.read_ids(answers), ids)
            self.encodings += len(texts)
            self.tokens += sum(map(len, wanted))
        self.decode(wanted)

    def decode(self, lists):
        lists = [(ids, text) for ids in lists if (text := self.encoder.decode(ids)) is not None]
        answers = self.ask([oracle.decode_record(oracle.DECODE, ids) for ids, _ in lists])
        for ids, text in lists:
            self.compare(ids, oracle.read_text(answers), text)
        self.texts += len(lists)

    def report(self):
        print(f"{self.name}: {self.encodings} encodings, {self.tokens} tokens, {self.texts} texts of ids, "
              f"{self.differences} differences", flush=True)


def batches(texts):
    texts = iter(texts)
    while batch := list(itertools.islice(texts, BATCH)):
        yield batch


def check(name, arguments, model, encoder, vocabulary):
    comparison = Comparison(name, [arguments.tool, str(model)], encoder)
    cases = sentence_piece.cases(vocabulary, arguments.seed)
    for batch in batches(cases.string() for _ in range(arguments.strings)):
        comparison.strings(batch)
    comparison.report()
    if name in arguments.code_points:
        comparison.name = f"{name}, with every code point"
        for batch in batches(map(of_code_point, code_points())):
            comparison.strings(batch)
        comparison.report()
    return comparison.differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forms", nargs="+", default=("gguf", *sentence_piece.FORMS))
    parser.add_argument("--code-points", nargs="*", default=("gguf", "first"), help="forms to try every code point in")
    arguments = parser.parse_args()
    vocabulary = sentence_piece.from_gguf(arguments.model)
    differences = 0
    for form in arguments.forms:
        if form == "gguf":
            differences += check(form, arguments, arguments.model, sentence_piece.GgufOracle(vocabulary), vocabulary)
            continue
        with tempfile.TemporaryDirectory() as folder:
            data = sentence_piece.tokenizer_json(vocabulary, form)
            (pathlib.Path(folder) / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
            differences += check(form, arguments, folder, sentence_piece.JsonOracle(data), vocabulary)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
