"""The API over what this process has: each kind of backend that settings may name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.api_server import BEARER, KEY, chat
from tests.deploy_tools import free_port
from tests.protocol_server import MODEL, ProtocolServer
from ui import api_routes, resources


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TestClient]:
    monkeypatch.chdir(tmp_path)
    st.cache_resource.clear()
    with ProtocolServer() as server:
        monkeypatch.setenv("STEADY_CHAT_BACKENDS", "local,scripted,vllm")
        monkeypatch.setenv("STEADY_CHAT_VLLM_BASE_URL", server.url)
        monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("STEADY_CHAT_CACHE", "off")
        monkeypatch.setenv("STEADY_CHAT_API_KEY", KEY)
        with TestClient(Starlette(routes=api_routes.routes()), headers=BEARER) as made:
            yield made
        resources.registry().close()
        for backend in resources.backends().values():
            backend().close()
        resources.metrics().close()
        resources.database().close()
    st.cache_resource.clear()


def test_every_backend_of_the_settings_is_offered_and_answers(client: TestClient) -> None:
    service = api_routes.service()
    assert service is not None
    server = f"vllm/{resources.settings().server().name}"
    answer = client.post("/v1/chat/completions", json=chat("Hello!", model=server)).json()
    assert answer["choices"][0]["message"]["content"] == "Hello, world!"
    assert [model.temperature for model in service.offered()[:3]] == [0.2, None, None]
    listed = client.get("/v1/models").json()["data"]
    assert [model["id"] for model in listed][:3] == ["SmolLM2-135M-Instruct", "scripted", MODEL]


def test_a_server_that_nobody_has_set_up_is_not_offered(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = resources.settings()
    free = f"http://127.0.0.1:{free_port()}/v1"
    usual = told.model_construct(
        told.model_fields_set - {"vllm_base_url"}, **{**dict(told), "vllm_base_url": free}
    )
    monkeypatch.setattr(resources, "settings", lambda: usual)
    listed = client.get("/v1/models").json()["data"]
    assert [model["id"] for model in listed][:2] == ["SmolLM2-135M-Instruct", "scripted"]
    assert not any(model["id"].startswith("vllm/") for model in listed)
