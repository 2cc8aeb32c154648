"""Full-text search over real databases, SQLite and PostgreSQL: the same behaviour over both."""

from __future__ import annotations

import random
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine

from llm import conversation_search
from llm.search_words import MAX_INDEXED_CHARS

ROOT = Path(__file__).parents[1]


@pytest.fixture(params=["sqlite", "postgresql", "postgresql's index"])
def connection(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Connection]:
    """Both databases, and with few rows both of PostgreSQL's ways to them."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'test.db'}"
    else:
        url = request.getfixturevalue("postgres_url")
    if request.param == "postgresql's index":
        monkeypatch.setattr(conversation_search, "POSTGRESQL_NEWEST_ROWS", 1)
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            conversation_search.create(connection)
            yield connection
    finally:
        engine.dispose()


Find = Callable[..., list[int]]


@pytest.fixture
def find(connection: Connection) -> Find:
    """The rows that a typed search finds, newest first."""

    def find(typed: str, owner: str = "ann", limit: int = 500) -> list[int]:
        return [row for _, row in conversation_search.find(connection, owner, typed, limit)]

    return find


def add(connection: Connection, texts: list[str], owner: str = "ann", first: int = 1) -> None:
    for row_id, text in enumerate(texts, first):
        conversation_search.index(connection, row_id, owner, f"conversation {row_id}", text)


def test_it_is_there_without_loading_the_database_library() -> None:
    code = "import sys, llm.conversation_search; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_newest_come_first_and_no_more_than_asked_for(
    connection: Connection, find: Find
) -> None:
    add(connection, ["the sea"] * 20)
    assert find("the") == list(range(20, 0, -1))
    assert find("sea", limit=3) == [20, 19, 18]
    hits = conversation_search.find(connection, "ann", "sea", 2)
    assert hits == [("conversation 20", 20), ("conversation 19", 19)]


@pytest.mark.parametrize(
    ("text", "found", "not_found"),
    [
        (
            "我们用中文检索",
            ["中文", "检索", "中", "文检", "索", "中文 我们"],
            ["文中", "检中", "英文"],
        ),
        ("你好，\n世界", ["你好世界", "“好，世”", "好 世"], ["你世"]),
        (
            "Hello big World",
            ["hello", "wor", "WORLD hel", '"big world"', '"hello bi'],
            ["ello", "wor hello", '"hello world"', '"hello bi"'],
        ),
        (
            "用 Python 写网页",
            ["用Python写", '"用 python 写"', "pyth 网页"],
            ['"用 pyth 写"', "pyth网用"],
        ),
        (
            "it's 50% a_b c:\\d (x OR y) -z",
            ["it's", "50%", "a_b", "c:\\d", "or", "-z", "z a_b or x*"],
            ["and", "near(a b)", "*"],
        ),
        ("東京タワーへ", ["タワー", "東京", "ー"], ["京都"]),
        ("파이썬으로", ["파이썬", "썬"], ["파썬"]),
    ],
)
def test_words_in_every_script_are_found(
    connection: Connection,
    find: Find,
    text: str,
    found: list[str],
    not_found: list[str],
) -> None:
    add(connection, [text, "x"])
    assert {typed: find(typed) for typed in found} == {typed: [1] for typed in found}
    assert {typed: find(typed) for typed in not_found} == {typed: [] for typed in not_found}


def test_nothing_typed_finds_nothing(connection: Connection, find: Find) -> None:
    add(connection, ["a", "", "?!"])
    assert find("") == find(" ") == find('"') == find("?!") == []


def test_a_row_is_found_by_its_last_text_and_owner_only(connection: Connection, find: Find) -> None:
    add(connection, ["first 第一"])
    add(connection, ["second 第二"])
    assert (find("first"), find("第一"), find("second"), find("第二")) == ([], [], [1], [1])
    add(connection, ["second"], owner="bob")
    assert (find("second"), find("second", "bob")) == ([], [1])
    add(connection, ["..."], owner="bob")
    assert find("second", "bob") == []


def test_what_is_forgotten_is_not_found(connection: Connection, find: Find) -> None:
    add(connection, ["sea 海洋"] * 5)
    conversation_search.forget(connection, [2, 4, 99])
    assert find("sea") == find("海洋") == [5, 3, 1]
    conversation_search.forget(connection, [])
    conversation_search.forget(connection, range(1, 6))
    assert find("se") == []


HOSTILE = [
    "*", "a*", '" OR ""', '" OR owner:bob', "owner : bob", "{owner words}: bob", "NOT x", "a OR b",
    "NEAR(a b, 5)", "^a", "a + b", "-a", "a:*", "a & !b", "a | b", "'a' <-> 'b'", "\\", "'", "''",
    "a\\'b", "%", "_", "a_b", ":name", "$1", "%(x)s", "?", ";--", "\x00", "a\x00b", "\ud800",
    "a\udfffb", "﹡", "＂", "ʼ", "\u2028", "(" * 10_000, '"' * 10_000, "a " * 5000, "中" * 10_000,
    "的 a " * 2500, " ".join(map(str, range(2000))), "w" * 10_000, "\ufdfa" * 10_000,
]  # fmt: skip


def test_no_search_fails_or_crosses_over_to_another_person(
    connection: Connection, find: Find
) -> None:
    owners = {"ann": 1, "bob": 2, "": 3, "ann bob": 4, '" OR "': 5, "安": 6, "ann*": 7}
    for typed in HOSTILE:
        for owner, row_id in owners.items():
            add(connection, [f"x a b name owner bob near 中中 {typed}"], owner, row_id)
            add(connection, ["newer"], owner, row_id + 10)
        words = any(c.isalnum() for c in unicodedata.normalize("NFKC", typed))
        for owner, row_id in owners.items():
            assert find(typed, owner) == ([row_id] if words else []), typed[:50]
        assert find(typed, "an") == find(typed, "_") == []


def test_a_long_text_is_found_by_all_that_is_indexed_of_it(
    connection: Connection, find: Find
) -> None:
    common = "the end of the 的是 " * 3000
    varied = "".join(map(chr, range(0x4E00, 0x4E00 + 10_000)))
    whole = f"{common} the very last 最后一句 {varied}"
    assert len(whole) < MAX_INDEXED_CHARS
    add(connection, [whole, "w" * 100_000, "是的 " * 50_000, "x"])
    assert find('"the very last"') == find("最后一句") == find(varied[-5:]) == [1]
    assert find('"end the"') == []
    assert find("w" * 3000) == [2]
    assert find("的是的是的是") == [3]


def test_the_most_different_words_that_a_text_can_have_are_not_too_many(
    connection: Connection, find: Find
) -> None:
    chance = random.Random(3)
    text = "".join(map(chr, chance.choices(range(0x20000, 0x2A6D0), k=MAX_INDEXED_CHARS)))
    add(connection, [text])
    assert find(text[-9:]) == [1]


def test_both_databases_find_what_words_in_a_row_mean(connection: Connection, find: Find) -> None:
    """Against the plainest way: each character a word, phrases compared word by word."""
    chance = random.Random(5)
    alphabet = ["中", "文", "的", "是", "ab", "abc", "b", "，", " ", " ", "\n"]

    def some(most: int) -> str:
        return "".join(chance.choices(alphabet, k=chance.randint(1, most)))

    texts = {row_id: some(25) for row_id in range(1, 201)}
    add(connection, list(texts.values()))
    add(connection, [some(25) for _ in range(50)], "bob", 1000)
    hits = 0
    for _ in range(300):
        typed = some(5) if chance.random() < 0.7 else f'"{some(6)}"'
        expected = [row_id for row_id in sorted(texts, reverse=True) if means(typed, texts[row_id])]
        assert find(typed) == expected, typed
        hits += len(expected)
    assert hits > 1000


def means(typed: str, text: str) -> bool:
    """Whether the text has all that was typed; for letters, spaces and whole quotations."""
    quoted = typed.startswith('"')
    runs = [words_of(typed)] if quoted else [words_of(run) for run in runs_of(typed)]
    runs = [run for run in runs if run]
    latin = [n for n, run in enumerate(runs) if run[-1].isascii()]
    words = words_of(text)
    for number, run in enumerate(runs):
        begins = not quoted and latin[-1:] == [number]
        starts = range(len(words) - len(run) + 1)
        rows = [words[start : start + len(run)] for start in starts]
        if not any(
            row[:-1] == run[:-1] and (row[-1].startswith(run[-1]) if begins else row[-1] == run[-1])
            for row in rows
        ):
            return False
    return bool(runs)


def runs_of(text: str) -> list[str]:
    spaced = "".join(c if c.isalnum() else " " for c in text)
    marked = "".join(c if c.isascii() else f"\0{c}\0" for c in spaced).replace("\0\0", "")
    return marked.replace("\0", " ").split()


def words_of(text: str) -> list[str]:
    return "".join(
        c if c.isascii() and c.isalnum() else f" {c} " if c.isalnum() else " " for c in text
    ).split()
