"""Who answers now, who waits, and in which order; and nothing is ever left behind."""

from __future__ import annotations

import gc
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

from llm import registry as registry_module
from llm.errors import (
    InternalError,
    OutOfMemoryError,
    QueueFullError,
    ShuttingDownError,
    StalledError,
)
from llm.job import CANCEL_GRACE_S, GenerationJob, Snapshot
from llm.registry import JobRegistry
from llm.types import Backend, Finish, GenerationRequest, Message
from tests.driven_backend import (
    PATIENCE_S,
    DrivenBackend,
    EchoBackend,
    ManualClock,
    Saves,
    at_once,
    end_of,
    join,
    let_go,
)


class Office:
    """A registry, and the people who ask it."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self.backend = backend
        self.registry = JobRegistry(max_waiting=5, idle_limit_s=60, clock=clock)
        self.saves: dict[str, Saves] = {}

    def ask(
        self,
        question: str,
        *,
        person: str | None = None,
        conversation: str | None = None,
        backend: Backend | None = None,
        on_end: Callable[[GenerationJob], None] = lambda job: None,
        start_text: str = "",
    ) -> GenerationJob:
        """Ask; the conversation is called like its question, its first letter is who asks."""
        saves = self.saves.setdefault(question, Saves())
        return self.registry.submit(
            conversation or question,
            person or question[0],
            backend or self.backend,
            GenerationRequest((Message("user", question),)),
            save=saves,
            on_end=on_end,
            start_text=start_text,
        )


@pytest.fixture
def backend() -> Iterator[DrivenBackend]:
    with DrivenBackend() as backend:
        yield backend


@pytest.fixture
def office(backend: DrivenBackend) -> Iterator[Office]:
    office = Office(backend)
    yield office
    office.registry.close()


@pytest.fixture
def quick_keeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "KEEPER_INTERVAL_S", 0.005)


def phases(*jobs: GenerationJob) -> list[str]:
    return [job.snapshot().phase for job in jobs]


def order_of_answers(backend: DrivenBackend, jobs: list[GenerationJob]) -> list[str]:
    """Answer one after the other; the questions in the order in which they had their turn."""
    order = []
    for _ in jobs:
        stream = backend.next_stream()
        order.append(stream.question)
        stream.answer("yes")
    for job in jobs:
        let_go(job)
    return order


# One job a conversation


def test_an_answer_goes_on_with_what_stands_of_it(office: Office, backend: DrivenBackend) -> None:
    first = office.ask("first")
    second = office.ask("second", start_text="As I ")
    assert second.snapshot().text == "As I "
    backend.next_stream().answer("one")
    backend.next_stream().answer("said.")
    assert [let_go(job).text for job in (first, second)] == ["one", "As I said."]


def test_a_running_job_wins_over_a_second_question(office: Office, backend: DrivenBackend) -> None:
    first = office.ask("first", conversation="c")
    stream = backend.next_stream()
    second = office.ask("second", conversation="c")
    assert second is first
    stream.answer("one")
    assert let_go(first).text == "one"
    assert [stream.question for stream in backend.streams] == ["first"]
    assert office.saves["second"].snapshots == []


def test_a_waiting_job_wins_too(office: Office, backend: DrivenBackend) -> None:
    office.ask("a running one")
    waiting = office.ask("first", conversation="c")
    assert office.ask("second", conversation="c") is waiting


def test_many_who_ask_at_once_in_one_conversation_get_the_same_job(
    office: Office, backend: DrivenBackend
) -> None:
    jobs: queue.Queue[GenerationJob] = queue.Queue()
    at_once(*[lambda: jobs.put(office.ask("same", conversation="c"))] * 12)
    assert len({id(jobs.get_nowait()) for _ in range(12)}) == 1
    backend.next_stream().answer("one")
    assert len(backend.streams) == 1


def test_after_the_end_the_conversation_is_free_again(
    office: Office, backend: DrivenBackend
) -> None:
    first = office.ask("first", conversation="c")
    assert office.registry.get("c") is first
    backend.next_stream().answer("one")
    let_go(first)
    assert office.registry.get("c") is None
    second = office.ask("second", conversation="c")
    assert second is not first
    backend.next_stream().answer("two")
    assert end_of(second).text == "two"
    assert first.snapshot().text == "one"


def test_what_follows_an_end_finds_the_place_given_away(
    office: Office, backend: DrivenBackend
) -> None:
    found: queue.Queue[tuple[GenerationJob | None, str]] = queue.Queue()
    other: list[GenerationJob] = []

    def look(job: GenerationJob) -> None:
        found.put((office.registry.get("first"), other[0].snapshot().phase))

    office.ask("first", on_end=look)
    stream = backend.next_stream()
    other.append(office.ask("other"))
    stream.answer("one")
    assert found.get(timeout=PATIENCE_S) == (None, "reading")


# Slots


def test_no_more_run_at_once_than_there_are_slots(office: Office, backend: DrivenBackend) -> None:
    backend.slots = 2
    jobs = [office.ask(question) for question in ("a", "b", "c", "d")]
    assert phases(*jobs) == ["reading", "reading", "waiting", "waiting"]
    streams = {stream.question: stream for stream in (backend.next_stream(), backend.next_stream())}
    assert set(streams) == {"a", "b"}
    streams["b"].answer("yes")
    let_go(jobs[1])
    assert phases(*jobs) == ["reading", "done", "reading", "waiting"]
    assert backend.next_stream().question == "c"
    assert len(backend.streams) == 3


def test_a_busy_backend_does_not_hold_up_another(office: Office, backend: DrivenBackend) -> None:
    office.ask("a")
    with DrivenBackend() as other:
        job = office.ask("b", backend=other)
        other.next_stream().answer("quick")
        assert end_of(job).text == "quick"


@pytest.mark.parametrize(
    "error", [OutOfMemoryError(model="m"), RuntimeError("defect"), SystemExit(1)]
)
def test_a_job_that_fails_frees_its_slot(
    office: Office, backend: DrivenBackend, error: BaseException
) -> None:
    failing, waiting = office.ask("failing"), office.ask("waiting")
    stream = backend.next_stream()
    stream.say("So far")
    stream.raise_(error)
    assert end_of(failing).error is not None
    assert end_of(failing).text == "So far"
    backend.next_stream().answer("fine")
    assert end_of(waiting).text == "fine"
    assert end_of(waiting).error is None


def test_a_stopped_job_frees_its_slot(office: Office, backend: DrivenBackend) -> None:
    stopped, waiting = office.ask("stopped"), office.ask("waiting")
    backend.next_stream().say("So far")
    stopped.cancel()
    backend.next_stream().answer("fine")
    assert end_of(stopped).finish == Finish("abort")
    assert end_of(waiting).text == "fine"


@pytest.mark.usefixtures("quick_keeper")
def test_a_backend_that_ignores_stop_loses_its_slot_after_a_grace() -> None:
    clock = ManualClock()
    with DrivenBackend(ignores_cancel=True) as backend:
        office = Office(backend, clock)
        stuck, waiting = office.ask("stuck"), office.ask("waiting")
        stream = backend.next_stream()
        stream.say("So far")
        stuck.cancel()
        assert phases(waiting) == ["waiting"]
        clock.advance(CANCEL_GRACE_S + 1)
        second = backend.next_stream()
        assert end_of(stuck).finish == Finish("abort")
        assert end_of(stuck).text == "So far"
        second.answer("fine")
        assert end_of(waiting).text == "fine"
        stream.answer("too late")
        let_go(stuck)
        assert end_of(stuck).text == "So far"
        assert office.registry.running() == 0, "the late end must not free a slot twice"
        office.registry.close()


@pytest.mark.usefixtures("quick_keeper")
def test_a_stalled_stream_is_ended_and_the_next_question_works() -> None:
    clock = ManualClock()
    with DrivenBackend(ignores_cancel=True) as backend:
        office = Office(backend, clock)
        stalled, waiting = office.ask("stalled"), office.ask("waiting")
        backend.next_stream().say("ten tokens")
        clock.advance(61)
        backend.next_stream().answer("fine")
        assert isinstance(end_of(stalled).error, StalledError)
        assert end_of(stalled).text == "ten tokens"
        assert end_of(waiting).text == "fine"
        office.registry.close()


# Fairness


def test_five_questions_of_one_person_do_not_hold_up_the_one_of_another(
    office: Office, backend: DrivenBackend
) -> None:
    jobs = [office.ask(question) for question in ("A1", "A2", "A3", "A4", "A5", "B1")]
    assert order_of_answers(backend, jobs) == ["A1", "B1", "A2", "A3", "A4", "A5"]


def test_people_take_turns(backend: DrivenBackend) -> None:
    office = Office(backend)
    office.registry = JobRegistry(max_waiting=10)
    questions = ("A1", "A2", "A3", "A4", "B1", "B2", "B3", "C1", "C2")
    jobs = [office.ask(question) for question in questions]
    taken = order_of_answers(backend, jobs)
    assert taken == ["A1", "B1", "C1", "A2", "B2", "C2", "A3", "B3", "A4"]
    office.registry.close()


def test_with_two_slots_the_second_goes_to_another_person(
    office: Office, backend: DrivenBackend
) -> None:
    backend.slots = 2
    blockers = [office.ask("X1"), office.ask("Y1")]
    jobs = [office.ask(question) for question in ("A1", "A2", "A3", "B1")]
    for _ in blockers:
        backend.next_stream().answer("yes")
    for blocker in blockers:
        let_go(blocker)
    assert phases(*jobs) == ["reading", "waiting", "waiting", "reading"]


def test_newcomers_do_not_keep_a_waiting_person_waiting_for_ever(
    office: Office, backend: DrivenBackend
) -> None:
    jobs = [office.ask("A1"), office.ask("A2")]
    backend.next_stream().answer("yes")
    let_go(jobs[0])
    for newcomer in ("B1", "C1", "D1"):
        jobs.append(office.ask(newcomer))
    assert order_of_answers(backend, jobs[1:]) == ["A2", "B1", "C1", "D1"]


def test_a_stopped_question_in_line_costs_a_person_nothing(
    office: Office, backend: DrivenBackend
) -> None:
    jobs = [office.ask(question) for question in ("X1", "A1", "A2", "B1")]
    jobs[1].cancel()
    let_go(jobs[1])
    assert order_of_answers(backend, [jobs[0], jobs[2], jobs[3]]) == ["X1", "A2", "B1"]


def test_ahead_of_says_the_order_that_then_happens(office: Office, backend: DrivenBackend) -> None:
    jobs = [office.ask(question) for question in ("A1", "A2", "B1", "A3", "C1", "B2")]
    told = sorted(jobs[1:], key=office.registry.ahead_of)
    assert [office.registry.ahead_of(job) for job in told] == [0, 1, 2, 3, 4]
    expected = [job.conversation_id for job in told]
    assert order_of_answers(backend, jobs) == ["A1", *expected]


def test_ahead_of_goes_down_to_nothing(office: Office, backend: DrivenBackend) -> None:
    jobs = [office.ask(question) for question in ("A", "B", "C", "D")]
    last = jobs[-1]
    counts = []
    for job in jobs:
        counts.append(office.registry.ahead_of(last))
        backend.next_stream().answer("yes")
        let_go(job)
    assert counts == [2, 1, 0, 0]
    assert office.registry.ahead_of(last) == 0


def test_nobody_is_ahead_of_a_job_that_does_not_wait(
    office: Office, backend: DrivenBackend
) -> None:
    running = office.ask("A")
    office.ask("B")
    assert office.registry.ahead_of(running) == 0
    backend.next_stream().answer("yes")
    let_go(running)
    assert office.registry.ahead_of(running) == 0


def test_who_gives_up_waiting_lets_the_others_move_up(
    office: Office, backend: DrivenBackend
) -> None:
    jobs = [office.ask(question) for question in ("A", "B", "C", "D")]
    assert office.registry.ahead_of(jobs[3]) == 2
    jobs[1].cancel()
    assert office.registry.ahead_of(jobs[3]) == 1
    assert order_of_answers(backend, [jobs[0], jobs[2], jobs[3]]) == ["A", "C", "D"]


# The line's end


def test_a_full_queue_refuses_and_keeps_nothing(office: Office, backend: DrivenBackend) -> None:
    jobs = [office.ask(question) for question in ("r", "1", "2", "3", "4", "5")]
    with pytest.raises(QueueFullError) as refusal:
        office.ask("one too many")
    assert refusal.value.values == {"limit": 5}
    assert office.registry.get("one too many") is None
    assert office.registry.running() == 6
    with DrivenBackend() as other:
        assert phases(office.ask("elsewhere", backend=other)) == ["reading"]
    jobs[3].cancel()
    assert phases(office.ask("now there is room")) == ["waiting"]


# Close


def test_close_ends_all_and_keeps_the_partial_texts(office: Office, backend: DrivenBackend) -> None:
    jobs = [office.ask(question) for question in ("A", "B", "C")]
    stream = backend.next_stream()
    stream.say("So far")
    office.registry.close()
    finals = [let_go(job) for job in jobs]
    assert [final.text for final in finals] == ["So far", "", ""]
    assert all(isinstance(final.error, ShuttingDownError) for final in finals)
    assert [office.saves[question].finals for question in "ABC"] == [[final] for final in finals]
    assert stream.closed.wait(PATIENCE_S)
    assert [stream.question for stream in backend.streams] == ["A"], "close must not start others"
    assert office.registry.running() == 0


def test_a_closed_registry_takes_no_more(office: Office, backend: DrivenBackend) -> None:
    office.registry.close()
    office.registry.close()
    with pytest.raises(ShuttingDownError):
        office.ask("A")
    assert office.registry.running() == 0
    assert backend.streams == []


def test_close_ends_the_keeper(office: Office, backend: DrivenBackend) -> None:
    before = set(threading.enumerate())
    fresh = Office(backend)
    fresh.ask("A")
    (keeper,) = [t for t in set(threading.enumerate()) - before if t.name == "job-keeper"]
    fresh.registry.close()
    join(keeper)


# The keeper


@pytest.mark.usefixtures("quick_keeper")
def test_partial_texts_are_saved_without_anybody_looking(
    office: Office, backend: DrivenBackend
) -> None:
    office.ask("A")
    backend.next_stream().say("So far")
    office.saves["A"].wait_for_text("So far")
    assert office.saves["A"].finals == []


@pytest.mark.usefixtures("quick_keeper")
def test_a_job_whose_saves_fail_does_not_keep_others_from_being_saved(
    office: Office, backend: DrivenBackend
) -> None:
    backend.slots = 2

    def fail(snapshot: Snapshot) -> None:
        raise OSError("disk full")

    request = GenerationRequest((Message("user", "broken"),))
    office.registry.submit("broken", "p", backend, request, save=fail)
    backend.next_stream().say("lost")
    office.ask("fine")
    backend.next_stream().say("kept")
    office.saves["fine"].wait_for_text("kept")


def test_partial_texts_are_saved_well_within_a_second() -> None:
    assert registry_module.KEEPER_INTERVAL_S <= 0.5


# A system at its limits


def test_a_system_without_threads_refuses_and_leaves_no_job(
    backend: DrivenBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(backend)
    with monkeypatch.context() as patch:

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            office.ask("A")
    assert office.registry.running() == 0
    job = office.ask("A")
    backend.next_stream().answer("yes")
    assert let_go(job).text == "yes"
    office.registry.close()


def test_a_job_that_gets_no_thread_ends_and_frees_its_slot(
    office: Office, backend: DrivenBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = office.ask("A")
    stream = backend.next_stream()
    with monkeypatch.context() as patch:

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        waiting = office.ask("B")
        patch.setattr(threading.Thread, "start", refuse)
        stream.answer("yes")
        let_go(running)
    assert isinstance(end_of(waiting).error, InternalError)
    assert office.registry.running() == 0


# In numbers


def wait_till_gone(left: list[weakref.ref[GenerationJob]]) -> None:
    """The keeper may hold a job for the moment in which it looks after it, but not for longer."""
    deadline_s = time.monotonic() + PATIENCE_S
    while any(ref() is not None for ref in left):
        assert time.monotonic() < deadline_s, "jobs are left behind"
        gc.collect()


@pytest.mark.usefixtures("quick_keeper")
def test_hundreds_of_jobs_from_many_threads_all_end_unmixed_and_leave_nothing() -> None:
    threads_before = set(threading.enumerate())
    backend = EchoBackend(slots=4)
    registry = JobRegistry(max_waiting=1000)
    jobs: queue.Queue[tuple[str, GenerationJob, Saves]] = queue.Queue()

    def ask_forty(person: int) -> None:
        for number in range(40):
            question = f"question {number} of person {person}"
            saves = Saves()
            request = GenerationRequest((Message("user", question),))
            job = registry.submit(question, f"person {person}", backend, request, save=saves)
            jobs.put((question, job, saves))

    at_once(*[lambda person=person: ask_forty(person) for person in range(8)])
    left: list[weakref.ref[GenerationJob]] = []
    while not jobs.empty():
        question, job, saves = jobs.get_nowait()
        final = let_go(job)
        assert (final.text, final.finish, final.error) == (question, Finish("stop"), None)
        assert saves.finals == [final]
        left.append(weakref.ref(job))
    assert len(left) == 320
    assert backend.most_at_once <= 4
    assert registry.running() == 0
    new_threads = set(threading.enumerate()) - threads_before
    assert [thread.name for thread in new_threads] == ["job-keeper"]
    del job, saves, final
    wait_till_gone(left)
    registry.close()


@pytest.mark.usefixtures("quick_keeper")
def test_a_chaos_of_stops_and_failures_frees_every_slot() -> None:
    with DrivenBackend(slots=3) as backend:
        registry = JobRegistry(max_waiting=1000)
        saves = {f"c{number}": Saves() for number in range(60)}
        jobs = [
            registry.submit(
                conversation,
                f"person {number % 7}",
                backend,
                GenerationRequest((Message("user", conversation),)),
                save=saves[conversation],
            )
            for number, conversation in enumerate(saves)
        ]
        in_line = [job for job in jobs if job.snapshot().phase == "waiting"]
        at_once(*[job.cancel for job in in_line[::3]])
        while registry.running():
            stream = backend.next_stream()
            number = int(stream.question[1:])
            job = jobs[number]
            stream.say(stream.question)
            if number % 4 == 0:
                stream.raise_(RuntimeError("defect"))
            elif number % 4 == 1:
                job.cancel()
            else:
                stream.finish()
            let_go(job)
        for conversation, job in zip(saves, jobs, strict=True):
            final = let_go(job)
            assert final.text in ("", conversation)
            assert saves[conversation].finals == [final]
        reasons = {final.finish.reason for job in jobs if (final := job.snapshot()).finish}
        assert reasons == {"stop", "abort", "error"}
        registry.close()
