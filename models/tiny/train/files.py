"""The small JSON files beside the weights."""

import json

CHAT_TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
                 "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def write_configuration(folder, config):
    write(folder / "config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
        "hidden_size": config.hidden_size, "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers, "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads, "head_dim": config.head_dim, "vocab_size": config.vocab_size,
        "max_position_embeddings": config.max_position_embeddings, "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": 10000.0, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 2})
    write(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": [0, 2]})
    write(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|endoftext|>", "eos_token": "<|im_end|>",
        "unk_token": None, "add_bos_token": False, "clean_up_tokenization_spaces": False, "model_max_length": 2048,
        "chat_template": CHAT_TEMPLATE})


def write(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")
