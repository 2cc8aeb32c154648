"""A model's reasoning on the page: a quiet block, open while it thinks, closed with the answer.

Whether the block is open is the browser's to know, so that opening and closing it needs no run.
Streamlit keeps that as long as the block has its place and its label; with another label it opens
or closes as it is told (docs/decisions.md, "Reasoning is folded"). So the label changes just once,
when the answer begins, and the seconds that pass meanwhile are added by a style sheet.
"""

from __future__ import annotations

import json

from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_status_container import StatusContainer

from llm.job import Snapshot
from ui.answer_view import AnswerView
from ui.language import say


class ReasoningView:
    """Draws the reasoning of one answer, the running one's or a finished one's.

    Args:
        place: an empty container of its own, above the answer.
        turn_id: whose reasoning it is.

    Thread-safety: one thread, the script run that made it.
    """

    def __init__(self, place: DeltaGenerator, turn_id: str) -> None:
        self._place = place
        self._turn_id = turn_id
        self._live: StatusContainer | None = None
        self._view: AnswerView | None = None
        # Below the block, so that there is nothing at all where there is no reasoning.
        self._seconds_place: DeltaGenerator | None = None
        self._seconds = -1
        self._closed = False

    @property
    def bytes_sent(self) -> int:
        """The Markdown that was sent to the browser so far, in UTF-8."""
        return self._view.bytes_sent if self._view is not None else 0

    def draw(self, snapshot: Snapshot) -> int:
        """Show the reasoning so far, or all of it.

        Returns:
            Characters of Markdown in the tail, for the pacer.
        """
        if not snapshot.reasoning.strip():
            return 0
        if snapshot.thinking and self._live is None:
            label = say("reasoning-thinking")
            self._live = self._place.status(label, expanded=True, type="compact")
            self._view = AnswerView(self._live)
            self._seconds_place = self._place.empty()
        if not snapshot.thinking and not self._closed:
            self._close(snapshot.reasoning_s)
        if self._view is None:
            return 0
        return self._view.draw(snapshot.reasoning, done=not snapshot.thinking)

    def tell_seconds(self, thinking_s: float) -> None:
        """Have the head of the open block say how long it has been."""
        if self._seconds_place is None or self._closed or int(thinking_s) == self._seconds:
            return
        self._seconds = int(thinking_s)
        words = json.dumps(
            " " + say("reasoning-seconds", seconds=self._seconds), ensure_ascii=False
        )
        head = f".st-key-reasoning-{self._turn_id} summary p::after"
        # A style sheet alone would be put elsewhere on the page, and not be replaced by the next.
        self._seconds_place.html(
            f'<i class="steady-thinking"></i><style>{head} {{ content: {words}; }}</style>'
        )

    def draw_finished(self, blocks: tuple[str, ...], reasoning_s: float | None) -> None:
        """Show the reasoning of an answer that is over, from its `finished_blocks`."""
        if blocks:
            self._close(reasoning_s)
            if self._view is not None:
                self._view.draw_finished(blocks)

    def _close(self, reasoning_s: float | None) -> None:
        self._closed = True
        label = say("reasoning-thought", seconds=int(reasoning_s or 0))
        if self._live is not None and self._seconds_place is not None:
            self._live.update(label=label, expanded=False, state="complete")
            self._seconds_place.empty()
        else:
            self._view = AnswerView(self._place.expander(label, type="compact"))
            self._place.empty()  # where the run before may have told the seconds
