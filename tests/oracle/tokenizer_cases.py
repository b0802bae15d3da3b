"""Generated strings for the tokenizer comparison: the same seed gives the same strings."""

import random

SCRIPTS = [
    (0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x2FF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x530, 0x58F),
    (0x590, 0x5FF), (0x600, 0x6FF), (0x700, 0x74F), (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE00, 0xE7F),
    (0xF00, 0xFFF), (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x137F), (0x13A0, 0x13FF),
    (0x1780, 0x17FF), (0x1800, 0x18AF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x2BFF),
    (0x3000, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA48F), (0xAC00, 0xD7A3), (0xE000, 0xE0FF),
    (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFFEF), (0x10000, 0x100FF), (0x10400, 0x1044F), (0x10D30, 0x10D90),
    (0x11300, 0x113FF), (0x11F00, 0x11F5F), (0x12000, 0x123FF), (0x13000, 0x143FF), (0x16A00, 0x16FFF),
    (0x1D400, 0x1D7FF), (0x1E000, 0x1E5FF), (0x1F000, 0x1FAFF), (0x20000, 0x2A6DF), (0x2EBF0, 0x2EE5D),
    (0x31350, 0x323AF), (0x40000, 0x400FF), (0xE0000, 0xE01EF), (0x10FF00, 0x10FFFF),
]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\n\n", "\u000b", "\u000c", "\u0085", "\u00a0", "\u1680", "\u180e", "\u2003",
          "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff"]
DIGITS = ["0", "1", "7", "42", "1234567890", "\u0663", "\u0966", "\u00b2", "\u00bd", "\u2167", "\u3007", "\u4e00",
          "\U0001d7d8", "\U00010d40", "\U00011de3", "\U00016ff4", "\u2460"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'RE", "'\u017f", "\u2019s", "'", "''", "'ss"]
EMOJI = ["\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1eb\U0001f1f7", "\U0001f44b\U0001f3fd",
         "\u2764\ufe0f", "1\ufe0f\u20e3", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001fae8", "\u263a"]
CODE = ["def f(x):\n", "    return ", "if (a && b) {\n", "}\n", "// note\n", "/* ", " */", "std::vector<int>", "->", "==",
        "!=", "\t\t", "x_1", "0x1F", "1e-9", '"text"', "'c'", "#include <a.h>\n", "SELECT * FROM t;", "<div class=\"a\">",
        "</div>", "\\n", "${HOME}", "@decorator", "...", "::", ";;", "[0]", "--flag=1", "https://a.b/c?d=e&f=%20"]
CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "start|>", "<|", "|>", "<repo_name>", "<file_sep>",
           "<|im_start|", "<<|im_end|>>", "<empty_output>", "[cut]", "[cut]]", "[cut]]]", "[cut]]]]", "[cu[cut]"]


class Cases:
    def __init__(self, vocabulary, seed, spelling=None, control=()):
        """`spelling`: what a normal token stands for; absent: bytes in the byte alphabet. `control`: more words like CONTROL."""
        self.control = [*CONTROL, *control]
        self.random = random.Random(seed)
        # Pieces of text that BPE has something to do with; those that are not whole characters are left out.
        alphabet = byte_alphabet()
        spelling = spelling or (lambda token: bytes(alphabet[c] for c in token).decode())
        self.pieces = []
        for token, kind in zip(vocabulary.tokens, vocabulary.kinds):
            try:
                text = spelling(token) if kind == 1 else token
                self.pieces.append(text)
            except (KeyError, UnicodeDecodeError):
                pass

    def character(self, low=None, high=None):
        while True:
            c = self.random.randint(0 if low is None else low, 0x10FFFF if high is None else high)
            if not 0xD800 <= c <= 0xDFFF:
                return chr(c)

    def script_run(self):
        low, high = self.random.choice(SCRIPTS)
        return "".join(self.character(low, high) for _ in range(self.random.randint(1, 12)))

    def any_run(self):
        return "".join(self.character() for _ in range(self.random.randint(1, 6)))

    def control_run(self):
        return "".join(chr(self.random.choice([*range(0x20), 0x7F, *range(0x80, 0xA0), 0x200D, 0xFFFC]))
                       for _ in range(self.random.randint(1, 8)))

    def long_run(self):
        unit = self.random.choice([self.random.choice(self.pieces), self.character(), "a", " ", "\n", "ab", "'", "0", "=",
                                   "\u4e00", self.random.choice(SPACES)])
        return unit * self.random.choice([2, 3, 7, 17, 33, 47, 48, 49, 50, 64, 100, 257, 600])

    def joined_pieces(self):
        return "".join(self.random.choice(self.pieces) for _ in range(self.random.randint(1, 12)))

    def letters_only(self):
        """One piece without a place to split, made of tokens: the hardest order of merges."""
        pieces = [p for p in (self.random.choice(self.pieces) for _ in range(60)) if p.isascii() and p.isalpha()]
        return "".join(pieces)

    def from_list(self, choices):
        return "".join(self.random.choice(choices) for _ in range(self.random.randint(1, 6)))

    def fragment(self):
        kinds = [self.script_run, self.script_run, self.any_run, self.control_run, self.joined_pieces, self.joined_pieces,
                 lambda: self.from_list(SPACES), lambda: self.from_list(DIGITS), lambda: self.from_list(CONTRACTIONS),
                 lambda: self.from_list(EMOJI), lambda: self.from_list(CODE), lambda: self.from_list(self.control),
                 lambda: " " + self.random.choice(self.pieces)]
        return self.random.choice(kinds)()

    def string(self):
        roll = self.random.random()
        if roll < 0.06:
            return self.long_run()
        if roll < 0.12:
            return self.letters_only()
        if roll < 0.15:
            return self.fragment() + self.long_run() + self.fragment()
        return "".join(self.fragment() for _ in range(self.random.randint(1, 8)))


def byte_alphabet():
    """Character to byte, as GPT-2's vocabularies spell bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(b): b for b in printable}
    hidden = [b for b in range(256) if b not in printable]
    alphabet.update({chr(0x100 + i): b for i, b in enumerate(hidden)})
    return alphabet


def marked(cases, vocabulary, plain):
    """One marked text whose input parts hold control tokens, and its ids: the template's control tokens cut the text, and what
    lies between, whoever wrote it, is plain."""
    control = [(t, i) for i, (t, k) in enumerate(zip(vocabulary.tokens, vocabulary.kinds)) if k == 3]
    parts, ids, stretch = [], [], ""
    for _ in range(cases.random.randint(1, 5)):
        name, number = cases.random.choice(control)
        words = cases.random.choice(["user\n", " ", "x", ""])
        given = cases.string() + cases.random.choice(["", *CONTROL])
        parts += [(False, name + words), (True, given)]
        ids += plain.encode(stretch, add_special_tokens=False).ids + [number]
        stretch = words + given
    return parts, ids + plain.encode(stretch, add_special_tokens=False).ids


def of_code_point(c):
    """A code point alone and between neighbours of every class, so that its own class shows."""
    c = chr(c)
    return f"{c}\n\na{c}b 1{c}1 !{c}!  {c}  {c}{c} x{c} '{c}s"


def code_points():
    return (c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)
