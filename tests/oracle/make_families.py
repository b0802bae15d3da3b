#!/usr/bin/env python3
"""Makes small random-weight models of every family Pagoda loads, and what transformers answers with them.

    make_families.py [NAME ...]

families/NAME/       config.json and safetensors, as transformers saves them
families/NAME.gguf   the same weights, written by the gguf package
families/goldens.json, families/logits.bin: one text per model, its logits in fp32 at some positions, a greedy continuation.

Before anything is kept, transformers' own GGUF reader must give the same logits from NAME.gguf as the folder gave. It does
not read rope scaling, so it gets the folder's configuration where there is any.
"""

import argparse
import json
import math
import pathlib
import shutil

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config

FAMILIES = pathlib.Path(__file__).resolve().parent / "families"
VOCABULARY, TEXT_LENGTH, NUM_GREEDY = 256, 320, 24
POSITIONS = [0, 1, 17, 63, 319]
SIZES = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=512, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}

# name: (configuration, type on disk)
MODELS = {
    "llama": (LlamaConfig(**SIZES, rope_parameters=PLAIN), torch.bfloat16),
    "llama-tied": (LlamaConfig(**SIZES, rope_parameters=PLAIN | {"rope_theta": 100000.0}, tie_word_embeddings=True),
                   torch.bfloat16),
    "llama-head-dim": (LlamaConfig(**SIZES, head_dim=32, rope_parameters=PLAIN), torch.float16),
    "llama3-scaling": (LlamaConfig(**SIZES, rope_parameters=LLAMA3), torch.bfloat16),
    "linear-scaling": (LlamaConfig(**SIZES, rope_parameters=LINEAR, tie_word_embeddings=True), torch.float32),
    "mistral": (MistralConfig(**SIZES, sliding_window=None, rope_parameters=PLAIN), torch.float16),
    "qwen2": (Qwen2Config(**SIZES, rope_parameters=PLAIN | {"rope_theta": 1000000.0}, tie_word_embeddings=True),
              torch.bfloat16),
}
SHARDED = {"llama": "40KB"}


def make_model(name):
    config, dtype = MODELS[name]
    torch.manual_seed(sum(name.encode()))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "norm" in parameter_name:
                parameter.copy_(1.0 + 0.25 * torch.randn_like(parameter))
            elif parameter_name.endswith("bias"):
                parameter.copy_(0.5 * torch.randn_like(parameter))
            else:
                parameter.copy_(1.5 / math.sqrt(parameter.shape[-1]) * torch.randn_like(parameter))
    return model.to(dtype)


def interleaved(weight, heads):
    """GGUF's llama keeps the two numbers that rope rotates side by side; transformers keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def rope_factors(config):
    """What llama3 scaling divides each frequency by, in the words of the model's report."""
    rope, size = config.rope_parameters, config.head_dim
    context, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for i in range(size // 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (2 * i / size)
        if wavelength < context / high:
            factors.append(1.0)
        elif wavelength > context / low:
            factors.append(rope["factor"])
        else:
            smooth = (context / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def write_metadata(writer, config, architecture):
    head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if head_size != config.hidden_size // config.num_attention_heads:
        writer.add_key_length(head_size)
        writer.add_value_length(head_size)
    if architecture == "llama":
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(head_size)
    if config.rope_parameters["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config.rope_parameters["factor"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([f"t{i}" for i in range(VOCABULARY)])
    writer.add_token_merges(["t 1"])
    writer.add_eos_token_id(config.eos_token_id)


def write_gguf(model, path):
    config = model.config
    architecture = "qwen2" if config.model_type == "qwen2" else "llama"
    writer = gguf.GGUFWriter(path, architecture)
    write_metadata(writer, config, architecture)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], config.num_hidden_layers)
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config))
    for name, parameter in model.named_parameters():
        values = parameter.detach().float().numpy()
        if architecture == "llama" and "q_proj" in name:
            values = interleaved(values, config.num_attention_heads)
        if architecture == "llama" and "k_proj" in name:
            values = interleaved(values, config.num_key_value_heads)
        kind = gguf.GGMLQuantizationType.F32
        if values.ndim > 1:
            kind = {torch.float32: gguf.GGMLQuantizationType.F32, torch.float16: gguf.GGMLQuantizationType.F16,
                    torch.bfloat16: gguf.GGMLQuantizationType.BF16}[parameter.dtype]
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor([ids])).logits[0].float().numpy()


def check_gguf(path, config, ids, expected):
    given = {} if config.rope_parameters["rope_type"] == "default" else {"config": config}
    other = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32,
                                                 attn_implementation="eager", **given).eval()
    difference = np.abs(logits_of(other, ids) - expected).max()
    print(f"    transformers from {path.name}: largest difference {difference:.2e}")
    assert difference < 1e-4, "the GGUF file does not hold the same model"


@torch.no_grad()
def greedy(model, ids):
    """Ids, and the gap between the two highest logits at each."""
    said, gaps = list(ids), []
    for _ in range(NUM_GREEDY):
        top = torch.topk(model(torch.tensor([said])).logits[0, -1], 2)
        said.append(int(top.indices[0]))
        gaps.append(float(top.values[0] - top.values[1]))
    return said[len(ids):], gaps


def make(name):
    print(name)
    folder = FAMILIES / name
    shutil.rmtree(folder, ignore_errors=True)
    model = make_model(name)
    model.save_pretrained(folder, max_shard_size=SHARDED.get(name, "5GB"))
    write_gguf(model, FAMILIES / f"{name}.gguf")
    # What was rounded to the type on disk, widened: the arithmetic is fp32.
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    generator = np.random.default_rng(sum(name.encode()))
    ids = [int(i) for i in generator.integers(0, VOCABULARY, TEXT_LENGTH)]
    logits = logits_of(oracle, ids)
    print(f"    logits: spread {logits.std():.2f}, largest {np.abs(logits).max():.2f}")
    check_gguf(FAMILIES / f"{name}.gguf", oracle.config, ids, logits)
    answer, gaps = greedy(oracle, ids)
    return {"name": name, "ids": ids, "greedy": answer, "gaps": [round(gap, 6) for gap in gaps]}, logits[POSITIONS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(MODELS))
    names = parser.parse_args().names
    FAMILIES.mkdir(exist_ok=True)
    texts, rows = zip(*[make(name) for name in names])
    (FAMILIES / "goldens.json").write_text(json.dumps({"positions": POSITIONS, "models": texts}, separators=(",", ":")) + "\n")
    np.stack(rows).astype("<f4").tofile(FAMILIES / "logits.bin")


if __name__ == "__main__":
    main()
