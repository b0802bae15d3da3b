"""SentencePiece vocabularies for the comparison: read from a GGUF file, given to the oracles, and small ones made here.

A GGUF file's oracle is the package `sentencepiece`, over a model made of the file's tokens and scores. Its rule for added tokens
is not the oracle's own: text is cut at them first and each stretch is encoded as a text of its own, as the published
tokenizer.json of Llama 2, Mistral 0.1, TinyLlama and Zephyr (a Prepend normalizer) and llama.cpp do. A tokenizer.json's oracle
is `tokenizers`, reading the same file.
"""

import dataclasses
import io
import json
import re

import sentencepiece
from gguf import GGUFReader, GGUFWriter
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer

import tokenizer_rules
from tokenizer_cases import Cases

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
MARK = "\u2581"
CONTROLS, USER_SYMBOLS = ["<|im_start|>", "<|im_end|>"], ["<tool_call>", "[cut]]"]
# Words for tokenizer_cases.Cases.
WORDS = ["<s>", "</s>", "<unk>", "<tool_call>", " <s> ", MARK + "<s>", "<0x41>", MARK, MARK + MARK]
FORMS = ("prepend", "prepend-normalized", "first", "always", "never", "replace-only")


@dataclasses.dataclass
class Vocabulary:
    tokens: list
    scores: list
    kinds: list


def cases(vocabulary, seed):
    return Cases(vocabulary, seed, spelling=lambda token: token.replace(MARK, " "), control=WORDS)


def from_gguf(path):
    fields = GGUFReader(path).fields
    return Vocabulary(*(fields["tokenizer.ggml." + key].contents() for key in ("tokens", "scores", "token_type")))


def train(size):
    """A vocabulary in the shape of Llama 2's, trained on the text of this repository."""
    out = io.BytesIO()
    lines = (line for text in tokenizer_rules.corpus() for line in text.split("\n"))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=out, vocab_size=size, model_type="bpe", byte_fallback=True, split_digits=True,
        character_coverage=0.9995, normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=True,
        allow_whitespace_only_pieces=True, control_symbols=CONTROLS, user_defined_symbols=USER_SYMBOLS, minloglevel=2)
    model = sentencepiece_model_pb2.ModelProto.FromString(out.getvalue())
    return Vocabulary([p.piece for p in model.pieces], [p.score for p in model.pieces], [p.type for p in model.pieces])


def save_gguf(vocabulary, path):
    writer = GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_scores(vocabulary.scores)
    writer.add_token_types(vocabulary.kinds)
    writer.add_bos_token_id(vocabulary.tokens.index("<s>"))
    writer.add_eos_token_id(vocabulary.tokens.index("</s>"))
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


class GgufOracle:
    """The ids and the text of a GGUF file's vocabulary."""

    def __init__(self, vocabulary):
        self.tokens, self.kinds = vocabulary.tokens, vocabulary.kinds
        self.ids = {token: i for i, token in enumerate(vocabulary.tokens)}
        self.processor = self.make_processor(vocabulary)
        self.cuts = {False: self.cutter((USER_DEFINED,)), True: self.cutter((USER_DEFINED, CONTROL, UNKNOWN))}

    def make_processor(self, vocabulary):
        model = sentencepiece_model_pb2.ModelProto()
        model.trainer_spec.model_type = model.trainer_spec.BPE
        model.trainer_spec.byte_fallback = True
        model.trainer_spec.vocab_size = len(vocabulary.tokens)
        model.normalizer_spec.name = "identity"
        model.normalizer_spec.add_dummy_prefix = True
        model.normalizer_spec.remove_extra_whitespaces = False
        model.normalizer_spec.escape_whitespaces = True
        # Added tokens are cut out before; to the package they are control tokens, which text never becomes.
        unknown = vocabulary.kinds.index(UNKNOWN) if UNKNOWN in vocabulary.kinds else vocabulary.tokens.index("<unk>")
        for i, (token, score, kind) in enumerate(zip(vocabulary.tokens, vocabulary.scores, vocabulary.kinds)):
            kept = kind if kind in (NORMAL, BYTE) else CONTROL
            model.pieces.add(piece=token, score=score, type=UNKNOWN if i == unknown else kept)
        return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())

    def cutter(self, kinds):
        added = sorted((t for t, k in zip(self.tokens, self.kinds) if k in kinds), key=len, reverse=True)
        return re.compile("(" + "|".join(map(re.escape, added)) + ")") if added else None

    def encode(self, text, with_control):
        cut = self.cuts[with_control]
        ids = []
        for i, stretch in enumerate(cut.split(text) if cut else [text]):
            ids += [self.ids[stretch]] if i % 2 else self.processor.encode(stretch)
        return ids

    def encode_all(self, texts, with_control):
        return [self.encode(text, with_control) for text in texts]

    def decode(self, ids):
        """Nothing where an added token is among the ids: the package does not know these as its own."""
        if all(self.kinds[i] in (NORMAL, BYTE) for i in ids):
            return self.processor.decode(ids)
        return None


def tokenizer_json(vocabulary, form):
    """The same vocabulary as a tokenizer.json, with merges in the order of the scores."""
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}
    for token in USER_SYMBOLS:
        ids.setdefault(token, len(ids))
    normal = {t for t, k in zip(vocabulary.tokens, vocabulary.kinds) if k == NORMAL}
    merges = []
    for token, score, kind in zip(vocabulary.tokens, vocabulary.scores, vocabulary.kinds):
        if kind == NORMAL:
            merges += [(-score, -cut, token[:cut], token[cut:]) for cut in range(1, len(token))
                       if token[:cut] in normal and token[cut:] in normal]
    is_metaspace = form in ("first", "always", "never")
    normalized = form == "prepend-normalized"
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    steps = [replace] if form == "replace-only" else [{"type": "Prepend", "prepend": MARK}, replace]
    strip = [] if form in ("never", "replace-only") else [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    bos = {"id": "<s>", "ids": [ids["<s>"]], "tokens": ["<s>"]}

    def added(token, special, **more):
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": normalized}
        return {"id": ids[token], "content": token, "special": special, **flags, **more}

    tokens = [added(t, True) for t, k in zip(vocabulary.tokens, vocabulary.kinds) if k in (UNKNOWN, CONTROL)]
    tokens += [added(USER_SYMBOLS[0], False, normalized=True), added(USER_SYMBOLS[1], False, lstrip=True, rstrip=True)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens,
        "normalizer": None if is_metaspace else {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Metaspace", "replacement": MARK, "prepend_scheme": form, "split": False}
        if is_metaspace else None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": bos}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            *strip]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": form == "always",
                  "vocab": ids, "merges": [[left, right] for _, _, left, right in sorted(merges)]},
    }


class JsonOracle:
    """The ids and the text of a tokenizer.json."""

    def __init__(self, data):
        self.control = Tokenizer.from_str(json.dumps(data))
        self.plain = tokenizer_rules.without_specials(self.control)
        self.specials = {token["id"] for token in data["added_tokens"] if token["special"]}

    def encode(self, text, with_control):
        return (self.control if with_control else self.plain).encode(text, add_special_tokens=False).ids

    def encode_all(self, texts, with_control):
        encoder = self.control if with_control else self.plain
        return [made.ids for made in encoder.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids):
        """Without control tokens. The package's own skip_special_tokens misses those looked for in normalised text."""
        return self.control.decode([i for i in ids if i not in self.specials], skip_special_tokens=False)
