"""The words that models/tiny was taught: everything its stories are made of."""

import hashlib
import random

ONSETS = ["B", "Br", "D", "Dr", "F", "G", "H", "J", "K", "Kl", "L", "M", "N", "P", "R", "S", "St", "T", "Tr", "V", "W", "Z"]
MIDDLES = ["l", "r", "n", "m", "nd", "rt", "s", "v", "k", "b", "d", "ll", "rn", "lm", "st", "p"]
VOWELS = ["a", "e", "i", "o", "u", "ai", "ea"]
HER_ENDINGS, HIS_ENDINGS = ["a", "ia", "ina", "elle"], ["o", "en", "us", "ik", "ard"]
KNOWN_HER = ["Mira", "Anna", "Lena", "Nora", "Sofia", "Ella", "Clara", "Ida", "Maria", "Julia", "Rosa", "Emma"]
KNOWN_HIS = ["Tom", "Ben", "Otto", "Paul", "Hugo", "Leo", "Max", "Jonas", "Felix", "Oskar", "Emil", "Karl"]
TOWN_ENDINGS = ["ton", "field", "bridge", "mouth", "ham", "haven", "ford", "wick"]

COLOURS = ["red", "blue", "green", "yellow", "white", "black", "golden", "silver", "brown", "purple", "grey", "pink"]
THINGS = ["kite", "drum", "lamp", "boat", "coat", "hat", "book", "bell", "box", "ball", "chair", "clock", "cup", "key", "ring",
          "rope", "scarf", "shell", "stone", "violin", "wagon", "basket", "blanket", "bottle", "button", "candle", "feather",
          "flute", "mirror", "pen", "ribbon", "spoon", "whistle", "horse", "map", "bag", "bowl", "flag", "mask", "brush"]
FOODS = ["bread", "apples", "cheese", "soup", "honey", "plums", "cake", "pancakes", "nuts", "berries", "rice", "eggs"]
ANIMALS = ["dog", "cat", "goat", "hen", "duck", "rabbit", "fox", "owl"]
JOBS = ["baker", "sailor", "teacher", "farmer", "painter", "doctor", "miller", "gardener", "singer", "tailor"]
PLACES = ["the garden", "the forest", "the harbour", "the market", "the river", "the old mill", "the hill", "the lake",
          "the bridge", "the school", "the beach", "the tower"]


def is_held_out(*words):
    """One name and one pair of colour and thing in eight is never seen in training: they are for the examination."""
    return hashlib.sha256(" ".join(words).encode()).digest()[0] < 32


class Person:
    """A name and the words that stand for it. Names in -a, -ia, -ina, -elle are hers, the others his."""

    def __init__(self, name, is_her):
        self.name = name
        self.he, self.his, self.him = ("she", "her", "her") if is_her else ("he", "his", "him")
        self.child, self.adult = ("girl", "woman") if is_her else ("boy", "man")


class Chance(random.Random):
    """Seeded choices. `held_out` chooses from the words kept for the examination instead of the others."""

    def __init__(self, seed, held_out=False):
        super().__init__(seed)
        self.held_out = held_out

    def stem(self):
        return self.choice(ONSETS) + self.choice(VOWELS) + self.choice(MIDDLES)

    def person(self, taken):
        while True:
            is_her = self.random() < 0.5
            if not self.held_out and self.random() < 0.25:
                name = self.choice(KNOWN_HER if is_her else KNOWN_HIS)
            else:
                name = self.stem() + (self.choice(VOWELS[:5]) + self.choice(MIDDLES) if self.random() < 0.3 else "")
                name += self.choice(HER_ENDINGS if is_her else HIS_ENDINGS)
                if is_held_out(name) != self.held_out:
                    continue
            if name not in taken:
                taken.add(name)
                return Person(name, is_her)

    def pet_name(self, taken):
        return self.person(taken).name

    def town(self, taken):
        while True:
            name = self.stem() + self.choice(TOWN_ENDINGS)
            if name not in taken and is_held_out(name) == self.held_out:
                taken.add(name)
                return name

    def thing(self, taken):
        """A colour and a thing, such as `red kite`. The same colour, or the same thing, may come twice in a story."""
        while True:
            pair = self.choice(COLOURS), self.choice(THINGS)
            if " ".join(pair) not in taken and is_held_out(*pair) == self.held_out:
                taken.add(" ".join(pair))
                return " ".join(pair)
