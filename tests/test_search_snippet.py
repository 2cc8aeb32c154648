"""A snippet shows what was found, however it was typed."""

from __future__ import annotations

import time

import pytest

from llm.search_snippet import snippet_of
from llm.search_words import MAX_WORD_CHARS, SearchQuery, segmented

FAR = "and many other words " * 20
CHARS = 60


@pytest.mark.parametrize(
    ("typed", "there"),
    [
        ("needle", "needle"),
        ("NEED", "Needles"),
        ("“sharp needle", "sharp, NEEDLE"),
        ("„sharp needle“", "sharp needle"),
        ("«needle»", "needle"),
        ("「尖的针」", "尖的针"),
        ("尖的针", "尖，的针"),
        ("针", "针"),
        ("针abc", "针abc"),
        ("ｎｅｅｄｌｅ", "needle"),
        ("needle", "ｎｅｅｄｌｅ"),
        ("ﬁne", "fine"),
        ("STRASSE", "Straße"),
        ("café", "cafe\u0301"),
        ("needle-case", "needle case"),
        ("パン", "ﾊﾟﾝ"),
        ("soft", "so\u00adft"),
        ("n" * 80, "n" * 80),
    ],
)
@pytest.mark.parametrize("before", ["", "½ … ﷺ and other wide ones "], ids=["plain", "unfolded"])
def test_the_place_is_shown(typed: str, there: str, before: str) -> None:
    text = f"{before * 5}{FAR}{there} {FAR}"
    # What the database finds, for which a snippet is asked.
    assert all(phrase.needle in f" {segmented(text)}" for phrase in SearchQuery.read(typed).phrases)
    shown = snippet_of(text, typed, CHARS + MAX_WORD_CHARS)
    assert there in shown
    assert shown.startswith("…")
    assert len(shown) <= CHARS + MAX_WORD_CHARS + 2


def test_a_part_of_a_word_isnt_what_was_looked_for() -> None:
    text = f"artful {FAR}the art of it {FAR}"
    assert "the art of" in snippet_of(text, '"art"', CHARS)
    assert "artful" in snippet_of(text, "art", CHARS)


def test_without_any_the_beginning_is_shown() -> None:
    for typed in ("", "?!", "absent"):
        assert snippet_of(f"first {FAR}", typed, 10) == "first and…"
    assert snippet_of("", "x", 10) == ""


def test_five_hundred_long_texts_have_theirs_soon() -> None:
    text = f"{'Ende … ' * 1_500}needle {FAR}"
    started = time.process_time()
    for _ in range(500):
        assert "needle" in snippet_of(text, "needle", CHARS)
    assert time.process_time() - started < 5
