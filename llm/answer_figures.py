"""What is kept of an answer to measure by: figures and names, never a word of it."""

from __future__ import annotations

from dataclasses import dataclass

from llm.arrivals import Arrivals
from llm.errors import LLMError
from llm.job import Snapshot
from llm.types import NOT_BEGUN

MOST_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """One answer that is over. None, and an empty name, where something isn't known.

    Args:
        turn_id: the turn's.
        ended_s: when it was over, seconds since 1970.
        backend: its kind: `local`, `vllm`, `scripted`.
        model: what the page calls it.
        server: which one answered, where the backend has several.
        finish: the finish reason.
        error: the error's class; empty without one.
        cached: `exact` or `similar` where it was given before. Its times aren't a model's then.
        prompt_tokens, completion_tokens: as the backend counts them.
        chars: the characters that came, reasoning's too.
        waited_s: until the model read the question: in line, and for the model to be there.
        ttft_s: from then to the first piece.
        decode_s: from the first piece to the last.
        tpot_ms: decode time per token after the first.
        itl_p50_ms, itl_p95_ms: of the gaps between its pieces, by nearest rank. A piece may hold
            several tokens.
    """

    turn_id: str
    ended_s: float
    backend: str
    model: str = ""
    server: str = ""
    finish: str = "stop"
    error: str = ""
    cached: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    chars: int | None = None
    waited_s: float | None = None
    ttft_s: float | None = None
    decode_s: float | None = None
    tpot_ms: float | None = None
    itl_p50_ms: float | None = None
    itl_p95_ms: float | None = None


def figures_of(
    turn_id: str,
    backend: str,
    snapshot: Snapshot,
    arrivals: Arrivals,
    ended_s: float,
) -> AnswerFigures:
    """The figures of an answer that is over.

    Args:
        backend: the backend's id: its kind, and for a server `vllm/` and the server's name.
        snapshot: its last.
        arrivals: its job's.
    """
    kind, _, server = backend.partition("/")
    finish = snapshot.finish
    usage = finish.usage if finish is not None else None
    begun = finish is None or finish.why != NOT_BEGUN
    itl_p50_ms, itl_p95_ms = snapshot.itl_ms or (None, None)
    speed = snapshot.tokens_per_s
    return AnswerFigures(
        turn_id,
        ended_s,
        kind,
        snapshot.model[:MOST_NAME_CHARS],
        (snapshot.server or server)[:MOST_NAME_CHARS],
        finish.reason if finish is not None else "error",
        error_kind(snapshot.error),
        snapshot.cached.kind if snapshot.cached is not None else "",
        usage.prompt_tokens if usage is not None else None,
        usage.completion_tokens if usage is not None else None,
        arrivals.total_chars(),
        snapshot.waited_s if begun else None,
        snapshot.ttft_s,
        snapshot.decode_s if snapshot.ttft_s is not None else None,
        1000 / speed if speed else None,
        itl_p50_ms,
        itl_p95_ms,
    )


def error_kind(error: LLMError | None) -> str:
    """What an error is counted under: its class, of which there are only so many."""
    return type(error).__name__ if error is not None else ""
