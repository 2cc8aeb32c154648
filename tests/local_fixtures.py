"""Fixtures for the tests of the local backend.

A test module takes them by `pytest_plugins = "tests.local_fixtures"` and never imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before a backend's own thread does: while one thread imports transformers, which puts another
# module in its place, `from transformers import …` fails in the other.
import transformers  # noqa: F401

from llm.local_backend import LocalBackend, LocalOptions
from tests.local_answers import generating
from tests.tiny_gguf import write_tiny_gguf
from tests.tiny_model import make_tiny_model


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models") / "Tiny-Instruct")


@pytest.fixture(scope="session")
def tiny_gguf(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tiny_folder, tmp_path_factory.mktemp("gguf") / "Tiny.F32.gguf")


@pytest.fixture(scope="module", params=["on", "off"], ids=["batched", "plain"])
def shared(
    tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[LocalBackend]:
    """One loaded backend for the tests that leave it as it was; a test runs with either kind."""
    data_dir = tmp_path_factory.mktemp("data")
    backend = LocalBackend(LocalOptions(data_dir, str(tiny_folder), batching=request.param))
    yield backend
    backend.close()


@pytest.fixture
def make_backend(tmp_path: Path) -> Iterator[Callable[..., LocalBackend]]:
    made: list[LocalBackend] = []

    def make(model: Path | str, **options: Any) -> LocalBackend:
        made.append(LocalBackend(LocalOptions(tmp_path / "data", str(model), **options)))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def no_generating_thread_is_left() -> Iterator[None]:
    yield
    assert generating() == []
