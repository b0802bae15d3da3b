#!/usr/bin/env python3
"""Trains models/tiny from nothing and writes everything the folder holds but its README.

    train.py --out FOLDER --state FILE [--threads N]

In order: the tokenizer, weights to begin with, three stages of growing text length, the last steps at a falling rate; then the
weights are rounded to bf16. The state is written now and then, and taken up again when the file is there.
"""

import argparse
import pathlib
import time

import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

import beginning
import make_tokenizer
import stories
from files import write_configuration

SEED = 20
ANSWER_WEIGHT = 4.0
# (length of a row in tokens, rows, steps, most filler sentences, share of documents that are lists of facts)
STAGES = [(256, 8, 350, 5, 0.7), (512, 5, 350, 18, 0.25), (768, 4, 2300, 34, 0.1), (256, 8, 1600, 6, 0.8), (768, 4, 900, 34, 0.2)]
# The rate rises and falls once per round; the second round goes back to short rows, where owners are told apart soonest.
ROUNDS, WARMUP, COOLDOWN = [3000, 2500], 40, 900
ADAM_RATE, MUON_RATE, DECAY = 3e-3, 0.02, 0.05
SAVE_EVERY, REPORT_EVERY = 50, 20


class Rows:
    """Rows of whole documents, filled up with the end-of-text token, and the weight of each token in the loss."""

    def __init__(self, tokenizer, seed, length, max_fillers, share_of_lists):
        self.tokenizer, self.length = tokenizer, length
        self.source = stories.documents(seed, max_fillers, share_of_lists)
        self.waiting = []

    def _more(self):
        parts = [next(self.source) for _ in range(256)]
        texts = [text for document in parts for text, _ in document]
        encoded = iter(self.tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        for document in parts:
            ids, weights = [], []
            for _, is_answer in document:
                piece = next(encoded).ids
                ids += piece
                weights += [ANSWER_WEIGHT if is_answer else 1.0] * len(piece)
            self.waiting.append((ids, weights))

    def _take(self, room):
        """The first waiting document that fits into `room`; for a whole row, the first one, cut."""
        for index, (ids, _) in enumerate(self.waiting[:64]):
            if len(ids) <= room:
                return self.waiting.pop(index)
        return self.waiting.pop(0) if room == self.length + 1 else None

    def row(self):
        ids, weights = [], []
        while len(ids) <= self.length:
            if len(self.waiting) < 64:
                self._more()
            taken = self._take(self.length + 1 - len(ids))
            if taken is None:
                break
            ids += taken[0]
            weights += taken[1]
        missing = self.length + 1 - len(ids)
        return (ids + [0] * missing)[:self.length + 1], (weights + [0.0] * missing)[:self.length + 1]

    def batch(self, count):
        rows = [self.row() for _ in range(count)]
        return torch.tensor([r[0] for r in rows]), torch.tensor([r[1] for r in rows])


def orthogonal(matrix):
    """Near the closest orthogonal matrix, by five steps of Newton-Schulz (the polynomial of the Muon optimizer)."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


class Muon:
    """Momentum whose step is made orthogonal: for the matrices between the layers."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.momenta = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self, share):
        for parameter, momentum in zip(self.parameters, self.momenta):
            momentum.mul_(0.95).add_(parameter.grad)
            update = orthogonal(parameter.grad + 0.95 * momentum)
            rate = MUON_RATE * share
            parameter.mul_(1 - rate * DECAY)
            parameter.add_(update, alpha=-rate * max(1, parameter.shape[0] / parameter.shape[1]) ** 0.5)
            parameter.grad = None


def new_model(vocabulary_size):
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=vocabulary_size, hidden_size=192, intermediate_size=512, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=2048, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, tie_word_embeddings=True, initializer_range=0.04,
        bos_token_id=0, eos_token_id=2, attn_implementation="sdpa", use_cache=False, dtype="float32"))
    return model.float()


def loss_of(model, ids, weights):
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    logits = functional.linear(hidden, model.model.embed_tokens.weight)
    losses = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    weights = weights[:, 1:].flatten()
    answers = weights == ANSWER_WEIGHT
    return (losses * weights).sum() / weights.sum(), losses[answers].mean().detach(), losses[weights == 1].mean().detach()


def stage_of(step):
    """The index of the stage that `step` belongs to, and how many of its steps are done."""
    for index, stage in enumerate(STAGES):
        if step < stage[2]:
            return index, step
        step -= stage[2]
    raise IndexError


def share_of_rate(step):
    """The share of the full rates at `step`: up within WARMUP steps of a round, down to nothing over its last COOLDOWN."""
    for steps in ROUNDS:
        if step < steps:
            return min(1, (step + 1) / WARMUP, (steps - step) / COOLDOWN)
        step -= steps
    raise IndexError


class Training:
    """The model, its optimizers and the number of steps done."""

    def __init__(self, tokenizer):
        self.tokenizer, self.step = tokenizer, 0
        self.total = sum(stage[2] for stage in STAGES)
        self.model = new_model(tokenizer.get_vocab_size())
        beginning.shape(self.model, SEED)
        named = list(self.model.named_parameters())
        self.muon = Muon([p for name, p in named if p.ndim == 2 and "embed" not in name])
        self.rest = [p for name, p in named if p.ndim != 2 or "embed" in name]
        self.adam = torch.optim.AdamW(self.rest, lr=ADAM_RATE, betas=(0.9, 0.98), weight_decay=0.0)

    def save(self, path):
        state = {"step": self.step, "model": self.model.state_dict(), "muon": self.muon.momenta, "adam": self.adam.state_dict()}
        torch.save(state, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)

    def load(self, path):
        state = torch.load(path)
        self.step, self.muon.momenta = state["step"], state["muon"]
        self.model.load_state_dict(state["model"])
        self.adam.load_state_dict(state["adam"])

    def rows(self, stage, skipped):
        length, count, _, max_fillers, share_of_lists = STAGES[stage]
        rows = Rows(self.tokenizer, SEED + 1 + stage, length, max_fillers, share_of_lists)
        for _ in range(skipped * count):
            rows.row()
        return rows

    def one_step(self, batch):
        share = share_of_rate(self.step)
        loss, answers, text = loss_of(self.model, *batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.rest, 1.0)
        self.muon.step(share)
        self.adam.param_groups[0]["lr"] = ADAM_RATE * share
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.step += 1
        return float(answers), float(text)

    def run(self, state_path):
        begin, seen = time.process_time(), []
        stage, done = stage_of(self.step)
        rows = self.rows(stage, done)
        while self.step < self.total:
            if stage_of(self.step) == (stage + 1, 0):
                stage += 1
                rows = self.rows(stage, 0)
            seen.append(self.one_step(rows.batch(STAGES[stage][1])))
            if self.step % REPORT_EVERY == 0:
                answers, text = (sum(column) / len(seen) for column in zip(*seen))
                seen.clear()
                print(f"step {self.step} of {self.total}, length {STAGES[stage][0]}, {time.process_time() - begin:.0f} s of "
                      f"processor: loss in answers {answers:.4f}, elsewhere {text:.4f}", flush=True)
            if self.step % SAVE_EVERY == 0 or self.step == self.total:
                self.save(state_path)


def write_weights(model, folder):
    state = {name: tensor.detach().to(torch.bfloat16).contiguous() for name, tensor in model.state_dict().items()
             if name != "lm_head.weight"}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--state", required=True, type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer.make()
    tokenizer.save(str(args.out / "tokenizer.json"))
    training = Training(tokenizer)
    write_configuration(args.out, training.model.config)
    if args.state.exists():
        training.load(args.state)
    training.run(args.state)
    write_weights(training.model, args.out)
    print(f"{sum(p.numel() for p in training.model.parameters())} parameters")


if __name__ == "__main__":
    main()
