#!/usr/bin/env python3
"""Does models/tiny remember? Names, towns, and pairs of colour and thing that it never saw in training are told once; a question
about one of them follows after a given number of tokens. Run with transformers, fp32, on the bf16 weights.

    examine.py --model FOLDER [--each N] [--distances N ...] [--threads N]

An answer counts only when every token of the sentence, its end included, is the greedy one.
"""

import argparse
import collections
import pathlib

import torch
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

import stories
from words import Chance

SEED = 77
DISTANCES = [50, 100, 200, 400, 600]
# (name, kind of the fact, which of its questions, people in the story). With one person the words are said once and have to be copied
# from there; with two, who each have a thing, the right ones have to be told from the others: by chance half of them are.
QUESTIONS = [("a town", "town", 0, 1), ("a thing", "thing", 2, 1), ("a pet's name", "pet", 0, 1), ("which thing", "thing", 2, 2),
             ("whose thing", "thing", 0, 2)]


def case(chance, tokenizer, distance, kind, which, people):
    """A story told by the user whose fact ends `distance` tokens before the answer begins, give or take ten; and the answer."""
    while True:
        story = stories.Story(chance, people, people * 2, 0)
        facts = [f for f in story.facts if f.kind == kind]
        if not facts:
            continue
        fact = chance.choice(facts)
        question, answer = fact.asked(chance, which)
        line = next(i for i, s in enumerate(story.beginning) if fact.words["x"] in s and fact.words["name"] in s)
        text, rest = " ".join(story.beginning[line + 1:]), []
        ending = f" {question}{stories.END}{stories.ASSISTANT}"
        while (length := len(tokenizer.encode(text + " ".join(rest) + ending).ids)) < distance - 10:
            rest.append(stories.filler(chance, story.people))
        if length <= distance + 10:
            prompt = stories.USER + " ".join(story.beginning + rest) + ending
            return tokenizer.encode(prompt).ids, tokenizer.encode(answer + "<|im_end|>").ids


@torch.no_grad()
def is_remembered(model, prompt, answer):
    logits = model(torch.tensor([prompt + answer]), logits_to_keep=len(answer) + 1).logits[0, :-1]
    return logits.argmax(-1).tolist() == answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True, type=pathlib.Path)
    parser.add_argument("--each", type=int, default=40, help="cases for each question and distance")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--distances", type=int, nargs="*", default=DISTANCES)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    model = LlamaForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    chance = Chance(SEED, held_out=True)
    right = collections.Counter()
    print("tokens between | " + " | ".join(question[0] for question in QUESTIONS) + " | all")
    for distance in args.distances:
        for question in QUESTIONS:
            for _ in range(args.each):
                right[distance, question] += is_remembered(model, *case(chance, tokenizer, distance, *question[1:]))
        shares = [right[distance, q] / args.each for q in QUESTIONS]
        print(f"{distance} | " + " | ".join(f"{100 * s:.1f}" for s in shares) + f" | {100 * sum(shares) / len(shares):.1f}", flush=True)


if __name__ == "__main__":
    main()
