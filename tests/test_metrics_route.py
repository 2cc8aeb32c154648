"""`/metrics` is there for who has the token, and for nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from llm.answer_figures import AnswerFigures
from ui import resources
from ui.metrics_route import PATH, metrics_route

TOKEN = "s3cret-tøken"
VARIABLE = "STEADY_CHAT_METRICS_TOKEN"


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEADY_CHAT_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=[metrics_route()])) as client:
        yield client


def bearer(token: str) -> dict[str, bytes]:
    return {"Authorization": f"Bearer {token}".encode()}


@pytest.mark.parametrize("setting", [None, ""])
def test_it_isnt_there_unless_it_is_switched_on(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, setting: str | None
) -> None:
    if setting is not None:
        monkeypatch.setenv(VARIABLE, setting)
    for headers in ({}, bearer(""), bearer("None"), bearer("**********")):
        assert client.get(PATH, headers=headers).status_code == 404


def test_it_isnt_there_while_the_settings_cant_be_used(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    monkeypatch.setenv("STEADY_CHAT_TEMPERATURE", "hot")
    assert client.get(PATH, headers=bearer(TOKEN)).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer("other"),
        bearer(TOKEN + "x"),
        bearer(TOKEN[:-1]),
        {"Authorization": TOKEN.encode()},
        {"Authorization": f"Basic {TOKEN}".encode()},
        {"Authorization": b"Bearer \xff\xfe"},
    ],
)
def test_without_the_token_nothing_is_told(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, headers: dict[str, bytes]
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    reply = client.get(PATH, headers=headers)
    assert reply.status_code == 401
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert reply.content == b""


def test_with_the_token_the_figures_are_told(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    resources.metrics().answered(AnswerFigures("t", 1.0, "vllm", "m", ttft_s=0.25))
    try:
        reply = client.get(PATH, headers=bearer(TOKEN))
    finally:
        resources.metrics().close()
        resources.database().close()
    assert reply.status_code == 200
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'answers_total{backend="vllm",finish="stop",model="m"} 1.0' in reply.text
    assert "steady_chat_queue_depth 0.0" in reply.text
    assert "steady_chat_memory_bytes " in reply.text
    assert client.post(PATH, headers=bearer(TOKEN)).status_code == 405


def test_the_token_isnt_shown_among_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    told = resources.settings()
    assert TOKEN not in str(told.shown())
    assert TOKEN not in repr(told)
