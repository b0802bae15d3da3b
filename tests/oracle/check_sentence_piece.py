"""Compares SentencePiece vocabularies with `sentencepiece` and, as a tokenizer.json in each known form, with `tokenizers`.

    python tests/oracle/check_sentence_piece.py --tool build/dev/tests/text/encode_tool --model FILE.gguf [--strings 100000]

Generated strings are encoded with and without control tokens, and the ids made text again; then every code point among
neighbours of every class. Prints one line per form and fails on a difference.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import threading

import oracle_tokenizer as oracle
import sentence_piece
from tokenizer_cases import code_points, of_code_point

BATCH = 2000


class Tool:
    """One process of encode_tool, asked in batches."""

    def __init__(self, tool, model):
        self.process = subprocess.Popen([tool, str(model)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, records):
        sender = threading.Thread(target=self.send, args=(records,))
        sender.start()
        return sender, self.process.stdout

    def send(self, records):
        self.process.stdin.write(b"".join(records))
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Comparison:
    def __init__(self, name, tool, encoder):
        self.name, self.tool, self.encoder = name, tool, encoder
        self.encodings = self.tokens = self.texts = self.differences = 0

    def compare(self, what, ours, wanted):
        if ours == wanted:
            return
        self.differences += 1
        if self.differences <= 5:
            print(f"{self.name}: {what!r}\n  ours   {ours}\n  oracle {wanted}")

    def strings(self, texts):
        for begin in range(0, len(texts), BATCH):
            batch = texts[begin:begin + BATCH]
            for mode in (oracle.PLAIN, oracle.CONTROLS):
                wanted = [self.encoder.encode(text, mode == oracle.CONTROLS) for text in batch]
                sender, answers = self.tool.ask([oracle.record(mode, text) for text in batch])
                for text, ids in zip(batch, wanted):
                    self.compare((mode, text), oracle.read_ids(answers), ids)
                sender.join()
                self.encodings += len(batch)
                self.tokens += sum(map(len, wanted))
                self.decode(wanted)

    def decode(self, lists):
        lists = [(ids, text) for ids in lists if (text := self.encoder.decode(ids)) is not None]
        sender, answers = self.tool.ask([oracle.decode_record(oracle.DECODE, ids) for ids, _ in lists])
        for ids, text in lists:
            self.compare(ids, oracle.read_text(answers), text)
        sender.join()
        self.texts += len(lists)

    def report(self):
        print(f"{self.name}: {self.encodings} encodings, {self.tokens} tokens, {self.texts} texts of ids, "
              f"{self.differences} differences", flush=True)


def check(name, arguments, model, encoder, vocabulary):
    tool = Tool(arguments.tool, model)
    comparison = Comparison(name, tool, encoder)
    cases = sentence_piece.cases(vocabulary, arguments.seed)
    comparison.strings([cases.string() for _ in range(arguments.strings)])
    comparison.report()
    comparison.name = f"{name}, with every code point"
    points = map(of_code_point, code_points())
    while batch := list(itertools.islice(points, BATCH)):
        comparison.strings(batch)
    comparison.report()
    tool.close()
    return comparison.differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forms", nargs="+", default=("gguf", *sentence_piece.FORMS))
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
