"""A running answer, looked at from the event loop at a steady pace: what is new since last time.

What comes between two looks, or while a client is slow to read, is merged: a reader costs what the
answer costs, however slow it is. A look at a pace and not a wake-up from the job's thread: it needs
no thread of the pool, of which there are forty for everything, no registration to be taken back,
and it is what merges. It costs up to `PACE_S` of delay, and a few microseconds a look.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Literal

from api.errors import refused
from llm.errors import ShuttingDownError
from llm.job import GenerationJob, Snapshot

PACE_S = 0.03
MAX_PIECE_CHARS = 8_192
"""A longer piece is told in several, so that what is on its way to a client stays small."""

_POSITION = re.compile(r"([01])-(\d{1,12})-(\d{1,12})(-end)?")


@dataclass(frozen=True, slots=True)
class Position:
    """How much of an answer a client has.

    Args:
        reasoning, text: characters.
        recast: whether the client knows that its first text was reasoning.
        end: whether it has the end as well.
    """

    reasoning: int = 0
    text: int = 0
    recast: bool = False
    end: bool = False

    def __str__(self) -> str:
        end = "-end" if self.end else ""
        return f"{int(self.recast)}-{self.reasoning}-{self.text}{end}"

    @classmethod
    def read(cls, told: str) -> Position | None:
        """What `str` made; None where it isn't that."""
        found = _POSITION.fullmatch(told)
        if found is None:
            return None
        recast, reasoning, text, end = found.groups()
        return cls(int(reasoning), int(text), recast == "1", end is not None)

    def is_in(self, snapshot: Snapshot) -> bool:
        """Whether a client of this answer can be there."""
        if self.recast and not snapshot.recast:
            return False
        reasoning, text = self.reasoning, self.text
        if snapshot.recast and not self.recast:
            reasoning, text = reasoning + text, 0
        return reasoning <= len(snapshot.reasoning) and text <= len(snapshot.text)


@dataclass(frozen=True, slots=True)
class Piece:
    """What is new.

    Args:
        kind: `recast` has no text: all text before it was reasoning.
        at: where a client is that has it.
    """

    kind: Literal["text", "reasoning", "recast"]
    text: str
    at: Position


@dataclass(frozen=True, slots=True)
class News:
    """What a look has shown; empty where it is time for a sign of life."""

    snapshot: Snapshot
    pieces: tuple[Piece, ...] = ()


def news(snapshot: Snapshot, at: Position) -> tuple[Piece, ...]:
    """What a client at that position lacks, in pieces of a bounded size."""
    pieces: list[Piece] = []
    if snapshot.recast and not at.recast:
        moved = at.text > 0
        at = Position(at.reasoning + at.text, 0, recast=True)
        if moved:
            pieces.append(Piece("recast", "", at))
    while at.reasoning < len(snapshot.reasoning):
        text = snapshot.reasoning[at.reasoning : at.reasoning + MAX_PIECE_CHARS]
        at = Position(at.reasoning + len(text), at.text, at.recast)
        pieces.append(Piece("reasoning", text, at))
    while at.text < len(snapshot.text):
        text = snapshot.text[at.text : at.text + MAX_PIECE_CHARS]
        at = Position(at.reasoning, at.text + len(text), at.recast)
        pieces.append(Piece("text", text, at))
    return tuple(pieces)


async def follow(
    job: GenerationJob,
    at: Position,
    *,
    until_s: float,
    keep_alive_s: float,
    stopping: Callable[[], bool],
) -> AsyncGenerator[News]:
    """Look at the answer until it is done: what is new, and something at least every so often.

    The last has the final snapshot. The job is left as it is, whoever stops looking.

    Args:
        until_s: when the time is up, by the loop's clock.
        stopping: whether the server is being stopped; it waits for its open connections.

    Raises:
        ApiError: the time is up.
        ShuttingDownError: the server is being stopped.
    """
    now_s = asyncio.get_running_loop().time
    seen, told_s = -1, now_s()
    while True:
        snapshot = job.snapshot()
        pieces: tuple[Piece, ...] = ()
        if snapshot.version != seen:
            seen = snapshot.version
            pieces = news(snapshot, at)
            at = pieces[-1].at if pieces else at
        if pieces or snapshot.done or now_s() - told_s >= keep_alive_s:
            yield News(snapshot, pieces)
            told_s = now_s()
        if snapshot.done:
            return
        if stopping():
            raise ShuttingDownError
        if now_s() >= until_s:
            raise refused(504, "time_limit")
        await asyncio.sleep(PACE_S)


async def whole(job: GenerationJob, *, until_s: float, stopping: Callable[[], bool]) -> Snapshot:
    """The answer when it is done; raises as `follow`."""
    async for look in follow(
        job, Position(), until_s=until_s, keep_alive_s=float("inf"), stopping=stopping
    ):
        snapshot = look.snapshot
    return snapshot
