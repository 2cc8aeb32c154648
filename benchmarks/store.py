"""How long a person with very many conversations waits for the database, and for nothing else.

One person has 10,000 conversations with 100,000 turns, which are 200,000 messages, in SQLite: nine
of ten in English-like words, the others Chinese, as unevenly common as words are; questions of a
line or two, answers of one to three paragraphs. One conversation has 500 turns.

Everything goes through `ConversationStore`, as the page does it. Each figure is the median of its
rounds, with the 95th percentile; opening is measured by a store that has just been made, so nothing
of it is in this process's memory. The file is in the system's cache.
"""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.table import Goal, Row, Section, row
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import (
    Conversation,
    ConversationKey,
    ConversationState,
    Receipt,
    Turn,
    add_turn,
    change_turn,
    new_id,
)
from llm.conversations import ConversationStore
from llm.types import Finish, SamplingParams

OWNER = "local"
LISTED = 50
FOUND = 20
LONGEST_TURNS = 500
PARTIAL_CHARS = 4000
GOAL = Goal(100, " ms")
_RARE, _RARE_CHINESE = "quokka", "鸭嘴兽"
_COMMON, _COMMON_CHINESE = "the", "模型"


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """Milliseconds, one each round.

    Args:
        file_mb: the database's size.
        fill_s: what writing it all took.
    """

    conversations: int
    turns: int
    file_mb: float
    fill_s: float
    times_ms: dict[str, tuple[float, ...]]


def measure_store(conversations: int, turns: int, rounds: int) -> StoreFigures:
    """Fill a database and measure."""
    with tempfile.TemporaryDirectory(prefix="steady-chat-store-") as folder:
        file = Path(folder) / "conversations.sqlite3"
        url = f"sqlite:///{file}"
        began_s = time.monotonic()
        longest = fill(ConversationDatabase(url, "filling"), conversations, turns)
        fill_s = time.monotonic() - began_s
        store = ConversationStore(ConversationDatabase(url, "measuring"))
        try:
            times_ms = dict(_measured(store, url, longest, rounds))
        finally:
            store.close()
        size_mb = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
    return StoreFigures(conversations, turns, size_mb, fill_s, times_ms)


def store_section(figures: StoreFigures) -> Section:
    """Its rows; the goal is for lists and searches, which somebody waits for."""
    title = f"{figures.conversations:,} conversations, {2 * figures.turns:,} messages in SQLite"
    rows = [
        _times(name, told, GOAL if name.startswith(("list", "search")) else None)
        for name, told in figures.times_ms.items()
    ]
    size = row("the file", {"app": figures.file_mb}, "{:.0f} MB".format)
    return Section(title, (*rows, size))


def _times(name: str, told: tuple[float, ...], goal: Goal | None) -> Row:
    p95 = sorted(told)[int(0.95 * (len(told) - 1) + 0.5)]
    return row(
        name,
        {"app": statistics.median(told)},
        lambda median: f"{median:.1f} ms (p95 {p95:.1f})",
        goal,
    )


def _measured(
    store: ConversationStore, url: str, longest: ConversationKey, rounds: int
) -> Iterator[tuple[str, tuple[float, ...]]]:
    def times(do: Callable[[], object]) -> tuple[float, ...]:
        return tuple(_took_ms(do) for _ in range(rounds))

    yield "list the first 50", times(lambda: store.listed(OWNER, LISTED))
    yield "list 50 in the middle", times(lambda: store.listed(OWNER, LISTED, 5_000))
    for name, words in (
        ("a rare word", _RARE),
        ("a common word", _COMMON),
        ("a common Chinese word", _COMMON_CHINESE),
        ("a rare Chinese word", _RARE_CHINESE),
        ("two words", f"{_COMMON} {_RARE}"),
        ("no hit", "zyzzyva"),
    ):
        yield f"search {name}", times(lambda words=words: store.search(OWNER, words, FOUND))

    def opened() -> ConversationState | None:
        new = ConversationStore(database)
        return new.state(longest)

    database = ConversationDatabase(url, "opening")
    opened()
    yield f"open {2 * LONGEST_TURNS:,} messages", times(opened)
    database.close()
    yield "look at it again", times(lambda: store.state(longest))
    turn = Turn("partial", "And?", "local", SamplingParams(), state="running", runner=store.runner)
    store.begin(longest, lambda state: add_turn(replace(turn, parent=state.head.leaf))(state))
    text = "x" * PARTIAL_CHARS

    def partial() -> None:
        store.change(longest, change_turn("partial", lambda t: replace(t, text=t.text + text)))

    yield "save a partial text", times(partial)
    if store.trouble is not None:
        raise store.trouble


def _took_ms(do: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    do()
    return 1000 * (time.perf_counter() - began_s)


def fill(
    database: ConversationDatabase, conversations: int, turns: int, last: str = ""
) -> ConversationKey:
    """Write them all.

    Args:
        last: what the longest conversation's last answer ends with.

    Returns:
        The longest.
    """
    dice = random.Random(1)
    texts = _Texts(dice)
    lengths = [LONGEST_TURNS, *_shared_out(turns - LONGEST_TURNS, conversations - 1)]
    longest = ConversationKey(OWNER, new_id())
    for number, length in enumerate(lengths):
        key = longest if number == 0 else ConversationKey(OWNER, new_id())
        state, parent = ConversationState(Conversation(key)), ""
        for place in range(length):
            ends = f"\n\n{last}" if last and number == 0 and place == length - 1 else ""
            turn = Turn(
                f"{number}-{place}",
                texts.question(),
                "local",
                SamplingParams(),
                state="ended",
                text=texts.answer() + ends,
                receipt=Receipt("a model", Finish("stop")),
                parent=parent,
                created_s=1_700_000_000 + dice.uniform(0, 1e7),
            )
            state, parent = add_turn(turn)(state), turn.turn_id
        database.write(key, None, state.head, list(state.turns.values()), indexed=state.turns)
    database.close()
    return longest


def _shared_out(turns: int, conversations: int) -> list[int]:
    each, more = divmod(turns, conversations)
    return [each + (number < more) for number in range(conversations)]


class _Texts:
    """Texts whose words are as unevenly common as in real ones (Zipf)."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "in", "o", "ur")]
        words = {"".join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(30_000)}
        self._english = [_COMMON, "of", "and", "to", *sorted(words)]
        pairs = {"".join(chr(dice.randint(0x4E00, 0x56FF)) for _ in "ab") for _ in range(8_000)}
        self._chinese = [_COMMON_CHINESE, "的", "是", *sorted(pairs)]
        self._weights = {
            id(some): list(itertools.accumulate(1 / (rank + 1) for rank in range(len(some))))
            for some in (self._english, self._chinese)
        }
        self._made = 0

    def question(self) -> str:
        return f"{self._text(5, 40)}?"

    def answer(self) -> str:
        parts = [self._text(30, 100) for _ in range(self._dice.randint(1, 3))]
        self._made += 1
        if self._made % 20_000 == 1:
            parts.append(f"A {_RARE}, {_RARE_CHINESE}.")
        return "\n\n".join(parts)

    def _text(self, least: int, most: int) -> str:
        words, between = (self._chinese, "") if self._dice.random() < 0.1 else (self._english, " ")
        count = self._dice.randint(least, most)
        return between.join(
            self._dice.choices(words, cum_weights=self._weights[id(words)], k=count)
        )
