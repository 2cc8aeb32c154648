"""What goes on between a question and its first text, as a sentence for whichever face shows it."""

from __future__ import annotations

from llm.errors import Reason
from llm.job import GenerationJob, Snapshot


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
