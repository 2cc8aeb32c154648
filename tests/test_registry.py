"""Who answers now, who waits, and in which order; and nothing is ever left behind."""

from __future__ import annotations

import gc
import itertools
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

from llm import registry as registry_module
from llm.cached_backend import CachedBackend
from llm.errors import (
    InternalError,
    OutOfMemoryError,
    QueueFullError,
    ShuttingDownError,
    StalledError,
    TooManyWaitingError,
)
from llm.job import CANCEL_GRACE_S, GenerationJob, Snapshot
from llm.registry import JobRegistry
from llm.types import Backend, Finish, GenerationRequest, Message
from llm.wait_estimate import FEW
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

    def number(self, job: GenerationJob) -> int:
        """Its number in line; 0 when it doesn't wait."""
        place = self.registry.place_of(job)
        return place.number if place else 0


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


def test_slots_that_come_later_are_given_to_those_who_wait(
    office: Office, backend: DrivenBackend
) -> None:
    backend.slots = 1
    jobs = [office.ask(question) for question in ("a", "b", "c", "d")]
    assert phases(*jobs) == ["reading", "waiting", "waiting", "waiting"]
    backend.slots = 3
    office.registry._look_after_all()
    assert phases(*jobs) == ["reading", "reading", "reading", "waiting"]


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


def test_places_say_the_order_that_then_happens(office: Office, backend: DrivenBackend) -> None:
    jobs = [office.ask(question) for question in ("A1", "A2", "B1", "A3", "C1", "B2")]
    told = sorted(jobs[1:], key=office.number)
    assert [office.number(job) for job in told] == [1, 2, 3, 4, 5]
    expected = [job.conversation_id for job in told]
    assert order_of_answers(backend, jobs) == ["A1", *expected]


def test_a_place_goes_down_to_none(office: Office, backend: DrivenBackend) -> None:
    jobs = [office.ask(question) for question in ("A", "B", "C", "D")]
    last = jobs[-1]
    counts = []
    for job in jobs:
        counts.append(office.number(last))
        backend.next_stream().answer("yes")
        let_go(job)
    assert counts == [3, 2, 1, 0]
    assert office.registry.place_of(last) is None


def test_those_in_line_are_counted_for_each_backend(office: Office, backend: DrivenBackend) -> None:
    assert office.registry.waiting(backend) == 0
    jobs = [office.ask(question) for question in ("a1", "b1", "c1")]
    with DrivenBackend() as other:
        jobs.append(office.ask("d1", backend=other))
        assert office.registry.waiting(backend) == 2
        assert office.registry.waiting(other) == 0
        jobs[2].cancel()
        assert office.registry.waiting(backend) == 1
        for job in jobs:
            job.cancel()
            let_go(job)
    assert office.registry.waiting(backend) == 0


def test_a_job_that_does_not_wait_has_no_place(office: Office, backend: DrivenBackend) -> None:
    running = office.ask("A")
    office.ask("B")
    assert office.registry.place_of(running) is None
    backend.next_stream().answer("yes")
    let_go(running)
    assert office.registry.place_of(running) is None


def test_who_gives_up_waiting_lets_the_others_move_up(
    office: Office, backend: DrivenBackend
) -> None:
    jobs = [office.ask(question) for question in ("A", "B", "C", "D")]
    assert office.number(jobs[3]) == 3
    jobs[1].cancel()
    assert office.number(jobs[3]) == 2
    assert order_of_answers(backend, [jobs[0], jobs[2], jobs[3]]) == ["A", "C", "D"]


@pytest.mark.parametrize("same_person", [True, False])
def test_one_question_beside_fifty_waits_for_one_answer(
    backend: DrivenBackend, same_person: bool
) -> None:
    """Fifty of one person, in as many conversations; the others come one after the other."""
    office = Office(backend)
    office.registry = JobRegistry(max_waiting=100)
    jobs = [office.ask(f"A{number}") for number in range(50)]
    waited: list[int] = []
    taken = 0
    for newcomer in range(5):
        jobs.append(office.ask(f"B{newcomer}", person="B" if same_person else f"B{newcomer}"))
        before = taken
        question = ""
        while question != f"B{newcomer}":
            stream = backend.next_stream()
            question = stream.question
            taken += 1
            stream.answer("yes")
            let_go(next(job for job in jobs if job.conversation_id == question))
        waited.append(taken - before - 1)
    # The one that ran when it was asked, and no other: each newcomer is the very next.
    assert waited == [1, 1, 1, 1, 1]
    office.registry.close()


def test_everybody_has_a_turn_before_anybody_has_two(backend: DrivenBackend) -> None:
    office = Office(backend)
    office.registry = JobRegistry(max_waiting=1000)
    jobs = [office.ask(f"A{number}", person="A") for number in range(20)]
    jobs += [office.ask(f"{person}{number}") for number in range(2) for person in "BCDEFGHI"]
    order = order_of_answers(backend, jobs)
    assert sorted(question[0] for question in order[:9]) == list("ABCDEFGHI")
    assert sorted(question[0] for question in order[9:18]) == list("ABCDEFGHI")
    office.registry.close()


# How long it will take


def learned(office: Office, backend: DrivenBackend, clock: ManualClock, taken_s: float) -> None:
    """Answers that take so long, as many as tell something."""
    for _ in range(FEW):
        job = office.ask("learned")
        stream = backend.next_stream()
        stream.say("one")
        clock.advance(taken_s)
        stream.finish()
        let_go(job)


def left_s(office: Office, job: GenerationJob) -> float | None:
    place = office.registry.place_of(job)
    assert place is not None
    return place.left_s


def test_nothing_is_told_of_time_before_an_answer_is_over(backend: DrivenBackend) -> None:
    office = Office(backend, ManualClock())
    office.ask("A")
    assert left_s(office, office.ask("B")) is None
    office.registry.close()


def test_the_time_told_is_what_answers_took_and_goes_down(backend: DrivenBackend) -> None:
    clock = ManualClock()
    office = Office(backend, clock)
    learned(office, backend, clock, 10)
    office.ask("A")
    second, third = office.ask("B"), office.ask("C")
    assert (left_s(office, second), left_s(office, third)) == (10, 20)
    clock.advance(4)
    assert (left_s(office, second), left_s(office, third)) == (6, 16)
    backend.next_stream().answer("after four seconds")
    assert backend.next_stream().question == "B"
    assert office.registry.place_of(second) is None
    assert left_s(office, third) == 16  # it may be sooner, which is no reason to jump
    office.registry.close()


def test_who_leaves_shortens_the_wait_of_those_behind(backend: DrivenBackend) -> None:
    clock = ManualClock()
    office = Office(backend, clock)
    learned(office, backend, clock, 10)
    jobs = [office.ask(question) for question in "ABC"]
    assert left_s(office, jobs[2]) == 20
    jobs[1].cancel()
    assert left_s(office, jobs[2]) == 10
    office.registry.close()


def test_a_model_that_is_not_ready_gives_no_time(backend: DrivenBackend) -> None:
    clock = ManualClock()
    office = Office(backend, clock)
    learned(office, backend, clock, 10)
    office.ask("A")
    waiting = office.ask("B")
    backend.phase = "loading"
    assert left_s(office, waiting) is None
    backend.phase = "ready"
    assert left_s(office, waiting) == 10
    office.registry.close()


def test_a_failure_teaches_nothing_of_what_answers_take(backend: DrivenBackend) -> None:
    office = Office(backend, ManualClock())
    failing = office.ask("A")
    backend.next_stream().raise_(OutOfMemoryError(model="m"))
    let_go(failing)
    office.ask("B")
    assert left_s(office, office.ask("C")) is None
    office.registry.close()


def test_what_was_learned_of_a_backend_goes_with_it(office: Office) -> None:
    other = DrivenBackend()
    job = office.ask("A", backend=other)
    other.next_stream().answer("yes")
    let_go(job)
    gone = weakref.ref(other)
    del job, other
    deadline_s = time.monotonic() + PATIENCE_S
    while gone() is not None:
        assert time.monotonic() < deadline_s
        gc.collect()


# Slots that come and go


@pytest.mark.usefixtures("quick_keeper")
def test_slots_that_come_are_given_out_without_anybody_asking(backend: DrivenBackend) -> None:
    office = Office(backend)
    office.ask("A")
    waiting = office.ask("B")
    backend.next_stream()
    assert phases(waiting) == ["waiting"]
    backend.slots = 2
    assert backend.next_stream().question == "B"
    office.registry.close()


def test_slots_that_go_leave_what_runs_alone(office: Office, backend: DrivenBackend) -> None:
    backend.slots = 3
    jobs = [office.ask(question) for question in "ABCDE"]
    streams = {stream.question: stream for stream in (backend.next_stream() for _ in range(3))}
    backend.slots = 1
    for question in "AB":
        streams[question].answer("yes")
        let_go(jobs["ABCDE".index(question)])
        assert phases(*jobs[2:]) == ["reading", "waiting", "waiting"]
    streams["C"].answer("yes")
    let_go(jobs[2])
    assert phases(*jobs[3:]) == ["reading", "waiting"]
    backend.next_stream().answer("yes")
    assert backend.next_stream().question == "E"


class Undecided(DrivenBackend):
    """Doesn't know how many it can answer at once."""

    def __init__(self, said: int | Exception) -> None:
        super().__init__()
        self.said = said

    def __getattribute__(self, name: str) -> object:
        if name == "slots" and isinstance(said := self.said, Exception):
            raise said
        return said if name == "slots" else super().__getattribute__(name)


@pytest.mark.parametrize("said", [0, -1, RuntimeError("it is switching")])
def test_a_backend_that_cannot_say_its_slots_has_one(said: int | Exception) -> None:
    with Undecided(said) as backend:
        office = Office(backend)
        jobs = [office.ask(question) for question in "AB"]
        assert phases(*jobs) == ["reading", "waiting"]
        assert order_of_answers(backend, jobs) == ["A", "B"]
        office.registry.close()


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


def test_one_person_can_not_fill_the_line(backend: DrivenBackend) -> None:
    office = Office(backend)
    office.registry = JobRegistry(max_waiting=10, max_waiting_each=2)
    jobs = [office.ask(question) for question in ("A1", "A2", "A3")]
    with pytest.raises(TooManyWaitingError) as refusal:
        office.ask("A4")
    assert refusal.value.values == {"limit": 2}
    assert office.registry.get("A4") is None
    assert phases(office.ask("B1")) == ["waiting"]
    jobs[1].cancel()
    assert phases(office.ask("A5")) == ["waiting"]
    office.registry.close()


def test_what_was_admitted_before_is_not_refused(office: Office, backend: DrivenBackend) -> None:
    for question in ("r", "1", "2", "3", "4", "5"):
        office.ask(question)
    with pytest.raises(QueueFullError):
        office.ask("new")
    request = GenerationRequest((Message("user", "old"),))
    job = office.registry.submit("old", "o", backend, request, save=Saves(), admitted=True)
    assert phases(job) == ["waiting"]


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


def test_a_long_line_that_gets_no_threads_ends_and_is_not_too_deep(
    backend: DrivenBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(backend)
    office.registry = JobRegistry(max_waiting=1000, max_waiting_each=1000)
    running = office.ask("A")
    stream = backend.next_stream()
    waiting = [office.ask(f"B{number}") for number in range(500)]
    with monkeypatch.context() as patch:

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", refuse)
        stream.answer("yes")
        let_go(running)
    assert all(isinstance(end_of(job).error, InternalError) for job in waiting)
    assert office.registry.running() == 0
    job = office.ask("C")
    backend.next_stream().answer("yes")
    assert let_go(job).text == "yes"
    office.registry.close()


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


@pytest.mark.usefixtures("quick_keeper")
def test_slots_that_change_all_the_time_leave_nobody_waiting() -> None:
    backend = EchoBackend(slots=1)
    registry = JobRegistry(max_waiting=1000)
    over = threading.Event()

    def flap() -> None:
        for slots in itertools.cycle((3, 0, 1, 5, 2)):
            backend.slots = slots
            if over.wait(0.001):
                return

    flapping = threading.Thread(target=flap)
    flapping.start()
    jobs: queue.Queue[tuple[str, GenerationJob]] = queue.Queue()

    def ask_twenty(person: int) -> None:
        for number in range(20):
            question = f"question {number} of person {person}"
            request = GenerationRequest((Message("user", question),))
            job = registry.submit(question, f"{person}", backend, request, save=Saves())
            jobs.put((question, job))
            registry.place_of(job)
            if number % 5 == 0:
                job.cancel()

    at_once(*[lambda person=person: ask_twenty(person) for person in range(8)])
    try:
        while not jobs.empty():
            question, job = jobs.get_nowait()
            final = let_go(job)
            assert final.error is None
            assert question.startswith(final.text)
            assert final.text == question or job.cancelled
    finally:
        over.set()
        join(flapping)
        registry.close()
    assert registry.running() == 0
    assert backend.most_at_once <= 5


# -- another backend instead --


def test_who_waits_may_be_answered_by_another_backend(
    office: Office, backend: DrivenBackend
) -> None:
    first = office.ask("a")
    stream = backend.next_stream()
    waits, behind = office.ask("b"), office.ask("c")
    with DrivenBackend(model="another") as other:
        assert office.registry.answer_instead(waits, other)
        other.next_stream().answer("at once")
        assert end_of(waits).text == "at once"
        assert office.registry.place_of(behind).number == 1  # type: ignore[union-attr]
        assert not office.registry.answer_instead(first, other), "it has its turn"
        assert not office.registry.answer_instead(waits, other), "it is over"
        stream.answer("first")
        backend.next_stream().answer("third")
        assert [end_of(job).text for job in (first, behind)] == ["first", "third"]
    assert office.registry.running() == 0


def test_what_goes_through_the_cache_stands_in_its_backends_line(
    office: Office, backend: DrivenBackend
) -> None:
    through = CachedBackend(backend, lambda inner, request, cancel: inner.stream(request, cancel))
    office.ask("a")
    stream = backend.next_stream()
    job = office.ask("b", backend=through)
    assert office.registry.waiting(backend) == office.registry.waiting(through) == 1
    stream.answer("first")
    backend.next_stream().answer("second")
    assert end_of(job).text == "second"
