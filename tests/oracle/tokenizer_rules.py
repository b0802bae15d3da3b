"""The splitting rules of published models as `tokenizers` objects, and small tokenizer.json files trained with each."""

import json
import pathlib
import subprocess

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RULES = ("gpt-2", "llama-bpe", "qwen2", "smollm")
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"\p{N}{1,3}" + REST
QWEN2 = CONTRACTIONS + r"\p{N}" + REST
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def splitting(rule):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if rule == "gpt-2":
        return byte_level
    if rule == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    expression = {"llama-bpe": LLAMA3, "qwen2": QWEN2}[rule]
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(expression), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])


def corpus():
    names = subprocess.run(["git", "ls-files", "*.h", "*.cc", "*.py", "*.proto", "*.md"], cwd=ROOT, capture_output=True,
                           text=True, check=True).stdout.split()
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names if "fixtures" not in name]
    return texts + ["\u00catre o\u00f9? \u00c7a va, na\u00efve caf\u00e9. Stra\u00dfe, gr\u00f6\u00dfer. "
                    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043a\u0430\u043a \u0434\u0435\u043b\u0430? "
                    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002 "
                    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \uc548\ub155\ud558\uc138\uc694 \u0645\u0631\u062d\u0628\u0627 "
                    "2024 1999 10,000 3.14 I'M you'll don't WE'RE"] * 20


def train(rule, size):
    """A tokenizer with the parts that the rule's models have: specials, BOS, a normalizer, whole tokens before merges."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=rule == "llama-bpe"))
    tokenizer.pre_tokenizer = splitting(rule)
    tokenizer.decoder = decoders.ByteLevel()
    if rule == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    # SmolLM2's vocabulary lacks some bytes; the others have them all.
    alphabet = [] if rule == "smollm" else sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False, normalized=False),
                          AddedToken("[cut]", special=False, normalized=True),
                          AddedToken("[cut]]", special=False, normalized=False, lstrip=True),
                          AddedToken("[cut]]]", special=False, normalized=False, rstrip=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if rule == "llama-bpe":
        bos = SPECIALS[0]
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, 0)])])
    return tokenizer


def without_specials(tokenizer):
    """The same tokenizer to which the control tokens' spellings are plain text."""
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if not token["special"]]
    data["post_processor"] = None
    return Tokenizer.from_str(json.dumps(data))


def kinds(tokenizer):
    """Spellings and GGUF kinds by id, as tokenizer_cases.Cases wants them."""
    data = json.loads(tokenizer.to_str())
    added = {token["content"]: 3 if token["special"] else 4 for token in data["added_tokens"]}
    spellings = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    return spellings, [added.get(token, 1) for token in spellings]
