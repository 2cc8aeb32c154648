"""What an answer's timings look like in a file: when each piece came and each frame went, no text.

    {"steady_chat_flight": 1, "backend": …, "model": …, "finish": …, "waited_s": …,
     "pieces": [[seconds, characters], …],
     "frames": [[seconds, bytes of Markdown], …],
     "reports": [[seconds, {"stamp": …, "busy_ms": …, …}], …]}

Seconds count from when the model read the question. The scripted backend says an answer with the
same pieces at the same times (`flight_file` in its scripts), so that a stutter that somebody has
seen can be seen again.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from llm.arrivals import Arrivals
from llm.job import Snapshot
from llm.screen import ScreenLog

VERSION = 1


def flight_file(
    backend: str, snapshot: Snapshot, arrivals: Arrivals, screen: ScreenLog, begun_s: float
) -> bytes:
    """The file's content.

    Args:
        backend: the backend's kind.
        begun_s: when the model read the question, by the clock of `screen`.
    """
    told = {
        "steady_chat_flight": VERSION,
        "backend": backend,
        "model": snapshot.model,
        "finish": snapshot.finish.reason if snapshot.finish else None,
        "waited_s": round(snapshot.waited_s, 4),
        "joined": arrivals.joined,
        "pieces": [
            [round(at_s, 4), chars]
            for at_s, chars in zip(arrivals.offsets_s, arrivals.chars, strict=True)
        ],
        "frames": [
            [round(at_s - begun_s, 4), size]
            for at_s, size in zip(screen.frames_s, screen.frame_bytes, strict=True)
        ],
        "reports": [[round(at_s - begun_s, 4), asdict(each)] for at_s, each in screen.reports],
    }
    return json.dumps(told, separators=(",", ":")).encode()


def schedule_of(file: str) -> list[tuple[float, int]]:
    """The pieces of such a file, for `Script.schedule`.

    Raises:
        ValueError: it isn't one.
    """
    told = json.loads(file)
    if not isinstance(told, dict) or told.get("steady_chat_flight") != VERSION:
        raise ValueError("not a flight record of this version")
    pieces = told.get("pieces")
    if not isinstance(pieces, list) or not all(_is_piece(each) for each in pieces):
        raise ValueError("its pieces are not [seconds, characters]")
    try:
        return [(float(at_s), chars) for at_s, chars in pieces]
    except OverflowError as error:
        raise ValueError("a time that no clock has") from error


def _is_piece(told: object) -> bool:
    return (
        isinstance(told, list)
        and len(told) == 2
        and isinstance(told[0], int | float)
        and isinstance(told[1], int)
        and not any(isinstance(each, bool) for each in told)
    )
