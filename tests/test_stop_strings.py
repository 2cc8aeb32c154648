"""An answer ends before a stop string, however it comes in pieces, and nothing of one is shown."""

from __future__ import annotations

import random

import pytest

from llm.stop_strings import StopStrings, read_lines, write_lines


def ends_before(text: str, stop: tuple[str, ...]) -> str:
    """The plain meaning: letter by letter, until the text ends with a stop string."""
    for end in range(1, len(text) + 1):
        for one in stop:
            if text[:end].endswith(one):
                return text[: end - len(one)]
    return text


def in_pieces(text: str, dice: random.Random) -> list[str]:
    cuts = sorted(dice.randrange(len(text) + 1) for _ in range(dice.randrange(len(text) + 1)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def test_random_texts_in_random_pieces_end_where_they_should() -> None:
    """Two letters only, so that stop strings overlap, repeat and nearly come all the time."""
    dice = random.Random(7)
    found = 0
    for _ in range(20_000):
        text = "".join(dice.choice("ab") for _ in range(dice.randrange(16)))
        stop = tuple(
            "".join(dice.choice("ab") for _ in range(dice.randrange(1, 6)))
            for _ in range(dice.randrange(5))
        )
        meant = ends_before(text, stop)
        cutter, shown, told = StopStrings(stop), "", ""
        for piece in in_pieces(text, dice):
            shown += cutter.push(piece)
            told += piece
            assert meant.startswith(shown), "part of a stop string was shown"
            if cutter.found:
                break
            held = told[len(shown) :]
            assert held == "" or any(one.startswith(held) and one != held for one in stop), (
                "more was held back than could be the beginning of a stop string"
            )
        assert cutter.found == (meant != text)
        assert shown + cutter.flush() == meant
        found += cutter.found
    assert 5_000 < found < 19_000, "the dice hardly ever, or always, threw a stop string"


def test_the_string_that_is_complete_first_wins_and_then_the_one_named_first() -> None:
    for stop, meant in (
        (("bcd", "c"), "ab"),
        (("abc", "bc"), ""),
        (("bc", "abc"), "a"),
    ):
        cutter = StopStrings(stop)
        assert cutter.push("abcde") == meant
        assert cutter.found


def test_nothing_comes_after_a_stop_string() -> None:
    cutter = StopStrings(("END",))
    assert cutter.push("one EN") == "one "
    assert cutter.push("D two") == ""
    assert cutter.push("three") == cutter.flush() == ""


def test_without_stop_strings_nothing_is_held_back() -> None:
    cutter = StopStrings(())
    assert [cutter.push(piece) for piece in ("a", "", "b\n")] == ["a", "", "b\n"]
    assert (cutter.found, cutter.flush()) == (False, "")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("", ()),
        ("\n\n", ()),
        ("###", ("###",)),
        ("###\nUser: ", ("###", "User: ")),
        (r"\nUser:", ("\nUser:",)),
        (r"\t\\n\x", ("\t\\n\\x",)),
        ("停止\n停止", ("停止",)),
    ],
)
def test_stop_strings_are_typed_one_a_line(typed: str, meant: tuple[str, ...]) -> None:
    assert read_lines(typed) == meant


def test_what_is_written_is_read_again_as_it_was() -> None:
    dice = random.Random(1)
    for _ in range(2_000):
        stop = tuple(
            {"".join(dice.choice("nt\\\n\t ") for _ in range(dice.randrange(1, 6))) for _ in "123"}
        )
        assert read_lines(write_lines(stop)) == stop
