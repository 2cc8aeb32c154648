"""Flash attention: used where everything is there, else left alone, and said where it matters."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm.errors import Reason
from llm.local_attention import flash_obstacle, settle_attention
from llm.local_backend import LocalBackend
from tests.local_answers import ask, model_of, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

ALL = {"on_gpu": True, "supported": True, "half": True, "installed": True}


def test_flash_attention_is_used_where_everything_is_there() -> None:
    assert flash_obstacle(**ALL) is None


@pytest.mark.parametrize(
    ("lacking", "told"),
    [
        ({"installed"}, "reason-flash-not-installed"),
        ({"half"}, "reason-flash-number-type"),
        ({"supported"}, "reason-flash-not-supported"),
        ({"on_gpu"}, "reason-flash-no-gpu"),
        # Nobody should install a package that then can't be used.
        ({"on_gpu", "installed"}, "reason-flash-no-gpu"),
        ({"supported", "installed"}, "reason-flash-not-supported"),
        ({"half", "installed"}, "reason-flash-number-type"),
    ],
)
def test_the_obstacle_that_cannot_be_mended_is_told_first(lacking: set[str], told: str) -> None:
    case = {name: name not in lacking for name in ALL}
    assert flash_obstacle(**case) == Reason(told)


def test_flash_attention_by_name_falls_back_and_is_said_once(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], caplog: pytest.LogCaptureFixture
) -> None:
    backend = make_backend(tiny_folder, attn_implementation="flash_attention_2")
    with caplog.at_level(logging.WARNING, "llm.local_attention"):
        for _ in range(2):
            assert read(backend, ask(max_tokens=2))[1].reason == "length"
    assert backend.status().notes == (Reason("reason-flash-no-gpu"),)
    assert model_of(backend).config._attn_implementation == "sdpa"
    assert [r.name for r in caplog.records].count("llm.local_attention") == 1


@pytest.mark.parametrize("wish", ["auto", "sdpa", "eager"])
def test_nothing_is_said_where_nobody_asked_for_it(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], wish: str
) -> None:
    backend = make_backend(tiny_folder, attn_implementation=wish)
    read(backend, ask(max_tokens=1))
    assert backend.status().notes == ()


class OnGpu:
    """What `settle_attention` asks of a model, as transformers answers it on a GPU."""

    class device:  # noqa: N801 - as transformers has it
        type = "cuda"

    class dtype:  # noqa: N801
        itemsize = 2

    class config:  # noqa: N801
        _attn_implementation = "sdpa"

    _supports_flash_attn = True

    def __init__(self, outcome: Exception | str) -> None:
        self._outcome = outcome

    def set_attn_implementation(self, name: str) -> None:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        self.config = type("config", (), {"_attn_implementation": self._outcome})  # type: ignore[assignment,misc]


def attention(model: Any) -> str:
    return str(model.config._attn_implementation)


@pytest.mark.parametrize("wish", ["auto", "flash_attention_2"])
def test_it_is_switched_on_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, wish: str
) -> None:
    monkeypatch.setattr("llm.local_attention.is_flash_attn_2_available", lambda: True)
    model = OnGpu("flash_attention_2")
    assert settle_attention(model, wish) is None
    assert attention(model) == "flash_attention_2"


@pytest.mark.parametrize("wish", ["auto", "flash_attention_2"])
def test_a_missing_package_is_said_on_a_gpu_that_could_use_it(wish: str) -> None:
    model = OnGpu("flash_attention_2")
    assert settle_attention(model, wish) == Reason("reason-flash-not-installed")
    assert attention(model) == "sdpa"


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (ImportError("requires compute capability >= 8.0"), "reason-flash-refused"),
        ("sdpa", "reason-flash-not-supported"),
    ],
)
def test_a_refusal_of_transformers_is_no_error(
    monkeypatch: pytest.MonkeyPatch, outcome: Exception | str, told: str
) -> None:
    monkeypatch.setattr("llm.local_attention.is_flash_attn_2_available", lambda: True)
    model = OnGpu(outcome)
    assert settle_attention(model, "flash_attention_2") == Reason(told)
    assert settle_attention(model, "auto") is None
    assert attention(model) == "sdpa"
