"""The pairs of questions are what they say they are: enough of each, unique, in two files."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.cache.add import add
from benchmarks.cache.judged_tables import by_kind, by_language, shown, told
from benchmarks.cache.judging import Judged, auc, judge_pairs
from benchmarks.cache.pairs import (
    DEV,
    DIFFERENT,
    HELD_OUT,
    LANGS,
    SAME,
    Pair,
    lang_of,
    read_pairs,
    write_pairs,
)
from llm.same_question import same_question

FIELDS = ["id", "lang", "kind", "a", "b", "same"]


@pytest.fixture(scope="module")
def dev() -> list[Pair]:
    return read_pairs(DEV)


@pytest.fixture(scope="module")
def held_out() -> list[Pair]:
    return read_pairs(HELD_OUT)


@pytest.fixture(scope="module")
def pairs(dev: list[Pair], held_out: list[Pair]) -> list[Pair]:
    return sorted(dev + held_out, key=lambda pair: pair.id)


@pytest.mark.parametrize("path", [DEV, HELD_OUT], ids=lambda path: path.stem)
def test_every_line_is_a_pair_with_these_fields_and_no_others(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        assert list(told) == FIELDS, line
        assert all(told[name] and isinstance(told[name], str) for name in FIELDS[:-1]), line
        assert isinstance(told["same"], bool), line


def test_there_are_enough_pairs_of_each_sort(pairs: list[Pair]) -> None:
    for same, least, chinese in ((False, 520, 0.40), (True, 280, 0.45)):
        some = [pair for pair in pairs if pair.same == same]
        langs = Counter(pair.lang for pair in some)
        assert len(some) >= least
        assert (langs["zh"] + langs["mixed"]) / len(some) >= chinese
        assert min(langs[lang] for lang in LANGS) >= 30


def test_every_kind_is_there_in_english_and_in_chinese(pairs: list[Pair]) -> None:
    counts = Counter((pair.kind, pair.lang == "en") for pair in pairs)
    for kind in DIFFERENT:
        assert counts[kind, True] >= 10, kind
        assert counts[kind, False] >= 10, kind
    for kind in SAME:
        assert counts[kind, True] >= 3, kind
        assert counts[kind, False] >= 8, kind
    assert {pair.kind for pair in pairs} == {*DIFFERENT, *SAME}


def test_kind_and_language_say_what_the_texts_say(pairs: list[Pair]) -> None:
    for pair in pairs:
        assert pair.same == (pair.kind in SAME), pair.id
        assert pair.lang == lang_of(pair.a, pair.b), pair.id


def test_no_text_stands_twice(pairs: list[Pair]) -> None:
    counts = Counter(text for pair in pairs for text in (pair.a, pair.b))
    assert [text for text, count in counts.items() if count > 1] == []
    assert [text for text in counts if text != text.strip()] == []


def test_no_two_different_pairs_are_one_but_for_capitals_and_marks(pairs: list[Pair]) -> None:
    def bare(text: str) -> str:
        return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())

    met: dict[tuple[str, ...], str] = {}
    for pair in pairs:
        key = tuple(sorted((bare(pair.a), bare(pair.b))))
        assert key not in met, (pair.id, met[key])
        met[key] = pair.id


def test_unrelated_questions_are_about_as_long_as_each_other(pairs: list[Pair]) -> None:
    unrelated = [pair for pair in pairs if pair.kind == "unrelated"]
    for pair in unrelated:
        longer, shorter = sorted((len(pair.a), len(pair.b)), reverse=True)
        assert longer - shorter <= max(8, longer / 3), pair.id


def test_the_two_files_share_no_pair_and_no_text(dev: list[Pair], held_out: list[Pair]) -> None:
    assert not {pair.id for pair in dev} & {pair.id for pair in held_out}
    texts = [{text for pair in some for text in (pair.a, pair.b)} for some in (dev, held_out)]
    assert not texts[0] & texts[1]


def test_pairs_are_numbered_in_the_order_of_writing(dev: list[Pair], held_out: list[Pair]) -> None:
    numbers = [f"q{at:04}" for at in range(1, len(dev) + len(held_out) + 1)]
    assert sorted(pair.id for pair in dev + held_out) == numbers
    assert dev == sorted(dev, key=lambda pair: pair.id)
    assert held_out == sorted(held_out, key=lambda pair: pair.id)


def test_what_is_held_out_is_enough_by_itself(held_out: list[Pair]) -> None:
    counts = Counter((pair.lang, pair.same) for pair in held_out)
    for lang, different, same in (("en", 110, 70), ("zh", 80, 45), ("mixed", 30, 25)):
        assert counts[lang, False] >= different
        assert counts[lang, True] >= same
    assert {pair.kind for pair in held_out} == {*DIFFERENT, *SAME}


def test_added_pairs_go_to_the_end_of_the_file_that_was_named(tmp_path: Path) -> None:
    files = dev, held_out = tmp_path / "dev", tmp_path / "held_out"
    for path in files:
        write_pairs(path, ())

    def new(numbers: range) -> list[str]:
        return [json.dumps({"kind": "number", "a": f"{n} + 1?", "b": f"{n} + 2?"}) for n in numbers]

    assert add(new(range(100, 103)), held_out, files) == 3
    assert add(new(range(200, 202)), dev, files) == 2
    assert add(new(range(300, 301)), held_out, files) == 1
    assert [pair.id for pair in read_pairs(dev)] == ["q0004", "q0005"]
    assert [pair.id for pair in read_pairs(held_out)] == ["q0001", "q0002", "q0003", "q0006"]
    assert read_pairs(held_out)[3].a == "300 + 1?"


@pytest.mark.parametrize(
    ("kind", "b", "said"),
    [("colour", "y", "none of the kinds"), ("number", "x", "there already")],
)
def test_a_pair_that_does_not_fit_is_refused_and_nothing_is_added(
    tmp_path: Path, kind: str, b: str, said: str
) -> None:
    files = dev, held_out = tmp_path / "dev", tmp_path / "held_out"
    for path in files:
        write_pairs(path, ())
    fits = json.dumps({"kind": "number", "a": "1", "b": "2"})
    with pytest.raises(ValueError, match=said):
        add([fits, json.dumps({"kind": kind, "a": "x", "b": b})], dev, files)
    assert read_pairs(dev) + read_pairs(held_out) == []


class Letters:
    """An embedding that knows which letters a text has, and reads no Chinese."""

    def embed(self, texts: list[str]) -> np.ndarray:
        rows = np.array([[text.count(chr(c)) for c in range(128)] for text in texts], np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)

    def reads(self, text: str) -> bool:
        return text.isascii()


FOUR = [
    Pair("q0001", "en", "number", "add 1", "add 2", False),
    Pair("q0002", "en", "word_order", "ab cd", "cd ab", True),
    Pair("q0003", "zh", "negation", "能吃吗", "不能吃吗", False),
    Pair("q0004", "en", "unrelated", "xyz", "abc", False),
]


def test_a_wrong_hit_counts_in_either_order_and_a_find_only_in_both() -> None:
    def one_way(a: str, b: str) -> SimpleNamespace:
        return SimpleNamespace(same=a > b, reason="later" if a > b else "earlier")

    judged = judge_pairs(FOUR[:2], one_way, None)
    assert [(one.hit, one.wrong, one.missed) for one in judged] == [
        (True, True, False),
        (False, False, True),
    ]
    assert [one.reason for one in judged] == ["later", "earlier"]


def test_the_tables_hold_the_judge_beside_the_thresholds() -> None:
    def letters_agree(a: str, b: str) -> SimpleNamespace:
        return SimpleNamespace(same=sorted(a) == sorted(b), reason="")

    judged = judge_pairs(FOUR, letters_agree, Letters())
    assert [one.similarity for one in judged][1] == pytest.approx(1)
    assert [one.read for one in judged] == [True, True, False, True]
    assert cells(by_language(judged), "all") == (
        ["all", "0 of 3", "1", "1", "0", "0", "1 of 1", "1", "1", "1", "1", "1.00", "3 of 4"]
    )
    assert cells(by_kind(judged, same=False), "number") == (
        ["number", "0 of 1", "–", "–", "0 of 1", "1", "1", "0", "0"]
    )
    bare = judge_pairs(FOUR, letters_agree, None)
    assert cells(by_language(bare), "zh") == ["zh", "0 of 1", "–", "–", "–"]


def test_what_was_judged_wrongly_is_counted_and_can_be_shown() -> None:
    def all_but_order(a: str, b: str) -> SimpleNamespace:
        return SimpleNamespace(same=a[:3] == b[:3], reason="start")

    judged = judge_pairs(FOUR, all_but_order, None)
    head = told("dev", judged).splitlines()[0]
    assert head == "## dev: 1 wrong hits among 3 pairs that differ, 0 of 1 paraphrases found"
    assert shown(judged).splitlines() == [
        "wrong hit q0001 number (start)",
        "  'add 1'",
        "  'add 2'",
        "not found q0002 word_order (start)",
        "  'ab cd'",
        "  'cd ab'",
    ]


def test_auc_is_the_share_of_paraphrases_that_are_more_alike() -> None:
    def judged(similarity: float, same: bool) -> Judged:
        return Judged(
            Pair("", "en", "voice" if same else "unit", "", "", same), same, "", similarity
        )

    some = [judged(0.9, True), judged(0.4, True), judged(0.5, False), judged(0.4, False)]
    assert auc(some) == pytest.approx((2 + 0.5) / 4)
    assert auc(some[:2]) is None


def cells(table: str, first: str) -> list[str]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return next(line for line in lines if line[0] == first)


def test_the_judge_takes_no_pair_that_differs_for_the_same(pairs: list[Pair]) -> None:
    wrong = [pair.id for pair in pairs if not pair.same and same_question(pair.a, pair.b).same]
    assert wrong == []


def test_the_judge_finds_enough_of_the_english_paraphrases(dev: list[Pair]) -> None:
    english = [pair for pair in dev if pair.same and pair.lang == "en"]
    found = sum(same_question(pair.a, pair.b).same for pair in english)
    assert found / len(english) >= 0.45  # 93 of 189; what no rewrite can be trusted with isn't
