"""What a person can do with a conversation, and what the conversation looks like afterwards."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm.chat import MAX_QUEUED, Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import ConversationKey, ConversationState, Turn
from llm.conversations import ConversationStore
from llm.errors import (
    ConversationGoneError,
    EmptyQuestionError,
    InternalError,
    LLMError,
    OutOfMemoryError,
    QuestionTooLongError,
    QueueFullError,
    ServerUnreachableError,
    ShuttingDownError,
    TooManyQueuedError,
)
from llm.going_on import body_of
from llm.job import GenerationJob, Snapshot
from llm.registry import JobRegistry
from llm.stored_answer import StoredAnswer
from llm.types import Backend, Message, Notice, SamplingParams
from tests.driven_backend import PATIENCE_S, DrivenBackend, DrivenStream, at_once, join, let_go

LIMIT_CHARS = 100


class Room:
    """A chat with two hand-driven backends, and one conversation in it."""

    def __init__(self, url: str, runner: str = "this process") -> None:
        self.local = DrivenBackend(slots=4, model="small one")
        self.server = DrivenBackend(slots=4, model="big one")
        self.factories: dict[str, Callable[[], Backend]] = {
            "local": lambda: self.local,
            "server": lambda: self.server,
        }
        self.store = ConversationStore(ConversationDatabase(url, runner))
        self.registry = JobRegistry()
        self.chat = Chat(self.store, self.registry, self.factories, LIMIT_CHARS)
        self.here = self.open()

    def open(self, wanted: str | None = None) -> ConversationKey:
        return self.chat.open("somebody", wanted)

    def ask(
        self,
        question: str,
        *,
        conversation: ConversationKey | None = None,
        backend: str = "local",
        params: SamplingParams | None = None,
        system_prompt: str = "",
    ) -> None:
        self.chat.ask(
            conversation or self.here,
            question,
            person="somebody",
            backend=backend,
            params=params or SamplingParams(),
            system_prompt=system_prompt,
        )

    def ask_again(self, turn: Turn, here: ConversationKey | None = None) -> None:
        self.chat.ask_again(
            here or self.here,
            turn.turn_id,
            person="somebody",
            backend=turn.backend,
            params=turn.params,
            system_prompt=turn.system_prompt,
        )

    def next_stream(self) -> DrivenStream:
        return self.local.next_stream()

    def answered(self, question: str, answer: str) -> Turn:
        """Ask, answer, and wait until that is over."""
        self.ask(question)
        job = self.running()
        self.next_stream().answer(answer)
        let_go(job)
        return self.turns()[-1]

    def failed(self, question: str, error: LLMError, text: str = "") -> Turn:
        self.ask(question)
        job = self.running()
        stream = self.next_stream()
        stream.say(text)
        stream.raise_(error)
        let_go(job)
        return self.turns()[-1]

    def running(self) -> GenerationJob:
        job = self.chat.job(self.here)
        assert isinstance(job, GenerationJob)
        return job

    def turns(self) -> tuple[Turn, ...]:
        return self.chat.turns(self.here)

    def transcript(self) -> list[tuple[str, str, str]]:
        return [(turn.question, turn.state, turn.text) for turn in self.turns()]

    def close(self) -> None:
        self.local.close()
        self.server.close()
        self.chat.close()
        assert self.store.trouble is None


def end_of_all(chat: Chat, key: ConversationKey) -> list[str]:
    """The conversation's answers, when all of them are over."""
    deadline_s = time.monotonic() + PATIENCE_S
    while any(turn.state != "ended" for turn in chat.turns(key)):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    return [turn.text for turn in chat.turns(key)]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(f"sqlite:///{tmp_path / 'conversations.sqlite3'}")
    yield room
    room.close()


def reason(turn: Turn) -> str:
    assert turn.receipt is not None
    return turn.receipt.finish.reason


def told(stream: DrivenStream) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in stream.request.messages]


# Questions


@pytest.mark.parametrize("question", ["", " ", " \n\t\u3000 "])
def test_nothing_asked_is_refused_and_nothing_added(room: Room, question: str) -> None:
    with pytest.raises(EmptyQuestionError):
        room.ask(question)
    assert room.turns() == ()
    assert room.chat.job(room.here) is None


def test_a_question_too_long_is_refused_and_nothing_added(room: Room) -> None:
    with pytest.raises(QuestionTooLongError) as refusal:
        room.ask("x" * (LIMIT_CHARS + 3))
    assert refusal.value.values == {"chars": 103, "limit": 100, "over": 3}
    assert room.turns() == ()
    assert room.chat.job(room.here) is None


def test_a_question_of_just_the_allowed_length_is_answered(room: Room) -> None:
    assert room.answered("x" * LIMIT_CHARS, "ok").text == "ok"


def test_a_question_is_kept_as_typed_and_its_answer_with_a_receipt(room: Room) -> None:
    turn = room.answered("  why?\n", "Because.")
    assert (turn.question, turn.text, turn.state, turn.error) == (
        "  why?\n",
        "Because.",
        "ended",
        None,
    )
    assert turn.receipt is not None
    assert turn.receipt.model == "small one"
    assert reason(turn) == "stop"


@pytest.mark.parametrize("answer", ["", "\n", "```python\nprint("])
def test_after_an_odd_answer_the_next_question_works(room: Room, answer: str) -> None:
    assert room.answered("first", answer).text == answer
    assert room.answered("second", "fine").text == "fine"


def test_a_turn_and_its_job_can_be_matched(room: Room) -> None:
    room.ask("why?")
    assert room.running().request.request_id == room.turns()[0].turn_id


# Queueing


def test_questions_asked_meanwhile_are_answered_next_and_in_order(room: Room) -> None:
    for question in ("one", "two", "three"):
        room.ask(question)
    assert [turn.state for turn in room.turns()] == ["running", "queued", "queued"]
    for question in ("one", "two", "three"):
        job, stream = room.running(), room.next_stream()
        assert stream.question == question
        stream.answer(f"{question}!")
        let_go(job)
    assert room.transcript() == [
        ("one", "ended", "one!"),
        ("two", "ended", "two!"),
        ("three", "ended", "three!"),
    ]
    assert room.chat.job(room.here) is None


def test_a_queued_question_is_told_the_answer_it_waited_for(room: Room) -> None:
    room.ask("one")
    room.ask("two")
    room.next_stream().answer("one!")
    assert told(room.next_stream()) == [("user", "one"), ("assistant", "one!"), ("user", "two")]


def test_enough_queued_questions_are_enough(room: Room) -> None:
    room.ask("running")
    for number in range(MAX_QUEUED):
        room.ask(f"queued {number}")
    with pytest.raises(TooManyQueuedError) as refusal:
        room.ask("one too many")
    assert refusal.value.values == {"limit": MAX_QUEUED}
    assert len(room.turns()) == 1 + MAX_QUEUED
    assert all(turn.question != "one too many" for turn in room.turns())


def test_a_queued_question_can_be_withdrawn(room: Room) -> None:
    for question in ("one", "two", "three"):
        room.ask(question)
    room.chat.withdraw(room.here, room.turns()[1].turn_id)
    room.next_stream().answer("one!")
    assert room.next_stream().question == "three"
    assert [turn.question for turn in room.turns()] == ["one", "three"]


def test_only_a_queued_question_can_be_withdrawn(room: Room) -> None:
    ended = room.answered("one", "one!")
    room.ask("two")
    running = room.turns()[-1]
    for turn_id in (ended.turn_id, running.turn_id, "unknown"):
        room.chat.withdraw(room.here, turn_id)
    assert [turn.question for turn in room.turns()] == ["one", "two"]


def test_two_tabs_that_ask_at_once_get_two_turns_one_after_the_other(room: Room) -> None:
    for _ in range(20):
        room.here = room.open()
        at_once(lambda: room.ask("left"), lambda: room.ask("right"))
        assert [turn.state for turn in room.turns()] == ["running", "queued"]
        job, first = room.running(), room.next_stream()
        first.answer(f"to {first.question}")
        let_go(job)
        job, second = room.running(), room.next_stream()
        assert told(second) == [
            ("user", first.question),
            ("assistant", f"to {first.question}"),
            ("user", second.question),
        ]
        second.answer(f"to {second.question}")
        let_go(job)
        assert sorted(turn.question for turn in room.turns()) == ["left", "right"]
        assert all(turn.text == f"to {turn.question}" for turn in room.turns())


def test_while_one_tab_asks_another_waits(room: Room) -> None:
    asking, go_on, through = threading.Event(), threading.Event(), threading.Event()

    def slow() -> Backend:
        asking.set()
        assert go_on.wait(PATIENCE_S)
        return room.local

    def ask_too() -> None:
        assert asking.wait(PATIENCE_S)
        room.ask("two")
        through.set()

    room.factories["slow"] = slow
    tabs = [
        threading.Thread(target=lambda: room.ask("one", backend="slow")),
        threading.Thread(target=ask_too),
    ]
    for tab in tabs:
        tab.start()
    overtaken = through.wait(0.2)
    go_on.set()
    for tab in tabs:
        join(tab)
    assert not overtaken
    assert room.transcript() == [("one", "running", ""), ("two", "queued", "")]


def test_an_ask_at_the_very_end_of_an_answer_is_not_forgotten(room: Room) -> None:
    for _ in range(50):
        room.here = room.open()
        room.ask("one")
        job, stream = room.running(), room.next_stream()
        at_once(lambda stream=stream: stream.answer("one!"), lambda: room.ask("two"))
        let_go(job)
        second = room.next_stream()
        assert second.question == "two"
        second.answer("two!")


# Stop


def test_stop_then_ask_at_once_gives_one_question_and_one_answer_a_turn(room: Room) -> None:
    room.ask("one")
    room.next_stream().say("Once upon")
    room.chat.stop(room.here)
    room.ask("two")
    stream = room.next_stream()
    assert told(stream) == [("user", "one"), ("assistant", "Once upon"), ("user", "two")]
    job = room.running()
    stream.answer("Sure.")
    let_go(job)
    assert room.transcript() == [("one", "ended", "Once upon"), ("two", "ended", "Sure.")]
    assert [reason(turn) for turn in room.turns()] == ["abort", "stop"]


def test_stop_lets_the_queued_question_come_next(room: Room) -> None:
    room.ask("one")
    room.ask("two")
    room.chat.stop(room.here)
    room.next_stream()
    assert room.next_stream().question == "two"


def test_stop_where_nothing_runs_does_nothing(room: Room) -> None:
    room.chat.stop(room.here)
    room.answered("one", "one!")
    room.chat.stop(room.here)
    room.chat.stop(ConversationKey("somebody", "unknown"))
    assert room.transcript() == [("one", "ended", "one!")]


def test_stop_leaves_other_conversations_alone(room: Room) -> None:
    other = room.open()
    room.ask("mine")
    room.next_stream().say("my answer")
    room.ask("yours", conversation=other)
    theirs = room.next_stream()
    theirs.say("your")
    mine = room.running()
    room.chat.stop(room.here)
    assert let_go(mine).text == "my answer"
    job = room.chat.job(other)
    assert job is not None
    theirs.answer(" answer")
    let_go(job)
    (turn,) = room.chat.turns(other)
    assert (turn.text, reason(turn)) == ("your answer", "stop")


# Clear


def test_clear_forgets_all_and_stops_the_answer(room: Room) -> None:
    room.answered("one", "one!")
    room.ask("two")
    room.ask("three")
    job = room.running()
    room.next_stream().say("old")
    room.chat.clear(room.here)
    assert room.turns() == ()
    let_go(job)
    assert room.turns() == ()
    assert room.chat.job(room.here) is None
    assert room.open(room.here.conversation_id) == room.here
    assert [stream.question for stream in room.local.streams] == ["one", "two"]


def test_clear_then_ask_at_once_answers_the_new_question_only(room: Room) -> None:
    room.ask("old")
    room.ask("old and queued")
    old = room.running()
    room.next_stream().say("old answer")
    room.chat.clear(room.here)
    room.ask("new")
    stream = room.next_stream()
    assert told(stream) == [("user", "new")]
    job = room.running()
    stream.answer("new answer")
    let_go(old)
    let_go(job)
    assert room.transcript() == [("new", "ended", "new answer")]


def test_after_clear_a_backend_that_is_slow_to_let_go_cannot_bring_the_old_answer_back(
    room: Room,
) -> None:
    with DrivenBackend(ignores_cancel=True) as slow:
        room.factories["slow"] = lambda: slow
        room.ask("old", backend="slow")
        old, stream = room.running(), slow.next_stream()
        stream.say("old")
        room.chat.clear(room.here)
        room.ask("new")
        assert room.transcript() == [("new", "queued", "")]
        stream.say(" answer")
        old.save_partial()
        assert room.transcript() == [("new", "queued", "")]
        stream.finish()
        let_go(old)
        job = room.running()
        room.next_stream().answer("new answer")
        let_go(job)
        assert room.transcript() == [("new", "ended", "new answer")]


def test_clear_does_not_stop_what_another_tab_asks_right_after(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.ask("old")
    old, stream = room.running(), room.next_stream()

    def end_by_itself_and_ask() -> None:
        stream.answer("old answer")
        let_go(old)
        room.ask("new")

    meanwhile = threading.Thread(target=end_by_itself_and_ask)
    change = room.store.change

    def change_then_give_way(*told: Any) -> ConversationState:
        monkeypatch.setattr(room.store, "change", change)
        state = change(*told)
        meanwhile.start()
        meanwhile.join(0.2)  # it waits for Clear to be over; otherwise it is through by now
        return state

    monkeypatch.setattr(room.store, "change", change_then_give_way)
    room.chat.clear(room.here)
    join(meanwhile)
    job = room.running()
    assert not job.cancelled
    room.next_stream().answer("new answer")
    let_go(job)
    assert room.transcript() == [("new", "ended", "new answer")]


# Failures


def test_out_of_memory_keeps_the_text_and_the_next_question_works(room: Room) -> None:
    turn = room.failed("one", OutOfMemoryError(model="small one"), text="So far")
    assert (turn.state, turn.text) == ("ended", "So far")
    assert type(turn.error) is OutOfMemoryError
    assert reason(turn) == "error"
    assert room.answered("two", "fine").text == "fine"


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        (ServerUnreachableError(url="http://x"), ServerUnreachableError),
        (RuntimeError("sk-secret"), InternalError),
        (KeyError("sk-secret"), InternalError),
    ],
)
def test_a_backend_that_cannot_be_made_ends_its_turn_and_the_next_works(
    room: Room, raised: Exception, shown: type[LLMError]
) -> None:
    def broken() -> Backend:
        raise raised

    room.factories["broken"] = broken
    room.ask("one", backend="broken")
    (turn,) = room.turns()
    assert turn.state == "ended"
    assert type(turn.error) is shown
    assert "sk-secret" not in f"{turn.error} {turn.error.values}"
    assert reason(turn) == "error"
    assert room.chat.job(room.here) is None
    assert room.answered("two", "fine").text == "fine"


def test_a_backend_nobody_knows_ends_its_turn(room: Room) -> None:
    room.ask("one", backend="no such thing")
    assert isinstance(room.turns()[0].error, InternalError)
    assert room.answered("two", "fine").text == "fine"


def test_a_queued_question_that_cannot_be_handed_over_does_not_hold_up_the_next(
    room: Room,
) -> None:
    room.ask("one")
    room.ask("two", backend="no such thing")
    room.ask("three")
    room.next_stream().answer("one!")
    stream = room.next_stream()
    assert stream.question == "three"
    job = room.running()
    stream.answer("three!")
    let_go(job)
    assert [turn.state for turn in room.turns()] == ["ended"] * 3
    assert [turn.error is None for turn in room.turns()] == [True, False, True]


def test_a_script_run_that_is_ended_in_mid_ask_does_not_block_the_conversation(
    room: Room,
) -> None:
    class Rerun(BaseException):
        """As Streamlit raises it to end a script run."""

    def interrupted() -> Backend:
        raise Rerun

    room.factories["interrupted"] = interrupted
    with pytest.raises(Rerun):
        room.ask("one", backend="interrupted")
    assert [turn.state for turn in room.turns()] == ["ended"]
    assert room.answered("two", "fine").text == "fine"


def test_a_full_line_ends_the_turn_with_a_sentence(room: Room) -> None:
    room.registry = JobRegistry(max_waiting=0)
    room.chat = Chat(room.store, room.registry, room.factories)
    room.ask("one")
    (turn,) = room.turns()
    assert (turn.state, type(turn.error)) == ("ended", QueueFullError)
    assert room.chat.job(room.here) is None


def test_what_waits_behind_an_answer_is_not_refused_by_a_full_line(room: Room) -> None:
    room.registry = JobRegistry(max_waiting=1)
    room.chat = Chat(room.store, room.registry, room.factories)
    room.local.slots = 1
    room.ask("one")
    room.ask("two")
    other = room.open()
    room.ask("somebody else's", conversation=other)
    room.ask("one too many", conversation=(third := room.open()))
    (refused,) = room.chat.turns(third)
    assert (refused.question, type(refused.error)) == ("one too many", QueueFullError)
    for answered in range(3):
        room.next_stream().answer(f"answer {answered}")
    assert end_of_all(room.chat, room.here) == ["answer 0", "answer 2"]
    assert end_of_all(room.chat, other) == ["answer 1"]


def test_no_answer_is_asked_for_more_tokens_than_are_allowed(room: Room) -> None:
    room.chat = Chat(room.store, room.registry, room.factories, max_answer_tokens=50)
    room.ask("one", params=SamplingParams(max_tokens=400, temperature=0.1))
    assert room.next_stream().request.params == SamplingParams(max_tokens=50, temperature=0.1)
    room.ask("two", params=SamplingParams(max_tokens=20))
    assert room.turns()[-1].params.max_tokens == 20
    standing = room.chat.standing_request(
        room.here, backend="local", params=SamplingParams(max_tokens=400)
    )
    assert standing.params.max_tokens == 50


def test_closing_ends_all_that_is_running_or_queued(room: Room) -> None:
    room.ask("one")
    room.ask("two")
    room.next_stream().say("So far")
    room.registry.close()
    room.ask("three")
    assert [(t.question, t.state, t.text) for t in room.turns()] == [
        ("one", "ended", "So far"),
        ("two", "ended", ""),
        ("three", "ended", ""),
    ]
    assert all(isinstance(turn.error, ShuttingDownError) for turn in room.turns())


# What the model is told


def test_history_has_the_system_prompt_first_and_the_question_last(room: Room) -> None:
    room.answered("one", "one!")
    room.ask("two", system_prompt="Be brief.")
    assert room.next_stream().request.messages == (
        Message("system", "Be brief."),
        Message("user", "one"),
        Message("assistant", "one!"),
        Message("user", "two"),
    )


def test_a_blank_system_prompt_is_none(room: Room) -> None:
    room.ask("one", system_prompt=" \n")
    assert told(room.next_stream()) == [("user", "one")]


def test_history_leaves_out_unanswered_turns_and_reasoning_and_keeps_stopped_partials(
    room: Room,
) -> None:
    room.failed("failed", ServerUnreachableError(url="u"))
    room.answered("blank", " \n")
    room.ask("stopped")
    job, stream = room.running(), room.next_stream()
    stream.say("secret thoughts", "reasoning")
    stream.say("Once upon")
    room.chat.stop(room.here)
    let_go(job)
    room.failed("cut", OutOfMemoryError(model="m"), text="Nearly")
    room.ask("now")
    assert told(room.next_stream()) == [
        ("user", "stopped"),
        ("assistant", "Once upon"),
        ("user", "cut"),
        ("assistant", "Nearly"),
        ("user", "now"),
    ]
    assert room.turns()[2].reasoning == "secret thoughts"


def test_what_turned_out_to_be_reasoning_is_kept_so_and_not_sent_back(room: Room) -> None:
    room.ask("one")
    job, stream = room.running(), room.next_stream()
    stream.say("Let me see.")
    job.save_partial()
    assert room.turns()[0].text == "Let me see."
    stream.say("", "recast")
    stream.say("one!")
    stream.finish()
    let_go(job)
    turn = room.turns()[0]
    assert (turn.text, turn.reasoning) == ("one!", "Let me see.")
    assert turn.receipt is not None
    assert turn.receipt.reasoning_s is not None
    room.ask("two")
    job, stream = room.running(), room.next_stream()
    assert told(stream) == [("user", "one"), ("assistant", "one!"), ("user", "two")]
    # All reasoning and no answer: as if it hadn't been asked.
    stream.say("Hm", "reasoning")
    stream.finish("length")
    let_go(job)
    room.ask("three")
    assert told(room.next_stream())[2:] == [("user", "three")]


def test_the_backend_can_be_switched_between_turns(room: Room) -> None:
    room.answered("one", "one!")
    room.ask("two", backend="server")
    job, stream = room.running(), room.server.next_stream()
    assert told(stream) == [("user", "one"), ("assistant", "one!"), ("user", "two")]
    stream.answer("two!")
    let_go(job)
    models = [turn.receipt.model for turn in room.turns() if turn.receipt]
    assert models == ["small one", "big one"]
    assert [turn.backend for turn in room.turns()] == ["local", "server"]
    assert [stream.question for stream in room.local.streams] == ["one"]


def test_the_model_that_was_picked_is_asked_and_the_receipt_says_who_answered(room: Room) -> None:
    choices: dict[str, Any] = {"person": "somebody", "backend": "local", "params": SamplingParams()}
    room.chat.ask(room.here, "why?", model="big", **choices)
    job, stream = room.running(), room.next_stream()
    assert stream.request.model == room.turns()[0].model == "big"
    stream.yield_raw(Notice(None, "gpu-2", "big"))
    stream.raise_(ServerUnreachableError(url="http://gpu-2/v1"))
    let_go(job)
    (turn,) = room.turns()
    assert turn.receipt is not None
    assert (turn.receipt.server, turn.receipt.model) == ("gpu-2", "big")
    room.chat.ask_again(room.here, turn.turn_id, model="bigger", **choices)
    assert room.next_stream().request.model == "bigger"


def test_a_queued_question_keeps_the_choices_it_was_asked_with(room: Room) -> None:
    cold, hot = SamplingParams(temperature=0, seed=1), SamplingParams(temperature=2)
    room.ask("one", params=cold)
    room.ask("two", params=hot, backend="server", system_prompt="Be wild.")
    first = room.next_stream()
    first.answer("one!")
    second = room.server.next_stream()
    assert first.request.params == cold
    assert second.request.params == hot
    assert second.request.messages[0] == Message("system", "Be wild.")
    assert [turn.params for turn in room.turns()] == [cold, hot]


# Ask again


def test_ask_again_replaces_a_failed_turn_without_text(room: Room) -> None:
    params = SamplingParams(temperature=0.1)
    room.ask("why?", params=params, system_prompt="Be brief.")
    job = room.running()
    room.next_stream().raise_(ServerUnreachableError(url="u"))
    let_go(job)
    (failed,) = room.turns()
    room.ask_again(failed)
    job, stream = room.running(), room.next_stream()
    assert told(stream) == [("system", "Be brief."), ("user", "why?")]
    assert stream.request.params == params
    stream.answer("Because.")
    let_go(job)
    (turn,) = room.turns()
    assert (turn.question, turn.text, turn.error) == ("why?", "Because.", None)
    assert turn.turn_id != failed.turn_id


def variants(room: Room) -> list[tuple[str, ...]]:
    """For each shown turn, the texts of all that stand in its place."""
    state = room.chat.state(room.here)
    assert state is not None
    return [
        tuple(state.turns[turn_id].text for turn_id in beside)
        for beside in state.variants().values()
    ]


def test_another_answer_stands_beside_the_old_one(room: Room) -> None:
    turn = room.failed("why?", OutOfMemoryError(model="m"), text="Becau")
    room.ask_again(turn)
    job = room.running()
    room.next_stream().answer("Because.")
    let_go(job)
    assert room.transcript() == [("why?", "ended", "Because.")]
    assert variants(room) == [("Becau", "Because.")]
    room.chat.show(room.here, turn.turn_id)
    assert room.transcript() == [("why?", "ended", "Becau")]
    assert room.answered("and?", "So.").parent == turn.turn_id


def test_ask_again_keeps_what_was_thought(room: Room) -> None:
    room.ask("why?")
    job = room.running()
    stream = room.next_stream()
    stream.say("because", kind="reasoning")
    stream.raise_(ServerUnreachableError(url="u"))
    let_go(job)
    (cut,) = room.turns()
    room.ask_again(cut)
    job = room.running()
    room.next_stream().answer("Because.")
    let_go(job)
    assert variants(room) == [("", "Because.")]
    room.chat.show(room.here, cut.turn_id)
    assert room.turns()[0].reasoning == "because"


def test_a_changed_question_starts_a_branch_that_knows_nothing_of_the_old_one(room: Room) -> None:
    room.answered("zero", "zero!")
    first = room.answered("one", "one!")
    room.answered("two", "two!")
    room.chat.ask_again(
        room.here,
        first.turn_id,
        person="somebody",
        backend="local",
        params=SamplingParams(),
        question="uno",
    )
    job, stream = room.running(), room.next_stream()
    assert told(stream) == [("user", "zero"), ("assistant", "zero!"), ("user", "uno")]
    stream.answer("uno!")
    let_go(job)
    assert [turn.question for turn in room.turns()] == ["zero", "uno"]
    room.chat.show(room.here, first.turn_id)
    assert [turn.question for turn in room.turns()] == ["zero", "one", "two"]


@pytest.mark.parametrize("question", ["", "x" * (LIMIT_CHARS + 1)])
def test_a_changed_question_is_held_to_the_same_limits(room: Room, question: str) -> None:
    turn = room.answered("one", "one!")
    with pytest.raises((EmptyQuestionError, QuestionTooLongError)):
        room.chat.ask_again(
            room.here,
            turn.turn_id,
            person="somebody",
            backend="local",
            params=SamplingParams(),
            question=question,
        )
    assert room.transcript() == [("one", "ended", "one!")]


def go_on(room: Room, turn: Turn) -> None:
    room.chat.go_on(
        room.here, turn.turn_id, person="somebody", backend="local", params=SamplingParams()
    )


def test_going_on_gives_the_whole_text_in_a_turn_beside_the_cut_one(room: Room) -> None:
    cut = room.failed("why?", OutOfMemoryError(model="m"), text="Beca")
    go_on(room, cut)
    assert room.transcript() == [("why?", "running", "Beca")]
    job, stream = room.running(), room.next_stream()
    assert told(stream) == [("user", "why?"), ("assistant", "Beca")]
    stream.say("use")
    job.save_partial()
    assert room.transcript() == [("why?", "running", "Because")]
    stream.say(".")
    stream.finish()
    let_go(job)
    assert room.transcript() == [("why?", "ended", "Because.")]
    assert variants(room) == [("Beca", "Because.")]
    assert room.turns()[0].continues == cut.turn_id


def test_going_on_that_fails_keeps_what_was_there(room: Room) -> None:
    cut = room.failed("why?", OutOfMemoryError(model="m"), text="Beca")
    go_on(room, cut)
    job, stream = room.running(), room.next_stream()
    stream.raise_(ServerUnreachableError(url="u"))
    let_go(job)
    (turn,) = room.turns()
    assert (turn.text, type(turn.error)) == ("Beca", ServerUnreachableError)


def test_going_on_twice_at_once_goes_on_once(room: Room) -> None:
    cut = room.failed("why?", OutOfMemoryError(model="m"), text="Beca")
    at_once(*[lambda: go_on(room, cut)] * 4)
    assert variants(room) == [("Beca", "Beca")]


def test_ask_again_loses_no_question_when_enough_are_queued(room: Room) -> None:
    failed = room.failed("why?", ServerUnreachableError(url="u"))
    room.ask("running")
    for number in range(MAX_QUEUED):
        room.ask(f"queued {number}")
    with pytest.raises(TooManyQueuedError):
        room.ask_again(failed)
    assert room.turns()[0] == failed


def test_asking_again_twice_at_once_asks_once(room: Room) -> None:
    failed = room.failed("why?", ServerUnreachableError(url="u"))
    at_once(*[lambda: room.ask_again(failed)] * 4)
    assert room.transcript() == [("why?", "running", "")]


def test_only_an_ended_turn_can_be_asked_again(room: Room) -> None:
    room.ask("running")
    room.ask("queued")
    for turn in room.turns():
        room.ask_again(turn)
    stranger = replace(room.turns()[0], turn_id="unknown")
    room.ask_again(stranger)
    room.ask_again(stranger, here=ConversationKey("somebody", "unknown"))
    assert [turn.question for turn in room.turns()] == ["running", "queued"]


# Conversations


def test_an_unknown_conversation_opens_as_a_new_one(room: Room) -> None:
    for unknown in (None, "", "guessed"):
        opened = room.open(unknown)
        assert opened.conversation_id not in (unknown, room.here.conversation_id)
        assert room.chat.turns(opened) == ()
    room.ask("something")
    assert room.open(room.here.conversation_id) == room.here


def test_anothers_conversation_opens_as_a_new_one_of_ones_own(room: Room) -> None:
    room.answered("mine", "yours not")
    opened = room.chat.open("thief", room.here.conversation_id)
    assert opened.conversation_id != room.here.conversation_id
    assert room.chat.turns(ConversationKey("thief", room.here.conversation_id)) == ()


def test_the_place_in_line_counts_those_before(room: Room) -> None:
    room.local.slots = 1
    for number in range(3):
        conversation = room.open()
        room.ask(f"before {number}", conversation=conversation)
    room.ask("mine")
    # All asked by the same person: first come, first served.
    place = room.chat.place_of(room.running())
    assert place is not None
    assert place.number == 3


def test_many_conversations_leave_no_locks_behind(room: Room) -> None:
    for _ in range(50):
        room.here = room.open()
        room.answered("one", "one!")
    gc.collect()
    assert dict(room.chat._locks) == {}


def test_stop_means_the_turn_that_was_seen_running(room: Room) -> None:
    room.ask("first")
    room.ask("second")
    first, second = room.turns()
    job = room.running()
    room.next_stream().answer("One.")
    let_go(job)
    room.chat.stop(room.here, first.turn_id)  # the click came too late
    job, stream = room.running(), room.next_stream()
    stream.say("Tw")
    room.chat.stop(room.here, second.turn_id)
    let_go(job)
    assert [turn.receipt.finish.reason for turn in room.turns() if turn.receipt] == [
        "stop",
        "abort",
    ]


def test_a_store_that_refuses_the_end_once_does_not_hold_up_the_conversation(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, refusals = ConversationStore.change, 1

    def refusing(store: ConversationStore, key: ConversationKey, how: Any) -> ConversationState:
        nonlocal refusals

        def looked_at(state: ConversationState) -> ConversationState:
            nonlocal refusals
            after: ConversationState = how(state)
            ends = any(
                turn.state == "ended" and state.turns[turn_id].state == "running"
                for turn_id, turn in after.turns.items()
            )
            if ends and refusals:
                refusals -= 1
                raise OSError("no room")
            return after

        return change(store, key, looked_at)

    monkeypatch.setattr(ConversationStore, "change", refusing)
    room.ask("first")
    room.ask("second")
    for text in ("One.", "Two."):
        job = room.running()
        room.next_stream().answer(text)
        let_go(job)
    assert room.transcript() == [("first", "ended", "One."), ("second", "ended", "Two.")]


def test_an_answer_whose_figures_cant_be_told_ends_with_its_text(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(snapshot: Snapshot) -> float:
        raise OverflowError

    monkeypatch.setattr(Snapshot, "tokens_per_s", property(broken))
    room.ask("first")
    room.ask("second")
    for text in ("One.", "Two."):
        job = room.running()
        room.next_stream().answer(text)
        let_go(job)
    assert room.transcript() == [("first", "ended", "One."), ("second", "ended", "Two.")]


# Bringing back


def test_clear_can_be_undone_and_the_stopped_answer_is_there_as_far_as_it_was(room: Room) -> None:
    room.answered("one", "one!")
    room.ask("two")
    job = room.running()
    room.next_stream().say("half")
    stamp = room.chat.clear(room.here)
    let_go(job)
    assert stamp is not None
    room.chat.bring_back(room.here, stamp)
    assert room.transcript() == [("one", "ended", "one!"), ("two", "ended", "half")]


def test_clear_where_nothing_is_says_so(room: Room) -> None:
    assert room.chat.clear(room.here) is None
    room.answered("one", "one!")
    assert room.chat.clear(room.here) is not None
    assert room.chat.clear(room.here) is None


def test_a_question_that_was_queued_when_all_was_cleared_is_answered_when_it_is_brought_back(
    room: Room,
) -> None:
    room.ask("one")
    room.ask("two")
    job = room.running()
    room.next_stream().say("half")
    stamp = room.chat.clear(room.here)
    let_go(job)
    assert stamp is not None
    assert room.chat.job(room.here) is None
    room.chat.bring_back(room.here, stamp)
    job, stream = room.running(), room.next_stream()
    assert stream.question == "two"
    stream.answer("two!")
    let_go(job)
    assert room.transcript() == [("one", "ended", "half"), ("two", "ended", "two!")]


def test_a_deleted_turn_is_stopped_and_what_follows_it_goes_on(room: Room) -> None:
    room.ask("one")
    room.ask("two")
    job = room.running()
    room.next_stream().say("half")
    stamp = room.chat.delete_turn(room.here, room.turns()[0].turn_id)
    let_go(job)
    job, stream = room.running(), room.next_stream()
    assert told(stream) == [("user", "two")]
    stream.answer("two!")
    let_go(job)
    assert room.transcript() == [("two", "ended", "two!")]
    room.chat.bring_back(room.here, stamp)
    assert room.transcript() == [("one", "ended", "half"), ("two", "ended", "two!")]


def test_withdrawing_another_answer_shows_the_old_one_again(room: Room) -> None:
    old = room.answered("one", "one!")
    other = room.answered("two", "two!")
    room.ask("running")
    room.ask_again(old)
    (again,) = room.turns()
    assert again.state == "queued"
    room.chat.withdraw(room.here, again.turn_id)
    assert [turn.question for turn in room.turns()] == ["one", "two", "running"]
    assert other in room.turns()


def test_a_deleted_conversation_answers_nothing_until_it_is_restored(room: Room) -> None:
    room.ask("one")
    room.ask("two")
    job = room.running()
    room.next_stream().say("half")
    room.chat.delete(room.here)
    let_go(job)
    assert room.chat.state(room.here) is None
    assert room.chat.job(room.here) is None
    assert room.chat._in_line == set()
    assert [head.key for head in room.store.deleted("somebody", 9)] == [room.here]
    room.chat.restore(room.here)
    job, stream = room.running(), room.next_stream()
    assert stream.question == "two"
    stream.answer("two!")
    let_go(job)
    assert room.transcript() == [("one", "ended", "half"), ("two", "ended", "two!")]


def test_a_name_given_by_a_person_stays_and_a_blank_one_is_none(room: Room) -> None:
    room.answered("one", "one!")
    room.chat.rename(room.here, "  A\n good \0 name ")
    room.chat.rename(room.here, " \0 ")
    room.answered("two", "two!")
    state = room.chat.state(room.here)
    assert state is not None
    assert (state.head.title, state.head.title_by) == ("A good name", "person")


# Two processes


@pytest.fixture
def two(database_url: str) -> Iterator[tuple[Room, Room]]:
    """The same conversation in two processes on one database."""
    rooms = Room(url=database_url, runner="one"), Room(url=database_url, runner="two")
    rooms[1].here = rooms[0].here
    yield rooms
    for each in rooms:
        each.close()


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 3 * PATIENCE_S
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_question_asked_in_the_second_process_waits_for_the_answer_in_the_first(
    two: tuple[Room, Room],
) -> None:
    one, other = two
    one.ask("one")
    stream = one.next_stream()
    other.ask("two")
    assert other.transcript() == one.transcript() == [("one", "running", ""), ("two", "queued", "")]
    other.chat._look_after_all()
    assert other.transcript()[1] == ("two", "queued", "")
    stream.answer("one!")
    second = other.next_stream()  # its keeper sees that the first is over
    assert told(second) == [("user", "one"), ("assistant", "one!"), ("user", "two")]
    job = other.running()
    second.answer("two!")
    let_go(job)
    assert one.transcript() == [("one", "ended", "one!"), ("two", "ended", "two!")]
    assert len(one.local.streams) == len(other.local.streams) == 1


def test_an_answer_in_another_process_is_followed_and_stopped(two: tuple[Room, Room]) -> None:
    one, other = two
    one.ask("one")
    job, stream = one.running(), one.next_stream()
    stream.say("half")
    job.save_partial()
    followed = other.chat.job(other.here)
    assert isinstance(followed, StoredAnswer)
    assert not followed.cancelled
    assert followed.snapshot().text == "half"
    stream.say(" more")
    job.save_partial()
    until(lambda: followed.wait(followed.snapshot().version, 0.01).text == "half more")
    other.chat.stop(other.here)
    until(lambda: followed.wait(followed.snapshot().version, 0.01).done)
    let_go(job)
    assert [reason(turn) for turn in other.turns()] == ["abort"]
    assert other.chat.job(other.here) is None


@pytest.mark.parametrize("how", ["clear", "delete"])
def test_what_is_cleared_or_deleted_stops_in_the_other_process(
    two: tuple[Room, Room], how: str
) -> None:
    one, other = two
    one.ask("one")
    job, stream = one.running(), one.next_stream()
    stream.say("half")
    getattr(other.chat, how)(other.here)
    assert other.turns() == ()
    let_go(job)
    assert job.cancelled
    assert one.turns() == ()


def test_two_processes_that_ask_at_once_answer_one_after_the_other(two: tuple[Room, Room]) -> None:
    one, other = two
    at_once(lambda: one.ask("one"), lambda: other.ask("two"))
    states = [turn.state for turn in one.turns()]
    assert states == ["running", "queued"]
    first, second = (one, other) if one.turns()[0].question == "one" else (other, one)
    first.next_stream().answer("first!")
    stream = second.next_stream()
    assert [role for role, _ in told(stream)] == ["user", "assistant", "user"]
    job = second.running()
    stream.answer("second!")
    let_go(job)
    assert [turn.text for turn in one.turns()] == ["first!", "second!"]


def test_who_knows_the_id_of_anothers_conversation_can_do_nothing_with_it(room: Room) -> None:
    ended = room.answered("mine", "yours never")
    room.ask("still being answered")
    job, stream = room.running(), room.next_stream()
    running = room.turns()[-1]
    chat, before = room.chat, room.chat.state(room.here)
    guess = ConversationKey("a thief", room.here.conversation_id)
    choices = {"person": "a thief", "backend": "local", "params": SamplingParams()}

    assert chat.state(guess) is None
    assert chat.turns(guess) == ()
    assert chat.job(guess) is None
    assert chat.open("a thief", room.here.conversation_id) != guess
    assert chat.standing_request(guess, backend="local", params=SamplingParams()).messages == ()
    assert chat.store.listed("a thief", 10) == chat.store.search("a thief", "mine", 10) == []
    assert chat.store.deleted("a thief", 10) == []
    with pytest.raises(ConversationGoneError):
        chat.ask(guess, "let me in", **choices)
    for turn in (ended, running):
        chat.ask_again(guess, turn.turn_id, **choices)
        chat.go_on(guess, turn.turn_id, **choices)
        chat.withdraw(guess, turn.turn_id)
        chat.delete_turn(guess, turn.turn_id)
        chat.show(guess, turn.turn_id)
        chat.stop(guess, turn.turn_id)
        chat.store.want_stop(guess, turn.turn_id)
    chat.stop(guess)
    chat.clear(guess)
    chat.bring_back(guess, 0.0)
    chat.rename(guess, "stolen")
    chat.pin(guess, True)
    chat.delete(guess)
    chat.restore(guess)

    assert chat.state(room.here) == before
    assert not job.cancelled
    assert room.store.keep(answering=True) == frozenset()  # nobody wants anything stopped
    stream.answer("and it ends well")
    let_go(job)
    assert room.turns()[-1].text == "and it ends well"


def test_what_would_be_sent_now_asks_for_no_rest_of_the_last_answer(room: Room) -> None:
    room.answered("a question", "an answer")
    standing = room.chat.standing_request(room.here, backend="local", params=SamplingParams())
    assert [message.role for message in standing.messages] == ["user", "assistant"]
    assert standing.start_text is None
    assert replace(standing, standing=False).start_text == "an answer"
    assert "continue_final_message" not in body_of(standing)
