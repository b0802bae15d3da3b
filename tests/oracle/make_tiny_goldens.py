#!/usr/bin/env python3
"""Makes goldens/tiny.json: what transformers, in fp32 over the bf16 weights of models/tiny, answers to twenty prompts.

Per prompt its text and ids, 32 greedy ids, and the gap between the two highest logits at each of them. Needs the packages of
models/tiny/train/requirements.txt.
"""

import hashlib
import json
import pathlib
import sys

import torch
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "models/tiny"
sys.path.insert(0, str(FOLDER / "train"))

import stories  # noqa: E402
from words import Chance  # noqa: E402

NUM_GREEDY, NUM_STORIES, SEED = 32, 8, 5
STARTS = ["Once upon a time there was a girl named Mira.", "Mira had a red kite. Tom had a blue boat. Whose is the red kite?",
          "The wind was strong", "1, 2, 3, 5, 8, 13, 21", "Ça va? 東京 2024\n\n\tdef f(x): return x", "kite " * 40]
ASKED = ["Tell me a story about a girl named Mira who has a red kite.", "Hello!", "Who are you?",
         "What is the capital of France?", "Please tell me a story about Otto and a silver bell.",
         "Mira has a red kite. Tom has a blue boat. Who has the red kite?"]


def turn(words):
    return stories.USER + words + stories.END + stories.ASSISTANT


def prompts():
    chance = Chance(SEED, held_out=True)
    yield from STARTS
    yield from map(turn, ASKED)
    for index in range(NUM_STORIES):
        story = stories.Story(chance, 2 + index % 2, 4, 4 * index)
        yield turn(story.paragraphs() + "\n" + story.questions(1)[0][0])


@torch.no_grad()
def greedy(model, ids):
    answer, gaps = [], []
    for _ in range(NUM_GREEDY):
        top = torch.topk(model(torch.tensor([ids + answer]), logits_to_keep=1).logits[0, -1], 2)
        answer.append(int(top.indices[0]))
        gaps.append(round(float(top.values[0] - top.values[1]), 6))
    return answer, gaps


def main():
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    model = LlamaForCausalLM.from_pretrained(FOLDER, dtype=torch.float32, attn_implementation="eager").eval()
    lines = []
    for text in prompts():
        ids = tokenizer.encode(text).ids
        answer, gaps = greedy(model, ids)
        lines.append(json.dumps({"text": text, "prompt_ids": ids, "greedy_ids": answer, "gaps": gaps}))
        print(f"{len(ids)} tokens, smallest gap {min(gaps):.4g}: {tokenizer.decode(answer)!r}", flush=True)
    digest = hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest()
    target = ROOT / "tests/oracle/goldens/tiny.json"
    target.write_text(f'{{"model_sha256": "{digest}", "prompts": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
