from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm.embedded_model import FetchStopped
from llm.errors import HubDownloadError
from llm.local_backend import LocalBackend
from llm.local_hub import from_hub
from llm.models import WEIGHTS
from llm.types import CancelToken
from tests.local_answers import TIMEOUT_S, ask, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


def test_a_hub_that_cannot_be_reached_is_a_failed_download(
    make_backend: Callable[..., LocalBackend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(HubDownloadError):
        read(make_backend("nobody/nothing"), ask())


def test_waiting_for_a_download_ends_when_it_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, release = threading.Event(), threading.Event()

    def endless(*_: Any, **__: Any) -> str:
        asked.set()
        assert release.wait(TIMEOUT_S)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", endless)
    cancel = CancelToken()
    outcome: list[str] = []

    def run() -> None:
        try:
            from_hub("owner/name", False, cancel)
        except FetchStopped:
            outcome.append("stopped")

    thread = threading.Thread(target=run)
    thread.start()
    assert asked.wait(TIMEOUT_S)
    cancel.cancel()
    thread.join(TIMEOUT_S)
    assert outcome == ["stopped"]
    release.set()


@pytest.mark.parametrize("trust", [False, True])
def test_the_weights_that_are_downloaded_are_those_that_are_loaded_and_code_only_if_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trust: bool
) -> None:
    asked: list[str] = []

    def download(_: str, allow_patterns: list[str]) -> str:
        asked.extend(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert from_hub("owner/name", trust, CancelToken()) == tmp_path
    assert set(WEIGHTS) <= set(asked)
    assert "*.bin" not in asked
    assert ("*.py" in asked) == trust
