"""Giving memory back: what an error's frames hold, and what no object holds any more.

Imports no library that isn't loaded already.
"""

from __future__ import annotations

import gc
import sys
import traceback
from contextlib import suppress


def forget_frames(error: BaseException) -> None:
    """Let go of all that the frames of an error hold, and those of its causes and contexts.

    An error is kept for as long as a page shows it, and with its traceback every local variable
    on its way: half a model, a cache, logits. Log where it happened before.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
        waiting += [one.__cause__, one.__context__]


def free_memory() -> None:
    """Give back what no object holds any more. Never raises."""
    gc.collect()
    if "torch" not in sys.modules:
        return
    # A device whose driver has failed refuses even this, and torch may be half installed.
    with suppress(Exception):
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
