"""How late an asyncio loop wakes beside what else the process does.

The page's server is such a loop: while it can't run, no click is heard and no frame is sent.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

INTERVAL_S = 0.005


@contextmanager
def loop_delay() -> Iterator[list[float]]:
    """An event loop on a thread of its own for the length of the block.

    Yields:
        Milliseconds that something due at any moment had to wait, filled until the block ends. A
        loop that was held up has a value for each 5 ms of it, as many events could have come.
    """
    late_ms: list[float] = []
    ticking, over = threading.Event(), threading.Event()
    ticks = _tick(late_ms, ticking, over)
    thread = threading.Thread(target=asyncio.run, args=(ticks,), name="loop-delay", daemon=True)
    thread.start()
    ticking.wait()
    try:
        yield late_ms
    finally:
        over.set()
        thread.join()


async def _tick(late_ms: list[float], ticking: threading.Event, over: threading.Event) -> None:
    loop = asyncio.get_running_loop()
    due_s = loop.time() + INTERVAL_S
    ticking.set()
    while not over.is_set():
        await asyncio.sleep(due_s - loop.time())
        now_s = loop.time()
        while due_s <= now_s:
            late_ms.append(1000 * (now_s - due_s))
            due_s += INTERVAL_S


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of all don't exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
