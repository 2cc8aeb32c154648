"""What is indexed of a text, and what is made of a typed search."""

from __future__ import annotations

import pytest

from llm.search_words import (
    MAX_INDEXED_CHARS,
    MAX_QUERY_CHARS,
    MAX_WORD_CHARS,
    Phrase,
    SearchQuery,
    segmented,
)


def closed(*entries: str) -> Phrase:
    return Phrase(entries)


def growing(*entries: str) -> Phrase:
    return Phrase(entries, open=True)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", ""),
        ("Hello, World 42!", "hello world 42 "),
        ("中文检索", "中文 文检 检索 索 "),
        ("我", "我 "),
        ("第3章", "第 3 章 "),
        ("好，我", "好我 我 "),
        ("用Python写", "用 python 写 "),
        ("ＡＢＣ①ﬁne Straße", "abc1fine strasse "),
        ("ｶﾞﾊﾞｰ", "ガバ バー ー "),
        ("한국어는", "한국 국어 어는 는 "),
        ("cafe\u0301 naïve", "café naïve "),
        ("हिन्दी भाषा", "हिन्दी भाषा "),
        ("ภาษา", "ภา าษ ษา า "),
        ("ho\u00adtel 葛\U000e0100城 ❤\ufe0f", "hotel 葛城 城 "),
        ("a\u200bb a_b c-d don't", "a b a b c d don t "),
        ("a\x00b\ud800c\U0010ffff", "a b c "),
        ("\U00020000\U00020001", "\U00020000\U00020001 \U00020001 "),
    ],
)
def test_what_is_indexed(text: str, entries: str) -> None:
    assert segmented(text) == entries


def test_of_a_long_text_and_a_long_word_the_beginning_is_indexed() -> None:
    assert segmented("y" * 1000) == "y" * MAX_WORD_CHARS + " "
    text = segmented("的" * MAX_INDEXED_CHARS + "end")
    assert "end" not in text
    assert text.count(" ") == MAX_INDEXED_CHARS
    # One character that NFKC makes eighteen of.
    assert len(segmented("\ufdfa" * MAX_INDEXED_CHARS)) <= MAX_INDEXED_CHARS + 1


@pytest.mark.parametrize(
    ("typed", "phrases"),
    [
        ("", []),
        (" \t -*:()\\ ", []),
        ('""', []),
        ("hello wor", [closed("hello"), growing("wor")]),
        ("中文", [closed("中文")]),
        ("全文检索", [closed("全文", "文检", "检索")]),
        ("全文 检索", [closed("全文"), closed("检索")]),
        ("的", [growing("的")]),
        ("教程 pyth 中文", [closed("教程"), growing("pyth"), closed("中文")]),
        ('"hello world" foo', [closed("hello", "world"), growing("foo")]),
        ('hel "foo bar"', [growing("hel"), closed("foo", "bar")]),
        ("“你好，世界”", [closed("你好", "好世", "世界")]),
        ("「用 Python 写」", [growing("用", "python", "写")]),
        ('"全文 abc"', [closed("全文", "文", "abc")]),
        ('ab "hello wor', [closed("ab"), growing("hello", "wor")]),
        ("a a b b", [closed("a"), closed("b"), growing("b")]),
        ("a AND NOT b*", [closed("a"), closed("and"), closed("not"), growing("b")]),
        ("x:y !z|w", [closed("x"), closed("y"), closed("z"), growing("w")]),
        ("a\x00b\ud800", [closed("a"), growing("b")]),
    ],
)
def test_what_a_typed_search_means(typed: str, phrases: list[Phrase]) -> None:
    assert SearchQuery.read(typed).phrases == tuple(phrases)


def test_of_a_long_search_the_beginning_counts() -> None:
    assert SearchQuery.read("x " * 5000) == SearchQuery((closed("x"), growing("x")))
    (phrase,) = SearchQuery.read("中" * 10_000).phrases
    assert len(phrase.entries) == MAX_QUERY_CHARS - 1
    assert len(SearchQuery.read('" ' * 5000 + "x").phrases) == 0
