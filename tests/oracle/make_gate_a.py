#!/usr/bin/env python3
"""Makes the goldens of gate A: what transformers, in fp32 over the dequantized weights, answers to twenty prompts.

    make_gate_a.py --model FILE.gguf [--draft FILE.json]

goldens/gate_a.json: per prompt its ids, 64 greedy ids, and the gap between the two highest logits at each of them.
goldens/gate_a_logits.bin: per prompt ten positions of the whole text (prompt and answer), see write_logits.
"""

import argparse
import hashlib
import json
import pathlib
import struct

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import oracle_tokenizer as oracle
from gate_a_prompts import PROMPTS

GOLDENS = pathlib.Path(__file__).resolve().parent / "goldens"
NUM_GREEDY, NUM_POSITIONS, NUM_TOP, NUM_COLUMNS = 64, 10, 64, 256
NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
TOP_NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def target_name(name):
    if name in TOP_NAMES:
        return TOP_NAMES[name]
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.weight"


def half_rotated(weight, heads):
    """GGUF keeps the two numbers that rope rotates side by side; transformers keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def load_model(path):
    reader = GGUFReader(path)

    def value(key):
        return reader.fields["llama." + key].contents()

    heads, kv_heads = value("attention.head_count"), value("attention.head_count_kv")
    head_size = reader.fields.get("llama.attention.key_length")
    config = LlamaConfig(
        vocab_size=value("vocab_size"), hidden_size=value("embedding_length"), intermediate_size=value("feed_forward_length"),
        num_hidden_layers=value("block_count"), num_attention_heads=heads, num_key_value_heads=kv_heads,
        max_position_embeddings=value("context_length"), rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        rope_theta=value("rope.freq_base"), rope_parameters={"rope_type": "default", "rope_theta": value("rope.freq_base")},
        head_dim=head_size.contents() if head_size else value("embedding_length") // heads, tie_word_embeddings=True, attn_implementation="eager", dtype="float32")
    state = {}
    for tensor in reader.tensors:
        weight = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if ".attn_q." in tensor.name:
            weight = half_rotated(weight, heads)
        if ".attn_k." in tensor.name:
            weight = half_rotated(weight, kv_heads)
        state[target_name(tensor.name)] = torch.from_numpy(np.ascontiguousarray(weight))
    model = LlamaForCausalLM(config).float().eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert model.config.rope_parameters["rope_theta"] == value("rope.freq_base")
    return model


@torch.no_grad()
def answer(model, prompt, draft):
    """64 greedy ids, the gap at each, and the logits after every token of prompt and answer but the last. `draft` is a guess: as
    far as the model's own rows choose it, one pass over the whole stands for a pass per token."""
    ids, gaps, cache = [], [], DynamicCache()
    guess = draft[:NUM_GREEDY - 1]
    rows = model(torch.tensor([prompt + guess]), cache=cache).logits[0]
    for row, guessed in zip(rows[len(prompt) - 1:], [*guess, None]):
        top = torch.topk(row, 2)
        ids.append(int(top.indices[0]))
        gaps.append(float(top.values[0] - top.values[1]))
        if ids[-1] != guessed:
            break
    kept = len(prompt) + len(ids) - 1
    cache.crop(kept - len(rows))  # a negative number of tokens: so many are dropped from the end
    rows = rows[:kept]
    while len(ids) < NUM_GREEDY:
        row = model(torch.tensor([ids[-1:]]), cache=cache).logits[0]
        top = torch.topk(row[0], 2)
        ids.append(int(top.indices[0]))
        gaps.append(float(top.values[0] - top.values[1]))
        rows = torch.cat([rows, row])
    return ids, gaps, rows


def columns(vocabulary_size):
    """Fixed columns, spread over the vocabulary."""
    return np.arange(NUM_COLUMNS) * vocabulary_size // NUM_COLUMNS


def write_logits(file, rows, prompt_index):
    """Little-endian, per position: u32 prompt, u32 position, 256 x f32 (the fixed columns), 64 x u32 and 64 x f32 (the
    highest, in order), f64 mean and f64 root mean square of all."""
    positions = sorted({round(i * (len(rows) - 1) / (NUM_POSITIONS - 1)) for i in range(NUM_POSITIONS)})
    for position in positions:
        row = rows[position]
        top = torch.topk(row, NUM_TOP)
        all_columns = row.double()
        file.write(struct.pack("<II", prompt_index, position))
        file.write(row.numpy()[columns(len(row))].astype("<f4").tobytes())
        file.write(top.indices.numpy().astype("<u4").tobytes() + top.values.numpy().astype("<f4").tobytes())
        file.write(struct.pack("<dd", float(all_columns.mean()), float(all_columns.square().mean().sqrt())))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--draft", help="JSON: a guess at each answer, to be checked in one pass instead of 64")
    args = parser.parse_args()
    path = args.model
    drafts = json.loads(pathlib.Path(args.draft).read_text()) if args.draft else [[]] * len(PROMPTS)
    tokenizer = oracle.build(oracle.from_gguf(path), with_control=True)
    model = load_model(path)
    answers = []
    with open(GOLDENS / "gate_a_logits.bin", "wb") as file:
        for index, (name, text, length) in enumerate(PROMPTS):
            prompt = tokenizer.encode(text, add_special_tokens=False).ids[:length]
            ids, gaps, rows = answer(model, prompt, drafts[index])
            write_logits(file, rows, index)
            answers.append({"name": name, "prompt_ids": prompt, "greedy_ids": ids, "gaps": [round(g, 6) for g in gaps]})
            print(f"{name}: {len(prompt)} tokens, smallest gap {min(gaps):.4g}: {tokenizer.decode(ids)[:70]!r}", flush=True)
    digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    lines = ",\n".join(json.dumps(a) for a in answers)
    (GOLDENS / "gate_a.json").write_text(f'{{"model_sha256": "{digest}", "prompts": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
