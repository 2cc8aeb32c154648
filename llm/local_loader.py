"""From a folder to a model that answers: number type, quantization, attention, checks.

Imports torch and transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

from llm.errors import (
    LLMError,
    MissingPackageError,
    NoChatTemplateError,
    NotAModelError,
    Reason,
)
from llm.local_attention import settle_attention
from llm.local_errors import load_error
from llm.local_memory import forget_frames
from llm.local_packed import pack_model
from llm.local_sdpa import register_attention

if TYPE_CHECKING:
    from llm.local_backend import LocalOptions

# A tokenizer that knows no limit says something like 10**30.
_NO_LIMIT = 10_000_000
# As torch chose: another model may have had a number of its own.
_USUAL_THREADS = torch.get_num_threads()
_WINDOW_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory.

    Thread-safety: shared by every answer; nothing in it is changed after loading.

    Args:
        name: what people call it.
        model: a transformers causal language model, in eval mode.
        tokenizer: its tokenizer, with a chat template.
        device: where prompts go.
        context_tokens: the window, prompt and answer together; None where the model has none.
        eos_ids: ids that end an answer.
        notes: what isn't as the person asked for, though it works; for them to read.
    """

    name: str
    model: Any
    tokenizer: Any
    device: Any
    context_tokens: int | None
    eos_ids: tuple[int, ...]
    notes: tuple[Reason, ...] = ()

    def close(self) -> None:
        """Let go of what works with the model, before its memory is given back."""


def load_model(folder: Path, name: str, options: LocalOptions) -> LoadedModel:
    """Load tokenizer and weights. Progress bars and advice of the libraries are kept quiet.

    Raises:
        LLMError: and nothing else.
    """
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    # bitsandbytes logs that it casts the inputs, for every matmul of every token.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    torch.set_num_threads(options.threads or _USUAL_THREADS)
    failure: LLMError
    try:
        return _load(folder, name, options)
    except LLMError:
        raise
    except Exception as error:  # noqa: BLE001 - vendors raise anything; the tree is the boundary
        failure = load_error(error, options.model)
        forget_frames(error)  # they hold half a model
        failure.__cause__ = error
    raise failure


def _load(folder: Path, name: str, options: LocalOptions) -> LoadedModel:
    trust = options.trust_remote_code
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust)
    if not tokenizer.chat_template:
        raise NoChatTemplateError(model=options.model)
    kwargs: dict[str, Any] = {
        "dtype": choose_dtype(options.dtype),
        "device_map": "auto",
        "use_safetensors": True,  # see `llm.models.WEIGHTS`
    }
    if options.attn_implementation in ("sdpa", "eager"):
        kwargs["attn_implementation"] = options.attn_implementation
    if options.quantization in ("8bit", "4bit"):
        kwargs["quantization_config"] = _bitsandbytes(options.quantization, kwargs["dtype"])
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, trust_remote_code=trust, output_loading_info=True, **kwargs
    )
    # transformers would fill missing weights with random numbers and only warn.
    if info["missing_keys"] and getattr(model, "hf_quantizer", None) is None:
        raise NotAModelError(model=options.model, reason=Reason("reason-weights-missing"))
    _own(model)
    model.eval()
    register_attention()
    if options.quantization == "auto" and pack_model(model):
        # Of a token's time a tenth is what autograd notes, even where it is off.
        model.generate = torch.inference_mode()(model.generate)
    attention_note = settle_attention(model, options.attn_implementation)
    return LoadedModel(
        name=name,
        model=model,
        tokenizer=tokenizer,
        device=model.get_input_embeddings().weight.device,
        context_tokens=_window(model.config, tokenizer),
        eos_ids=_eos_ids(model, tokenizer),
        notes=tuple(note for note in (attention_note,) if note is not None),
    )


def _own(model: Any) -> None:
    """Give the weights memory of their own.

    Weights that already have the wished number type stay in the mapped file. Where that is
    overwritten or cut while they are in use, the system ends the whole app (SIGBUS).
    """
    for parameter in model.parameters():
        if type(parameter) is torch.nn.Parameter and parameter.device.type == "cpu":
            parameter.data = parameter.data.clone()


def choose_dtype(wish: str) -> Any:
    """The number type: as wished, or for `auto` the one the hardware multiplies natively."""
    if wish != "auto":
        return getattr(torch, wish)
    if torch.cuda.is_available():
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if native else torch.float16
    if torch.backends.mps.is_available():
        return torch.float16
    return torch.bfloat16 if _cpu_multiplies_bf16() else torch.float32


def _cpu_multiplies_bf16() -> bool:
    # Without such instructions bf16 is emulated and slower than fp32.
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16"))


def _bitsandbytes(quantization: str, dtype: Any) -> Any:
    try:
        import bitsandbytes  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(package="bitsandbytes") from error
    if quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=dtype,
        bnb_4bit_use_double_quant=True,
    )


def _window(config: Any, tokenizer: Any) -> int | None:
    text_config = config.get_text_config(decoder=True)
    for name in _WINDOW_NAMES:
        value = getattr(text_config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    limit = tokenizer.model_max_length
    return int(limit) if limit and limit < _NO_LIMIT else None


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """The model's own, and the tokenizer's: chat variants often name only one of the two."""
    ids = model.generation_config.eos_token_id
    found = list(ids) if isinstance(ids, list | tuple) else [ids]
    return tuple(dict.fromkeys(i for i in [*found, tokenizer.eos_token_id] if i is not None))
