"""What a model's own files say of it before it is loaded: size, window, quantization.

Reads `config.json`, the heads of safetensors files and of GGUF files; no weight and no library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from llm.errors import Reason
from llm.gguf_header import GgufDamagedError, Tensor, read_gguf_header
from llm.model_files import NotReadableError, read_json
from llm.safetensors_header import StoredTensor, read_safetensors_header

WINDOW_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
"""What configs call the window."""
MOST_TOKENS = 1 << 31
"""A window beyond this isn't believed, nor any other number of a model's architecture."""
_MOST = 1 << 53  # of weights and bytes: what a float still counts one by one
_METHOD = re.compile(r"[\w.+-]{1,24}", re.ASCII)
_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
# Matrices that bitsandbytes leaves as they are: embeddings, and what turns states into logits.
_KEPT = re.compile(r"embed|wte|wpe|lm_head|output\.weight|norm|router|score")
_ANSWERS = re.compile(r"CausalLM|ConditionalGeneration|LMHead")
_GGUF_KEPT = re.compile(r"token_embd|output|norm")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model without loading it.

    Args:
        matrix_weights: how many weights on-the-fly quantization makes smaller.
        other_weights: how many it leaves as they are.
        kept_bytes: what the weights take where they are loaded just as they lie there, since the
            model was quantized when it was made; None where they take the wished number type.
        quantization: how they lie there: `Q4_K`, `gptq`; empty for plain numbers.
        context_tokens: the window; None where it isn't told.
        cached_values: numbers that the KV cache keeps for each token, keys and values together.
        sliding_values: the same in layers that look back `sliding_tokens` only.
        has_template: whether it has a chat template; True too where its own code decides.
        packed_bytes: what a second copy of the weights takes where one is made: packed, as the
            4-bit and 8-bit numbers that they were made of (`llm.local_packed`).

    Raises:
        NoFactsError: a number is larger than any model's, and is nonsense.
    """

    matrix_weights: int = 0
    other_weights: int = 0
    kept_bytes: int | None = None
    quantization: str = ""
    context_tokens: int | None = None
    cached_values: int = 0
    sliding_values: int = 0
    sliding_tokens: int = 0
    packed_bytes: int = 0
    has_template: bool = True

    def __post_init__(self) -> None:
        numbers = [value for value in astuple(self) if isinstance(value, int)]
        if not all(0 <= number <= _MOST for number in numbers):
            raise NoFactsError("reason-part-unreadable")


class NoFactsError(Exception):
    """The files don't say it.

    Attributes:
        reason: why: what will be said when it is loaded, too.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = Reason(reason)


EMBEDDED_FACTS = ModelFacts(
    106_168_320, 28_346_688, None, "Q4_1", 8192, 11_520, packed_bytes=101_744_640
)
"""Of the embedded model, before it is fetched."""


def facts_of_folder(folder: Path) -> ModelFacts:
    """Of a transformers folder.

    Raises:
        NoFactsError: files are missing, damaged or cut short, or it is no chat model.
    """
    config = read_config(folder)
    own = config.get("auto_map")
    if (
        (classes := config.get("architectures"))
        and not any(_ANSWERS.search(str(name)) for name in classes)
        and not (isinstance(own, dict) and "AutoModelForCausalLM" in own)
    ):
        raise NoFactsError("reason-unknown-type")
    text = config.get("text_config")
    text = text if isinstance(text, dict) else config
    tied = bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings")))
    matrix_weights = other_weights = stored_bytes = 0
    for file in _weight_files(folder):
        for tensor in _tensors(file):
            name = tensor.name
            if tied and name.endswith("lm_head.weight"):
                continue
            stored_bytes += tensor.length_bytes
            if len(tensor.shape) > 1 and name.endswith("weight") and not _KEPT.search(name):
                matrix_weights += tensor.weights
            else:
                other_weights += tensor.weights
    made = config.get("quantization_config")
    method = ""
    if isinstance(made, dict):
        told = made.get("quant_method")
        method = told if isinstance(told, str) and _METHOD.fullmatch(told) else "quantized"
    cached, sliding = _cached_values(text)
    return ModelFacts(
        matrix_weights,
        other_weights,
        stored_bytes if method else None,
        method,
        next((n for name in WINDOW_NAMES if (n := _whole(text, name))), None),
        cached,
        sliding,
        _whole(text, "sliding_window") or 0,
        has_template=_may_have_template(folder),
    )


def facts_of_gguf(file: Path) -> ModelFacts:
    """Of a GGUF file; in memory its weights are plain numbers.

    Raises:
        NoFactsError: it can't be read, or is cut short.
    """
    try:
        head = read_gguf_header(file)
    except GgufDamagedError:
        raise NoFactsError("reason-gguf-damaged") from None
    except (OSError, ValueError):
        raise NoFactsError("reason-file-unreadable") from None
    matrix_weights = other_weights = 0
    for name, tensor in head.tensors.items():
        if len(tensor.shape) > 1 and not _GGUF_KEPT.search(name.replace("attn_output", "attn")):
            matrix_weights += tensor.weights
        else:
            other_weights += tensor.weights
    layers, heads = (head.of_architecture(n) or 0 for n in ("block_count", "attention.head_count"))
    kv_heads = head.of_architecture("attention.head_count_kv") or heads
    width = (head.of_architecture("embedding_length") or 0) // max(1, heads)
    keys = head.of_architecture("attention.key_length") or width
    values = head.of_architecture("attention.value_length") or width
    return ModelFacts(
        matrix_weights,
        other_weights,
        quantization=head.kind,
        context_tokens=head.of_architecture("context_length"),
        cached_values=layers * kv_heads * (keys + values),
        packed_bytes=_packed_bytes(head.tensors),
        has_template="tokenizer.chat_template" in head.values,
    )


def _packed_bytes(tensors: Mapping[str, Tensor]) -> int:
    """What `llm.local_packed` makes of them: a layer's 4-bit numbers, two for each 8-bit one, and
    16 bits of scale and of offset for each 32 numbers.

    The embeddings are a layer too where they also turn states into logits.
    """
    tied = "output.weight" not in tensors
    numbers = 0
    for name, tensor in tensors.items():
        planes = {"Q4_1": 1, "Q8_0": 2}.get(tensor.kind, 0)
        if name.endswith("embd.weight") and not (tied and name == "token_embd.weight"):
            continue
        if len(tensor.shape) == 2 and tensor.shape[1] % 16 == 0:
            numbers += planes * tensor.weights
    return numbers * (32 // 2 + 4) // 32


def _may_have_template(folder: Path) -> bool:
    """Whether the folder's tokenizer has a chat template; True where that can't be known.

    Source: transformers 5.24, `PreTrainedTokenizerBase.from_pretrained`; `tekken.json` is
    mistral-common's, which brings its templates along.
    """
    try:
        told = read_json(folder / "tokenizer_config.json")
    except (OSError, NotReadableError):
        return True  # the tokenizer's trouble, and not that it lacks a template
    if not isinstance(told, dict) or told.get("chat_template") or "auto_map" in told:
        return True
    kept = ("chat_template.jinja", "additional_chat_templates", "tekken.json")
    return any((folder / name).exists() for name in kept)


def read_config(folder: Path) -> dict[str, Any]:
    """A model folder's `config.json`.

    Raises:
        NoFactsError: there is none, or it isn't a model's.
    """
    try:
        config = read_json(folder / "config.json")
    except FileNotFoundError:
        raise NoFactsError("reason-no-config") from None
    except NotReadableError:
        raise NoFactsError("reason-config-unreadable") from None
    if not isinstance(config, dict) or not (config.get("model_type") or config.get("auto_map")):
        raise NoFactsError("reason-config-without-type")
    return config


def _weight_files(folder: Path) -> list[Path]:
    """The files that transformers would load."""
    try:
        index = read_json(folder / _INDEX)
        return [folder / name for name in sorted(set(index["weight_map"].values()))]
    except FileNotFoundError:
        if (folder / _SINGLE).is_file():
            return [folder / _SINGLE]
    except (NotReadableError, KeyError, TypeError, AttributeError):
        raise NoFactsError("reason-part-unreadable") from None
    raise NoFactsError("reason-no-weights")


def _tensors(file: Path) -> list[StoredTensor]:
    try:
        return read_safetensors_header(file)
    except FileNotFoundError:  # a link into nowhere: the hub's cache, half downloaded
        raise NoFactsError("reason-weights-missing") from None
    except NotReadableError:
        raise NoFactsError("reason-weights-damaged") from None
    except (OSError, ValueError):
        raise NoFactsError("reason-file-unreadable") from None


def _cached_values(config: Mapping[str, Any]) -> tuple[int, int]:
    """What the KV cache keeps of a token, in layers that keep all and in those that don't."""

    def first(*names: str) -> int:
        return next((n for name in names if (n := _whole(config, name))), 0)

    layers = first("num_hidden_layers", "n_layer", "num_layers")
    heads = first("num_attention_heads", "n_head", "num_heads")
    kv_heads = first("num_key_value_heads") or (1 if config.get("multi_query") else heads)
    head = first("head_dim") or first("hidden_size", "n_embd", "d_model") // max(1, heads)
    layer = 2 * kv_heads * head
    kinds = config.get("layer_types")
    if not isinstance(kinds, list) or not kinds:
        return layers * layer, 0
    # Others, such as linear attention, keep a state whose size doesn't grow.
    full = sum(kind == "full_attention" for kind in kinds)
    sliding = sum(kind in ("sliding_attention", "chunked_attention") for kind in kinds)
    return full * layer, sliding * layer


def _whole(config: Mapping[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if isinstance(value, int) and 0 < value <= MOST_TOKENS else None
