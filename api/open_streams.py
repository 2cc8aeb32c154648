"""The answers of `/stream`: each under an id that can't be guessed, for whoever comes back to it.

An answer outlives its client for a while, so that a lost connection loses nothing. Who doesn't come
back in time has stopped it.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.errors import refused

if TYPE_CHECKING:
    from api.service import Asked

MOST = 1_000
"""Answers under way or kept for who comes back."""


@dataclass(slots=True)
class OpenStream:
    """One answer.

    Args:
        stream_id: whoever knows it may follow and stop the answer.
        watchers: connections that follow it.
        leaving: what ends it, while there are none.
    """

    stream_id: str
    asked: Asked
    watchers: int = 0
    leaving: asyncio.TimerHandle | None = None


class OpenStreams:
    """Thread-safety: none; used on the event loop."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._streams: dict[str, OpenStream] = {}

    def require_room(self) -> None:
        """Raises `ApiError` where there are too many."""
        if len(self._streams) >= self._most:
            raise refused(429, "too_many_streams", limit=self._most)

    def open(self, asked: Asked, grace_s: float) -> OpenStream:
        """Keep an answer; it has so long to be followed for the first time."""
        stream = OpenStream(secrets.token_urlsafe(24), asked)
        self._streams[stream.stream_id] = stream
        self._end_later(stream, grace_s)
        return stream

    def get(self, stream_id: str) -> OpenStream:
        """The answer.

        Raises:
            ApiError: there is none of that id, or no more.
        """
        if stream_id not in self._streams:
            raise refused(404, "stream_not_found")
        return self._streams[stream_id]

    def end(self, stream: OpenStream) -> None:
        """Stop the answer, and forget it."""
        self._streams.pop(stream.stream_id, None)
        if stream.leaving is not None:
            stream.leaving.cancel()
            stream.leaving = None
        stream.asked.job.cancel()

    def begin_watching(self, stream: OpenStream) -> None:
        """Somebody follows it: it goes on as long as they do."""
        stream.watchers += 1
        if stream.leaving is not None:
            stream.leaving.cancel()
            stream.leaving = None

    def end_watching(self, stream: OpenStream, grace_s: float) -> None:
        """Somebody follows it no more; so long after the last it ends."""
        stream.watchers -= 1
        if not stream.watchers and stream.stream_id in self._streams:
            self._end_later(stream, grace_s)

    def _end_later(self, stream: OpenStream, grace_s: float) -> None:
        stream.leaving = asyncio.get_running_loop().call_later(grace_s, self.end, stream)
