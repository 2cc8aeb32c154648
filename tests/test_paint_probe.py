"""The route that hears the browser's reports: what is wrong changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ui import paint_probe
from ui.paint_probe import MAX_BODY_BYTES, MOST_A_SECOND, PATH, paint_route

TOKEN = "a-token-nobody-guesses"


@pytest.fixture
def session() -> Iterator[paint_probe.Session]:
    """A browser session that has drawn a frame, so that a report counts."""
    st.cache_resource.clear()
    session = paint_probe.Session()
    paint_probe.sessions()[TOKEN] = session
    session.screen.meter.frame_drawn(100.0)
    yield session
    st.cache_resource.clear()


@pytest.fixture
def client(session: paint_probe.Session) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=[paint_route()])) as client:
        yield client


def report(token: str = TOKEN, busy_ms: object = 400, **told: object) -> bytes:
    return json.dumps({"token": token, "busy_ms": busy_ms, **told}).encode()


def test_a_report_makes_the_screen_as_slow_as_it_says(
    client: TestClient, session: paint_probe.Session
) -> None:
    assert client.post(PATH, content=report(busy_ms=400)).status_code == 204
    assert session.screen.meter.slowness > 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"not json", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"null", 400),
        (json.dumps({"busy_ms": 400}).encode(), 400),
        (report(stamp=-1), 400),
        (report(stamp=10**400), 400),
        (report(stamp="x"), 400),
        (report(stamp=[]), 400),
        (report(freeze_ms=-1), 400),
        (report(freeze_ms=1e12), 400),
        (report(blocked_ms=float("nan")), 400),
        (report(inp_ms={}), 400),
        (report(busy_ms="much"), 400),
        (report(busy_ms=None), 400),
        (report(busy_ms=[]), 400),
        (report(busy_ms=-1), 400),
        (report(busy_ms=float("nan")), 400),
        (report(busy_ms=float("inf")), 400),
        (report(busy_ms=10**400), 400),
        (report(busy_ms=1e12), 400),
        (b"\xff\xfe", 400),
        (report(token="guessed"), 403),
        (report(token=""), 403),
        (report() + b" " * MAX_BODY_BYTES, 413),
        (b"[" * MAX_BODY_BYTES, 400),
    ],
)
def test_what_is_not_a_report_changes_nothing(
    client: TestClient, session: paint_probe.Session, body: bytes, status: int
) -> None:
    assert client.post(PATH, content=body).status_code == status
    assert session.screen.meter.slowness == 1


def test_an_endless_body_is_not_read_to_its_end(
    client: TestClient, session: paint_probe.Session
) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1000:
            sent += 1
            yield b"x" * 512

    assert client.post(PATH, content=endless()).status_code == 413
    assert session.screen.meter.slowness == 1


def test_reports_that_come_too_fast_are_dropped(
    client: TestClient, session: paint_probe.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paint_probe, "now_s", lambda: 1000.0)
    for _ in range(MOST_A_SECOND):
        client.post(PATH, content=report())
    first = session.screen.meter.slowness
    for _ in range(20):
        session.screen.meter.frame_drawn(1.0)
        assert client.post(PATH, content=report(busy_ms=40_000)).status_code == 204
    assert session.screen.meter.slowness == first


def test_a_report_says_what_was_painted_and_how_it_went(
    client: TestClient, session: paint_probe.Session
) -> None:
    screen = session.screen
    screen.follow("turn")
    screen.frame(10)
    stamp = screen.credit.sent(10)
    client.post(PATH, content=report(stamp=stamp))
    told = {"stamp": stamp, "freeze_ms": 120, "inp_ms": 48, "blocked_ms": 70, "hidden": True}
    assert client.post(PATH, content=report(**told)).status_code == 204
    assert screen.credit.is_painted()
    assert screen.credit.hidden
    told |= {"freeze_ms": 20, "inp_ms": 0, "hidden": False}
    client.post(PATH, content=report(**told))
    figures = screen.figures("turn")
    assert (figures.longest_freeze_ms, figures.inp_ms, figures.blocked_ms) == (120, 48, 140)
    assert not screen.credit.hidden


def test_only_posting_is_possible(client: TestClient, session: paint_probe.Session) -> None:
    assert client.get(PATH).status_code == 405


def test_a_session_that_is_gone_is_not_known_any_more(client: TestClient) -> None:
    short = paint_probe.Session()
    paint_probe.sessions()["short"] = short
    del short
    assert client.post(PATH, content=report(token="short")).status_code == 403
