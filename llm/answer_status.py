"""What goes on between a question and its first text, as a sentence for whichever face shows it."""

from __future__ import annotations

import math

from llm.errors import Reason
from llm.job import GenerationJob, Snapshot
from llm.registry import Place
from llm.types import BackendStatus

SOON_S = 1.5
EXACT_S = 20
STEP_S = 5
MINUTE_S = 60
"""Less than SOON_S is any moment now; up to EXACT_S the wait is told to the second, up to MINUTE_S
in steps, and then in minutes."""


def before_text(job: GenerationJob, snapshot: Snapshot) -> Reason:
    """What is waited for by a question that has its turn and has no text yet.

    Cheap enough for every frame; seconds in it are whole.
    """
    if snapshot.notice is not None:
        seconds = int(job.notice_s())
        return Reason(snapshot.notice.message_id, {**snapshot.notice.values, "seconds": seconds})
    backend = job.backend.status()
    # Where it is known who answers, it is another model that gets ready.
    if backend.preparing and not backend.meanwhile and not snapshot.model:
        return Reason("answer-preparing", {"phase": Reason(f"phase-{backend.phase}")})
    # The model may have become ready only after the question had its turn.
    ready_s = backend.elapsed_s if backend.ready else job.reading_s()
    return Reason("answer-reading", {"seconds": int(min(job.reading_s(), ready_s))})


def in_line(place: Place, backend: BackendStatus) -> Reason:
    """Where somebody stands in line, and how long it will take, as exactly as that is known."""
    number, left_s = place.number, place.left_s
    if backend.preparing and not backend.meanwhile:
        phase = Reason(f"phase-{backend.phase}")
        return Reason("answer-waiting-model", {"place": number, "phase": phase})
    if left_s is None:
        return Reason("answer-waiting", {"place": number})
    if left_s < SOON_S:
        return Reason("answer-waiting-soon", {"place": number})
    if left_s <= MINUTE_S:
        # In steps upward: nobody knows it to the second, and sooner is a pleasant surprise.
        seconds = round(left_s) if left_s <= EXACT_S else STEP_S * math.ceil(left_s / STEP_S)
        return Reason("answer-waiting-seconds", {"place": number, "seconds": seconds})
    minutes = math.ceil(left_s / MINUTE_S)
    return Reason("answer-waiting-minutes", {"place": number, "minutes": minutes})
