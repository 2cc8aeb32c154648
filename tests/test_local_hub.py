"""A model of the hub: what is brought, and that a cancel ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llm.errors import HubDownloadError
from llm.local_backend import LocalBackend
from llm.local_hub import from_hub
from llm.types import CancelToken
from llm.wheel_download import FetchStopped
from tests.fake_hub import FakeHub
from tests.local_answers import TIMEOUT_S, ask, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights " * 50_000,
    "pytorch_model.bin": b"pickles",
    "modeling_own.py": b"code",
    "README.md": b"words",
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for variable in ("HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "hub"


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub(FILES).running() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def test_a_hub_that_cannot_be_reached_is_a_failed_download(
    make_backend: Callable[..., LocalBackend], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubDownloadError) as caught:
        read(make_backend("nobody/nothing"), ask())
    assert caught.value.values == {"model": "nobody/nothing"}


@pytest.mark.parametrize("trust", [False, True])
def test_the_weights_that_are_downloaded_are_those_that_are_loaded_and_code_only_if_trusted(
    hub: FakeHub, cache: Path, trust: bool
) -> None:
    folder = from_hub("owner/name", trust, CancelToken())
    assert folder.is_relative_to(cache)
    expected = {"config.json", "model.safetensors", *(["modeling_own.py"] if trust else [])}
    assert set(hub.sent) == {path.name for path in folder.iterdir()} == expected
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    hub.sent.clear()
    assert from_hub("owner/name", trust, CancelToken()) == folder
    assert hub.sent == [], "what is there is brought again"


def test_a_cancel_ends_the_download_and_leaves_nothing_half(hub: FakeHub, cache: Path) -> None:
    hub.endless = "model.safetensors"
    (cache / "models--owner--name" / "blobs").mkdir(parents=True)
    of_another = cache / "models--owner--name" / "blobs" / "b.1234abcd.incomplete"
    of_another.write_bytes(b"half")
    cancel = CancelToken()
    outcome: list[str] = []

    def run() -> None:
        try:
            from_hub("owner/name", False, cancel)
        except FetchStopped:
            outcome.append("stopped")

    thread = threading.Thread(target=run)
    thread.start()
    assert hub.half_sent.wait(TIMEOUT_S)
    assert not hub.client_gone.is_set()
    cancel.cancel()
    assert hub.client_gone.wait(TIMEOUT_S)
    thread.join(TIMEOUT_S)
    assert outcome == ["stopped"]
    assert list(cache.rglob("*.incomplete")) == [of_another]
    hub.endless = ""
    folder = from_hub("owner/name", False, CancelToken())
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_what_was_cancelled_before_it_began_is_not_downloaded(hub: FakeHub) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(FetchStopped):
        from_hub("owner/name", False, cancel)
    assert "model.safetensors" not in hub.sent
