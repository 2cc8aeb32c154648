"""A transformers model in this process, behind the `Backend` contract.

torch and transformers are imported by the loading thread, so this module is quick to import and
the app starts at once.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llm.embedded_model import WHEEL_BYTES, FetchStopped
from llm.errors import LLMError, ShuttingDownError
from llm.local_errors import generate_error, load_error
from llm.local_memory import forget_frames, free_memory
from llm.local_ready import get_ready, steps
from llm.models import EMBEDDED, display_name
from llm.types import (
    BackendPhase,
    BackendStatus,
    CancelToken,
    Delta,
    Finish,
    GenerationRequest,
    Notice,
)

if TYPE_CHECKING:
    from llm.local_loader import LoadedModel
    from llm.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What a local model is and how it is loaded; the fields are those of `Settings`."""

    data_dir: Path
    model: str = EMBEDDED
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    quantization: Literal["none", "8bit", "4bit"] = "none"
    attn_implementation: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"
    trust_remote_code: bool = False
    threads: int | None = None
    slots: int = 2

    @classmethod
    def from_settings(cls, settings: Settings) -> LocalOptions:
        return cls(
            data_dir=settings.data_dir,
            model=settings.model,
            dtype=settings.dtype,
            quantization=settings.quantization,
            attn_implementation=settings.attn_implementation,
            trust_remote_code=settings.trust_remote_code,
            threads=settings.threads,
            slots=settings.local_slots,
        )


class LocalBackend:
    """A local model: loaded once, in the background; answers several requests at once.

    Thread-safety: every method may be called from any thread. One lock guards the state; it is
    never held while anything slow happens.
    """

    def __init__(self, options: LocalOptions) -> None:
        self._options = options
        self._model_name = display_name(options.model)
        self._steps = steps(options.model)
        self._changed = threading.Condition()
        self._phase: BackendPhase = "idle"
        self._progress: float | None = None
        self._error: LLMError | None = None
        self._since = time.monotonic()
        self._loaded: LoadedModel | None = None
        self._closed = False
        self._close = CancelToken()
        self._answers: set[CancelToken] = set()

    @classmethod
    def from_settings(cls, settings: Settings) -> LocalBackend:
        return cls(LocalOptions.from_settings(settings))

    @property
    def name(self) -> str:
        return "local"

    @property
    def slots(self) -> int:
        return self._options.slots

    def window_tokens(self, request: GenerationRequest) -> int | None:
        """The model's window; None while it isn't loaded, or has none."""
        loaded = self._loaded
        return loaded.context_tokens if loaded else None

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        """None too where the model's chat template refuses the messages: `stream` says so."""
        loaded = self._loaded
        if loaded is None:
            return None
        from llm.local_generation import encode

        try:
            return int(encode(loaded, request)["input_ids"].shape[1])
        except LLMError:
            return None

    def status(self) -> BackendStatus:
        with self._changed:
            return BackendStatus(
                phase=self._phase,
                model=self._model_name,
                progress=self._progress,
                error=self._error,
                elapsed_s=time.monotonic() - self._since,
                steps=self._steps,
                fetch_bytes=WHEEL_BYTES if self._options.model.strip() == EMBEDDED else 0,
            )

    def prepare(self) -> None:
        with self._changed:
            if self._closed or self._phase not in ("idle", "failed"):
                return
            self._enter("loading")
            try:
                threading.Thread(target=self._load, name="load-model", daemon=True).start()
            except Exception as error:  # noqa: BLE001 - nothing may leave the waiters waiting
                self._fail(load_error(error, self._options.model))

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        self.prepare()
        loaded = self._wait(cancel)
        if loaded is None:
            yield Finish("abort")
            return
        from llm.local_generation import generate

        # Cancelled by the caller or by close(), whichever is first.
        either = CancelToken()
        forget = cancel.on_cancel(either.cancel)
        with self._changed:
            self._answers.add(either)
        try:
            if self._closed:
                raise ShuttingDownError
            yield from generate(loaded, request, either)
        except LLMError:
            raise
        except Exception as error:  # noqa: BLE001 - the tree is the boundary
            raise generate_error(error, self._model_name) from error.with_traceback(None)
        finally:
            forget()
            with self._changed:
                self._answers.discard(either)

    def close(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed = True
            was_loaded, self._loaded = self._loaded is not None, None
            answers = list(self._answers)
            self._enter("idle")
        self._close.cancel()
        for answer in answers:
            answer.cancel()
        if was_loaded:
            gc.unfreeze()
            free_memory()

    def _wait(self, cancel: CancelToken) -> LoadedModel | None:
        """The model, when it is loaded; None if cancelled before."""
        forget = cancel.on_cancel(self._wake)
        try:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._phase in ("ready", "failed") or cancel.cancelled or self._closed
                )
                if cancel.cancelled:
                    return None
                if self._closed:
                    raise ShuttingDownError
                if self._error is not None:
                    # One error object may be raised for several waiters: without its old frames.
                    raise self._error.with_traceback(None)
                return self._loaded
        finally:
            forget()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _enter(self, phase: BackendPhase, progress: float | None = None) -> None:
        """Called with the lock held, or by the loading thread through `_report`."""
        if phase != self._phase:
            self._since = time.monotonic()
        self._phase, self._progress = phase, progress
        if phase != "failed":
            self._error = None
        self._changed.notify_all()

    def _report(self, phase: BackendPhase, progress: float | None = None) -> None:
        with self._changed:
            if not self._closed:
                self._enter(phase, progress)

    def _fail(self, failure: LLMError) -> None:
        """Called with the lock held."""
        if not self._closed:
            self._enter("failed")
            self._error = failure

    def _load(self) -> None:
        """The loading thread: ends in `ready` or `failed`, whatever happens."""
        failure: LLMError
        try:
            loaded = get_ready(self._options, self._close, self._report)
        except FetchStopped:
            failure = ShuttingDownError()
        except LLMError as error:
            failure = error
        except BaseException as error:  # noqa: BLE001 - nothing may leave the waiters waiting
            failure = load_error(error, self._options.model)
            failure.__cause__ = error
        else:
            # Streamlit collects garbage after every run; it need not look at the model each time.
            gc.collect()
            with self._changed:
                if not self._closed:
                    gc.freeze()
                    self._loaded = loaded
                    self._enter("ready")
                    return
            del loaded  # closed meanwhile
            free_memory()
            return
        log.warning("the model can't be made ready: %s", type(failure).__name__)
        # The failure is kept, the model must not be: the next try loads another.
        forget_frames(failure)
        free_memory()
        with self._changed:
            self._fail(failure)
