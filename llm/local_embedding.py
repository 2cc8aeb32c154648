"""A sentence-transformers model folder, run by transformers alone: tokenize, run, pool, scale.

What sentence-transformers itself does beyond that isn't needed for the models people use: its
folder says how token vectors are pooled, how long a text may be and what goes before it, and that
is read here. A folder that asks for more (a dense layer) is refused.

Source: https://sbert.net/docs/sentence_transformer/usage/custom_models.html and the files
themselves: modules.json, 1_Pooling/config.json, sentence_bert_config.json,
config_sentence_transformers.json.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import AutoModel, AutoTokenizer

from llm.errors import ModelError, Reason
from llm.local_errors import load_error
from llm.local_number_type import number_type

if TYPE_CHECKING:
    from llm.embedding import Vectors

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
# Common words; a tokenizer that lacks one of their characters wasn't made for Chinese.
_CHINESE = "请问怎么样才能让电脑运行得更快为什么天空是蓝色的如何学习做饭谁发明了电话"
_POOLED = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
_NAMED_BY = ("config.json", "tokenizer.json", "vocab.txt", "1_Pooling/config.json")
_USUAL_TOKENS = 512
_BATCH = 32


class LocalEmbedder:
    """A model in this process, on the CPU in float32.

    Thread-safety: every method may be called from any thread; they take turns.

    Args:
        folder: in sentence-transformers' shape; a bare transformers encoder is pooled by the mean.
        called: what people call the model.
        prefix: what goes before every text, such as `query: ` for E5; empty takes what the folder
            says of queries.

    Raises:
        LLMError: why it can't be loaded.
    """

    def __init__(self, folder: Path, called: str, prefix: str = "") -> None:
        self._called = called
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        try:
            self._pooling = _pooling(folder, called)
            self._prefix = prefix or _prefix(folder)
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            with number_type:
                self._model: Any = AutoModel.from_pretrained(
                    folder,
                    local_files_only=True,
                    use_safetensors=True,
                    dtype=torch.float32,
                    # The app's own attention is registered in the place of sdpa, for chat models.
                    attn_implementation="eager",
                ).eval()
            self._max_tokens = _max_tokens(folder, self._model.config)
            self._name = f"{called}@{_digest(folder, self._prefix, self._pooling)}"
        except Exception as error:
            raise load_error(error, called) from error
        self._lock = threading.Lock()
        self._reads_chinese = not self._unknown(_CHINESE)

    @property
    def name(self) -> str:
        return self._name

    def reads(self, text: str) -> bool:
        """Whether the tokenizer knows every part of the text and the model takes all of it."""
        if not text.strip() or (_HAN.search(text) and not self._reads_chinese):
            return False
        return not self._unknown(text) and len(self._ids(text)) <= self._max_tokens

    def embed(self, texts: Sequence[str]) -> Vectors:
        try:
            with self._lock, number_type, torch.inference_mode():
                parts = [
                    self._embedded(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)
                ]
                if not parts:
                    return torch.zeros(0, self._model.config.hidden_size).numpy()  # type: ignore[no-any-return]
                return torch.cat(parts).numpy()  # type: ignore[no-any-return]
        except Exception as error:
            raise load_error(error, self._called) from error

    def close(self) -> None:
        with self._lock:
            self._model = None

    def _embedded(self, texts: Sequence[str]) -> torch.Tensor:
        given = self._tokenizer(
            [self._prefix + text for text in texts],
            padding=True,
            truncation=True,
            max_length=self._max_tokens,
            return_tensors="pt",
        )
        states = self._model(**given).last_hidden_state  # (B, T, D)
        return torch.nn.functional.normalize(
            _pooled(states, given["attention_mask"], self._pooling)
        )

    def _ids(self, text: str) -> list[int]:
        with self._lock:
            ids: list[int] = self._tokenizer(self._prefix + text)["input_ids"]
        return ids

    def _unknown(self, text: str) -> bool:
        unknown = self._tokenizer.unk_token_id
        return unknown is not None and unknown in self._ids(text)


def _pooled(states: torch.Tensor, mask: torch.Tensor, how: str) -> torch.Tensor:
    """Token states (B, T, D) and mask (B, T) to one vector a text (B, D)."""
    if how == "cls_token":
        return states[torch.arange(len(states)), mask.argmax(dim=1)]
    if how == "lasttoken":
        last = mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)
        return states[torch.arange(len(states)), last]
    there = mask.unsqueeze(-1).to(states.dtype)
    if how == "max_tokens":
        return states.masked_fill(there == 0, float("-inf")).amax(dim=1)
    return (states * there).sum(dim=1) / there.sum(dim=1)


def _read(path: Path) -> Any:
    with suppress(FileNotFoundError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def _pooling(folder: Path, called: str) -> str:
    """How the folder wants token vectors pooled."""
    kinds = [
        str(module.get("type", "")).rpartition(".")[2]
        for module in _read(folder / "modules.json") or ()
    ]
    told = _read(folder / "1_Pooling" / "config.json") or {}
    wanted = [
        how for how in _POOLED if told.get(f"pooling_mode_{how}") or told.get("pooling_mode") == how
    ]
    switched_on = [
        key for key, value in told.items() if key.startswith("pooling_mode_") and value is True
    ]
    if set(kinds) - {"Transformer", "Pooling", "Normalize"} or (told and len(switched_on) > 1):
        raise ModelError(model=called, reason=Reason("reason-embedding-modules"))
    if told and len(wanted) != 1:
        raise ModelError(model=called, reason=Reason("reason-embedding-modules"))
    return wanted[0] if wanted else "mean_tokens"


def _prefix(folder: Path) -> str:
    """What the folder wants before a question."""
    told = _read(folder / "config_sentence_transformers.json") or {}
    prompts = told.get("prompts") or {}
    return str(prompts.get(told.get("default_prompt_name") or "query") or "")


def _max_tokens(folder: Path, config: Any) -> int:
    told = (_read(folder / "sentence_bert_config.json") or {}).get("max_seq_length")
    window = getattr(config, "max_position_embeddings", None) or _USUAL_TOKENS
    # RoBERTa's kind (E5 multilingual is one) counts its positions from behind the padding's.
    usable = window - 2 if "roberta" in str(getattr(config, "model_type", "")) else window
    return min(int(told or _USUAL_TOKENS), int(usable))


def _digest(folder: Path, prefix: str, pooling: str) -> str:
    """What the files hash to: another revision is another name."""
    digest = hashlib.sha256(f"{prefix}\n{pooling}\n".encode())
    weights = sorted(path.name for path in folder.glob("*.safetensors"))
    for name in (*_NAMED_BY, *weights):
        with suppress(FileNotFoundError), (folder / name).open("rb") as file:
            digest.update(f"{name}\n".encode())
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
