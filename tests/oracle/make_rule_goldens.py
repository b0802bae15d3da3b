"""Writes what the tests of text/ compare splitting rules, NFC and tokenizer.json with: the answers of `tokenizers`.

    pip install -r tests/oracle/requirements.txt
    python tests/oracle/make_rule_goldens.py

split_RULE.bin          per 4096 code points, the CRC-32 of the byte lengths of all pieces of their contexts
nfc.bin                 per 4096 code points, the CRC-32 of the normal form of their contexts
tokenizer_json/RULE/    a small tokenizer.json trained with the rule
tokenizer_json_RULE.bin 300 strings: records of oracle_tokenizer, each with its ids as 16-bit numbers
"""

import itertools
import pathlib
import struct
import types
import zlib

from tokenizers import normalizers

import oracle_tokenizer as oracle
import tokenizer_rules
from tokenizer_cases import Cases, code_points

GOLDENS = pathlib.Path(__file__).resolve().parent / "goldens"
CODE_POINTS_PER_SUM = 4096
STRINGS, VOCABULARY, SEED, LONGEST = 300, 700, 11, 200


def split_context(c):
    """Neighbours of every class, so that the code point's own class shows; equal to the one in splitter_test.cc."""
    return f"a{c}b1{c}2 !{c}! {c}\n'{c}s'{c}e'L{c}"


def nfc_context(c):
    """Equal to the one in nfc_test.cc."""
    return f"a{c}\u0301\u0323{c}\u0315e{c}\u0345{c}{c}\u1161{c}\u11a8 \u0300{c}\u093c{c}\u3099"


def blocks():
    points = code_points()
    while block := list(itertools.islice(points, CODE_POINTS_PER_SUM)):
        yield [chr(c) for c in block]


def split_sums(rule):
    splitter = tokenizer_rules.splitting(rule)
    for block in blocks():
        pieces = splitter.pre_tokenize_str("".join(map(split_context, block)))
        lengths = [len(spelling) for spelling, _ in pieces]
        yield zlib.crc32(struct.pack(f"<{len(lengths)}I", *lengths))


def nfc_sums():
    form = normalizers.NFC()
    for block in blocks():
        yield zlib.crc32(form.normalize_str("".join(map(nfc_context, block))).encode("utf-8"))


def strings_golden(rule):
    control = tokenizer_rules.train(rule, VOCABULARY)
    plain = tokenizer_rules.without_specials(control)
    folder = GOLDENS / "tokenizer_json" / rule
    folder.mkdir(parents=True, exist_ok=True)
    control.save(str(folder / "tokenizer.json"), pretty=False)
    tokens, kinds = tokenizer_rules.kinds(control)
    cases = Cases(types.SimpleNamespace(tokens=tokens, kinds=kinds), SEED)
    data = b""
    for text in itertools.islice((s for s in iter(cases.string, None) if len(s) <= LONGEST), STRINGS):
        for mode, tokenizer in ((oracle.PLAIN, plain), (oracle.CONTROLS, control)):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            data += oracle.record(mode, text) + struct.pack(f"<I{len(ids)}H", len(ids), *ids)
    (GOLDENS / f"tokenizer_json_{rule}.bin").write_bytes(data)


def main():
    (GOLDENS / "nfc.bin").write_bytes(b"".join(struct.pack("<I", s) for s in nfc_sums()))
    for rule in tokenizer_rules.RULES:
        (GOLDENS / f"split_{rule}.bin").write_bytes(b"".join(struct.pack("<I", s) for s in split_sums(rule)))
        strings_golden(rule)


if __name__ == "__main__":
    main()
