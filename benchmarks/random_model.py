"""A model of a real one's size with random weights, and a tokenizer for it: nothing is downloaded.

What it says is nonsense; how long it takes over it isn't, since the time a token takes hangs on
the shapes and not on the values. The token that ends an answer is looked for as ever, but stands
behind the last one that the model can say: every answer is as long as it is asked to be.

torch and transformers are imported by the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

_SPECIAL = ("<|padding|>", "<|im_start|>", "<|im_end|>")
_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder's numbers, by the names that Qwen2's configuration has for them; weights are tied."""

    name: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int


QWEN_1_5B = Shape("Qwen2.5-1.5B", 1536, 28, 12, 2, 8960, 151_936, 32_768)
"""Source: https://huggingface.co/Qwen/Qwen2.5-1.5B-Instruct, config.json."""

TINY = Shape("a tiny model", 128, 4, 4, 2, 256, 4_096, 4_096)
"""Answers a few hundred tokens a second on two CPU cores."""


def make_random_model(folder: Path, shape: Shape, device: str, seed: int = 0) -> int:
    """Write the model, as safetensors in bfloat16, and its tokenizer; the number of parameters."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, Qwen2Config

    transformers.logging.disable_progress_bar()
    config = Qwen2Config(
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.num_hidden_layers,
        num_attention_heads=shape.num_attention_heads,
        num_key_value_heads=shape.num_key_value_heads,
        intermediate_size=shape.intermediate_size,
        vocab_size=shape.vocab_size,
        max_position_embeddings=shape.max_position_embeddings,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.generation_config.eos_token_id = shape.vocab_size
    model.save_pretrained(folder)
    make_tokenizer(shape.vocab_size).save_pretrained(folder)
    return int(model.num_parameters())


def make_tokenizer(vocab_size: int) -> Any:
    """A byte-level BPE tokenizer of just so many entries, and one more that ends an answer.

    It has every byte, so it takes any text, byte by byte; the rest are made-up words, so that
    what a model says at random is text.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    entries = [*_SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    entries += islice(_words(), vocab_size - len(entries))
    raw = Tokenizer(models.BPE(vocab={word: at for at, word in enumerate(entries)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token=_SPECIAL[0],
        eos_token="<|endoftext|>",
        additional_special_tokens=list(_SPECIAL[1:]),
    )
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def _words() -> chain[str]:
    """Half a million words of one to three syllables; Ġ is byte-level BPE's space."""
    syllables = ["".join(pair) for pair in product("bdfghklmnprstvwz", "aeiou")]
    each = (product(syllables, repeat=count) for count in (1, 2, 3))
    return chain.from_iterable(map("Ġ{}".format, map("".join, words)) for words in each)
