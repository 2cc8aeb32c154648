"""How a long prompt's reading is told by the local backend: in order, and never beside the text."""

from __future__ import annotations

from itertools import takewhile

import pytest

from llm import prefill_progress
from llm.job import GenerationJob
from llm.local_backend import LocalBackend
from llm.types import CancelToken, Notice
from tests.driven_backend import Saves, let_go
from tests.local_answers import ask, model_of, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


@pytest.fixture
def however_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every prompt were a long one."""
    for name in ("LONG_S", "FIRST_S", "EVERY_S"):
        monkeypatch.setattr(prefill_progress, name, 0.0)


@pytest.mark.usefixtures("however_quick")
def test_the_reading_is_told_before_the_first_text_only(shared: LocalBackend) -> None:
    model_of(shared)
    items = list(shared.stream(ask(max_tokens=10), CancelToken()))
    first = list(takewhile(lambda item: isinstance(item, Notice), items))
    assert first
    assert not [item for item in items[len(first) :] if isinstance(item, Notice)]
    reasons = [item.reason for item in first if isinstance(item, Notice) and item.reason]
    assert {reason and reason.message_id for reason in reasons} == {"notice-reading-part"}


@pytest.mark.usefixtures("however_quick")
def test_what_is_told_changes_nothing_of_the_answer(
    shared: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = read(shared, ask(max_tokens=30, seed=7))
    monkeypatch.setattr(prefill_progress, "LONG_S", 1e9)
    assert read(shared, ask(max_tokens=30, seed=7)) == told


@pytest.mark.usefixtures("however_quick")
def test_two_at_once_are_each_told_of_their_own(shared: LocalBackend) -> None:
    model_of(shared)
    jobs = [
        GenerationJob(name, name, shared, ask(name, max_tokens=20), save=Saves()) for name in "AB"
    ]
    alone = [read(shared, ask(name, max_tokens=20))[0] for name in "AB"]
    for job in jobs:
        job.start()
    assert [let_go(job).text for job in jobs] == alone


def test_a_short_prompt_is_not_told(shared: LocalBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    model_of(shared)
    monkeypatch.setattr(prefill_progress, "LONG_S", 600.0)  # however slow this machine is
    items = list(shared.stream(ask(max_tokens=3), CancelToken()))
    assert not [item for item in items if isinstance(item, Notice) and item.reason]
