"""A tiny model folder with random weights: answers nonsense, loads in a blink, knows every rule.

Its byte-level tokenizer has few merges, so most characters beyond ASCII are several tokens, as
in the embedded model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

WINDOW_TOKENS = 512

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_LINES = [
    "The quick brown fox jumps over the lazy dog. What is the capital of France?",
    "你好，世界！今天天气很好。🙂 👨‍👩‍👧 é ไทย ภาษาไทย",
    "def main() -> None:\n    print('hello, world')\n",
]


def make_tiny_tokenizer(
    *, chat_template: str | None = CHAT_TEMPLATE, special_tokens: Sequence[str] = ()
) -> Any:
    """A byte-level BPE tokenizer trained on three lines."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>", *special_tokens],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(_LINES, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>", *special_tokens],
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def make_tiny_model(
    folder: Path,
    *,
    chat_template: str | None = CHAT_TEMPLATE,
    special_tokens: Sequence[str] = (),
) -> Path:
    """Write a two-layer model of 512 tokens' window into `folder` and return it.

    With these weights it hardly ever ends an answer by itself: `max_tokens` decides its length.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tiny_tokenizer(chat_template=chat_template, special_tokens=special_tokens)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=WINDOW_TOKENS,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
