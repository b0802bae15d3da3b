"""Tokenizers made by the `tokenizers` package from a vocabulary's own tokens and merges, and the forms they are stored in.

The rule is given here step by step and not read from a model library: transformers' reader of GGUF files uses plain GPT-2
splitting for `smollm`, which is not the model's rule (every digit is split off first).
"""

import dataclasses
import struct

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


@dataclasses.dataclass
class Vocabulary:
    pre: str
    tokens: list
    kinds: list
    merges: list  # "left right"
    bos: int
    eos: int


def from_gguf(path):
    from gguf import GGUFReader  # only the full comparison needs the package

    fields = GGUFReader(path).fields

    def value(key):
        return fields["tokenizer.ggml." + key].contents()

    assert value("model") == "gpt2"
    return Vocabulary(value("pre"), value("tokens"), value("token_type"), value("merges"),
                      value("bos_token_id"), value("eos_token_id"))


def save(vocabulary, path):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(f"pre {vocabulary.pre}\nbos {vocabulary.bos}\neos {vocabulary.eos}\n")
        for token, kind in zip(vocabulary.tokens, vocabulary.kinds):
            file.write(f"token {kind} {token}\n")
        for merge in vocabulary.merges:
            file.write(f"merge {merge}\n")


def load(path):
    vocabulary = Vocabulary("", [], [], [], 0, 0)
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            key, value = line.rstrip("\n").split(" ", 1)
            if key == "token":
                vocabulary.kinds.append(int(value[0]))
                vocabulary.tokens.append(value[2:])
            elif key == "merge":
                vocabulary.merges.append(value)
            else:
                setattr(vocabulary, key, value if key == "pre" else int(value))
    return vocabulary


def splitting(pre):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if pre == "gpt-2":
        return byte_level
    assert pre == "smollm", pre
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])


def build(vocabulary, with_control):
    """The oracle. Without control tokens their spellings are plain text to it."""
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}
    oracle = Tokenizer(models.BPE(vocab=ids, merges=[tuple(m.split(" ")) for m in vocabulary.merges]))
    oracle.pre_tokenizer = splitting(vocabulary.pre)
    for token, kind in zip(vocabulary.tokens, vocabulary.kinds):
        if kind == CONTROL and with_control:
            oracle.add_special_tokens([AddedToken(token, special=True, normalized=False)])
        if kind == USER_DEFINED:
            oracle.add_tokens([AddedToken(token, special=False, normalized=False)])
    return oracle


# Records for the program encode_tool: a mode byte, then the text or, for marked text, its parts, or ids to make text of.
PLAIN, CONTROLS, MARKED, DECODE, DECODE_ALL = range(5)


def packed(text):
    data = text.encode("utf-8")
    return struct.pack("<I", len(data)) + data


def record(mode, text):
    return struct.pack("<B", mode) + packed(text)


def decode_record(mode, ids):
    return struct.pack(f"<BI{len(ids)}I", mode, len(ids), *ids)


def read_text(stream):
    (length,) = struct.unpack("<I", stream.read(4))
    return stream.read(length).decode("utf-8")


def marked_record(parts):
    """`parts`: pairs of (from_input, text)."""
    data = struct.pack("<BI", MARKED, len(parts))
    for from_input, text in parts:
        data += struct.pack("<B", int(from_input)) + packed(text)
    return data


def read_ids(stream):
    """One answer: the ids, or the words of an error."""
    (count,) = struct.unpack("<I", stream.read(4))
    if count == 0xFFFFFFFF:
        (length,) = struct.unpack("<I", stream.read(4))
        return stream.read(length).decode()
    return list(struct.unpack(f"<{count}I", stream.read(4 * count)))
