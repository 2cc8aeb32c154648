"""What anybody typed, as Markdown's code: shown as it is."""

from __future__ import annotations

import re


def inline_code(text: str) -> str:
    """The text as a code span; empty where there is nothing to see."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if text.strip() else ""
