"""Reasoning and answer told apart in one text, cut anywhere."""

from __future__ import annotations

import random

import pytest

from llm.reasoning import (
    MAX_SPACE_CHARS,
    TAGS,
    ReasoningSplitter,
    opened_at_the_end,
    tag_tokens,
)
from llm.types import Delta

NOT_HARMONY = {opening: closing for opening, closing in TAGS.items() if opening[:2] != "<|"}


class Reader:
    """What a job makes of the deltas: the reasoning, and the text that is the answer."""

    def __init__(self, opened: str = "", *, apart: bool = False) -> None:
        self._splitter = ReasoningSplitter(opened)
        if apart:
            self._splitter.told_apart()
        self.reasoning = self.text = self.shown = ""

    def take(self, deltas: list[Delta]) -> list[Delta]:
        for delta in deltas:
            assert bool(delta.text) != (delta.kind == "recast")
            if delta.kind == "recast":
                self.reasoning, self.text = self.reasoning + self.text, ""
            elif delta.kind == "reasoning":
                self.reasoning += delta.text
            else:
                self.text += delta.text
            self.shown += delta.text
        return deltas

    def push(self, piece: str) -> list[Delta]:
        return self.take(self._splitter.push(piece))

    def end(self) -> list[Delta]:
        return self.take(self._splitter.end())


def read(*pieces: str, opened: str = "", apart: bool = False) -> tuple[str, str]:
    """The reasoning and the answer."""
    reader = Reader(opened, apart=apart)
    for piece in pieces:
        reader.push(piece)
    reader.end()
    return reader.reasoning, reader.text


def cuts(text: str, seed: int) -> list[str]:
    lot = random.Random(seed)
    places = sorted(lot.sample(range(1, len(text)), min(len(text) - 1, lot.randrange(1, 12))))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@pytest.mark.parametrize(("opening", "closing"), TAGS.items())
def test_each_pair_of_tags_is_known(opening: str, closing: str) -> None:
    assert read(f"{opening}let me see{closing}42") == ("let me see", "42")
    assert read(f" \n{opening}\nso\n{closing}\n\n42") == (" \n\nso\n", "\n\n42")


@pytest.mark.parametrize(("opening", "closing"), TAGS.items())
def test_an_unclosed_thought_is_never_the_answer(opening: str, closing: str) -> None:
    assert read(f"{opening}let me see") == ("let me see", "")
    half = closing[:-1]
    assert read(f"{opening}let me see{half}") == (f"let me see{half}", "")


@pytest.mark.parametrize(("opening", "closing"), TAGS.items())
def test_the_first_closing_tag_ends_it_and_every_tag_after_it_is_text(
    opening: str, closing: str
) -> None:
    more = f"a {closing} b {opening} c {closing}\nd"
    assert read(f"{opening}x{opening}y{closing}{more}") == (f"x{opening}y", more)


@pytest.mark.parametrize(
    "text",
    [
        "Hello",
        "The <think> tag opens, the </think> tag closes.",
        "`<think>`",
        "Models write\n\n<think>\nso\n</think>\n\nand then the answer.",
        "```\n<think>\nhm\n</think>\n```",
        "```\n</think>\n```\nis how it ends",
        "> ~~~~\n> ```\n> </think>\n> ~~~~",
        "It ends with `</think>\n` or so",
        "</think> is a tag",
        "1 < 2 and a [link](x)",
        "<thinker> and </thinks>\n",
        "< think >",
        "<",
        "</think",
        "  <thi",
        "[TH",
        "    indented code",
        " \n ",
    ],
)
def test_tags_in_code_and_in_mid_answer_are_text(text: str) -> None:
    assert read(text) == ("", text)
    assert read(*text) == ("", text)


@pytest.mark.parametrize("closing", NOT_HARMONY.values())
@pytest.mark.parametrize("end", ["\n\n42", "  \n42", "", "\r\n42"])
def test_a_closing_tag_alone_makes_what_came_before_it_reasoning(closing: str, end: str) -> None:
    text = f"So, `a < b` and\n```\nx\n```\nthen.\n{closing}{end}"
    reasoning = text.partition(closing)[0]
    assert read(text) == (reasoning, end)
    assert read(*text) == (reasoning, end)


def test_a_closing_tag_first_of_all_says_that_it_did_not_think() -> None:
    assert read("</think>\n\n42") == ("", "\n\n42")
    assert read(" \n</think>\n\n42") == (" \n", "\n\n42")


def test_only_the_first_closing_tag_may_stand_alone() -> None:
    text = "The tag </think> ends it.\n</think>\nSo there."
    assert read(text) == ("", text)


def test_a_server_that_tells_them_apart_is_believed() -> None:
    assert read("It ends so:\n</think>\nAll right.", apart=True) == (
        "",
        "It ends so:\n</think>\nAll right.",
    )
    # What its parser left over is no part of the answer.
    assert read("</think>\n42", apart=True) == ("", "\n42")
    assert read("<think>hm</think>42", apart=True) == ("hm", "42")


@pytest.mark.parametrize(("opening", "closing"), TAGS.items())
def test_where_the_prompt_has_opened_it_the_first_text_is_reasoning(
    opening: str, closing: str
) -> None:
    assert read(f"hm\n{closing}\n42", opened=opening) == ("hm\n", "\n42")
    assert read(f"hm `{closing}42", opened=opening) == ("hm `", "42")
    assert read(f"{closing}42", opened=opening) == ("", "42")
    assert read("hm, I", opened=opening) == ("hm, I", "")
    # Some models open it once more.
    assert read(f"{opening}\nhm{closing}42", opened=opening) == ("\nhm", "42")


def test_gpt_oss_may_answer_at_once() -> None:
    assert read("<|channel|>final<|message|>42") == ("", "42")


def test_nothing_is_held_back_that_can_be_told() -> None:
    reader = Reader()
    assert reader.push("Hello ") == [Delta("Hello ")]
    assert reader.push("a <b") == [Delta("a <b")]
    assert reader.push(" </th") == [Delta(" ")]
    assert reader.push("e end") == [Delta("</the end")]
    reader = Reader()
    assert reader.push(" <thi") == []
    assert reader.push("nk>") == [Delta(" ", "reasoning")]
    assert reader.push("hm <") == [Delta("hm ", "reasoning")]
    assert reader.push("/think") == []
    assert reader.push("!") == [Delta("</think!", "reasoning")]
    assert reader.push("</think>so") == [Delta("so")]
    assert reader.push("</think") == [Delta("</think")]
    reader = Reader()
    assert reader.push(" " * (MAX_SPACE_CHARS + 1)) != []


def test_no_character_is_lost_and_the_cuts_change_nothing() -> None:
    lot = random.Random(7)
    parts = [
        *TAGS,
        *TAGS.values(),
        "<",
        "/think>",
        "\n",
        "\n",
        "  ",
        "`",
        "```\n",
        "hm, ",
        "你好🙂",
    ]
    for seed in range(3000):
        text = "".join(lot.choices(parts, k=lot.randrange(1, 9)))
        opened = lot.choice(["", "", *TAGS])
        pieces = cuts(text, seed) if len(text) > 1 else [text]
        whole, cut = Reader(opened), Reader(opened)
        whole.push(text)
        whole.end()
        for piece in pieces:
            cut.push(piece)
        cut.end()
        told = (whole.reasoning, whole.text)
        assert (cut.reasoning, cut.text) == told, (text, opened, pieces)
        assert cut.shown == whole.shown
        if cut.shown != text:
            # One opening tag and its closing one may be missing, and nothing else.
            opening = next((tag for tag in TAGS if text.lstrip().startswith(tag)), "")
            rest = text.replace(opening, "", 1) if opening else text
            rests = [rest]
            for closing in TAGS.values():
                head, tag, tail = rest.partition(closing)
                if tag:
                    rests.append(head + tail)
            assert cut.shown in rests, (text, opened)


def test_a_prompt_that_ends_in_an_open_tag_is_noticed() -> None:
    assert opened_at_the_end("<|im_start|>assistant\n<think>\n") == "<think>"
    assert opened_at_the_end("<|assistant|>\n<thought>\n") == "<thought>"
    assert opened_at_the_end("<think>\n\n</think>\n\n") == ""
    assert opened_at_the_end("<|im_start|>assistant\n") == ""


def test_special_tokens_that_are_tags_are_named() -> None:
    assert tag_tokens(["<s>", "[THINK]", "[/THINK]", "<|end|>"]) == {"[THINK]", "[/THINK]"}
    harmony = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>"]
    assert tag_tokens([*harmony, "<|return|>"]) == set(harmony)


@pytest.mark.parametrize(
    "text",
    [
        "<think>hm</think>42",
        "so\n</think>\n42",
        " </think>",
        "<|channel|>final<|message|>42",
        "a <b> & [THINK]",
    ],
)
def test_what_goes_on_with_an_answer_is_text_tags_and_all(text: str) -> None:
    for opened in ("", "<think>"):
        splitter = ReasoningSplitter(opened, goes_on=True)
        deltas = [delta for char in text for delta in splitter.push(char)]
        assert deltas == [Delta(char) for char in text], "nothing is held back"
        assert splitter.end() == []
