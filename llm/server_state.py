"""What is known about a server, and whether it is time to ask it again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from llm.errors import (
    LLMError,
    ServerBusyError,
    ServerFaultError,
    ServerStartingError,
    ServerTimeoutError,
    ServerUnreachableError,
)
from llm.model_list import ModelInfo
from llm.types import BackendPhase, BackendStatus

FRESH_S = 10.0
"""How long what is known about a server that answers counts."""

FAILED_FRESH_S = 3.0
"""The same for one that doesn't: it may just be starting."""

_BAD_GATEWAY = 502


def may_come(error: LLMError) -> bool:
    """Whether the server may be there soon: a port that is closed can be one that isn't open yet.

    A proxy before a server that isn't up says so by a status. One that only lost its patience
    (504) says nothing of the server: it may be reading a long prompt.
    """
    if isinstance(error, ServerFaultError):
        return error.values.get("status") == _BAD_GATEWAY
    return isinstance(error, (ServerUnreachableError, ServerTimeoutError, ServerStartingError))


@dataclass(frozen=True, slots=True)
class _Known:
    phase: BackendPhase
    error: LLMError | None
    since_s: float

    @property
    def away(self) -> bool:
        return self.phase in ("failed", "starting")


class ServerState:
    """The last word on a server, whether a probe or an answer brought it.

    Thread-safety: every method may be called from any thread; none waits.

    Args:
        model: the model that is asked where none is named; empty is the first one listed.
    """

    def __init__(self, model: str = "") -> None:
        self._lock = threading.RLock()
        self._known = _Known("idle", None, time.monotonic())
        self._model = model
        self._models: tuple[ModelInfo, ...] = ()
        self._heard_at_s: float | None = None
        self._probing = False
        self._outages = 0
        self._listed: tuple[float, int] | None = None  # when, and after which outage

    @property
    def outages(self) -> int:
        """How often it was seen to be gone or to break: another may be there since."""
        return self._outages

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """The models it listed last, whether it answers now or not."""
        return self._models

    @property
    def model(self) -> str:
        """The model that is asked where none is named; empty while it is unknown."""
        return self._model or next((model.name for model in self._models), "")

    def status(self) -> BackendStatus:
        known = self._known
        elapsed_s = time.monotonic() - known.since_s
        return BackendStatus(
            known.phase, spoken(self.model), error=known.error, elapsed_s=elapsed_s
        )

    @property
    def listed_lately(self) -> bool:
        """Whether the list of models is no older than what else is known, or than an outage."""
        listed = self._listed
        if listed is None or listed[1] != self._outages:
            return False
        return time.monotonic() - listed[0] < FRESH_S

    def identity(self, model: str) -> str:
        """What it tells of a model while it answers; empty while it doesn't, or tells nothing."""
        listed = self._models if self._known.phase == "ready" else ()
        return next((each.identity for each in listed if each.name == model), "")

    def begin_probe(self, *, again: bool = False) -> bool:
        """Whether the caller should ask the server now; if so it must tell `end_probe`.

        Args:
            again: a person wants it: a failure is forgotten, and asked about at once.
        """
        with self._lock:
            away = self._known.away
            fresh_s = FAILED_FRESH_S if away else FRESH_S
            known = self._heard_at_s is not None and time.monotonic() - self._heard_at_s < fresh_s
            if self._probing or (known and not (again and away)):
                return False
            self._probing = True
            if self._known.phase == "idle" or (again and away):
                self._learn("loading")
            return True

    def end_probe(self) -> None:
        with self._lock:
            self._probing = False
            self._heard_at_s = time.monotonic()

    def lists(self, models: tuple[ModelInfo, ...]) -> None:
        """The server said which models it has."""
        with self._lock:
            self._models = models
            self._listed = (time.monotonic(), self._outages)

    def answers(self) -> None:
        """The server can be used."""
        self._heard_at_s = time.monotonic()
        if self._known.phase != "ready":
            self._learn("ready")

    def fails(self, error: LLMError) -> None:
        """The server can't be used, and this is why."""
        starting = isinstance(error, (ServerStartingError, ServerBusyError))
        with self._lock:
            self._heard_at_s = time.monotonic()
            self._learn("starting" if starting else "failed", error)
            if not isinstance(error, ServerBusyError):
                self._outages += 1

    def breaks(self) -> None:
        """It went away in the middle of an answer; whether it is back, nobody knows yet."""
        with self._lock:
            self._outages += 1

    def _learn(self, phase: BackendPhase, error: LLMError | None = None) -> None:
        with self._lock:
            same = phase == self._known.phase
            since_s = self._known.since_s if same else time.monotonic()
            self._known = _Known(phase, error, since_s)


def spoken(model: str) -> str:
    """A model's name as a person says it: vLLM names a model by its folder's whole path."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model
