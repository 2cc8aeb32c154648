"""`/stream`: named events, and an answer that outlives its client and is taken up where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.following import MAX_PIECE_CHARS, Position, news
from api.open_streams import OpenStreams
from llm.job import Snapshot
from llm.registry import JobRegistry
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import Delta
from tests.api_server import (
    BEARER,
    PATIENCE_S,
    ApiServer,
    RawStream,
    chat,
    events,
    limits,
    serving,
    wait_until,
)
from tests.driven_backend import DrivenBackend

EVENTS = {**BEARER, "Accept": "text/event-stream"}


@pytest.fixture
def driven() -> Iterator[DrivenBackend]:
    with DrivenBackend() as backend:
        yield backend


def begin(server: ApiServer, question: str = "q") -> str:
    """Ask; returns where the answer is."""
    reply = server.http.post("/stream", json=chat(question), headers=BEARER)
    assert reply.status_code == 201
    path: str = reply.json()["stream"]
    assert reply.headers["Location"] == path
    return path


def follow(server: ApiServer, path: str, last_event_id: str = "") -> RawStream:
    return RawStream(server, path, headers={"Last-Event-ID": last_event_id})


def told(received: bytes) -> list[tuple[str, str, Any]]:
    """Name, id and data of each event of a reply as it came over the socket."""
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"text/event-stream" in head
    plain, rest = b"", body
    while rest:  # HTTP's chunks
        size, _, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16)
        plain, rest = plain + rest[:length], rest[length + 2 :]
    return [
        (each["event"], each["id"], json.loads(each["data"]))
        for each in events(plain.decode())
        if "data" in each
    ]


def said(received: bytes, kind: str = "text") -> str:
    return "".join(data["text"] for name, _, data in told(received) if name == kind)


def last_id(received: bytes) -> str:
    return told(received)[-1][1]


def test_who_accepts_events_is_sent_them_at_once() -> None:
    script = Script("Yes 你好", reasoning="hm", tokens_per_s=0)
    with serving(ScriptedBackend(script)) as server:
        reply = server.http.post(
            "/stream", json={"messages": chat("q")["messages"]}, headers=EVENTS
        )
    assert reply.headers["X-Accel-Buffering"] == "no"
    assert "retry: " in reply.text
    named = [(each["event"], json.loads(each["data"])) for each in events(reply.text)]
    assert [name for name, _ in named] == ["connected", "reasoning", "text", "usage", "done"]
    assert named[0][1]["model"] == "scripted", "the first there is"
    assert (named[1][1], named[2][1]) == ({"text": "hm"}, {"text": "Yes 你好"})
    assert named[3][1]["total_tokens"] > 0
    assert named[4][1] == {"finish_reason": "stop", "model": "scripted", "cached": False}


def test_who_lost_the_connection_goes_on_exactly_there(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        path = begin(server)
        first = follow(server, path)
        taken = driven.next_stream()
        taken.say("thought", "reasoning")
        taken.say("one ")
        taken.say("two 你")
        first.read_until("你".encode())
        first.read_until(b"\r\n\r\n")
        place = last_id(first.received)
        first.close()
        taken.say("好 🙂 three ")  # nobody is there
        second = follow(server, path, place)
        second.read_until(b"three")
        taken.answer("four")
        second.read_until(b'"finish_reason"')
        assert said(first.received, "reasoning") == "thought"
        assert said(second.received, "reasoning") == ""
        assert said(first.received) + said(second.received) == "one two 你好 🙂 three four"
        # From the beginning, for who has nothing yet; and there is no more for who has all.
        third = follow(server, path)
        third.read_until(b'"finish_reason"')
        assert said(third.received) == "one two 你好 🙂 three four"
        end = last_id(third.received)
        assert end.endswith("-end")
        reply = server.http.get(path, headers={"Last-Event-ID": end})
        assert reply.status_code == 204
        for stream in (second, third):
            stream.close()


def test_two_may_follow_the_same_answer(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        path = begin(server)
        both = [follow(server, path) for _ in range(2)]
        driven.next_stream().answer("for both")
        for stream in both:
            stream.read_until(b'"finish_reason"')
            assert said(stream.received) == "for both"
            stream.close()


def test_who_goes_and_doesnt_come_back_has_stopped_it(driven: DrivenBackend) -> None:
    with serving(driven, limits=limits(grace_s=0.2)) as server:
        stream = RawStream(server, "/stream", chat("q"), headers=EVENTS)
        taken = driven.next_stream()
        path = told(stream.read_until(b"created"))[0][2]["stream"]
        assert not taken.cancel.wait(0.5), "somebody follows it"
        stream.close()
        assert taken.cancel.wait(PATIENCE_S)
        wait_until(lambda: server.http.get(path).status_code == 404)
        assert server.http.get(path).json()["error"]["code"] == "stream_not_found"


def test_an_answer_that_nobody_ever_follows_is_stopped_too(driven: DrivenBackend) -> None:
    registry = JobRegistry()
    with serving(driven, registry=registry, limits=limits(grace_s=0.1)) as server:
        begin(server)
        # On a busy machine that may be before the backend was asked.
        wait_until(lambda: not registry.running(), "the end")


def test_delete_stops_it(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        path = begin(server)
        taken = driven.next_stream()
        assert server.http.delete(path).status_code == 204
        assert taken.cancel.wait(PATIENCE_S)
        assert server.http.delete(path).status_code == 404


def test_an_error_is_an_event_and_the_end(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        path = begin(server)
        stream = follow(server, path)
        taken = driven.next_stream()
        taken.say("half")
        taken.raise_(RuntimeError("secret"))
        stream.read_until(b"internal_error")
        name, place, data = told(stream.read_until(b"-end"))[-1]
        assert (name, data["error"]["code"]) == ("error", "internal_error")
        assert b"secret" not in stream.received
        assert server.http.get(path, headers={"Last-Event-ID": place}).status_code == 204
        stream.close()


def test_what_was_text_at_first_is_taken_back(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        path = begin(server)
        stream = follow(server, path)
        taken = driven.next_stream()
        taken.say("hmm")
        stream.read_until(b"hmm")
        before = "0-0-3"
        taken.yield_raw(Delta("", "recast"))
        taken.say("yes")
        stream.read_until(b"yes")
        taken.finish()
        names = [name for name, _, _ in told(stream.read_until(b'"finish_reason"'))]
        assert names == ["connected", "text", "recast", "text", "done"]
        # The same for who was away meanwhile, and for who comes only now.
        again = follow(server, path, before)
        again.read_until(b'"finish_reason"')
        assert [name for name, _, _ in told(again.received)] == [
            "connected",
            "recast",
            "text",
            "done",
        ]
        late = follow(server, path)
        late.read_until(b'"finish_reason"')
        assert (said(late.received, "reasoning"), said(late.received)) == ("hmm", "yes")
        for each in (stream, again, late):
            each.close()


@pytest.mark.parametrize(
    "place",
    [
        *("x", "0-1", "2-0-0", "0--1-0", "0-0-0-END", "9" * 50),
        # None of this answer's, which has no word yet: else its words would be passed over.
        *("0-0-1", "0-1-0", "1-0-0", "0-0-999999999999-end"),
    ],
)
def test_an_id_that_is_none_is_refused(driven: DrivenBackend, place: str) -> None:
    with serving(driven) as server:
        reply = server.http.get(begin(server), headers={"Last-Event-ID": place})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_event_id")


def test_who_asks_only_for_the_head_isnt_kept_waiting_for_the_answer(driven: DrivenBackend) -> None:
    with serving(driven) as server:
        path = begin(server)
        reply = server.http.head(path)
        assert (reply.status_code, reply.content) == (200, b"")
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        assert server.http.delete(path, timeout=60).status_code == 204  # by the same connection


def test_there_are_only_so_many(driven: DrivenBackend) -> None:
    with serving(driven, streams=OpenStreams(most=1)) as server:
        path = begin(server)
        reply = server.http.post("/stream", json=chat("q"), headers=BEARER)
        assert (reply.status_code, reply.json()["error"]["code"]) == (429, "too_many_streams")
        server.http.delete(path)
        begin(server)


def test_a_server_that_stops_tells_and_waits_for_nobody(driven: DrivenBackend) -> None:
    registry = JobRegistry()
    with serving(driven, registry=registry) as server:
        stream = follow(server, begin(server))
        stream.read_until(b"connected")
        server.stop()
        stream.read_until(b"shutting_down")
        stream.close()
        wait_until(lambda: registry.running() == 0)


def test_what_is_new_is_told_in_pieces_that_make_the_whole() -> None:
    long = "ab🙂" * MAX_PIECE_CHARS
    at = Position(2, 5)
    pieces = news(Snapshot(text=long, reasoning="thought"), at)
    assert [piece.kind for piece in pieces] == ["reasoning", *["text"] * 3]
    assert "".join(piece.text for piece in pieces if piece.kind == "text") == long[5:]
    assert pieces[0].text == "ought"
    assert all(len(piece.text) <= MAX_PIECE_CHARS for piece in pieces)
    assert pieces[-1].at == Position(7, len(long))
    assert news(Snapshot(text=long, reasoning="thought"), pieces[-1].at) == ()


def test_a_position_is_one_of_the_answers_or_none() -> None:
    plain = Snapshot(text="yes", reasoning="hmm")
    for at in (Position(), Position(3, 0), Position(3, 3), Position(3, 3, end=True)):
        assert at.is_in(plain)
    for at in (Position(4, 0), Position(0, 4), Position(3, 3, recast=True)):
        assert not at.is_in(plain)
    recast = Snapshot(text="yes", reasoning="hmm", recast=True)
    for at in (Position(0, 3), Position(1, 2), Position(3, 3, recast=True)):
        assert at.is_in(recast)
    for at in (Position(1, 3), Position(3, 4, recast=True)):
        assert not at.is_in(recast)


def test_a_position_is_read_as_it_was_written() -> None:
    for at in (Position(), Position(3, 4, recast=True), Position(1, 2, end=True)):
        assert Position.read(str(at)) == at
