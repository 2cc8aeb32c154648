"""A process killed with SIGKILL at any moment loses no question, and of answers the last second."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import ConversationKey, ConversationState, Turn
from llm.conversations import ConversationStore
from llm.registry import JobRegistry
from llm.types import SamplingParams
from tests.driven_backend import DrivenBackend, let_go
from tests.killed_writer import PEOPLE, TICK_S, whole_answer

ROOT = Path(__file__).parents[1]
MOMENTS = random.Random(20261130)
LOST_S = 1.0
"""What may be lost of an answer; the saver comes twice a second."""


class Killed:
    """What a process told until it was killed."""

    def __init__(self, url: str, after_s: float) -> None:
        self.asked: list[tuple[str, str]] = []
        self.grown: dict[str, list[tuple[float, int]]] = {}
        self._ticks: list[float] = []
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.killed_writer", url],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun = threading.Event()
        reader = threading.Thread(target=self._read, args=(child, begun))
        reader.start()
        assert begun.wait(60), child.stderr and child.stderr.read()
        time.sleep(after_s)
        child.kill()
        self.killed_s = time.monotonic()
        reader.join(60)
        assert child.stderr is not None
        said = child.stderr.read()
        child.stderr.close()
        assert child.wait(60) == -9, said
        assert said == ""

    def stood_still_s(self) -> float:
        """For how long of its last seconds the process got no time from a busy machine."""
        last = [at_s for at_s in self._ticks if at_s > self.killed_s - 2 * LOST_S]
        ends = [*last[1:], self.killed_s]
        gaps = [end - start for start, end in zip(last, ends, strict=True)]
        return sum(max(0.0, gap - 2 * TICK_S) for gap in gaps)

    def _read(self, child: subprocess.Popen[str], begun: threading.Event) -> None:
        assert child.stdout is not None
        with child.stdout:
            for line in child.stdout:
                if not line.endswith("\n"):
                    break  # killed in mid-word
                kind, *told = line.split()
                if kind == "asked":
                    self.asked.append((told[0], told[1]))
                    begun.set()
                elif kind == "tick":
                    self._ticks.append(float(told[0]))
                else:
                    self.grown.setdefault(told[1], []).append((float(told[0]), int(told[2])))


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [MOMENTS.uniform(0, 5) for _ in range(20)])
def test_a_killed_process_loses_no_question_and_no_more_than_the_last_second(
    tmp_path: Path, after_s: float
) -> None:
    file = tmp_path / "c.sqlite3"
    url = f"sqlite:///{file}"
    killed = Killed(url, after_s)
    store = ConversationStore(ConversationDatabase(url, "later"))
    backend = DrivenBackend(slots=PEOPLE)
    chat = Chat(store, JobRegistry(), {"talker": lambda: backend})
    try:
        _check_saved(store, killed)
        _wait_until_interrupted(store, file, killed)
        _go_on_and_ask_again(chat, store, backend, killed)
        assert store.trouble is None
    finally:
        backend.close()
        chat.close()
    checking = sqlite3.connect(file)
    assert checking.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    checking.close()


def whole(turn: Turn) -> str:
    return "".join(whole_answer(turn.question))


def _states(store: ConversationStore, killed: Killed) -> dict[ConversationKey, ConversationState]:
    keys = {ConversationKey(question.split("-")[0], own) for own, question in killed.asked}
    states = {key: store.state(key) for key in keys}
    return {key: state for key, state in states.items() if state is not None}


def _check_saved(store: ConversationStore, killed: Killed) -> None:
    turns = [turn for state in _states(store, killed).values() for turn in state.turns.values()]
    questions = Counter(turn.question for turn in turns)
    assert set(questions.values()) == {1}, "a question is there twice"
    lost = {question for _, question in killed.asked} - set(questions)
    assert lost == set()
    accounted_s = killed.killed_s - LOST_S - killed.stood_still_s()
    for turn in turns:
        assert whole(turn).startswith(turn.text)
        long_ago = [
            chars for at_s, chars in killed.grown.get(turn.turn_id, []) if at_s < accounted_s
        ]
        assert len(turn.text) >= max(long_ago, default=0)


def _wait_until_interrupted(store: ConversationStore, file: Path, killed: Killed) -> None:
    with sqlite3.connect(file) as past:  # some seconds later
        past.execute("UPDATE runners SET beat_s = beat_s - 60 WHERE runner <> 'later'")
    past.close()
    for state in _states(store, killed).values():
        for turn in state.turns.values():
            assert turn.state == "ended"
            assert turn.receipt is not None
            if turn.text != whole(turn):
                assert turn.receipt.finish.reason == "interrupted"


def _go_on_and_ask_again(
    chat: Chat, store: ConversationStore, backend: DrivenBackend, killed: Killed
) -> None:
    for key, state in _states(store, killed).items():
        cut = next((turn for turn in state.path() if turn.text != whole(turn)), None)
        if cut is None:
            continue
        how = chat.go_on if cut.text else chat.ask_again
        how(key, cut.turn_id, person=key.owner, backend="talker", params=SamplingParams())
        job, stream = chat.job(key), backend.next_stream()
        stream.answer("and so on")
        let_go(job)  # type: ignore[arg-type]
        (turn,) = [turn for turn in chat.turns(key) if turn.text.endswith("and so on")]
        assert turn.text == f"{cut.text}and so on"
