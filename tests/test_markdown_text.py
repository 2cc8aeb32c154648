"""Markdown as a line of plain text."""

from __future__ import annotations

import pytest

from llm.markdown_text import words_of


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", ""),
        (
            "## A **bold** _word_ and `code`\n\nNext\nline.  \nBreak",
            "A bold word and code Next line. Break",
        ),
        ("1. one\n2. two\n   - *in*", "one two in"),
        ("> quoted\n\n---\n\nafter", "quoted after"),
        ("| a | **b** |\n| - | - |\n| 1 | `2` |", "a b 1 2"),
        ("```python\nx = [1]  # **no**\n```", "x = [1] # **no**"),
        (
            "[here](http://a.b/c) and [there][x] ![a picture](p.png)\n\n[x]: http://d",
            "here and there a picture",
        ),
        ("~~gone~~ \\*kept\\* &amp; <b>raw</b>", "gone *kept* & <b>raw</b>"),
        ("snake_case_name 2 * 3 * 4", "snake_case_name 2 * 3 * 4"),
        ("**粗体**和`代码`：\n\n- 一\n- 二", "粗体和代码： 一 二"),
        ("$x^2$\n\n$$\n\\frac{1}{2}\n$$", "$x^2$ \\frac{1}{2}"),
        ("one\r\ntwo\rthree", "one two three"),
    ],
)
def test_only_the_words_are_left(source: str, words: str) -> None:
    assert words_of(source) == words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("A **bo", "A bo"),
        ("See `co", "See co"),
        ("See [the li", "See the li"),
        ("```python\nprint(", "print("),
        ("## Head\n\n- one\n- **tw", "Head one tw"),
    ],
)
def test_what_is_cut_in_the_middle_shows_no_marks(source: str, words: str) -> None:
    assert words_of(source, cut=True) == words


def test_what_is_whole_is_not_held_back() -> None:
    assert words_of("yes\n\n2") == "yes 2"
