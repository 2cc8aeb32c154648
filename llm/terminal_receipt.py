"""What is told of an answer that is over, in one line."""

from __future__ import annotations

from llm.catalogue import Catalogue
from llm.errors import Reason
from llm.job import Snapshot
from llm.terminal_text import clean
from llm.terminal_words import told


def receipt(answer: Snapshot, words: Catalogue) -> str:
    """Model, how it ended, tokens, TTFT and speed, as far as they are known."""
    finish = answer.finish
    parts = [name for name in (answer.model, answer.server) if name]
    if finish is not None:
        parts.append(told(finish.why or Reason(f"finish-{finish.reason}"), words))
        if finish.usage.completion_tokens is not None:
            parts.append(words.say("receipt-tokens", tokens=finish.usage.completion_tokens))
    if answer.ttft_s is not None:
        parts.append(words.say("receipt-ttft", seconds=answer.ttft_s))
    if answer.tokens_per_s is not None:
        parts.append(words.say("receipt-speed", speed=answer.tokens_per_s))
    if answer.left_out:
        parts.append(words.say("receipt-left-out", questions=answer.left_out))
    return clean(" · ".join(parts))
