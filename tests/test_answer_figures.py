"""What is kept of an answer: its figures, from the job that gave it, and none of its words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import pytest

from llm.answer_figures import MOST_NAME_CHARS, AnswerFigures, figures_of
from llm.errors import ServerBusyError
from llm.job import GenerationJob
from llm.types import Delta, Finish, GenerationRequest, Message, Notice, Usage
from tests.driven_backend import DrivenBackend, DrivenStream, ManualClock, let_go

SECRET = "my-diary-page"


class Bench:
    def __init__(self, backend: DrivenBackend) -> None:
        self.backend = backend
        self.clock = ManualClock()
        self.job = GenerationJob(
            "conversation",
            "person",
            backend,
            GenerationRequest((Message("user", SECRET),)),
            save=lambda snapshot: None,
            clock=self.clock,
        )

    def start(self) -> DrivenStream:
        self.job.start()
        return self.backend.next_stream()

    def figures(self, backend: str = "driven") -> AnswerFigures:
        let_go(self.job)
        return figures_of("turn", backend, self.job.snapshot(), self.job.arrivals(), 12.5)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with DrivenBackend() as backend:
        yield Bench(backend)


def test_an_answers_times_are_told(bench: Bench) -> None:
    bench.clock.advance(2)
    stream = bench.start()
    for wait_s, text in ((0.5, f"{SECRET} "), (0.25, "one "), (0.25, "two "), (1.0, "three")):
        bench.clock.advance(wait_s)
        stream.say(text)
    stream.yield_raw(Finish("stop", Usage(7, 4)))
    told = bench.figures("vllm/gpu-1")
    assert (told.backend, told.server, told.model) == ("vllm", "gpu-1", "hand-driven")
    assert (told.waited_s, told.ttft_s, told.decode_s) == (2.0, 0.5, 1.5)
    assert told.tpot_ms == pytest.approx(500)
    assert (told.itl_p50_ms, told.itl_p95_ms) == (250, 1000)
    assert (told.prompt_tokens, told.completion_tokens) == (7, 4)
    assert told.chars == len(SECRET) + 1 + 4 + 4 + 5
    assert (told.finish, told.error, told.cached, told.ended_s) == ("stop", "", "", 12.5)
    assert SECRET not in str(asdict(told))


def test_the_times_of_pieces_count_from_when_the_model_was_there(bench: Bench) -> None:
    stream = bench.start()
    bench.clock.advance(30)
    stream.yield_raw(Notice(begins=True))
    bench.clock.advance(0.5)
    stream.say("now")
    assert list(bench.job.arrivals().offsets_s) == [0.5]
    stream.finish()
    assert (bench.figures().waited_s, bench.figures().ttft_s) == (30, 0.5)


def test_text_that_turns_out_to_be_reasoning_is_counted_once(bench: Bench) -> None:
    stream = bench.start()
    stream.say("abc")
    stream.yield_raw(Delta("", "recast"))
    stream.say("de")
    stream.finish()
    told = bench.figures()
    assert told.chars == 5
    assert list(bench.job.arrivals().chars) == [3, 2]


def test_what_failed_is_told_by_its_class(bench: Bench) -> None:
    stream = bench.start()
    stream.say("ha")
    stream.raise_(ServerBusyError(url=SECRET, seconds=3))
    told = bench.figures()
    assert (told.finish, told.error) == ("error", "ServerBusyError")
    assert SECRET not in str(asdict(told))
    assert told.tpot_ms is None


def test_what_was_stopped_before_it_began_has_no_times(bench: Bench) -> None:
    bench.clock.advance(3)
    bench.job.cancel()
    told = bench.figures()
    assert told.finish == "abort"
    assert (told.waited_s, told.ttft_s, told.decode_s, told.itl_p50_ms) == (None,) * 4
    assert told.chars == 0


def test_a_name_may_be_long_and_is_cut(bench: Bench) -> None:
    bench.backend.model = "m" * 5000
    bench.start().answer("yes")
    assert bench.figures().model == "m" * MOST_NAME_CHARS
