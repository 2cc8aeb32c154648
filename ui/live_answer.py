"""The only place that draws a running answer.

A script run attaches to the conversation's job and draws its snapshots until the job is done or
the run is interrupted. Being interrupted costs nothing: the next run attaches again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.answer_status import before_text, in_line
from llm.job import GenerationJob, Snapshot
from llm.pacing import FramePacer
from llm.plain_markdown import plain
from llm.registry import Place
from llm.replayed_answer import ReplayedAnswer
from llm.screen import Screen
from llm.stored_answer import StoredAnswer
from ui.answer_view import AnswerView
from ui.language import say, say_reason, words
from ui.paint_probe import show_stamp
from ui.reasoning_view import ReasoningView

TICK_S = 0.025
"""How long a click may wait for the run to notice it."""

LAST_FRAME_S = 0.3
"""What a slow browser takes to paint the last frame, where it doesn't say when it has."""

LAST_WORD_S = 3.0
"""How long a browser that does say so is waited for."""

SIDEBAR_FRAME_S = 0.08
"""What a browser takes to paint the sidebar."""

KEPT_ANSWER_S = 0.1
"""How long saving a kept answer is waited for."""

CHAT_FRAME_S = 0.05
"""What a browser takes to paint a question and its answer."""

LINE_LOOK_S = 0.25
"""How often somebody in line looks for their place: with a hundred in line, each look goes through
all of them."""


def follow(
    job: GenerationJob | StoredAnswer,
    view: AnswerView,
    reasoning: ReasoningView,
    status: DeltaGenerator,
    screen: Screen,
    stamp_place: DeltaGenerator,
    place: Callable[[], Place | None],
    look: Callable[[], None],
) -> None:
    """Draw the job's answer as it grows; returns when it's over and drawn.

    Args:
        status: an empty placeholder for what there is to say before the first text.
        stamp_place: an empty placeholder out of sight, for the stamps of frames.
        place: where the question stands in line; None when it doesn't wait.
        look: called now and then, to keep the rest of the page true meanwhile.
    """
    pacer = FramePacer(screen.meter, screen.credit)
    screen.follow(job.request.request_id)
    status_line = StatusLine(status, job, place)
    drawn_version = -1
    while True:
        snapshot = job.wait(drawn_version, TICK_S)
        yield_to_rerun()
        if snapshot.done:
            break
        status_line.update(snapshot)
        reasoning.tell_seconds(job.thinking_s())
        look()
        if snapshot.version == drawn_version:
            continue
        delay_s = pacer.delay_s()
        if delay_s > 0:
            time.sleep(min(delay_s, TICK_S))
            continue
        drawn_version = snapshot.version
        show_stamp(stamp_place, pacer.drawn(_draw_frame(snapshot, view, reasoning, screen)))
    tail_chars = _draw_frame(snapshot, view, reasoning, screen)
    show_stamp(stamp_place, screen.credit.sent(tail_chars, last=True))
    _let_it_be_painted(screen)


def let_a_kept_answer_come(job: GenerationJob | StoredAnswer | None) -> None:
    """Wait a moment for the end of an answer that was kept, before anything is drawn from it.

    It is said at once, but saved like any other. Drawn with its end it needs no second run.
    """
    if not isinstance(job, GenerationJob) or not isinstance(job.backend, ReplayedAnswer):
        return
    end_s = time.monotonic() + KEPT_ANSWER_S
    snapshot = job.snapshot()
    while not snapshot.done and (left_s := end_s - time.monotonic()) > 0:
        snapshot = job.wait(snapshot.version, left_s)


def draw_so_far(
    job: GenerationJob | StoredAnswer, view: AnswerView, reasoning: ReasoningView, screen: Screen
) -> bool:
    """Draw what there is of the answer before it is followed: a kept one is there at once.

    Returns:
        Whether there is any text.
    """
    screen.follow(job.request.request_id)
    snapshot = job.snapshot()
    if not snapshot.text.strip():
        return False
    _draw_frame(snapshot, view, reasoning, screen)
    return True


def _draw_frame(
    snapshot: Snapshot, view: AnswerView, reasoning: ReasoningView, screen: Screen
) -> int:
    """Draw the answer as it stands, and note what that sent.

    Returns:
        Characters of Markdown in its tails.
    """
    before = view.bytes_sent + reasoning.bytes_sent
    tail_chars = reasoning.draw(snapshot)
    # Also while there is no text: what was drawn may have turned out to be reasoning.
    tail_chars += view.draw(snapshot.text, done=snapshot.done)
    screen.frame(view.bytes_sent + reasoning.bytes_sent - before)
    return tail_chars


def _let_it_be_painted(screen: Screen) -> None:
    """Give the last frame the browser to itself before the page is drawn anew.

    Sent together, the end of the answer would be seen only when all of the page had been gone
    through.
    """
    says = screen.credit.heard and not screen.credit.hidden
    end_s = time.monotonic() + (LAST_WORD_S if says else LAST_FRAME_S)
    while time.monotonic() < end_s and not screen.credit.is_painted():
        yield_to_rerun()
        time.sleep(TICK_S)


def let_the_sidebar_be_painted() -> None:
    """Give what a click has changed the browser to itself, in the middle of an answer.

    The page sends all of the answer again, and the browser would show both together, later.
    """
    time.sleep(SIDEBAR_FRAME_S)


def let_the_chat_be_painted() -> None:
    """Give what there is to read the browser to itself, before the sidebar is sent again.

    Streamlit's page goes through every message by itself, and what has come is painted in between
    only as it happens.
    """
    time.sleep(CHAT_FRAME_S)


def yield_to_rerun() -> None:
    """Let Streamlit end this run if the person has clicked something meanwhile.

    Source: the runner looks for such requests whenever session state is read.
    """
    st.session_state.get("yield_to_rerun")


class StatusLine:
    """Says quietly what is going on until there is text to see."""

    def __init__(
        self,
        drawn_in: DeltaGenerator,
        job: GenerationJob | StoredAnswer,
        place: Callable[[], Place | None],
    ) -> None:
        self._drawn_in = drawn_in
        self._job = job
        self._place = place
        self._shown = ""
        self._waiting = ""
        self._asked_s = -LINE_LOOK_S

    def update(self, snapshot: Snapshot) -> None:
        """Redraw the line if it would say something else; at most once a second or so."""
        sentence = self._sentence(snapshot)
        if sentence != self._shown:
            self._shown = sentence
            if sentence:
                self._drawn_in.caption(sentence)
            else:
                self._drawn_in.empty()

    def _sentence(self, snapshot: Snapshot) -> str:
        job = self._job
        if job.cancelled:
            return say("answer-stopping")
        if snapshot.text.strip() or snapshot.reasoning.strip():
            return ""  # it can be seen
        if isinstance(job, StoredAnswer):
            return say("answer-elsewhere")
        if snapshot.phase == "waiting":
            return self._in_line(job)
        return plain(say_reason(before_text(job, snapshot)))

    def _in_line(self, job: GenerationJob) -> str:
        if time.monotonic() - self._asked_s >= LINE_LOOK_S:
            self._asked_s = time.monotonic()
            # None: it has just been taken.
            place = self._place() or Place(1, 0.0)
            self._waiting = in_line(place, job.backend.status()).sentence(words())
        return self._waiting
