"""`/v1/chat/completions` and `/v1/models`, asked with OpenAI's own client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from api.models import OfferedModel
from llm.answer_cache import AnswerCache
from llm.answer_figures import AnswerFigures
from llm.cache_sqlite import SqliteAnswerStore
from llm.engine import Engine
from llm.errors import ContextOverflowError, ServerUnreachableError
from llm.registry import JobRegistry
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import Delta, GenerationRequest, Message
from tests.api_server import (
    BEARER,
    PATIENCE_S,
    ApiServer,
    RawStream,
    chat,
    limits,
    serving,
    wait_until,
)
from tests.cached_answers import LARGE, PATIENT_S
from tests.driven_backend import DrivenBackend

ECHO = Script("You asked: {question} 你好 🙂", tokens_per_s=0, reasoning="Let me think.")


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """One that answers by itself."""
    rules = [
        ("fails at once", Script("never", fail_after=0, fail_kind="out-of-memory")),
        ("fails later", Script("half of it", chunk_chars=4, fail_after=1)),
        ("dies", Script("secret words", chunk_chars=6, die_after=1)),
    ]
    with serving(ScriptedBackend(ECHO, rules)) as server:
        yield server


@pytest.fixture
def driven() -> Iterator[DrivenBackend]:
    with DrivenBackend() as backend:
        yield backend


def test_an_answer_comes_as_one_object(server: ApiServer) -> None:
    answer = server.openai.chat.completions.create(**chat("Who?"))
    choice = answer.choices[0]
    assert choice.message.content == "You asked: Who? 你好 🙂"
    assert choice.message.role == "assistant"
    assert choice.message.reasoning_content == "Let me think."
    assert (choice.finish_reason, answer.model, answer.object) == (
        "stop",
        "scripted",
        "chat.completion",
    )
    usage = answer.usage
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0


def test_an_answer_comes_as_a_stream_with_the_same_text(server: ApiServer) -> None:
    stream = server.openai.chat.completions.create(
        **chat("Who?", stream=True, stream_options={"include_usage": True})
    )
    chunks = list(stream)
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "You asked: Who? 你好 🙂"
    thoughts = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(thoughts) == "Let me think."
    assert deltas[0].role == "assistant"
    assert [c.finish_reason for chunk in chunks for c in chunk.choices][-1] == "stop"
    assert len({chunk.id for chunk in chunks}) == 1
    assert not chunks[-1].choices
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


def test_the_stream_is_framed_as_proxies_and_clients_want_it(server: ApiServer) -> None:
    reply = server.http.post("/v1/chat/completions", json=chat("Who?", stream=True), headers=BEARER)
    assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["X-Accel-Buffering"] == "no"
    assert "no-transform" in reply.headers["Cache-Control"]
    assert reply.text.startswith(": connected\n\n")
    assert reply.text.endswith("data: [DONE]\n\n")
    assert "usage" not in reply.text, "nobody asked for it"


def test_the_parameters_reach_the_backend(driven: DrivenBackend) -> None:
    given = {
        "temperature": 0,
        "top_p": 0.5,
        "seed": 7,
        "stop": ["###", "\n"],
        "presence_penalty": 1,
        "frequency_penalty": -1,
        "max_completion_tokens": 9,
        "user": "somebody",
        "n": 1,
        "tools": [],
        "logprobs": False,
        "response_format": {"type": "text"},
        "metadata": {"a": "b"},
    }
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d\0"},
    ]
    with serving(driven) as server:
        client = server.openai
        done = threading.Thread(
            target=lambda: client.chat.completions.create(
                model="scripted",
                messages=messages,
                extra_body={"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.5},
                **given,
            )
        )
        done.start()
        stream = driven.next_stream()
        stream.answer("yes")
        done.join()
    told = stream.request
    assert [(m.role, m.content) for m in told.messages] == [
        ("system", "Be brief."),
        ("user", "a\nb"),
        ("assistant", "c"),
        ("user", "d"),
    ]
    assert told.params.given() == {
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 9,
        "seed": 7,
        "top_k": 5,
        "min_p": 0.1,
        "repetition_penalty": 1.5,
        "presence_penalty": 1,
        "frequency_penalty": -1,
        "stop": ("###", "\n"),
    }


def test_what_is_left_out_is_left_to_the_model_but_for_the_length(driven: DrivenBackend) -> None:
    with serving(driven, limits=limits(usual_tokens=33, most_tokens=50)) as server:
        for asked, told in ((None, 33), (40, 40), (1000, 50)):
            stream = RawStream(server, "/v1/chat/completions", chat("q", max_tokens=asked))
            taken = driven.next_stream()
            assert taken.request.params.given() == {"max_tokens": told}
            taken.answer("a")
            stream.read_until(b'"stop"')
            stream.close()


def test_a_model_may_have_a_temperature_of_its_own(driven: DrivenBackend) -> None:
    offered = (OfferedModel("scripted", temperature=0.25),)
    with serving(driven, offered=lambda: offered) as server:
        for asked, told in ((None, 0.25), (0, 0), (1.5, 1.5)):
            stream = RawStream(server, "/v1/chat/completions", chat("q", temperature=asked))
            taken = driven.next_stream()
            assert taken.request.params.temperature == told
            taken.answer("a")
            stream.read_until(b'"stop"')
            stream.close()


def test_an_answer_that_was_begun_is_gone_on_with(server: ApiServer) -> None:
    answer = server.openai.chat.completions.create(
        model="scripted",
        messages=[
            {"role": "user", "content": "Who?"},
            {"role": "assistant", "content": "You asked: "},
        ],
    )
    assert answer.choices[0].message.content == "Who? 你好 🙂"


def test_an_answer_that_is_cut_says_so(server: ApiServer) -> None:
    answer = server.openai.chat.completions.create(**chat("Who?", max_tokens=1))
    assert answer.choices[0].finish_reason == "length"


def test_an_error_after_the_stream_began_is_raised_by_the_client_and_no_done_follows(
    server: ApiServer,
) -> None:
    got: list[str] = []
    chunks = server.openai.chat.completions.create(**chat("fails later", stream=True))
    with pytest.raises(openai.APIError) as raised:
        got.extend(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert "".join(got) == "half"
    assert isinstance(raised.value.body, dict)
    assert raised.value.body["code"] == "backend_failed"
    reply = server.http.post(
        "/v1/chat/completions", json=chat("fails later", stream=True), headers=BEARER
    )
    assert "[DONE]" not in reply.text


@pytest.mark.parametrize(
    ("question", "status", "code"),
    [("fails at once", 503, "out_of_memory"), ("dies", 500, "internal_error")],
)
def test_an_answer_that_failed_is_an_error_with_its_status(
    server: ApiServer, question: str, status: int, code: str
) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        server.openai.chat.completions.create(**chat(question))
    assert (raised.value.status_code, raised.value.code) == (status, code)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "status", "code", "param"),
    [
        (
            ContextOverflowError(prompt_tokens=9, limit=8, over=1),
            400,
            "context_length_exceeded",
            "messages",
        ),
        (ServerUnreachableError(url="http://gpu/v1"), 502, "backend_failed", None),
    ],
)
def test_errors_of_the_engine_have_codes_of_their_own(
    driven: DrivenBackend, error: Exception, status: int, code: str, param: str | None
) -> None:
    with serving(driven) as server:
        thread = threading.Thread(target=lambda: driven.next_stream().raise_(error))
        thread.start()
        with pytest.raises(openai.APIStatusError) as raised:
            server.openai.chat.completions.create(**chat("q"))
        thread.join()
    told = raised.value
    assert (told.status_code, told.code, told.param) == (status, code, param)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("running", [True, False])
def test_the_work_stops_when_the_client_goes(
    driven: DrivenBackend, *, stream: bool, running: bool
) -> None:
    registry = JobRegistry()
    with serving(driven, registry=registry) as server:
        first = RawStream(server, "/v1/chat/completions", chat("first", stream=stream))
        taken = driven.next_stream()
        gone = first
        if not running:  # it stands in line behind the first
            gone = RawStream(server, "/v1/chat/completions", chat("second", stream=stream))
            wait_until(lambda: registry.in_line() == 1, "the line")
        gone.close()
        if running:
            wait_until(lambda: taken.cancel.cancelled, "the cancelling")
            assert taken.closed.wait(PATIENCE_S)
        else:
            wait_until(lambda: registry.in_line() == 0, "the line's end")
            assert not taken.cancel.cancelled
        wait_until(lambda: registry.running() == (0 if running else 1), "the end")
        first.close()


def test_there_are_signs_of_life_while_nothing_is_said(driven: DrivenBackend) -> None:
    with serving(driven, limits=limits(keep_alive_s=0.01)) as server:
        stream = RawStream(server, "/v1/chat/completions", chat("q", stream=True))
        stream.read_until(b": connected\n\n")
        stream.read_until(b": keep-alive\n\n")
        driven.next_stream().answer("at last")
        stream.read_until(b"[DONE]")
        stream.close()


def test_an_answer_that_takes_too_long_is_ended(driven: DrivenBackend) -> None:
    registry = JobRegistry()
    with serving(driven, registry=registry, limits=limits(time_s=0.2)) as server:
        with pytest.raises(openai.APIStatusError) as raised:
            server.openai.chat.completions.create(**chat("q"))
        assert (raised.value.status_code, raised.value.code) == (504, "time_limit")
        # On a busy machine that may be before the backend was asked.
        wait_until(lambda: not registry.running(), "the end")
        with pytest.raises(openai.APIError, match="longer than"):
            list(server.openai.chat.completions.create(**chat("q", stream=True)))


def test_a_server_that_stops_waits_for_no_answer(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        streamed = RawStream(server, "/v1/chat/completions", chat("a", stream=True))
        streamed.read_until(b'"role"')
        taken = driven.next_stream()
        server.stop()
        assert b'"code":"shutting_down"' in streamed.read_until(b"shutting_down")
        assert taken.closed.wait(PATIENCE_S)
        streamed.close()


def test_a_full_line_is_told_with_when_to_come_again(driven: DrivenBackend) -> None:
    registry = JobRegistry(max_waiting=5, max_waiting_each=1)
    with serving(driven, registry=registry) as server:
        running = RawStream(server, "/v1/chat/completions", chat("a"))
        driven.next_stream()
        waiting = RawStream(server, "/v1/chat/completions", chat("b"))
        wait_until(lambda: registry.in_line() == 1)
        with pytest.raises(openai.RateLimitError) as raised:
            server.openai.chat.completions.create(**chat("c", stream=True))
        assert raised.value.code == "too_many_waiting"
        assert int(raised.value.response.headers["Retry-After"]) > 0
        running.close()
        waiting.close()


def test_who_asks_on_the_page_waits_for_one_answer_of_the_apis_and_not_for_all(
    driven: DrivenBackend,
) -> None:
    registry = JobRegistry(max_waiting_each=100)
    with serving(driven, registry=registry) as server:
        streams = [RawStream(server, "/v1/chat/completions", chat("api", stream=True))]
        running = driven.next_stream()
        for waiting in range(1, 10):
            streams.append(RawStream(server, "/v1/chat/completions", chat("api", stream=True)))
            wait_until(lambda waiting=waiting: registry.in_line() == waiting)
        asked = GenerationRequest((Message("user", "page"),))
        registry.submit("page", "ann", driven, asked, save=lambda snapshot: None)
        running.answer("one")
        following = driven.next_stream()
        assert following.question == "page"
        for stream in streams:
            stream.close()
        following.answer("done")


def test_the_cache_answers_what_was_asked_before_and_nobody_elses(tmp_path: Path) -> None:
    backend = ScriptedBackend(ECHO)
    asked: list[str] = []
    answer = backend.stream

    def noted(request, cancel):  # type: ignore[no-untyped-def]
        asked.append(request.messages[-1].content)
        return answer(request, cancel)

    backend.stream = noted  # type: ignore[method-assign]
    cache = AnswerCache(
        lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", LARGE), limit_s=PATIENT_S
    )
    seen: list[AnswerFigures] = []

    class Figures:
        def answered(self, figures: AnswerFigures) -> None:
            seen.append(figures)

    def engine(registry, backends):  # type: ignore[no-untyped-def]
        return Engine(registry, backends, cache=cache, metrics=Figures())  # type: ignore[arg-type]

    body = chat("What is the capital of France?", temperature=0)
    try:
        with serving(backend, engine=engine, cached=True) as server:
            client = server.openai
            first = client.chat.completions.create(**body)
            assert cache.flush(PATIENCE_S)
            second = client.chat.completions.create(**body)
            streamed = client.chat.completions.create(**{**body, "stream": True})
            text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed)
            sampled = client.chat.completions.create(**{**body, "temperature": 1})
            wait_until(lambda: len(seen) == 4, "the figures")
    finally:
        cache.close()
    assert first.choices[0].message == second.choices[0].message
    assert text == sampled.choices[0].message.content == first.choices[0].message.content
    assert len(asked) == 2, "the first, and the one that is expected to vary"
    assert [figures.cached for figures in seen] == ["", "exact", "exact", ""]
    assert {figures.backend for figures in seen} == {"scripted"}


def test_models_are_listed_and_found_by_their_names(server: ApiServer) -> None:
    client = server.openai
    assert [model.id for model in client.models.list()] == ["scripted"]
    assert client.models.retrieve("scripted").owned_by == "scripted"
    with pytest.raises(openai.NotFoundError) as raised:
        client.models.retrieve("org/other")
    assert raised.value.code == "model_not_found"


def test_models_are_not_looked_up_on_the_event_loop() -> None:
    """The first look may import a backend, and every page would stand still meanwhile."""
    seen: list[str] = []

    def offered() -> tuple[OfferedModel, ...]:
        seen.append(threading.current_thread().name)
        return (OfferedModel("scripted", name="scripted"),)

    with serving(ScriptedBackend(ECHO), offered=offered) as server:
        server.openai.models.list()
        server.openai.models.retrieve("scripted")
        server.openai.chat.completions.create(**chat("q"))
        assert len(seen) == 3
        assert server.thread.name not in seen


def test_a_models_name_decides_who_is_asked() -> None:
    offered = (
        OfferedModel("local", name="Small"),
        OfferedModel("vllm/a", "Qwen/Big", "Qwen/Big", 4096),
        OfferedModel("vllm/a", "Small", "Small"),
        OfferedModel("vllm/b"),
    )
    names = {
        "local": "local",
        "local/Small": "local",
        "Small": "local",
        "Qwen/Big": "vllm/a",
        "vllm/a/Qwen/Big": "vllm/a",
        "vllm/a/Small": "vllm/a",
        "vllm": "vllm/a",
        "vllm/b": "vllm/b",
        "vllm/b/unlisted": "vllm/b",
    }
    kinds = ("local", "vllm/a", "vllm/b")
    backends = {kind: ScriptedBackend(Script(f"this is {kind}")) for kind in kinds}
    with serving(backends, offered=lambda: offered) as server:
        client = server.openai
        listed = {model.id: model for model in client.models.list()}
        assert list(listed) == ["local/Small", "Qwen/Big", "vllm/a/Small", "vllm/b"]
        assert listed["Qwen/Big"].max_model_len == 4096  # type: ignore[attr-defined]
        for name, kind in names.items():
            answer = client.chat.completions.create(**{**chat("q"), "model": name})
            assert answer.choices[0].message.content == f"this is {kind}", name
        for name in ("Big", "other", "vllm/c", "vllm/a/", ""):
            with pytest.raises(openai.NotFoundError):
                client.chat.completions.create(**{**chat("q"), "model": name})


def test_what_was_text_at_first_is_reasoning_in_the_whole_answer(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        whole = RawStream(server, "/v1/chat/completions", chat("q"))
        taken = driven.next_stream()
        taken.say("hmm")
        taken.yield_raw(Delta("", "recast"))
        taken.answer("yes")
        body = json.loads(whole.read_until(b'"usage"').partition(b"\r\n\r\n")[2])
        whole.close()
        assert body["choices"][0]["message"]["content"] == "yes"
        assert body["choices"][0]["message"]["reasoning_content"] == "hmm"
