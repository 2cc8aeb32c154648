"""Tells a model's reasoning from its answer where both come as one text.

The tags are those of DeepSeek R1, Qwen3, GLM, MiniMax, Nemotron and most others (`<think>`), of
EXAONE (`<thought>`), of Seed-OSS, Kimi-VL and Magistral, of widespread fine-tunes (`<thinking>`,
`<reasoning>`), and of gpt-oss ("harmony"): its first analysis message up to the final one.
Not read are harmony's other channels (they belong to tool calls), `<answer>` around an answer, and
models that announce their reasoning in plain words.

Source: the models' own chat templates, and vLLM's reasoning parsers
(https://docs.vllm.ai/en/latest/features/reasoning_outputs.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from llm.types import Delta

TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
}
"""What opens reasoning, and what closes it."""

_ANSWER_OPENS = "<|channel|>final<|message|>"  # gpt-oss, where it didn't think at all
_OPENINGS = (*TAGS, _ANSWER_OPENS)
_CLOSINGS = tuple(TAGS.values())
_CLOSING = re.compile("|".join(map(re.escape, _CLOSINGS)))
_FIRST_CHARS = frozenset(tag[0] for tag in (*_OPENINGS, *_CLOSINGS))
_HARMONY_TOKENS = frozenset({"<|start|>", "<|channel|>", "<|message|>", "<|end|>"})

MAX_SPACE_CHARS = 200
"""White space that may come before an opening tag; with more it's an answer of white space."""

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_SPACES = re.compile(r"[ \t]{0,20}")
_LINE_END = re.compile(r"[ \t]{0,20}(?:[\r\n]|\Z)")


class ReasoningSplitter:
    """Splits one text that arrives in pieces, cut anywhere, into reasoning and answer.

    Reasoning stands at the very start, white space aside, and goes on to its closing tag; the
    first one counts. Without a closing tag all of it is reasoning. Tags anywhere else are text.
    A closing tag without an opening one, which is what comes where the chat template has already
    opened it in the prompt, makes all text before it reasoning (`Delta` of kind `recast`): if it
    is the first, ends its line, and stands in no code.

    Only what may be part of a tag is held back. The deltas joined are the text without the tags.

    Thread-safety: none; one for each answer.

    Args:
        opened: the opening tag that the prompt ended with; "" where it ended otherwise.
        goes_on: it goes on with an answer's text, where no reasoning begins any more: tags are
            text, and an opening one that the prompt ends with is the answer's own.
    """

    def __init__(self, opened: str = "", *, goes_on: bool = False) -> None:
        self._state: Literal["start", "reasoning", "text"] = "text" if goes_on else "start"
        self._closing = TAGS.get(opened, "")
        self._held = ""
        self._said: list[str] | None = None if opened or goes_on else []
        """The text so far, while all of it may still turn out to be reasoning."""
        self._apart = False

    def told_apart(self) -> None:
        """The server tells reasoning from text itself: no text of it will turn out as reasoning."""
        self._apart = True

    def push(self, text: str) -> list[Delta]:
        """Take a piece; what is certain now, often just that piece. Never an empty text."""
        return self._split(text, final=False)

    def end(self) -> list[Delta]:
        """Nothing more comes: what was held back."""
        return self._split("", final=True)

    def _split(self, text: str, *, final: bool) -> list[Delta]:
        if self._state == "text" and not self._held and _FIRST_CHARS.isdisjoint(text):
            return self._text(text)
        self._held += text
        if self._state == "start" and not self._begin(final=final):
            return []
        if self._state == "reasoning":
            return self._reasoning(final=final)
        return self._answer(final=final)

    def _begin(self, *, final: bool) -> bool:
        """Look for an opening tag; False while it can't be told."""
        body = self._held.lstrip()
        space = self._held[: len(self._held) - len(body)]
        undecided = any(tag.startswith(body) for tag in _OPENINGS)
        if undecided and body not in _OPENINGS and not final and len(space) <= MAX_SPACE_CHARS:
            return False
        opening = next((tag for tag in _OPENINGS if body.startswith(tag)), None)
        if opening is not None:
            self._held = space + body.removeprefix(opening)
            self._closing = TAGS.get(opening, "")
            self._said = None
        self._state = "reasoning" if self._closing else "text"
        return True

    def _reasoning(self, *, final: bool) -> list[Delta]:
        before, closing, after = self._held.partition(self._closing)
        if closing:
            self._state, self._held = "text", ""
            return [*_delta(before, "reasoning"), *_delta(after, "text")]
        keep = len(before) if final else _tag_beginning(before, (self._closing,))
        self._held = before[keep:]
        return _delta(before[:keep], "reasoning")

    def _answer(self, *, final: bool) -> list[Delta]:
        text = self._held
        if self._said is None:
            self._held = ""
            return self._text(text)
        closing = _CLOSING.search(text)
        if closing is None:
            keep = len(text) if final else _tag_beginning(text, _CLOSINGS)
            self._held = text[keep:]
            return self._text(text[:keep])
        before, after = text[: closing.start()], text[closing.end() :]
        if _SPACES.fullmatch(after) and not final:
            self._held = text[closing.start() :]
            return self._text(before)
        said = "".join([*self._said, before])
        self._held, self._said = "", None
        if _LINE_END.match(after) and self._may_be_reasoning(said, closing[0]):
            recast = [Delta("", "recast")] if said else []
            return [*_delta(before, "text"), *recast, *_delta(after, "text")]
        return _delta(text, "text")

    def _may_be_reasoning(self, said: str, closing: str) -> bool:
        if self._apart and said.strip():
            return False
        opening = next(tag for tag, its_closing in TAGS.items() if its_closing == closing)
        return opening not in said and not _ends_in_code(said)

    def _text(self, text: str) -> list[Delta]:
        if self._said is not None and text:
            self._said.append(text)
        return _delta(text, "text")


def opened_at_the_end(prompt: str) -> str:
    """The opening tag that a rendered prompt ends with, white space aside; "" if with none."""
    end = prompt.rstrip()
    return next((tag for tag in TAGS if end.endswith(tag)), "")


def tag_tokens(special_tokens: Iterable[str]) -> frozenset[str]:
    """Which of a tokenizer's special tokens are tags or parts of them.

    Decoding an answer leaves special tokens out; these must not be.
    """
    special = frozenset(special_tokens)
    tags = special & {*TAGS, *_CLOSINGS}
    # Others use some of harmony's for other things; only it has channels.
    return tags | (special & _HARMONY_TOKENS if "<|channel|>" in special else frozenset())


def _delta(text: str, kind: Literal["text", "reasoning"]) -> list[Delta]:
    return [Delta(text, kind)] if text else []


def _tag_beginning(text: str, tags: tuple[str, ...]) -> int:
    """Where the last characters begin that may be the beginning of a tag; the length if none are."""
    longest = max(map(len, tags)) - 1
    for start in range(max(0, len(text) - longest), len(text)):
        if text[start] in _FIRST_CHARS and any(tag.startswith(text[start:]) for tag in tags):
            return start
    return len(text)


def _ends_in_code(text: str) -> bool:
    """Whether what follows `text` is inside a fence, or inside backticks on its line."""
    fence = ""
    for match in _FENCE.finditer(text):
        mark, rest = match[1], match[2]
        if not fence:
            fence = mark if mark[0] == "~" or "`" not in rest else ""
        elif mark.startswith(fence) and not rest.strip():
            fence = ""
    return bool(fence) or text[text.rfind("\n") + 1 :].count("`") % 2 == 1
