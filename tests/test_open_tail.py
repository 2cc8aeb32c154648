"""The open tail: no raw markup flashes, nothing is held back for long."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from llm.open_tail import presentable

CORPUS = {
    path.stem: path.read_bytes().decode()
    for path in sorted((Path(__file__).parent / "data" / "markdown").glob("*.md"))
}


@pytest.mark.parametrize(
    ("tail", "shown"),
    [
        ("plain text", "plain text"),
        ("some **bold", "some **bold**"),
        ("some **bold*", "some **bold**"),
        ("some **", "some"),
        ("*a **b", "*a **b***"),
        ("***a", "***a***"),
        ("_a", "_a_"),
        ("snake_case_", "snake_case"),
        ("2 * 3", "2 * 3"),
        ("~~a", "~~a~~"),
        ("`code", "`code`"),
        ("``a `b", "``a `b``"),
        ("a `", "a"),
        ("**`x", "**`x`**"),
        ("`**x", "`**x`"),
        ("see [text", "see text"),
        ("see [text]", "see text"),
        ("see [text](htt", "see text"),
        ("see [text][re", "see text"),
        ("see [**te", "see **te**"),
        ("see [text](http://x)", "see [text](http://x)"),
        ("see ![alt](htt", "see !alt"),
        ("see <http://x", "see"),
        ("note[^1", "note"),
        ("a $x", "a"),
        ("a $5 and", "a $5 and"),
        ("a $x + y$", "a $x + y$"),
        ("a \\(x", "a"),
        ("a \\(x\\)", "a \\(x\\)"),
        ("a $$x", "a"),
        ("a \\", "a"),
        ("a &am", "a"),
        ("a &amp;", "a &amp;"),
        ("- a\n- **b", "- a\n- **b**"),
        ("> **a\n> b", "> **a\n> b**"),
        ("# **a", "# **a**"),
        ("text\n-", "text\n"),
        ("text\n--", "text\n"),
        ("text\n=", "text\n"),
        ("text\n#", "text\n"),
        ("text\n1", "text\n"),
        ("text\n12.", "text\n"),
        ("text\n>", "text\n"),
        ("text\n``", "text\n"),
        ("text\n```py", "text\n"),
        ("text\n|", "text\n"),
        ("text\n$", "text\n"),
        ("text\n:", "text\n"),
        ("text\n* ", "text\n"),
        ("- a\n- [ ", "- a\n"),
        ("- a\n  -", "- a\n"),
        ("#", ""),
        ("## ", ""),
        ("# T", "# T"),
        ("```py", ""),
        ("```py\nx = **a", "```py\nx = **a"),
        ("```py\nx\n``", "```py\nx\n"),
        ("```py\nx\n```", "```py\nx\n```"),
        ("- ```\n  x\n  `", "- ```\n  x\n"),
        ("```\n-", "```\n-"),
        ("| a | b", ""),
        ("| a | b |\n", ""),
        ("| a | b |\n| --", ""),
        ("| a | b |\n|---|---|\n", "| a | b |\n|---|---|\n"),
        ("| a | b |\n|---|---|\n| **c", "| a | b |\n|---|---|\n| **c**"),
        ("a | b", "a"),
        ("text\n| a | b |\n|-", "text\n"),
        ("$$\nx = \\frac{1", ""),
        ("text\n\\[\nx", "text\n"),
        ("$$\nx\n$$", "$$\nx\n$$"),
        ("- a\n  $$\n  x", "- a\n"),
        ("[x]: http://a", ""),
        ("hi 👨", "hi "),
        ("hi 👨\u200d", "hi "),
        ("hi 👨\u200d👩\u200d👧", "hi "),
        ("hi 👨\u200d👩\u200d👧.", "hi 👨\u200d👩\u200d👧."),
        ("hi 👍🏽", "hi "),
        ("hi 🇨", "hi "),
        ("hi 🇨🇳🇩", "hi 🇨🇳"),
        ("hi 1\ufe0f", "hi "),
        ("**done** text\n\n", "**done** text\n\n"),
        ("**never closed\n\n", "**never closed\n\n"),
        ("", ""),
    ],
)
def test_the_tail_is_shown_as_if_it_were_finished(tail: str, shown: str) -> None:
    assert presentable(tail) == shown


@pytest.mark.parametrize(
    "opening", ["$x ", "\\(x ", "[x ", "a | b ", "<x ", "&x ", "\\[x ", "$$x "]
)
def test_what_never_closes_is_shown_after_all(opening: str) -> None:
    words = "word and more " * 40
    assert len(presentable("Start " + opening + words)) > 500


# Formulas are held until they end.
WITHOUT_FORMULAS = [name for name in CORPUS if "formula" not in name and name != "answer"]


@pytest.mark.parametrize("name", WITHOUT_FORMULAS)
def test_nothing_but_formulas_and_table_heads_is_held_for_long(name: str) -> None:
    text = CORPUS[name]
    for end in range(len(text) + 1):
        held = re.sub(r"\W", "", text[:end])[len(re.sub(r"\W", "", presentable(text[:end]))) :]
        assert len(held) <= 60, (text[:end], presentable(text[:end]))


@pytest.mark.parametrize("unit", ["[", "`", "$", "*", "**a ", "_a", "\\(", "<", "| a |\n", "[a]("])
def test_a_hundred_thousand_characters_of_markup_take_linear_time(unit: str) -> None:
    started = time.process_time()
    presentable(unit * (100_000 // len(unit)))
    assert time.process_time() - started < 2.0
