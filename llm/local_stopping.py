"""Looking in between a model's layers: whether it was stopped, and how far a pass has come.

So a stop takes effect while a long prompt is being read, and the wait for it can be told.

Imports torch; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from llm.local_streamer import GenerationStopped

_running = threading.local()
"""Who watches what this thread computes."""


def watch_for_stop(model: Any) -> None:
    """Have a model's layers, before each, ask and tell those who watch the thread."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList):
            for number, layer in enumerate(module):
                layer.register_forward_pre_hook(partial(_before_layer, number / len(module)))
            return


@contextmanager
def watching(stopped: Callable[[], bool], reached: Callable[[float], None]) -> Iterator[None]:
    """While this lasts, passes of watched models on this thread are watched.

    Args:
        stopped: whether nobody wants it any more; the pass then raises `GenerationStopped`.
        reached: is told what part of its layers a pass has gone through, 0 to 1.
    """
    _running.watchers = stopped, reached
    try:
        yield
    finally:
        _running.watchers = None


def _before_layer(done: float, _module: Any, _args: Any) -> None:
    watchers = getattr(_running, "watchers", None)
    if watchers is None:
        return
    stopped, reached = watchers
    if stopped():
        raise GenerationStopped
    reached(done)
