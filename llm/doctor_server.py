"""Whether an OpenAI-compatible server is there, takes the key and has the model; and its clock."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from llm.doctor import Finding
from llm.errors import LLMError, Reason, ServerTimeoutError, ServerUnreachableError, Value
from llm.loop_thread import LoopThread
from llm.server_errors import said_s
from llm.server_state import spoken
from llm.settings import Server
from llm.types import CancelToken
from llm.vllm_client import FirstLook, VllmClient

LOOK_S = 10.0
"""How long the list of models may take: a busy server takes its time."""

CLOCK_S = 30.0
"""Clocks that are further apart are worth a word: signatures, certificates and logs go by them."""

_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Looked:
    """A server's answer, and when.

    Args:
        sent_s, came_s: by this machine's clock, seconds since 1970.
    """

    said: FirstLook
    sent_s: float
    came_s: float


class ServerLook:
    """Asks a server for its models, once for all the checks that want to know.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, server: Server, connect_timeout_s: float) -> None:
        self.server = server
        self._connect_timeout_s = connect_timeout_s
        self._lock = threading.Lock()
        self._looked: Looked | LLMError | None = None

    def looked(self) -> Looked:
        """What it said.

        Raises:
            LLMError: it can't be asked.
        """
        with self._lock:
            if self._looked is None:
                try:
                    self._looked = self._ask()
                except LLMError as error:
                    self._looked = error
        if isinstance(self._looked, LLMError):
            raise self._looked.with_traceback(None)
        return self._looked

    def why_not(self) -> Reason | None:
        """Why there is nothing more to ask; None where there is."""
        return Reason("doctor-server-unasked") if _said(self) is None else None

    def _ask(self) -> Looked:
        key = self.server.api_key.get_secret_value() if self.server.api_key else ""
        client = VllmClient(self.server.base_url, key, self._connect_timeout_s)
        thread = LoopThread("doctor-server", client.close)
        told: Future[FirstLook] = Future()

        def ended(said: FirstLook | None, error: BaseException | None) -> None:
            if said is not None:
                told.set_result(said)
            else:
                told.set_exception(error or RuntimeError())

        sent_s = time.time()
        try:
            thread.submit(client.first_look(LOOK_S), ended)
            # A name that is looked up for ever is on a thread that no task can end.
            said = told.result(LOOK_S + _GRACE_S)
        except TimeoutError:
            raise ServerTimeoutError(url=client.url, seconds=said_s(LOOK_S)) from None
        finally:
            thread.close(timeout_s=_GRACE_S)
        return Looked(said, sent_s, time.time())


@dataclass(frozen=True)
class ReachCheck:
    """Whether the server answers, and takes the key.

    Args:
        unset: whether nobody has set a server up, so that it is the usual address that is asked.
    """

    group: Reason
    look: ServerLook
    unset: bool = False

    name = "doctor-check-reach"
    limit_s = 20.0

    def run(self, cancel: CancelToken) -> Finding:
        try:
            said = self.look.looked().said
        except ServerUnreachableError:
            if self.unset:
                return Finding("skipped", Reason("doctor-server-unset"))
            raise
        key = self.look.server.api_key
        has_key = key is not None and bool(key.get_secret_value().strip())
        if said.status == 401:
            return Finding(
                "bad", Reason("doctor-reach-wrong-key" if has_key else "doctor-reach-no-key")
            )
        if said.status == 403:
            return Finding("bad", Reason("doctor-reach-forbidden"))
        if said.error is not None:
            return Finding("bad", said.error.reason)
        took = {"ms": round(1000 * said.took_s)}
        return Finding("ok", Reason("doctor-reach-key" if has_key else "doctor-reach-open", took))


@dataclass(frozen=True)
class ModelCheck:
    """Whether the server has the model that is asked, and what room that has.

    Args:
        max_tokens: the answers' length at first, as settings have it.
    """

    group: Reason
    look: ServerLook
    max_tokens: int

    name = "doctor-check-model"
    limit_s = 20.0

    def run(self, cancel: CancelToken) -> Finding:
        said = _said(self.look)
        if said is None:
            return Finding("skipped", Reason("doctor-server-unasked"))
        if not said.models:
            return Finding("bad", Reason("doctor-model-none"))
        named = self.look.server.model
        model = next((each for each in said.models if named in ("", each.name)), None)
        if model is None:
            values: dict[str, Value] = {"model": spoken(named), "count": len(said.models)}
            return Finding("bad", Reason("doctor-model-missing", values))
        window = model.context_tokens
        if window is None:
            return Finding("ok", Reason("doctor-model-there", {"model": spoken(model.name)}))
        told: dict[str, Value] = {
            "model": spoken(model.name),
            "window": window,
            "limit": self.max_tokens,
        }
        narrow = window < 2 * self.max_tokens
        return Finding(
            "warn" if narrow else "ok",
            Reason("doctor-model-narrow" if narrow else "doctor-model-window", told),
        )


@dataclass(frozen=True)
class ClockCheck:
    """Whether the server's clock goes as this machine's does."""

    group: Reason
    look: ServerLook

    name = "doctor-check-clock"
    limit_s = 20.0

    def run(self, cancel: CancelToken) -> Finding:
        try:
            looked = self.look.looked()
        except LLMError:
            return Finding("skipped", Reason("doctor-server-unasked"))
        apart_s = clock_difference_s(looked.said.date, looked.sent_s, looked.came_s)
        if apart_s is None:
            return Finding("skipped", Reason("doctor-clock-untold"))
        told = {"seconds": round(abs(apart_s))}
        if abs(apart_s) < CLOCK_S:
            return Finding("ok", Reason("doctor-clock-same"))
        return Finding(
            "warn", Reason("doctor-clock-ahead" if apart_s > 0 else "doctor-clock-behind", told)
        )


def clock_difference_s(date: str, sent_s: float, came_s: float) -> float | None:
    """How far a `Date` header is ahead of this machine's clock, at least; None for no date.

    It was written between sending and coming, and says whole seconds.
    Source: https://www.rfc-editor.org/rfc/rfc9110#field.date
    """
    try:
        told_s = parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    if told_s > came_s:
        return told_s - came_s
    return min(0.0, told_s + 1 - sent_s)


def _said(look: ServerLook) -> FirstLook | None:
    """What the server said of its models; None where it said nothing of them."""
    try:
        said = look.looked().said
    except LLMError:
        return None
    return said if said.error is None else None
