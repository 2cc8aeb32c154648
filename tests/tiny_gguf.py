"""The tiny model as one GGUF file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tiny_model import CHAT_TEMPLATE


def write_tiny_gguf(folder: Path, file: Path, architecture: str = "llama") -> Path:
    """The tiny model as llama.cpp would keep it."""
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_name("Tiny")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(10_000.0)
    vocab = {**tokenizer["model"]["vocab"]}
    words = sorted(vocab, key=lambda word: vocab[word])
    special = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in special else 1 for word in words])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(vocab["<|im_end|>"])
    writer.add_bos_token_id(vocab["<|im_start|>"])
    writer.add_pad_token_id(vocab["<|endoftext|>"])
    writer.add_chat_template(CHAT_TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, value in load_file(folder / "model.safetensors").items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # llama.cpp keeps rotary pairs side by side.
            n = heads if "q_proj" in name else kv_heads
            rows, columns = value.shape
            value = (
                value.reshape(n, 2, rows // n // 2, columns).swapaxes(1, 2).reshape(rows, columns)
            )
        new = names.get_name(name, try_suffixes=(".weight",))
        writer.add_tensor(new, value.copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
