"""How an answer is drawn and written as it grows, and which exit codes errors have."""

from __future__ import annotations

import io

import pyte
import pytest

from llm import demo_answers
from llm.errors import (
    ConnectionLostError,
    InternalError,
    LLMError,
    MemoryWindowError,
    ModelGoneError,
    ServerKeyError,
    SettingsError,
    StopStringsError,
)
from llm.job import Snapshot
from llm.terminal_exit import CODES, NO_READER, STOPPED, code_of_error
from llm.terminal_plain import PlainAnswer
from llm.terminal_rich import RichAnswer
from llm.terminal_text import clean

COLUMNS, ROWS = 60, 20


def answer(text: str, reasoning: str = "", *, done: bool = False) -> Snapshot:
    return Snapshot(text=text, reasoning=reasoning, phase="done" if done else "answering")


def drawn(text: str, step: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is on screen and scrolled away, after the answer came in pieces of this length."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("LINES", str(ROWS))
    out = io.StringIO()
    view = RichAnswer(out)
    for end in range(step, len(text), step):
        view.draw(answer(text[:end]))
    view.draw(answer(text, done=True))
    view.end()
    screen = pyte.HistoryScreen(COLUMNS, ROWS, history=10_000)
    pyte.Stream(screen).feed(out.getvalue().replace("\n", "\r\n"))
    gone = ["".join(line[at].data for at in range(COLUMNS)) for line in screen.history.top]
    return "\n".join(line.rstrip() for line in (*gone, *screen.display)).rstrip().split("\n")


@pytest.mark.parametrize(
    "text",
    [
        demo_answers.ENGLISH,
        demo_answers.CHINESE,
        "word " * 800,
        "".join(f"- item {number}\n" for number in range(400)),
        "> " * 400 + "deep",
        "![a picture](https://example.org/x.png) before <b>bold</b> & List<String>",
        "```\n" + "code\n" * 50,
    ],
    ids=["english", "chinese", "paragraph", "list", "deep", "odd", "open-fence"],
)
def test_what_is_left_on_the_terminal_is_the_same_however_it_came(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = drawn(text, len(text) + 1, monkeypatch)
    assert drawn(text, max(3, len(text) // 100), monkeypatch) == at_once
    for word in ("item 399", "deep", "<b>bold</b>", "List<String>", "https://example.org/x.png"):
        assert (word in text) == any(word in line for line in at_once)


def test_what_is_printed_stays_though_an_address_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = drawn("See [this].\n\nMore.\n\n[this]: /there\n", 3, monkeypatch)
    assert lines == ["See [this].", "", "More."]


def test_text_that_turns_out_to_be_reasoning_is_not_taken_for_the_answer() -> None:
    out, thoughts = io.StringIO(), io.StringIO()
    view = PlainAnswer(out, thoughts)
    view.draw(answer("Let me see"))
    view.draw(answer("", "Let me see"))
    view.draw(answer("Yes.", "Let me see", done=True))
    view.end()
    assert out.getvalue() == "Let me see\nYes.\n"  # what is written can't be taken back
    assert thoughts.getvalue() == "Let me see\n"


def test_an_answer_without_text_writes_nothing() -> None:
    out = io.StringIO()
    view = PlainAnswer(out, None)
    view.draw(answer("\n\n", "Only thoughts.", done=True))
    view.end()
    assert out.getvalue() == ""


def test_no_control_character_is_left_but_line_breaks_and_tabs() -> None:
    every = "".join(map(chr, range(0x110)))
    assert [c for c in clean(every) if c < " " or "\x7f" <= c <= "\x9f"] == ["\t", "\n"]
    assert clean("好🙂\u200dé") == "好🙂\u200dé"


def tree(kind: type[LLMError] = LLMError) -> list[type[LLMError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in tree(child))]


def test_every_error_has_an_exit_code_by_its_branch() -> None:
    for kind in tree():
        code = code_of_error(kind)
        assert code in CODES
        assert code not in (0, 7, STOPPED, NO_READER), kind
    assert [
        code_of_error(kind)
        for kind in (
            *(InternalError, StopStringsError, SettingsError, ConnectionLostError),
            *(ServerKeyError, MemoryWindowError, ModelGoneError),
        )
    ] == [1, 2, 3, 4, 5, 6, 8]
