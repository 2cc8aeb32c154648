"""A stored answer said again, at once or at a typewriter's pace."""

from __future__ import annotations

import threading
import time

from llm.cache_types import CachedAnswer, CacheKey
from llm.replayed_answer import ReplayedAnswer, replay
from llm.types import CancelToken, Delta, Finish, FromCache, GenerationRequest, Message, Usage
from tests.driven_backend import PATIENCE_S

PIECES = (Delta("Hm.", "reasoning"), Delta("Yes"), Delta(", "), Delta("是的。"))
ANSWER = CachedAnswer(
    CacheKey("d", "p", "s"), "Really?", PIECES, Usage(3, 4), "a model", "a server", 1.0, 2.0, 5.0
)
TOLD = FromCache("exact", "d", 1.0)
REQUEST = GenerationRequest((Message("user", "Really?"),))


def said(pieces_per_s: float | None = None) -> ReplayedAnswer:
    return ReplayedAnswer(
        "local", ANSWER, lambda cancel: replay(ANSWER, TOLD, cancel, pieces_per_s=pieces_per_s)
    )


def test_it_says_where_it_is_from_then_the_pieces_then_the_end() -> None:
    notice, *pieces, finish = said().stream(REQUEST, CancelToken())
    assert (notice.cached, notice.model, notice.server) == (TOLD, "a model", "a server")  # type: ignore[union-attr]
    assert tuple(pieces) == PIECES
    assert finish == Finish("stop", Usage(3, 4))


def test_a_pace_takes_its_time_and_a_stop_ends_it_at_once() -> None:
    cancel = CancelToken()
    begun_s = time.monotonic()
    slow = said(20)
    assert tuple(slow.stream(REQUEST, cancel))[1:-1] == PIECES
    assert time.monotonic() - begun_s >= len(PIECES) / 20
    stream = said(1e-3).stream(REQUEST, cancel)
    next(stream)
    threading.Timer(0.05, cancel.cancel).start()
    begun_s = time.monotonic()
    assert list(stream) == [Finish("abort")]
    assert time.monotonic() - begun_s < PATIENCE_S
