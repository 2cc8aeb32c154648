"""Servers that go on with an answer that was cut, each as it can."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llm.errors import ConnectionLostError, NotAllowedError
from llm.types import CancelToken, Delta, Finish, GenerationRequest, Message, SamplingParams
from llm.vllm_backend import VllmBackend
from tests.protocol_server import MODEL, Exchange, Handler, ProtocolServer, refusing, saying

START = "Once upon a time, 很久以前, there "
NEW = "was a lighthouse. 🙂"
GO_ON = {"add_generation_prompt": False, "continue_final_message": True}
THINKS = "Assistant response prefill is incompatible with enable_thinking."


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def backend(server: ProtocolServer) -> Iterator[VllmBackend]:
    made = VllmBackend(server.url, model=MODEL)
    yield made
    made.close()


def go_on(text: str = START, **params: object) -> GenerationRequest:
    messages = (Message("user", "Tell me a story."), Message("assistant", text))
    return GenerationRequest(messages, SamplingParams(**params))  # type: ignore[arg-type]


def said(backend: VllmBackend, request: GenerationRequest) -> tuple[str, str]:
    """The text and the reasoning."""
    *deltas, finish = backend.stream(request, CancelToken())
    assert isinstance(finish, Finish)
    told = {"text": "", "reasoning": ""}
    for delta in deltas:
        assert isinstance(delta, Delta)
        told[delta.kind] += delta.text
    return told["text"], told["reasoning"]


def refusing_to_go_on(status: int, words: str, then: Handler) -> Handler:
    """A server that doesn't know the fields, and says all there are of them in its words."""

    async def handler(exchange: Exchange) -> None:
        named = {name for name in GO_ON if name in exchange.body}
        refusal = refusing(status, {"detail": words.format(named)})
        await (refusal if named else then)(exchange)

    return handler


def test_the_server_is_told_to_go_on(server: ProtocolServer, backend: VllmBackend) -> None:
    server.when("story", saying([START, NEW]))
    assert said(backend, go_on()) == (NEW, "")
    body = server.exchange().body
    assert {name: body[name] for name in GO_ON} == GO_ON
    assert body["messages"][-1] == {"role": "assistant", "content": START}


def test_a_question_is_not_gone_on_with(server: ProtocolServer, backend: VllmBackend) -> None:
    said(backend, GenerationRequest((Message("assistant", "Hi."), Message("user", "story"))))
    assert not set(server.exchange().body) & set(GO_ON)


def test_tokens_are_counted_with_the_text_that_is_gone_on_with(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.tokenize_handler = refusing(200, {"count": 321})
    assert backend.count_tokens(go_on(), CancelToken()) == 321
    (lookup,) = [x for x in server.lookups if x.path == "/tokenize"]
    assert {name: lookup.body[name] for name in GO_ON} == GO_ON
    assert lookup.body["messages"][-1] == {"role": "assistant", "content": START}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (422, "Unexpected fields in the request: {}"),
        (400, "Unrecognized request argument supplied: continue_final_message"),
        (400, "add_generation_prompt: Extra inputs are not permitted"),
    ],
)
def test_a_server_that_refuses_the_fields_is_asked_without_and_that_is_remembered(
    server: ProtocolServer, backend: VllmBackend, status: int, words: str
) -> None:
    server.when("story", refusing_to_go_on(status, words, saying([NEW])))
    assert said(backend, go_on()) == (NEW, "")
    assert said(backend, go_on()) == (NEW, "")
    sent = [set(exchange.body) & set(GO_ON) for exchange in server.exchanges]
    assert sent == [set(GO_ON), set(), set()]


def test_a_server_that_answers_anew_may_think_anew(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    anew = saying([f"<think>hm</think>{START}", NEW])
    server.when("story", refusing_to_go_on(422, "Unexpected fields in the request: {}", anew))
    assert said(backend, go_on()) == (NEW, "hm")


@pytest.mark.parametrize("new", ["<think>", "a\n</think>\nb", "<"])
def test_what_a_server_goes_on_with_is_text_tags_and_all(
    server: ProtocolServer, backend: VllmBackend, new: str
) -> None:
    server.when("story", saying([START, *new, " and so on"]))
    assert said(backend, go_on()) == (f"{new} and so on", "")


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_text_that_is_given_back_first_is_not_doubled(
    server: ProtocolServer, backend: VllmBackend, size: int
) -> None:
    async def gives_back(exchange: Exchange) -> None:
        del exchange.body["continue_final_message"]  # it says all of it, that is
        exchange.body.pop("stop", None)
        text = START + NEW
        await saying([text[at : at + size] for at in range(0, len(text), size)])(exchange)

    server.when("story", gives_back)
    assert said(backend, go_on()) == (NEW, "")
    assert said(backend, go_on(stop=("Once", "house"))) == ("was a light", "")


def counting(trims: bool) -> Handler:
    """vLLM's `/tokenize`, a token a character, with a template that trims messages or doesn't."""

    async def handler(exchange: Exchange) -> None:
        texts = [message["content"] for message in exchange.body["messages"]]
        count = sum(len(text.strip() if trims else text) for text in texts)
        await exchange.answer(200, {"count": count})

    return handler


@pytest.mark.parametrize(
    ("again", "new"),
    [
        (["\n", "\n", "It"], "It"),
        (["\n\n  It"], "  It"),
        (["\nIt"], "It"),
        ([" It"], " It"),
        (["It"], "It"),
        (["\n\n", "\n"], "\n"),
    ],
)
def test_white_space_that_a_template_trimmed_is_not_doubled(
    server: ProtocolServer, backend: VllmBackend, again: list[str], new: str
) -> None:
    async def goes_on(exchange: Exchange) -> None:
        del exchange.body["continue_final_message"]  # what it says is after the trimmed text
        await saying(again)(exchange)

    server.when("story", goes_on)
    start = f"{START}was:\n\n"
    server.tokenize_handler = counting(trims=True)
    assert said(backend, go_on(start)) == (new, "")
    assert said(backend, go_on(start)) == (new, "")
    assert [x.path for x in server.lookups].count("/tokenize") == 2, "it was not remembered"
    other = VllmBackend(server.url, model=MODEL)
    server.tokenize_handler = counting(trims=False)
    try:
        assert said(other, go_on(start)) == ("".join(again), "")
    finally:
        other.close()


@pytest.mark.parametrize("handler", [None, refusing(500, {}), refusing(400, {"message": "what?"})])
def test_where_tokens_cant_be_counted_white_space_is_as_it_comes(
    server: ProtocolServer, backend: VllmBackend, handler: Handler | None
) -> None:
    server.tokenize_handler = handler
    server.when("story", saying([START, NEW]))
    assert START.endswith(" ")
    assert said(backend, go_on()) == (NEW, "")


def test_what_was_held_back_is_said_before_a_failure(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def dies(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("Once ")
        exchange.cut()

    server.when("story", dies)
    items: list[object] = []
    with pytest.raises(ConnectionLostError):
        items.extend(backend.stream(go_on(), CancelToken()))
    assert items == [Delta("Once ")]


def test_llama_cpp_is_asked_not_to_think_where_it_else_will_not_go_on(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    async def llama_cpp(exchange: Exchange) -> None:
        kwargs = exchange.body.get("chat_template_kwargs", {})
        willing = kwargs.get("enable_thinking") is False
        refusal = refusing(400, {"error": {"code": 400, "message": THINKS}})
        await (saying([START, NEW]) if willing else refusal)(exchange)

    server.when("story", llama_cpp)
    assert said(backend, go_on()) == (NEW, "")
    assert len(server.exchanges) == 2


def test_a_server_that_will_not_go_on_says_so(server: ProtocolServer, backend: VllmBackend) -> None:
    server.when("story", refusing(400, {"error": {"message": THINKS}}))
    with pytest.raises(NotAllowedError):
        said(backend, go_on())
    assert len(server.exchanges) == 2
