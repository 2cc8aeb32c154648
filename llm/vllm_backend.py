"""Any OpenAI-compatible server, vLLM first.

The requests run as tasks on one private event loop, because only a task can be cancelled while
it waits: cancelling closes the socket within milliseconds, before the first token too, and the
server stops generating. The caller's thread takes the pieces at a bounded `Handover`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm import going_on
from llm.chat_chunks import ChunkReader
from llm.errors import (
    ConnectionLostError,
    InternalError,
    LLMError,
    NoAnswerError,
    NotAllowedError,
    ServerFaultError,
    ServerGarbageError,
    ServerHostUnknownError,
    ServerModelUnknownError,
    ServerNoModelError,
    ServerParameterError,
    ServerTlsError,
    SettingsError,
    ShuttingDownError,
    StalledError,
)
from llm.going_on import TrimmingTemplates, body_of
from llm.loop_thread import Handover, LoopThread
from llm.model_list import ModelInfo
from llm.prefill_speed import PrefillSpeed
from llm.repeated_start import RepeatedStart
from llm.server_errors import only_the_answer_is_too_long, said_s
from llm.server_fingerprint import ServerFingerprints
from llm.server_state import ServerState, may_come, spoken
from llm.stop_strings import StopStrings
from llm.types import (
    BackendStatus,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    GenerationRequest,
    Notice,
    Usage,
)
from llm.vllm_client import VllmClient

if TYPE_CHECKING:
    from llm.settings import Settings

PIECES_WAITING = 256
"""Pieces that may lie between the socket and the caller before the socket is read no more."""

PIECES_A_TOKEN = 16
"""More pieces than this for each token of `max_tokens`, and the server doesn't heed it: some send
each letter by itself, a runaway server sends without end."""

COUNT_LIMIT_S = 3.0
"""Without an exact count by then the question is sent as it is."""

COUNT_PAUSE_S = 60.0
"""A server that can't count, or not in time, isn't asked to for a while."""

_LOOK_UP_S = 60.0  # for the models, where a question needs them: a busy server takes its time
_MOST_COUNTED = 10_000  # beside those of the messages: a long template's
_STOP_FOUND_S = 0.2  # for the usage, where a stop string was found here
_AFTER_FINISH_S = 2.0  # for the usage, once the answer itself has ended
_FREE_WITHIN_S = 1.0
_MOST_AMENDMENTS = 3
# Source: llama.cpp, which else refuses to go on where the template could open a thought: "Assistant
# response prefill is incompatible with enable_thinking".
_NO_THOUGHT = "enable_thinking"
# It may have fallen over, and another be there since.
_BROKEN = (ConnectionLostError, ServerFaultError)
_TURN_CHUNKS = 16  # then other requests, and a cancel, have a turn: buffered chunks never wait
# Not a refused key: gateways refuse it for one model (403). Looking up the models tells.
_UNUSABLE = (ServerHostUnknownError, ServerTlsError)


@dataclass(slots=True)
class _Attempt(ChunkReader):
    """A request that was sent, and what was known to answer it."""

    model: str = ""
    asked: Fingerprint | None = None


def _respell(body: dict[str, Any], name: str) -> bool:
    """Say another way, or leave out, what a server doesn't know; whether that could be done."""
    if name not in body:
        return False
    if name == "max_tokens":
        body["max_completion_tokens"] = body.pop(name)
    elif name == "stream_options":
        del body[name]  # the token counts are lost, the answer isn't
    elif name in going_on.FIELDS:
        for flag in going_on.FIELDS:
            body.pop(flag, None)  # some go on without, others answer anew
    else:
        return False
    return True


class VllmBackend:
    """Asks an OpenAI-compatible server, once: what can't be answered now is an error at once.

    There is no limit to the first text: a long prompt takes its time. A host that is gone is
    noticed by its socket, where no proxy stands between.

    Requests to this machine never go through a proxy; others follow the usual `HTTP_PROXY`,
    `HTTPS_PROXY` and `NO_PROXY`. OpenAI's own environment variables are not looked at.

    Thread-safety: every method may be called from any thread; at most one probe runs at a time.

    Args:
        base_url: with or without `/v1`, which is added where there is no path. A user and
            password in it are sent, and shown nowhere.
        server: the server's name, as settings call it.
        api_key: sent as a bearer token; none is sent where it is empty.
        model: the model to ask where a request names none; empty takes the server's first.
        slots: requests sent at once.
        connect_timeout_s: to reach the server.
        idle_timeout_s: without new text after the first, whatever else the server sends.

    Raises:
        SettingsError: the address isn't one.
    """

    name = "vllm"

    def __init__(
        self,
        base_url: str,
        *,
        server: str = "",
        api_key: str = "",
        model: str = "",
        slots: int = 32,
        connect_timeout_s: float = 5.0,
        idle_timeout_s: float = 60.0,
    ) -> None:
        self.server = server
        self.slots = slots
        self._client = VllmClient(base_url, api_key, connect_timeout_s)
        self.url = self._client.url
        self._model = model
        self._refused: set[str] = set()  # fields of the body that this server doesn't know
        self._templates = TrimmingTemplates(self._client)
        self._speeds: dict[str, PrefillSpeed] = {}
        self._count_again_s = 0.0  # not before: the server can't count, or takes too long
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._thread = LoopThread("vllm-backend", self._client.close)
        self._state = ServerState(model)
        self._fingerprints = ServerFingerprints(self._client, self._state)

    @classmethod
    def from_settings(cls, settings: Settings, server: str = "") -> VllmBackend:
        """The backend of the server of that name; empty is the first."""
        told = settings.server(server)
        try:
            return cls(
                told.base_url,
                server=told.name,
                api_key=told.api_key.get_secret_value() if told.api_key else "",
                model=told.model,
                slots=settings.vllm_slots,
                connect_timeout_s=settings.connect_timeout_s,
                idle_timeout_s=settings.idle_timeout_s,
            )
        except SettingsError as error:
            where = f"servers · {told.name} · base_url" if settings.servers else "vllm_base_url"
            raise SettingsError(setting=where, reason=error.values["reason"]) from None

    def status(self) -> BackendStatus:
        """What is known now; asks the server in the background where that is too old."""
        self._probe()
        return self._state.status()

    def prepare(self) -> None:
        self._probe(again=True)

    def models(self) -> tuple[ModelInfo, ...]:
        """The models to choose from, the one asked by default first.

        As the server listed them last, whether it answers now or not.
        """
        listed = {model.name: model for model in self._state.models}
        usual = self._state.model
        first = (listed.pop(usual, ModelInfo(usual)),) if usual else ()
        return (*first, *listed.values())

    def expect_prefill_s(self, request: GenerationRequest) -> float | None:
        """How long this prompt may take to be read, at most; None while nothing is known."""
        speed = self._speeds.get(request.model or self._state.model)
        return speed.expect_s(request.messages) if speed else None

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        if cancel.cancelled:
            yield Finish("abort")
            return
        pieces: Handover[Delta | Notice, Finish] = Handover(PIECES_WAITING)
        attempts: list[_Attempt] = []
        try:
            errand = self._thread.submit(self._answer(request, pieces, attempts), pieces.end)
        except RuntimeError:
            raise ShuttingDownError() from None
        forget = cancel.on_cancel(errand.cancel)
        repeated = RepeatedStart(request.start_text or "")
        cut = StopStrings(request.params.stop)
        try:
            while not cut.found and (piece := pieces.get()) is not None and not cancel.cancelled:
                yield from _new(repeated, cut, piece)
            # What is held back belongs to the loop's task until that has ended.
            over = not cut.found and pieces.wait_for_end(_FREE_WITHIN_S)
            if attempts and over:
                for piece in attempts[-1].rest():
                    yield from _new(repeated, cut, piece)
            if held := cut.push(repeated.flush()) + cut.flush():
                yield Delta(held)
            if cut.found:  # the server gave out what it should have ended before
                pieces.wait_for_end(_STOP_FOUND_S)
                yield Finish("stop", attempts[-1].usage, self._answered_by(attempts[-1]))
                return
            if cancel.cancelled:
                yield Finish("abort", attempts[-1].usage if attempts else Usage())
                return
            try:
                finish = pieces.result()
            except asyncio.CancelledError:
                raise ShuttingDownError() from None
            yield finish
        finally:
            forget()
            errand.cancel()

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return self.context_tokens(request.model)

    def context_tokens(self, model: str = "") -> int | None:
        """A model's window, prompt and answer together; None where the server doesn't tell."""
        wanted = model or self._state.model
        return next((m.context_tokens for m in self._state.models if m.name == wanted), None)

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        model = request.model or self._state.model
        if not model or time.monotonic() < self._count_again_s or cancel.cancelled:
            return None
        told: Future[int | None] = Future()

        def counted(tokens: int | None, error: BaseException | None) -> None:
            told.set_result(tokens)

        try:
            errand = self._thread.submit(self._count(model, request), counted)
        except RuntimeError:  # closed
            return None
        forget = cancel.on_cancel(errand.cancel)
        try:
            return told.result(COUNT_LIMIT_S)
        except TimeoutError:
            self._count_again_s = time.monotonic() + COUNT_PAUSE_S
            return None
        finally:
            forget()
            errand.cancel()

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        """Learned in the background once the server is ready, and again every few minutes."""
        self._probe()
        model = request.model or self._state.model
        self._fingerprints.wanted(model)
        self._learn(model)
        return self._fingerprints.of(model)

    def close(self) -> None:
        self._thread.close()
        self._state.fails(ShuttingDownError())

    def _probe(self, *, again: bool = False) -> None:
        """Ask for the models in the background, where that is due."""
        if self._state.begin_probe(again=again):
            try:
                self._thread.submit(self._look_up(self._connect_timeout_s), self._probed)
            except RuntimeError:  # closed
                self._state.end_probe()

    def _learn(self, model: str) -> None:
        """Learn what identifies a model in the background, where that is due."""
        if self._fingerprints.begin(model):
            try:
                learning = self._fingerprints.learn(model)
                self._thread.submit(learning, lambda _, __: self._fingerprints.end(model))
            except RuntimeError:  # closed
                self._fingerprints.end(model)

    def _answered_by(self, attempt: _Attempt) -> Fingerprint | None:
        told = attempt.system_fingerprint
        return self._fingerprints.confirmed(attempt.asked, attempt.model, told)

    # Everything below runs on the private loop.

    async def _answer(
        self,
        request: GenerationRequest,
        pieces: Handover[Delta | Notice, Finish],
        attempts: list[_Attempt],
    ) -> Finish:
        """The whole request. Only LLMErrors and CancelledError leave it.

        Each attempt's reader is added to `attempts`; only one before the first text is repeated.
        """
        body = self._body(request)
        try:
            body["model"] = request.model or self._state.model or await self._look_up(_LOOK_UP_S)
            trimmed = await self._templates.trimmed(body["model"], request)
            for _ in range(_MOST_AMENDMENTS):
                try:
                    return await self._read(request, body, trimmed, pieces, attempts)
                except LLMError as error:
                    model = body["model"]
                    if attempts[-1].text_seen or not await self._amend(request, body, error):
                        raise
                    if body["model"] != model:
                        await pieces.put(Notice(None, self.server, spoken(body["model"])))
            return await self._read(request, body, trimmed, pieces, attempts)
        except LLMError as error:
            if isinstance(error, _UNUSABLE) or may_come(error):
                self._state.fails(error)
            elif isinstance(error, _BROKEN):
                self._state.breaks()
            raise

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        """The request as JSON, but for the model. What is left out isn't sent."""
        body: dict[str, Any] = {
            **body_of(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            **request.params.given(),
        }
        for name in self._refused:
            _respell(body, name)
        return body

    async def _amend(
        self, request: GenerationRequest, body: dict[str, Any], error: LLMError
    ) -> bool:
        """Change what the server refused, where that takes nothing from what was asked for."""
        if isinstance(error, ServerModelUnknownError):
            # The server may have been started again with another model.
            named = request.model or self._model
            listed = "" if named else await self._look_up(_LOOK_UP_S)
            if listed in ("", body["model"]):
                return False
            body["model"] = listed
            return True
        if only_the_answer_is_too_long(error):
            # A server that is told no number gives the answer all the room that is left.
            limits = [body.pop(name, None) for name in ("max_tokens", "max_completion_tokens")]
            return any(limits)
        if isinstance(error, ServerParameterError):
            changed = [name for name in error.parameters if _respell(body, name)]
            self._refused.update(changed)
            return bool(changed)
        if isinstance(error, NotAllowedError) and _NO_THOUGHT in str(error.values["reason"]):
            unasked = request.start_text is not None and "chat_template_kwargs" not in body
            body["chat_template_kwargs"] = {_NO_THOUGHT: False}
            return unasked
        return False

    async def _read(
        self,
        request: GenerationRequest,
        body: dict[str, Any],
        trimmed: str,
        pieces: Handover[Delta | Notice, Finish],
        attempts: list[_Attempt],
    ) -> Finish:
        """Send one request and hand over its pieces."""
        # A server that was told nothing of going on may answer anew, with another thought.
        told = going_on.FIELDS.keys() <= body.keys()
        goes_on = told and bool((request.start_text or "").strip())
        model = body["model"]
        asked = self._fingerprints.of(model)
        reader = _Attempt(goes_on=goes_on, trimmed=trimmed, model=model, asked=asked)
        attempts.append(reader)
        now_s = asyncio.get_running_loop().time
        sent_s, first_s = now_s(), 0.0
        # The time is that of text: bytes, such as keep-alives and empty deltas, don't count.
        watch = asyncio.timeout(None)
        try:
            async with watch, await self._client.open(body) as stream:
                chunks = given = 0
                async for chunk in stream:
                    if (chunks := chunks + 1) % _TURN_CHUNKS == 0:
                        await asyncio.sleep(0)
                    for piece in reader.read(chunk):
                        if pieces.full:
                            watch.reschedule(None)  # a slow reader is not a silent server
                        first_s = first_s or now_s()
                        await pieces.put(piece)
                        given += 1
                        watch.reschedule(now_s() + self._idle_timeout_s)
                        self._state.answers()
                    if reader.text_seen and watch.when() is None:  # held back, it may be a tag
                        watch.reschedule(now_s() + self._idle_timeout_s)
                    if reader.error is not None:
                        raise self._client.told(reader.error, body)
                    if reader.finish_reason is not None:
                        watch.reschedule(now_s() + min(_AFTER_FINISH_S, self._idle_timeout_s))
                    elif given > PIECES_A_TOKEN * request.params.max_tokens + PIECES_WAITING:
                        reader.finish_reason = "length"
                        break
        except Exception as fault:  # noqa: BLE001  the boundary: only LLMErrors leave
            # Once the server has said how it ended, nothing can be wrong with the answer.
            if reader.finish_reason is None:
                if watch.expired():
                    raise StalledError(seconds=said_s(self._idle_timeout_s)) from None
                late = self._client.translated(fault, body)
                if type(late) is ConnectionLostError and not reader.text_seen:
                    late = NoAnswerError(url=self.url)
                raise late from self._client.cause(fault)
        if reader.finish_reason in (None, "abort"):
            kind = ConnectionLostError if reader.text_seen else ServerGarbageError
            raise kind(url=self.url)
        if reader.finish_reason == "error":
            raise ServerFaultError(url=self.url, status=0)
        self._state.answers()
        if first_s:
            speed = self._speeds.setdefault(model, PrefillSpeed())
            speed.learn(request.messages, first_s - sent_s)
        return Finish(reader.finish(), reader.usage, self._answered_by(reader))

    async def _count(self, model: str, request: GenerationRequest) -> int | None:
        try:
            tokens = await self._client.count_tokens(model, body_of(request))
        except LLMError:
            return None
        if tokens is not None and tokens > _MOST_COUNTED + 2 * sum(
            len(message.content.encode("utf-8", "replace")) for message in request.messages
        ):
            tokens = None  # no tokenizer makes so many
        if tokens is None:
            self._count_again_s = time.monotonic() + COUNT_PAUSE_S
        return tokens

    async def _look_up(self, limit_s: float) -> str:
        """Learn which models the server has; returns the one to ask where none is named."""
        self._state.lists(await self._client.models(limit_s))
        if not self._state.model:
            raise ServerNoModelError(url=self.url)
        return self._state.model

    def _probed(self, model: str | None, error: BaseException | None) -> None:
        if isinstance(error, LLMError):
            self._state.fails(error)
        elif isinstance(error, Exception):
            self._state.fails(InternalError(kind=type(error).__name__))
        elif model is not None:
            self._state.answers()
            for each in self._fingerprints.due(model):
                self._learn(each)
        self._state.end_probe()


def _new(
    repeated: RepeatedStart, stop: StopStrings, piece: Delta | Notice
) -> Iterator[Delta | Notice]:
    """What may be given out of a piece: some servers give out the stop string as well."""
    if isinstance(piece, Notice):
        yield piece
    elif piece.kind != "text":
        if held := stop.flush():
            yield Delta(held)
        yield piece
    elif text := stop.push(repeated.push(piece.text)):
        yield piece if text == piece.text else Delta(text)
