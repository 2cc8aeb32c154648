"""What is told of a finished answer: whose it is, how it ended, how fast, what was changed."""

from __future__ import annotations

from dataclasses import fields

from llm.conversation_tree import Turn
from llm.types import SamplingParams
from ui.language import say


def receipt_line(turn: Turn, before: Turn | None = None) -> str:
    """Model, how it ended, tokens, TTFT and speed, as far as they're known.

    Args:
        before: the answer before; what this one was asked with and that one wasn't is told too.
    """
    receipt = turn.receipt
    if receipt is None:
        return ""
    kind = turn.backend.partition("/")[0]  # none where the conversation was imported
    parts = [
        *([receipt.model or say(f"backend-{kind}")] if receipt.model or kind else []),
        *([receipt.server] if receipt.server else []),
        say(f"finish-{receipt.finish.reason}"),
    ]
    if receipt.finish.usage.completion_tokens is not None:
        parts.append(say("receipt-tokens", tokens=receipt.finish.usage.completion_tokens))
    if receipt.ttft_s is not None:
        parts.append(say("receipt-ttft", seconds=receipt.ttft_s))
    if receipt.tokens_per_s is not None:
        parts.append(say("receipt-speed", speed=receipt.tokens_per_s))
    if receipt.left_out and turn.error is None:
        parts.append(say("receipt-left-out", questions=receipt.left_out))
    if before is not None:
        parts += _changed(turn, before)
    return " · ".join(parts)


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
