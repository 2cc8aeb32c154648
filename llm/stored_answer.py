"""An answer that another process is generating, as the store shows it about once a second."""

from __future__ import annotations

import time
from collections.abc import Callable

from llm.conversation_tree import Turn
from llm.job import JobPhase, Snapshot
from llm.types import GenerationRequest

LOOK_S = 0.5
"""How often the store is looked at: the other process saves about as often."""


class StoredAnswer:
    """Can be followed as a `GenerationJob` of this process can.

    Args:
        turn: the turn as it was when it was found.
        look: gives the turn as it stands, None where it's gone.
        stop: has the other process stop.
        cancelled: whether that was wanted before.

    Thread-safety: one thread, the one that follows.
    """

    def __init__(
        self,
        turn: Turn,
        look: Callable[[], Turn | None],
        stop: Callable[[], None],
        *,
        cancelled: bool = False,
    ) -> None:
        self.cancelled = cancelled
        self.request = GenerationRequest((), turn.params, turn.model, request_id=turn.turn_id)
        self._look = look
        self._stop = stop
        self._seen = Snapshot(
            version=1, phase=_phase(turn), text=turn.text, reasoning=turn.reasoning
        )
        self._looked_s = time.monotonic()

    def snapshot(self) -> Snapshot:
        """The answer as it was last seen."""
        return self._seen

    def wait(self, version: int, timeout_s: float) -> Snapshot:
        """The answer once it is newer than `version` or done, or as it stands after the timeout."""
        if self._seen.version > version:
            return self._seen
        time.sleep(timeout_s)
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            self._see(self._look())
        return self._seen

    def cancel(self) -> None:
        """Have it stopped, within a second or so."""
        self.cancelled = True
        self._stop()

    def thinking_s(self) -> float:
        """Unknown here."""
        return 0.0

    def _see(self, turn: Turn | None) -> None:
        seen = self._seen
        over = turn is None or turn.state == "ended"
        text = seen.text if turn is None else turn.text
        reasoning = seen.reasoning if turn is None else turn.reasoning
        if over or (text, reasoning) != (seen.text, seen.reasoning):
            self._seen = Snapshot(
                version=seen.version + 1,
                phase="done" if over else "answering",
                text=text,
                reasoning=reasoning,
                thinking=bool(reasoning) and not text and not over,
            )


def _phase(turn: Turn) -> JobPhase:
    if turn.state == "ended":
        return "done"
    return "answering" if turn.text or turn.reasoning else "waiting"
