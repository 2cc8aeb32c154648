"""The vLLM backend against a real local server that behaves well, oddly and badly."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import trustme

from llm.errors import (
    ConnectionLostError,
    ContextOverflowError,
    InternalError,
    LLMError,
    MissingPackageError,
    NoAnswerError,
    NotAllowedError,
    Reason,
    ServerBusyError,
    ServerFaultError,
    ServerGarbageError,
    ServerHostUnknownError,
    ServerKeyError,
    ServerModelUnknownError,
    ServerNoModelError,
    ServerParameterError,
    ServerProxyTimeoutError,
    ServerStartingError,
    ServerTimeoutError,
    ServerTlsError,
    ServerUnreachableError,
    SettingsError,
    ShuttingDownError,
    StalledError,
    WindowExceededError,
)
from llm.job import GenerationJob
from llm.model_list import ModelInfo
from llm.types import (
    CancelToken,
    Delta,
    Finish,
    GenerationRequest,
    Message,
    Notice,
    SamplingParams,
    Usage,
)
from llm.vllm_backend import COUNT_LIMIT_S, PIECES_A_TOKEN, PIECES_WAITING, VllmBackend
from tests.protocol_server import (
    MODEL,
    Exchange,
    Handler,
    ProtocolServer,
    chunk,
    refusing,
    saying,
    sending,
    usage_chunk,
)

SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def backend(server: ProtocolServer) -> Iterator[VllmBackend]:
    made = VllmBackend(server.url, idle_timeout_s=10)
    yield made
    made.close()


def ask(question: str, **params: object) -> GenerationRequest:
    return GenerationRequest((Message("user", question),), SamplingParams(**params))  # type: ignore[arg-type]


def answer(backend: VllmBackend, question: str = "hi", **params: object) -> tuple[str, str, Finish]:
    """The text, the reasoning and the finish."""
    *told, finish = backend.stream(ask(question, **params), CancelToken())
    assert isinstance(finish, Finish)
    deltas = [item for item in told if not isinstance(item, Notice)]
    assert all(isinstance(delta, Delta) for delta in deltas)
    said = {"text": "", "reasoning": ""}
    for delta in deltas:
        assert isinstance(delta, Delta)
        if delta.kind == "recast":
            said = {"text": "", "reasoning": said["reasoning"] + said["text"]}
        else:
            said[delta.kind] += delta.text
    return said["text"], said["reasoning"], finish


def failure(backend: VllmBackend, question: str = "hi", **params: object) -> tuple[str, LLMError]:
    """What had come, and how it failed."""
    items: list[Delta | Finish] = []
    stream = backend.stream(ask(question, **params), CancelToken())
    with pytest.raises(LLMError) as caught:
        items.extend(stream)
    assert all(isinstance(item, Delta) for item in items), "it finished as if all were well"
    return "".join(item.text for item in items if isinstance(item, Delta)), caught.value


def wait_for(condition: object, timeout_s: float = 5.0) -> bool:
    """Wait for another thread's doing that has no event to wait on."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.005)
    return True


def test_an_answer_arrives_whole_with_its_usage(backend: VllmBackend) -> None:
    text, reasoning, finish = answer(backend)
    assert text == "Hello, world!"
    assert reasoning == ""
    assert finish == Finish("stop", Usage(7, 4))


def test_the_request_says_all_that_was_asked(server: ProtocolServer, backend: VllmBackend) -> None:
    messages = (Message("system", "Be brief."), Message("user", "你好 hi"))
    params = SamplingParams(temperature=0.0, top_p=0.5, max_tokens=3, seed=42)
    list(backend.stream(GenerationRequest(messages, params), CancelToken()))
    body = server.exchanges[0].body
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "你好 hi"},
    ]
    wanted = {"model": MODEL, "temperature": 0, "top_p": 0.5, "max_tokens": 3, "seed": 42}
    assert {name: body[name] for name in wanted} == wanted
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


def test_no_seed_is_sent_where_none_is_wanted(server: ProtocolServer, backend: VllmBackend) -> None:
    answer(backend)
    assert "seed" not in server.exchanges[0].body


SAMPLING: dict[str, object] = {
    "temperature": 0.5,
    "top_p": 0.5,
    "seed": 42,
    "top_k": 20,
    "min_p": 0.05,
    "repetition_penalty": 1.1,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
}


def test_every_parameter_is_sent_by_its_name(server: ProtocolServer, backend: VllmBackend) -> None:
    answer(backend, stop=("###", "\nUser:"), **SAMPLING)
    body = server.exchanges[0].body
    assert {name: body[name] for name in SAMPLING} == SAMPLING
    assert body["stop"] == ["###", "\nUser:"]


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_server_that_gives_out_the_stop_string_is_cut_before_it(
    server: ProtocolServer, backend: VllmBackend, goes_on: bool
) -> None:
    async def answering(exchange: Exchange) -> None:
        await exchange.head()
        for piece in ("one t", "wo", " three four"):
            await exchange.say(piece)
        if goes_on:
            await exchange.hold()
        await exchange.say(None, finish="stop")
        await exchange.event(usage_chunk(7, 4))
        await exchange.end()

    server.when("cut", answering)
    text, _, finish = answer(backend, "cut", stop=("never", "two"))
    assert text == "one "
    assert finish == Finish("stop", Usage() if goes_on else Usage(7, 4))
    assert server.exchange(0).over.wait(1)


def test_what_only_began_like_a_stop_string_is_said(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("cut", sending(chunk({"content": "one t"}), chunk({}, "stop")))
    assert answer(backend, "cut", stop=("two",))[0] == "one t"
    server.when("broken", sending(chunk({"content": "one t"}), done=False))
    assert failure(backend, "broken", stop=("two",))[0] == "one t"


def test_a_parameter_that_is_left_out_is_not_sent(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    answer(backend)
    usual = {"model", "messages", "stream", "stream_options", "max_tokens", "temperature", "top_p"}
    assert set(server.exchanges[0].body) == usual
    answer(backend, **dict.fromkeys(SAMPLING))
    assert set(server.exchanges[1].body) == usual - {"temperature", "top_p"}
    answer(backend, top_k=0, presence_penalty=0)
    assert set(server.exchanges[2].body) == usual | {"top_k", "presence_penalty"}


def test_openais_own_environment_goes_nowhere(
    server: ProtocolServer, backend: VllmBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert answer(backend)[0] == "Hello, world!"
    headers = server.exchanges[0].headers
    assert "authorization" not in headers
    assert SECRET not in str(headers)


def test_requests_to_this_machine_do_not_go_through_a_proxy(
    server: ProtocolServer, backend: VllmBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert answer(backend)[0] == "Hello, world!"


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/", "/v1?key=x", "/v1#top"])
def test_the_address_may_be_written_in_several_ways(server: ProtocolServer, tail: str) -> None:
    backend = VllmBackend(f" http://127.0.0.1:{server.port}{tail} ")
    try:
        assert answer(backend)[0] == "Hello, world!"
        assert backend.url == server.url
    finally:
        backend.close()


def test_a_user_in_the_address_is_sent_and_never_shown(server: ProtocolServer) -> None:
    server.when("secret", refusing(400, {"error": {"message": f"pass w:rd of {SECRET}"}}))
    backend = VllmBackend(f"http://me:w%3Ard@127.0.0.1:{server.port}/v1")
    try:
        assert answer(backend)[0] == "Hello, world!"
        assert server.exchanges[0].headers["authorization"] == "Basic bWU6dzpyZA=="
        _, error = failure(backend, "secret")
        assert "w:rd" not in str(error)
        assert backend.url == server.url
    finally:
        backend.close()


# What servers send.


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_told_apart_from_the_answer(
    server: ProtocolServer, backend: VllmBackend, field: str
) -> None:
    events = [chunk({field: "Hmm"}), chunk({field: ", ", "content": None}), chunk({field: "so"})]
    server.when("why", sending(*events, chunk({"content": "42"}), chunk({}, "stop")))
    text, reasoning, finish = answer(backend, "why")
    assert (text, reasoning, finish.reason) == ("42", "Hmm, so", "stop")


@pytest.mark.parametrize("sizes", [1, 3, 1000], ids=["letters", "split", "whole"])
@pytest.mark.parametrize(
    ("sent", "reasoning", "text"),
    [
        ("<think>\nHmm</think>\n\n42", "\nHmm", "\n\n42"),
        ("<think>Hmm, so", "Hmm, so", ""),
        ("Hmm\n</think>\n\n42", "Hmm\n", "\n\n42"),
        ("The </think> tag", "", "The </think> tag"),
        ("so <thi", "", "so <thi"),
        ("<thi", "", "<thi"),
    ],
)
def test_tags_in_the_text_are_read_where_the_server_does_not(
    server: ProtocolServer, backend: VllmBackend, sent: str, reasoning: str, text: str, sizes: int
) -> None:
    server.when("why", saying([sent[at : at + sizes] for at in range(0, len(sent), sizes)]))
    told_text, told_reasoning, finish = answer(backend, "why")
    assert (told_text, told_reasoning, finish.reason) == (text, reasoning, "stop")


def test_a_server_that_tells_reasoning_apart_is_believed(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    text = "It ends so:\n</think>\nAll right."
    events = [chunk({"reasoning": "Hmm"}), chunk({"content": text}), chunk({}, "stop")]
    server.when("why", sending(*events))
    assert answer(backend, "why")[:2] == (text, "Hmm")


def test_what_was_held_back_is_said_before_a_failure(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("cut", sending(chunk({"content": "so </thi"}), done=False))
    text, error = failure(backend, "cut")
    assert text == "so </thi"
    assert isinstance(error, ConnectionLostError)


def test_a_stream_that_stalls_in_half_a_tag_is_ended(server: ProtocolServer) -> None:
    async def stall(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("<thi")
        await exchange.hold()

    server.when("stall", stall)
    backend = VllmBackend(server.url, idle_timeout_s=0.3)
    try:
        text, error = failure(backend, "stall")
    finally:
        backend.close()
    assert text == "<thi"
    assert isinstance(error, StalledError)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("stop", "stop"), ("length", "length"), ("tool_calls", "stop"), ("content_filter", "stop")],
)
def test_finish_reasons_are_put_into_our_words(
    server: ProtocolServer, backend: VllmBackend, said: str, meant: str
) -> None:
    server.when("end", sending(chunk({"content": "so"}), chunk({}, said)))
    assert answer(backend, "end")[2].reason == meant


ODD_BUT_LEGAL: dict[str, tuple[object, ...]] = {
    "no choices": ({"id": "x"},),
    "choices null": ({"choices": None},),
    "choices empty": ({"choices": []},),
    "choices of another type": ({"choices": {"0": {}}}, {"choices": "a"}, {"choices": [None, 3]}),
    "a null chunk": ("null",),
    "a chunk that is a list, a number, a text": ("[]", "3", '"x"'),
    "delta null": ({"choices": [{"index": 0, "delta": None}]},),
    "delta missing": ({"choices": [{"index": 0}]},),
    "content null or of another type": (chunk({"content": None}), chunk({"content": {"a": 1}})),
    "role only": (chunk({"role": "assistant"}),),
    "usage in the middle": (usage_chunk(7, 1), chunk({}, usage={"prompt_tokens": "x"})),
    "usage of another type": ({"choices": [], "usage": [1]},),
    "another choice first": (
        {"choices": [{"index": 1, "delta": {"content": "NO"}, "finish_reason": "length"}]},
    ),
    "tool calls": (chunk({"tool_calls": [{"index": 0}]}),),
}


@pytest.mark.parametrize("odd", ODD_BUT_LEGAL.values(), ids=ODD_BUT_LEGAL.keys())
def test_odd_chunks_do_not_harm_the_answer(
    server: ProtocolServer, backend: VllmBackend, odd: tuple[object, ...]
) -> None:
    good = (chunk({"content": "He"}), *odd, chunk({"content": "llo"}), *odd, chunk({}, "stop"))
    server.when("odd", sending(*odd, *good, usage_chunk(7, 2), *odd))
    text, reasoning, finish = answer(backend, "odd")
    assert (text, reasoning, finish.reason) == ("Hello", "", "stop")
    assert finish.usage.prompt_tokens == 7


def test_choice_0_is_read_wherever_it_stands(server: ProtocolServer, backend: VllmBackend) -> None:
    both = {
        "choices": [
            {"index": 1, "delta": {"content": "NO"}},
            {"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"},
        ]
    }
    server.when("two", sending(both))
    assert answer(backend, "two")[0] == "yes"


def test_content_in_parts_is_joined(server: ProtocolServer, backend: VllmBackend) -> None:
    parts = [{"type": "text", "text": "He"}, {"type": "image"}, None, {"type": "text", "text": "y"}]
    server.when("parts", sending(chunk({"content": parts}), chunk({}, "stop")))
    assert answer(backend, "parts")[0] == "Hey"


def test_a_missing_done_and_a_missing_usage_are_fine(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("bare", sending(chunk({"content": "ok"}), chunk({}, "stop"), done=False))
    text, _, finish = answer(backend, "bare")
    assert (text, finish) == ("ok", Finish("stop", Usage()))


def test_comments_and_other_events_are_passed_over(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.part(
            b": keep-alive\n\nevent: ping\ndata: {}\n\nid: 3\nretry: 5\n\n: ping\n\n"
        )
        await exchange.say("ok")
        await exchange.part(b": keep-alive\r\n\r\n")
        await exchange.say(None, finish="stop")
        await exchange.end()

    server.when("comments", handler)
    assert answer(backend, "comments")[0] == "ok"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_bytes_may_be_cut_anywhere(server: ProtocolServer, backend: VllmBackend, size: int) -> None:
    whole = "你好，世界！🙂 👨‍👩‍👧 é ไทย"
    frame = f'data: {{"choices":[{{"index":0,"delta":{{"content":"{whole}"}}}}]}}\n\n'.encode()

    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        for at in range(0, len(frame), size):
            await exchange.part(frame[at : at + size])
        await exchange.say(None, finish="stop")
        await exchange.end()

    server.when("cut", handler)
    assert answer(backend, "cut")[0] == whole


def test_an_emoji_whose_halves_come_apart_is_whole(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    halves = [r'{"choices":[{"delta":{"content":"a\ud83d"}}]}']
    halves += [r'{"choices":[{"delta":{"content":"\ude42b"}}]}']
    lone = [r'{"choices":[{"delta":{"content":"\ude42c\ud83d"}}]}']
    server.when("halves", sending(*halves, *lone, chunk({}, "stop")))
    text = answer(backend, "halves")[0]
    assert text == "a🙂bc"
    text.encode("utf-8")


def test_an_empty_answer_that_finished_is_an_answer(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("empty", sending(chunk({"role": "assistant", "content": ""}), chunk({}, "stop")))
    assert answer(backend, "empty") == ("", "", Finish("stop", Usage()))


def test_a_server_that_never_closes_after_the_finish_does_not_hold_the_answer(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("ok", finish="stop")
        await exchange.hold()

    server.when("linger", handler)
    began_s = time.monotonic()
    text, _, finish = answer(backend, "linger")
    assert (text, finish.reason) == ("ok", "stop")
    assert time.monotonic() - began_s < 5
    assert server.exchange().gone.wait(2)


def test_a_connection_cut_after_the_finish_harms_nothing(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("ok", finish="stop")
        exchange.cut()

    server.when("late cut", handler)
    assert answer(backend, "late cut")[0] == "ok"


# What goes wrong inside a stream.


async def html_page(exchange: Exchange) -> None:
    await exchange.answer(200, "<html><body>Please log in to use the model</body></html>")


async def plain_json(exchange: Exchange) -> None:
    await exchange.answer(200, {"choices": [{"message": {"content": "hi"}}]})


async def bad_bytes(exchange: Exchange) -> None:
    await exchange.head()
    await exchange.part(b"data: \xff\xfe\xfa\n\n")
    await exchange.end()


async def bad_gzip(exchange: Exchange) -> None:
    await exchange.head(content_encoding="gzip")
    await exchange.part(b"data: this is not gzip\n\n")
    await exchange.end()


async def not_http(exchange: Exchange) -> None:
    await exchange.raw(b"SSH-2.0-OpenSSH_9.6\r\n")
    exchange.cut()


@pytest.mark.parametrize(
    "handler",
    [
        html_page,
        plain_json,
        bad_bytes,
        bad_gzip,
        sending("{this is not JSON"),
        sending("plain words"),
        sending(),
        sending(done=False),
        sending(chunk({"role": "assistant"})),
        refusing(404, {"detail": "Not Found"}),
        refusing(404, "<html>no model page here</html>"),
        refusing(405, {"detail": "Method Not Allowed"}),
    ],
)
def test_what_is_not_the_protocol_is_called_so(
    server: ProtocolServer, backend: VllmBackend, handler: Handler
) -> None:
    server.when("bad", handler)
    text, error = failure(backend, "bad")
    assert text == ""
    assert type(error) is ServerGarbageError
    assert error.values == {"url": server.url}


def test_garbage_after_text_keeps_the_text(server: ProtocolServer, backend: VllmBackend) -> None:
    server.when("bad", sending(chunk({"content": "so far"}), "{oops"))
    text, error = failure(backend, "bad")
    assert text == "so far"
    assert type(error) is ServerGarbageError


async def cut_before_text(exchange: Exchange) -> None:
    await exchange.head()
    exchange.cut()


async def cut_before_head(exchange: Exchange) -> None:
    exchange.cut()


@pytest.mark.parametrize("handler", [cut_before_text, cut_before_head, not_http])
def test_a_connection_cut_before_the_text_is_called_so(
    server: ProtocolServer, backend: VllmBackend, handler: Handler
) -> None:
    server.when("cut", handler)
    assert type(failure(backend, "cut")[1]) is NoAnswerError


def test_a_connection_cut_in_mid_answer_keeps_the_text(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("half an ")
        await exchange.say("answer")
        exchange.cut()

    server.when("cut", handler)
    text, error = failure(backend, "cut")
    # A reset may overtake what was sent; what came is never lost, and never more than was sent.
    assert "half an answer".startswith(text)
    assert type(error) is (ConnectionLostError if text else NoAnswerError)


@pytest.mark.parametrize("done", [True, False])
def test_text_without_a_finish_reason_counts_as_cut_short(
    server: ProtocolServer, backend: VllmBackend, done: bool
) -> None:
    server.when("short", sending(chunk({"content": "half"}), done=done))
    text, error = failure(backend, "short")
    assert text == "half"
    assert type(error) is ConnectionLostError


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"message": "CUDA error", "code": 500}}, ServerFaultError),
        ({"error": {"message": "CUDA error", "code": None}}, ServerFaultError),
        ({"error": "something broke"}, ServerFaultError),
        ({"object": "error", "message": "broke", "code": 500}, ServerFaultError),
        ({"error": {"message": "too many", "code": 429}}, ServerBusyError),
        ({"error": {"message": "bad tool", "code": "400"}}, NotAllowedError),
        (chunk({}, "error"), ServerFaultError),
        (chunk({}, "abort"), ConnectionLostError),
    ],
)
def test_an_error_object_inside_the_stream_is_an_error(
    server: ProtocolServer, backend: VllmBackend, event: object, kind: type[LLMError]
) -> None:
    server.when("err", sending(chunk({"content": "so far"}), event))
    text, error = failure(backend, "err")
    assert text == "so far"
    assert type(error) is kind


def test_an_overflow_told_inside_a_stream_is_not_asked_again_after_text(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    message = ROOM_FOR_THE_PROMPT_ONLY
    error_event = {"error": {"message": message, "code": 400}}
    server.when("err", sending(chunk({"content": "once"}), error_event))
    text, error = failure(backend, "err")
    assert text == "once"
    assert type(error) is NotAllowedError
    assert error.values == {"reason": Reason("reason-answer-too-long", ROOM)}
    assert len(server.exchanges) == 1


@pytest.mark.parametrize("as_event", [{"error": {}}, {"object": "error"}])
def test_an_overflow_told_inside_a_stream_before_any_text_is_asked_again_without_a_limit(
    server: ProtocolServer, backend: VllmBackend, as_event: dict[str, object]
) -> None:
    told = {"message": ROOM_FOR_THE_PROMPT_ONLY, "code": 400}
    event = {**as_event, **({"error": told} if "error" in as_event else told)}

    async def strict(exchange: Exchange) -> None:
        handler = saying(["all ", "the room"], finish="length")
        if "max_tokens" in exchange.body:
            handler = sending(event)
        await handler(exchange)

    server.when("room", strict)
    text, _, finish = answer(backend, "room", max_tokens=4000)
    assert (text, finish) == ("all the room", Finish("length", Usage(7, 2)))
    assert len(server.exchanges) == 2


def test_a_model_that_is_gone_told_inside_a_stream_is_looked_up_again(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    answer(backend)
    server.models = ["another"]
    gone = {"object": "error", "message": f"The model `{MODEL}` does not exist.", "code": 404}
    server.when(MODEL, sending(gone))
    assert answer(backend)[0] == "Hello, world!"
    assert [exchange.body["model"] for exchange in server.exchanges] == [MODEL, MODEL, "another"]


def test_a_cancel_during_a_second_attempt_keeps_its_usage(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def strict(exchange: Exchange) -> None:
        if "max_tokens" in exchange.body:
            await sending({"error": {"message": ROOM_FOR_THE_PROMPT_ONLY, "code": 400}})(exchange)
            return
        await exchange.head()
        await exchange.say("so far", usage={"prompt_tokens": 30, "completion_tokens": 2})
        await exchange.hold()

    server.when("room", strict)
    cancel = CancelToken()
    stream = backend.stream(ask("room"), cancel)
    assert next(stream) == Delta("so far")
    cancel.cancel()
    assert list(stream) == [Finish("abort", Usage(30, 2))]


# Silence.


def test_silence_after_some_text_is_a_stall_and_ends_the_request(server: ProtocolServer) -> None:
    backend = VllmBackend(server.url, idle_timeout_s=0.2)

    async def keeps_alive(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("ten tokens")
        while True:  # bytes come, text doesn't
            await exchange.part(b": ping\n\n")
            await exchange.say("")
            await exchange.event(usage_chunk(1, 1))
            await asyncio.sleep(0.01)

    server.when("stall", keeps_alive)
    try:
        text, error = failure(backend, "stall")
        assert text == "ten tokens"
        assert type(error) is StalledError
        assert error.values == {"seconds": 0.2}
        assert server.exchange().gone.wait(2)
        assert answer(backend)[0] == "Hello, world!"
    finally:
        backend.close()


@pytest.mark.parametrize("with_head", [True, False])
def test_there_is_no_limit_to_the_first_text(server: ProtocolServer, with_head: bool) -> None:
    backend = VllmBackend(server.url, idle_timeout_s=0.5)

    async def slow(exchange: Exchange) -> None:
        if with_head:
            await exchange.head()
            await exchange.event(chunk({"role": "assistant", "content": ""}))
        await asyncio.sleep(1.0)
        if not with_head:
            await exchange.head()
        # Text and finish in one, so that no second wait has its own, shorter, limit.
        await exchange.say("late", finish="stop")
        await exchange.end()

    server.when("slow", slow)
    try:
        assert answer(backend, "slow")[0] == "late"
    finally:
        backend.close()


def test_a_slow_reader_is_not_a_stall_and_misses_nothing(server: ProtocolServer) -> None:
    backend = VllmBackend(server.url, idle_timeout_s=1.0)
    count = 40 * PIECES_WAITING
    # Long pieces, so that they can't all hide in the sockets' own buffers.
    server.when("much", saying([f"{n:09}" + "x" * 991 for n in range(count)]))
    try:
        stream = backend.stream(ask("much", max_tokens=count), CancelToken())
        first = next(stream)
        # Not to hide a race: the reader's slowness, longer than the stall's limit, is the test.
        assert not server.exchange().over.wait(2.0), "the server was never held back"
        assert server.exchange().bytes_sent < count * 1000
        *rest, finish = stream
        numbers = [int(item.text[:9]) for item in [first, *rest] if isinstance(item, Delta)]
        assert numbers == list(range(count))
        assert finish == Finish("stop", Usage(7, count))
    finally:
        backend.close()


# Refusals.


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": "Unauthorized"}, ServerKeyError),
        (403, "<html>Forbidden model</html>", ServerKeyError),
        (404, {"error": {"message": "The model `x` does not exist."}}, ServerModelUnknownError),
        (404, {"object": "error", "message": "model not here"}, ServerModelUnknownError),
        (400, {"error": {"message": "Model x not found"}}, ServerModelUnknownError),
        (400, {"error": {"message": "bad seed"}}, NotAllowedError),
        (413, "", NotAllowedError),
        (422, {"detail": [{"msg": "wrong type"}]}, NotAllowedError),
        (429, {"error": {"message": "slow down"}}, ServerBusyError),
        (503, "", ServerBusyError),
        (500, {"error": {"message": "boom"}}, ServerFaultError),
        (502, "<html>Bad Gateway</html>", ServerFaultError),
        (504, "<html>Gateway Time-out</html>", ServerProxyTimeoutError),
        (524, "", ServerProxyTimeoutError),
    ],
)
def test_each_status_has_its_own_error(
    server: ProtocolServer, backend: VllmBackend, status: int, body: object, kind: type[LLMError]
) -> None:
    server.when("refuse", refusing(status, body))
    text, error = failure(backend, "refuse")
    assert text == ""
    assert type(error) is kind
    assert len(server.exchanges) == 1, "it was asked again, silently"


def test_the_values_of_a_refusal_are_the_servers(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("busy", refusing(429, {}, retry_after="7"))
    server.when("date", refusing(503, {}, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"))
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    server.when("soon", refusing(503, {}, retry_after=soon))
    server.when("nonsense", refusing(503, {}, retry_after="tomorrow-ish"))
    server.when("fault", refusing(507, {}))
    server.when("words", refusing(400, {"error": {"message": "no  such\nparameter " + "x" * 999}}))
    server.when("mute", refusing(400, ""))
    assert failure(backend, "busy")[1].values == {"url": server.url, "seconds": 7}
    assert failure(backend, "date")[1].values == {"url": server.url, "seconds": 0}
    assert failure(backend, "nonsense")[1].values == {"url": server.url, "seconds": 0}
    assert failure(backend, "soon")[1].values["seconds"] in range(80, 91)
    assert failure(backend, "fault")[1].values == {"url": server.url, "status": 507}
    reason = str(failure(backend, "words")[1].values["reason"])
    assert reason.startswith("no such parameter xxx")
    assert len(reason) == 300
    assert failure(backend, "mute")[1].values == {"reason": "HTTP 400"}


def refusing_fields(*names: str, words: str = "Unrecognized request argument") -> Handler:
    """Refuses the first of these that the request has; otherwise answers."""

    async def handler(exchange: Exchange) -> None:
        for name in names:
            if name in exchange.body:
                body = {"error": {"message": f"{words} supplied: {name}", "param": name}}
                await refusing(400, body)(exchange)
                return
        await saying(["all ", "right"])(exchange)

    return handler


@pytest.mark.parametrize("name", [*SAMPLING, "stop"])
def test_a_refused_parameter_is_named_and_nothing_is_left_out_silently(
    server: ProtocolServer, backend: VllmBackend, name: str
) -> None:
    server.when("picky", refusing_fields(name))
    text, error = failure(backend, "picky", stop=("###",), **SAMPLING)
    assert text == ""
    assert type(error) is ServerParameterError
    assert error.values["url"] == server.url
    assert error.parameters == (name,)
    assert len(server.exchanges) == 1, "it was asked again, silently"
    without = {**SAMPLING, "stop": ("###",)} | {name: () if name == "stop" else None}
    assert answer(backend, "picky", **without)[0] == "all right"


def test_a_parameter_refused_inside_a_stream_is_named_too(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    error = {"message": "min_p must be in [0, 1]", "code": 400}
    server.when("picky", sending({"error": error}))
    assert type(failure(backend, "picky", min_p=0.5)[1]) is ServerParameterError


def test_a_server_that_has_another_name_for_the_limit_is_told_by_that(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    words = "Use 'max_completion_tokens' instead; unsupported parameter"
    server.when("newer", refusing_fields("max_tokens", words=words))
    assert answer(backend, "newer", max_tokens=77)[0] == "all right"
    assert "max_tokens" not in server.exchanges[1].body
    assert server.exchanges[1].body["max_completion_tokens"] == 77
    answer(backend, "newer", max_tokens=78)
    assert server.exchanges[2].body["max_completion_tokens"] == 78
    assert len(server.exchanges) == 3, "it was not remembered"


def test_a_server_that_knows_no_stream_options_is_asked_without(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("older", refusing_fields("stream_options"))
    assert answer(backend, "older")[0] == "all right"
    assert answer(backend, "older")[0] == "all right"
    assert ["stream_options" in exchange.body for exchange in server.exchanges] == [
        True,
        False,
        False,
    ]


def test_a_server_that_refuses_either_name_of_the_limit_is_not_asked_for_ever(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    words = "Use 'max_completion_tokens' instead; unsupported parameter"
    server.when("never", refusing(400, {"message": words, "param": "max_tokens"}))
    assert type(failure(backend, "never")[1]) is NotAllowedError
    assert len(server.exchanges) == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_carry_the_question_to_another_host(
    server: ProtocolServer, status: int
) -> None:
    with ProtocolServer() as other:
        away = f"{other.url}/chat/completions"
        server.when("private", refusing(status, {}, location=away))
        server.models_handler = refusing(status, {}, location=f"{other.url}/models")
        asked = VllmBackend(server.url, model=MODEL, api_key=SECRET)
        looked_up = VllmBackend(server.url, api_key=SECRET)
        try:
            for backend in (asked, looked_up):
                text, error = failure(backend, "private")
                assert text == ""
                assert type(error) is ServerGarbageError
            assert other.exchanges == other.lookups == [], "the other host was told"
        finally:
            asked.close()
            looked_up.close()


ROOM_FOR_THE_PROMPT_ONLY = (
    "This model's maximum context length is 2048 tokens. However, you requested 4000 output "
    "tokens and your prompt contains at least 30 input tokens, for a total of at least 4030."
)
ROOM = {"prompt_tokens": 30, "limit": 2048}

OVERFLOWS = {
    "0.4": (
        "This model's maximum context length is 2048 tokens. However, you requested 2600 tokens "
        "(2100 in the messages, 500 in the completion). Please reduce the length of the messages."
    ),
    "0.8": (
        "This model's maximum context length is 2048 tokens. However, your request has 2100 input "
        "tokens. Please reduce the length of the input messages."
    ),
    "0.10": (
        "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum context "
        "length is 2048 tokens and your request has 2100 input tokens (500 > 2048 - 2100)."
    ),
    "0.13": (
        "You passed 2100 input tokens and requested 500 output tokens. However, the model's "
        "context length is only 2048 tokens, resulting in a maximum input length of 1548 tokens."
    ),
    "0.27": (
        "This model's maximum context length is 2048 tokens. However, you requested 500 output "
        "tokens and your prompt contains at least 2100 input tokens, for a total of at least 2600 "
        "tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=2100)"
    ),
    "the decoder": (
        "The decoder prompt (length 2100) is longer than the maximum model length of 2048."
    ),
}


@pytest.mark.parametrize("message", OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_a_prompt_beyond_the_window_is_told_in_numbers(
    server: ProtocolServer, backend: VllmBackend, message: str
) -> None:
    server.when("long", refusing(400, {"error": {"message": message, "code": 400}}))
    _, error = failure(backend, "long")
    assert type(error) is ContextOverflowError
    assert error.values == {"prompt_tokens": 2100, "limit": 2048, "over": 52}
    assert len(server.exchanges) == 1


def test_more_tokens_than_room_are_answered_with_all_the_room(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def strict(exchange: Exchange) -> None:
        handler = saying(["all ", "the room"], finish="length")
        if "max_tokens" in exchange.body:
            handler = refusing(400, {"error": {"message": ROOM_FOR_THE_PROMPT_ONLY}})
        await handler(exchange)

    server.when("room", strict)
    text, _, finish = answer(backend, "room", max_tokens=4000)
    assert (text, finish.reason) == ("all the room", "length")
    assert len(server.exchanges) == 2


@pytest.mark.parametrize("prompt_tokens", [30, 2047])
def test_a_prompt_that_fits_is_never_called_too_long(
    server: ProtocolServer, backend: VllmBackend, prompt_tokens: int
) -> None:
    message = ROOM_FOR_THE_PROMPT_ONLY.replace("30 input", f"{prompt_tokens} input")
    server.when("stubborn", refusing(400, {"error": {"message": message}}))
    _, error = failure(backend, "stubborn")
    assert type(error) is NotAllowedError
    numbers = {**ROOM, "prompt_tokens": prompt_tokens}
    assert error.values == {"reason": Reason("reason-answer-too-long", numbers)}
    assert "too many" not in str(error)
    assert f"{prompt_tokens:,} of the window’s 2,048" in str(error)
    assert len(server.exchanges) == 2, "asked again without a limit, and then no more"


def test_a_prompt_that_fills_the_window_leaves_no_room(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    message = ROOM_FOR_THE_PROMPT_ONLY.replace("30 input", "2048 input")
    server.when("full", refusing(400, {"error": {"message": message}}))
    _, error = failure(backend, "full")
    assert type(error) is ContextOverflowError
    assert error.values == {"prompt_tokens": 2048, "limit": 2048, "over": 1}


@pytest.mark.parametrize(
    "error",
    [
        {"message": "the request exceeds the available context size, try increasing it"},
        {"message": "Input is too long for this model's context window."},
        {"message": "prompt is too long: maximum context length exceeded"},
        {"message": "Input validation error: `inputs` sequence length is larger than allowed"},
        {"message": "Sorry.", "code": "context_length_exceeded"},
        {"message": "Sorry.", "type": "exceed_context_size_error"},
    ],
)
def test_a_window_without_numbers_is_told_for_what_it_is(
    server: ProtocolServer, backend: VllmBackend, error: dict[str, str]
) -> None:
    server.when("long", refusing(400, {"error": error}))
    _, raised = failure(backend, "long")
    assert type(raised) is WindowExceededError


def test_the_numbers_of_llama_cpp_are_read_where_it_puts_them(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    error = {"message": "too long", "type": "exceed_context_size_error"}
    server.when("long", refusing(400, {"error": {**error, "n_prompt_tokens": 70, "n_ctx": 64}}))
    _, raised = failure(backend, "long")
    assert type(raised) is ContextOverflowError
    assert raised.values == {"prompt_tokens": 70, "limit": 64, "over": 6}


@pytest.mark.parametrize(
    "message", ["The model is too long in loading", "temperature must be smaller than the maximum"]
)
def test_other_refusals_arent_taken_for_the_window(
    server: ProtocolServer, backend: VllmBackend, message: str
) -> None:
    server.when("odd", refusing(400, {"error": {"message": message}}))
    _, raised = failure(backend, "odd", seed=1)
    assert not isinstance(raised, ContextOverflowError)


def test_a_server_that_ignores_max_tokens_is_ended_and_freed(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def runaway(exchange: Exchange) -> None:
        await exchange.head()
        while True:
            await exchange.say("on ")

    server.when("runaway", runaway)
    text, _, finish = answer(backend, "runaway", max_tokens=10)
    assert finish.reason == "length"
    assert PIECES_A_TOKEN * 10 < len(text) / 3 < PIECES_A_TOKEN * 10 + 2 * PIECES_WAITING
    assert server.exchange().over.wait(2.0), "the server goes on"


def test_a_token_in_several_pieces_is_not_taken_for_a_runaway(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when(
        "letters",
        sending(*(chunk({"content": letter}) for letter in "abc" * 400), chunk({}, finish="stop")),
    )
    text, _, finish = answer(backend, "letters", max_tokens=400)
    assert (len(text), finish.reason) == (1200, "stop")


def test_an_answer_of_100_000_tokens_arrives_whole(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    words = [f" w{number}" for number in range(100_000)]
    server.when("book", saying(words))
    job = GenerationJob("c", "p", backend, ask("book", max_tokens=100_000), save=lambda _: None)
    job.start()
    version = -1
    while not (seen := job.wait(version, 60.0)).done:
        assert seen.version > version, "nothing came for a minute"
        version = seen.version
        time.sleep(0.05)
    assert seen.error is None
    assert seen.text == "".join(words)
    assert seen.finish == Finish("stop", Usage(7, 100_000))


def test_what_could_be_a_stop_string_comes_before_what_follows_it(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    thought = ["thinking hard\n", "</think>\n", "Answer"]
    server.when(
        "lone tag",
        sending(*(chunk({"content": text}) for text in thought), chunk({}, finish="stop")),
    )
    items = list(backend.stream(ask("lone tag", stop=("\nUser:",)), CancelToken()))
    kinds = [item.kind for item in items if isinstance(item, Delta)]
    at = kinds.index("recast")
    before = "".join(item.text for item in items[:at] if isinstance(item, Delta))
    after = "".join(item.text for item in items[at:] if isinstance(item, Delta))
    assert before.startswith("thinking hard")
    assert after.strip() == "Answer"
    assert "hard\n" not in after


# Counting.


def test_the_servers_tokenizer_counts(server: ProtocolServer, backend: VllmBackend) -> None:
    server.key = "sk-right"
    keyed = VllmBackend(server.url, api_key="sk-right", model=MODEL)
    server.tokenize_handler = refusing(200, {"count": 321, "max_model_len": 2048})
    try:
        assert keyed.count_tokens(ask("hi"), CancelToken()) == 321
    finally:
        keyed.close()
    (lookup,) = [x for x in server.lookups if x.path == "/tokenize"]
    assert lookup.body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "hi"}],
        "add_generation_prompt": True,
    }


@pytest.mark.parametrize("handler", [None, refusing(200, {"tokens": []}), refusing(200, [])])
def test_a_server_that_cant_count_is_asked_once(
    server: ProtocolServer, handler: Handler | None
) -> None:
    server.tokenize_handler = handler
    backend = VllmBackend(server.url, model=MODEL)
    try:
        for _ in range(3):
            assert backend.count_tokens(ask("hi"), CancelToken()) is None
    finally:
        backend.close()
    assert [x.path for x in server.lookups].count("/tokenize") == 1


def test_an_unknown_model_doesnt_end_the_counting_of_others(server: ProtocolServer) -> None:
    async def by_model(exchange: Exchange) -> None:
        known = exchange.body["model"] == MODEL
        message = {"error": {"message": f"The model `{exchange.body['model']}` does not exist."}}
        await exchange.answer(200 if known else 404, {"count": 5} if known else message)

    server.tokenize_handler = by_model
    backend = VllmBackend(server.url, model=MODEL)
    try:
        gone = replace(ask("hi"), model="gone")
        assert backend.count_tokens(gone, CancelToken()) is None
        assert backend.count_tokens(ask("hi"), CancelToken()) == 5
    finally:
        backend.close()


@pytest.mark.parametrize("count", [-5, True, "7", 1.5])
def test_a_count_that_is_none_isnt_taken(server: ProtocolServer, count: object) -> None:
    server.tokenize_handler = refusing(200, {"count": count})
    backend = VllmBackend(server.url, model=MODEL)
    try:
        assert backend.count_tokens(ask("hi"), CancelToken()) is None
    finally:
        backend.close()


def test_a_server_that_fails_at_counting_is_asked_again(server: ProtocolServer) -> None:
    server.tokenize_handler = refusing(500, {})
    backend = VllmBackend(server.url, model=MODEL)
    try:
        assert backend.count_tokens(ask("hi"), CancelToken()) is None
        server.tokenize_handler = refusing(200, {"count": 5})
        assert backend.count_tokens(ask("hi"), CancelToken()) == 5
    finally:
        backend.close()


def test_stop_ends_a_count_under_way(server: ProtocolServer) -> None:
    async def never(exchange: Exchange) -> None:
        cancel.cancel()
        await exchange.hold()

    server.tokenize_handler = never
    cancel = CancelToken()
    backend = VllmBackend(server.url, model=MODEL)
    try:
        began_s = time.monotonic()
        assert backend.count_tokens(ask("hi"), cancel) is None
        assert time.monotonic() - began_s < COUNT_LIMIT_S
        (lookup,) = [x for x in server.lookups if x.path == "/tokenize"]
        assert lookup.over.wait(2.0), "the server was left waiting"
    finally:
        backend.close()


# Values that can't be.


@pytest.mark.parametrize("count", [10**30, 10**400, -5, True, "7", 1.5, None, [3]])
def test_a_count_that_cant_be_one_counts_as_not_told(
    server: ProtocolServer, backend: VllmBackend, count: object
) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": count}}
    server.when("odd", sending(chunk({"content": "fine"}), chunk({}, "stop"), usage))
    text, _, finish = answer(backend, "odd")
    assert (text, finish) == ("fine", Finish("stop", Usage(None, None)))


@pytest.mark.parametrize("key", ["code", "type", "param", "message"])
@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], 10**400, None, "half \ud83d"])
def test_a_refusal_of_any_shape_is_an_error_that_can_be_shown(
    server: ProtocolServer, backend: VllmBackend, key: str, value: object
) -> None:
    error = {"message": "bad thing", **{key: value}}
    server.when("odd", refusing(400, {"error": error}))
    raised = failure(backend, "odd")[1]
    assert isinstance(raised, NotAllowedError)
    str(raised).encode("utf-8")


def test_models_that_cant_be_asked_for_or_sized_are_not_believed(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    listed = [{"id": "half \ud83d"}, {"id": "a", "max_model_len": 10**30}, {"id": 3}, {"id": ""}]
    server.models_handler = refusing(200, {"data": listed})
    server.when("a", saying(["ok"]))
    answer(backend, "hi")
    assert backend.models() == (ModelInfo("a"),)


def test_a_look_up_that_fails_in_an_odd_way_doesnt_stay_under_way(server: ProtocolServer) -> None:
    server.models_handler = refusing(400, {"error": {"message": "no", "code": {"a": 1}}})
    backend = VllmBackend(server.url)
    try:
        backend.prepare()
        assert wait_for(lambda: backend.status().phase == "failed")
    finally:
        backend.close()


def test_a_very_long_refusal_costs_no_time(server: ProtocolServer, backend: VllmBackend) -> None:
    server.when("odd", refusing(400, {"error": {"message": "model length input " * 100_000}}))
    began_s = time.monotonic()
    failure(backend, "odd")
    assert time.monotonic() - began_s < 5


# The key.


def test_the_right_key_is_sent_and_a_wrong_one_is_said_without_showing_it(
    server: ProtocolServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.key = SECRET
    right = VllmBackend(server.url, api_key=f" {SECRET}\n")
    wrong = VllmBackend(server.url, api_key="sk-wrong-98765")
    try:
        caplog.set_level("DEBUG")
        assert answer(right)[0] == "Hello, world!"
        assert type(failure(wrong)[1]) is ServerKeyError
        assert wait_for(lambda: wrong.status().phase == "failed")
        assert type(wrong.status().error) is ServerKeyError
        assert SECRET not in caplog.text
        assert "sk-wrong" not in caplog.text
    finally:
        right.close()
        wrong.close()


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_key_that_the_server_echoes_is_in_no_error_and_no_traceback(
    server: ProtocolServer, status: int
) -> None:
    server.when("echo", refusing(status, {"error": {"message": f"key {SECRET} is odd"}}))
    backend = VllmBackend(server.url, api_key=SECRET)
    try:
        _, error = failure(backend, "echo")
        shown = "".join(traceback.format_exception(error))
        assert SECRET not in f"{error}{error!r}{error.values}{shown}"
    finally:
        backend.close()


@pytest.mark.parametrize("key", ["clé-secrète", "two\nlines"])
def test_a_key_that_can_not_be_sent_is_a_wrong_key(server: ProtocolServer, key: str) -> None:
    backend = VllmBackend(server.url, api_key=key)
    try:
        _, error = failure(backend)
        assert type(error) is ServerKeyError
        assert key not in "".join(traceback.format_exception(error))
    finally:
        backend.close()


def test_a_missing_openai_package_is_said(
    backend: VllmBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    _, error = failure(backend)
    assert type(error) is MissingPackageError
    assert "openai" in str(error)


# The way there.


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_nobody_at_the_port_is_unreachable() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    backend = VllmBackend(url)
    try:
        began_s = time.monotonic()
        _, error = failure(backend)
        assert type(error) is ServerUnreachableError
        assert error.values == {"url": url}
        assert time.monotonic() - began_s < 5
        assert backend.status().phase == "failed"
    finally:
        backend.close()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
def test_an_unknown_host_is_named(host: str) -> None:
    backend = VllmBackend(f"http://{host}:8000/v1", model="m")
    try:
        _, error = failure(backend)
        assert type(error) is ServerHostUnknownError
        assert error.values == {"url": f"http://{host}:8000/v1", "host": host}
    finally:
        backend.close()


def test_a_host_that_does_not_answer_is_a_timeout() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]  # they fill the queue of the kernel
        for caller in waiting:
            caller.setblocking(False)
            caller.connect_ex(("127.0.0.1", port))
        backend = VllmBackend(f"http://127.0.0.1:{port}/v1", model="m", connect_timeout_s=0.3)
        try:
            _, error = failure(backend)
            assert type(error) is ServerTimeoutError
            assert error.values["seconds"] == 0.3
        finally:
            backend.close()
            for caller in waiting:
                caller.close()


def test_https_to_a_plain_server_is_not_the_protocol(server: ProtocolServer) -> None:
    backend = VllmBackend(server.url.replace("http:", "https:"), model=MODEL)
    try:
        assert type(failure(backend)[1]) in (ServerGarbageError, ConnectionLostError)
    finally:
        backend.close()


@pytest.fixture
def authority() -> trustme.CA:
    """A certificate authority of this test's own, which nobody has heard of."""
    return trustme.CA()


@pytest.fixture
def secure_server(authority: trustme.CA) -> Iterator[ProtocolServer]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(tls)
    with ProtocolServer(tls) as running:
        yield running


def test_a_certificate_that_nobody_vouches_for_is_said(secure_server: ProtocolServer) -> None:
    backend = VllmBackend(secure_server.url, model=MODEL)
    try:
        _, error = failure(backend)
        assert type(error) is ServerTlsError
        assert error.values == {"url": secure_server.url}
        assert secure_server.exchanges == []
        assert backend.status().phase == "failed"
    finally:
        backend.close()


def test_a_certificate_of_ones_own_authority_can_be_named(
    secure_server: ProtocolServer,
    authority: trustme.CA,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    certificate = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(certificate))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    backend = VllmBackend(secure_server.url)
    try:
        assert answer(backend)[0] == "Hello, world!"
    finally:
        backend.close()


def test_what_nobody_foresaw_is_logged_by_type_and_place(
    backend: VllmBackend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*args: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr("llm.vllm_client.VllmClient.open", broken)
    _, error = failure(backend)
    assert type(error) is InternalError
    (record,) = [record for record in caplog.records if record.name == "llm.server_errors"]
    assert record.levelname == "ERROR"
    assert "ZeroDivisionError" in record.getMessage()
    assert "test_vllm_backend.py" in record.getMessage()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("where", ["host:port/v1", "host:99999", "/v1", ":80", "h%00st", "."])
def test_an_impossible_address_is_an_error_of_the_tree(where: str) -> None:
    backend = VllmBackend(f"http://{where}", model="m")
    try:
        assert type(failure(backend)[1]) in (ServerUnreachableError, ServerHostUnknownError)
    finally:
        backend.close()


def test_an_address_that_is_none_is_a_wrong_setting() -> None:
    with pytest.raises(SettingsError) as caught:
        VllmBackend("http://[::1/v1")
    assert caught.value.values["reason"] == Reason("reason-not-an-address")


def test_a_password_that_cuts_the_address_in_two_is_refused_and_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        VllmBackend(f"http://me:1/{SECRET}@gpu-box:8000/v1")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("model", ["", MODEL])
def test_a_wrong_path_is_not_the_protocol(server: ProtocolServer, model: str) -> None:
    backend = VllmBackend(server.url + "/wrong", model=model)
    try:
        assert type(failure(backend)[1]) is ServerGarbageError
        backend.prepare()
        assert wait_for(lambda: backend.status().phase == "failed")
        assert type(backend.status().error) is ServerGarbageError
    finally:
        backend.close()


def test_a_server_that_comes_back_is_used_again(server: ProtocolServer) -> None:
    backend = VllmBackend(server.url)
    try:
        assert answer(backend)[0] == "Hello, world!"
        server.stop()
        assert type(failure(backend)[1]) in (ServerUnreachableError, ConnectionLostError)
        again = ProtocolServer()
        again.port = server.port
        with again:
            assert answer(backend)[0] == "Hello, world!"
            assert backend.status().phase == "ready"
    finally:
        backend.close()


# The model.


def test_the_servers_first_model_is_looked_up_once(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.models = ["first", "second"]
    answer(backend)
    answer(backend)
    assert [exchange.body["model"] for exchange in server.exchanges] == ["first", "first"]
    assert len(server.lookups) == 1


def test_a_named_model_is_not_looked_up(server: ProtocolServer) -> None:
    backend = VllmBackend(server.url, model="second")
    server.models = ["first", "second"]
    try:
        answer(backend)
        assert server.exchanges[0].body["model"] == "second"
        assert server.lookups == []
    finally:
        backend.close()


def test_a_named_model_that_is_not_there_is_said(server: ProtocolServer) -> None:
    backend = VllmBackend(server.url, model="nope")
    try:
        _, error = failure(backend)
        assert type(error) is ServerModelUnknownError
        assert error.values == {"url": server.url, "model": "nope"}
        assert len(server.exchanges) == 1
    finally:
        backend.close()


def test_a_server_started_again_with_another_model_is_asked_for_that(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    answer(backend)
    server.models = ["another"]
    assert answer(backend)[0] == "Hello, world!"
    models = [exchange.body["model"] for exchange in server.exchanges]
    assert models == [MODEL, MODEL, "another"]
    assert backend.status().model == "another"


def test_the_model_that_a_request_names_is_asked_and_no_other(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.models = ["first", "second"]
    named = GenerationRequest((Message("user", "hi"),), model="second")
    list(backend.stream(named, CancelToken()))
    assert server.exchanges[0].body["model"] == "second"
    server.models = ["first"]
    with pytest.raises(ServerModelUnknownError):
        list(backend.stream(named, CancelToken()))
    assert len(server.exchanges) == 2, "another model was asked unasked"


def test_models_are_found_with_their_windows(server: ProtocolServer, backend: VllmBackend) -> None:
    listed = [{"id": "a", "max_model_len": 2048}, {"id": "b"}, {"id": "c", "max_model_len": "x"}]
    server.models_handler = refusing(200, {"object": "list", "data": listed})
    assert backend.models() == ()
    assert backend.context_tokens() is None
    backend.prepare()
    assert wait_for(lambda: backend.status().ready)
    assert backend.models() == (ModelInfo("a", 2048), ModelInfo("b"), ModelInfo("c"))
    assert backend.context_tokens() == backend.context_tokens("a") == 2048
    assert backend.context_tokens("b") is None
    assert backend.context_tokens("nobody") is None


def test_the_model_of_the_settings_comes_first_in_the_list_listed_or_not(
    server: ProtocolServer,
) -> None:
    server.models = ["first", "second"]
    for model, names in (("second", ["second", "first"]), ("alias", ["alias", "first", "second"])):
        backend = VllmBackend(server.url, model=model)
        try:
            assert [known.name for known in backend.models()] == [model]
            backend.prepare()
            assert wait_for(lambda backend=backend: backend.status().ready)
            assert [known.name for known in backend.models()] == names
        finally:
            backend.close()


def test_the_models_of_a_server_that_went_away_stay_known(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    answer(backend)
    server.stop()
    failure(backend)
    assert backend.status().phase == "failed"
    assert [model.name for model in backend.models()] == [MODEL]


@pytest.mark.parametrize("body", ["", {"error": {"code": 503, "message": "Loading model"}}])
def test_a_server_that_still_loads_is_starting(
    server: ProtocolServer, backend: VllmBackend, body: object
) -> None:
    server.models_handler = refusing(503, body)
    backend.prepare()
    assert wait_for(lambda: backend.status().phase == "starting")
    assert backend.status().error is not None
    server.models_handler = None
    backend.prepare()
    assert wait_for(lambda: backend.status().ready)


def test_a_server_that_still_loads_says_so_to_a_question(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    server.when("hi", refusing(503, loading))
    _, error = failure(backend)
    assert type(error) is ServerStartingError
    assert backend.status().phase == "starting"


def test_a_proxy_before_a_server_that_is_away_is_not_a_server_that_is_ready(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    answer(backend)
    server.when("hi", refusing(502, "<html>Bad Gateway</html>"))
    assert type(failure(backend)[1]) is ServerFaultError
    assert backend.status().phase == "failed"


@pytest.mark.parametrize(
    ("status", "kind"), [(504, ServerProxyTimeoutError), (403, ServerKeyError)]
)
def test_what_befalls_one_question_is_not_the_state_of_the_server(
    server: ProtocolServer, backend: VllmBackend, status: int, kind: type[LLMError]
) -> None:
    answer(backend)
    server.when("hi", refusing(status, "<html>No</html>"))
    error = failure(backend)[1]
    assert type(error) is kind
    assert backend.status().ready


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_for_the_models_is_the_state_of_the_server(
    server: ProtocolServer, backend: VllmBackend, status: int
) -> None:
    server.models_handler = refusing(status, {})
    backend.prepare()
    assert wait_for(lambda: backend.status().phase == "failed")
    assert type(backend.status().error) is ServerKeyError


def test_a_server_without_models_is_said(server: ProtocolServer, backend: VllmBackend) -> None:
    server.models = []
    _, error = failure(backend)
    assert type(error) is ServerNoModelError
    assert error.values == {"url": server.url}


# Cancelling.


@pytest.mark.parametrize("with_head", [True, False])
def test_a_cancel_before_the_first_token_frees_the_server_at_once(
    server: ProtocolServer, backend: VllmBackend, with_head: bool
) -> None:
    async def mute(exchange: Exchange) -> None:
        if with_head:
            await exchange.head()
        await exchange.hold()

    server.when("mute", mute)
    cancel = CancelToken()
    items: list[Delta | Finish] = []
    reader = threading.Thread(
        target=lambda: items.extend(backend.stream(ask("mute"), cancel)), daemon=True
    )
    reader.start()
    exchange = server.exchange()
    at_s = time.monotonic()
    cancel.cancel()
    reader.join(2)
    assert items == [Finish("abort")]
    assert exchange.gone.wait(2)
    assert exchange.gone_at_s is not None
    assert exchange.gone_at_s - at_s < 0.5


def test_a_cancel_while_the_reader_sleeps_frees_the_server_too(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("much", saying(["x" * 999] * 9999, gap_s=0.001))
    cancel = CancelToken()
    stream = backend.stream(ask("much", max_tokens=9999), cancel)
    assert isinstance(next(stream), Delta)
    cancel.cancel()
    assert server.exchange().gone.wait(2), "the server spoke on until the reader came back"
    assert [type(item) for item in stream] == [Finish]


def test_a_cancel_during_a_burst_is_heard(server: ProtocolServer, backend: VllmBackend) -> None:
    """Chunks that lie ready in the buffer never make the loop wait, so it must give way itself."""
    server.when("burst", saying(["x"] * 50_000))
    cancel = CancelToken()
    stream = backend.stream(ask("burst", max_tokens=50_000), cancel)
    for _, item in zip(range(500), stream, strict=False):
        assert isinstance(item, Delta)
    cancel.cancel()
    began_s = time.monotonic()
    rest = list(stream)
    assert len(rest) <= 2
    assert isinstance(rest[-1], Finish)
    assert rest[-1].reason == "abort"
    assert time.monotonic() - began_s < 0.5
    assert server.exchange().gone.wait(2)


def test_an_iterator_that_is_forgotten_in_a_cycle_frees_the_server(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.when("much", saying(["x"] * 9999, gap_s=0.01))
    cycle: list[object] = [backend.stream(ask("much", max_tokens=9999), CancelToken())]
    cycle.append(cycle)
    next(cycle[0])  # type: ignore[call-overload]
    del cycle
    gc.collect()
    assert server.exchange().gone.wait(2)


def test_the_connection_of_a_finished_answer_is_used_again(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    answer(backend)
    answer(backend)
    assert not server.exchange(0).gone.is_set()
    assert server.exchange(1)._writer is server.exchange(0)._writer


def test_the_connection_of_a_fault_is_not_used_again(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    """uvicorn closes it after the 500, and may do so under the next question."""
    server.when("fail", refusing(500, {}))
    failure(backend, "fail")
    answer(backend)
    assert server.exchange(1)._writer is not server.exchange(0)._writer


def test_closing_ends_what_runs_and_the_thread(server: ProtocolServer) -> None:
    backend = VllmBackend(server.url)

    async def mute(exchange: Exchange) -> None:
        await exchange.hold()

    server.when("mute", mute)
    caught: list[BaseException] = []

    def read() -> None:
        try:
            list(backend.stream(ask("mute"), CancelToken()))
        except LLMError as error:
            caught.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    server.exchange()
    backend.close()
    backend.close()
    reader.join(2)
    assert [type(error) for error in caught] == [ShuttingDownError]
    assert server.exchange().gone.wait(2)
    assert not [t for t in threading.enumerate() if t.name == "vllm-backend" and t.is_alive()]


# Status.


def test_the_status_comes_to_know_the_model(server: ProtocolServer, backend: VllmBackend) -> None:
    assert backend.status().phase == "loading"
    assert wait_for(lambda: backend.status().ready)
    assert backend.status().model == MODEL
    assert [lookup.path for lookup in server.lookups].count("/v1/models") == 1


def test_a_model_named_by_its_folder_is_called_by_the_folders_name(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.models = ["/data/models/Qwen2.5-1.5B-Instruct"]
    backend.prepare()
    assert wait_for(lambda: backend.status().ready)
    assert backend.status().model == "Qwen2.5-1.5B-Instruct"


def test_an_answer_counts_as_knowledge(server: ProtocolServer, backend: VllmBackend) -> None:
    answer(backend)
    lookups = len(server.lookups)
    assert backend.status().ready
    assert backend.status().model == MODEL
    assert len(server.lookups) == lookups


def test_many_looks_at_the_status_make_one_probe(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def mute(exchange: Exchange) -> None:
        await exchange.hold()

    server.models_handler = mute
    for _ in range(100):
        backend.prepare()
        assert backend.status().phase == "loading"
    assert wait_for(lambda: len(server.lookups) == 1)
    assert len(server.lookups) == 1


def test_a_failed_probe_says_why_and_prepare_tries_again(server: ProtocolServer) -> None:
    server.models_handler = refusing(500, {})
    backend = VllmBackend(server.url)
    try:
        backend.prepare()
        assert wait_for(lambda: backend.status().phase == "failed")
        error = backend.status().error
        assert type(error) is ServerFaultError
        server.models_handler = None
        backend.prepare()
        assert wait_for(lambda: backend.status().ready)
        assert backend.status().error is None
    finally:
        backend.close()


def test_old_knowledge_is_asked_for_again_without_forgetting_it(
    server: ProtocolServer, backend: VllmBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(backend)
    monkeypatch.setattr("llm.server_state.FRESH_S", 0.0)
    server.models_handler = refusing(401, {})
    assert backend.status().phase == "ready"
    assert wait_for(lambda: backend.status().phase == "failed")
    assert type(backend.status().error) is ServerKeyError


def test_a_probe_that_gets_no_answer_ends(server: ProtocolServer) -> None:
    async def mute(exchange: Exchange) -> None:
        await exchange.hold()

    server.models_handler = mute
    backend = VllmBackend(server.url, connect_timeout_s=0.2)
    try:
        backend.prepare()
        assert wait_for(lambda: backend.status().phase == "failed")
        assert type(backend.status().error) is ServerTimeoutError
    finally:
        backend.close()
