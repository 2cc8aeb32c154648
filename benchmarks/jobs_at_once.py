"""Several answers at once through the engine, looked at as often as pages look at them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from llm.job import GenerationJob, Snapshot
from llm.types import GenerationRequest, Message, SamplingParams

if TYPE_CHECKING:
    from llm.types import Backend

FRAME_S = 0.05
LETTING_GO_S = 30.0
FIRST_TEXT_S = 60.0
ENDLESS_TOKENS = 2_000
"""More than anybody waits for before pressing Stop."""


@dataclass(frozen=True, slots=True)
class Together:
    """Answers that were asked for at once.

    Args:
        tokens: of each.
        took_s: from the first question to the last end.
        ttft_s: of each, from its question to its first text.
    """

    tokens: tuple[int, ...]
    took_s: float
    ttft_s: tuple[float, ...]

    @property
    def tokens_per_s(self) -> float:
        """Of all of them together, reading the prompts included."""
        return sum(self.tokens) / self.took_s


class _Answer:
    """A job, a page that looks at it 20 times a second, and when it ended."""

    def __init__(self, backend: Backend, question: str, params: SamplingParams) -> None:
        self.over = threading.Event()
        self.ended_s = 0.0
        request = GenerationRequest((Message("user", question),), params)
        self.job = GenerationJob(
            question, question, backend, request, save=lambda snapshot: None, on_end=self._end
        )
        self._page = threading.Thread(target=self._look, name="page", daemon=True)

    def start(self) -> None:
        self.job.start()
        self._page.start()

    def wait(self, until_s: float) -> bool:
        return self.over.wait(max(0.0, until_s - time.perf_counter()))

    def let_go(self) -> Snapshot:
        """The end of an answer that is over or was stopped.

        Raises:
            TimeoutError: it doesn't end.
            LLMError: it failed.
        """
        if not self.over.wait(LETTING_GO_S):
            raise TimeoutError(f"an answer didn't end within {LETTING_GO_S:.0f} s of Stop")
        self._page.join()
        snapshot = self.job.snapshot()
        if snapshot.error is not None:
            raise snapshot.error
        return snapshot

    def _end(self, job: GenerationJob) -> None:
        self.ended_s = time.perf_counter()
        self.over.set()

    def _look(self) -> None:
        version = -1
        while not (snapshot := self.job.wait(version, 1.0)).done:
            version = snapshot.version
            self.over.wait(FRAME_S)


def ask_together(
    backend: Backend, questions: Sequence[str], params: SamplingParams, window_s: float
) -> Together:
    """Ask all at once and wait for all, or stop what is left when the window is over.

    Raises:
        LLMError: one failed.
        RuntimeError: one had no text within the window.
        TimeoutError: one doesn't let go after Stop.
    """
    answers = [
        _Answer(backend, question, replace(params, seed=(params.seed or 0) + number))
        for number, question in enumerate(questions)
    ]
    started_s = time.perf_counter()
    for answer in answers:
        answer.start()
    for answer in answers:
        answer.wait(started_s + window_s)
    for answer in answers:
        answer.job.cancel()
    ends = [answer.let_go() for answer in answers]
    tokens, ttft_s = [], []
    for end in ends:
        assert end.finish is not None
        made = end.finish.usage.completion_tokens
        if made is None or end.ttft_s is None:
            raise RuntimeError(f"an answer had no text within {window_s:.0f} s")
        tokens.append(made)
        ttft_s.append(end.ttft_s)
    took_s = max(answer.ended_s for answer in answers) - started_s
    return Together(tuple(tokens), took_s, tuple(ttft_s))


def stop_in_turn(backend: Backend, questions: Sequence[str]) -> list[float]:
    """Ask all at once, and when all have text stop them, each while those after it go on.

    Returns:
        Seconds from `cancel` to the end of each.

    Raises:
        LLMError: one failed.
        TimeoutError: one has no text, or doesn't let go.
    """
    params = SamplingParams(max_tokens=ENDLESS_TOKENS, seed=0)
    answers = [_Answer(backend, question, params) for question in questions]
    for answer in answers:
        answer.start()
    try:
        waits_until_s = time.perf_counter() + FIRST_TEXT_S
        for answer in answers:
            snapshot = answer.job.snapshot()
            while not snapshot.text:
                if snapshot.error is not None:
                    raise snapshot.error
                if snapshot.done or time.perf_counter() > waits_until_s:
                    raise TimeoutError(f"no text within {FIRST_TEXT_S:.0f} s")
                snapshot = answer.job.wait(snapshot.version, 1.0)
        took_s = []
        for answer in answers:
            cancelled_s = time.perf_counter()
            answer.job.cancel()
            end = answer.let_go()
            if end.finish is None or end.finish.reason != "abort":
                raise RuntimeError("an answer ended before it was stopped")
            took_s.append(answer.ended_s - cancelled_s)
        return took_s
    finally:
        for answer in answers:
            answer.job.cancel()


def stop_while_reading(backend: Backend, questions: Sequence[str]) -> tuple[float, list[float]]:
    """Ask long questions, one after the other; stop all but the first a third into the reading.

    Returns:
        Seconds until the first one's first text; seconds from `cancel` to the end of each other
        one, but for those that had text already.

    Raises:
        LLMError: one failed.
        TimeoutError: one doesn't let go.
    """
    first, *others = questions
    whole = ask_together(backend, [first], SamplingParams(max_tokens=2, seed=0), FIRST_TEXT_S)
    ttft_s = whole.ttft_s[0]
    took_s = []
    for question in others:
        answer = _Answer(backend, question, SamplingParams(max_tokens=ENDLESS_TOKENS, seed=0))
        answer.start()
        answer.over.wait(ttft_s / 3)
        reading = not answer.job.snapshot().text
        cancelled_s = time.perf_counter()
        answer.job.cancel()
        answer.let_go()
        if reading:
            took_s.append(answer.ended_s - cancelled_s)
    return ttft_s, took_s
