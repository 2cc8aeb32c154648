"""The sidebar's pick of models and its word on the servers, without a browser."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from llm.errors import SettingsError
from llm.plain_markdown import plain
from tests.protocol_server import ProtocolServer, refusing
from tests.test_app import page
from ui import resources

SECRET = "sk-very-secret"


@pytest.fixture
def servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., list[ProtocolServer]]]:
    """A function that starts servers and has the settings name them gpu-1, gpu-2 and so on."""
    with ExitStack() as running:

        def start(count: int = 2, **settings: str) -> list[ProtocolServer]:
            made = [running.enter_context(ProtocolServer()) for _ in range(count)]
            told = [
                {"name": f"gpu-{n}", "base_url": server.url, "api_key": SECRET}
                for n, server in enumerate(made, 1)
            ]
            monkeypatch.setenv("STEADY_CHAT_SERVERS", json.dumps(told))
            for name, value in settings.items():
                monkeypatch.setenv(f"STEADY_CHAT_{name.upper()}", value)
            return made

        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("STEADY_CHAT_BACKENDS", "vllm,scripted")
        monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
        monkeypatch.setattr("llm.server_state.FAILED_FRESH_S", 0.05)
        st.cache_resource.clear()
        yield start
        resources.registry().close()
        with suppress(SettingsError):
            for server in resources.servers():
                server.close()
        st.cache_resource.clear()


def until(app: AppTest, condition: Callable[[], bool]) -> None:
    """Run the page again and again, as the look at rest has a browser do, until it says so."""
    deadline_s = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline_s, states(app)
        app.run()
        assert not app.exception


def states(app: AppTest) -> str:
    return "\n".join(m.value for m in app.sidebar.markdown if "gpu-" in m.value)


def test_every_model_of_every_server_is_in_one_pick(
    servers: Callable[..., list[ProtocolServer]],
) -> None:
    first, second = servers()
    listed = [{"id": "/models/Qwen", "max_model_len": 4096}, {"id": "phi"}]
    first.models_handler = refusing(200, {"data": listed})
    second.models = ["llama"]
    app = page().run()
    pick = ["gpu-1 · Qwen · 4k", "gpu-1 · phi", "gpu-2 · llama"]
    until(app, lambda: app.selectbox(key="model_pick").options == pick)
    assert app.selectbox(key="model_pick").value == ("gpu-1", "/models/Qwen")
    until(app, lambda: states(app).count("ready") == 2)
    assert SECRET not in str(app)


def test_the_picked_model_is_asked_and_the_receipt_names_it_and_its_server(
    servers: Callable[..., list[ProtocolServer]],
) -> None:
    _, second = servers()
    second.models = ["llama", "phi"]
    app = page().run()
    until(app, lambda: "gpu-2 · phi" in app.selectbox(key="model_pick").options)
    app.selectbox(key="model_pick").set_value(("gpu-2", "phi")).run()
    app.chat_input[0].set_value("hi").run()
    assert not app.exception
    assert second.exchange().body["model"] == "phi"
    assert any("phi · gpu-2 · finished" in caption.value for caption in app.caption)


def test_after_failover_the_receipt_names_the_model_and_the_server_that_answered(
    servers: Callable[..., list[ProtocolServer]],
) -> None:
    first, second = servers(server_failover="true")
    first.models, second.models = ["llama"], ["phi"]
    app = page().run()
    until(app, lambda: app.selectbox(key="model_pick").options == ["gpu-1 · llama", "gpu-2 · phi"])
    first.stop()
    app.chat_input[0].set_value("hi").run()
    until(app, lambda: any("finished" in caption.value for caption in app.caption))
    assert any("phi · gpu-2 · finished" in caption.value for caption in app.caption)
    assert app.selectbox(key="model_pick").value == ("gpu-1", "llama")


def test_a_pick_stays_while_its_server_is_away_and_while_another_backend_is_chosen(
    servers: Callable[..., list[ProtocolServer]],
) -> None:
    _, second = servers()
    second.models = ["llama", "phi"]
    app = page().run()
    until(app, lambda: "gpu-2 · phi" in app.selectbox(key="model_pick").options)
    app.selectbox(key="model_pick").set_value(("gpu-2", "phi")).run()
    second.models = ["llama"]
    app.radio(key="backend").set_value("scripted").run()
    assert "model_pick" not in [box.key for box in app.selectbox]
    app.radio(key="backend").set_value("vllm").run()
    assert app.selectbox(key="model_pick").value == ("gpu-2", "phi")
    resources.servers()[1].models()
    second.stop()
    resources.servers()[1]._server._state._heard_at_s = 0.0  # what is known is old now
    until(app, lambda: "not reachable" in states(app))
    assert app.selectbox(key="model_pick").value == ("gpu-2", "phi")
    again = ProtocolServer()
    again.port, again.models = second.port, ["llama", "new"]
    with again:
        until(app, lambda: "gpu-2 · new" in app.selectbox(key="model_pick").options)
        assert app.selectbox(key="model_pick").value == ("gpu-2", "phi")
        assert "doesn’t list this model now" in states(app)


def test_each_server_says_its_own_state(
    servers: Callable[..., list[ProtocolServer]],
) -> None:
    _, gone, locked, loading = servers(4)
    gone.stop()
    locked.key = "another"
    loading.models_handler = refusing(503, {"error": {"message": "Loading model"}})
    app = page().run()
    wanted = [
        ":green[●] **gpu-1** ready",
        ":red[✕] **gpu-2** not reachable; looking again",
        ":red[✕] **gpu-3** wrong key",
        ":orange[◌] **gpu-4** starting",
    ]
    until(app, lambda: states(app).split("  \n") == wanted)
    # A server whose models nobody knows yet can be picked all the same.
    assert app.selectbox(key="model_pick").options[1:] == ["gpu-2", "gpu-3", "gpu-4"]
    app.radio(key="language").set_value("zh").run()
    assert states(app).split("  \n") == [
        ":green[●] **gpu-1** 就绪",
        ":red[✕] **gpu-2** 无法连接，正在重新尝试",
        ":red[✕] **gpu-3** API 密钥不正确",
        ":orange[◌] **gpu-4** 正在启动",
    ]


def test_a_run_is_never_held_up_by_a_server_that_does_not_answer(
    servers: Callable[..., list[ProtocolServer]],
) -> None:
    async def mute(exchange: object) -> None:
        await exchange.hold()  # type: ignore[attr-defined]

    first, second = servers(2, connect_timeout_s="100")
    second.models_handler = mute
    app = page().run()
    until(app, lambda: "ready" in states(app))
    began_s = time.monotonic()
    app.run()
    assert time.monotonic() - began_s < 3
    assert "asking the server" in states(app)
    assert first.lookups


def test_the_single_server_of_before_needs_no_name(
    servers: Callable[..., list[ProtocolServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (server,) = servers(1, vllm_base_url="http://127.0.0.1:9/v1")
    monkeypatch.setenv("STEADY_CHAT_SERVERS", "")
    monkeypatch.setenv("STEADY_CHAT_VLLM_BASE_URL", server.url)
    name = f"127.0.0.1:{server.port}"
    app = page().run()
    pick = ["tiny-test-model"]
    until(app, lambda: app.selectbox(key="model_pick").options == pick)
    app.chat_input[0].set_value("hi").run()
    receipt = plain(f"tiny-test-model · {name} · finished")
    assert any(receipt in caption.value for caption in app.caption)


def test_a_wrong_server_is_a_sentence_and_nothing_else(
    servers: Callable[..., list[ProtocolServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers(1)
    monkeypatch.setenv("STEADY_CHAT_SERVERS", '[{"name": "a", "base_url": "http://[::1/v1"}]')
    app = page().run()
    assert not app.exception
    assert "STEADY_CHAT_SERVERS · 1 · base_url" in app.error[0].value
    monkeypatch.setenv("STEADY_CHAT_SERVERS", "")
