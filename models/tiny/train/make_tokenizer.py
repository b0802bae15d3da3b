"""The vocabulary of models/tiny: 1,024 byte-level BPE tokens under SmolLM2's split rule, learnt from its own stories."""

import itertools

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import stories

VOCABULARY_SIZE, NUM_DOCUMENTS, SEED = 1024, 4000, 1
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# Words of ordinary English, so that text from elsewhere is not spelt letter by letter.
ENGLISH = """the of and to in is that it for was on are as with his they at be this from have or by one had not but what all
were when we there can an your which their if do will each about how up out them then she many some so these would other into
has more her two like him see time could no make than first been its who now people my made over did down only way find use may
water long little very after words called just where most know get through back much before go good new write our used me man
too any day same right look think also around another came come work three word must because does part even place well such"""


def texts():
    chance = itertools.islice(stories.documents(SEED, 20, 0.1), NUM_DOCUMENTS)
    for parts in chance:
        yield "".join(text for text, _ in parts)
    for _ in range(150):
        yield " " + " ".join(ENGLISH.split())


def make():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY_SIZE, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts(), trainer)
    assert tokenizer.get_vocab_size() == VOCABULARY_SIZE
    return tokenizer
