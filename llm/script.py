"""One scripted answer, and the way it goes, mishaps included."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

from llm.errors import LLMError, Reason, Value
from llm.reasons import WrongValueError
from llm.types import DeltaKind

FILLER = "The quick brown fox jumps over the lazy dog. " * 8 + "\n\n"
"""Said by a script that knows when and how much, but not what."""

MOST_DUE_S = 86_400
MOST_PIECE_CHARS = 1_000_000
"""No piece of a schedule comes later, or is longer."""

_TOKEN_LIKE = re.compile(r" ?\S{1,3}|\s{1,4}")


@dataclass(frozen=True, slots=True)
class Script:
    """One answer, and how it goes.

    A piece counts as one token. The mishaps name the piece after which they happen, 0 being
    before the first; they do not happen where the answer is shorter.

    Args:
        text: what is said; `{question}` stands for the last user message.
        tokens_per_s: pieces a second; 0 is as fast as they are taken.
        prefill_s: silence before the first piece.
        chunk_chars: characters a piece; 0 splits into token-like pieces of at most four.
        reasoning: said before the text, as reasoning.
        schedule: each piece's seconds from the question on and its characters, as a flight record
            has them. It stands for `tokens_per_s`, `prefill_s` and `chunk_chars`; the text (without
            one, some filler) is cut or repeated to fill it.
        finish_reason: how it ends by itself; an answer cut by `max_tokens` ends with `length`.
        usage: whether token counts are told at the end.
        stall_after: nothing more comes, until cancelled.
        fail_after: `fail_kind` is raised.
        fail_kind: a sentence of the error tree without its `error-`, such as `out-of-memory`.
        die_after: a RuntimeError is raised. This breaks the contract of `Backend` on purpose, to
            show that a job survives what nobody foresaw.

    Raises:
        WrongValueError: a number is out of range, or there is no such error.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # for scripts files

    text: str = ""
    tokens_per_s: float = 0.0
    prefill_s: float = 0.0
    chunk_chars: int = 0
    reasoning: str = ""
    schedule: tuple[tuple[float, int], ...] = ()
    finish_reason: Literal["stop", "length"] = "stop"
    usage: bool = True
    stall_after: int | None = None
    fail_after: int | None = None
    fail_kind: str = "server-fault"
    die_after: int | None = None

    def __post_init__(self) -> None:
        for name in ("tokens_per_s", "prefill_s", "chunk_chars"):
            if not math.isfinite(getattr(self, name)):
                raise WrongValueError(Reason("reason-number"), name)
        for name in _FROM_0:
            number = getattr(self, name)
            if number is not None and number < 0:
                raise WrongValueError(Reason("reason-at-least", {"limit": 0}), name)
        for at, (due_s, chars) in enumerate(self.schedule):
            if not math.isfinite(due_s):
                raise WrongValueError(Reason("reason-number"), f"schedule[{at}]")
            if due_s < 0 or chars < 0:
                raise WrongValueError(Reason("reason-at-least", {"limit": 0}), f"schedule[{at}]")
            for number, most in ((due_s, MOST_DUE_S), (chars, MOST_PIECE_CHARS)):
                if number > most:
                    reason = Reason("reason-at-most", {"limit": most})
                    raise WrongValueError(reason, f"schedule[{at}]")
        if self.fail_kind not in error_kinds():
            allowed = ", ".join(sorted(error_kinds()))
            raise WrongValueError(Reason("reason-one-of", {"allowed": allowed}), "fail_kind")

    def pieces(self, question: str, said_chars: int = 0) -> Iterator[tuple[DeltaKind, str]]:
        """The answer to `question`, split; joined again it is the whole.

        Args:
            said_chars: so much of the text was said before; with any, the reasoning was too.
        """
        if self.schedule:
            yield from self._scheduled(question, said_chars)
            return
        parts: tuple[tuple[DeltaKind, str, int], ...] = (
            ("reasoning", "" if said_chars else self.reasoning, 0),
            ("text", self.text, said_chars),
        )
        for kind, text, said in parts:
            filled = text.replace("{question}", question)
            for piece in _split(filled[said:], self.chunk_chars):
                yield kind, piece

    def due_s(self, piece: int) -> float:
        """Seconds from the question's reading to this piece, counted from 0."""
        if self.schedule:
            return self.schedule[min(piece, len(self.schedule) - 1)][0]
        return self.prefill_s + (piece / self.tokens_per_s if self.tokens_per_s else 0.0)

    def _scheduled(self, question: str, said_chars: int) -> Iterator[tuple[DeltaKind, str]]:
        text = self.text.replace("{question}", question) or FILLER
        at = said_chars
        for _, chars in self.schedule:
            # As often as it takes: a record knows how much was said, not what.
            start = at % len(text)
            yield "text", (text[start:] + text * (chars // len(text) + 1))[:chars]
            at += chars

    def failure(self) -> LLMError:
        """The error of `fail_kind`, with something for whatever its sentence may say."""
        return error_kinds()[self.fail_kind](**_VALUES)


_FROM_0 = ("tokens_per_s", "prefill_s", "chunk_chars", "stall_after", "fail_after", "die_after")


@cache
def error_kinds() -> dict[str, type[LLMError]]:
    """Every error of the tree by its sentence's name; a leaf wins over its parent."""
    found: dict[str, type[LLMError]] = {}
    todo: list[type[LLMError]] = [LLMError]
    while todo:
        kind = todo.pop(0)
        found[kind.message_id.removeprefix("error-")] = kind
        todo.extend(kind.__subclasses__())
    return found


_VALUES: dict[str, Value | Reason] = {
    **{"url": "http://scripted", "host": "scripted", "model": "scripted", "status": 500},
    **{"reason": Reason("reason-scripted"), "kind": "Scripted", "setting": "scripts_file"},
    **{"parameter": "script", "value": 1, "low": 0, "high": 0, "chars": 2, "limit": 1},
    **{"prompt_tokens": 2, "over": 1, "seconds": 1, "package": "scripted", "folder": "/"},
    **{"needed_mb": 2, "free_mb": 1, "place": "/"},
}


def _split(text: str, chunk_chars: int) -> Iterator[str]:
    if chunk_chars:
        return (text[at : at + chunk_chars] for at in range(0, len(text), chunk_chars))
    return (match.group() for match in _TOKEN_LIKE.finditer(text))
