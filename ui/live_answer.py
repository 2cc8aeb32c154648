"""The only place that draws a running answer.

A script run attaches to the conversation's job and draws its snapshots until the job is done or
the run is interrupted. Being interrupted costs nothing: the next run attaches again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.job import GenerationJob, Snapshot
from llm.pacing import FramePacer, PaintMeter
from llm.plain_markdown import plain
from llm.stored_answer import StoredAnswer
from ui.answer_view import AnswerView
from ui.language import say, words
from ui.reasoning_view import ReasoningView

TICK_S = 0.025
"""How long a click may wait for the run to notice it."""

LAST_FRAME_S = 0.3
"""What a slow browser takes to paint the last frame."""

SIDEBAR_FRAME_S = 0.08
"""What a browser takes to paint the sidebar."""


def follow(
    job: GenerationJob | StoredAnswer,
    view: AnswerView,
    reasoning: ReasoningView,
    status: DeltaGenerator,
    meter: PaintMeter,
    ahead: Callable[[], int],
    look: Callable[[], None],
) -> None:
    """Draw the job's answer as it grows; returns when it's over and drawn.

    Args:
        status: an empty placeholder for what there is to say before the first text.
        ahead: how many questions are in line before this one.
        look: called now and then, to keep the rest of the page true meanwhile.
    """
    pacer = FramePacer(meter)
    status_line = StatusLine(status)
    drawn_version = -1
    while True:
        snapshot = job.wait(drawn_version, TICK_S)
        yield_to_rerun()
        if snapshot.done:
            break
        status_line.update(snapshot, job, ahead)
        reasoning.tell_seconds(job.thinking_s())
        look()
        if snapshot.version == drawn_version:
            continue
        delay_s = pacer.delay_s()
        if delay_s > 0:
            time.sleep(min(delay_s, TICK_S))
            continue
        drawn_version = snapshot.version
        tail_chars = reasoning.draw(snapshot)
        # Also while there is no text: what was drawn may have turned out to be reasoning.
        pacer.drawn(tail_chars + view.draw(snapshot.text, done=False))
    reasoning.draw(snapshot)
    view.draw(snapshot.text, done=True)
    _let_it_be_painted()


def _let_it_be_painted() -> None:
    """Give the last frame the browser to itself before the page is drawn anew.

    Sent together, the end of the answer would be seen only when all of the page had been gone
    through.
    """
    end_s = time.monotonic() + LAST_FRAME_S
    while time.monotonic() < end_s:
        yield_to_rerun()
        time.sleep(TICK_S)


def let_the_sidebar_be_painted(turn_id: str) -> None:
    """Give what a click has changed the browser to itself, in the middle of a turn's answer.

    The page sends all of the answer again, and the browser would show both together, later. The
    run that begins an answer has nothing to send again, and whoever asked waits for the text.
    """
    if st.session_state.get("answer_begun") == turn_id:
        time.sleep(SIDEBAR_FRAME_S)
    st.session_state.answer_begun = turn_id


def yield_to_rerun() -> None:
    """Let Streamlit end this run if the person has clicked something meanwhile.

    Source: the runner looks for such requests whenever session state is read.
    """
    st.session_state.get("yield_to_rerun")


class StatusLine:
    """Says quietly what is going on until there is text to see."""

    def __init__(self, place: DeltaGenerator) -> None:
        self._place = place
        self._shown = ""

    def update(
        self, snapshot: Snapshot, job: GenerationJob | StoredAnswer, ahead: Callable[[], int]
    ) -> None:
        """Redraw the line if it would say something else; at most once a second or so."""
        sentence = self._sentence(snapshot, job, ahead)
        if sentence != self._shown:
            self._shown = sentence
            if sentence:
                self._place.caption(sentence)
            else:
                self._place.empty()

    @staticmethod
    def _sentence(
        snapshot: Snapshot, job: GenerationJob | StoredAnswer, ahead: Callable[[], int]
    ) -> str:
        if job.cancelled:
            return say("answer-stopping")
        if snapshot.text.strip() or snapshot.reasoning.strip():
            return ""  # it can be seen
        if isinstance(job, StoredAnswer):
            return say("answer-elsewhere")
        if snapshot.phase == "waiting":
            return say("answer-waiting", ahead=ahead())
        if snapshot.notice is not None:
            return plain(snapshot.notice.sentence(words(), seconds=int(job.notice_s())))
        backend = job.backend.status()
        if backend.preparing:
            return say("answer-preparing", phase=say(f"phase-{backend.phase}"))
        # The model may have become ready only after the question had its turn.
        ready_s = backend.elapsed_s if backend.ready else job.reading_s()
        return say("answer-reading", seconds=int(min(job.reading_s(), ready_s)))
