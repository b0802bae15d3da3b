"""Compares Pagoda's reading of tokenizer.json files with `tokenizers`, for each published splitting rule.

    python tests/oracle/check_tokenizer_rules.py --tool build/dev/tests/text/encode_tool [--strings 100000] [--rules qwen2]

A vocabulary is trained with each rule; the same file is then read by both. Prints one line per rule and fails on a difference.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import threading
import types

import oracle_tokenizer as oracle
import tokenizer_rules
from tokenizer_cases import Cases

BATCH = 2000


def answers(tool, directory, texts):
    """Plain ids, then ids with control tokens, of each text."""
    with subprocess.Popen([tool, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        def send():
            for text in texts:
                process.stdin.write(oracle.record(oracle.PLAIN, text) + oracle.record(oracle.CONTROLS, text))
            process.stdin.close()

        sender = threading.Thread(target=send)
        sender.start()
        for _ in texts:
            yield oracle.read_ids(process.stdout), oracle.read_ids(process.stdout)
        sender.join()


def check(rule, arguments):
    control = tokenizer_rules.train(rule, arguments.vocabulary)
    plain = tokenizer_rules.without_specials(control)
    tokens, kinds = tokenizer_rules.kinds(control)
    cases = Cases(types.SimpleNamespace(tokens=tokens, kinds=kinds), arguments.seed)
    compared = num_tokens = differences = 0
    with tempfile.TemporaryDirectory() as directory:
        control.save(str(pathlib.Path(directory) / "tokenizer.json"))
        texts = [cases.string() for _ in range(arguments.strings)]
        ours = answers(arguments.tool, directory, texts)
        for begin in range(0, len(texts), BATCH):
            batch = texts[begin:begin + BATCH]
            for text, one, two in zip(batch, plain.encode_batch(batch, add_special_tokens=False),
                                      control.encode_batch(batch, add_special_tokens=False)):
                wanted = (one.ids, two.ids)
                found = next(ours)
                compared += 2
                num_tokens += len(one.ids) + len(two.ids)
                if found != wanted:
                    differences += 1
                    if differences <= 5:
                        print(f"{rule}: {text!r}\n  ours   {found}\n  oracle {wanted}")
    print(f"{rule}: {compared} encodings of {len(texts)} strings, {num_tokens} tokens, {differences} differences", flush=True)
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", nargs="+", default=tokenizer_rules.RULES, choices=tokenizer_rules.RULES)
    arguments = parser.parse_args()
    sys.exit(1 if sum(check(rule, arguments) for rule in arguments.rules) else 0)


if __name__ == "__main__":
    main()
