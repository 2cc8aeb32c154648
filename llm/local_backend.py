"""A transformers model in this process, behind the `Backend` contract.

torch and transformers are imported by the loading thread, so this module is quick to import and
the app starts at once.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llm.embedded_model import WHEEL_BYTES, FetchStopped
from llm.errors import LLMError, NotAModelError, ShuttingDownError
from llm.local_errors import generate_error, load_error
from llm.local_source import obtain
from llm.models import EMBEDDED, ModelKind, display_name, resolve
from llm.types import (
    BackendPhase,
    BackendStatus,
    CancelToken,
    Delta,
    Finish,
    GenerationRequest,
    Message,
    SamplingParams,
)

if TYPE_CHECKING:
    from llm.local_loader import LoadedModel
    from llm.settings import Settings

log = logging.getLogger(__name__)

_WARM_UP = GenerationRequest((Message("user", "Hi"),), SamplingParams(max_tokens=2, seed=0))


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
        self._steps = _steps(options.model)
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

    @property
    def context_tokens(self) -> int | None:
        """The model's window; None while it isn't loaded, or has none."""
        loaded = self._loaded
        return loaded.context_tokens if loaded else None

    def count_tokens(self, messages: tuple[Message, ...]) -> int | None:
        """How many tokens these messages are as a prompt; None while the model isn't loaded.

        Raises:
            LLMError: the model's chat template refuses them.
        """
        loaded = self._loaded
        if loaded is None:
            return None
        from llm.local_generation import encode

        return int(encode(loaded, messages)["input_ids"].shape[1])

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
            threading.Thread(target=self._load, name="load-model", daemon=True).start()

    def stream(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[Delta | Finish]:
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
            from llm.local_generation import free_memory

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

    def _load(self) -> None:
        """The loading thread: ends in `ready` or `failed`, whatever happens."""
        failure: LLMError
        try:
            loaded = self._get_ready()
        except FetchStopped:
            failure = ShuttingDownError()
        except LLMError as error:
            failure = error
        except BaseException as error:  # noqa: BLE001 - nothing may leave the waiters waiting
            failure = load_error(error, self._options.model)
        else:
            with self._changed:
                if not self._closed:
                    self._loaded = loaded
                    self._enter("ready")
            return
        log.warning("the model can't be made ready: %s", type(failure).__name__)
        with self._changed:
            if not self._closed:
                self._error = failure
                self._enter("failed")

    def _get_ready(self) -> LoadedModel:
        options = self._options
        spec = resolve(options.model)
        _wait_without_spinning()
        # Importing the libraries takes seconds, and so may what comes before they are needed.
        threading.Thread(target=_import_libraries, name="import-torch", daemon=True).start()
        folder = obtain(
            spec, options.data_dir, options.trust_remote_code, self._close, self._report
        )
        self._report("loading")
        from llm.local_generation import generate, watch_for_stop
        from llm.local_loader import load_model

        try:
            loaded = load_model(folder, spec.name, options)
        except NotAModelError:
            if folder != spec.path and spec.kind != "hub":
                # A damaged conversion of our own: the next try makes it anew.
                shutil.rmtree(folder, ignore_errors=True)
            raise
        watch_for_stop(loaded.model)
        self._report("warming")
        for _ in generate(loaded, _WARM_UP, self._close):
            pass
        # Streamlit collects garbage after every run; it need not look at the model each time.
        gc.collect()
        gc.freeze()
        return loaded


def _steps(model: str) -> tuple[BackendPhase, ...]:
    try:
        kind = resolve(model).kind
    except LLMError:  # told when it is tried
        return ()
    before: dict[ModelKind, tuple[BackendPhase, ...]] = {
        "embedded": ("fetching", "converting"),
        "gguf": ("converting",),
        "hub": ("fetching",),
        "folder": (),
    }
    return (*before[kind], "loading", "warming")


def _wait_without_spinning() -> None:
    """Let torch's CPU threads sleep while they wait for each other, unless the person chose.

    By default they spin. Beside a busy browser, or a second answer, they then burn the very time
    that the thread they wait for needs: measured on 2 cores beside two busy processes, 0.4 tok/s
    spinning and 7.2 asleep; two answers at once, 3.0 and 11.5. OpenMP reads this when torch is
    first imported, which is why it is set here.

    Source: https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html; KMP_BLOCKTIME is
    the same for LLVM's and Intel's OpenMP.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("KMP_BLOCKTIME", "0")


def _import_libraries() -> None:
    # The loading thread imports them too, and there a failure is told.
    with suppress(Exception):
        import llm.local_loader  # noqa: F401
