"""What is known about a server, and whether it is time to ask it again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from llm.errors import LLMError
from llm.types import BackendPhase, BackendStatus

FRESH_S = 10.0
"""How long what is known about a server that answers counts."""

FAILED_FRESH_S = 3.0
"""The same for one that doesn't: it may just be starting."""


@dataclass(frozen=True, slots=True)
class _Known:
    phase: BackendPhase
    model: str
    error: LLMError | None
    since_s: float


class ServerState:
    """The last word on a server, whether a probe or an answer brought it.

    Thread-safety: every method may be called from any thread; none waits.

    Args:
        model: the model's name, where it is known beforehand.
    """

    def __init__(self, model: str = "") -> None:
        self._lock = threading.RLock()
        self._known = _Known("idle", spoken(model), None, time.monotonic())
        self._heard_at_s: float | None = None
        self._probing = False

    def status(self) -> BackendStatus:
        known = self._known
        elapsed_s = time.monotonic() - known.since_s
        return BackendStatus(known.phase, known.model, error=known.error, elapsed_s=elapsed_s)

    def begin_probe(self, *, again: bool = False) -> bool:
        """Whether the caller should ask the server now; if so it must tell `end_probe`.

        Args:
            again: a person wants it: a failure is forgotten, and asked about at once.
        """
        with self._lock:
            failed = self._known.phase == "failed"
            fresh_s = FAILED_FRESH_S if failed else FRESH_S
            known = self._heard_at_s is not None and time.monotonic() - self._heard_at_s < fresh_s
            if self._probing or (known and not (again and failed)):
                return False
            self._probing = True
            if self._known.phase == "idle" or (again and failed):
                self._learn("loading", self._known.model)
            return True

    def end_probe(self) -> None:
        with self._lock:
            self._probing = False
            self._heard_at_s = time.monotonic()

    def answers(self, model: str) -> None:
        """The server answered, with this model."""
        self._heard_at_s = time.monotonic()
        known = self._known
        if known.phase != "ready" or known.model != spoken(model):
            self._learn("ready", spoken(model))

    def fails(self, error: LLMError) -> None:
        """The server can't be used, and this is why."""
        with self._lock:
            self._heard_at_s = time.monotonic()
            self._learn("failed", self._known.model, error)

    def _learn(self, phase: BackendPhase, model: str, error: LLMError | None = None) -> None:
        with self._lock:
            same = phase == self._known.phase
            since_s = self._known.since_s if same else time.monotonic()
            self._known = _Known(phase, model, error, since_s)


def spoken(model: str) -> str:
    """A model's name as a person says it: vLLM names a model by its folder's whole path."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model
