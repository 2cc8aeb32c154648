"""What identifies a model at a server, learned beside the answers.

A server doesn't say which weights it has. What can be had: what its list says of the model, its
version, what its template and tokenizer make of fixed conversations, and what it calls its own
configuration.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm.errors import LLMError
from llm.types import Fingerprint

if TYPE_CHECKING:
    from llm.server_state import ServerState
    from llm.vllm_client import VllmClient

FRESH_S = 300.0
"""What was learned counts no longer than this."""

RENEW_S = 240.0
"""So old, it is learned anew, while the old still counts."""

WANTED_S = 24 * 3600.0
"""As long after somebody wanted to know it, it is kept known: who asks once in a while is to be
answered from the cache as well."""

AGAIN_S = 10.0
"""Not sooner after a vain try."""

LIMIT_S = 30.0
"""For all that is asked; a busy server takes its time."""

_USER = {"role": "user", "content": " What is\n2 + 2?\n"}
_PROBES = (
    [_USER],
    # By itself: Gemma's template, and others, refuse a system prompt.
    [{"role": "system", "content": "Be brief. \u4f60\u597d "}, _USER],
    [_USER, {"role": "assistant", "content": "\n4 "}, {"role": "user", "content": "Why?"}],
)
"""Conversations that templates treat differently: white space at the ends, all three roles."""


@dataclass(frozen=True, slots=True)
class _Known:
    fingerprint: Fingerprint
    system: str
    outages: int
    begun_s: float
    at_s: float


class ServerFingerprints:
    """The fingerprints of one server's models.

    Thread-safety: every method may be called from any thread, none waits; `learn` runs on the
    client's loop.

    Args:
        state: what is known of the server; its list of models comes from there.
        clock: seconds, from anywhere.
    """

    def __init__(
        self, client: VllmClient, state: ServerState, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._state = state
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._heard: dict[str, tuple[str, int]] = {}  # by answers, and after which outage
        self._changes: dict[str, int] = {}  # how often an answer told of another server
        self._tried_s: dict[str, float] = {}
        self._wanted_s: dict[str, float] = {}
        self._under_way: set[str] = set()

    def of(self, model: str) -> Fingerprint | None:
        """The model's, unless something of it is unknown, old, or the server was gone since."""
        known, identity = self._known.get(model), self._state.identity(model)
        if (
            known is None
            or not identity
            or known.fingerprint.revision != identity
            or known.outages != self._state.outages
            or self._clock() - known.at_s >= FRESH_S
        ):
            return None
        return known.fingerprint

    def begin(self, model: str) -> bool:
        """Whether the caller should have it learned now; if so it must tell `end`."""
        now_s = self._clock()
        with self._lock:
            known = self._known.get(model)
            fresh = self.of(model) and known and now_s - known.at_s < RENEW_S
            wait = now_s - self._tried_s.get(model, -AGAIN_S) < AGAIN_S
            if fresh or wait or model in self._under_way or not self._state.identity(model):
                return False
            self._under_way.add(model)
            self._tried_s[model] = now_s
            return True

    def end(self, model: str) -> None:
        with self._lock:
            self._under_way.discard(model)

    def wanted(self, model: str) -> None:
        """Note that somebody wants to know it."""
        with self._lock:
            self._wanted_s[model] = self._clock()

    def due(self, model: str) -> tuple[str, ...]:
        """Of this model and those that were ever asked about: which to learn unasked.

        Not what has only grown old while nobody wanted to know it for a day: learning takes a
        token. Who asks now and then finds it known.
        """
        with self._lock:
            return tuple(each for each in {model: None, **self._tried_s} if self._is_due(each))

    def _is_due(self, model: str) -> bool:
        known = self._known.get(model)
        return (
            known is None
            or known.outages != self._state.outages
            or known.fingerprint.revision != self._state.identity(model)
            or self._clock() - self._wanted_s.get(model, -math.inf) < WANTED_S
        )

    async def learn(self, model: str) -> None:
        """Ask the server. Where that fails nothing new is known, and no more is said of it."""
        outages, begun_s = self._state.outages, self._clock()
        with self._lock:
            changes = self._changes.get(model, 0)
        with suppress(LLMError, TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                if not self._state.listed_lately:  # while answers come nothing else asks for it
                    self._state.lists(await self._client.models(LIMIT_S))
                identity = self._state.identity(model)
                version = await self._client.version()
                template = await self._template(model)
                # A gateway would load a model to answer; what tells its version has it loaded.
                told = await self._client.system_fingerprint(model) if version else ""
            system = told or self._heard_of(model)
            numerics = {"version": version, "system_fingerprint": system}
            learned = _Known(
                Fingerprint(
                    kind="vllm",
                    server=self._client.url,
                    model=model,
                    revision=identity,
                    template=template,
                    numerics=json.dumps(numerics, sort_keys=True),
                ),
                system,
                outages,
                begun_s,
                self._clock(),
            )
            with self._lock:
                # An answer may have told meanwhile that this is no more.
                if self._changes.get(model, 0) == changes:
                    self._known[model] = learned

    def confirmed(self, before: Fingerprint | None, model: str, told: str) -> Fingerprint | None:
        """What answered, if it is what was known before it was asked.

        Args:
            before: what `of` said then.
            told: what the answer itself said of the server's configuration; empty for nothing.
        """
        known = self._known.get(model)
        if told and (known is None or told != known.system):
            # Another server than before. What else is different is asked at once.
            with self._lock:
                self._heard[model] = (told, self._state.outages)
                self._changes[model] = self._changes.get(model, 0) + 1
                self._known.pop(model, None)
                self._tried_s.pop(model, None)
            return None
        return before if before == self.of(model) else None

    def _heard_of(self, model: str) -> str:
        system, outages = self._heard.get(model, ("", 0))
        return system if outages == self._state.outages else ""

    async def _template(self, model: str) -> str:
        """The hash of the tokens of the fixed conversations; empty where the server shows none."""
        told = [await self._client.token_ids(model, {"messages": probe}) for probe in _PROBES]
        if not any(told):
            return ""
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()
