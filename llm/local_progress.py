"""How far the reading of weights is, and a way to end it in between.

Imports transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from transformers.utils import logging as transformers_logging

from llm.types import CancelToken


class ReadingStopped(BaseException):
    """The reading was cancelled. Not an `Exception`: whoever handles those would tell a failure."""


@contextmanager
def reading_weights(cancel: CancelToken, report: Callable[[float], None]) -> Iterator[None]:
    """Whatever this thread loads in here is told of and can be cancelled, weight by weight.

    transformers goes through the weights under a progress bar, and lets others make the bar.
    Source: transformers 5.24, `utils/logging.py` (`set_tqdm_hook`) and `core_model_loading.py`.

    Args:
        report: told 0 to 1, at most a hundred times a bar.

    Raises:
        ReadingStopped: cancelled.
    """
    thread = threading.get_ident()

    def bar(factory: Any, args: Any, kwargs: Any) -> Any:
        made = factory(*args, **kwargs)
        items = args[0] if args else None
        if threading.get_ident() != thread or not hasattr(items, "__len__"):
            return made
        return _watched(items, cancel, report)

    before = transformers_logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        transformers_logging.set_tqdm_hook(before)


def _watched(items: Any, cancel: CancelToken, report: Callable[[float], None]) -> Iterator[Any]:
    told, count = -1, len(items)
    for at, item in enumerate(items):
        if cancel.cancelled:
            raise ReadingStopped
        if (percent := 100 * at // count) != told:
            told = percent
            report(at / count)
        yield item
