"""A job generates one answer whoever is looking, and always comes to an end."""

from __future__ import annotations

import logging
import queue
import threading
import traceback
import weakref
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise

import pytest

from llm.errors import (
    ConnectionLostError,
    ContextOverflowError,
    InternalError,
    LLMError,
    OutOfMemoryError,
    Reason,
    ServerFaultError,
    ShuttingDownError,
    StalledError,
)
from llm.job import CANCEL_GRACE_S, GenerationJob, Snapshot
from llm.scripted_backend import ScriptedBackend
from llm.types import (
    NOT_BEGUN,
    Backend,
    BackendStatus,
    CancelToken,
    Delta,
    Finish,
    GenerationRequest,
    Message,
    Notice,
    SamplingParams,
)
from tests.driven_backend import (
    NEVER,
    PATIENCE_S,
    DrivenBackend,
    DrivenStream,
    ManualClock,
    Saves,
    answer_threads,
    at_once,
    end_of,
    join,
    let_go,
)

MIXED_SCRIPTS = "你好，世界！🙂 👨‍👩‍👧 é ไทย"


SECRET = "my-diary-page"


class Bench:
    """One job on a hand-driven backend, with all that it does on record."""

    def __init__(self, backend: DrivenBackend) -> None:
        self.backend = backend
        self.clock = ManualClock()
        self.saves = Saves()
        self.ends: queue.Queue[Snapshot] = queue.Queue()
        self.job = self.make_job(backend)

    def make_job(
        self,
        backend: Backend,
        save: Callable[[Snapshot], None] | None = None,
        on_end: Callable[[GenerationJob], None] | None = None,
        start_text: str = "",
    ) -> GenerationJob:
        return GenerationJob(
            "conversation",
            "person",
            backend,
            GenerationRequest((Message("user", "why?"),)),
            save=save or self.saves,
            idle_limit_s=60,
            on_end=on_end or (lambda job: self.ends.put(job.snapshot())),
            start_text=start_text,
            clock=self.clock,
        )

    def start(self) -> DrivenStream:
        self.job.start()
        return self.backend.next_stream()

    def the_one_end(self) -> Snapshot:
        """How the job ended, having made sure that it ended once only."""
        final = let_go(self.job)
        assert self.ends.get(timeout=PATIENCE_S) == final
        assert self.ends.empty()
        assert self.saves.finals == [final]
        assert self.job.snapshot() == final
        return final


@pytest.fixture
def bench() -> Iterator[Bench]:
    with DrivenBackend() as backend:
        yield Bench(backend)


@pytest.fixture
def deaf() -> Iterator[Bench]:
    """A bench whose backend doesn't hear Stop."""
    with DrivenBackend(ignores_cancel=True) as backend:
        yield Bench(backend)


# Snapshots


def test_a_slow_reader_skips_versions_but_no_text(bench: Bench) -> None:
    stream = bench.start()
    stream.say("One")
    seen = bench.job.snapshot()
    for piece in (", two", ", three", ", four"):
        stream.say(piece)
    late = bench.job.wait(seen.version, PATIENCE_S)
    assert late.text == "One, two, three, four"
    assert late.version == seen.version + 3
    assert seen.text == "One", "a snapshot taken earlier must not change"


def test_an_eager_reader_sees_the_text_only_ever_grow(bench: Bench) -> None:
    seen: list[Snapshot] = []

    def read() -> None:
        snapshot = bench.job.snapshot()
        while not snapshot.done:
            seen.append(snapshot)
            snapshot = bench.job.wait(snapshot.version, PATIENCE_S)
        seen.append(snapshot)

    reader = threading.Thread(target=read)
    reader.start()
    stream = bench.start()
    pieces = [f"{number} " for number in range(100)]
    for piece in pieces:
        stream.say(piece)
    stream.finish()
    join(reader)
    for before, after in pairwise(seen):
        assert after.version > before.version
        assert after.text.startswith(before.text)
    assert seen[-1].text == "".join(pieces)


def test_a_notice_is_shown_until_the_first_text_and_who_answers_is_kept(bench: Bench) -> None:
    stream = bench.start()
    busy = Reason("notice-busy", {"server": "gpu-1", "left": 3, "try": 2})
    stream.yield_raw(Notice(busy, "gpu-1"))
    assert bench.job.snapshot().notice == busy
    assert bench.job.snapshot().phase == "reading"
    stream.yield_raw(Notice(None, "gpu-2", "big one"))
    assert bench.job.snapshot().notice is None
    stream.yield_raw(Notice(busy, "gpu-2", "big one"))
    stream.say("text")
    snapshot = bench.job.snapshot()
    assert (snapshot.notice, snapshot.server, snapshot.model) == (None, "gpu-2", "big one")
    stream.raise_(ConnectionLostError(url="http://gpu-2/v1"))
    final = bench.the_one_end()
    assert (final.server, final.model, final.text) == ("gpu-2", "big one", "text")


def test_the_first_text_is_timed_from_when_the_model_was_there_and_the_rest_is_waiting(
    bench: Bench,
) -> None:
    bench.clock.advance(40)
    stream = bench.start()
    assert bench.job.snapshot().waited_s == 40
    bench.clock.advance(36)
    stream.yield_raw(Notice(model="m", begins=True))
    assert bench.job.reading_s() == 0
    bench.clock.advance(2)
    stream.say("text")
    stream.finish()
    final = bench.the_one_end()
    assert (final.ttft_s, final.waited_s) == (2, 76)


def test_a_notice_that_is_repeated_keeps_its_time(bench: Bench) -> None:
    stream = bench.start()
    away = Reason("notice-away", {"why": Reason("error-server-starting", {"url": "u"})})
    stream.yield_raw(Notice(away))
    bench.clock.advance(40)
    stream.yield_raw(Notice(Reason(away.message_id, dict(away.values))))
    assert bench.job.notice_s() == 40
    stream.yield_raw(Notice(None))
    assert bench.job.notice_s() == 0
    stream.finish()


def test_no_silence_before_the_first_text_is_too_long(bench: Bench) -> None:
    stream = bench.start()
    stream.yield_raw(Notice(None, "gpu-1"))
    bench.clock.advance(3600)
    bench.job.check_stuck()
    stream.answer("late")
    assert bench.the_one_end().text == "late"


def test_wait_returns_at_once_when_there_is_something_newer(bench: Bench) -> None:
    stream = bench.start()
    stream.say("hello")
    assert bench.job.wait(0, PATIENCE_S).text == "hello"


def test_wait_returns_after_its_timeout_with_what_there_is(bench: Bench) -> None:
    stream = bench.start()
    stream.say("hello")
    now = bench.job.snapshot()
    for timeout_s in (0, 0.01):
        after = bench.job.wait(now.version, timeout_s)
        assert after == now
        assert not after.done


def test_wait_wakes_when_a_piece_arrives(bench: Bench) -> None:
    stream = bench.start()
    version = bench.job.snapshot().version
    got: queue.Queue[Snapshot] = queue.Queue()
    reader = threading.Thread(target=lambda: got.put(bench.job.wait(version, PATIENCE_S)))
    reader.start()
    stream.say("hello")
    assert got.get(timeout=PATIENCE_S).text == "hello"
    join(reader)


def test_every_reader_is_told_of_the_end(bench: Bench) -> None:
    stream = bench.start()
    got: queue.Queue[Snapshot] = queue.Queue()
    readers = [
        threading.Thread(target=lambda: got.put(bench.job.wait(NEVER, PATIENCE_S)))
        for _ in range(5)
    ]
    for reader in readers:
        reader.start()
    stream.answer("done")
    for reader in readers:
        join(reader)
    assert [got.get_nowait().done for _ in readers] == [True] * 5


def test_wait_returns_at_once_when_the_answer_is_over(bench: Bench) -> None:
    bench.start().answer("hello")
    final = end_of(bench.job)
    assert bench.job.wait(final.version, PATIENCE_S) == final


def test_a_job_goes_from_waiting_to_reading_to_answering_to_done(bench: Bench) -> None:
    assert bench.job.snapshot() == Snapshot()
    stream = bench.start()
    assert bench.job.snapshot().phase == "reading"
    assert bench.job.snapshot().ttft_s is None
    stream.say("")
    assert bench.job.snapshot().phase == "reading", "an empty piece is no text"
    stream.say("hello")
    assert bench.job.snapshot().phase == "answering"
    assert bench.job.snapshot().finish is None
    stream.finish("length")
    assert bench.the_one_end().finish == Finish("length")


def test_reasoning_is_kept_apart_from_the_answer(bench: Bench) -> None:
    stream = bench.start()
    stream.say("hmm, ", "reasoning")
    assert bench.job.snapshot().phase == "answering"
    stream.say("yes", "reasoning")
    stream.say("Because.")
    stream.finish()
    final = bench.the_one_end()
    assert (final.reasoning, final.text) == ("hmm, yes", "Because.")


def test_how_long_it_thought_is_kept(bench: Bench) -> None:
    stream = bench.start()
    assert bench.job.snapshot().reasoning_s is None
    bench.clock.advance(5)
    stream.say("hmm", "reasoning")
    assert bench.job.snapshot().thinking
    bench.clock.advance(2)
    assert bench.job.thinking_s() == 2
    stream.say(", yes", "reasoning")
    assert bench.job.snapshot().reasoning_s == 2
    bench.clock.advance(1)
    stream.say("\n\n")
    assert bench.job.snapshot().thinking, "white space is no answer yet"
    bench.clock.advance(1)
    stream.say("Because.")
    assert not bench.job.snapshot().thinking
    bench.clock.advance(10)
    assert bench.job.thinking_s() == 4
    stream.finish()
    final = bench.the_one_end()
    assert (final.reasoning_s, final.thinking, final.text) == (4, False, "\n\nBecause.")


def test_a_thought_that_never_became_an_answer_lasted_to_the_end(bench: Bench) -> None:
    stream = bench.start()
    stream.say("hmm", "reasoning")
    bench.clock.advance(3)
    stream.finish("length")
    final = bench.the_one_end()
    assert (final.reasoning_s, final.thinking, final.text) == (3, False, "")


def test_text_may_turn_out_to_have_been_reasoning(bench: Bench) -> None:
    stream = bench.start()
    bench.clock.advance(1)
    stream.say("Let me ")
    stream.say("see.")
    bench.clock.advance(3)
    before = bench.job.snapshot()
    stream.say("", "recast")
    after = bench.job.snapshot()
    assert after.version > before.version
    assert (after.text, after.reasoning, after.thinking) == ("", "Let me see.", False)
    bench.clock.advance(3)
    stream.say("42")
    stream.finish()
    final = bench.the_one_end()
    assert (final.text, final.reasoning) == ("42", "Let me see.")
    assert (final.ttft_s, final.reasoning_s) == (1, 3)


GIVEN = "As I said, "


@pytest.fixture
def going_on(bench: Bench) -> Bench:
    """A bench whose answer stands in part already."""
    bench.job = bench.make_job(bench.backend, start_text=GIVEN)
    return bench


def test_an_answer_that_goes_on_is_whole_from_the_first_snapshot(going_on: Bench) -> None:
    seen = [going_on.job.snapshot()]
    stream = going_on.start()
    seen.append(going_on.job.snapshot())
    going_on.job.save_partial()
    going_on.clock.advance(2)
    stream.say("it ")
    seen.append(going_on.job.snapshot())
    going_on.job.save_partial()
    going_on.clock.advance(1)
    stream.say("is so.")
    stream.finish()
    final = going_on.the_one_end()
    assert [s.text for s in (*seen, final)] == [*(GIVEN, GIVEN, f"{GIVEN}it ", f"{GIVEN}it is so.")]
    assert [s.phase for s in seen] == ["waiting", "reading", "answering"]
    assert going_on.saves.texts == [GIVEN, f"{GIVEN}it ", f"{GIVEN}it is so."]
    assert [s.ttft_s for s in (*seen, final)] == [None, None, 2, 2]
    assert final.decode_s == 1


def test_an_answer_that_goes_on_keeps_what_stood_whatever_happens(going_on: Bench) -> None:
    stream = going_on.start()
    stream.raise_(ServerFaultError(url="u", status=500))
    final = going_on.the_one_end()
    assert isinstance(final.error, ServerFaultError)
    assert (final.text, final.ttft_s) == (GIVEN, None)


def test_stop_keeps_what_stood_in_line_and_in_mid_answer(going_on: Bench) -> None:
    waiting = going_on.make_job(going_on.backend, start_text=GIVEN, on_end=lambda job: None)
    waiting.cancel()
    assert waiting.snapshot().text == GIVEN
    going_on.saves.snapshots.clear()
    stream = going_on.start()
    stream.say("it")
    going_on.job.cancel()
    assert going_on.the_one_end().text == f"{GIVEN}it"


def test_only_what_is_new_may_turn_out_to_have_been_reasoning(going_on: Bench) -> None:
    stream = going_on.start()
    stream.say("Let me see.")
    stream.say("", "recast")
    stream.say("42")
    stream.finish()
    final = going_on.the_one_end()
    assert (final.text, final.reasoning) == (f"{GIVEN}42", "Let me see.")


def test_starting_twice_asks_the_backend_once(bench: Bench) -> None:
    stream = bench.start()
    bench.job.start()
    stream.answer("once")
    assert bench.the_one_end().text == "once"
    assert len(bench.backend.streams) == 1


def test_the_end_names_the_model(bench: Bench) -> None:
    bench.start().answer("hello")
    assert bench.the_one_end().model == "hand-driven"


@pytest.mark.parametrize("text", ["", "\n", "   ", "```python\nprint("])
def test_an_odd_answer_ends_for_what_it_is(bench: Bench, text: str) -> None:
    bench.start().answer(text)
    final = bench.the_one_end()
    assert (final.text, final.finish, final.error) == (text, Finish("stop"), None)


# Stop


def test_stop_before_the_first_token_ends_the_answer_empty(bench: Bench) -> None:
    stream = bench.start()
    bench.job.cancel()
    final = bench.the_one_end()
    assert (final.text, final.finish, final.error) == ("", Finish("abort"), None)
    assert stream.closed.is_set(), "the backend was not let go"


def test_stop_keeps_the_partial_text(bench: Bench) -> None:
    stream = bench.start()
    stream.say("Once upon")
    bench.job.cancel()
    final = bench.the_one_end()
    assert (final.text, final.finish) == ("Once upon", Finish("abort"))
    assert stream.closed.is_set()


def test_stop_twice_ends_once(bench: Bench) -> None:
    bench.start().say("Once")
    bench.job.cancel()
    bench.job.cancel()
    assert bench.the_one_end().finish == Finish("abort")


def test_stop_from_many_threads_ends_once(bench: Bench) -> None:
    bench.start().say("Once")
    at_once(*[bench.job.cancel] * 8)
    assert bench.the_one_end().finish == Finish("abort")


def test_stop_after_the_end_changes_nothing(bench: Bench) -> None:
    bench.start().answer("All of it.")
    final = bench.the_one_end()
    bench.job.cancel()
    bench.job.check_stuck()
    assert bench.job.snapshot() == final
    assert final.finish == Finish("stop")
    assert bench.ends.empty()
    assert bench.saves.finals == [final]


def test_stop_while_waiting_in_line_never_reaches_the_backend(bench: Bench) -> None:
    bench.job.cancel()
    bench.job.start()
    final = bench.the_one_end()
    assert (final.text, final.finish) == ("", Finish("abort", why=NOT_BEGUN))
    assert final.model == "", "no model had been given it"
    assert bench.backend.streams == []


def test_a_slot_given_in_the_midst_of_stop_is_not_used(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel = CancelToken.cancel

    def start_first(token: CancelToken) -> None:
        bench.job.start()
        cancel(token)

    monkeypatch.setattr(CancelToken, "cancel", start_first)
    bench.job.cancel()
    assert bench.the_one_end().finish == Finish("abort", why=NOT_BEGUN)
    assert bench.backend.streams == []


def test_stop_and_start_at_the_same_moment_end_once(bench: Bench) -> None:
    for _ in range(50):
        bench.saves, bench.ends = Saves(), queue.Queue()
        bench.job = bench.make_job(bench.backend)
        at_once(bench.job.start, bench.job.cancel)
        end = bench.the_one_end().finish
        assert end in (Finish("abort"), Finish("abort", why=NOT_BEGUN))
    assert all(stream.closed.is_set() for stream in bench.backend.streams)


def test_a_backend_that_ends_by_itself_after_stop_counts_as_stopped(deaf: Bench) -> None:
    stream = deaf.start()
    stream.say("Nearly")
    deaf.job.cancel()
    stream.finish("stop", completion_tokens=7)
    final = deaf.the_one_end()
    assert final.finish is not None
    assert final.finish.reason == "abort"
    assert final.finish.usage.completion_tokens == 7


@pytest.mark.parametrize("error", [ConnectionLostError(url="http://x"), RuntimeError("cut")])
def test_an_error_after_stop_counts_as_stopped(deaf: Bench, error: Exception) -> None:
    stream = deaf.start()
    stream.say("Once")
    deaf.job.cancel()
    stream.raise_(error)
    final = deaf.the_one_end()
    assert (final.text, final.finish, final.error) == ("Once", Finish("abort"), None)


def test_a_backend_that_ignores_stop_is_left_behind_after_a_grace(deaf: Bench) -> None:
    stream = deaf.start()
    stream.say("Once")
    deaf.clock.advance(100)
    deaf.job.cancel()
    deaf.clock.advance(CANCEL_GRACE_S)
    deaf.job.check_stuck()
    assert not deaf.job.snapshot().done, "it had some time left"
    deaf.clock.advance(0.1)
    deaf.job.check_stuck()
    final = end_of(deaf.job)
    assert (final.text, final.finish) == ("Once", Finish("abort"))
    stream.say(" upon a time")
    stream.finish()
    assert deaf.the_one_end() == final, "what it says later is nobody's answer"


def test_a_second_stop_does_not_prolong_the_grace(deaf: Bench) -> None:
    deaf.start()
    deaf.job.cancel()
    deaf.clock.advance(CANCEL_GRACE_S)
    deaf.job.cancel()
    deaf.clock.advance(0.1)
    deaf.job.check_stuck()
    assert deaf.job.snapshot().done


# Failures


SECRET = "sk-secret-4711"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(SECRET),
        MemoryError(SECRET),
        SystemExit(SECRET),
        KeyboardInterrupt(SECRET),
        StopIteration(SECRET),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, SECRET),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_backend_raises_ends_the_job_and_leaves_no_reader_waiting(
    bench: Bench, error: BaseException
) -> None:
    stream = bench.start()
    stream.say("So far")
    got: queue.Queue[Snapshot] = queue.Queue()
    reader = threading.Thread(target=lambda: got.put(bench.job.wait(NEVER, PATIENCE_S)))
    reader.start()
    stream.raise_(error)
    join(reader)
    final = bench.the_one_end()
    assert got.get_nowait() == final
    assert (final.text, final.finish) == ("So far", Finish("error"))
    assert isinstance(final.error, InternalError)
    told = "".join(traceback.format_exception(final.error)) + str(final.error.values)
    assert SECRET not in told
    # Python itself turns a StopIteration inside a generator into a RuntimeError.
    kind = "RuntimeError" if isinstance(error, StopIteration) else type(error).__name__
    assert final.error.values == {"kind": kind}


def test_a_stream_that_ends_without_a_finish_is_an_error(bench: Bench) -> None:
    stream = bench.start()
    stream.say("So far")
    stream.end_without_finish()
    final = bench.the_one_end()
    assert isinstance(final.error, InternalError)
    assert final.text == "So far"


@pytest.mark.parametrize("item", [None, "text", 7, Delta(None)])  # type: ignore[arg-type]
def test_a_stream_that_yields_rubbish_is_an_error(bench: Bench, item: object) -> None:
    stream = bench.start()
    stream.say("So far")
    stream.yield_raw(item)
    final = bench.the_one_end()
    assert isinstance(final.error, InternalError)
    assert final.text == "So far"


def test_a_backend_that_fails_to_open_a_stream_ends_the_job(bench: Bench) -> None:
    class Broken(DrivenBackend):
        def stream(
            self, request: GenerationRequest, cancel: CancelToken
        ) -> Generator[Delta | Finish]:
            raise RuntimeError(SECRET)

    bench.job = bench.make_job(Broken())
    bench.job.start()
    assert isinstance(bench.the_one_end().error, InternalError)


def test_a_backend_that_cannot_say_its_status_still_ends(bench: Bench) -> None:
    class Confused(DrivenBackend):
        def status(self) -> BackendStatus:
            raise RuntimeError("no idea")

    with Confused() as backend:
        bench.backend, bench.job = backend, bench.make_job(backend)
        bench.start().answer("hello")
        final = bench.the_one_end()
    assert (final.text, final.finish, final.model) == ("hello", Finish("stop"), "")


def test_an_error_of_the_tree_keeps_its_sentence_and_the_text(bench: Bench) -> None:
    stream = bench.start()
    stream.say("So far")
    stream.raise_(OutOfMemoryError(model="tiny-model"))
    final = bench.the_one_end()
    assert (final.text, final.finish) == ("So far", Finish("error"))
    assert type(final.error) is OutOfMemoryError
    assert "tiny-model" in str(final.error)


class _Tensor:
    """Stands for the gigabytes that a failed step still has in its local variables."""


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_failed_answer_holds_no_memory_when_the_next_one_begins(
    bench: Bench, wrapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest keeps what is logged, and with it the frames that this is about.
    monkeypatch.setattr(logging.getLogger("llm.job"), "disabled", True)
    held: list[weakref.ref[_Tensor]] = []

    class Exhausted(DrivenBackend):
        def stream(
            self, request: GenerationRequest, cancel: CancelToken
        ) -> Generator[Delta | Finish]:
            yield Delta("So far")
            try:
                self.step()
            except MemoryError as error:
                if wrapped:
                    raise OutOfMemoryError(model="tiny") from error
                raise

        def step(self) -> None:
            tensor = _Tensor()
            held.append(weakref.ref(tensor))
            raise MemoryError

    at_the_end: queue.Queue[tuple[Snapshot, _Tensor | None]] = queue.Queue()
    bench.job = bench.make_job(
        Exhausted(), on_end=lambda job: at_the_end.put((job.snapshot(), held[0]()))
    )
    bench.job.start()
    final, tensor = at_the_end.get(timeout=PATIENCE_S)
    assert tensor is None
    assert final.error is not None
    assert final.error.__traceback__ is None


def test_a_system_without_threads_ends_the_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    bench.job.start()
    assert isinstance(bench.the_one_end().error, InternalError)
    assert bench.backend.streams == []


def test_failing_a_job_from_outside_keeps_the_text_and_tells_the_backend(bench: Bench) -> None:
    stream = bench.start()
    stream.say("So far")
    bench.job.fail(ShuttingDownError())
    final = bench.the_one_end()
    assert (final.text, final.finish) == ("So far", Finish("error"))
    assert isinstance(final.error, ShuttingDownError)
    assert stream.cancel.cancelled
    assert stream.closed.wait(PATIENCE_S)


def test_failing_a_job_after_its_end_changes_nothing(bench: Bench) -> None:
    bench.start().answer("All of it.")
    final = bench.the_one_end()
    bench.job.fail(ShuttingDownError())
    assert bench.job.snapshot() == final
    assert bench.ends.empty()


def test_a_job_failed_in_line_is_not_started_any_more(bench: Bench) -> None:
    bench.job.fail(ShuttingDownError())
    bench.job.start()
    assert isinstance(bench.the_one_end().error, ShuttingDownError)
    assert bench.backend.streams == []


# Watchdog


def test_silence_after_text_is_ended_by_the_watchdog(bench: Bench) -> None:
    stream = bench.start()
    stream.say("ten tokens")
    bench.clock.advance(60)
    bench.job.check_stuck()
    assert not bench.job.snapshot().done, "sixty seconds are allowed"
    bench.clock.advance(0.1)
    bench.job.check_stuck()
    final = bench.the_one_end()
    assert (final.text, final.finish) == ("ten tokens", Finish("error"))
    assert isinstance(final.error, StalledError)
    assert final.error.values == {"seconds": 60}
    assert stream.closed.wait(PATIENCE_S), "the backend was not told to let go"


def test_a_notice_after_text_says_that_it_goes_on(bench: Bench) -> None:
    stream = bench.start()
    stream.say("ten tokens")
    for _ in range(3):
        bench.clock.advance(59)
        stream.yield_raw(Notice())
        bench.job.check_stuck()
        assert not bench.job.snapshot().done
    bench.clock.advance(61)
    bench.job.check_stuck()
    final = bench.the_one_end()
    assert isinstance(final.error, StalledError)
    assert (final.text, final.decode_s) == ("ten tokens", 0)


def test_a_long_prefill_is_not_cut_off(bench: Bench) -> None:
    stream = bench.start()
    bench.clock.advance(3600)
    bench.job.check_stuck()
    assert bench.job.snapshot().phase == "reading"
    stream.answer("At last.")
    assert bench.the_one_end().error is None


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_new_text_keeps_the_watchdog_quiet(bench: Bench, kind: str) -> None:
    stream = bench.start()
    for _ in range(5):
        stream.say("still here ", kind)  # type: ignore[arg-type]
        bench.clock.advance(59)
        bench.job.check_stuck()
        assert not bench.job.snapshot().done


@pytest.mark.parametrize("piece", ["", "\0"])
def test_pieces_without_text_do_not_keep_a_dead_stream_alive(bench: Bench, piece: str) -> None:
    stream = bench.start()
    stream.say("ten tokens")
    bench.clock.advance(59)
    stream.say(piece)
    bench.clock.advance(2)
    bench.job.check_stuck()
    assert isinstance(bench.the_one_end().error, StalledError)


# Saving


def test_the_end_is_saved_before_anybody_is_shown_it(bench: Bench) -> None:
    saving, go_on = threading.Event(), threading.Event()

    def save(snapshot: Snapshot) -> None:
        if snapshot.done:
            saving.set()
            assert go_on.wait(PATIENCE_S)

    bench.job = bench.make_job(bench.backend, save=save)
    bench.start().answer("hello")
    assert saving.wait(PATIENCE_S)
    assert not bench.job.snapshot().done
    assert not bench.job.wait(NEVER, 0.01).done
    assert bench.ends.empty()
    go_on.set()
    assert end_of(bench.job).text == "hello"


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, SystemExit])
def test_a_save_that_fails_changes_nothing(bench: Bench, error: type[BaseException]) -> None:
    def save(snapshot: Snapshot) -> None:
        raise error("disk full")

    bench.job = bench.make_job(bench.backend, save=save)
    stream = bench.start()
    stream.say("hello")
    bench.job.save_partial()
    stream.say(" world")
    stream.finish()
    final = let_go(bench.job)
    assert (final.text, final.finish, final.error) == ("hello world", Finish("stop"), None)
    assert bench.ends.get(timeout=PATIENCE_S) == final


def test_a_partial_is_saved_only_when_something_changed(bench: Bench) -> None:
    bench.job.save_partial()
    assert bench.saves.snapshots == []
    stream = bench.start()
    stream.say("one")
    bench.job.save_partial()
    bench.job.save_partial()
    assert bench.saves.texts == ["one"]
    stream.say(" two")
    bench.job.save_partial()
    bench.job.save_partial()
    assert bench.saves.texts == ["one", "one two"]
    assert bench.saves.finals == []


def test_no_partial_is_saved_after_the_end(bench: Bench) -> None:
    bench.start().answer("all")
    final = bench.the_one_end()
    bench.job.save_partial()
    assert bench.saves.snapshots == [final]


def test_a_partial_still_being_saved_cannot_overwrite_the_end(bench: Bench) -> None:
    kept = Saves()
    partial_begun, go_on, end_begun = threading.Event(), threading.Event(), threading.Event()

    def save(snapshot: Snapshot) -> None:
        if snapshot.done:
            end_begun.set()
        else:
            partial_begun.set()
            assert go_on.wait(PATIENCE_S)
        kept(snapshot)

    bench.job = bench.make_job(bench.backend, save=save)
    stream = bench.start()
    stream.say("half")
    keeper = threading.Thread(target=bench.job.save_partial)
    keeper.start()
    assert partial_begun.wait(PATIENCE_S)
    stream.say(" and half")
    stream.finish()
    overtaken = end_begun.wait(0.2)
    go_on.set()
    join(keeper)
    let_go(bench.job)
    assert not overtaken
    assert kept.texts == ["half", "half and half"]
    assert kept.snapshots[-1].done


def test_partials_saved_from_several_threads_never_go_backwards(bench: Bench) -> None:
    over = threading.Event()

    def keep_saving() -> None:
        while not over.is_set():
            bench.job.save_partial()

    keepers = [threading.Thread(target=keep_saving) for _ in range(2)]
    stream = bench.start()
    for keeper in keepers:
        keeper.start()
    for number in range(200):
        stream.say(f"{number} ")
    stream.finish()
    final = let_go(bench.job)
    over.set()
    for keeper in keepers:
        join(keeper)
    versions = [snapshot.version for snapshot in bench.saves.snapshots]
    assert versions == sorted(set(versions))
    assert bench.saves.snapshots[-1] == final
    assert bench.saves.finals == [final]


def test_what_follows_the_end_follows_once_and_sees_it_published(bench: Bench) -> None:
    bench.start().answer("hello")
    let_go(bench.job)
    assert bench.ends.get_nowait().done
    assert bench.ends.empty()


def test_a_failure_in_what_follows_harms_nobody(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(job: GenerationJob) -> None:
        raise RuntimeError("nobody there")

    bench.job = bench.make_job(bench.backend, on_end=fail)
    bench.start().answer("hello")
    assert let_go(bench.job).text == "hello"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_what_people_wrote_never_reaches_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def refuse(snapshot: Snapshot) -> None:
        raise OSError(f"no room for {SECRET}")

    bench.job = bench.make_job(bench.backend, save=refuse)
    bench.start().raise_(ValueError(f"cannot encode {SECRET}"))
    let_go(bench.job)
    assert "ValueError" in caplog.text
    assert "OSError" in caplog.text
    assert SECRET not in caplog.text


# Text


def answer_from(bench: Bench, pieces: list[str]) -> list[str]:
    """The text after each of these pieces, and at the end."""
    bench.saves, bench.ends = Saves(), queue.Queue()
    bench.job = bench.make_job(bench.backend)
    stream = bench.start()
    shown = []
    for piece in pieces:
        stream.say(piece)
        shown.append(bench.job.snapshot().text)
    stream.finish()
    return [*shown, bench.the_one_end().text]


def utf16_units(text: str) -> list[str]:
    """The text as a server that counts in UTF-16 would cut it: surrogate halves stand alone."""
    raw = text.encode("utf-16-le")
    return [raw[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(raw), 2)]


def is_whole(text: str) -> bool:
    return "\ufffd" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def test_halves_of_an_emoji_become_one_and_are_never_shown_alone(bench: Bench) -> None:
    assert answer_from(bench, ["a\ud83d", "\ude42b"]) == ["a", "a🙂b", "a🙂b"]


def test_any_cut_through_any_script_shows_whole_characters_only(bench: Bench) -> None:
    units = utf16_units(MIXED_SCRIPTS)
    shown = answer_from(bench, units)
    assert all(is_whole(text) for text in shown)
    assert shown[-1] == MIXED_SCRIPTS
    for cut in range(1, len(units)):
        shown = answer_from(bench, ["".join(units[:cut]), "".join(units[cut:])])
        assert all(is_whole(text) for text in shown)
        assert shown[-1] == MIXED_SCRIPTS


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a\ud83db"], "ab"),
        (["a\ude42bc"], "abc"),
        (["a\ud83d", "b"], "ab"),
        (["a", "\ude42", "b"], "ab"),
        (["a\ud83d"], "a"),
        (["a\ud83d", "\ud83d\ude42b"], "a🙂b"),
        (["a\ud83d", "", "\ude42b"], "a🙂b"),
        (["\ud83d", "\ud83d", "\ude42"], "🙂"),
        (["你\ud83d好"], "你好"),
        (["a\0b", "\0", "\0c"], "abc"),
        (["🙂\0\ud83d", "\ude42"], "🙂🙂"),
    ],
    ids=ascii,
)
def test_what_is_no_text_vanishes_and_nothing_around_it(
    bench: Bench, pieces: list[str], text: str
) -> None:
    shown = answer_from(bench, pieces)
    assert shown[-1] == text
    assert all(is_whole(each) and "\0" not in each for each in shown)
    shown[-1].encode()


def test_half_a_character_is_no_change(bench: Bench) -> None:
    stream = bench.start()
    before = bench.job.snapshot()
    stream.say("\ud83d")
    assert bench.job.snapshot() == before
    stream.say("\ude42")
    assert bench.job.snapshot().text == "🙂"


# Figures


def test_the_figures_are_those_of_the_clock(bench: Bench) -> None:
    bench.clock.advance(2)
    stream = bench.start()
    assert bench.job.snapshot().waited_s == 2
    bench.clock.advance(1.5)
    assert bench.job.reading_s() == 1.5
    stream.say("first")
    bench.clock.advance(0.5)
    stream.say(" second")
    bench.clock.advance(1.5)
    stream.say(" last")
    bench.clock.advance(30)
    stream.finish(completion_tokens=11)
    final = bench.the_one_end()
    assert (final.waited_s, final.ttft_s, final.decode_s) == (2, 1.5, 2)
    assert final.tokens_per_s == 5, "ten tokens after the first in two seconds"


@pytest.mark.parametrize("tokens", [None, 0, 1])
def test_there_is_no_speed_where_there_is_nothing_to_count(
    bench: Bench, tokens: int | None
) -> None:
    stream = bench.start()
    stream.say("one")
    bench.clock.advance(1)
    stream.say("two")
    stream.finish(completion_tokens=tokens)
    assert bench.the_one_end().tokens_per_s is None


def test_there_is_no_speed_where_all_came_in_one_piece(bench: Bench) -> None:
    stream = bench.start()
    stream.say("all of it")
    stream.finish(completion_tokens=3)
    final = bench.the_one_end()
    assert final.tokens_per_s is None
    assert final.decode_s == 0


def test_an_answer_without_text_has_no_time_to_first_token(bench: Bench) -> None:
    stream = bench.start()
    bench.clock.advance(9)
    stream.finish()
    final = bench.the_one_end()
    assert (final.ttft_s, final.reasoning_s) == (None, None)


def test_reasoning_counts_as_the_first_token(bench: Bench) -> None:
    stream = bench.start()
    bench.clock.advance(1)
    stream.say("hmm", "reasoning")
    bench.clock.advance(1)
    stream.say("yes")
    stream.finish()
    assert bench.the_one_end().ttft_s == 1


def test_no_thread_is_left_when_an_answer_is_over(bench: Bench) -> None:
    bench.start().answer("hello")
    bench.the_one_end()
    assert answer_threads(bench.job) == []


def test_a_job_that_went_wrong_in_any_way_of_the_tree_is_an_error_not_an_abort(
    bench: Bench,
) -> None:
    errors: list[LLMError] = [ServerFaultError(url="u", status=500), StalledError(seconds=1)]
    for error in errors:
        bench.saves, bench.ends = Saves(), queue.Queue()
        bench.job = bench.make_job(bench.backend)
        bench.start().raise_(error)
        final = bench.the_one_end()
        assert final.finish == Finish("error")
        assert final.error is error


# The window


def _long_conversation(turns: int) -> GenerationRequest:
    said = [
        (Message("user", f"question {n}"), Message("assistant", "word " * 80)) for n in range(turns)
    ]
    messages = [message for pair in said for message in pair]
    return GenerationRequest((*messages, Message("user", "now?")), SamplingParams(max_tokens=20))


def _answer_of(backend: ScriptedBackend, request: GenerationRequest) -> Snapshot:
    job = GenerationJob("c", "p", backend, request, save=lambda snapshot: None)
    job.start()
    return job.wait(NEVER, PATIENCE_S)


def test_a_conversation_that_no_longer_fits_is_answered_and_says_what_was_left_out() -> None:
    final = _answer_of(ScriptedBackend(window_tokens=400), _long_conversation(10))
    assert final.error is None
    assert final.left_out == 7
    assert final.text


def test_a_backend_that_only_says_so_afterwards_is_asked_again_with_less() -> None:
    class Countless(ScriptedBackend):
        asked = 0

        def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
            return None

        def stream(
            self, request: GenerationRequest, cancel: CancelToken
        ) -> Generator[Delta | Finish]:
            self.asked += 1
            return super().stream(request, cancel)

    backend = Countless(window_tokens=400)
    final = _answer_of(backend, _long_conversation(10))
    assert final.error is None
    assert final.left_out == 7
    assert backend.asked == 2


def test_a_question_that_is_too_long_by_itself_says_by_how_much() -> None:
    request = GenerationRequest((Message("user", "x" * 4000),), SamplingParams(max_tokens=20))
    final = _answer_of(ScriptedBackend(window_tokens=400), request)
    assert isinstance(final.error, ContextOverflowError)
    assert final.error.values == {"prompt_tokens": 1001, "limit": 400, "over": 601}
    assert final.left_out == 0
