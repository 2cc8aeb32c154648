"""What is told of a finished answer: whose it is, how it ended, how fast, what was changed."""

from __future__ import annotations

from dataclasses import fields

from llm.conversation_tree import Turn
from llm.literal_markdown import literal
from llm.types import Finish, FromCache, SamplingParams
from ui.language import say, say_reason

WORTH_SAYING_S = 1.0
"""Who waited for less hasn't noticed."""

SHOWN_QUESTION_CHARS = 120
"""Of a similar question, beside the answer that it had."""


def receipt_line(turn: Turn, before: Turn | None = None) -> str:
    """Model, how it ended, tokens, TTFT and speed, as far as they're known, for `plain`.

    An answer from the cache has neither TTFT nor speed: no model was waited for.

    Args:
        before: the answer before; what this one was asked with and that one wasn't is told too.
    """
    receipt = turn.receipt
    if receipt is None:
        return ""
    cut = receipt.finish.reason != "stop"
    kind = turn.backend.partition("/")[0]  # none where the conversation was imported
    parts = [
        *([literal(receipt.model) or say(f"backend-{kind}")] if receipt.model or kind else []),
        *([literal(receipt.server)] if receipt.server else []),
        *(_from_cache(turn, receipt.cached) if receipt.cached else ()),
        *([_finish(receipt.finish)] if not receipt.cached or cut else []),
    ]
    if receipt.finish.usage.completion_tokens is not None:
        parts.append(say("receipt-tokens", tokens=receipt.finish.usage.completion_tokens))
    if receipt.ttft_s is not None and receipt.cached is None:
        parts.append(say("receipt-ttft", seconds=receipt.ttft_s))
    if receipt.tokens_per_s is not None and receipt.cached is None:
        parts.append(say("receipt-speed", speed=receipt.tokens_per_s))
    if receipt.screen is not None and receipt.screen.longest_freeze_ms is not None:
        parts.append(say("receipt-freeze", seconds=receipt.screen.longest_freeze_ms / 1000))
    if receipt.waited_s is not None and receipt.waited_s >= WORTH_SAYING_S:
        parts.append(say("receipt-waited", seconds=round(receipt.waited_s)))
    if receipt.left_out and turn.error is None:
        parts.append(say("receipt-left-out", questions=receipt.left_out))
    if before is not None:
        parts += _changed(turn, before)
    return " · ".join(parts)


def _from_cache(turn: Turn, cached: FromCache) -> list[str]:
    """Where it was taken from, and how old it was when it was given."""
    told = say(f"receipt-cached-{cached.kind}", question=_short(cached.question))
    return [told, age(turn.created_s - cached.created_s if turn.created_s else 0.0)]


def age(seconds: float) -> str:
    """How old an answer is, in the largest unit that it has one of."""
    for unit, length_s in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= length_s:
            return say(f"receipt-age-{unit}", count=int(seconds // length_s))
    return say("receipt-age-new")


def _short(question: str) -> str:
    line = " ".join(question.split())
    cut = line if len(line) <= SHOWN_QUESTION_CHARS else line[:SHOWN_QUESTION_CHARS] + "…"
    return literal(cut)


def _finish(finish: Finish) -> str:
    if finish.why is not None:
        return say_reason(finish.why)
    return say(f"finish-{finish.reason}")


def _changed(turn: Turn, before: Turn) -> list[str]:
    """What was asked with something else than the turn before. The model is told anyway."""
    if not turn.backend or not before.backend:
        return []  # imported: nobody knows with what
    told = []
    for field in fields(SamplingParams):
        value = getattr(turn.params, field.name)
        if value == getattr(before.params, field.name):
            continue
        name = say(f"sidebar-{field.name.replace('_', '-')}")
        if isinstance(value, tuple):
            told.append(name)
        elif value is None:
            told.append(say("sidebar-not-sent", parameter=name))
        else:
            told.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    if turn.system_prompt != before.system_prompt:
        told.append(say("receipt-system-prompt"))
    return told
