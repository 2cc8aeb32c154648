"""Many people before one model: every answer belongs to its question, and nothing is left behind."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import ConversationKey
from llm.conversations import ConversationStore
from llm.registry import JobRegistry
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import SamplingParams
from tests.driven_backend import at_once

PEOPLE = 50
EACH = 4
SLOTS = 8
LIMIT_S = 240.0
"""For all of them; a second or two where the machine has nothing else to do."""
GROWTH_BYTES = 200_000
"""What a later crowd may leave behind: a tenth of what 200 jobs, snapshots and turns come to."""


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    script = Script("You asked: {question}", tokens_per_s=200)
    backend = ScriptedBackend(script, slots=SLOTS)
    store = ConversationStore(ConversationDatabase(f"sqlite:///{tmp_path / 'c.sqlite3'}", "me"))
    chat = Chat(store, JobRegistry(max_waiting=PEOPLE * EACH), {"scripted": lambda: backend})
    store.listed("nobody", 1)  # makes the tables, as the app does before anybody can ask
    yield chat
    chat.close()
    assert backend.running == 0


def ask_all(chat: Chat, crowd: str) -> list[tuple[ConversationKey, str]]:
    """Everybody asks at once: every second person all in one conversation, the others in several.

    Returns each question with the conversation that it was asked in.
    """
    asked: list[tuple[ConversationKey, str]] = []
    lock = threading.Lock()

    def ask(person: int) -> None:
        owner = f"{crowd} {person}"
        key = chat.open(owner, None)
        for number in range(EACH):
            if person % 2:
                key = chat.open(owner, None)
            question = f"<{owner} / {number}>"
            params = SamplingParams()
            chat.ask(key, question, person=owner, backend="scripted", params=params)
            with lock:
                asked.append((key, question))

    at_once(*[lambda person=person: ask(person) for person in range(PEOPLE)])
    return asked


def wait_for_all(chat: Chat, asked: list[tuple[ConversationKey, str]]) -> None:
    deadline_s = time.monotonic() + LIMIT_S
    for key in {key for key, _ in asked}:
        while any(turn.state != "ended" for turn in chat.turns(key)):
            assert time.monotonic() < deadline_s, f"{key} waits for ever"
            if job := chat.job(key):
                job.wait(2**62, 1)


def see_that_all_are_right(chat: Chat, asked: list[tuple[ConversationKey, str]]) -> None:
    assert len(asked) == PEOPLE * EACH
    wait_for_all(chat, asked)
    for key in {key for key, _ in asked}:
        questions = [question for where, question in asked if where == key]
        turns = chat.turns(key)
        assert [turn.question for turn in turns] == questions
        assert [turn.text for turn in turns] == [f"You asked: {each}" for each in questions]
        assert all(turn.error is None for turn in turns)
        stranger = ConversationKey("stranger", key.conversation_id)
        assert chat.turns(stranger) == ()


def let_the_store_forget(chat: Chat, key: ConversationKey) -> None:
    """Until all is saved: so many at once are more than SQLite takes, and are held till then."""
    deadline_s = time.monotonic() + LIMIT_S
    while chat.store.trouble or chat.store._unsaved():
        assert time.monotonic() < deadline_s, f"never saved: {chat.store.trouble}"
        time.sleep(0.05)
    chat.pin(key, True)  # a change, at which what was held too long is let go


def leftovers(before: set[threading.Thread]) -> list[str]:
    """Threads that are there beside those before, once those that are ending have ended."""
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("answer-"):
            thread.join(LIMIT_S)
    return sorted(thread.name for thread in set(threading.enumerate()) - before)


def test_fifty_people_ask_two_hundred_questions_and_each_gets_its_own_answer(chat: Chat) -> None:
    threads = set(threading.enumerate())  # the chat's own are there already
    kept_bytes = []
    tracemalloc.start()
    try:
        # The first crowd fills what is kept on purpose: the newest conversations, the database's
        # statements. What a later one adds to it is left behind.
        for crowd in ("first", "second", "third"):
            asked = ask_all(chat, crowd)
            see_that_all_are_right(chat, asked)
            let_the_store_forget(chat, asked[0][0])
            assert leftovers(threads) == ["job-keeper"]
            gc.collect()
            kept_bytes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert kept_bytes[2] - kept_bytes[1] < GROWTH_BYTES, kept_bytes
