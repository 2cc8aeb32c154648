"""A thousand questions of twenty people over either store; Redis is killed in the middle, twice.

Each answer names the question, who asked it and how often the model was asked before: a wrong one,
or another person's, can't look right.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llm.answer_cache import AnswerCache
from llm.cache_key import person_scope
from llm.cache_redis import RedisAnswerStore
from llm.cache_rules import CacheRules
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_types import AnswerStore
from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import Turn
from llm.conversations import ConversationStore
from llm.registry import JobRegistry
from llm.types import (
    BackendStatus,
    CacheUse,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    GenerationRequest,
    Notice,
    SamplingParams,
    Usage,
)
from tests.driven_backend import PATIENCE_S, let_go
from tests.servers.redis_server import RedisServer

PEOPLE = [f"person {number}" for number in range(20)]
QUESTIONS = [
    "What is a prime number?",
    "质数是什么？",
    "How do I undo the last commit in git?",
    "怎样撤销 git 的上一次提交？",
    "What does i++ do in C?",
    "What does ++i do in C?",
    "How does a heat pump work?",
    "热泵是怎么工作的？",
    "What is the capital of Australia?",
    "What is the weather today?",  # never kept
]
EACH = 50
ROUNDS_S = 60.0


class Teller:
    """Says whose question it answers, and for the how manieth time it was asked."""

    name = "teller"
    slots = 8

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.times = 0

    def status(self) -> BackendStatus:
        return BackendStatus("ready", "teller", elapsed_s=1e9)

    def prepare(self) -> None:
        pass

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return None

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return None

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        return Fingerprint("teller", "", "teller", "1", "", "")

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        with self._lock:
            self.times = times = self.times + 1
        assert request.cache is not None
        for piece in (request.messages[-1].content, "|", request.cache.owner, f"|{times}"):
            yield Delta(piece)
        yield Finish("stop", Usage(1, 4), self.fingerprint(request))

    def close(self) -> None:
        pass


class Town:
    """All of them over one store."""

    def __init__(
        self,
        folder: Path,
        make_store: Callable[[], AnswerStore],
        rules: CacheRules,
        *,
        each_is_kept: bool = False,
    ) -> None:
        self._each_is_kept = each_is_kept
        self.teller = Teller()
        self.cache = AnswerCache(make_store, rules, limit_s=PATIENCE_S)
        self.registry = JobRegistry()
        url = f"sqlite:///{folder / 'conversations.sqlite3'}"
        store = ConversationStore(ConversationDatabase(url, "this process"))
        self.chat = Chat(store, self.registry, {"teller": lambda: self.teller}, cache=self.cache)
        self._lock = threading.Lock()
        self.done = 0
        self.changed = threading.Condition(self._lock)

    def ask(self, person: str, question: str) -> Turn:
        here = self.chat.open(person, None)
        self.chat.ask(
            here,
            question,
            person=person,
            backend="teller",
            params=SamplingParams(temperature=0),
            cache=CacheUse(person),
        )
        job = self.registry.get(here)
        if job is not None:
            let_go(job)
        if self._each_is_kept:  # nobody asks on before
            assert self.cache.flush(PATIENCE_S)
        with self.changed:
            self.done += 1
            self.changed.notify_all()
        return self.chat.turns(here)[-1]

    def all_ask(self) -> list[tuple[str, str, Turn]]:
        """Everybody asks, side by side, each in an order of their own."""

        def one(person: str) -> list[tuple[str, str, Turn]]:
            order = QUESTIONS * (EACH // len(QUESTIONS))
            random.Random(person).shuffle(order)
            return [(person, question, self.ask(person, question)) for question in order]

        with ThreadPoolExecutor(len(PEOPLE)) as pool:
            return [told for person in pool.map(one, PEOPLE) for told in person]

    def wait_until_asked(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.done >= count, ROUNDS_S)

    def close(self) -> None:
        self.chat.close()
        self.cache.close()


def cached(turn: Turn) -> bool:
    return turn.receipt is not None and turn.receipt.cached is not None


def nothing_is_wrong(told: list[tuple[str, str, Turn]], *, shared: bool = False) -> None:
    assert len(told) == len(PEOPLE) * EACH
    for person, question, turn in told:
        assert turn.error is None
        said, whose, _ = turn.text.split("|")
        assert said == question
        assert shared or whose == person
        assert not (cached(turn) and "today" in question)


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    # What it was told is in its file before it says so: only the outage may cost entries.
    server.start("--appendonly", "yes")
    yield server
    server.remove()


def test_over_sqlite(tmp_path: Path) -> None:
    town = Town(
        tmp_path,
        lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26, PATIENCE_S),
        CacheRules(),
        each_is_kept=True,
    )
    nothing_is_wrong(town.all_ask())
    # Each person's each question once, but for those that are never kept.
    kept = len(PEOPLE) * (len(QUESTIONS) - 1)
    never = len(PEOPLE) * (EACH // len(QUESTIONS))
    assert town.teller.times == kept + never
    again = town.ask(PEOPLE[0], QUESTIONS[0])
    assert cached(again)
    town.close()


def test_shared_over_sqlite(tmp_path: Path) -> None:
    town = Town(
        tmp_path,
        lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26),
        CacheRules(shared=True),
    )
    told = town.all_ask()
    nothing_is_wrong(told, shared=True)
    never = len(PEOPLE) * (EACH // len(QUESTIONS))
    assert town.teller.times - never < len(PEOPLE) * EACH / 4
    town.close()


def test_over_redis_that_is_killed_twice(tmp_path: Path, redis_server: RedisServer) -> None:
    url = redis_server.url
    town = Town(tmp_path, lambda: RedisAnswerStore(url, 2**26), CacheRules())
    told: list[tuple[str, str, Turn]] = []
    asking = threading.Thread(target=lambda: told.extend(town.all_ask()))
    asking.start()
    kept: set[str] = set()
    for count in (300, 600):
        town.wait_until_asked(count)
        kept = kept_in(url)
        redis_server.kill()
        town.wait_until_asked(count + 100)  # in the outage everybody is answered, too
        redis_server.start("--appendonly", "yes")
        assert kept <= kept_in(url)
    asking.join(10 * ROUNDS_S)
    assert not asking.is_alive()
    nothing_is_wrong(told)
    assert any(cached(turn) for _, _, turn in told)
    assert kept <= kept_in(url)
    assert len(kept) > 0
    end_s = time.monotonic() + PATIENCE_S
    while not cached(town.ask(PEOPLE[0], QUESTIONS[0])):  # it is used again, by itself
        assert time.monotonic() < end_s
    town.close()


def kept_in(url: str) -> set[str]:
    """The digests of all entries."""
    store = RedisAnswerStore(url, 2**26, PATIENCE_S)
    found = [
        entry.key.digest
        for person in PEOPLE
        for entry in store.entries(person_scope(person), time.time(), 1000)
    ]
    store.close()
    return set(found)
