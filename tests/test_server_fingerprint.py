"""What is known of who answers at a server, and when it isn't."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llm.errors import LLMError
from llm.going_on import body_of
from llm.model_list import ModelInfo, read_model_list
from llm.patient_backend import PatientBackend
from llm.server_fingerprint import AGAIN_S, FRESH_S, RENEW_S, WANTED_S
from llm.types import CancelToken, Delta, Fingerprint, Finish, GenerationRequest, Message
from llm.vllm_backend import VllmBackend
from tests.driven_backend import ManualClock
from tests.protocol_server import (
    MODEL,
    Exchange,
    Handler,
    ProtocolServer,
    chunk,
    refusing,
    sending,
    usage_chunk,
)

HI = GenerationRequest((Message("user", "hi"),))
SYSTEM = "vllm-0.32.0-12345678"
CARD = {
    "id": MODEL,
    "root": "/models/tiny",
    "parent": None,
    "max_model_len": 2048,
    "owned_by": "vllm",
    "created": 1,
    "permission": [{"id": "modelperm-1", "created": 1}],
}


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        like_vllm(running)
        yield running


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def make(clock: ManualClock) -> Iterator[Callable[..., VllmBackend]]:
    made: list[VllmBackend] = []

    def one(of: ProtocolServer, **options: Any) -> VllmBackend:
        made.append(VllmBackend(options.pop("url", of.url), **options))
        made[-1]._fingerprints._clock = clock
        return made[-1]

    yield one
    for backend in made:
        backend.close()


@pytest.fixture
def backend(server: ProtocolServer, make: Callable[..., VllmBackend]) -> VllmBackend:
    return make(server)


def like_vllm(
    server: ProtocolServer,
    *,
    version: str = "0.32.0",
    system: str | None = SYSTEM,
    tokenize: Handler | None = None,
    **card: object,
) -> None:
    """Have it tell of itself what vLLM does; `system` None is vLLM's `--fingerprint-mode none`."""
    server.models_handler = listing({**CARD, **card})
    server.version_handler = refusing(200, {"version": version})
    server.tokenize_handler = tokenize or tokens_of(template="<{}>")
    told = {} if system is None else {"system_fingerprint": system}
    stream = sending(chunk({"content": "Hello"}), chunk({}, "stop"), {**usage_chunk(3, 1), **told})

    async def chat(exchange: Exchange) -> None:
        if exchange.body.get("stream"):
            await stream(exchange)
        else:
            await exchange.answer(200, {"choices": [], **told})

    server.when("", chat)


def listing(*cards: dict[str, object]) -> Handler:
    return refusing(200, {"object": "list", "data": list(cards)})


def tokens_of(template: str, *, system_role: bool = True) -> Handler:
    """vLLM's `/tokenize`, a token a character."""

    async def handler(exchange: Exchange) -> None:
        messages = exchange.body["messages"]
        if not system_role and messages[0]["role"] == "system":
            await exchange.answer(400, {"error": {"message": "System role not supported"}})
            return
        text = "".join(template.format(m["role"] + m["content"]) for m in messages)
        tokens = [ord(char) for char in text]
        await exchange.answer(200, {"count": len(tokens), "tokens": tokens})

    return handler


def known(backend: VllmBackend | PatientBackend, model: str = "") -> Fingerprint:
    request = GenerationRequest(HI.messages, model=model)
    assert wait_for(lambda: backend.fingerprint(request) is not None)
    told = backend.fingerprint(request)
    assert told is not None
    return told


def wait_for(condition: Callable[[], object], timeout_s: float = 20.0) -> bool:
    """Wait for another thread's doing that has no event to wait on."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.005)
    return True


def answered(backend: VllmBackend | PatientBackend) -> Finish:
    finish = list(backend.stream(HI, CancelToken()))[-1]
    assert isinstance(finish, Finish)
    return finish


def paths(server: ProtocolServer) -> list[str]:
    return [lookup.path for lookup in server.lookups]


def learned_anew(backend: VllmBackend, clock: ManualClock) -> Fingerprint:
    clock.advance(FRESH_S)
    assert backend.fingerprint(HI) is None
    return known(backend)


# What is in it.


def test_all_that_a_server_tells_is_in_it(backend: VllmBackend, server: ProtocolServer) -> None:
    told = known(backend)
    assert (told.kind, told.server, told.model) == ("vllm", server.url, MODEL)
    assert "0.32.0" in told.numerics
    assert SYSTEM in told.numerics
    assert told.template


@pytest.mark.parametrize(
    "change",
    [
        {"root": "/models/other"},
        {"max_model_len": 4096},
        {"owned_by": "somebody"},
        {"parent": "base"},
        {"meta": {"size": 5, "n_params": 7}},
        {"version": "0.33.0"},
        {"system": "vllm-0.32.0-87654321"},
        {"system": None},
        {"tokenize": tokens_of(template="<<{}>>")},
        {"tokenize": tokens_of(template="<{}>", system_role=False)},
        {"tokenize": refusing(404, {})},
    ],
    ids=lambda change: "-".join(change),
)
def test_each_of_it_makes_another_fingerprint(
    server: ProtocolServer, make: Callable[..., VllmBackend], change: dict[str, Any]
) -> None:
    before = known(make(server))
    like_vllm(server, **change)
    assert known(make(server)) != before


def test_what_is_new_at_each_look_changes_nothing(
    server: ProtocolServer, make: Callable[..., VllmBackend]
) -> None:
    before = known(make(server))
    like_vllm(server, created=2, permission=[{"id": "modelperm-2", "created": 2}])
    assert known(make(server)) == before


def test_an_adapter_stands_on_its_base() -> None:
    adapter = {"id": "lora", "root": "/loras/a", "parent": MODEL}

    def identity(*cards: dict[str, Any]) -> str:
        models = read_model_list({"data": list(cards)})
        assert models is not None
        return models[0].identity

    alone = identity(adapter, CARD)
    assert alone == identity(adapter, {**CARD, "created": 9})
    assert alone != identity(adapter, {**CARD, "root": "/models/other"})
    assert alone != identity({**adapter, "root": "/loras/b"}, CARD)
    assert alone != identity(CARD)
    assert identity({**adapter, "parent": "lora"})  # its own parent: no endless walk


@pytest.mark.parametrize("odd", [10**400, float("nan"), [[]], {"a": 1}, "half \ud83d", None, True])
def test_a_card_of_any_shape_is_read(odd: object) -> None:
    card: dict[str, object] = {"id": "m", "root": odd, "parent": odd, "meta": odd}
    assert read_model_list({"data": [card]}) == (ModelInfo("m"),)


def test_each_model_of_a_server_has_its_own(server: ProtocolServer, backend: VllmBackend) -> None:
    server.models_handler = listing(CARD, {**CARD, "id": "second"})
    assert known(backend).model == MODEL
    assert known(backend, "second") == known(backend, "second")
    assert known(backend, "second").model == "second"
    assert known(backend, "second").revision != known(backend).revision


def test_nothing_secret_is_in_it(server: ProtocolServer, make: Callable[..., VllmBackend]) -> None:
    plain = known(make(server))
    server.key = "sk-very-secret"
    keyed = known(make(server, api_key="sk-very-secret"))
    assert keyed == plain
    server.key = None
    url = server.url.replace("://", "://me:w%2Frd-secret@")
    told = known(make(server, url=url))
    assert told == plain
    for secret in ("me:", "w%2Frd", "w/rd", "secret"):
        assert secret not in repr(told)
        assert secret not in repr(keyed)


# What a server doesn't tell.


@pytest.mark.parametrize(
    "handler",
    [
        None,
        refusing(401, {}),
        refusing(307, {}, location="/login"),
        refusing(422, {"detail": []}),
        refusing(200, {"tokens": []}),
        refusing(200, {"tokens": ["a"]}),
        refusing(200, "<html>"),
    ],
)
def test_without_tokenize_the_template_is_empty(
    server: ProtocolServer, backend: VllmBackend, handler: Handler | None
) -> None:
    server.tokenize_handler = handler
    assert known(backend).template == ""
    assert answered(backend).fingerprint == known(backend)


def test_a_server_that_tells_no_version_is_asked_for_no_answer(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    server.version_handler = None
    assert known(backend)
    assert server.exchanges == []


def test_what_an_answer_tells_of_the_server_is_remembered(
    server: ProtocolServer, backend: VllmBackend, clock: ManualClock
) -> None:
    server.version_handler = None
    assert SYSTEM not in known(backend).numerics
    assert answered(backend).fingerprint is None, "it wasn't known before"
    assert SYSTEM in known(backend).numerics
    assert answered(backend).fingerprint == known(backend)
    assert SYSTEM in learned_anew(backend, clock).numerics


@pytest.mark.parametrize("route", ["version_handler", "tokenize_handler"])
def test_while_a_server_fails_nothing_is_known(
    server: ProtocolServer, backend: VllmBackend, clock: ManualClock, route: str
) -> None:
    before = known(backend)
    assert wait_for(lambda: not _learning(backend))
    works = getattr(server, route)
    setattr(server, route, refusing(500, {}))
    clock.advance(FRESH_S)
    tried = len(server.lookups)
    assert backend.fingerprint(HI) is None
    assert wait_for(lambda: len(server.lookups) > tried and not _learning(backend))
    assert backend.fingerprint(HI) is None
    assert not _learning(backend), "it was asked again at once"
    setattr(server, route, works)
    clock.advance(AGAIN_S)
    assert known(backend) == before


def _learning(backend: VllmBackend) -> bool:
    return bool(backend._fingerprints._under_way)


def test_a_model_that_the_server_does_not_list_has_none(
    server: ProtocolServer, make: Callable[..., VllmBackend]
) -> None:
    backend = make(server, model="unlisted")
    assert wait_for(lambda: backend.status().ready)
    assert backend.fingerprint(HI) is None
    assert answered(backend).fingerprint is None
    assert "/version" not in paths(server)


# When it is learned.


def test_it_is_learned_when_the_server_gets_ready(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    backend.prepare()
    assert wait_for(lambda: len(server.exchanges) == 1 and not _learning(backend))
    assert wait_for(lambda: backend._fingerprints.of(MODEL) is not None)
    assert paths(server) == ["/v1/models", "/version", *["/tokenize"] * 3]
    assert server.exchanges[0].body["max_tokens"] == 1
    assert backend.fingerprint(HI) is not None


def test_it_is_renewed_before_it_is_old(
    server: ProtocolServer, backend: VllmBackend, clock: ManualClock
) -> None:
    before = known(backend)
    like_vllm(server, version="0.33.0")
    clock.advance(RENEW_S - 1)
    assert backend.fingerprint(HI) == before
    assert paths(server).count("/version") == 1
    clock.advance(1)
    assert backend.fingerprint(HI) == before, "what is known counts meanwhile"
    assert wait_for(lambda: backend.fingerprint(HI) != before)
    assert "0.33.0" in known(backend).numerics


def test_it_does_not_count_when_it_is_old(
    server: ProtocolServer, backend: VllmBackend, clock: ManualClock
) -> None:
    before = known(backend)
    clock.advance(FRESH_S)
    server.version_handler = refusing(500, {})
    assert backend.fingerprint(HI) is None
    assert answered(backend).fingerprint is None
    server.version_handler = refusing(200, {"version": "0.32.0"})
    clock.advance(AGAIN_S)
    assert known(backend) == before


def test_it_is_renewed_for_a_day_after_somebody_wanted_to_know_it(
    server: ProtocolServer, backend: VllmBackend, clock: ManualClock
) -> None:
    def looked_up() -> None:
        backend._probed(MODEL, None)  # as after each look whether the server is there
        assert wait_for(lambda: not _learning(backend))

    backend.prepare()
    assert wait_for(lambda: backend._fingerprints.of(MODEL) is not None and not _learning(backend))
    for _ in range(3):
        clock.advance(RENEW_S)
        looked_up()
    assert len(server.exchanges) == 1, "nobody has asked"
    known(backend)  # too old: learned once more
    assert wait_for(lambda: not _learning(backend))
    learned = len(server.exchanges)
    for times in range(1, 4):
        clock.advance(RENEW_S)
        looked_up()
        assert len(server.exchanges) == learned + times
        assert backend._fingerprints.of(MODEL) is not None
    clock.advance(WANTED_S)
    looked_up()
    assert len(server.exchanges) == learned + 3


# A server that was started again.


def test_after_an_outage_it_is_learned_anew(
    server: ProtocolServer, backend: VllmBackend, clock: ManualClock
) -> None:
    before = known(backend)
    server.stop()
    with pytest.raises(LLMError):
        answered(backend)
    assert backend.fingerprint(HI) is None
    with another_at(server) as again:
        like_vllm(again, root="/models/other")
        clock.advance(AGAIN_S)
        backend.prepare()
        after = known(backend)
        assert after.revision != before.revision
        assert answered(backend).fingerprint == after


def another_at(server: ProtocolServer) -> ProtocolServer:
    again = ProtocolServer()
    again.port = server.port
    return again


def test_a_server_that_falls_over_while_it_answers_is_not_known_any_more(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    known(backend)

    async def falls(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("half")
        exchange.cut()

    server.when("hi", falls)
    with pytest.raises(LLMError):
        answered(backend)
    assert backend._fingerprints.of(MODEL) is None


def test_a_server_that_is_only_busy_is_the_same(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    before = known(backend)
    server.when("hi", refusing(429, {}))
    with pytest.raises(LLMError):
        answered(backend)
    like_vllm(server)
    assert answered(backend).fingerprint == before


def test_another_list_of_models_counts_at_once(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    known(backend)
    like_vllm(server, root="/models/other")
    models = read_model_list({"data": [{**CARD, "root": "/models/other"}]})
    assert models is not None
    backend._state.lists(models)  # as the next probe does
    assert backend._fingerprints.of(MODEL) is None


def test_an_answer_that_tells_of_another_server_is_nobodys(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    """It was started again, and nobody saw it go."""
    before = known(backend)
    like_vllm(server, system="vllm-0.32.0-87654321", tokenize=tokens_of("[{}]"))
    assert backend.fingerprint(HI) == before
    assert answered(backend).fingerprint is None
    after = known(backend)
    assert "87654321" in after.numerics
    assert after.template != before.template
    assert answered(backend).fingerprint == after


def test_an_answer_that_tells_of_another_server_outdates_what_is_being_learned(
    server: ProtocolServer, backend: VllmBackend, clock: ManualClock
) -> None:
    before = known(backend)
    assert wait_for(lambda: not _learning(backend))
    asked, go_on = threading.Event(), threading.Event()
    tokens = tokens_of("<{}>")

    async def waits(exchange: Exchange) -> None:
        asked.set()
        while not go_on.is_set():
            await asyncio.sleep(0.005)
        await tokens(exchange)

    server.tokenize_handler = waits
    clock.advance(RENEW_S)
    assert backend.fingerprint(HI) == before
    assert asked.wait(20)
    prints = backend._fingerprints
    assert prints.confirmed(before, MODEL, "vllm-0.32.0-87654321") is None
    go_on.set()
    assert wait_for(lambda: not _learning(backend))
    assert prints.of(MODEL) is None, "the server may have been the old one still"
    like_vllm(server, system="vllm-0.32.0-87654321")
    assert "87654321" in known(backend).numerics


def test_what_changes_while_an_answer_is_given_makes_it_nobodys(
    server: ProtocolServer, backend: VllmBackend
) -> None:
    known(backend)
    go_on = threading.Event()

    async def waits(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("half")
        while not go_on.is_set():
            await asyncio.sleep(0.005)
        await exchange.say(None, finish="stop")
        await exchange.end()

    server.when("hi", waits)
    stream = backend.stream(HI, CancelToken())
    assert next(stream) == Delta("half")
    backend._state.breaks()  # as another answer's end would have it
    go_on.set()
    finish = list(stream)[-1]
    assert isinstance(finish, Finish)
    assert (finish.reason, finish.fingerprint) == ("stop", None)


# Several servers.


def test_where_another_server_answers_it_tells_its_own(
    server: ProtocolServer, make: Callable[..., VllmBackend]
) -> None:
    with ProtocolServer() as next_one:
        like_vllm(next_one, root="/models/other")
        first, second = make(server, server="one"), make(next_one, server="two")
        patient = PatientBackend(first, [second])
        expected = known(patient)
        assert expected == known(first)
        assert answered(patient).fingerprint == expected
        theirs = known(second)
        server.stop()
        told = answered(patient).fingerprint
        assert told == theirs
        assert told != expected
        assert patient.fingerprint(HI) is None


def test_the_fixed_conversations_are_whole_ones() -> None:
    from llm.server_fingerprint import _PROBES

    for probe in _PROBES:
        messages = tuple(Message(m["role"], m["content"]) for m in probe)  # type: ignore[arg-type]
        assert body_of(GenerationRequest(messages)) == {"messages": probe}
