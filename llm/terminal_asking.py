"""Has questions answered at a terminal: each followed to its end, and Ctrl-C stops it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Protocol

from llm.answer_status import before_text
from llm.catalogue import Catalogue
from llm.errors import Reason
from llm.job import GenerationJob, Snapshot
from llm.question import usable_question
from llm.registry import JobRegistry
from llm.terminal_keys import unseen_keys
from llm.terminal_status import StatusLine
from llm.terminal_words import told
from llm.types import Backend, GenerationRequest, Message, SamplingParams

TICK_S = 0.05
"""How long Ctrl-C may wait to be noticed."""


class AnswerView(Protocol):
    """Where an answer is shown as it grows."""

    @property
    def delay_s(self) -> float:
        """Seconds until it may be drawn again."""
        ...

    def shows(self, answer: Snapshot) -> bool:
        """Whether there is something of it to be seen here."""
        ...

    def draw(self, answer: Snapshot) -> None:
        """Show what is new."""
        ...

    def end(self) -> None:
        """Nothing more comes."""
        ...


class Conversation:
    """One person's questions and answers, in memory.

    A question that nothing was said to is no part of it, nor is reasoning.

    Args:
        system_prompt: empty for none.
        model: which of the backend's models is asked; empty leaves it to the backend.
        view: makes the place where the next answer is shown.

    Thread-safety: none; the main thread, which alone hears Ctrl-C.
    """

    def __init__(
        self,
        registry: JobRegistry,
        backend: Backend,
        params: SamplingParams,
        *,
        system_prompt: str,
        model: str,
        max_question_chars: int,
        view: Callable[[], AnswerView],
        status: StatusLine,
        words: Catalogue,
    ) -> None:
        self._registry = registry
        self._backend = backend
        self._params = params
        self._model = model
        self._max_question_chars = max_question_chars
        self._view = view
        self._status = status
        self._words = words
        self._system = (Message("system", system_prompt),) if system_prompt.strip() else ()
        self._said: tuple[Message, ...] = ()

    def ask(self, question: str) -> Snapshot:
        """Ask, and show the answer as it comes; returns when it is over.

        Raises:
            EmptyQuestionError: nothing but white space.
            QuestionTooLongError: more characters than settings allow.
            OSError: it can't be shown any more. The answer was stopped.
        """
        usable = usable_question(question, self._max_question_chars)
        asked = (*self._said, Message("user", usable))
        request = GenerationRequest((*self._system, *asked), self._params, self._model)
        job = self._registry.submit(
            "terminal", "terminal", self._backend, request, save=lambda snapshot: None
        )
        try:
            answer = self._follow(job)
        except BaseException:
            # Nobody reads it any more: the model is to know before this program is gone.
            job.cancel()
            job.wait(2**62, TICK_S * 20)
            raise
        if answer.text.strip():
            self._said = (*asked, Message("assistant", answer.text))
        return answer

    def forget(self) -> None:
        """Begin anew."""
        self._said = ()

    def _follow(self, job: GenerationJob) -> Snapshot:
        view, drawn, seen = self._view(), -1, False
        with unseen_keys(), _noticing_ctrl_c() as pressed:
            while True:
                answer = job.wait(drawn, TICK_S)
                if pressed.is_set() and not job.cancelled:
                    job.cancel()
                # Gone before anything is drawn: both may be on one screen.
                seen = seen or view.shows(answer)
                self._status.show("" if seen or answer.done else self._sentence(job, answer))
                if answer.version == drawn and not answer.done:
                    continue
                if view.delay_s > 0 and not answer.done:
                    time.sleep(min(view.delay_s, TICK_S))
                    continue
                view.draw(answer)
                drawn = answer.version
                if answer.done:
                    view.end()
                    return answer

    def _sentence(self, job: GenerationJob, answer: Snapshot) -> str:
        if job.cancelled:
            return told(Reason("answer-stopping"), self._words)
        if answer.thinking:
            return self._words.say("reasoning-thinking")
        sentence = told(before_text(job, answer), self._words)
        progress = job.backend.status().progress
        return sentence if progress is None else f"{sentence} {progress:.0%}"


@contextmanager
def _noticing_ctrl_c() -> Iterator[Event]:
    """Have Ctrl-C only noted: raised, it would come in the middle of drawing."""
    pressed = Event()
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
