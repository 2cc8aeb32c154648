"""Any OpenAI-compatible server, vLLM first.

The requests run as tasks on one private event loop, because only a task can be cancelled while
it waits: cancelling closes the socket within milliseconds, before the first token too, and the
server stops generating. The caller's thread takes the pieces at a bounded `Handover`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from llm.chat_chunks import ChunkReader
from llm.errors import (
    ConnectionLostError,
    LLMError,
    ServerFaultError,
    ServerGarbageError,
    ServerHostUnknownError,
    ServerKeyError,
    ServerModelUnknownError,
    ServerNoModelError,
    ServerParameterError,
    ServerTimeoutError,
    ServerTlsError,
    ServerUnreachableError,
    ShuttingDownError,
    StalledError,
)
from llm.loop_thread import Handover, LoopThread
from llm.server_errors import only_the_answer_is_too_long, said_s
from llm.server_state import ServerState
from llm.types import BackendStatus, CancelToken, Delta, Finish, GenerationRequest, Usage
from llm.vllm_client import VllmClient

if TYPE_CHECKING:
    from llm.settings import Settings

PIECES_WAITING = 256
"""Pieces that may lie between the socket and the caller before the socket is read no more."""

_AFTER_FINISH_S = 2.0  # for the usage, once the answer itself has ended
_FREE_WITHIN_S = 1.0
_MOST_AMENDMENTS = 3
_TURN_CHUNKS = 16  # then other requests, and a cancel, have a turn: buffered chunks never wait
_DOWN = (ServerUnreachableError, ServerHostUnknownError, ServerTlsError, ServerKeyError)


def _respell(body: dict[str, Any], name: str) -> bool:
    """Say another way, or leave out, what a server doesn't know; whether that could be done."""
    if name not in body:
        return False
    if name == "max_tokens":
        body["max_completion_tokens"] = body.pop(name)
    elif name == "stream_options":
        del body[name]  # the token counts are lost, the answer isn't
    else:
        return False
    return True


class VllmBackend:
    """Asks an OpenAI-compatible server.

    Requests to this machine never go through a proxy; others follow the usual `HTTP_PROXY`,
    `HTTPS_PROXY` and `NO_PROXY`. OpenAI's own environment variables are not looked at.

    Thread-safety: every method may be called from any thread; at most one probe runs at a time.

    Args:
        base_url: with or without `/v1`, which is added where there is no path. A user and
            password in it are sent, and shown nowhere.
        api_key: sent as a bearer token; none is sent where it is empty.
        model: the model to ask; empty takes the server's first.
        slots: requests sent at once.
        connect_timeout_s: to reach the server.
        first_token_timeout_s: to the first text or reasoning.
        idle_timeout_s: without new text after it, whatever else the server sends.

    Raises:
        SettingsError: the address isn't one.
    """

    name = "vllm"

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "",
        model: str = "",
        slots: int = 32,
        connect_timeout_s: float = 5.0,
        first_token_timeout_s: float = 600.0,
        idle_timeout_s: float = 60.0,
    ) -> None:
        self.slots = slots
        self._client = VllmClient(base_url, api_key, connect_timeout_s)
        self.url = self._client.url
        self._model = model
        self._listed: str = ""
        self._refused: set[str] = set()  # fields of the body that this server doesn't know
        self._connect_timeout_s = connect_timeout_s
        self._first_token_timeout_s = first_token_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._thread = LoopThread("vllm-backend", self._client.close)
        self._state = ServerState(model)

    @classmethod
    def from_settings(cls, settings: Settings) -> VllmBackend:
        """The backend that the settings describe."""
        key = settings.vllm_api_key
        return cls(
            settings.vllm_base_url,
            api_key=key.get_secret_value() if key else "",
            model=settings.vllm_model,
            slots=settings.vllm_slots,
            connect_timeout_s=settings.connect_timeout_s,
            first_token_timeout_s=settings.first_token_timeout_s,
            idle_timeout_s=settings.idle_timeout_s,
        )

    def status(self) -> BackendStatus:
        """What is known now; asks the server in the background where that is too old."""
        self._probe()
        return self._state.status()

    def prepare(self) -> None:
        self._probe(again=True)

    def stream(self, request: GenerationRequest, cancel: CancelToken) -> Generator[Delta | Finish]:
        if cancel.cancelled:
            yield Finish("abort")
            return
        pieces: Handover[Delta, Finish] = Handover(PIECES_WAITING)
        attempts: list[ChunkReader] = []
        try:
            errand = self._thread.submit(self._answer(request, pieces, attempts), pieces.end)
        except RuntimeError:
            raise ShuttingDownError() from None
        forget = cancel.on_cancel(errand.cancel)
        try:
            while (piece := pieces.get()) is not None and not cancel.cancelled:
                yield piece
            if cancel.cancelled:
                pieces.wait_for_end(_FREE_WITHIN_S)
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

    def close(self) -> None:
        self._thread.close()
        self._state.fails(ShuttingDownError())

    def _probe(self, *, again: bool = False) -> None:
        """Ask for the models in the background, where that is due."""
        if self._state.begin_probe(again=again):
            try:
                self._thread.submit(self._first_model(self._connect_timeout_s), self._probed)
            except RuntimeError:  # closed
                self._state.end_probe()

    # Everything below runs on the private loop.

    async def _answer(
        self,
        request: GenerationRequest,
        pieces: Handover[Delta, Finish],
        attempts: list[ChunkReader],
    ) -> Finish:
        """The whole request. Only LLMErrors and CancelledError leave it.

        Each attempt's reader is added to `attempts`; only one before the first text is repeated.
        """
        body = self._body(request)
        try:
            body["model"] = (
                self._model or self._listed or await self._first_model(self._first_token_timeout_s)
            )
            for _ in range(_MOST_AMENDMENTS):
                try:
                    return await self._read(body, pieces, attempts)
                except LLMError as error:
                    if attempts[-1].text_seen or not await self._amend(body, error):
                        raise
            return await self._read(body, pieces, attempts)
        except LLMError as error:
            if isinstance(error, _DOWN):
                self._state.fails(error)
            raise

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        """The request as JSON, but for the model. What is left out isn't sent."""
        body: dict[str, Any] = {
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            **request.params.given(),
        }
        for name in self._refused:
            _respell(body, name)
        return body

    async def _amend(self, body: dict[str, Any], error: LLMError) -> bool:
        """Change what the server refused, where that takes nothing from what was asked for."""
        if isinstance(error, ServerModelUnknownError):
            # The server may have been started again with another model.
            listed = "" if self._model else await self._first_model(self._first_token_timeout_s)
            if listed in ("", body["model"]):
                return False
            body["model"] = listed
            return True
        if only_the_answer_is_too_long(error):
            # A server that is told no number gives the answer all the room that is left.
            limits = [body.pop(name, None) for name in ("max_tokens", "max_completion_tokens")]
            return any(limits)
        if isinstance(error, ServerParameterError):
            named = [name for name in error.parameters if _respell(body, name)]
            self._refused.update(named)
            return bool(named)
        return False

    async def _read(
        self, body: dict[str, Any], pieces: Handover[Delta, Finish], attempts: list[ChunkReader]
    ) -> Finish:
        """Send one request and hand over its pieces."""
        reader = ChunkReader()
        attempts.append(reader)
        now_s = asyncio.get_running_loop().time
        # The time is that of text: bytes, such as keep-alives and empty deltas, don't count.
        watch = asyncio.timeout(self._first_token_timeout_s)
        try:
            async with watch, await self._client.open(body) as stream:
                chunks = 0
                async for chunk in stream:
                    if (chunks := chunks + 1) % _TURN_CHUNKS == 0:
                        await asyncio.sleep(0)
                    for piece in reader.read(chunk):
                        if pieces.full:
                            watch.reschedule(None)  # a slow reader is not a silent server
                        await pieces.put(piece)
                        watch.reschedule(now_s() + self._idle_timeout_s)
                        self._state.answers(body["model"])
                    if reader.error is not None:
                        raise self._client.told(reader.error, body)
                    if reader.finish_reason is not None:
                        watch.reschedule(now_s() + min(_AFTER_FINISH_S, self._idle_timeout_s))
        except Exception as fault:  # noqa: BLE001  the boundary: only LLMErrors leave
            # Once the server has said how it ended, nothing can be wrong with the answer.
            if reader.finish_reason is None:
                late = self._silence(reader) if watch.expired() else None
                late = late or self._client.translated(fault, body)
                raise late from self._client.cause(fault)
        if reader.finish_reason in (None, "abort"):
            kind = ConnectionLostError if reader.text_seen else ServerGarbageError
            raise kind(url=self.url)
        if reader.finish_reason == "error":
            raise ServerFaultError(url=self.url, status=0)
        self._state.answers(body["model"])
        return Finish(reader.finish(), reader.usage)

    async def _first_model(self, limit_s: float) -> str:
        """The first model that the server lists; it is remembered."""
        self._listed = next(iter(await self._client.models(limit_s)), "")
        if not (self._listed or self._model):
            raise ServerNoModelError(url=self.url)
        return self._listed

    def _silence(self, reader: ChunkReader) -> LLMError:
        if reader.text_seen:
            return StalledError(seconds=said_s(self._idle_timeout_s))
        return ServerTimeoutError(url=self.url, seconds=said_s(self._first_token_timeout_s))

    def _probed(self, listed: str | None, error: BaseException | None) -> None:
        if isinstance(error, LLMError):
            self._state.fails(error)
        elif listed is not None:
            self._state.answers(self._model or listed)
        self._state.end_probe()
